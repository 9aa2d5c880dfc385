//! What can be wrong with what an object says of its chunks, and with their bytes.

use swathe_codecs::chunk::FilterError;
use swathe_codecs::tile::CodecError;

/// The entry of a chunk that cannot be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The entry points outside the bytes that hold chunks.
    #[error("tile lies at bytes {start} to {stop} of a heap of {heap} bytes")]
    OutsideHeap {
        /// First byte.
        start: u64,
        /// One past the last byte.
        stop: u64,
        /// Bytes that hold chunks.
        heap: u64,
    },
    /// The entry points nowhere.
    #[error("the data of a tile are missing")]
    NoData,
}

/// The bytes of a chunk that cannot be decoded.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Of a tile.
    #[error(transparent)]
    Tile(#[from] CodecError),
    /// Of a chunk with filters.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// It lies in a file that was cut short.
    #[error("expected all of its bytes, found a file that ends before")]
    Torn,
    /// The chunk is one of another table.
    #[error("the chunk belongs to a table of another kind")]
    Coding,
}
