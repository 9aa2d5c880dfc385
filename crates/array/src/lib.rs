//! N-dimensional arrays as they lie in an object: element types and pixel boxes.
//!
//! Nothing here knows FITS. Axes are in storage order, fastest first, so axis 0 is NAXIS1 of a
//! FITS image and the last axis of the NumPy array. No I/O, no async.
#![warn(missing_docs)]

mod dtype;
mod region;

pub use dtype::DType;
pub use region::{Overlap, Region, RegionError, Run, Runs};
