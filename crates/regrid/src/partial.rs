//! What is known of the cells of a grid after some granules.

use crate::pixels::{NO_SPREAD, NOWHERE, Runs, Spread};
use crate::values::Values;
use crate::{Grid, Number, Pixels, RegridError};
use std::collections::HashMap;

/// Grids of more cells keep only cells with pixels: others would need 4 bytes for each cell.
const DENSE_CELLS: usize = 1 << 22;

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

#[derive(Debug, Clone, Copy)]
struct Cell {
    pixels: u64,
    count: u64,
    mean: f64,
    spread: Spread,
}

const EMPTY: Cell = Cell { pixels: 0, count: 0, mean: 0.0, spread: NO_SPREAD };

impl Cell {
    /// Chan, Golub and LeVeque (1979): means and sums of squares of two sets.
    #[inline]
    fn merge(&mut self, other: &Cell) {
        self.pixels += other.pixels;
        if other.count == 0 {
            return;
        }
        let count = self.count + other.count;
        let (spread, more) = (&mut self.spread, &other.spread);
        if self.count == 0 {
            (self.mean, spread.squares) = (other.mean, more.squares);
        } else {
            let distance = other.mean - self.mean;
            let share = other.count as f64 / count as f64;
            self.mean += distance * share;
            spread.squares += more.squares + distance * distance * share * self.count as f64;
        }
        self.count = count;
        spread.min = spread.min.min(more.min);
        spread.max = spread.max.max(more.max);
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

    /// Add the pixels of a granule. Threads sum runs of parts of it; runs are then added in their
    /// order, so that the result is the same to the bit for any number of threads.
    ///
    /// # Errors
    /// If lengths differ, a latitude lies beyond a pole, a longitude is infinite, or a value has no
    /// mode. Nothing is added then.
    pub fn add<C: Number, V: Number>(
        &mut self,
        pixels: Pixels<'_, C, V>,
        threads: usize,
    ) -> Result<(), RegridError> {
        let has_spread = self.needs.std || self.needs.extremes;
        let parts = pixels.runs(&self.grid, has_spread, threads)?;
        if self.needs.mode {
            self.values.learn(valid_values(&parts, pixels).map(|(_, at, value)| (at, value)))?;
            for (cell, _, value) in valid_values(&parts, pixels) {
                let slot = self.slot(cell);
                self.values.count(slot, value as i64, 1);
            }
        }
        for (run, spread) in parts.iter().flat_map(Runs::each) {
            let pixels = u64::from(run.pixels);
            if run.cell == NOWHERE {
                self.outside += pixels;
                continue;
            }
            let slot = self.slot(run.cell);
            let count = u64::from(run.count);
            self.cells[slot].merge(&Cell { pixels, count, mean: run.mean, spread: *spread });
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

    /// Call a function with the number of each cell that has a value of a statistic, and the value:
    /// counts of cells with pixels, and others of cells with valid pixels.
    ///
    /// # Errors
    /// If it was not asked for.
    pub fn each(
        &self,
        statistic: Statistic,
        mut take: impl FnMut(usize, f64),
    ) -> Result<(), RegridError> {
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
        for (slot, (cell, &number)) in self.cells.iter().zip(&self.numbers).enumerate() {
            if cell.count == 0 && !is_count {
                continue;
            }
            let value = match statistic {
                Statistic::Pixels => cell.pixels as f64,
                Statistic::Count => cell.count as f64,
                Statistic::Mean => cell.mean,
                Statistic::Std => (cell.spread.squares.max(0.0) / cell.count as f64).sqrt(),
                Statistic::Min => cell.spread.min,
                Statistic::Max => cell.spread.max,
                Statistic::Mode => self.values.mode(slot).map_or(f64::NAN, |value| value as f64),
            };
            take(number as usize, value);
        }
        Ok(())
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
}

/// Valid pixels in cells: cell, number of the pixel, value.
fn valid_values<C: Number, V: Number>(
    parts: &[Runs],
    pixels: Pixels<'_, C, V>,
) -> impl Iterator<Item = (u32, usize, f64)> {
    let mut start = 0;
    let runs = parts.iter().flat_map(Runs::each).map(move |(run, _)| {
        start += usize::from(run.pixels);
        (run.cell, start - usize::from(run.pixels)..start)
    });
    runs.filter(|&(cell, _)| cell != NOWHERE)
        .flat_map(move |(cell, run)| run.filter_map(move |at| Some((cell, at, pixels.value(at)?))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bounds;
    use crate::pixels::find_cells;
    use proptest::prelude::*;

    const GLOBE: Bounds = Bounds { west: -180.0, south: -90.0, east: 180.0, north: 90.0 };
    const ALL: Needs = Needs { std: true, extremes: true, mode: true };

    fn one(grid: &Grid, latitude: f64, longitude: f64) -> Option<usize> {
        let mut out = [0];
        find_cells(grid, 0, (&[latitude], &[longitude]), &mut out).unwrap();
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
        fn a_guess_is_the_cell_at_and_beside_every_edge(
            step in 1_usize..4000, row in 0..4000_usize, column in 0..8000_usize,
            ulps in -3..=3_i32, turns in -1..=1_i32, offset in 0.0..1.0_f64,
        ) {
            let grid = Grid::regular(180.0 / step as f64, 180.0 / step as f64, GLOBE).unwrap();
            let (rows, columns) = grid.edges().unwrap();
            let step = if ulps < 0 { f64::next_down } else { f64::next_up };
            let near = |edge: f64| (0..ulps.abs()).fold(edge, |value, _| step(value));
            let latitude = near(rows[row % rows.len()]).clamp(-90.0, 90.0);
            let edge = columns[column % columns.len()];
            let turn = 360.0 * f64::from(turns);
            for longitude in [near(edge) + turn, near(edge + turn), edge + offset + turn] {
                for latitude in [latitude, 180.0 * offset - 90.0] {
                    prop_assert_eq!(one(&grid, latitude, longitude), grid.cell(latitude, longitude));
                    let (latitude, longitude) = (latitude as f32, longitude as f32);
                    let mut out = [0];
                    find_cells(&grid, 0, (&[latitude], &[longitude]), &mut out).unwrap();
                    let exact = grid.cell(latitude.into(), longitude.into()).unwrap();
                    prop_assert_eq!(out[0] as usize, exact);
                }
            }
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
                let of = |partial: &Partial| {
                    let mut out = vec![f64::NAN; grid.cells()];
                    partial.each(statistic, |cell, value| out[cell] = value).unwrap();
                    out
                };
                let (a, b) = (of(&whole), of(&merged));
                prop_assert!(a.iter().zip(&b).all(|(a, b)| a.is_nan() == b.is_nan()
                    && (a.is_nan() || (a - b).abs() < 1e-9)));
            }
        }
    }
}
