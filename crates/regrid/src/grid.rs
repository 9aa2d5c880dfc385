//! Grids of a globe, and the cell of a place.

use crate::RegridError;
use crate::axis::{Axis, Guess};
use crate::healpix::Healpix;
use crate::number::Number;

/// Most cells of a grid: a result is an array of 8 bytes each, 1 GiB.
pub const MOST_CELLS: usize = 1 << 27;
/// No cell: the place must be looked at again.
pub(crate) const UNSURE: u32 = u32::MAX - 1;
/// 2^52: a sum with it is rounded to a whole number, whose low bits are those of the sum.
const WHOLE: f64 = 4_503_599_627_370_496.0;

/// A part of the globe in degrees. `east` is larger than `west`, by at most 360.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs)] // the names say it
pub struct Bounds {
    pub west: f64,
    pub south: f64,
    pub east: f64,
    pub north: f64,
}

/// A grid whose cells are numbered from the south-west, row by row, or as HEALPix numbers them.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid(Kind);

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Rows { rows: Axis, columns: Axis, has_pole: bool },
    Healpix(Healpix),
}

impl Grid {
    /// Cells of a step in latitude and longitude, in degrees.
    ///
    /// # Errors
    /// If the bounds lie on no globe, are no multiple of the step, or there are too many cells.
    pub fn regular(lat: f64, lon: f64, bounds: Bounds) -> Result<Grid, RegridError> {
        let Bounds { west, south, east, north } = bounds;
        let is_latitude = -90.0 <= south && south < north && north <= 90.0;
        let is_longitude = west < east && east - west <= 360.0 && west.abs() <= 360.0;
        if !(is_latitude && is_longitude) {
            let expected = "bounds west < east <= west + 360, -90 <= south < north <= 90";
            return Err(RegridError::Grid { expected, value: format!("{bounds:?}") });
        }
        let (rows, columns) = (steps(north - south, lat)?, steps(east - west, lon)?);
        if rows * columns > MOST_CELLS as f64 {
            return Err(RegridError::TooManyCells { cells: rows * columns });
        }
        let rows = Axis::regular(south, north, rows as usize);
        let columns = Axis::regular(west, east, columns as usize);
        Ok(Grid(Kind::Rows { rows, columns, has_pole: north == 90.0 }))
    }

    /// The full Gaussian grid of a number: `2 * number` rows around the Gaussian latitudes, and
    /// `4 * number` columns. The first column lies around longitude 0.
    ///
    /// # Errors
    /// If the number is 0, or there are too many cells.
    pub fn gaussian(number: usize) -> Result<Grid, RegridError> {
        if number == 0 {
            return Err(RegridError::Grid { expected: "N1 or more", value: "N0".into() });
        }
        let cells = 8.0 * (number as f64) * (number as f64);
        if cells > MOST_CELLS as f64 {
            return Err(RegridError::TooManyCells { cells });
        }
        let west = -45.0 / number as f64;
        let columns = Axis::regular(west, west + 360.0, 4 * number);
        Ok(Grid(Kind::Rows { rows: Axis::gaussian(number), columns, has_pole: true }))
    }

    /// The HEALPix grid of `12 * nside^2` cells, in the nested or the ring order.
    ///
    /// # Errors
    /// If nside is 0, or no power of two in the nested order, or there are too many cells.
    pub fn healpix(nside: usize, is_nested: bool) -> Result<Grid, RegridError> {
        if nside == 0 || (is_nested && !nside.is_power_of_two()) {
            let expected = "an nside of 1 or more, in the nested order a power of two";
            return Err(RegridError::Grid { expected, value: nside.to_string() });
        }
        let cells = 12.0 * (nside as f64) * (nside as f64);
        if cells > MOST_CELLS as f64 {
            return Err(RegridError::TooManyCells { cells });
        }
        Ok(Grid(Kind::Healpix(Healpix { nside: nside as i64, is_nested })))
    }

    /// Number of cells.
    #[must_use]
    pub fn cells(&self) -> usize {
        match &self.0 {
            Kind::Rows { rows, columns, .. } => rows.cells() * columns.cells(),
            Kind::Healpix(grid) => grid.cells(),
        }
    }

    /// Edges of the rows and of the columns in degrees; none for HEALPix.
    #[must_use]
    pub fn edges(&self) -> Option<(&[f64], &[f64])> {
        match &self.0 {
            Kind::Rows { rows, columns, .. } => Some((rows.edges(), columns.edges())),
            Kind::Healpix(_) => None,
        }
    }

    /// Write the cell of each place, `UNSURE` where the guess may be wrong: near edges, outside, and
    /// for places that are no numbers. Plain arithmetic, so that compilers use vectors.
    #[inline(always)]
    pub(crate) fn guess<C: Number>(&self, latitudes: &[C], longitudes: &[C], out: &mut [u32]) {
        let guesses = match &self.0 {
            Kind::Rows { rows, columns, .. } => rows.guess().zip(columns.guess()),
            Kind::Healpix(_) => None,
        };
        let Some((row, column)) = guesses else {
            out.fill(UNSURE);
            return;
        };
        let (west, east, columns) = (column.start, column.start + 360.0, column.last + 1.0);
        for ((&latitude, &longitude), out) in latitudes.iter().zip(longitudes).zip(out) {
            let longitude = longitude.number();
            let turn = if longitude >= east { -360.0 } else { 0.0 };
            let turn = if longitude < west { 360.0 } else { turn };
            let (y, is_row) = nearest(row, latitude.number());
            let (x, is_column) = nearest(column, longitude + turn);
            // Chosen as a float, which is as wide as what it is chosen by.
            let cell = if is_row & is_column { y * columns + x } else { f64::from(UNSURE) };
            *out = (cell + WHOLE).to_bits() as u32;
        }
    }

    /// The cell of a place; none if the place lies outside, or one of its coordinates is a NaN.
    /// The latitude lies within the poles, and the longitude is finite.
    #[inline]
    pub(crate) fn cell(&self, latitude: f64, longitude: f64) -> Option<usize> {
        match &self.0 {
            Kind::Rows { rows, columns, has_pole } => {
                let is_pole = *has_pole && latitude == 90.0;
                let row = if is_pole { rows.cells() - 1 } else { rows.cell(latitude)? };
                let column = columns.cell(turn(longitude, columns.edges()[0]))?;
                Some(row * columns.cells() + column)
            }
            Kind::Healpix(_) if latitude.is_nan() || longitude.is_nan() => None,
            Kind::Healpix(grid) => Some(grid.cell(latitude, turn(longitude, 0.0))),
        }
    }
}

/// The cell of a value, and whether that is sure.
#[inline(always)]
fn nearest(guess: Guess, value: f64) -> (f64, bool) {
    let middle = (value - guess.start) * guess.per_degree - 0.5;
    let cell = (middle + WHOLE) - WHOLE;
    let is_inside = (cell >= 0.0) & (cell <= guess.last);
    (cell, is_inside & ((middle - cell).abs() < 0.5 - guess.slack))
}

/// The longitude in [west, west + 360). One that lies there stays as it is; the remainder of others
/// is exact, and at most one sum is rounded.
#[inline]
fn turn(longitude: f64, west: f64) -> f64 {
    let east = west + 360.0;
    if west <= longitude && longitude < east {
        return longitude;
    }
    let mut angle = longitude % 360.0;
    while angle < west {
        angle += 360.0;
    }
    while angle >= east {
        angle -= 360.0;
    }
    // `east - 360` may be rounded below. A NaN stays one.
    if angle < west { west } else { angle }
}

/// Number of steps in a width. It may be off a whole number by what rounding does to `0.1`.
fn steps(width: f64, step: f64) -> Result<f64, RegridError> {
    let count = (width / step).round();
    let fits = step > 0.0 && count >= 1.0 && (count * step - width).abs() <= 1e-9 * width;
    if !fits {
        let expected = "a step above 0 that divides the bounds";
        return Err(RegridError::Grid { expected, value: format!("{step} for {width} degrees") });
    }
    Ok(count)
}
