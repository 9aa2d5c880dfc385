//! The checksum of what one answer has, as its header tells it (RFC 9530): CRC-32C.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

/// The header with the checksum, and the question for it.
pub const CONTENT_DIGEST: &str = "content-digest";
/// The header with which it is asked for.
pub const WANT_CONTENT_DIGEST: &str = "want-content-digest";

const NAME: &str = "crc32c";

/// CRC-32C of the bytes of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentDigest(u32);

impl ContentDigest {
    /// The question for it.
    pub const QUESTION: &str = "crc32c=1";

    /// That of some bytes.
    pub fn of(bytes: &[u8]) -> ContentDigest {
        ContentDigest(crc32c::crc32c(bytes))
    }

    /// Add the bytes that follow.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0 = crc32c::crc32c_append(self.0, bytes);
    }

    /// Whether it is asked for: named, with a preference other than 0.
    pub fn is_wanted(question: &str) -> bool {
        members(question).any(|(name, value)| name.eq_ignore_ascii_case(NAME) && value != "0")
    }

    /// The one in a header; `None` if it has none of this kind.
    pub fn parse(header: &str) -> Option<ContentDigest> {
        let (_, value) = members(header).find(|(name, _)| name.eq_ignore_ascii_case(NAME))?;
        let text = value.strip_prefix(':')?.strip_suffix(':')?;
        let bytes: [u8; 4] = BASE64.decode(text).ok()?.try_into().ok()?;
        Some(ContentDigest(u32::from_be_bytes(bytes)))
    }
}

impl std::fmt::Display for ContentDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{NAME}=:{}:", BASE64.encode(self.0.to_be_bytes()))
    }
}

/// Names and values of a list, without parameters.
fn members(header: &str) -> impl Iterator<Item = (&str, &str)> {
    header.split(',').filter_map(|member| {
        let (name, value) = member.split(';').next()?.split_once('=')?;
        Some((name.trim(), value.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_is_that_of_the_standard() {
        // RFC 3720, B.4: 32 bytes of zeros.
        let digest = ContentDigest::of(&[0; 32]);
        assert_eq!(digest, ContentDigest(0x8a91_36aa));
        assert_eq!(digest.to_string(), "crc32c=:ipE2qg==:");
        assert_eq!(ContentDigest::parse("sha-256=:AA==:, crc32c=:ipE2qg==:"), Some(digest));
    }

    #[test]
    fn other_headers_have_none() {
        for header in ["", "crc32c", "crc32c=ipE2qg==", "crc32c=:ipE2:", "sha-256=:ipE2qg==:"] {
            assert_eq!(ContentDigest::parse(header), None, "{header}");
        }
        for (question, is_wanted) in [
            (ContentDigest::QUESTION, true),
            ("sha-256=10, CRC32C=3", true),
            ("crc32c=0", false),
            ("sha-256=1", false),
            ("crc32c", false),
        ] {
            assert_eq!(ContentDigest::is_wanted(question), is_wanted, "{question}");
        }
    }

    proptest! {
        #[test]
        fn what_is_told_is_read_and_pieces_are_as_the_whole(
            bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..300,
        ) {
            let whole = ContentDigest::of(&bytes);
            prop_assert_eq!(ContentDigest::parse(&whole.to_string()), Some(whole));
            let (first, rest) = bytes.split_at(at.min(bytes.len()));
            let mut pieces = ContentDigest::of(first);
            pieces.add(rest);
            prop_assert_eq!(pieces, whole);
        }

        #[test]
        fn no_header_panics(header in ".{0,40}") {
            let _ = (ContentDigest::parse(&header), ContentDigest::is_wanted(&header));
        }
    }
}
