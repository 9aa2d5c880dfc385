//! Requests that are partly answered from blocks.

use crate::cell::{CELL_BYTES, Cell, PendingCells};
use crate::division::Part;
use crate::refetch::Refetch;
use crate::{AvoidedTraffic, record_check};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use swathe_store_api::{Pieces, Source, StoreError, TrafficCount};
use swathe_trace::{Ids, Level, event};

/// Requests on their way: some of their parts from the server, the others from blocks.
pub(crate) struct AssembledRead {
    pub(crate) inner: Arc<dyn Source>,
    pub(crate) answers: Option<Pieces>,
    /// Number of parts up to the end of each request.
    pub(crate) requests: std::vec::IntoIter<usize>,
    pub(crate) parts: std::vec::IntoIter<Part>,
    pub(crate) part_number: usize,
    /// The cell that was read last: the next request may need it too.
    pub(crate) last: Option<(u64, Cell)>,
    /// Fetched bytes that are not stored yet.
    pub(crate) pending: PendingCells,
    pub(crate) is_confirmed: Arc<AtomicBool>,
    pub(crate) avoided_traffic: Arc<AvoidedTraffic>,
    /// Requests in flight.
    pub(crate) streams: u32,
    /// The fetch of parts that were expected in the cache and were missing.
    pub(crate) refetch: Option<Refetch>,
}

impl Iterator for AssembledRead {
    type Item = Result<Bytes, StoreError>;

    fn next(&mut self) -> Option<Result<Bytes, StoreError>> {
        let until = self.requests.next()?;
        let parts: Vec<Part> = self.parts.by_ref().take(until - self.part_number).collect();
        self.part_number = until;
        let whole = match &parts[..] {
            [Part::Missing(range)] => self.fetch_next(range),
            parts => self.assemble(parts),
        };
        if whole.is_err() {
            // An error is the last.
            self.requests = Vec::new().into_iter();
        }
        Some(whole)
    }
}

impl AssembledRead {
    fn assemble(&mut self, parts: &[Part]) -> Result<Bytes, StoreError> {
        let mut bytes = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            match part {
                Part::Missing(range) => bytes.extend_from_slice(&self.fetch_next(range)?),
                Part::Cached(range) => self.take(range, &parts[number..], &mut bytes)?,
            }
        }
        Ok(bytes.into())
    }

    /// The next part from the server.
    fn fetch_next(&mut self, range: &Range<u64>) -> Result<Bytes, StoreError> {
        self.record("CACHE_MISS", range.end.saturating_sub(range.start));
        let bytes = self.answers.as_mut().and_then(Iterator::next).transpose()?.unwrap_or_default();
        self.keep(range, bytes)
    }

    fn record(&self, name: &str, bytes: u64) {
        event(Level::Usage, name, &Ids::default(), |record| {
            record
                .text("OBJECT", self.pending.cells().object().display_name())
                .number("BYTES", bytes);
        });
    }

    fn keep(&mut self, range: &Range<u64>, bytes: Bytes) -> Result<Bytes, StoreError> {
        let length = range.end.saturating_sub(range.start);
        if bytes.len() as u64 != length {
            return Err(StoreError::ShortRead {
                url: self.inner.url().to_string(),
                start: range.start,
                expected: length,
                found: bytes.len() as u64,
            });
        }
        if !self.is_confirmed.swap(true, Ordering::Relaxed) {
            record_check(self.pending.cells());
        }
        self.pending.add(range.start, &bytes);
        Ok(bytes)
    }

    /// Read cached bytes; `parts` are the range and those after it in the request.
    fn take(
        &mut self,
        range: &Range<u64>,
        parts: &[Part],
        to: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        let mut at = range.start;
        while at < range.end {
            let number = at / CELL_BYTES;
            if self.last.as_ref().is_none_or(|(last, _)| *last != number) {
                self.last = self.pending.cells().load(number).map(|cell| (number, cell));
            }
            let end = range.end.min((number + 1) * CELL_BYTES);
            match self.last.as_ref().and_then(|(_, cell)| cell.get(at..end)) {
                Some(bytes) => {
                    self.avoided_traffic
                        .cache
                        .add(TrafficCount { bytes: bytes.len() as u64, requests: 1 });
                    to.extend_from_slice(bytes);
                    self.record("CACHE_HIT", end - at);
                }
                // It was evicted in the meantime, or it is damaged.
                None => to.extend_from_slice(&self.refetch(at..end, parts)?),
            }
            at = end;
        }
        Ok(())
    }

    /// Bytes missing from the cache that were in it. With the first such range the rest is checked.
    fn refetch(&mut self, range: Range<u64>, parts: &[Part]) -> Result<Bytes, StoreError> {
        for _ in 0..2 {
            let result =
                self.refetch.as_mut().map(|refetch| refetch.take(&range)).transpose()?.flatten();
            if let Some((bytes, news)) = result {
                if let Some((start, window)) = news {
                    let all = start..start + window.len() as u64;
                    self.keep(&all, window)?;
                }
                return Ok(bytes);
            }
            let parts = [parts, self.parts.as_slice()];
            let cells = self.pending.cells();
            self.refetch = Some(Refetch::start(cells, &*self.inner, &range, &parts, self.streams));
        }
        let (start, expected) = (range.start, range.end - range.start);
        let url = self.inner.url().to_string();
        Err(StoreError::ShortRead { url, start, expected, found: 0 })
    }
}
