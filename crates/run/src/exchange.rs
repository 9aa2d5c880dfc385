//! What each rank sends to, and receives from, the ranks that write shards.

use crate::Division;
use crate::shards::{Sharding, strides};
use std::ops::Range;

/// Indices of a rank along one axis that follow each other within a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// Where they begin in the rank's block.
    own: u64,
    /// Where they begin in the shard.
    shard: u64,
    length: u64,
}

/// What a rank has of a shard.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Number of the shard.
    pub shard: u64,
    axes: Vec<Vec<Run>>,
}

impl Piece {
    /// Number of its elements.
    pub fn count(&self) -> u64 {
        self.axes.iter().map(|runs| runs.iter().map(|run| run.length).sum::<u64>()).product()
    }

    /// Append its elements from the rank's block, of lengths `shape` and elements of `size` bytes.
    pub fn pack(&self, block: &[u8], shape: &[u64], size: u64, message: &mut Vec<u8>) {
        let own = |run: &Run| run.own;
        self.for_each_run(&strides(shape), &own, |from, length| {
            message.extend_from_slice(&block[(from * size) as usize..][..(length * size) as usize]);
        });
    }

    /// Put its elements, the first of a message, into those of the shard, of lengths `shape`;
    /// returns the rest of the message.
    pub fn unpack<'a>(
        &self,
        mut message: &'a [u8],
        elements: &mut [u8],
        shape: &[u64],
        size: u64,
    ) -> &'a [u8] {
        let place = |run: &Run| run.shard;
        self.for_each_run(&strides(shape), &place, |to, length| {
            let (now, rest) = message.split_at((length * size) as usize);
            elements[(to * size) as usize..][..now.len()].copy_from_slice(now);
            message = rest;
        });
        message
    }

    /// Call with the first element and the length of each run of elements, in the order of messages.
    fn for_each_run(
        &self,
        strides: &[u64],
        start: &impl Fn(&Run) -> u64,
        mut call: impl FnMut(u64, u64),
    ) {
        visit(&self.axes, strides, start, 0, &mut call);
    }
}

fn visit(
    axes: &[Vec<Run>],
    strides: &[u64],
    start: &impl Fn(&Run) -> u64,
    base: u64,
    call: &mut impl FnMut(u64, u64),
) {
    let Some((runs, inner)) = axes.split_first() else { return };
    for run in runs {
        if inner.is_empty() {
            call(base + start(run), run.length);
            continue;
        }
        for at in start(run)..start(run) + run.length {
            visit(inner, &strides[1..], start, base + at * strides[0], call);
        }
    }
}

/// What one rank sends and receives for each dump of an array. Shards are dealt to ranks in turn, so
/// no two write the same; each element is sent once.
#[derive(Debug)]
pub struct Exchange {
    /// What this rank sends to each rank, in the order of its shards.
    pub outgoing: Vec<Vec<Piece>>,
    /// What it gets from each rank.
    pub incoming: Vec<Vec<Piece>>,
    /// Numbers of the shards that it writes.
    pub shards: Vec<u64>,
}

impl Exchange {
    /// The exchange of a rank.
    pub fn new(division: &Division, sharding: &Sharding, rank: u64) -> Exchange {
        let ranks = division.ranks();
        let own = division.spans(rank);
        let pieces = |spans: &[Vec<Range<u64>>], to: u64| -> Vec<Piece> {
            (to..sharding.count())
                .step_by(ranks as usize)
                .filter_map(|shard| piece(spans, sharding, shard))
                .collect()
        };
        Exchange {
            outgoing: (0..ranks).map(|to| pieces(&own, to)).collect(),
            incoming: (0..ranks).map(|from| pieces(&division.spans(from), rank)).collect(),
            shards: (rank..sharding.count()).step_by(ranks as usize).collect(),
        }
    }
}

/// What the indices of a rank have of a shard; `None` if that is nothing.
fn piece(spans: &[Vec<Range<u64>>], sharding: &Sharding, shard: u64) -> Option<Piece> {
    let region = sharding.region(&sharding.place(shard));
    let axes: Vec<Vec<Run>> =
        spans.iter().zip(region).map(|(spans, within)| runs(spans, &within)).collect();
    axes.iter().all(|runs| !runs.is_empty()).then_some(Piece { shard, axes })
}

fn runs(spans: &[Range<u64>], within: &Range<u64>) -> Vec<Run> {
    let mut before = 0;
    let mut runs = Vec::new();
    for span in spans {
        let (start, end) = (span.start.max(within.start), span.end.min(within.end));
        if start < end {
            let own = before + (start - span.start);
            runs.push(Run { own, shard: start - within.start, length: end - start });
        }
        before += span.end - span.start;
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Element, Pattern};
    use proptest::prelude::*;

    /// The elements of a rank's block of an array of numbers.
    fn block(spans: &[Vec<Range<u64>>], steps: &[u64]) -> Vec<u8> {
        let mut numbers = vec![0u64];
        for (spans, step) in spans.iter().zip(steps) {
            let indices: Vec<u64> = spans.iter().cloned().flatten().collect();
            numbers = numbers
                .iter()
                .flat_map(|number| indices.iter().map(move |at| number + at * step))
                .collect();
        }
        numbers.iter().map(|&number| number as u8).collect()
    }

    proptest! {
        #[test]
        fn all_elements_arrive_at_their_shards(
            shape in proptest::collection::vec(1..9u64, 1..4),
            letters in proptest::collection::vec(0..3usize, 3),
            width in 1..4u64,
            shard in proptest::collection::vec(1..5u64, 3),
            ranks in 1..7u64,
        ) {
            let names = letters[..shape.len()].iter().map(|letter| {
                ["*".to_string(), "BLOCK".to_string(), format!("CYCLIC({width})")][*letter].clone()
            });
            let text = names.collect::<Vec<_>>().join(",");
            let pattern = Pattern::parse(&text, shape.len()).expect("a pattern");
            let division = pattern.division(&shape, ranks).expect("a division");
            let element = Element::parse("u1").expect("a type");
            let shard_shape = shard[..shape.len()].to_vec();
            let grid = shape.iter().zip(&shard_shape).map(|(a, b)| a.div_ceil(*b)).collect();
            let sharding = Sharding {
                chunk_shape: shard_shape.clone(), shard_shape, grid,
                ..Sharding::new(&shape, element)
            };
            let steps = strides(&shape);
            let exchanges: Vec<_> =
                (0..ranks).map(|rank| Exchange::new(&division, &sharding, rank)).collect();
            let mut shards = 0;
            for (to, exchange) in exchanges.iter().enumerate() {
                for &number in &exchange.shards {
                    let region = sharding.region(&sharding.place(number));
                    let lengths: Vec<u64> = region.iter().map(|span| span.end - span.start).collect();
                    let mut elements = vec![255; lengths.iter().product::<u64>() as usize];
                    for (from, sender) in exchanges.iter().enumerate() {
                        let own = division.block_shape(from as u64);
                        let content = block(&division.spans(from as u64), &steps);
                        let pieces = &sender.outgoing[to];
                        let (mut message, mut rest) = (Vec::new(), 0);
                        for piece in pieces.iter().filter(|piece| piece.shard == number) {
                            piece.pack(&content, &own, 1, &mut message);
                        }
                        for piece in exchange.incoming[from].iter().filter(|piece| piece.shard == number) {
                            rest = piece.unpack(&message, &mut elements, &lengths, 1).len();
                        }
                        prop_assert_eq!(rest, 0);
                    }
                    let whole: Vec<Vec<Range<u64>>> =
                        region.iter().map(|span| vec![span.clone()]).collect();
                    prop_assert_eq!(elements, block(&whole, &steps));
                    shards += 1;
                }
            }
            prop_assert_eq!(shards, sharding.count());
        }
    }
}
