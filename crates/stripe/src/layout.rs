//! Where the bytes of a striped object lie: a pure mapping. No I/O.
//!
//! An object is cut into rows. A row has `data` shards of object bytes and `parity` shards computed
//! from them, each of a block. Shards go to parts, one part to each server, and the part of a shard
//! moves on by one from row to row: so all servers hold data and all hold parity. Objects begin at
//! different parts, so that this is so for many objects of one row, too.
//!
//! Rows are even: the blocks of an object of few rows are of up to twice as many bytes as the store
//! asks for, rather than that a last row has small ones. So what lies together in an object lies in
//! few parts. The blocks of the last row are as small as its bytes allow, so that small objects are
//! spread too.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Blocks are multiples of this, and checksums of more bytes are only for large objects.
const SUM_BYTES: u64 = 4096;
/// Checksums are of at least this many bytes of a part.
const SMALLEST_SUM_BYTES: u64 = 512;
/// Checksums of fewer than 4,096 bytes take at most this in a record, so that one read brings all,
const MOST_SMALL_SUMS_BYTES: u64 = 64 << 10;
/// and with the records of all servers at most this part of the object.
const SMALL_SUMS_SHARE: u64 = 20;
/// Most bytes of the checksums of all parts. If they would take more, each is of more bytes of a part.
const MOST_SUMS_BYTES: u64 = 64 << 20;
/// Most bytes of a checksum: they are read to verify any of them.
const LARGEST_SUM_BYTES: u64 = 1 << 20;
/// Most parts of an object.
pub(crate) const MOST_PARTS: u32 = 64;
/// Largest block: a row is in memory while it is written.
pub(crate) const LARGEST_BLOCK_BYTES: u64 = 64 << 20;
/// Objects of at least this many rows keep the block of their store: a last row that is shorter
/// hardly matters.
const MANY_ROWS: u64 = 16;
/// Largest object.
const LARGEST_BYTES: u64 = 1 << 50;
/// Largest checksums of all parts: a writer has them in memory.
const LARGEST_RECORD_BYTES: u64 = 1 << 30;

/// A number of parts, in words.
pub(crate) fn parts_of(count: usize) -> String {
    format!("{count} part{}", if count == 1 { "" } else { "s" })
}

/// How an object is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Layout {
    /// Bytes of the object.
    pub(crate) size: u64,
    /// Bytes of a shard, but for those of the last row.
    pub(crate) block_bytes: u64,
    /// Shards of a row that hold bytes of the object.
    pub(crate) data: u32,
    /// Shards of a row that are computed from them.
    pub(crate) parity: u32,
    /// The part of the first shard of the first row. Records from before 2026-11-27 do not say it.
    #[serde(default)]
    pub(crate) first_part: u32,
    /// Bytes of a part that a checksum is of. Records from before 2026-11-26 do not say it.
    #[serde(default)]
    pub(crate) sum_bytes: u64,
}

/// A layout that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: expected {expected}, found {found}")]
pub(crate) struct LayoutError {
    /// Its number that is impossible.
    pub(crate) name: &'static str,
    /// What is possible.
    pub(crate) expected: String,
    /// Its value.
    pub(crate) found: u64,
}

/// Some bytes of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The row, from 0.
    pub(crate) row: u64,
    /// The shard in it: first those of data, then those of parity.
    pub(crate) shard: u32,
    /// Bytes in the shard.
    pub(crate) range: Range<u64>,
}

impl Layout {
    /// The layout of an object of `size` bytes.
    pub(crate) fn new(size: u64, block_bytes: u64, data: u32, parity: u32) -> Layout {
        Layout { size, block_bytes, data, parity, first_part: 0, sum_bytes: 0 }.with_size(size)
    }

    /// The layout of an object of a store with this one: with even rows, and beginning at a part that
    /// depends on its path.
    pub(crate) fn of_object(self, path: &str, size: u64) -> Layout {
        let first_part = crc32fast::hash(path.as_bytes()) % self.parts().max(1);
        let layout = Layout { block_bytes: self.even_block_bytes(size), first_part, ..self };
        layout.with_size(size)
    }

    /// Bytes of a block with which the rows of an object of `size` bytes are even: as many as those of
    /// this layout, up to twice.
    fn even_block_bytes(self, size: u64) -> u64 {
        let rows = size / self.row_bytes().max(1);
        if rows == 0 || rows >= MANY_ROWS {
            return self.block_bytes;
        }
        let block_bytes = size.div_ceil(rows * u64::from(self.data)).next_multiple_of(SUM_BYTES);
        if block_bytes > LARGEST_BLOCK_BYTES { self.block_bytes } else { block_bytes }
    }

    /// The same for an object of another size.
    pub(crate) fn with_size(self, size: u64) -> Layout {
        let layout = Layout { size, ..self };
        let sizes = [SMALLEST_SUM_BYTES, 2 * SMALLEST_SUM_BYTES, 4 * SMALLEST_SUM_BYTES];
        let small = sizes.into_iter().find(|bytes| {
            let sums = layout.sums_bytes(*bytes);
            sums <= MOST_SMALL_SUMS_BYTES
                && sums.saturating_mul(u64::from(layout.parts())) <= layout.size / SMALL_SUMS_SHARE
        });
        Layout { sum_bytes: small.unwrap_or_else(|| layout.large_sum_bytes()), ..layout }
    }

    /// The layout that a record says, which may not say what its checksums are of.
    pub(crate) fn of_record(self) -> Layout {
        match self.sum_bytes {
            0 => Layout { sum_bytes: self.large_sum_bytes(), ..self },
            _ => self,
        }
    }

    /// Refuse numbers that no stripe can have.
    ///
    /// # Errors
    /// Names the first that is impossible.
    pub(crate) fn check(self) -> Result<Layout, LayoutError> {
        let refuse = |name, expected: String, found| Err(LayoutError { name, expected, found });
        if self.size > LARGEST_BYTES {
            return refuse("size", format!("at most {LARGEST_BYTES} bytes"), self.size);
        }
        let block = self.block_bytes;
        if !(SUM_BYTES..=LARGEST_BLOCK_BYTES).contains(&block) || !block.is_multiple_of(SUM_BYTES) {
            let expected = format!("a multiple of {SUM_BYTES} up to {LARGEST_BLOCK_BYTES}");
            return refuse("block_bytes", expected, block);
        }
        if !(1..=MOST_PARTS).contains(&self.data) {
            return refuse("data", format!("1 to {MOST_PARTS} shards"), self.data.into());
        }
        if self.parity > MOST_PARTS - self.data {
            let expected = format!("at most {MOST_PARTS} shards in all");
            return refuse("parity", expected, self.parity.into());
        }
        if self.first_part >= self.parts() {
            let expected = format!("one of {}", parts_of(self.parts() as usize));
            return refuse("first_part", expected, self.first_part.into());
        }
        let sum = self.sum_bytes;
        if !(SMALLEST_SUM_BYTES..=LARGEST_SUM_BYTES).contains(&sum) || !block.is_multiple_of(sum) {
            let expected = format!("at least {SMALLEST_SUM_BYTES}, and blocks a multiple of it");
            return refuse("sum_bytes", expected, sum);
        }
        if self.sums_bytes(sum) > LARGEST_RECORD_BYTES {
            let expected = format!("fewer with blocks of {block}: each {sum} have a checksum");
            return refuse("size", expected, self.size);
        }
        Ok(self)
    }

    /// Parts of the object: one for each shard of a row.
    pub(crate) fn parts(self) -> u32 {
        self.data.saturating_add(self.parity)
    }

    fn row_bytes(self) -> u64 {
        self.block_bytes * u64::from(self.data)
    }

    /// Rows; the last may be shorter.
    pub(crate) fn rows(self) -> u64 {
        self.size.div_ceil(self.row_bytes())
    }

    /// Rows whose shards are all of a block.
    fn full_rows(self) -> u64 {
        self.size / self.row_bytes()
    }

    /// Bytes of the first shard of a row: no other is longer.
    pub(crate) fn longest_shard(self, row: u64) -> u64 {
        if row < self.full_rows() {
            return self.block_bytes;
        }
        let rest = self.size - row * self.row_bytes();
        rest.div_ceil(u64::from(self.data))
            .next_multiple_of(self.sum_bytes.max(SUM_BYTES))
            .min(rest)
    }

    /// Bytes of the object in a row.
    pub(crate) fn bytes_in_row(self, row: u64) -> u64 {
        self.row_bytes().min(self.size - row * self.row_bytes())
    }

    /// Bytes of a shard: those of parity are as long as the first.
    pub(crate) fn shard_bytes(self, row: u64, shard: u32) -> u64 {
        let longest = self.longest_shard(row);
        if shard >= self.data {
            return longest;
        }
        self.bytes_in_row(row).saturating_sub(u64::from(shard) * longest).min(longest)
    }

    /// The part that holds a shard.
    pub(crate) fn part_of(self, row: u64, shard: u32) -> u32 {
        ((row + u64::from(shard) + u64::from(self.first_part)) % u64::from(self.parts())) as u32
    }

    /// The shard of a row that a part holds.
    pub(crate) fn shard_in(self, row: u64, part: u32) -> u32 {
        let parts = u64::from(self.parts());
        let first = (row + u64::from(self.first_part)) % parts;
        ((u64::from(part) + parts - first) % parts) as u32
    }

    /// The bytes of a part that hold these of a shard.
    pub(crate) fn in_part(self, row: u64, range: &Range<u64>) -> Range<u64> {
        let start = row * self.block_bytes;
        start + range.start..start + range.end
    }

    /// Bytes of a part.
    pub(crate) fn part_bytes(self, part: u32) -> u64 {
        let full = self.full_rows();
        let last =
            if full < self.rows() { self.shard_bytes(full, self.shard_in(full, part)) } else { 0 };
        full * self.block_bytes + last
    }

    /// Bytes of the checksums of all parts, roughly, if each is of `bytes` bytes.
    fn sums_bytes(self, bytes: u64) -> u64 {
        let all = (self.size / u64::from(self.data.max(1))).saturating_mul(u64::from(self.parts()));
        (all / bytes).saturating_mul(4)
    }

    /// 4,096 bytes, and twice, four times ... as many for objects whose records would be too large,
    /// as far as blocks are multiples of it.
    fn large_sum_bytes(self) -> u64 {
        let is_enough = |bytes: &u64| {
            self.sums_bytes(*bytes) <= MOST_SUMS_BYTES
                || *bytes == LARGEST_SUM_BYTES
                || !self.block_bytes.is_multiple_of(2 * bytes)
        };
        let mut sizes = std::iter::successors(Some(SUM_BYTES), |bytes| Some(2 * bytes));
        sizes.find(is_enough).unwrap_or(SUM_BYTES)
    }

    /// Checksums of a part.
    pub(crate) fn sums_in(self, part: u32) -> u64 {
        self.part_bytes(part).div_ceil(self.sum_bytes)
    }

    /// The pieces of some bytes of the object, in their order.
    pub(crate) fn pieces(self, range: Range<u64>) -> impl Iterator<Item = Piece> {
        let mut at = range.start;
        std::iter::from_fn(move || {
            if at >= range.end {
                return None;
            }
            let row = at / self.row_bytes();
            let (start, longest) = (row * self.row_bytes(), self.longest_shard(row));
            let shard = (at - start) / longest;
            let from = at - start - shard * longest;
            let length = (longest - from).min(range.end - at);
            at += length;
            Some(Piece { row, shard: shard as u32, range: from..from + length })
        })
    }

    /// A range of a shard or part of `length` bytes, widened to whole checksums.
    pub(crate) fn widen(self, range: &Range<u64>, length: u64) -> Range<u64> {
        let bytes = self.sum_bytes;
        range.start / bytes * bytes..range.end.next_multiple_of(bytes).min(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn layouts() -> impl Strategy<Value = Layout> {
        (0u64..300_000, 1u64..6, 1u32..9, 0u32..4, 0u32..99).prop_map(
            |(size, blocks, data, parity, path)| {
                let store = Layout::new(0, blocks * SUM_BYTES, data, parity);
                let layout = match path {
                    0..50 => store.with_size(size),
                    _ => store.of_object(&path.to_string(), size),
                };
                layout.check().unwrap()
            },
        )
    }

    proptest! {
        #[test]
        fn each_byte_has_one_place_and_each_place_one_byte(layout in layouts()) {
            let mut seen = HashSet::new();
            let mut count = 0;
            for piece in layout.pieces(0..layout.size) {
                prop_assert!(!piece.range.is_empty() && piece.shard < layout.data);
                prop_assert!(piece.range.end <= layout.shard_bytes(piece.row, piece.shard));
                let part = layout.part_of(piece.row, piece.shard);
                prop_assert_eq!(layout.shard_in(piece.row, part), piece.shard);
                let place = layout.in_part(piece.row, &piece.range);
                prop_assert!(place.end <= layout.part_bytes(part));
                prop_assert!(seen.insert((part, place.start)));
                count += piece.range.end - piece.range.start;
            }
            prop_assert_eq!(count, layout.size);
        }

        #[test]
        fn a_row_has_each_part_once(layout in layouts()) {
            for row in 0..layout.rows() {
                let parts: HashSet<u32> =
                    (0..layout.parts()).map(|shard| layout.part_of(row, shard)).collect();
                prop_assert_eq!(parts.len(), layout.parts() as usize);
            }
        }

        #[test]
        fn parts_are_as_long_as_their_shards_and_balanced(layout in layouts()) {
            let lengths: Vec<u64> = (0..layout.parts()).map(|part| layout.part_bytes(part)).collect();
            for (part, &length) in lengths.iter().enumerate() {
                let shards = (0..layout.rows())
                    .map(|row| layout.shard_bytes(row, layout.shard_in(row, part as u32)));
                prop_assert_eq!(shards.sum::<u64>(), length);
            }
            let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
            prop_assert!(most - least <= layout.block_bytes);
        }

        #[test]
        fn rows_of_an_object_are_even(
            size in 0u64..2_000_000, blocks in 1u64..6, data in 1u32..9, parity in 0u32..4,
        ) {
            let store = Layout::new(0, blocks * SUM_BYTES, data, parity);
            let layout = store.of_object("a", size).check().unwrap();
            prop_assert!((store.block_bytes..=2 * store.block_bytes).contains(&layout.block_bytes));
            prop_assert!(layout.rows() <= store.with_size(size).rows());
            if size >= store.row_bytes() && layout.rows() < MANY_ROWS {
                // Bytes by which blocks are longer than even ones.
                let rest = SUM_BYTES * layout.rows();
                let last = layout.longest_shard(layout.rows() - 1);
                prop_assert!(last + rest >= layout.block_bytes, "{last} of {}", layout.block_bytes);
            }
            for part in 0..layout.parts() {
                let most = size.div_ceil(u64::from(data)).next_multiple_of(SUM_BYTES);
                prop_assert!(layout.part_bytes(part) <= most);
            }
        }

        #[test]
        fn pieces_of_a_range_are_those_bytes(layout in layouts(), a in 0.0..1.0, b in 0.0..1.0) {
            let at = |part: f64| (layout.size as f64 * part) as u64;
            let range = at(a).min(at(b))..at(a).max(at(b));
            let all: Vec<_> = layout.pieces(0..layout.size).flat_map(bytes_of).collect();
            let some: Vec<_> = layout.pieces(range.clone()).flat_map(bytes_of).collect();
            prop_assert_eq!(&all[range.start as usize..range.end as usize], &some[..]);
        }
    }

    fn bytes_of(piece: Piece) -> impl Iterator<Item = (u64, u32, u64)> {
        piece.range.clone().map(move |at| (piece.row, piece.shard, at))
    }

    #[test]
    fn the_bytes_of_a_small_object_are_spread() {
        let layout = Layout::new(100_000, 1 << 20, 4, 1);
        let lengths: Vec<u64> = (0..5).map(|part| layout.part_bytes(part)).collect();
        assert_eq!(lengths, [28672, 28672, 28672, 13984, 28672]);
        assert_eq!(layout.widen(&(600..1100), 13984), 512..1536);
        assert_eq!(layout.widen(&(13900..13950), 13984), 13824..13984);
    }

    #[test]
    fn frames_have_one_row_and_begin_at_all_parts() {
        let store = Layout::new(0, 1 << 20, 4, 1);
        let layout = |number: u32| store.of_object(&format!("frame-{number}.fits"), 6_108_480);
        assert_eq!((layout(1).rows(), layout(1).block_bytes), (1, 1_527_808));
        let mut counts = [0; 5];
        (0..1000).for_each(|number| counts[layout(number).first_part as usize] += 1);
        assert!(counts.iter().all(|count| (150..250).contains(count)), "{counts:?}");
        let large = store.of_object("a", 100 << 20);
        assert_eq!(large.block_bytes, 1 << 20);
    }

    #[test]
    fn checksums_are_of_more_bytes_the_larger_the_object_is() {
        let layout = |size, block_bytes| Layout::new(size, block_bytes, 4, 1);
        assert_eq!(layout(6 << 20, 1 << 20).sum_bytes, 512);
        assert_eq!(layout(12 << 20, 1 << 20).sum_bytes, 1024);
        assert_eq!(layout(100 << 20, 1 << 20).sum_bytes, 4096);
        assert_eq!(layout(50 << 30, 1 << 20).sum_bytes, 4096);
        assert_eq!(layout(1 << 40, 1 << 20).sum_bytes, 128 << 10);
        assert_eq!(layout(1 << 40, 1 << 20).check().unwrap().sums_in(0), 1 << 21);
        assert_eq!(layout(1 << 50, 1 << 20).sum_bytes, 1 << 20);
        assert_eq!(layout(1 << 40, 12 << 10).sum_bytes, 4096, "blocks are multiples of it");
        let wide = |size| Layout::new(size, 1 << 20, 60, 4).sum_bytes;
        assert_eq!((wide(1 << 20), wide(6 << 20)), (4096, 4096), "64 servers have a record each");
    }

    #[test]
    fn a_record_that_does_not_say_it_has_checksums_of_4096_bytes() {
        let said = |size| Layout { sum_bytes: 0, ..Layout::new(size, 1 << 20, 4, 1) };
        assert_eq!(said(6 << 20).of_record().sum_bytes, 4096);
        assert_eq!(said(1 << 40).of_record().sum_bytes, 128 << 10);
        let other = Layout { sum_bytes: 2048, ..said(6 << 20) };
        assert_eq!(other.of_record(), other);
    }

    #[test]
    fn impossible_layouts_are_refused() {
        let layout = Layout::new(1, 4096, 1, 0);
        let error = |layout: Layout| layout.check().unwrap_err().to_string();
        assert_eq!(layout.check(), Ok(layout));
        assert!(error(Layout { size: u64::MAX, ..layout }).starts_with("size: expected at most"));
        assert!(error(Layout { block_bytes: 0, ..layout }).starts_with("block_bytes"));
        assert!(error(Layout { block_bytes: 5000, ..layout }).starts_with("block_bytes"));
        assert!(error(Layout { block_bytes: 1 << 40, ..layout }).starts_with("block_bytes"));
        assert!(error(Layout { sum_bytes: 0, ..layout }).starts_with("sum_bytes"));
        assert!(error(Layout { sum_bytes: 8192, ..layout }).starts_with("sum_bytes"));
        let large = Layout { size: 1 << 50, ..layout };
        assert!(error(large).starts_with("size: expected fewer with blocks of 4096"));
        assert!(error(Layout { data: 0, ..layout }).starts_with("data"));
        assert!(error(Layout { data: 60, parity: 5, ..layout }).starts_with("parity"));
        assert!(error(Layout { parity: u32::MAX, ..layout }).starts_with("parity"));
    }
}
