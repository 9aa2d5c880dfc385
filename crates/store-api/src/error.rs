//! What can go wrong between us and the bytes.

/// Header of an answer of a block server about damage: the damaged byte.
pub const DAMAGE_HEADER: &str = "swathe-damage";

/// Header of an answer of a block server: `yes` if it verified all bytes of it.
pub const VERIFICATION_HEADER: &str = "swathe-verified";

/// Errors of sources, stores and the cache on disk. Each names the object as the user may see it:
/// without credentials.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The object does not exist.
    #[error("{url}: not found{why}")]
    NotFound {
        /// The object.
        url: String,
        /// The message of the server, with its separator; may be empty.
        why: String,
    },
    /// We may not read it.
    #[error("{url}: access denied{why}")]
    Forbidden {
        /// The object.
        url: String,
        /// The message of the server, with its separator; may be empty.
        why: String,
    },
    /// The object is no longer the version that was opened.
    #[error("{url}: changed while it was read (opened as {version})")]
    Changed {
        /// The object.
        url: String,
        /// The version that was opened.
        version: String,
    },
    /// An object of this name exists, and may not be replaced.
    #[error("{url}: exists already; give --overwrite (overwrite=True in Python) to replace it")]
    Exists {
        /// The object.
        url: String,
    },
    /// The object ended before the range.
    #[error("{url}: expected {expected} bytes from byte {start}, found {found}")]
    ShortRead {
        /// The object.
        url: String,
        /// First byte of the read.
        start: u64,
        /// Length of the read.
        expected: u64,
        /// Bytes received.
        found: u64,
    },
    /// The object is not as expected.
    #[error("{url}: expected {expected}, found {found}")]
    Differs {
        /// The object.
        url: String,
        /// The expected state.
        expected: String,
        /// The state.
        found: String,
    },
    /// The URL is of a kind we cannot read, or the server cannot serve ranges.
    #[error("{url}: {why}")]
    Unsupported {
        /// The object.
        url: String,
        /// Why not.
        why: String,
    },
    /// The server answered with something else than an index of the folder.
    #[error("{url}: expected {expected}; found {found}")]
    NoIndex {
        /// The folder.
        url: String,
        /// The expected answer.
        expected: String,
        /// The answer.
        found: String,
    },
    /// The server could not be reached, or failed.
    #[error("{url}: {why}")]
    Network {
        /// The object.
        url: String,
        /// The reason.
        why: String,
    },
    /// The work was interrupted while it waited for the server.
    #[error("{url}: interrupted")]
    Interrupted {
        /// The object.
        url: String,
    },
    /// Its server found that bytes are not what was written.
    #[error("{url}: damaged at byte {byte}: {why}")]
    Damaged {
        /// The object.
        url: String,
        /// The first damaged byte that was found, or one shortly before it.
        byte: u64,
        /// What the server said.
        why: String,
    },
    /// The operating system refused.
    #[error("{url}: {source}")]
    Io {
        /// The object.
        url: String,
        /// Its message.
        source: std::io::Error,
    },
}

impl StoreError {
    /// Whether there is no room for what was to be written.
    pub fn is_full(&self) -> bool {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let StoreError::Io { source, .. } = self else { return false };
        matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge)
    }

    /// The error for what the operating system said about a local file.
    pub fn from_io(url: &str, source: std::io::Error) -> StoreError {
        let url = url.to_string();
        match source.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
                StoreError::NotFound { url, why: String::new() }
            }
            std::io::ErrorKind::PermissionDenied => {
                StoreError::Forbidden { url, why: String::new() }
            }
            _ => StoreError::Io { url, source },
        }
    }
}
