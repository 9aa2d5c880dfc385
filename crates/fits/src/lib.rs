//! FITS: bytes to cards, HDUs, tiles and pixels, and back to the header of a cutout.
//!
//! Pure: bytes or numbers in, values out. No I/O, no async. Nothing here may panic or allocate
//! without bound whatever the bytes are.
#![warn(missing_docs)]

mod card;
mod checksum;
mod companion;
mod compressed_image;
mod cut;
mod error;
mod hdu;
mod header;
mod image;
mod tile_table;

pub use card::{Card, Value};
pub use checksum::{datasum, encode as encode_checksum};
pub use companion::{
    CompanionRef, Lookup, companions, minimal_primary, primary_for_extension, shifted_companion,
};
pub use cut::{CutHeader, Provenance, as_extension};
pub use error::FitsError;
pub use hdu::{Hdu, HduKind};
pub use header::{Header, HeaderParse};
pub use image::Image;
