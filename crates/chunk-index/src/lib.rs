//! The chunk index of an object: what its format's library said of its arrays, and where their
//! chunks lie (docs/design/030-chunk-index.md). It provides the layouts of arrays that are not FITS.
//!
//! An index comes from a process that read a user's file: nothing in it is believed before it is
//! checked here. Pure: no I/O, no async.
#![warn(missing_docs)]

mod columns;
mod error;
mod head;
mod index;
mod table;

pub use error::IndexError;
pub use index::{Array, ArrayStorage, ChunkIndex};
