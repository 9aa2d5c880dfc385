//! How an array lies in an object: one element after the other, or in chunks with a codec. What a
//! region needs of bytes follows from that, whatever the format is.
//!
//! Formats provide layouts (`crates/fits` does); the engine reads them. Pure: no I/O, no async.
#![warn(missing_docs)]

mod error;
mod grid;
mod layout;

pub use error::{DecodeError, LayoutError};
pub use grid::ChunkGrid;
pub use layout::{Chunk, ChunkTable, Coding, Layout, Need, Rows, Scratch, Storage};
