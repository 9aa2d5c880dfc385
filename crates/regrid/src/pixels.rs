//! Pixels of a granule, and runs of pixels that lie in one cell after each other.

use crate::grid::UNSURE;
use crate::number::Number;
use crate::{Grid, RegridError};

/// Pixels whose cells are found at once. A run ends with its block, so that runs are the same for
/// any number of threads.
const BLOCK_PIXELS: usize = 1 << 12;
/// Pixels of a run are summed as differences to its first value. The sum of squares is then at most
/// this many times the one around the mean, so the loss of digits is bounded by it.
const RUN_PIXELS: usize = 64;
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
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) cell: u32,
    pub(crate) pixels: u16,
    pub(crate) count: u16,
    pub(crate) mean: f64,
}

/// What is gathered for deviations and extremes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) squares: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// That of no pixels.
pub(crate) const NO_SPREAD: Spread =
    Spread { squares: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY };

/// Runs in the order of their pixels, and the spread of each if it is asked for.
#[derive(Debug, Default)]
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

    fn part(
        &self,
        grid: &Grid,
        has_spread: bool,
        start: usize,
        end: usize,
    ) -> Result<Runs, RegridError> {
        let mut runs = Runs::default();
        let mut cells = [UNSURE; BLOCK_PIXELS];
        for at in (start..end).step_by(BLOCK_PIXELS) {
            let block = at..end.min(at + BLOCK_PIXELS);
            let cells = &mut cells[..block.len()];
            let places = (&self.latitude[block.clone()], &self.longitude[block.clone()]);
            find_cells(grid, at, places, cells)?;
            let values = &self.values[block.clone()];
            match (self.valid.map(|valid| &valid[block]), has_spread) {
                (None, false) => runs.add::<V, false>(cells, values, |_| true),
                (None, true) => runs.add::<V, true>(cells, values, |_| true),
                (Some(valid), false) => runs.add::<V, false>(cells, values, |at| valid[at] != 0),
                (Some(valid), true) => runs.add::<V, true>(cells, values, |at| valid[at] != 0),
            }
        }
        Ok(runs)
    }
}

impl Runs {
    /// Add the runs of a block.
    #[inline]
    fn add<V: Number, const SPREAD: bool>(
        &mut self,
        cells: &[u32],
        values: &[V],
        is_valid: impl Fn(usize) -> bool,
    ) {
        let mut start = 0;
        while start < cells.len() {
            let cell = cells[start];
            let limit = cells.len().min(start + RUN_PIXELS);
            let (cells, values) = (&cells[start..limit], &values[start..limit]);
            let number = |at: usize| {
                let value = values[at].number();
                (value.is_finite() & is_valid(start + at)).then_some(value)
            };
            let base = number(0).or_else(|| {
                let run = cells.iter().take_while(|&&other| other == cell);
                run.enumerate().find_map(|(at, _)| number(at))
            });
            let base = base.unwrap_or(0.0);
            let (mut pixels, mut count) = (0, 0_u32);
            let (mut sum, mut squares, mut min, mut max) =
                (0.0, 0.0, f64::INFINITY, -f64::INFINITY);
            // The end of the run is seen in the same loop: processors guess a branch less wrong.
            while pixels < cells.len() && cells[pixels] == cell {
                let value = number(pixels);
                let distance = value.unwrap_or(base) - base;
                count += u32::from(value.is_some());
                sum += distance;
                if SPREAD {
                    squares += distance * distance;
                    min = min.min(value.unwrap_or(f64::INFINITY));
                    max = max.max(value.unwrap_or(f64::NEG_INFINITY));
                }
                pixels += 1;
            }
            let share = 1.0 / f64::from(count.max(1));
            let mean = base + sum * share;
            self.runs.push(Run { cell, pixels: pixels as u16, count: count as u16, mean });
            if SPREAD {
                self.spreads.push(Spread { squares: squares - sum * sum * share, min, max });
            }
            start += pixels;
        }
    }
}

/// Write the cell of each place, `NOWHERE` outside of the grid. `first` is the number of the first
/// pixel, for errors.
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
