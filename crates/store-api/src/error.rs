//! What can go wrong between us and the bytes.

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
        /// What the server said, with its separator; may be empty.
        why: String,
    },
    /// We may not read it.
    #[error("{url}: access denied{why}")]
    Forbidden {
        /// The object.
        url: String,
        /// What the server said, with its separator; may be empty.
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
    #[error("{url}: expected {wanted} bytes from byte {start}, found {found}")]
    ShortRead {
        /// The object.
        url: String,
        /// First byte of the read.
        start: u64,
        /// Length of the read.
        wanted: u64,
        /// Bytes received.
        found: u64,
    },
    /// It is not what it should be.
    #[error("{url}: expected {expected}, found {found}")]
    Differs {
        /// The object.
        url: String,
        /// What it should be.
        expected: String,
        /// What it is.
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
        /// What it should have answered.
        expected: String,
        /// What it answered.
        found: String,
    },
    /// The server could not be reached, or failed.
    #[error("{url}: {why}")]
    Network {
        /// The object.
        url: String,
        /// What happened.
        why: String,
    },
    /// The work was interrupted while it waited for the server.
    #[error("{url}: interrupted")]
    Interrupted {
        /// The object.
        url: String,
    },
    /// The operating system refused.
    #[error("{url}: {source}")]
    Io {
        /// The object.
        url: String,
        /// What it said.
        source: std::io::Error,
    },
}

impl StoreError {
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
