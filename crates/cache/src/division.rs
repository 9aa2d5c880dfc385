//! How requests divide into cached and missing parts.

use crate::cell::{CELL_BYTES, Cell, Cells};
use std::ops::Range;
use std::time::SystemTime;

/// Part of a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Cached(Range<u64>),
    Missing(Range<u64>),
}

/// The parts of requests.
#[derive(Debug, Default)]
pub(crate) struct Division {
    pub(crate) parts: Vec<Part>,
    /// The number of parts up to the end of each request.
    pub(crate) ends: Vec<usize>,
    /// When the oldest of the cached blocks was fetched.
    pub(crate) oldest: Option<SystemTime>,
}

impl Division {
    /// Divide requests for an object of `size` bytes. A cached part of at most `gap_bytes` between
    /// missing ones is missing too: to read it again costs less than another request.
    pub(crate) fn new(
        cells: &Cells,
        size: u64,
        gap_bytes: u64,
        requests: &[Range<u64>],
    ) -> Division {
        let mut division = Division::default();
        let mut last_cell = None;
        for request in requests {
            if request.end > size || request.is_empty() {
                division.parts.push(Part::Missing(request.clone()));
            } else {
                let fetched_at = division.divide(cells, gap_bytes, request, &mut last_cell);
                division.oldest = division.oldest.min(fetched_at).or(fetched_at);
            }
            division.ends.push(division.parts.len());
        }
        division
    }

    /// The missing parts.
    pub(crate) fn missing(&self) -> impl Iterator<Item = Range<u64>> {
        self.parts.iter().filter_map(|part| match part {
            Part::Missing(range) => Some(range.clone()),
            Part::Cached(_) => None,
        })
    }

    /// Add the parts of a request; returns when the oldest cached block of it was fetched.
    pub(crate) fn divide(
        &mut self,
        cells: &Cells,
        gap_bytes: u64,
        request: &Range<u64>,
        last_cell: &mut LastCell,
    ) -> Option<SystemTime> {
        let first = self.parts.len();
        let mut oldest = None;
        let mut at = request.start;
        while at < request.end {
            let cell = at / CELL_BYTES;
            let end = request.end.min((cell + 1) * CELL_BYTES);
            if last_cell.as_ref().is_none_or(|(last, _)| *last != cell) {
                *last_cell = Some((cell, cells.peek(cell)));
            }
            let cached_cell = last_cell.as_ref().and_then(|(_, cached_cell)| cached_cell.as_ref());
            let rest = at..end;
            for range in cached_cell.iter().flat_map(|cached_cell| cached_cell.ranges(&rest)) {
                self.add(first, Part::Missing(at..range.start));
                at = range.end;
                self.add(first, Part::Cached(range));
                let fetched_at = cached_cell.map(Cell::fetched_at);
                oldest = oldest.min(fetched_at).or(fetched_at);
            }
            self.add(first, Part::Missing(at..end));
            at = end;
        }
        self.fill_gaps(first, gap_bytes);
        oldest
    }

    /// Add a part of a request whose parts begin at `first`; join it to the last of its kind.
    fn add(&mut self, first: usize, part: Part) {
        let (Part::Cached(range) | Part::Missing(range)) = &part;
        if range.is_empty() {
            return;
        }
        match (self.parts[first..].last_mut(), &part) {
            (Some(Part::Cached(last)), Part::Cached(range))
            | (Some(Part::Missing(last)), Part::Missing(range)) => last.end = range.end,
            _ => self.parts.push(part),
        }
    }

    fn fill_gaps(&mut self, first: usize, gap_bytes: u64) {
        let mut at = first;
        while let Some([Part::Missing(left), Part::Cached(gap), Part::Missing(right)]) =
            self.parts.get(at..at + 3)
        {
            if gap.end - gap.start <= gap_bytes {
                let range = left.start..right.end;
                self.parts.splice(at..at + 3, [Part::Missing(range)]);
            } else {
                at += 2;
            }
        }
    }
}

/// The cell that was looked at last, and its extents.
pub(crate) type LastCell = Option<(u64, Option<Cell>)>;
