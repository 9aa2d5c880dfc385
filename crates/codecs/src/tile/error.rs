//! What can be wrong with a tile.

/// A tile that cannot be decoded: the codec, the expected and the actual value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The stored bytes end before the pixels do.
    #[error("{codec}: tile needs at least {expected} bytes, found {found}")]
    Short {
        /// Codec by its FITS name.
        codec: &'static str,
        /// Bytes needed at least.
        expected: u64,
        /// Its length in bytes.
        found: u64,
    },
    /// The tile decodes to a size that is not a whole number of bytes per pixel.
    #[error("{codec}: tile should decode to {expected} bytes, found {found}")]
    Size {
        /// Codec by its FITS name.
        codec: &'static str,
        /// Bytes of the tile's pixels.
        expected: u64,
        /// Bytes decoded.
        found: u64,
    },
    /// A field of the coded tile has a value it cannot have.
    #[error("{codec}: {what}: expected {expected}, found {found}")]
    Corrupt {
        /// Codec by its FITS name.
        codec: &'static str,
        /// The field.
        what: &'static str,
        /// The value, or the largest one, that it may have.
        expected: i64,
        /// The actual value.
        found: i64,
    },
    /// The stream inside the tile is not well-formed.
    #[error(
        "{codec}: bad compressed stream of {found} bytes, expected one of {expected} bytes of pixels"
    )]
    Stream {
        /// Codec by its FITS name.
        codec: &'static str,
        /// Bytes of the tile's pixels.
        expected: u64,
        /// Bytes of the stream.
        found: u64,
    },
    /// A parameter, or a combination of codec and pixel type, that the standard does not define.
    #[error("{codec}: expected {expected}, found {found}")]
    Unsupported {
        /// Codec by its FITS name.
        codec: &'static str,
        /// The defined values.
        expected: &'static str,
        /// The value in the file.
        found: i64,
    },
    /// More pixels than a tile may have, or than this one has.
    #[error("{codec}: expected at most {expected} pixels, found {found}")]
    Pixels {
        /// Codec by its FITS name.
        codec: &'static str,
        /// The limit.
        expected: u64,
        /// Pixels declared or requested.
        found: u64,
    },
    /// No memory for the tile.
    #[error("{codec}: expected room for {expected} bytes, found none beyond {found}")]
    Memory {
        /// Codec by its FITS name.
        codec: &'static str,
        /// Bytes needed.
        expected: u64,
        /// Bytes at hand.
        found: u64,
    },
}
