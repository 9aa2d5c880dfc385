//! What was thought to be here and is not: it was evicted in the meantime, or it is damaged.
//!
//! Requests for cached bytes are as those of a file, one for each row of a region perhaps. Bytes
//! that turn out to be missing are requested as from a server: all the rest, in as few requests as
//! cost less than what they leave out.

use crate::cell::{CELL_BYTES, Cells};
use crate::division::Part;
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use swathe_plan::{Break, Reach, windows};
use swathe_store_api::{Pieces, Source, StoreError};

/// Most bytes of one request.
const CAP_BYTES: u64 = 8 << 20;
/// Fewest requests in flight: cached bytes are read with one.
const STREAMS: u32 = 4;
/// Cells that are checked at a time: 256 MiB.
const MOST_CELLS: usize = 1024;

/// Ranges that are requested anew, on their way.
pub(crate) struct Refetch {
    windows: VecDeque<Range<u64>>,
    answers: Pieces,
    /// The last one.
    last: Option<(Range<u64>, Bytes)>,
}

impl Refetch {
    /// Request the missing bytes of the parts to be read; the first is known to be missing.
    pub(crate) fn start(
        cells: &Cells,
        source: &dyn Source,
        first: &Range<u64>,
        parts: &[&[Part]],
        streams: u32,
    ) -> Refetch {
        let mut missing = find_missing(cells, parts);
        missing.push(first.clone());
        missing.sort_unstable_by_key(|range| range.start);
        let gap_bytes = source.costs().gap_bytes();
        let reach = Reach { gap_bytes, cap_bytes: CAP_BYTES };
        let windows = windows(&missing, reach, Break::BetweenSegments);
        let answers = source.fetch(windows.clone(), streams.max(STREAMS));
        Refetch { windows: windows.into(), answers, last: None }
    }

    /// The fetched bytes of a range, and their window if that arrived just now; `None` if the
    /// range is not among those on their way.
    pub(crate) fn take(
        &mut self,
        range: &Range<u64>,
    ) -> Result<Option<(Bytes, Option<Window>)>, StoreError> {
        let mut news = None;
        loop {
            if let Some((window, bytes)) = &self.last
                && window.start <= range.start
                && range.end <= window.end
            {
                let from = (range.start - window.start) as usize;
                let length = (range.end - range.start) as usize;
                return Ok(bytes
                    .get(from..from + length)
                    .map(|_| (bytes.slice(from..from + length), news.take())));
            }
            let is_ahead = self
                .windows
                .iter()
                .any(|window| window.start <= range.start && range.end <= window.end);
            let Some(window) = self.windows.pop_front().filter(|_| is_ahead) else {
                return Ok(None);
            };
            let Some(bytes) = self.answers.next().transpose()? else { return Ok(None) };
            news = Some((window.start, bytes.clone()));
            self.last = Some((window, bytes));
        }
    }
}

/// Offset of the bytes in the object, and the bytes.
pub(crate) type Window = (u64, Bytes);

/// The missing ranges of parts that were thought to be cached; of the first cells of them.
fn find_missing(cells: &Cells, parts: &[&[Part]]) -> Vec<Range<u64>> {
    let mut extents_by_cell = HashMap::new();
    let mut missing = Vec::new();
    for part in parts.iter().flat_map(|parts| parts.iter()) {
        let Part::Cached(range) = part else { continue };
        let mut at = range.start;
        while at < range.end {
            let number = at / CELL_BYTES;
            let end = range.end.min((number + 1) * CELL_BYTES);
            if extents_by_cell.len() >= MOST_CELLS && !extents_by_cell.contains_key(&number) {
                return missing;
            }
            let extents: &Vec<Range<u64>> = extents_by_cell.entry(number).or_insert_with(|| {
                let whole = number * CELL_BYTES..(number + 1) * CELL_BYTES;
                cells.load(number).map_or_else(Vec::new, |cell| cell.ranges(&whole).collect())
            });
            if !extents.iter().any(|extent| extent.start <= at && end <= extent.end) {
                missing.push(at..end);
            }
            at = end;
        }
    }
    missing
}
