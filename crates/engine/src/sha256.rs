//! SHA-256 of many messages at once, for the manifest.
//!
//! A processor without SHA instructions spends 6 to 13 cycles a byte on one message, 70 to 150
//! microseconds on a cutout of 28 KB: more than the rest of the cut. The rounds of one message
//! wait for each other, so here every lane of a vector register works on a message of its own:
//! 16 with AVX-512 (0.9 cycles a byte on a 2.5 GHz Cascade Lake), 8 with AVX2 (2.4). With SHA
//! instructions, or without wide vectors, the `sha2` crate hashes the messages one by one.
//!
//! Source of the algorithm: FIPS 180-4, 4.1.2, 4.2.2, 5 and 6.2.

use sha2::{Digest, Sha256};

// First, because it holds the macro the widths use.
#[cfg(target_arch = "x86_64")]
#[macro_use]
mod rounds;
#[cfg(target_arch = "x86_64")]
mod lanes;
#[cfg(target_arch = "x86_64")]
mod wide16;
#[cfg(target_arch = "x86_64")]
mod wide8;

/// The SHA-256 digest of every message, in the order of `messages`.
pub fn digests(messages: &[&[u8]]) -> Vec<[u8; 32]> {
    #[cfg(target_arch = "x86_64")]
    if messages.len() > lanes::NARROW && !is_x86_feature_detected!("sha") {
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
            // SAFETY: the processor has the features `compress` is compiled for.
            return lanes::digests(messages, |state, blocks| unsafe {
                wide16::compress(state, blocks)
            });
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return lanes::digests(messages, |state, blocks| unsafe {
                wide8::compress(state, blocks)
            });
        }
    }
    messages.iter().map(|message| Sha256::digest(message).into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every way this processor has, by name.
    fn ways(messages: &[&[u8]]) -> Vec<(&'static str, Vec<[u8; 32]>)> {
        let mut ways = vec![("chosen", digests(messages))];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                // SAFETY: the processor has the features.
                let digests = lanes::digests(messages, |s, b| unsafe { wide16::compress(s, b) });
                ways.push(("avx512", digests));
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has the features.
                let digests = lanes::digests(messages, |s, b| unsafe { wide8::compress(s, b) });
                ways.push(("avx2", digests));
            }
        }
        ways
    }

    fn assert_all_right(messages: &[&[u8]]) {
        let expected: Vec<[u8; 32]> = messages.iter().map(|m| Sha256::digest(m).into()).collect();
        for (way, digests) in ways(messages) {
            assert!(digests == expected, "{way}");
        }
    }

    fn hex(digest: &[u8; 32]) -> String {
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn test_published_examples() {
        let million = vec![b'a'; 1_000_000];
        let messages: [&[u8]; 4] =
            [b"abc", b"", b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", &million];
        let expected = [
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
        ];
        for (way, digests) in ways(&messages) {
            assert_eq!(digests.iter().map(hex).collect::<Vec<_>>(), expected, "{way}");
        }
    }

    #[test]
    fn test_every_length_around_the_blocks() {
        let bytes: Vec<u8> = (0..=255).cycle().take(400).collect();
        assert_all_right(&(0..400).map(|length| &bytes[..length]).collect::<Vec<_>>());
    }

    #[test]
    fn test_no_messages_and_few() {
        assert_all_right(&[]);
        assert_all_right(&[b"one"]);
        assert_all_right(&[b"one", &[0; 5000]]);
        assert_all_right(&[&[1; 64], b"", &[0; 5000]]);
    }

    proptest! {
        #[test]
        fn any_set_of_lengths_gives_the_same_as_one_by_one(
            lengths in prop::collection::vec(prop_oneof![0usize..300, 0usize..9000], 0..70),
            seed in any::<u32>(),
        ) {
            let mut random = seed | 1;
            let bytes: Vec<u8> = (0..20_000)
                .map(|_| {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (random >> 24) as u8
                })
                .collect();
            let messages: Vec<&[u8]> = lengths
                .iter()
                .enumerate()
                .map(|(i, &length)| &bytes[i * 97..i * 97 + length])
                .collect();
            assert_all_right(&messages);
        }
    }
}
