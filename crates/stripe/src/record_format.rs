//! The record of a striped object: layout, version, its parts and their checksums. Bytes in, values
//! out; no I/O.
//!
//! A record lies beside each part, and each has all of it. So any one is enough to read the object,
//! without a catalogue. It is a line of text, the length of the header (4 bytes, little-endian), the
//! header (JSON), its CRC-32, and the CRC-32 of each 512 to 4,096 bytes of each part (of more bytes for
//! objects above about 50 GB; the header says it). These are in groups of 16,384, each followed by a
//! CRC-32 of its own, so that a part of them can be read alone.
//!
//! A record of a removal has an odd number of bytes, any other an even one: the header is padded with
//! a space. So a listing tells which records are to be read.

use crate::layout::{Layout, parts_of};
use crate::parity::code_name;
use serde::{Deserialize, Serialize};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A record begins with this line.
const MAGIC: &[u8] = b"swathe-stripe 1\n";
/// One whose rows do not begin at the first part begins with this: older programs refuse it.
const SHIFT_MAGIC: &[u8] = b"swathe-stripe 2\n";
/// Longest header.
pub(crate) const HEADER_BYTES: usize = 256 << 10;
/// Checksums of a group.
const GROUP: u64 = 16_384;
/// Bytes of a group and its checksum.
pub(crate) const GROUP_BYTES: u64 = 4 * GROUP + 4;

/// Which version of an object a record is of: the highest counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Generation {
    /// Each version has a number that is higher than those before.
    pub(crate) number: u64,
    /// The writer, for two that wrote at the same time.
    pub(crate) writer: String,
}

impl Generation {
    /// The next version after the one there is. Its number is the time, in microseconds since 1970,
    /// unless the last is not before that. So a version that a server missed is not counted anew.
    pub(crate) fn after(last: Option<&Generation>) -> Generation {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = since.as_micros() as u64;
        let number = last.map_or(now, |last| last.number.saturating_add(1).max(now));
        Generation { number, writer: random_name() }
    }

    /// How long ago it was begun.
    pub(crate) fn age(&self) -> Duration {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        since.saturating_sub(Duration::from_micros(self.number))
    }
}

/// Whether a text is the name of a writer or of a stripe.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=32).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A name that no other writer draws: 16 hexadecimal digits.
pub(crate) fn random_name() -> String {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    format!("{:016x}", hasher.finish())
}

impl std::fmt::Display for Generation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.number, self.writer)
    }
}

/// A part, where it was written to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartEntry {
    /// Its server, as the store named it then.
    pub(crate) server: String,
    /// The version that the server gave it; `None` if it was not written.
    pub(crate) version: Option<String>,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// Path of the object in its store.
    pub(crate) path: String,
    /// The stripe that its servers are of. Records from before 2026-11-27 do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stripe: Option<String>,
    /// The version.
    #[serde(flatten)]
    pub(crate) generation: Generation,
    /// Whether this version is that the object was removed.
    #[serde(default)]
    pub(crate) is_removed: bool,
    /// How it is divided.
    #[serde(flatten)]
    pub(crate) layout: Layout,
    /// How parity is computed.
    pub(crate) code: String,
    /// CRC-32 of the whole object.
    pub(crate) crc32: u32,
    /// Its parts, in their order.
    pub(crate) parts: Vec<PartEntry>,
}

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the record of a striped object: expected {expected}, found {found}")]
pub(crate) struct RecordError {
    /// What is expected.
    pub(crate) expected: String,
    /// What there is.
    pub(crate) found: String,
}

/// Whether a record of this many bytes is of a removal; everything else in a record is even.
pub(crate) fn is_odd(bytes: u64) -> bool {
    bytes % 2 == 1
}

fn wrong<T>(expected: impl ToString, found: impl ToString) -> Result<T, RecordError> {
    Err(RecordError { expected: expected.to_string(), found: found.to_string() })
}

impl Header {
    /// The bytes of a record: this header and the checksums of all parts.
    pub(crate) fn encode(&self, sums: &[Vec<u32>]) -> Vec<u8> {
        let mut header = serde_json::to_vec(self).expect("strings and numbers are JSON");
        if is_odd(header.len() as u64) != self.is_removed {
            header.push(b' ');
        }
        let magic = if self.layout.first_part > 0 { SHIFT_MAGIC } else { MAGIC };
        let mut record = magic.to_vec();
        record.extend((header.len() as u32).to_le_bytes());
        record.extend(&header);
        record.extend(crc32fast::hash(&header).to_le_bytes());
        let all: Vec<u32> = sums.iter().flatten().copied().collect();
        for group in all.chunks(GROUP as usize) {
            let bytes: Vec<u8> = group.iter().flat_map(|sum| sum.to_le_bytes()).collect();
            record.extend(&bytes);
            record.extend(crc32fast::hash(&bytes).to_le_bytes());
        }
        record
    }

    /// The header in the first bytes of a record, and the length of the record up to its checksums.
    /// If the bytes end before the header does: how many bytes are needed.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Result<(Header, u64), usize>, RecordError> {
        let prefix = MAGIC.len() + 4;
        let Some((start, rest)) = bytes.split_at_checked(prefix) else {
            let first = &bytes[..bytes.len().min(MAGIC.len())];
            return match MAGIC.starts_with(first) || SHIFT_MAGIC.starts_with(first) {
                true => Ok(Err(prefix)),
                false => wrong("its first line", format!("{:?}", String::from_utf8_lossy(bytes))),
            };
        };
        let (magic, length) = start.split_at(MAGIC.len());
        if magic != MAGIC && magic != SHIFT_MAGIC {
            return wrong(
                format!("{:?}", String::from_utf8_lossy(MAGIC)),
                format!("{:?}", String::from_utf8_lossy(magic)),
            );
        }
        let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        if length > HEADER_BYTES {
            return wrong(format!("a header of at most {HEADER_BYTES} bytes"), length);
        }
        let Some(header) = rest.get(..length + 4) else { return Ok(Err(prefix + length + 4)) };
        let (header, sum) = header.split_at(length);
        let (expected, found) =
            (u32::from_le_bytes(sum.try_into().expect("four bytes")), crc32fast::hash(header));
        if expected != found {
            return wrong(format!("a header of CRC-32 {expected:08x}"), format!("{found:08x}"));
        }
        match serde_json::from_slice::<Header>(header) {
            // Nobody writes it: a program that knows no shift would read other bytes.
            Ok(header) if (header.layout.first_part > 0) != (magic == SHIFT_MAGIC) => {
                let name = String::from_utf8_lossy(magic);
                wrong(format!("a header of {name:?}"), header.layout.first_part)
            }
            Ok(header) => Ok(Ok((header.check()?, (prefix + length + 4) as u64))),
            Err(error) => wrong("a header of this version", error),
        }
    }

    fn check(self) -> Result<Header, RecordError> {
        let layout = self.layout.of_record().check();
        let layout = layout.map_err(|error| RecordError {
            expected: format!("{} {}", error.name, error.expected),
            found: error.found.to_string(),
        })?;
        if self.parts.len() != layout.parts() as usize {
            return wrong(parts_of(layout.parts() as usize), self.parts.len());
        }
        if self.code != code_name(layout.parity) {
            return wrong(code_name(layout.parity), &self.code);
        }
        for (what, name) in
            [("writer", Some(&self.generation.writer)), ("stripe", self.stripe.as_ref())]
        {
            if let Some(name) = name.filter(|name| !is_name(name)) {
                return wrong(format!("a {what} of hexadecimal digits"), format!("{name:?}"));
            }
        }
        Ok(Header { layout, ..self })
    }

    /// How many checksums the record has.
    fn sum_count(&self) -> u64 {
        if self.is_removed {
            return 0;
        }
        (0..self.layout.parts()).map(|part| self.layout.sums_in(part)).sum()
    }

    /// Bytes of the checksums.
    pub(crate) fn sums_bytes(&self) -> u64 {
        self.sum_count() * 4 + self.groups() * 4
    }

    /// Number of the checksum of the bytes at an offset of a part, among those of all parts.
    pub(crate) fn sum_number(&self, part: u32, offset: u64) -> u64 {
        let before: u64 = (0..part).map(|before| self.layout.sums_in(before)).sum();
        before + offset / self.layout.sum_bytes
    }

    /// The group of a checksum, and its place in that.
    pub(crate) fn group_of(number: u64) -> (u64, usize) {
        (number / GROUP, (number % GROUP) as usize)
    }

    /// Groups of checksums.
    pub(crate) fn groups(&self) -> u64 {
        self.sum_count().div_ceil(GROUP)
    }

    /// The bytes of a group, after the header.
    pub(crate) fn group_range(&self, group: u64) -> Range<u64> {
        let start = group * GROUP_BYTES;
        let count = (self.sum_count() - (group * GROUP).min(self.sum_count())).min(GROUP);
        start..start + if count == 0 { 0 } else { 4 * count + 4 }
    }
}

/// The checksums of a group, from its bytes.
pub(crate) fn decode_group(bytes: &[u8]) -> Result<Vec<u32>, RecordError> {
    let Some((sums, own)) = bytes.split_last_chunk::<4>() else {
        return wrong("a group of checksums", format!("{} bytes", bytes.len()));
    };
    let (expected, found) = (u32::from_le_bytes(*own), crc32fast::hash(sums));
    if expected != found {
        return wrong(format!("checksums of CRC-32 {expected:08x}"), format!("{found:08x}"));
    }
    let (sums, _) = sums.as_chunks::<4>();
    Ok(sums.iter().map(|sum| u32::from_le_bytes(*sum)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(size: u64) -> Header {
        let layout = Layout::new(size, 8192, 2, 1);
        let generation = Generation { number: 7, writer: "00ff".into() };
        let entry = |server: &str| PartEntry {
            server: server.into(),
            version: (server != "c:").then(|| "12 \"tag\"".into()),
        };
        let parts = ["a:", "b:d/", "c:"].map(entry).to_vec();
        let (path, code) = ("d/ä.fits".into(), "xor".into());
        Header { path, stripe: None, generation, is_removed: false, layout, code, crc32: 1, parts }
    }

    fn sums(header: &Header) -> Vec<Vec<u32>> {
        let count = |part| header.layout.sums_in(part) as u32;
        (0..3).map(|part| (0..count(part)).map(|at| at * 3 + part).collect()).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        for size in [0, 5, 20_000, 400 << 20] {
            let header = header(size);
            let sums = sums(&header);
            let record = header.encode(&sums);
            let (read, start) = Header::decode(&record).unwrap().unwrap();
            assert_eq!((&read, start + read.sums_bytes()), (&header, record.len() as u64));
            assert!(!is_odd(record.len() as u64));
            let removal = Header { is_removed: true, ..header.clone() }.encode(&[]);
            assert!(is_odd(removal.len() as u64));
            for (part, sums) in sums.iter().enumerate() {
                for (at, &sum) in sums.iter().enumerate().step_by(997) {
                    let number = read.sum_number(part as u32, at as u64 * read.layout.sum_bytes);
                    let (group, within) = Header::group_of(number);
                    let range = read.group_range(group);
                    let bytes =
                        &record[(start + range.start) as usize..(start + range.end) as usize];
                    assert_eq!(decode_group(bytes).unwrap()[within], sum);
                }
            }
        }
    }

    #[test]
    fn a_record_that_does_not_say_what_its_checksums_are_of_is_read() {
        let new = header(400_000);
        assert_eq!(new.layout.sum_bytes, 512);
        let mut json = serde_json::to_value(&new).unwrap();
        json.as_object_mut().unwrap().remove("sum_bytes").unwrap();
        let old: Header = serde_json::from_value(json).unwrap();
        assert_eq!(old.check().unwrap().layout, Layout { sum_bytes: 4096, ..new.layout });
    }

    #[test]
    fn the_first_bytes_say_how_many_are_needed() {
        let record = header(20_000).encode(&sums(&header(20_000)));
        let mut length = 0;
        for _ in 0..3 {
            match Header::decode(&record[..length]).unwrap() {
                Ok((read, _)) => return assert_eq!(read, header(20_000)),
                Err(needed) => length = needed,
            }
        }
        panic!("no header in {length} bytes");
    }

    #[test]
    fn a_header_that_cannot_be_is_refused() {
        let error = |header: Header| Header::decode(&header.encode(&[])).unwrap_err().to_string();
        let right = header(9);
        let layout = Layout { block_bytes: 7, ..right.layout };
        assert!(error(Header { layout, ..right.clone() }).contains("block_bytes"));
        let generation = Generation { number: 1, writer: "../x".into() };
        assert!(error(Header { generation, ..right.clone() }).contains("hexadecimal"));
        assert!(error(Header { parts: Vec::new(), ..right.clone() }).contains("3 parts, found 0"));
        assert!(
            error(Header { code: "none".into(), ..right }).contains("expected xor, found none")
        );
        let mut long = MAGIC.to_vec();
        long.extend([255; 4]);
        assert!(Header::decode(&long).unwrap_err().to_string().contains("at most 262144 bytes"));
        assert!(Header::decode(b"SIMPLE  =").is_err());
    }

    #[test]
    fn programs_that_know_no_shift_of_parts_refuse_it() {
        let plain = header(9);
        let layout = Layout { first_part: 1, ..plain.layout };
        for (layout, line) in [(plain.layout, MAGIC), (layout, SHIFT_MAGIC)] {
            let header = Header { layout, ..plain.clone() };
            let mut record = header.encode(&[]);
            assert!(record.starts_with(line));
            assert_eq!(Header::decode(&record).unwrap().unwrap().0, header);
            let other = if line == MAGIC { SHIFT_MAGIC } else { MAGIC };
            record[..line.len()].copy_from_slice(other);
            assert!(Header::decode(&record).unwrap_err().to_string().contains("a header of"));
        }
    }

    proptest! {
        #[test]
        fn a_flipped_bit_is_noticed(at in 0usize..10_000, bit in 0u8..8) {
            let header = header(20_000);
            let mut record = header.encode(&sums(&header));
            let at = at % record.len();
            record[at] ^= 1 << bit;
            let same = match Header::decode(&record) {
                Ok(Ok((read, start))) => {
                    let groups = &record[start as usize..];
                    read == header && decode_group(groups).is_ok()
                }
                _ => false,
            };
            prop_assert!(!same);
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = Header::decode(&bytes);
            let _ = Header::decode(&[MAGIC, &bytes].concat());
            let _ = Header::decode(&[SHIFT_MAGIC, &bytes].concat());
            let _ = decode_group(&bytes);
        }
    }
}
