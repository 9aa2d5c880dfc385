//! What can be wrong with a chunk or its filters.

/// A chunk that cannot be decoded, or filters that no chunk can have. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// A parameter of a filter has a value it cannot have.
    #[error("{filter}: {what}: expected {expected}, found {found}")]
    Parameter {
        /// Filter by its name.
        filter: &'static str,
        /// The parameter.
        what: &'static str,
        /// The values it may have.
        expected: &'static str,
        /// Its value.
        found: i64,
    },
    /// The chunk, or a part of it, has fewer bytes than its content needs at least.
    #[error("{filter}: expected at least {expected} bytes, found {found}")]
    Short {
        /// Filter by its name.
        filter: &'static str,
        /// Bytes needed at least.
        expected: u64,
        /// Bytes at hand.
        found: u64,
    },
    /// The chunk decodes to another size than it should have.
    #[error("{filter}: expected {expected} decoded bytes, found {found}")]
    Size {
        /// Filter by its name.
        filter: &'static str,
        /// The size it should have.
        expected: u64,
        /// Its size.
        found: u64,
    },
    /// A field of the coded chunk has a value it cannot have.
    #[error("{filter}: {what}: expected {expected}, found {found}")]
    Corrupt {
        /// Filter by its name.
        filter: &'static str,
        /// The field.
        what: &'static str,
        /// The value, or the largest one, that it may have.
        expected: i64,
        /// Its value.
        found: i64,
    },
    /// The compressed stream is not well-formed.
    #[error(
        "{filter}: expected a stream of {expected} decoded bytes, found a damaged one of {found} bytes"
    )]
    Stream {
        /// Filter by its name.
        filter: &'static str,
        /// The size it should decode to.
        expected: u64,
        /// Bytes of the stream.
        found: u64,
    },
    /// The bytes do not have the checksum that is stored with them.
    #[error("{filter}: expected checksum {expected:#010x}, found {found:#010x}")]
    Checksum {
        /// Filter by its name.
        filter: &'static str,
        /// As stored.
        expected: u32,
        /// Of the bytes.
        found: u32,
    },
    /// More bytes than a chunk may have.
    #[error("chunk: expected at most {expected} decoded bytes, found {found}")]
    Large {
        /// The limit.
        expected: u64,
        /// The size declared.
        found: u64,
    },
    /// No memory for the chunk.
    #[error("{filter}: expected room for {expected} bytes, found none beyond {found}")]
    Memory {
        /// Filter by its name.
        filter: &'static str,
        /// Bytes needed.
        expected: u64,
        /// Bytes at hand.
        found: u64,
    },
}
