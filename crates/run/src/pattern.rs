//! How an array is divided over ranks, as High Performance Fortran writes it.

use crate::Invalid;
use std::cmp::Ordering;
use std::ops::Range;

const EXPECTED: &str =
    "a letter for each axis, such as BBB or B**, or names, such as BLOCK,*,CYCLIC(4)";
const MOST_RANKS: u64 = 1 << 20;
/// Blocks of a cyclic axis: each rank has a list of its own.
const MOST_BLOCKS: u64 = 1_000_000;
/// Axes that are divided: more have too many grids of ranks to compare.
const MOST_DIVISIONS: usize = 4;

/// How one axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    Whole,
    Block,
    /// Blocks of this length are dealt out in turn.
    Cyclic(u64),
}

impl Axis {
    fn parse(name: &str) -> Option<Axis> {
        match name {
            "*" => Some(Axis::Whole),
            "B" | "BLOCK" => Some(Axis::Block),
            "C" | "CYCLIC" => Some(Axis::Cyclic(1)),
            _ => {
                let width = name.strip_prefix("CYCLIC(")?.strip_suffix(')')?;
                let is_number = width.len() <= 9 && width.bytes().all(|byte| byte.is_ascii_digit());
                let width = width.parse().ok().filter(|&width| is_number && width > 0);
                width.map(Axis::Cyclic)
            }
        }
    }

    fn block_width(self, length: u64, parts: u64) -> u64 {
        match self {
            Axis::Cyclic(width) => width,
            _ => length.div_ceil(parts).max(1),
        }
    }

    /// How many indices one of some parts has.
    fn count(self, length: u64, parts: u64, part: u64) -> u64 {
        if self == Axis::Whole {
            return length;
        }
        let width = self.block_width(length, parts);
        let (turns, rest) = (length / (parts * width), length % (parts * width));
        turns * width + rest.saturating_sub(part * width).min(width)
    }

    /// The ranges of indices of one of some parts, ascending.
    fn spans(self, length: u64, parts: u64, part: u64) -> Vec<Range<u64>> {
        if self == Axis::Whole {
            return std::iter::once(0..length).collect();
        }
        let width = self.block_width(length, parts);
        let starts = (part * width..length).step_by((parts * width) as usize);
        starts.map(|start| start..(start + width).min(length)).collect()
    }
}

/// How each axis of an array is divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<Axis>);

impl Pattern {
    /// The pattern of a text such as `BBB`, `B**` or `BLOCK,*,CYCLIC(4)`; without a text, the first
    /// axis by blocks.
    pub fn parse(text: &str, axes: usize) -> Result<Pattern, Invalid> {
        let compact: String = text.split_whitespace().collect::<String>().to_uppercase();
        let mut names: Vec<&str> = compact.split(',').collect();
        if compact.is_empty() {
            names = (0..axes).map(|axis| if axis == 0 { "B" } else { "*" }).collect();
        } else if !compact.contains(',') && compact.chars().count() <= axes {
            names = compact.split("").filter(|name| !name.is_empty()).collect();
        }
        let pattern: Option<Vec<Axis>> = names.iter().map(|name| Axis::parse(name)).collect();
        let pattern = pattern.filter(|pattern| pattern.len() == axes).ok_or_else(|| {
            Invalid::new("pattern", &format!("{EXPECTED}, for {axes} axes"), format!("{text:?}"))
        })?;
        let divisions = pattern.iter().filter(|&&axis| axis != Axis::Whole).count();
        if divisions > MOST_DIVISIONS {
            let expected = format!("at most {MOST_DIVISIONS} axes to divide");
            return Err(Invalid::new("pattern", &expected, divisions));
        }
        Ok(Pattern(pattern))
    }

    /// Who has what of an array of a shape.
    pub fn division(&self, shape: &[u64], ranks: u64) -> Result<Division, Invalid> {
        for (axis, &length) in self.0.iter().zip(shape) {
            if let Axis::Cyclic(width) = axis
                && length / width > MOST_BLOCKS
            {
                let expected = format!("at most {MOST_BLOCKS} blocks of a cyclic axis");
                return Err(Invalid::new("pattern", &expected, length / width));
            }
        }
        if !(1..=MOST_RANKS).contains(&ranks) {
            return Err(Invalid::new("ranks", &format!("1 to {MOST_RANKS}"), ranks));
        }
        let (pattern, shape) = (self.clone(), shape.to_vec());
        let grid = pattern.grid(&shape, ranks);
        Ok(Division { pattern, shape, grid, ranks })
    }

    /// The number of parts of each axis, as even as can be: the largest block is as small as
    /// possible; of such grids, that with the least surface; of these, that with more parts along
    /// the earlier axes.
    fn grid(&self, shape: &[u64], ranks: u64) -> Vec<u64> {
        let axes: Vec<usize> =
            (0..shape.len()).filter(|&axis| self.0[axis] != Axis::Whole).collect();
        let mut best: Option<(f64, f64, Vec<u64>)> = None;
        for factors in factorings(ranks, axes.len()) {
            let mut parts = vec![1; shape.len()];
            for (&axis, factor) in axes.iter().zip(factors) {
                parts[axis] = factor;
            }
            let block: Vec<f64> = (0..shape.len())
                .map(|axis| self.0[axis].count(shape[axis], parts[axis], 0) as f64)
                .collect();
            let volume: f64 = block.iter().product();
            let surface: f64 = block.iter().map(|length| volume / length.max(1.0)).sum();
            let is_better = best.as_ref().is_none_or(|(best_volume, best_surface, best_parts)| {
                let order = volume.total_cmp(best_volume).then(surface.total_cmp(best_surface));
                order.then_with(|| best_parts.cmp(&parts)) == Ordering::Less
            });
            if is_better {
                best = Some((volume, surface, parts));
            }
        }
        best.map_or_else(|| vec![1; shape.len()], |(_, _, parts)| parts)
    }
}

/// All ordered products of `count` factors that give a number.
fn factorings(number: u64, count: usize) -> Vec<Vec<u64>> {
    match count {
        0 => Vec::new(),
        1 => vec![vec![number]],
        _ => (1..=number)
            .filter(|factor| number.is_multiple_of(*factor))
            .flat_map(|factor| {
                let rest = factorings(number / factor, count - 1);
                rest.into_iter().map(move |rest| [vec![factor], rest].concat())
            })
            .collect(),
    }
}

/// An array of one shape, divided over ranks. Ranks are numbered with the last axis fastest; those
/// beyond the grid have nothing.
#[derive(Clone, Debug)]
pub struct Division {
    pattern: Pattern,
    shape: Vec<u64>,
    grid: Vec<u64>,
    ranks: u64,
}

impl Division {
    /// Number of ranks.
    pub fn ranks(&self) -> u64 {
        self.ranks
    }

    /// For each axis the ranges of indices of a rank; none if it has nothing.
    pub fn spans(&self, rank: u64) -> Vec<Vec<Range<u64>>> {
        let axes = self.shape.len();
        let Some(place) = self.place(rank) else { return vec![Vec::new(); axes] };
        let spans = |axis: usize| {
            self.pattern.0[axis].spans(self.shape[axis], self.grid[axis], place[axis])
        };
        (0..axes).map(spans).collect()
    }

    /// The shape of the block of a rank: its ranges lie without gaps along each axis.
    pub fn block_shape(&self, rank: u64) -> Vec<u64> {
        let axes = self.shape.len();
        let Some(place) = self.place(rank) else { return vec![0; axes] };
        let count = |axis: usize| {
            self.pattern.0[axis].count(self.shape[axis], self.grid[axis], place[axis])
        };
        (0..axes).map(count).collect()
    }

    fn place(&self, rank: u64) -> Option<Vec<u64>> {
        if rank >= self.grid.iter().product() {
            return None;
        }
        let mut rest = rank;
        let mut place = vec![0; self.grid.len()];
        for (at, &parts) in place.iter_mut().zip(&self.grid).rev() {
            (*at, rest) = (rest % parts, rest / parts);
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn division(text: &str, shape: &[u64], ranks: u64) -> Division {
        let pattern = Pattern::parse(text, shape.len()).expect("a pattern");
        pattern.division(shape, ranks).expect("a division")
    }

    #[test]
    fn blocks_are_as_even_as_can_be() {
        assert_eq!(division("BBB", &[128, 128, 128], 8).grid, [2, 2, 2]);
        assert_eq!(division("BBB", &[128, 128, 128], 6).grid, [3, 2, 1]);
        assert_eq!(division("B**", &[10, 4, 4], 4).block_shape(3), [1, 4, 4]);
        assert_eq!(division("", &[10, 4], 4).grid, [4, 1]);
        assert_eq!(division("*", &[10], 4).block_shape(1), [0]);
    }

    #[test]
    fn cyclic_blocks_are_dealt_out_in_turn() {
        let spans = division("CYCLIC(2)", &[9], 2).spans(0);
        assert_eq!(spans, [vec![0..2, 4..6, 8..9]]);
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in ["X", "BBBB", "B,*", "CYCLIC(0)", "BLOCK,*,CYCLIC(x)", "BB\u{e9}"] {
            assert!(Pattern::parse(text, 3).is_err(), "{text}");
        }
        assert!(Pattern::parse("BBBBB", 5).is_err());
        let pattern = Pattern::parse("C", 1).expect("a pattern");
        assert!(pattern.division(&[1 << 40], 2).is_err());
        assert!(pattern.division(&[4], 0).is_err());
    }

    proptest! {
        #[test]
        fn each_element_has_one_rank(
            axes in proptest::collection::vec((0..3usize, 1..5u64, 1..12u64), 1..4),
            ranks in 1..13u64,
        ) {
            let names = axes.iter().map(|(kind, width, _)| match kind {
                0 => "*".to_string(),
                1 => "BLOCK".to_string(),
                _ => format!("CYCLIC({width})"),
            });
            let text = names.collect::<Vec<_>>().join(",");
            let shape: Vec<u64> = axes.iter().map(|axis| axis.2).collect();
            let division = division(&text, &shape, ranks);
            let mut total = 0;
            for rank in 0..ranks {
                let of_spans: Vec<u64> = division.spans(rank).iter()
                    .map(|spans| spans.iter().map(|span| span.end - span.start).sum())
                    .collect();
                prop_assert_eq!(&of_spans, &division.block_shape(rank));
                total += of_spans.iter().product::<u64>();
            }
            prop_assert_eq!(total, shape.iter().product::<u64>());
        }
    }
}
