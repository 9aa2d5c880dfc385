//! What servers sent, kept on local disk.
//!
//! An object is divided into cells of 256 KiB. What came of a cell is one value on a shelf, under
//! the object's URL and version: so a changed object is simply not found, and a block that was torn
//! or damaged, whoever was killed when, is never served.

mod cell;
mod reading;

use crate::error::StoreError;
use crate::shelf::{Shelf, limit_of};
use crate::source::{Fetched, Source, TRUSTED, Traffic, Version};
use crate::timing::Measured;
use bytes::Bytes;
use cell::{CELL_BYTES, Cell, Cells, Gathered};
use reading::Reading;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use swathe_plan::Costs;

/// What its variables begin with.
const VARIABLES: &str = "SWATHE_CACHE";
/// Limit where `$SWATHE_CACHE_BYTES` does not say.
const LIMIT_BYTES: u64 = 4 << 30;
/// After the disk refused, nothing is stored for this time.
const REFUSED: Duration = Duration::from_secs(60);

/// Bytes of objects on servers, shared by the processes of a user.
#[derive(Debug)]
pub struct Blocks {
    shelf: Shelf,
    refused: Mutex<Refused>,
}

/// What the disk said when it did not take a block.
#[derive(Debug, Default)]
struct Refused {
    last: Option<Instant>,
    /// Not told yet.
    note: Option<String>,
    told: bool,
}

impl Blocks {
    /// The user's, the same for all of this process; `None` where they are switched off with a
    /// limit of 0, or have no place.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] where `$SWATHE_CACHE_BYTES` is no number.
    pub fn user() -> Result<Option<Arc<Blocks>>, StoreError> {
        static BLOCKS: OnceLock<Option<Arc<Blocks>>> = OnceLock::new();
        if limit_of("blocks", VARIABLES, LIMIT_BYTES)? == 0 {
            return Ok(None);
        }
        let open = || Some(Arc::new(Blocks::on(Blocks::users_shelf().ok()?)));
        Ok(BLOCKS.get_or_init(open).clone())
    }

    /// Where the user's are kept: in `$SWATHE_CACHE_DIR`, else `$XDG_CACHE_HOME/swathe/blocks`,
    /// else `~/.cache/swathe/blocks`; at most `$SWATHE_CACHE_BYTES` (4 GiB).
    ///
    /// # Errors
    /// As [`Shelf::user`].
    pub fn users_shelf() -> Result<Shelf, StoreError> {
        Shelf::user("blocks", VARIABLES, LIMIT_BYTES)
    }

    /// Blocks on a shelf.
    pub fn on(shelf: Shelf) -> Blocks {
        Blocks { shelf, refused: Mutex::default() }
    }

    /// Keep a block, if the disk takes it.
    fn keep(&self, put: impl FnOnce(&Shelf) -> Result<(), StoreError>) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.last.is_some_and(|last| last.elapsed() < REFUSED) {
            return;
        }
        drop(refused);
        if let Err(error) = put(&self.shelf) {
            refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            refused.last = Some(Instant::now());
            if !refused.told {
                refused.told = true;
                refused.note = Some(format!("what servers sent was not kept: {error}"));
            }
        }
    }
}

/// A source whose bytes are taken from blocks where they are there, and put there where not.
pub(crate) struct Cached {
    inner: Arc<dyn Source>,
    cells: Arc<Cells>,
    /// Whether the server was asked for the version.
    asked: Arc<AtomicBool>,
}

impl Cached {
    /// `place`: what the URL does not say of where the object is.
    pub(crate) fn new(
        inner: Arc<dyn Source>,
        place: &str,
        blocks: Arc<Blocks>,
        asked: bool,
    ) -> Cached {
        let object = format!("{place}\n{}\n{}", inner.url(), inner.version());
        let cells = Arc::new(Cells::new(blocks, object, inner.len()));
        Cached { inner, cells, asked: Arc::new(AtomicBool::new(asked)) }
    }

    /// Divide a request into what is here and what is not; gives when the oldest block came.
    fn divide(
        &self,
        request: &Range<u64>,
        seen: &mut Seen,
        parts: &mut Vec<Part>,
    ) -> Option<SystemTime> {
        let first = parts.len();
        let mut oldest = None;
        let mut at = request.start;
        while at < request.end {
            let cell = at / CELL_BYTES;
            let end = request.end.min((cell + 1) * CELL_BYTES);
            if seen.as_ref().is_none_or(|(last, _)| *last != cell) {
                *seen = Some((cell, self.cells.glance(cell)));
            }
            let held = seen.as_ref().and_then(|(_, held)| held.as_ref());
            let wanted = at..end;
            for range in held.iter().flat_map(|held| held.ranges(&wanted)) {
                add(parts, first, Part::Missing(at..range.start));
                at = range.end;
                add(parts, first, Part::Held(range));
                let came = held.map(Cell::came);
                oldest = oldest.min(came).or(came);
            }
            add(parts, first, Part::Missing(at..end));
            at = end;
        }
        self.fill_gaps(first, parts);
        oldest
    }

    /// Ask for a little that is here rather than with another request.
    fn fill_gaps(&self, first: usize, parts: &mut Vec<Part>) {
        let costs = self.inner.costs();
        let speed = 1e6 / (costs.request.seconds(1e6) - costs.latency_s()).max(1e-9);
        let gap_bytes = costs.single_gap().unwrap_or((costs.latency_s() * speed) as u64);
        let mut at = first;
        while let Some([Part::Missing(left), Part::Held(held), Part::Missing(right)]) =
            parts.get(at..at + 3)
        {
            if held.end - held.start <= gap_bytes {
                parts.splice(at..at + 3, [Part::Missing(left.start..right.end)]);
            } else {
                at += 2;
            }
        }
    }

    /// Whether the server must be asked if this is still the object, for that was not asked for long.
    fn must_ask(&self, oldest: Option<SystemTime>) -> bool {
        // What came in the future came before the clock was set.
        let is_recent = |came: SystemTime| came.elapsed().is_ok_and(|age| age < TRUSTED);
        !(oldest.is_none_or(is_recent) || self.asked.load(Ordering::Relaxed))
    }

    fn confirm(&self, oldest: Option<SystemTime>) -> Result<(), StoreError> {
        if self.must_ask(oldest) {
            self.inner.read_exact_at(0, &mut [0])?;
            self.asked.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// The cell that was glanced at last, and what was seen.
type Seen = Option<(u64, Option<Cell>)>;

/// Part of a request.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Held(Range<u64>),
    Missing(Range<u64>),
}

/// Add a part of a request whose parts begin at `first`, to the last where it is of its kind.
fn add(parts: &mut Vec<Part>, first: usize, part: Part) {
    let (Part::Held(range) | Part::Missing(range)) = &part;
    if range.is_empty() {
        return;
    }
    match (parts[first..].last_mut(), &part) {
        (Some(Part::Held(last)), Part::Held(range))
        | (Some(Part::Missing(last)), Part::Missing(range)) => last.end = range.end,
        _ => parts.push(part),
    }
}

impl Source for Cached {
    fn url(&self) -> &str {
        self.inner.url()
    }

    fn version(&self) -> &Version {
        self.inner.version()
    }

    fn is_local(&self) -> bool {
        self.inner.is_local()
    }

    fn costs(&self) -> &Costs {
        self.inner.costs()
    }

    fn connections(&self) -> u32 {
        self.inner.connections()
    }

    fn first(&self) -> Bytes {
        self.inner.first()
    }

    fn is_settled(&self) -> bool {
        self.inner.is_settled()
    }

    fn at_hand(&self, ranges: &[Range<u64>]) -> Option<Traffic> {
        let (mut parts, mut seen, mut oldest) = (Vec::new(), None, None);
        for range in ranges {
            parts.clear();
            if range.end > self.len() {
                return None;
            }
            let came = self.divide(range, &mut seen, &mut parts);
            if parts.iter().any(|part| matches!(part, Part::Missing(_))) {
                return None;
            }
            oldest = oldest.min(came).or(came);
        }
        let asks = u64::from(self.must_ask(oldest));
        Some(Traffic { bytes: asks, requests: asks })
    }

    fn take_traffic(&self) -> Traffic {
        self.inner.take_traffic()
    }

    fn take_notes(&self) -> Vec<String> {
        let mut notes = self.inner.take_notes();
        notes.extend(self.cells.take_note());
        notes
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        let range = offset..offset.saturating_add(buffer.len() as u64);
        let bytes = self.fetch(vec![range], 1).next().transpose()?.unwrap_or_default();
        buffer.copy_from_slice(&bytes);
        Ok(())
    }

    fn fetch(&self, requests: Vec<Range<u64>>, streams: u32) -> Fetched {
        let (mut parts, mut seen) = (Vec::new(), None);
        let mut ends = Vec::with_capacity(requests.len());
        let mut oldest = None;
        for request in &requests {
            if request.end > self.len() || request.is_empty() {
                parts.push(Part::Missing(request.clone()));
            } else {
                let came = self.divide(request, &mut seen, &mut parts);
                oldest = oldest.min(came).or(came);
            }
            ends.push(parts.len());
        }
        if let Err(error) = self.confirm(oldest) {
            return Box::new(std::iter::once(Err(error)));
        }
        let missing: Vec<Range<u64>> = parts
            .iter()
            .filter_map(|part| match part {
                Part::Missing(range) => Some(range.clone()),
                Part::Held(_) => None,
            })
            .collect();
        let asked = (!missing.is_empty()).then(|| self.inner.fetch(missing, streams));
        Box::new(Reading {
            inner: self.inner.clone(),
            asked,
            requests: ends.into_iter(),
            parts: parts.into_iter(),
            given: 0,
            last: None,
            gathered: Gathered::new(self.cells.clone()),
            confirmed: self.asked.clone(),
        })
    }

    fn measure(
        &self,
        requests: &[Range<u64>],
        streams: u32,
        fresh: bool,
    ) -> Result<Vec<Measured>, StoreError> {
        self.inner.measure(requests, streams, fresh)
    }
}

#[cfg(test)]
mod tests;
