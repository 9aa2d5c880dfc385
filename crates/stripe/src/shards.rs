//! Bytes of shards: those that a read needs, and those that it has.

use crate::layout::{Layout, Piece};
use crate::parity::Parity;
use bytes::Bytes;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// A shard: its row, and its number in that.
pub(crate) type ShardId = (u64, u32);

/// Ranges of shards; of each ascending and apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ShardRanges(BTreeMap<ShardId, Vec<Range<u64>>>);

impl ShardRanges {
    /// Where some bytes of an object are.
    pub(crate) fn of(layout: Layout, requests: &[Range<u64>]) -> ShardRanges {
        let mut ranges = ShardRanges::default();
        for Piece { row, shard, range } in requests.iter().flat_map(|r| layout.pieces(r.clone())) {
            ranges.add((row, shard), range);
        }
        ranges
    }

    /// The same in whole blocks of checksums, but for shards that are read exactly.
    pub(crate) fn widen(self, layout: Layout, is_exact: impl Fn(ShardId) -> bool) -> ShardRanges {
        let mut all = ShardRanges::default();
        for (id, ranges) in self.0 {
            if is_exact(id) {
                all.0.insert(id, ranges);
                continue;
            }
            let length = layout.shard_bytes(id.0, id.1);
            ranges.iter().for_each(|range| all.add(id, layout.widen(range, length)));
        }
        all
    }

    /// Add a range of a shard.
    pub(crate) fn add(&mut self, id: ShardId, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let ranges = self.0.entry(id).or_default();
        let from = ranges.partition_point(|other| other.end < range.start);
        let to = ranges.partition_point(|other| other.start <= range.end);
        let start =
            ranges[from..to].first().map_or(range.start, |first| first.start.min(range.start));
        let end = ranges[from..to].last().map_or(range.end, |last| last.end.max(range.end));
        ranges.splice(from..to, [start..end]);
    }

    /// Add the ranges of a shard that has none yet. They ascend, with gaps between them.
    pub(crate) fn add_all(&mut self, id: ShardId, ranges: &[Range<u64>]) {
        self.0.insert(id, ranges.to_vec());
    }

    /// Each shard with its ranges, by row.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ShardId, &[Range<u64>])> {
        self.0.iter().map(|(id, ranges)| (*id, &ranges[..]))
    }

    /// Whether some of a shard is in it.
    pub(crate) fn has(&self, id: ShardId) -> bool {
        self.0.contains_key(&id)
    }

    /// Whether it has some of a range of a shard.
    pub(crate) fn overlaps(&self, id: ShardId, range: &Range<u64>) -> bool {
        let mut ranges = self.0.get(&id).into_iter().flatten();
        ranges.any(|other| other.start < range.end && range.start < other.end)
    }

    /// Ranges of a shard, cut where a range of any shard of its row begins or ends.
    pub(crate) fn cut<'a>(
        &self,
        (row, _): ShardId,
        ranges: &'a [Range<u64>],
    ) -> Cow<'a, [Range<u64>]> {
        if self.is_empty() {
            return ranges.into();
        }
        let of_row = self.0.range((row, 0)..=(row, u32::MAX)).flat_map(|(_, ranges)| ranges);
        let mut ends: Vec<u64> = of_row.flat_map(|range| [range.start, range.end]).collect();
        ends.sort_unstable();
        ends.dedup();
        let mut pieces = Vec::with_capacity(ranges.len());
        for range in ranges {
            let mut start = range.start;
            for &end in ends.iter().filter(|&&end| range.start < end && end < range.end) {
                pieces.push(start..end);
                start = end;
            }
            pieces.push(start..range.end);
        }
        pieces.into()
    }

    /// Whether it has no range.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the mean length of its ranges is at most `bytes`.
    pub(crate) fn are_short(&self, bytes: u64) -> bool {
        self.bytes() <= bytes.saturating_mul(self.0.values().map(Vec::len).sum::<usize>() as u64)
    }

    /// Bytes of all ranges.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.values().flatten().map(|range| range.end - range.start).sum()
    }
}

/// Bytes of shards that were read, or rebuilt.
#[derive(Default)]
pub(crate) struct Shards(BTreeMap<ShardId, Vec<(Range<u64>, Bytes)>>);

impl Shards {
    /// Whether it has no bytes.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keep bytes of a shard, from `start`.
    pub(crate) fn put(&mut self, id: ShardId, start: u64, bytes: Bytes) {
        let range = start..start + bytes.len() as u64;
        let pieces = self.0.entry(id).or_default();
        let at = pieces.partition_point(|(other, _)| other.start < range.start);
        pieces.insert(at, (range, bytes));
    }

    /// Bytes of a shard, if all of them are here.
    pub(crate) fn get(&self, id: ShardId, range: &Range<u64>) -> Option<Bytes> {
        let pieces = self.0.get(&id)?;
        // The bytes of a piece from `start`, if it has these and ends at `end` or later.
        let from = |start: u64, end: u64| {
            let after = pieces.partition_point(|(piece, _)| piece.start <= start);
            pieces[..after].iter().rev().find_map(|(piece, bytes)| {
                let until = piece.end.min(range.end);
                let inside = |at: u64| (at - piece.start) as usize;
                (end <= piece.end).then(|| bytes.slice(inside(start)..inside(until)))
            })
        };
        if let Some(bytes) = from(range.start, range.end) {
            return Some(bytes);
        }
        let length = (range.end - range.start) as usize;
        let mut bytes = Vec::new();
        while bytes.len() < length {
            let start = range.start + bytes.len() as u64;
            bytes.extend_from_slice(&from(start, start + 1)?);
        }
        Some(bytes.into())
    }

    /// Shards of a row other than this one that have these bytes: the first of them are enough to
    /// rebuild it.
    fn helpers(
        &self,
        layout: Layout,
        (row, target): ShardId,
        range: &Range<u64>,
    ) -> Vec<(u32, Bytes)> {
        let others = (0..layout.parts()).filter(|&shard| shard != target);
        others
            .filter_map(|shard| {
                let length = layout.shard_bytes(row, shard);
                let there = range.start.min(length)..range.end.min(length);
                let bytes =
                    if there.is_empty() { Bytes::new() } else { self.get((row, shard), &there)? };
                Some((shard, bytes))
            })
            .take(layout.data as usize)
            .collect()
    }

    /// Whether bytes of a shard follow from others that are here.
    pub(crate) fn can_rebuild(&self, layout: Layout, id: ShardId, range: &Range<u64>) -> bool {
        layout.parity > 0
            && self.0.range((id.0, 0)..=(id.0, u32::MAX)).next().is_some()
            && self.helpers(layout, id, range).len() == layout.data as usize
    }

    /// Rebuild bytes of a shard from others that are here.
    pub(crate) fn rebuild(
        &mut self,
        layout: Layout,
        parity: &Parity,
        id: ShardId,
        range: &Range<u64>,
    ) {
        let length = (range.end - range.start) as usize;
        let mut shards: Vec<Option<Vec<u8>>> = vec![None; layout.parts() as usize];
        for (shard, bytes) in self.helpers(layout, id, range) {
            let mut bytes = Vec::from(bytes);
            bytes.resize(length, 0);
            shards[shard as usize] = Some(bytes);
        }
        let target = id.1 as usize;
        parity.rebuild(&mut shards, &[target]);
        if let Some(bytes) = shards.swap_remove(target) {
            self.put(id, range.start, bytes.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_meet_are_one() {
        let mut ranges = ShardRanges::default();
        for range in [10..20, 30..40, 50..60, 5..5, 20..30, 55..58, 0..4, 59..70] {
            ranges.add((0, 0), range);
        }
        let all: Vec<_> = ranges.iter().collect();
        assert_eq!(all, [((0, 0), &[0..4, 10..40, 50..70][..])]);
        assert_eq!(ranges.bytes(), 54);
    }

    #[test]
    fn what_is_needed_is_whole_blocks_of_checksums_or_exact() {
        let layout = Layout::new(30_000, 8192, 2, 1);
        let ranges = ShardRanges::of(layout, &[100..200, 300..400, 8000..8300, 29_990..30_000]);
        assert!(ranges.are_short(102) && !ranges.are_short(101));
        let ranges = ranges.widen(layout, |id| id == (0, 1));
        let all: Vec<_> = ranges.iter().map(|(id, ranges)| (id, ranges.to_vec())).collect();
        assert_eq!(
            all,
            [
                ((0, 0), vec![0..512, 7680..8192]),
                ((0, 1), vec![0..108]),
                ((1, 1), vec![5120..5424]),
            ]
        );
    }

    #[test]
    fn ranges_are_cut_where_those_of_their_row_end() {
        let mut ranges = ShardRanges::default();
        for (id, range) in [((3, 0), 0..512), ((3, 2), 1024..1536), ((4, 0), 700..800)] {
            ranges.add(id, range);
        }
        assert_eq!(
            *ranges.cut((3, 1), &[0..100, 500..2000]),
            [0..100, 500..512, 512..1024, 1024..1536, 1536..2000]
        );
        assert_eq!(*ranges.cut((5, 1), &[500..2000]), [500..2000]);
        assert!(ranges.overlaps((3, 2), &(1535..1600)) && !ranges.overlaps((3, 2), &(1536..1600)));
        assert!(!ranges.overlaps((3, 1), &(0..2000)));
    }

    #[test]
    fn pieces_that_meet_are_read_as_one() {
        let mut shards = Shards::default();
        for (start, text) in [(0, "abcd"), (8, "ijkl"), (4, "efgh"), (20, "uvw")] {
            shards.put((0, 0), start, Bytes::from(text));
        }
        let get = |range: Range<u64>| shards.get((0, 0), &range);
        assert_eq!(get(2..10).as_deref(), Some(&b"cdefghij"[..]));
        assert_eq!(get(5..7).as_deref(), Some(&b"fg"[..]));
        assert_eq!(
            (get(2..13), get(19..21), get(0..12).map(|all| all.len())),
            (None, None, Some(12))
        );
    }

    #[test]
    fn lost_bytes_follow_from_others() {
        let layout = Layout::new(20_000, 8192, 2, 1);
        let parity = Parity::new(2, 1);
        let object: Vec<u8> = (0..20_000u32).map(|at| (at * 7) as u8).collect();
        // The last row: 3,616 bytes in the first shard, none in the second.
        assert_eq!((layout.shard_bytes(1, 0), layout.shard_bytes(1, 1)), (3616, 0));
        let first = &object[..8192];
        let sum = parity.encode(&[first, &object[8192..16384]]).remove(0);
        let mut shards = Shards::default();
        shards.put((0, 0), 4096, Bytes::copy_from_slice(&first[4096..]));
        assert!(!shards.can_rebuild(layout, (0, 1), &(4096..8192)));
        shards.put((0, 2), 4096, Bytes::from(sum).slice(4096..));
        assert!(shards.can_rebuild(layout, (0, 1), &(4096..8192)));
        assert!(!shards.can_rebuild(layout, (0, 1), &(0..8192)));
        shards.rebuild(layout, &parity, (0, 1), &(4096..8192));
        let bytes = shards.get((0, 1), &(5000..5100)).expect("rebuilt");
        assert_eq!(&bytes[..], &object[13192..13292]);
        // A shard that is empty helps with zeros.
        let last = parity.encode(&[&object[16384..], &[0; 3616]]).remove(0);
        shards.put((1, 2), 0, last.into());
        shards.rebuild(layout, &parity, (1, 0), &(0..3616));
        assert_eq!(&shards.get((1, 0), &(0..3616)).expect("rebuilt")[..], &object[16384..]);
    }
}
