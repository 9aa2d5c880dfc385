//! One object at one version, read by ranges.

use crate::error::StoreError;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Which version of an object: what it held when it was opened.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Version {
    /// Bytes of the object.
    pub size: u64,
    /// ETag, else `Last-Modified`, else "unversioned"; of a file, modification time and inode.
    pub tag: String,
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.size, self.tag)
    }
}

/// An open object. All its bytes come from the version that was opened, or reading fails.
#[allow(clippy::len_without_is_empty)] // an object is asked for its size, never for emptiness
pub trait Source: Send + Sync {
    /// The object, as users may see it: an absolute path, or a URL without credentials.
    fn url(&self) -> &str;

    /// The version that is read.
    fn version(&self) -> &Version;

    /// Whether a read costs microseconds rather than milliseconds.
    fn is_local(&self) -> bool;

    /// Bytes of the object.
    fn len(&self) -> u64 {
        self.version().size
    }

    /// Fill `buffer` from `offset`.
    ///
    /// # Errors
    /// [`StoreError::ShortRead`] where the object ends before; as the kind of source has it.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError>;

    /// Read ranges, those of a remote object at the same time; results in their order.
    ///
    /// # Errors
    /// As [`Source::read_exact_at`]; the first that fails.
    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, StoreError>;
}
