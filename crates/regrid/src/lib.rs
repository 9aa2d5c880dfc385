//! Resolution reduction: pixels with latitude and longitude, binned into the cells of a grid.
//!
//! The rule of edges: a cell holds [south, north) x [west, east); the last row of a grid that
//! reaches the pole holds the pole, too. Cells of HEALPix are those of its own definition.
//! Everything is computed in float64, in the order of the pixels, so that the result does not
//! depend on the number of threads.

mod axis;
mod grid;
mod healpix;
mod partial;
mod values;

pub use axis::gaussian_latitudes;
pub use grid::{Bounds, Grid, MOST_CELLS};
pub use partial::{Needs, Partial, Pixels, Statistic};
pub use values::MOST_VALUES;

/// Why pixels are not binned.
#[derive(Debug, thiserror::Error, PartialEq)]
#[non_exhaustive]
pub enum RegridError {
    /// The grid makes no sense.
    #[error("grid: expected {expected}, found {value}")]
    Grid {
        /// What is valid.
        expected: &'static str,
        /// What was given.
        value: String,
    },
    /// The grid has too many cells.
    #[error(
        "grid: expected at most {MOST_CELLS} cells, found {cells}; take a larger step or bounds"
    )]
    TooManyCells {
        /// Cells it would have.
        cells: f64,
    },
    /// The arrays differ in length.
    #[error("pixels: expected {expected} {what}, one for each latitude, found {length}")]
    Lengths {
        /// Name of the array.
        what: &'static str,
        /// Latitudes.
        expected: usize,
        /// Its elements.
        length: usize,
    },
    /// A coordinate lies on no globe.
    #[error("pixel {pixel}: expected {expected}, found {value}")]
    Coordinate {
        /// Number of the pixel.
        pixel: usize,
        /// What is valid.
        expected: &'static str,
        /// What was given.
        value: f64,
    },
    /// A value that has no mode.
    #[error("mode, pixel {pixel}: expected an integer of at most 2^53, found {value}")]
    NotInteger {
        /// Number of the pixel.
        pixel: usize,
        /// Its value.
        value: f64,
    },
    /// Too many different values for a mode.
    #[error("mode: expected at most {MOST_VALUES} different values, found more")]
    TooManyValues,
    /// Two reductions that differ.
    #[error("merge: expected the same grid and statistics, found others")]
    Differs,
    /// A statistic that was not asked for at the beginning.
    #[error("statistic: expected one that was asked for at the beginning, found {name}")]
    NotAsked {
        /// Its name.
        name: &'static str,
    },
}
