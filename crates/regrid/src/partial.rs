//! What is known of the cells of a grid after some granules.

use crate::values::Values;
use crate::{Grid, RegridError};
use std::collections::HashMap;

/// Grids of more cells keep only cells with pixels: others would need 4 bytes for each cell.
const DENSE_CELLS: usize = 1 << 22;
/// Pixels of a run are summed as differences to its first value. The sum of squares is then at most
/// this many times the one around the mean, so the loss of digits is bounded by it.
const RUN_PIXELS: usize = 64;
/// A thread is begun for this many pixels: it takes about 50 us to begin.
const THREAD_PIXELS: usize = 1 << 16;
const NOWHERE: u32 = u32::MAX;

/// A statistic of the valid pixels of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// Number of all pixels, those of fill included: 0 is an empty cell.
    Pixels,
    /// Number of valid pixels.
    Count,
    /// Mean.
    Mean,
    /// Standard deviation of the pixels (not of a sample: divided by their number).
    Std,
    /// Smallest value.
    Min,
    /// Largest value.
    Max,
    /// Most frequent value; of several the smallest.
    Mode,
}

/// What is gathered beside counts and means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// Standard deviation.
    pub std: bool,
    /// Smallest and largest value.
    pub extremes: bool,
    /// Mode.
    pub mode: bool,
}

/// Pixels of a granule, in any order.
#[derive(Debug, Clone, Copy)]
pub struct Pixels<'a> {
    /// Latitudes in degrees; NaN for pixels whose place is not known.
    pub latitude: &'a [f64],
    /// Longitudes in degrees, of any turn.
    pub longitude: &'a [f64],
    /// Values; one that is not finite is fill.
    pub values: &'a [f64],
    /// Whether each is valid, and not fill (0); all are without it.
    pub valid: Option<&'a [u8]>,
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    pixels: u64,
    count: u64,
    mean: f64,
    squares: f64,
    min: f64,
    max: f64,
}

const EMPTY: Cell = Cell {
    pixels: 0,
    count: 0,
    mean: 0.0,
    squares: 0.0,
    min: f64::INFINITY,
    max: f64::NEG_INFINITY,
};

impl Cell {
    /// Chan, Golub and LeVeque (1979): means and sums of squares of two sets.
    #[inline]
    fn merge(&mut self, other: &Cell) {
        self.pixels += other.pixels;
        if other.count == 0 {
            return;
        }
        let count = self.count + other.count;
        if self.count == 0 {
            (self.mean, self.squares) = (other.mean, other.squares);
        } else {
            let distance = other.mean - self.mean;
            let share = other.count as f64 / count as f64;
            self.mean += distance * share;
            self.squares += other.squares + distance * distance * share * self.count as f64;
        }
        self.count = count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

/// Cells with pixels, each in a slot.
#[derive(Debug, Clone)]
enum Slots {
    Dense(Vec<u32>),
    Sparse(HashMap<u32, u32>),
}

/// A grid that is partly filled. Memory is bounded by the grid and the pixels of one granule.
#[derive(Debug, Clone)]
pub struct Partial {
    grid: Grid,
    needs: Needs,
    slots: Slots,
    cells: Vec<Cell>,
    numbers: Vec<u32>,
    values: Values,
    outside: u64,
}

impl Partial {
    /// An empty one.
    #[must_use]
    pub fn new(grid: Grid, needs: Needs) -> Partial {
        let slots = if grid.cells() <= DENSE_CELLS {
            Slots::Dense(vec![0; grid.cells()])
        } else {
            Slots::Sparse(HashMap::new())
        };
        let values = Values::default();
        Partial { grid, needs, slots, cells: vec![], numbers: vec![], values, outside: 0 }
    }

    /// Its grid.
    #[must_use]
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Pixels that fell into no cell: outside of the bounds, or without a place.
    #[must_use]
    pub fn outside(&self) -> u64 {
        self.outside
    }

    /// Add the pixels of a granule. Threads find the cells of parts of it; pixels are then added in
    /// their order, so that the result is the same to the bit for any number of threads.
    ///
    /// # Errors
    /// If lengths differ, a latitude lies beyond a pole, a longitude is infinite, or a value has no
    /// mode. Nothing is added then.
    pub fn add(&mut self, pixels: Pixels<'_>, threads: usize) -> Result<(), RegridError> {
        let cells = self.cells_of(pixels, threads)?;
        let valid = |at: usize| {
            pixels.valid.is_none_or(|valid| valid[at] != 0) && pixels.values[at].is_finite()
        };
        if self.needs.mode {
            let inside = (0..cells.len()).filter(|&at| cells[at] != NOWHERE && valid(at));
            self.values.learn(inside.map(|at| (at, pixels.values[at])))?;
        }
        let mut start = 0;
        while start < cells.len() {
            let number = cells[start];
            let limit = cells.len().min(start + RUN_PIXELS);
            let length = cells[start..limit].iter().take_while(|&&cell| cell == number).count();
            let run = start..start + length;
            start = run.end;
            if number == NOWHERE {
                self.outside += length as u64;
                continue;
            }
            let summary = self
                .summary(run.clone().filter(|&at| valid(at)).map(|at| pixels.values[at]), length);
            let slot = self.slot(number);
            self.cells[slot].merge(&summary);
            if self.needs.mode {
                for at in run.filter(|&at| valid(at)) {
                    self.values.count(slot, pixels.values[at] as i64, 1);
                }
            }
        }
        Ok(())
    }

    /// Add the cells of another one.
    ///
    /// # Errors
    /// If its grid or its statistics differ, or there are too many values for a mode. Nothing is
    /// added then.
    pub fn merge(&mut self, other: &Partial) -> Result<(), RegridError> {
        if self.grid != other.grid || self.needs != other.needs {
            return Err(RegridError::Differs);
        }
        self.values.learn(other.values.all())?;
        self.outside += other.outside;
        for (from, (cell, &number)) in other.cells.iter().zip(&other.numbers).enumerate() {
            let slot = self.slot(number);
            self.cells[slot].merge(cell);
            for (value, count) in other.values.of(from) {
                self.values.count(slot, value, count);
            }
        }
        Ok(())
    }

    /// Write a statistic of each cell: NaN where a cell has no valid pixel, 0 for counts.
    ///
    /// # Errors
    /// If it was not asked for, or `out` has not one element for each cell.
    pub fn write(&self, statistic: Statistic, out: &mut [f64]) -> Result<(), RegridError> {
        let (expected, length) = (self.grid.cells(), out.len());
        if expected != length {
            return Err(RegridError::Lengths { what: "elements of the result", expected, length });
        }
        let name = match statistic {
            Statistic::Std if !self.needs.std => "std",
            Statistic::Min | Statistic::Max if !self.needs.extremes => "min or max",
            Statistic::Mode if !self.needs.mode => "mode",
            _ => "",
        };
        if !name.is_empty() {
            return Err(RegridError::NotAsked { name });
        }
        let is_count = matches!(statistic, Statistic::Pixels | Statistic::Count);
        out.fill(if is_count { 0.0 } else { f64::NAN });
        for (slot, (cell, &number)) in self.cells.iter().zip(&self.numbers).enumerate() {
            if cell.count == 0 && !is_count {
                continue;
            }
            out[number as usize] = match statistic {
                Statistic::Pixels => cell.pixels as f64,
                Statistic::Count => cell.count as f64,
                Statistic::Mean => cell.mean,
                Statistic::Std => (cell.squares.max(0.0) / cell.count as f64).sqrt(),
                Statistic::Min => cell.min,
                Statistic::Max => cell.max,
                Statistic::Mode => self.values.mode(slot).map_or(f64::NAN, |value| value as f64),
            };
        }
        Ok(())
    }

    /// A run of pixels of one cell.
    #[inline]
    fn summary(&self, mut values: impl Iterator<Item = f64>, pixels: usize) -> Cell {
        let mut run = Cell { pixels: pixels as u64, ..EMPTY };
        let Some(first) = values.next() else { return run };
        let (mut count, mut sum, mut squares) = (1_u64, 0.0, 0.0);
        (run.min, run.max) = (first, first);
        for value in values {
            let distance = value - first;
            count += 1;
            sum += distance;
            if self.needs.std {
                squares += distance * distance;
            }
            if self.needs.extremes {
                run.min = run.min.min(value);
                run.max = run.max.max(value);
            }
        }
        run.count = count;
        run.mean = first + sum / count as f64;
        run.squares = squares - sum * sum / count as f64;
        run
    }

    #[inline]
    fn slot(&mut self, number: u32) -> usize {
        let next = self.cells.len() as u32 + 1;
        let slot = match &mut self.slots {
            Slots::Dense(slots) => &mut slots[number as usize],
            Slots::Sparse(slots) => slots.entry(number).or_default(),
        };
        if *slot == 0 {
            *slot = next;
            self.cells.push(EMPTY);
            self.numbers.push(number);
        }
        *slot as usize - 1
    }

    fn cells_of(&self, pixels: Pixels<'_>, threads: usize) -> Result<Vec<u32>, RegridError> {
        let expected = pixels.latitude.len();
        let arrays = [
            ("longitudes", pixels.longitude.len()),
            ("values", pixels.values.len()),
            ("flags of validity", pixels.valid.map_or(expected, <[u8]>::len)),
        ];
        for (what, length) in arrays {
            if length != expected {
                return Err(RegridError::Lengths { what, expected, length });
            }
        }
        let mut cells = vec![NOWHERE; expected];
        let threads = threads.clamp(1, expected / THREAD_PIXELS + 1);
        let part = expected.div_ceil(threads).max(1);
        let grid = &self.grid;
        let results: Vec<_> = std::thread::scope(|scope| {
            let places = pixels.latitude.chunks(part).zip(pixels.longitude.chunks(part));
            let mut jobs =
                places.zip(cells.chunks_mut(part)).enumerate().map(|(at, (place, out))| {
                    move || find_cells(grid, at * part, place.0, place.1, out)
                });
            let first = jobs.next();
            let others: Vec<_> = jobs.map(|job| scope.spawn(job)).collect();
            let first = first.map_or(Ok(()), |mut job| job());
            let others = others.into_iter().map(|other| match other.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            std::iter::once(first).chain(others).collect()
        });
        results.into_iter().collect::<Result<(), _>>()?;
        Ok(cells)
    }
}

fn find_cells(
    grid: &Grid,
    first: usize,
    latitudes: &[f64],
    longitudes: &[f64],
    out: &mut [u32],
) -> Result<(), RegridError> {
    for (at, (&latitude, &longitude)) in latitudes.iter().zip(longitudes).enumerate() {
        let pixel = first + at;
        if latitude.abs() > 90.0 {
            let expected = "a latitude from -90 to 90";
            return Err(RegridError::Coordinate { pixel, expected, value: latitude });
        }
        if longitude.is_infinite() {
            let expected = "a finite longitude";
            return Err(RegridError::Coordinate { pixel, expected, value: longitude });
        }
        out[at] = grid.cell(latitude, longitude).map_or(NOWHERE, |cell| cell as u32);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bounds;
    use proptest::prelude::*;

    const GLOBE: Bounds = Bounds { west: -180.0, south: -90.0, east: 180.0, north: 90.0 };
    const ALL: Needs = Needs { std: true, extremes: true, mode: true };

    fn one(grid: &Grid, latitude: f64, longitude: f64) -> Option<usize> {
        let mut out = [0];
        find_cells(grid, 0, &[latitude], &[longitude], &mut out).unwrap();
        (out[0] != NOWHERE).then_some(out[0] as usize)
    }

    #[test]
    fn an_edge_belongs_to_the_cell_north_and_east_of_it() {
        let grid = Grid::regular(1.0, 1.0, GLOBE).unwrap();
        assert_eq!(one(&grid, -90.0, -180.0), Some(0));
        assert_eq!(one(&grid, -89.0, -179.0), Some(361));
        assert_eq!(one(&grid, (-89.0_f64).next_down(), -180.0), Some(0));
        assert_eq!(one(&grid, 90.0, 180.0), Some(179 * 360));
        assert_eq!(one(&grid, -90.0, 180.0_f64.next_down()), Some(359));
        assert_eq!(one(&grid, -90.0, -180.0_f64 - 1e-13), Some(359));
        assert_eq!(one(&grid, f64::NAN, 0.0), None);
        assert_eq!(one(&grid, 0.0, f64::NAN), None);
    }

    #[test]
    fn an_error_adds_nothing() {
        let mut partial = Partial::new(Grid::regular(1.0, 1.0, GLOBE).unwrap(), ALL);
        for (latitude, value) in [(91.0, 1.0), (0.0, 0.5)] {
            let pixels = Pixels {
                latitude: &[0.0, latitude],
                longitude: &[0.0, 0.0],
                values: &[1.0, value],
                valid: None,
            };
            partial.add(pixels, 1).unwrap_err();
        }
        assert!(partial.cells.is_empty() && partial.values.all().next().is_none());
    }

    proptest! {
        #[test]
        fn each_place_lies_within_the_edges_of_its_cell(
            latitude in -90.0..=90.0_f64, longitude in -720.0..720.0_f64, step in 1_usize..400,
        ) {
            let step = 180.0 / step as f64;
            let grid = Grid::regular(step, step, GLOBE).unwrap();
            let (rows, columns) = grid.edges().unwrap();
            let cell = one(&grid, latitude, longitude).unwrap();
            let (row, column) = (cell / (columns.len() - 1), cell % (columns.len() - 1));
            prop_assert!(rows[row] <= latitude && latitude < rows[row + 1] || latitude == 90.0);
            let turned = (longitude + 180.0).rem_euclid(360.0) - 180.0;
            prop_assert!(columns[column] <= turned + 1e-9 && turned - 1e-9 < columns[column + 1]);
        }

        #[test]
        fn merging_equals_adding(values in prop::collection::vec(0..9_i32, 1..200), cut in 0..200_usize) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let places: Vec<f64> = values.iter().map(|value| value % 4.0).collect();
            let cut = cut.min(values.len());
            let grid = Grid::regular(1.0, 1.0, GLOBE).unwrap();
            let of = |range: std::ops::Range<usize>| {
                let mut partial = Partial::new(grid.clone(), ALL);
                let (latitude, longitude) = (&places[range.clone()], &places[range.clone()]);
                let pixels = Pixels { latitude, longitude, values: &values[range], valid: None };
                partial.add(pixels, 2).unwrap();
                partial
            };
            let whole = of(0..values.len());
            let mut merged = of(cut..values.len());
            merged.merge(&of(0..cut)).unwrap();
            for statistic in [Statistic::Count, Statistic::Mean, Statistic::Std, Statistic::Mode] {
                let (mut a, mut b) = (vec![0.0; grid.cells()], vec![0.0; grid.cells()]);
                whole.write(statistic, &mut a).unwrap();
                merged.write(statistic, &mut b).unwrap();
                prop_assert!(a.iter().zip(&b).all(|(a, b)| a.is_nan() == b.is_nan()
                    && (a.is_nan() || (a - b).abs() < 1e-9)));
            }
        }
    }
}
