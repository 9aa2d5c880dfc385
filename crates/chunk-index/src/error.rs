//! What can be wrong with a chunk index.

/// An index that is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The bytes are no index of this version, or have another length than it says.
    #[error("chunk index: expected {expected}, found {found}")]
    Bytes {
        /// What should stand there.
        expected: String,
        /// What does.
        found: String,
    },
    /// An array cannot be as the index says.
    #[error("chunk index, array {path}: expected {expected}, found {found}")]
    Array {
        /// Path of the array.
        path: String,
        /// What should be.
        expected: String,
        /// What is.
        found: String,
    },
}

impl IndexError {
    pub(crate) fn bytes(expected: impl ToString, found: impl ToString) -> IndexError {
        IndexError::Bytes { expected: expected.to_string(), found: found.to_string() }
    }
}
