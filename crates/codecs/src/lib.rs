//! Codecs: the bytes of a chunk to its pixels, and whole files that are compressed, from their
//! start or from a seek point.
//!
//! Pure: bytes in, values out. No I/O, no async. Nothing here may panic or allocate without bound
//! whatever the bytes are.
#![warn(missing_docs)]

mod bits;

pub mod chunk;
pub mod stream;
pub mod tile;
