//! FITS: bytes to cards, HDUs, tiles and pixels, and back to the header of a cutout.
//!
//! Pure: bytes or numbers in, values out. No I/O, no async. Nothing here may panic or allocate
//! without bound whatever the bytes are.
#![warn(missing_docs)]

pub mod codec;
pub mod stream;
