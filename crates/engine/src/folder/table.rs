//! The members of a folder as one space of bytes: a head that names them, and then each of them.
//!
//! The head has, with numbers little-endian: `SWFOLDER`, the number of members, the bytes of the path of
//! the folder in its store, of all names and of all stamps; the first byte of each member, the length of
//! each; the path, the names and the stamps, each name and stamp with a zero after it.

use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::ops::Range;

const MAGIC: &[u8; 8] = b"SWFOLDER";
/// Bytes before the columns.
const HEAD_BYTES: usize = 40;
/// Members begin at multiples of this, with at least so much before them: no plan reads over that.
const DISTANCE: u64 = 1 << 32;
/// Most members of a folder.
pub(super) const MOST_MEMBERS: usize = 2_000_000;
/// Most bytes of all names and stamps.
pub(super) const MOST_TEXT_BYTES: usize = 256 << 20;

/// A member as a listing has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Its path in the folder.
    pub name: String,
    /// Bytes of it.
    pub size: u64,
    /// What changes with it: its ETag in quotes, or a date; may be empty.
    pub stamp: String,
}

/// A table whose content is checked.
#[derive(Debug)]
pub(super) struct FolderTable {
    bytes: Bytes,
    count: usize,
    /// Where the path of the folder ends, and the names begin.
    path_end: usize,
    /// End of each name in the bytes.
    names: Vec<usize>,
    /// End of each stamp.
    stamps: Vec<usize>,
    /// Bytes of all members.
    pub stored_bytes: u64,
}

impl FolderTable {
    /// The table of these members of the folder at a path, in the order of their names; none if
    /// together they are too large.
    pub(super) fn new(path: &str, mut members: Vec<Member>) -> Option<FolderTable> {
        members.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        members.dedup_by(|a, b| a.name == b.name);
        let text = |of: fn(&Member) -> &str| -> Vec<u8> {
            members.iter().flat_map(|member| of(member).bytes().chain([0])).collect()
        };
        let (names, stamps) = (text(|member| &member.name), text(|member| &member.stamp));
        let end = HEAD_BYTES + 16 * members.len() + path.len() + names.len() + stamps.len();
        let mut bytes = Vec::with_capacity(end);
        bytes.extend_from_slice(MAGIC);
        for number in [members.len(), path.len(), names.len(), stamps.len()] {
            bytes.extend_from_slice(&(number as u64).to_le_bytes());
        }
        let mut at = end as u64;
        for member in &members {
            at = (at + DISTANCE).checked_next_multiple_of(DISTANCE)?;
            bytes.extend_from_slice(&at.to_le_bytes());
            at = at.checked_add(member.size).filter(|&at| at < 1 << 62)?;
        }
        members.iter().for_each(|member| bytes.extend_from_slice(&member.size.to_le_bytes()));
        bytes.extend_from_slice(path.as_bytes());
        bytes.extend_from_slice(&names);
        bytes.extend_from_slice(&stamps);
        FolderTable::parse(bytes.into())
    }

    /// Read a table, and check all of it; none if it is not one.
    pub(super) fn parse(bytes: Bytes) -> Option<FolderTable> {
        if bytes.get(..8)? != MAGIC {
            return None;
        }
        let number = |at: usize| Some(word(bytes.get(8 * at..8 * at + 8)?));
        let limit = |number: u64, most| usize::try_from(number).ok().filter(|&it| it <= most);
        let count = limit(number(1)?, MOST_MEMBERS)?;
        let path_bytes = limit(number(2)?, MOST_TEXT_BYTES)?;
        let name_bytes = limit(number(3)?, MOST_TEXT_BYTES)?;
        let stamp_bytes = limit(number(4)?, MOST_TEXT_BYTES)?;
        let start = HEAD_BYTES + 16 * count + path_bytes;
        let middle = start + name_bytes;
        if bytes.len() != middle + stamp_bytes {
            return None;
        }
        std::str::from_utf8(&bytes[start - path_bytes..start]).ok()?;
        let names = ends(&bytes, start..middle, count)?;
        let stamps = ends(&bytes, middle..bytes.len(), count)?;
        let mut table =
            FolderTable { bytes, count, path_end: start, names, stamps, stored_bytes: 0 };
        let mut end = table.bytes.len() as u64;
        for number in 0..count {
            let range = table.range(number);
            if range.start < end || range.end < range.start || range.end >= 1 << 62 {
                return None;
            }
            end = range.end;
            table.stored_bytes += range.end - range.start;
        }
        Some(table)
    }

    pub(super) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Where the last member ends.
    pub(super) fn end(&self) -> u64 {
        match self.count {
            0 => self.bytes.len() as u64,
            count => self.range(count - 1).end,
        }
    }

    /// The bytes of a member.
    pub(super) fn range(&self, number: usize) -> Range<u64> {
        let start = self.column(0, number);
        start..start.wrapping_add(self.column(1, number))
    }

    /// The path of the folder in its store.
    pub(super) fn path(&self) -> &str {
        let start = HEAD_BYTES + 16 * self.count;
        std::str::from_utf8(&self.bytes[start..self.path_end]).unwrap_or_default()
    }

    pub(super) fn name(&self, number: usize) -> &str {
        self.text(&self.names, self.path_end, number)
    }

    pub(super) fn stamp(&self, number: usize) -> &str {
        let start = self.names.last().map_or(self.path_end, |end| end + 1);
        self.text(&self.stamps, start, number)
    }

    /// The last member that begins at a byte or before it.
    pub(super) fn find(&self, at: u64) -> Option<usize> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.column(0, middle) <= at {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.checked_sub(1)
    }

    /// What changes with any member.
    pub(super) fn digest(&self) -> String {
        let mut text = String::new();
        for byte in &Sha256::digest(&self.bytes)[..16] {
            // To write to a text cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    fn column(&self, column: usize, number: usize) -> u64 {
        let at = HEAD_BYTES + 8 * (column * self.count + number);
        word(&self.bytes[at..at + 8])
    }

    fn text(&self, ends: &[usize], start: usize, number: usize) -> &str {
        let start = number.checked_sub(1).map_or(start, |before| ends[before] + 1);
        // It was checked when the table was read.
        std::str::from_utf8(&self.bytes[start..ends[number]]).unwrap_or_default()
    }
}

/// Where texts end: each of them has a zero after it.
fn ends(bytes: &[u8], range: Range<usize>, count: usize) -> Option<Vec<usize>> {
    let texts = bytes.get(range.clone())?;
    std::str::from_utf8(texts).ok()?;
    let zeros = texts.iter().enumerate().filter(|(_, byte)| **byte == 0);
    let ends: Vec<usize> = zeros.map(|(at, _)| range.start + at).collect();
    let is_whole = ends.last().map_or(range.start, |end| end + 1) == range.end;
    (ends.len() == count && is_whole).then_some(ends)
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, size: u64) -> Member {
        Member { name: name.into(), size, stamp: format!("\"{name}\"") }
    }

    #[test]
    fn members_lie_far_from_each_other_in_the_order_of_their_names() {
        let table =
            FolderTable::new("x/y", vec![member("b", 5), member("a/c", 1 << 33), member("", 0)]);
        let table = table.expect("a table");
        let names: Vec<&str> = (0..3).map(|number| table.name(number)).collect();
        assert_eq!(names, ["", "a/c", "b"]);
        assert_eq!((table.stamp(2), table.path()), ("\"b\"", "x/y"));
        assert_eq!(table.stored_bytes, 5 + (1 << 33));
        let ranges: Vec<Range<u64>> = (0..3).map(|number| table.range(number)).collect();
        for (before, after) in ranges.iter().zip(&ranges[1..]) {
            assert!(after.start - before.end >= DISTANCE, "{ranges:?}");
        }
        assert_eq!(table.find(0), None);
        assert_eq!(table.find(ranges[1].start), Some(1));
        assert_eq!(table.find(ranges[2].start - 1), Some(1));
        assert_eq!(table.find(u64::MAX), Some(2));
        assert_eq!(table.end(), ranges[2].end);
        let other = FolderTable::new("x/y", vec![member("b", 6)]).expect("a table");
        assert_ne!(other.digest(), table.digest());
    }

    #[test]
    fn a_table_that_is_damaged_or_too_large_is_none() {
        assert!(FolderTable::new("x/y", vec![member("a", 1 << 62)]).is_none());
        let table = FolderTable::new("x/y", vec![member("a", 3), member("b", 4)]).expect("a table");
        let bytes = table.bytes().to_vec();
        for length in 0..bytes.len() {
            assert!(FolderTable::parse(bytes[..length].to_vec().into()).is_none());
        }
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x80;
            // Whatever it says now, it can be asked for everything.
            if let Some(table) = FolderTable::parse(bytes.into()) {
                for number in 0..table.count() {
                    let _ = (
                        table.name(number),
                        table.stamp(number),
                        table.range(number),
                        table.path(),
                    );
                }
            }
        }
    }
}
