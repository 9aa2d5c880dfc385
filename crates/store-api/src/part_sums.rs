//! Checksums of the parts of an object that is written.

use crate::error::StoreError;
use md5::{Digest, Md5};

/// Header of the answer of a block server to PUT: the CRC-32 of what it wrote, in hexadecimal.
pub const CRC32_HEADER: &str = "swathe-crc32";

/// MD5 of the parts of an object: most buckets build their ETags of these.
#[derive(Default)]
pub struct PartSums(Vec<[u8; 16]>);

impl PartSums {
    /// Add the next part.
    pub fn add(&mut self, part: &[u8]) {
        self.0.push(Md5::digest(part).into());
    }

    /// Check that what was read back is what was written: parts of `part_bytes`, the last shorter.
    ///
    /// # Errors
    /// [`StoreError::Differs`] with the first part that is not the same.
    pub fn check(&self, url: &str, copy: &PartSums, part_bytes: u64) -> Result<(), StoreError> {
        let Some(number) = self.differs_at(copy) else { return Ok(()) };
        let one =
            |sums: &PartSums| PartSums(sums.0.get(number).copied().into_iter().collect()).etag();
        let from = number as u64 * part_bytes;
        Err(StoreError::Differs {
            url: url.to_string(),
            expected: format!("MD5 {} of what was written from byte {from}", one(self)),
            found: one(copy),
        })
    }

    /// The first part of another that is not the same.
    fn differs_at(&self, other: &PartSums) -> Option<usize> {
        (0..self.0.len().max(other.0.len())).find(|&at| self.0.get(at) != other.0.get(at))
    }

    /// The ETag, without quotes, of a store that reports the MD5 of the bytes it received.
    pub fn etag(&self) -> String {
        let hex = |sum: &[u8]| sum.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        match &self.0[..] {
            [] => hex(&Md5::digest([])),
            [one] => hex(one),
            parts => format!("{}-{}", hex(&Md5::digest(parts.concat())), parts.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(parts: &[&[u8]]) -> PartSums {
        let mut sums = PartSums::default();
        parts.iter().for_each(|part| sums.add(part));
        sums
    }

    #[test]
    fn etags_are_those_of_s3() {
        assert_eq!(sums(&[]).etag(), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(sums(&[b"abc"]).etag(), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(sums(&[b"abc", b"abc"]).etag(), "043a916d6cfeecedf5e04f0312ba762d-2");
        assert_eq!(sums(&[b"a", b"b"]).differs_at(&sums(&[b"a", b"c"])), Some(1));
        assert_eq!(sums(&[b"a"]).differs_at(&sums(&[b"a", b"c"])), Some(1));
        assert_eq!(sums(&[b"a"]).differs_at(&sums(&[b"a"])), None);
    }

    #[test]
    fn a_part_that_differs_is_named_by_its_first_byte() {
        let error = sums(&[b"a", b"b"]).check("u", &sums(&[b"a", b"c"]), 10).unwrap_err();
        assert_eq!(
            error.to_string(),
            "u: expected MD5 92eb5ffee6ae2fec3ad71c777531578f of what was written from byte 10, \
             found 4a8a08f09d37b73795649038408b5f33"
        );
    }
}
