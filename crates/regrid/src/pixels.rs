//! Pixels of a granule, and runs of pixels that lie in one cell after each other.

use crate::grid::UNSURE;
use crate::number::Number;
use crate::{Grid, RegridError};

/// Pixels whose cells are found at once. A run ends with its block, so that runs are the same for
/// any number of threads.
const BLOCK_PIXELS: usize = 1 << 8;
/// Pixels of a run are summed as differences to its first value. The sum of squares is then at most
/// this many times the one around the mean, so the loss of digits is bounded by it.
const RUN_PIXELS: usize = 64;
/// How far ahead of a run memory is asked for its pixels: two blocks.
const AHEAD_PIXELS: usize = 2 * BLOCK_PIXELS;
/// Bytes that a processor fetches together.
#[cfg(target_arch = "x86_64")]
const CACHE_LINE: usize = 64;
/// Numbers that are summed at once.
const LANES: usize = 8;
/// A thread is begun for this many pixels: it takes about 50 us to begin.
const THREAD_PIXELS: usize = 1 << 16;
pub(crate) const NOWHERE: u32 = u32::MAX;

/// Pixels of a granule, in any order.
#[derive(Debug, Clone, Copy)]
pub struct Pixels<'a, C, V> {
    /// Latitudes in degrees; NaN for pixels whose place is not known.
    pub latitude: &'a [C],
    /// Longitudes in degrees, of any turn.
    pub longitude: &'a [C],
    /// Values; one that is not finite is fill.
    pub values: &'a [V],
    /// Whether each is valid, and not fill (0); all are without it.
    pub valid: Option<&'a [u8]>,
}

/// At most 64 pixels side by side in one cell, or in none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Run {
    pub(crate) cell: u32,
    pub(crate) pixels: u8,
    pub(crate) count: u8,
    pub(crate) mean: f64,
}

/// What is gathered for deviations and extremes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) squares: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// The smallest and the largest of no values.
const NO_EXTREMES: (f64, f64) = (f64::INFINITY, f64::NEG_INFINITY);
/// That of no pixels.
pub(crate) const NO_SPREAD: Spread =
    Spread { squares: 0.0, min: NO_EXTREMES.0, max: NO_EXTREMES.1 };

/// Runs in the order of their pixels, and the spread of each if it is asked for.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Runs {
    runs: Vec<Run>,
    spreads: Vec<Spread>,
}

impl Runs {
    pub(crate) fn each(&self) -> impl Iterator<Item = (&Run, &Spread)> {
        let spreads = self.spreads.iter().chain(std::iter::repeat(&NO_SPREAD));
        self.runs.iter().zip(spreads)
    }
}

impl<C: Number, V: Number> Pixels<'_, C, V> {
    /// The value of a pixel; none if it is fill.
    #[inline]
    pub(crate) fn value(&self, at: usize) -> Option<f64> {
        let value = self.values[at].number();
        let is_valid = self.valid.is_none_or(|valid| valid[at] != 0) && value.is_finite();
        is_valid.then_some(value)
    }

    /// All runs, in parts that follow each other, each found by one thread.
    pub(crate) fn runs(
        &self,
        grid: &Grid,
        has_spread: bool,
        threads: usize,
    ) -> Result<Vec<Runs>, RegridError> {
        self.check_lengths()?;
        let length = self.latitude.len();
        let threads = threads.clamp(1, length / THREAD_PIXELS + 1);
        let part = length.div_ceil(threads).next_multiple_of(BLOCK_PIXELS).max(BLOCK_PIXELS);
        std::thread::scope(|scope| {
            let mut jobs = (0..length)
                .step_by(part)
                .map(|start| move || self.part(grid, has_spread, start, length.min(start + part)));
            let first = jobs.next();
            let others: Vec<_> = jobs.map(|job| scope.spawn(job)).collect();
            let first = first.map(|job| job());
            let others = others.into_iter().map(|other| match other.join() {
                Ok(runs) => runs,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            first.into_iter().chain(others).collect()
        })
    }

    fn check_lengths(&self) -> Result<(), RegridError> {
        let expected = self.latitude.len();
        let arrays = [
            ("longitudes", self.longitude.len()),
            ("values", self.values.len()),
            ("flags of validity", self.valid.map_or(expected, <[u8]>::len)),
        ];
        match arrays.into_iter().find(|&(_, length)| length != expected) {
            Some((what, length)) => Err(RegridError::Lengths { what, expected, length }),
            None => Ok(()),
        }
    }

    /// The runs of a part. Compiled three times, so that the loops use the vectors of the processor;
    /// all do the same operations, so that results do not depend on it.
    fn part(
        &self,
        grid: &Grid,
        has_spread: bool,
        start: usize,
        end: usize,
    ) -> Result<Runs, RegridError> {
        #[cfg(target_arch = "x86_64")]
        if has_avx512() {
            // SAFETY: the processor has the instructions.
            return unsafe { self.part_by_avx512(grid, has_spread, start, end) };
        } else if has_avx2() {
            // SAFETY: the processor has the instructions.
            return unsafe { self.part_by_avx2(grid, has_spread, start, end) };
        }
        self.part_by_blocks(grid, has_spread, start, end)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,popcnt")]
    fn part_by_avx512(
        &self,
        grid: &Grid,
        has_spread: bool,
        start: usize,
        end: usize,
    ) -> Result<Runs, RegridError> {
        self.part_by_blocks(grid, has_spread, start, end)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    fn part_by_avx2(
        &self,
        grid: &Grid,
        has_spread: bool,
        start: usize,
        end: usize,
    ) -> Result<Runs, RegridError> {
        self.part_by_blocks(grid, has_spread, start, end)
    }

    #[inline(always)]
    fn part_by_blocks(
        &self,
        grid: &Grid,
        has_spread: bool,
        start: usize,
        end: usize,
    ) -> Result<Runs, RegridError> {
        let mut runs = Runs::default();
        let mut cells = [UNSURE; BLOCK_PIXELS];
        let mut word = Word { numbers: [0.0; RUN_PIXELS + LANES], valid: 0 };
        for at in (start..end).step_by(BLOCK_PIXELS) {
            let block = at..end.min(at + BLOCK_PIXELS);
            let cells = &mut cells[..block.len()];
            let places = (&self.latitude[block.clone()], &self.longitude[block.clone()]);
            find_cells(grid, at, places, cells)?;
            for (number, cells) in cells.chunks(RUN_PIXELS).enumerate() {
                let first = at + number * RUN_PIXELS;
                let pixels = first..first + cells.len();
                fetch_ahead(self.latitude, first);
                fetch_ahead(self.longitude, first);
                fetch_ahead(self.values, first);
                let values = &self.values[pixels.clone()];
                match self.valid.map(|valid| &valid[pixels]) {
                    None => word.fill(values, |_| true),
                    Some(valid) => word.fill(values, |at| valid[at] != 0),
                }
                if has_spread {
                    runs.add::<true>(cells, &word);
                } else {
                    runs.add::<false>(cells, &word);
                }
            }
        }
        Ok(runs)
    }
}

/// Whether the processor has what `part_by_avx512` is compiled for.
#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("popcnt")
}

/// Whether the processor has what `part_by_avx2` is compiled for.
#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("popcnt")
}

/// Ask for the elements that are needed two blocks later: blocks come faster than memory answers.
#[inline(always)]
fn fetch_ahead<T>(elements: &[T], pixel: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(later) = elements.get(pixel + AHEAD_PIXELS..pixel + AHEAD_PIXELS + RUN_PIXELS) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        for byte in (0..size_of_val(later)).step_by(CACHE_LINE) {
            // SAFETY: the address lies in the slice, and nothing is read or written.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(later.as_ptr().byte_add(byte).cast()) };
        }
    }
}

/// The numbers of pixels side by side. The last ones are room for a step that begins in the word.
struct Word {
    numbers: [f64; RUN_PIXELS + LANES],
    /// Bit *i*: pixel *i* is no fill.
    valid: u64,
}

impl Word {
    #[inline(always)]
    fn fill<V: Number>(&mut self, values: &[V], is_valid: impl Fn(usize) -> bool) {
        let mut flags = [false; RUN_PIXELS];
        for (at, (value, flag)) in values.iter().zip(&mut flags).enumerate() {
            let number = value.number();
            *flag = number.is_finite() & is_valid(at);
            // All bits are set in a fill, which is a NaN: a choice would be a slow masked write.
            let fill = u64::from(*flag).wrapping_sub(1);
            self.numbers[at] = f64::from_bits(number.to_bits() | fill);
        }
        self.valid = bits(&flags);
    }
}

/// Flags as the bits of a number.
#[inline(always)]
fn bits(flags: &[bool; RUN_PIXELS]) -> u64 {
    let (eights, _) = flags.as_chunks::<8>();
    let mut all = 0;
    for (at, eight) in eights.iter().enumerate() {
        // Each byte is 0 or 1; the product moves byte *i* to bit 56 + *i*.
        let bytes = u64::from_le_bytes(eight.map(u8::from));
        all |= (bytes.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * at);
    }
    all
}

impl Runs {
    /// Add the runs of a word. Lanes are summed side by side, and then to each other.
    #[inline(always)]
    fn add<const SPREAD: bool>(&mut self, cells: &[u32], word: &Word) {
        let mut starts = [false; RUN_PIXELS];
        starts[0] = true;
        for (pair, start) in cells.windows(2).zip(&mut starts[1..]) {
            *start = pair[0] != pair[1];
        }
        let mut starts = bits(&starts);
        while starts != 0 {
            let start = starts.trailing_zeros() as usize;
            starts &= starts - 1;
            let end = cells.len().min(starts.trailing_zeros() as usize);
            let pixels = end - start;
            let valid = (word.valid >> start) & (u64::MAX >> (RUN_PIXELS - pixels));
            let count = valid.count_ones();
            let first = start + valid.trailing_zeros() as usize;
            let base = if count == 0 { 0.0 } else { word.numbers[first.min(RUN_PIXELS)] };
            let sums = Sums::of::<SPREAD>(&word.numbers, start..end, base);
            let share = 1.0 / f64::from(count.max(1));
            let mean = base + sums.sum * share;
            let run = Run { cell: cells[start], pixels: pixels as u8, count: count as u8, mean };
            self.runs.push(run);
            if SPREAD {
                let squares = sums.squares - sums.sum * sums.sum * share;
                self.spreads.push(Spread { squares, min: sums.min, max: sums.max });
            }
        }
    }
}

/// Sums of differences to a number, and of their squares, and extremes.
struct Sums {
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl Sums {
    #[inline(always)]
    fn of<const SPREAD: bool>(
        numbers: &[f64; RUN_PIXELS + LANES],
        run: std::ops::Range<usize>,
        base: f64,
    ) -> Sums {
        let (mut sums, mut squares) = ([0.0; LANES], [0.0; LANES]);
        let (mut min, mut max) = ([NO_EXTREMES.0; LANES], [NO_EXTREMES.1; LANES]);
        for at in run.clone().step_by(LANES) {
            let left = (run.end - at) as i64;
            let Some(step) = numbers[at..].first_chunk::<LANES>() else { break };
            for lane in 0..LANES {
                let number = step[lane];
                let is_taken = ((lane as i64) < left) & !number.is_nan();
                // A choice of two sums would become a slow masked write.
                let mask = u64::from(is_taken).wrapping_neg();
                let distance = f64::from_bits((number - base).to_bits() & mask);
                sums[lane] += distance;
                if SPREAD {
                    squares[lane] += distance * distance;
                    let (low, high) = if is_taken { (number, number) } else { NO_EXTREMES };
                    min[lane] = min[lane].min(low);
                    max[lane] = max[lane].max(high);
                }
            }
        }
        Sums {
            sum: total(sums),
            squares: total(squares),
            min: min.into_iter().fold(NO_EXTREMES.0, f64::min),
            max: max.into_iter().fold(NO_EXTREMES.1, f64::max),
        }
    }
}

/// The sum of lanes, halves first.
#[inline(always)]
fn total(lanes: [f64; LANES]) -> f64 {
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// Write the cell of each place, `NOWHERE` outside of the grid. `first` is the number of the first
/// pixel, for errors.
#[inline(always)]
pub(crate) fn find_cells<C: Number>(
    grid: &Grid,
    first: usize,
    (latitudes, longitudes): (&[C], &[C]),
    out: &mut [u32],
) -> Result<(), RegridError> {
    grid.guess(latitudes, longitudes, out);
    if !out.contains(&UNSURE) {
        return Ok(());
    }
    for (at, cell) in out.iter_mut().enumerate().filter(|(_, cell)| **cell == UNSURE) {
        let (latitude, longitude) = (latitudes[at].number(), longitudes[at].number());
        let pixel = first + at;
        if latitude.abs() > 90.0 {
            let expected = "a latitude from -90 to 90";
            return Err(RegridError::Coordinate { pixel, expected, value: latitude });
        }
        if longitude.is_infinite() {
            let expected = "a finite longitude";
            return Err(RegridError::Coordinate { pixel, expected, value: longitude });
        }
        *cell = grid.cell(latitude, longitude).map_or(NOWHERE, |cell| cell as u32);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bounds;
    use proptest::prelude::*;

    /// Runs and spreads; zeros differ by their signs.
    fn bits_of(runs: &Runs) -> Vec<(u32, u8, u8, [u64; 4])> {
        let bits = |run: &Run, spread: &Spread| {
            [run.mean, spread.squares, spread.min, spread.max].map(f64::to_bits)
        };
        runs.each()
            .map(|(run, spread)| (run.cell, run.pixels, run.count, bits(run, spread)))
            .collect()
    }

    proptest! {
        #[test]
        fn runs_are_the_same_by_any_instructions_and_equal_plain_sums(
            pixels in prop::collection::vec((0..4_u8, -50..50_i32, 0..9_u8), 1..400), each in 1..40_usize,
        ) {
            let pixels: Vec<_> = pixels.into_iter().flat_map(|pixel| vec![pixel; each]).collect();
            let latitude: Vec<f64> = pixels.iter().map(|pixel| f64::from(pixel.0)).collect();
            let number = |&(_, value, kind): &(u8, i32, u8)| match kind {
                0 => f64::NAN,
                2 => 0.0,
                3 => -0.0,
                _ => f64::from(value) / 3.0,
            };
            let values: Vec<f64> = pixels.iter().map(number).collect();
            let valid: Vec<u8> = pixels.iter().map(|pixel| u8::from(pixel.2 != 1)).collect();
            let pixels = Pixels { latitude: &latitude, longitude: &latitude, values: &values, valid: Some(&valid) };
            let globe = Bounds { west: -180.0, south: -90.0, east: 180.0, north: 90.0 };
            let grid = Grid::regular(1.0, 1.0, globe).unwrap();
            let fast = pixels.part(&grid, true, 0, values.len()).unwrap();
            let plain = bits_of(&pixels.part_by_blocks(&grid, true, 0, values.len()).unwrap());
            prop_assert_eq!(bits_of(&fast), &plain[..]);
            #[cfg(target_arch = "x86_64")]
            if has_avx2() {
                // SAFETY: the processor has the instructions.
                let by_avx2 = unsafe { pixels.part_by_avx2(&grid, true, 0, values.len()) };
                prop_assert_eq!(bits_of(&by_avx2.unwrap()), plain);
            }
            let mut at = 0;
            for (run, spread) in fast.each() {
                let end = at + usize::from(run.pixels);
                let taken: Vec<f64> = (at..end).filter_map(|at| pixels.value(at)).collect();
                let mean = taken.iter().sum::<f64>() / taken.len().max(1) as f64;
                let squares: f64 = taken.iter().map(|value| (value - mean).powi(2)).sum();
                prop_assert_eq!(taken.len(), usize::from(run.count));
                prop_assert!((run.mean - mean).abs() < 1e-9 && (spread.squares - squares).abs() < 1e-6);
                prop_assert_eq!(spread.min, taken.iter().copied().fold(f64::INFINITY, f64::min));
                prop_assert_eq!(spread.max, taken.iter().copied().fold(f64::NEG_INFINITY, f64::max));
                prop_assert!((at..end).all(|other| latitude[other] == latitude[at]));
                at = end;
            }
            prop_assert_eq!(at, values.len());
        }
    }
}
