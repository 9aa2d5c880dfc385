//! Checksums of objects that stores tell.

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
