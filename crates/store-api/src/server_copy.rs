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
    /// What a server says of its copy is no answer to who writes it another way.
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

/// A checksum that a store tells of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// The algorithm, in small letters.
    pub algorithm: String,
    /// Its value, as text.
    pub value: String,
    /// Whether objects with other values are different: not so where a store may have another
    /// checksum for the same bytes.
    pub is_exact: bool,
}

/// Whether two objects have the same bytes, as their checksums say; `None` if they do not tell.
#[must_use]
pub fn compare_checksums(ours: &[Checksum], theirs: &[Checksum]) -> Option<bool> {
    let mut is_same = None;
    for sum in ours {
        let Some(other) = theirs.iter().find(|other| other.algorithm == sum.algorithm) else {
            continue;
        };
        if sum.value == other.value && !sum.value.is_empty() {
            is_same = Some(true);
        } else if sum.is_exact && other.is_exact {
            return Some(false);
        }
    }
    is_same
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(algorithm: &str, value: &str, is_exact: bool) -> Checksum {
        Checksum { algorithm: algorithm.into(), value: value.into(), is_exact }
    }

    #[test]
    fn objects_differ_by_one_exact_checksum() {
        let adler = |value| sum("adler32", value, true);
        let md5 = |value| sum("md5", value, true);
        assert_eq!(compare_checksums(&[], &[adler("1")]), None);
        assert_eq!(compare_checksums(&[md5("1")], &[adler("1")]), None);
        assert_eq!(compare_checksums(&[md5("1"), adler("2")], &[adler("2")]), Some(true));
        let both = [md5("1"), adler("2")];
        assert_eq!(compare_checksums(&both, &[adler("2"), md5("3")]), Some(false));
    }

    #[test]
    fn other_etags_say_nothing() {
        let etag = |value| [sum("etag", value, false)];
        assert_eq!(compare_checksums(&etag("1"), &etag("1")), Some(true));
        assert_eq!(compare_checksums(&etag("1"), &etag("2")), None);
    }
}
