//! Checksums of the parts of an object that is written.

use crate::error::StoreError;
use md5::{Digest, Md5};

/// Header of the answer of a block server to PUT: the CRC-32 of what it wrote, in hexadecimal.
pub const CRC32_HEADER: &str = "swathe-crc32";

/// By which checksums of its parts an object that is written is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartAlgorithm {
    /// MD5: most buckets build their ETags of these. A core computes some 650 MB/s.
    Md5,
    /// CRC-32, at more than ten times that rate.
    #[default]
    Crc32,
}

/// Checksums of the parts of an object.
#[derive(Default)]
pub struct PartSums {
    algorithm: PartAlgorithm,
    md5: Vec<[u8; 16]>,
    crc32: Vec<u32>,
    whole: crc32fast::Hasher,
}

impl PartSums {
    /// None yet.
    pub fn new(algorithm: PartAlgorithm) -> PartSums {
        PartSums { algorithm, ..PartSums::default() }
    }

    /// None yet, of the same algorithm.
    pub fn anew(&self) -> PartSums {
        PartSums::new(self.algorithm)
    }

    /// Add the next part.
    pub fn add(&mut self, part: &[u8]) {
        match self.algorithm {
            PartAlgorithm::Md5 => self.md5.push(Md5::digest(part).into()),
            PartAlgorithm::Crc32 => {
                let mut sum = crc32fast::Hasher::new();
                sum.update(part);
                self.whole.combine(&sum);
                self.crc32.push(sum.finalize());
            }
        }
    }

    /// Check that what was read back is what was written: parts of `part_bytes`, the last shorter.
    ///
    /// # Errors
    /// [`StoreError::Differs`] with the first part that is not the same.
    pub fn check(&self, url: &str, copy: &PartSums, part_bytes: u64) -> Result<(), StoreError> {
        let most = self.count().max(copy.count());
        let Some(number) = (0..most).find(|&part| self.text(part) != copy.text(part)) else {
            return Ok(());
        };
        let from = number as u64 * part_bytes;
        Err(StoreError::Differs {
            url: url.to_string(),
            expected: format!("{} of what was written from byte {from}", self.text(number)),
            found: copy.text(number),
        })
    }

    fn count(&self) -> usize {
        self.md5.len() + self.crc32.len()
    }

    /// The checksum of a part, for people.
    fn text(&self, part: usize) -> String {
        let md5 = self.md5.get(part).map(|sum| format!("MD5 {}", hex(sum)));
        let crc32 = self.crc32.get(part).map(|sum| format!("CRC-32 {sum:08x}"));
        md5.or(crc32).unwrap_or_else(|| "the end".into())
    }

    /// The ETag, without quotes, of a store that reports the MD5 of the bytes it received; `None`
    /// if that is not known.
    pub fn etag(&self) -> Option<String> {
        (self.algorithm == PartAlgorithm::Md5).then(|| match &self.md5[..] {
            [] => hex(&Md5::digest([])),
            [one] => hex(one),
            parts => format!("{}-{}", hex(&Md5::digest(parts.concat())), parts.len()),
        })
    }

    /// The CRC-32 of the whole; `None` if that is not known.
    pub fn crc32(&self) -> Option<u32> {
        (self.algorithm == PartAlgorithm::Crc32).then(|| self.whole.clone().finalize())
    }
}

fn hex(sum: &[u8]) -> String {
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(algorithm: PartAlgorithm, parts: &[&[u8]]) -> PartSums {
        let mut sums = PartSums::new(algorithm);
        parts.iter().for_each(|part| sums.add(part));
        sums
    }

    #[test]
    fn etags_are_those_of_s3() {
        let etag = |parts: &[&[u8]]| sums(PartAlgorithm::Md5, parts).etag().expect("an MD5");
        assert_eq!(etag(&[]), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(etag(&[b"abc"]), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(etag(&[b"abc", b"abc"]), "043a916d6cfeecedf5e04f0312ba762d-2");
        assert_eq!(sums(PartAlgorithm::Crc32, &[b"abc"]).etag(), None);
    }

    #[test]
    fn the_checksum_of_the_whole_follows_from_those_of_its_parts() {
        let whole = |parts: &[&[u8]]| sums(PartAlgorithm::Crc32, parts).crc32();
        assert_eq!(whole(&[b"123456789"]), Some(0xcbf4_3926));
        assert_eq!(whole(&[b"1234", b"", b"56789"]), Some(0xcbf4_3926));
        assert_eq!(whole(&[]), Some(0));
        assert_eq!(sums(PartAlgorithm::Md5, &[b"abc"]).crc32(), None);
    }

    #[test]
    fn a_part_that_differs_is_named_by_its_first_byte() {
        for (algorithm, a, b, c) in [
            (
                PartAlgorithm::Md5,
                "MD5 0cc175b9c0f1b6a831c399e269772661",
                "MD5 92eb5ffee6ae2fec3ad71c777531578f",
                "MD5 4a8a08f09d37b73795649038408b5f33",
            ),
            (PartAlgorithm::Crc32, "CRC-32 e8b7be43", "CRC-32 71beeff9", "CRC-32 06b9df6f"),
        ] {
            let all = |parts: &[&[u8]]| sums(algorithm, parts);
            let error = |one: &PartSums, other: &PartSums| {
                one.check("u", other, 10).map_err(|error| error.to_string())
            };
            assert_eq!(
                error(&all(&[b"a", b"b"]), &all(&[b"a", b"c"])),
                Err(format!("u: expected {b} of what was written from byte 10, found {c}"))
            );
            assert_eq!(
                error(&all(&[b"a"]), &all(&[])),
                Err(format!("u: expected {a} of what was written from byte 0, found the end"))
            );
            assert_eq!(error(&all(&[b"a"]), &all(&[b"a"])), Ok(()));
        }
    }
}
