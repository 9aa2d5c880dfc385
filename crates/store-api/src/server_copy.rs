//! Copies that servers make: the bytes do not pass through this process.

use crate::error::StoreError;
use crate::failure::Failure;
use crate::source::Version;

/// A copy that servers made. Dropped before it is finished, it leaves nothing behind, unless it has
/// its name already.
pub trait ServerCopy: Send {
    /// Its URL until then.
    fn url(&self) -> &str;

    /// Whether it has its name already. Whoever rejects it then removes it, if it may be removed.
    fn has_name(&self) -> bool {
        false
    }

    /// Whether a version is the one that the servers made; `false` if they did not say.
    fn is_version(&self, _version: &Version) -> bool {
        false
    }

    /// Whether equal checksums show that it is whole.
    fn has_checksums(&self) -> bool {
        true
    }

    /// Give it its name, if it does not have that yet; returns whether it surely was this copy that
    /// got it. If not, what has the name must be compared again.
    ///
    /// # Errors
    /// [`StoreError::Exists`]; else as [`Sink::finish`](crate::Sink::finish).
    fn finish(self: Box<Self>) -> Result<bool, Failure>;
}

/// Why servers made no copy.
#[derive(Debug)]
pub enum CopyRefusal {
    /// They cannot, or did not: the bytes can still pass through us. The reason names servers, but
    /// no object.
    Unable(String),
    /// There can be no copy.
    Failed(StoreError),
}

impl From<StoreError> for CopyRefusal {
    /// If servers do not find the source or may not read it, we still may: the bytes can pass through us.
    fn from(error: StoreError) -> CopyRefusal {
        match error {
            StoreError::NotFound { why, .. } => CopyRefusal::unable("not found", &why),
            StoreError::Forbidden { why, .. } => CopyRefusal::unable("access denied", &why),
            StoreError::Network { why, .. } | StoreError::Unsupported { why, .. } => {
                CopyRefusal::Unable(why)
            }
            error => CopyRefusal::Failed(error),
        }
    }
}

impl CopyRefusal {
    fn unable(what: &str, why: &str) -> CopyRefusal {
        CopyRefusal::Unable(format!("the servers of the copy answered: {what}{why}"))
    }
}
