//! What servers sent, kept on local disk.
//!
//! An object is divided into cells of 256 KiB. What came of a cell is one value on a shelf, under
//! the object's key and version: so a changed object is simply not found, and a block that was torn
//! or damaged, whoever was killed when, is never served.
#![warn(missing_docs)]

mod assembled;
mod cached_store;
mod cell;
mod peer_client;
mod peer_pull;
mod peer_server;
mod refetch;
mod tls;
mod unknown_clients;

use assembled::AssembledRead;
use bytes::Bytes;
pub use cached_store::cached_stores;
pub use cell::ObjectDescription;
use cell::{CELL_BYTES, Cell, Cells, OpenedObject, PendingCells};
use peer_client::Peers;
pub use peer_pull::PullResult;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use swathe_disk_cache::{DiskCache, limit_of};
use swathe_plan::{Costs, Load};
use swathe_store_api::{
    Pieces, RequestTiming, Source, StoreError, TRUSTED, Traffic, TrafficCount, Version,
};
pub use tls::Identity;

/// What its variables begin with.
const VARIABLES: &str = "SWATHE_CACHE";
/// Limit where `$SWATHE_CACHE_BYTES` does not say.
const LIMIT_BYTES: u64 = 4 << 30;
/// After the disk refused, nothing is stored for this time.
const REFUSED: Duration = Duration::from_secs(60);
/// Objects of which is known when their server was asked.
const NOTED: usize = 10_000;
/// Objects of which is known what they are called.
const CALLED: usize = 100_000;

/// Bytes of objects on servers, shared by the processes of a user.
#[derive(Debug)]
pub struct BlockCache {
    shelf: DiskCache,
    refused: Mutex<WriteRefusals>,
    peers: Peers,
    /// Objects that were opened last, by what they are called.
    opened: Mutex<HashMap<String, Arc<OpenedObject>>>,
    asked: Mutex<HashMap<Asker, Instant>>,
}

/// An object at a version, and who asked for it.
type Asker = (String, Option<u64>);

/// What the disk said when it did not take a block.
#[derive(Debug, Default)]
struct WriteRefusals {
    last: Option<Instant>,
    /// Not told yet.
    note: Option<String>,
    told: bool,
}

impl BlockCache {
    /// The user's, the same for all of this process; `None` where they are switched off with a
    /// limit of 0, or have no place.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] where `$SWATHE_CACHE_BYTES` is no number.
    pub fn user() -> Result<Option<Arc<BlockCache>>, StoreError> {
        static BLOCKS: OnceLock<Option<Arc<BlockCache>>> = OnceLock::new();
        if limit_of("blocks", VARIABLES, LIMIT_BYTES)? == 0 {
            return Ok(None);
        }
        let open = || Some(Arc::new(BlockCache::on(BlockCache::users_shelf().ok()?)));
        Ok(BLOCKS.get_or_init(open).clone())
    }

    /// Where the user's are kept: in `$SWATHE_CACHE_DIR`, else `$XDG_CACHE_HOME/swathe/blocks`,
    /// else `~/.cache/swathe/blocks`; at most `$SWATHE_CACHE_BYTES` (4 GiB).
    ///
    /// # Errors
    /// As [`DiskCache::user`].
    pub fn users_shelf() -> Result<DiskCache, StoreError> {
        DiskCache::user("blocks", VARIABLES, LIMIT_BYTES)
    }

    /// Blocks on a shelf.
    pub fn on(shelf: DiskCache) -> BlockCache {
        let (refused, opened, asked) = Default::default();
        BlockCache { shelf, refused, peers: Peers::default(), opened, asked }
    }

    /// Ask peers for blocks from now on, with an identity by TLS only.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] where the identity is unusable.
    pub fn ask(&self, identity: Option<&Identity>) -> Result<(), StoreError> {
        self.peers.identify(identity)
    }

    /// Which peers have blocks of an object: URL and token of each; the first is asked first.
    pub fn have(&self, object: &str, peers: Vec<(String, String)>) {
        self.peers.set(object, peers);
    }

    /// Bytes that are here of an object that this process has opened under this very name.
    pub fn held(self: &Arc<BlockCache>, object: &str) -> u64 {
        self.cells(object).map_or(0, |cells| cells.held())
    }

    /// The cells of an object that this process has opened under this very name.
    fn cells(self: &Arc<BlockCache>, object: &str) -> Option<Cells> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let found = opened.get(object).cloned();
        drop(opened);
        found.map(|found| Cells::of(self.clone(), found))
    }

    /// Whether the disk takes blocks.
    fn takes(&self) -> bool {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.last.is_none_or(|last| last.elapsed() >= REFUSED)
    }

    /// Note that the server was asked just now whether an object is still the same, and gave it.
    fn note_asked(&self, asker: Asker) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.len() >= NOTED {
            asked.retain(|_, at| at.elapsed() < TRUSTED);
        }
        if asked.len() >= NOTED {
            asked.clear(); // they are asked once more than needed
        }
        asked.insert(asker, Instant::now());
    }

    /// Whether this process asked of late, with these credentials.
    fn asked_lately(&self, asker: &Asker) -> bool {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.get(asker).is_some_and(|at| at.elapsed() < TRUSTED)
    }

    fn note_opened(&self, object: &Arc<OpenedObject>) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.len() >= CALLED && !opened.contains_key(&object.called) {
            opened.clear(); // what is wanted again is opened again
        }
        opened.insert(object.called.clone(), object.clone());
    }

    /// Keep a block, if the disk takes it.
    fn keep(&self, put: impl FnOnce(&DiskCache) -> Result<(), StoreError>) {
        if !self.takes() {
            return;
        }
        if let Err(error) = put(&self.shelf) {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
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
    /// What files of this machine cost, which blocks are.
    files: Costs,
    /// Whether the server was asked for the version.
    asked: Arc<AtomicBool>,
    came: Arc<AvoidedTraffic>,
}

/// What did not come from the server, since that was asked last.
#[derive(Default)]
struct AvoidedTraffic {
    peers: TrafficCounter,
    cache: TrafficCounter,
}

#[derive(Default)]
struct TrafficCounter {
    bytes: AtomicU64,
    requests: AtomicU64,
}

impl TrafficCounter {
    fn add(&self, moved: TrafficCount) {
        self.bytes.fetch_add(moved.bytes, Ordering::Relaxed);
        self.requests.fetch_add(moved.requests, Ordering::Relaxed);
    }

    fn take(&self) -> TrafficCount {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        TrafficCount { bytes: take(&self.bytes), requests: take(&self.requests) }
    }
}

impl Cached {
    /// `called`: by who asked for it.
    pub fn new(
        inner: Arc<dyn Source>,
        called: &str,
        blocks: Arc<BlockCache>,
        asked: bool,
    ) -> Cached {
        let cells = Arc::new(Cells::new(blocks, called, &*inner));
        cells.blocks().note_opened(cells.opened());
        if asked {
            note_asked(&cells);
        }
        let (asked, came) = (Arc::new(AtomicBool::new(asked)), Arc::default());
        Cached { inner, cells, files: Costs::local(), asked, came }
    }

    /// The same, where files cost this.
    pub fn on(self, files: Costs) -> Cached {
        Cached { files, ..self }
    }

    /// Divide requests; gives the parts, how many there are up to the end of each request, and when
    /// the oldest block came.
    fn divided(&self, requests: &[Range<u64>]) -> (Vec<Part>, Vec<usize>, Option<SystemTime>) {
        let (mut parts, mut seen, mut oldest) = (Vec::new(), None, None);
        let mut ends = Vec::with_capacity(requests.len());
        for request in requests {
            if request.end > self.len() || request.is_empty() {
                parts.push(Part::Missing(request.clone()));
            } else {
                let came = self.divide(request, &mut seen, &mut parts);
                oldest = oldest.min(came).or(came);
            }
            ends.push(parts.len());
        }
        (parts, ends, oldest)
    }

    /// Have peers give what is missing, where that is predicted to take less than the server does.
    /// Tells whether anything came.
    fn ask_peers(&self, parts: &[Part], streams: u32) -> bool {
        let blocks = self.cells.blocks();
        if !blocks.peers.any(&self.cells.opened().called) || !blocks.takes() {
            return false;
        }
        let mut load = Load { requests: 0, bytes: 0, largest: 0 };
        let mut wanted = Vec::new();
        for range in missing(parts) {
            if range.is_empty() || range.end > self.len() {
                continue;
            }
            let length = range.end - range.start;
            load.requests += 1;
            load.bytes += length;
            load.largest = load.largest.max(length);
            wanted.extend(range.start / CELL_BYTES..=(range.end - 1) / CELL_BYTES);
        }
        wanted.sort_unstable();
        wanted.dedup();
        let store_s = self.costs().seconds(load, streams.max(1));
        let moved = blocks.peers.get(&self.cells, wanted, store_s);
        self.came.peers.add(moved);
        moved.bytes > 0
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
        let gap_bytes = self.inner.costs().gap_bytes();
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
        let is_known = oldest.is_none_or(is_recent) || self.asked.load(Ordering::Relaxed);
        !(is_known || asked_lately(&self.cells))
    }

    fn confirm(&self, oldest: Option<SystemTime>) -> Result<(), StoreError> {
        if self.must_ask(oldest) {
            self.inner.read_exact_at(0, &mut [0])?;
            self.asked.store(true, Ordering::Relaxed);
            note_asked(&self.cells);
        }
        Ok(())
    }
}

/// Note that the server was asked, of an object that is given for credentials: of others the time
/// stands with the bytes.
fn note_asked(cells: &Cells) {
    let asker = cells.opened().asker();
    if asker.1.is_some() {
        cells.blocks().note_asked(asker);
    }
}

fn asked_lately(cells: &Cells) -> bool {
    let asker = cells.opened().asker();
    asker.1.is_some() && cells.blocks().asked_lately(&asker)
}

/// What is to be asked for.
fn missing(parts: &[Part]) -> impl Iterator<Item = Range<u64>> {
    parts.iter().filter_map(|part| match part {
        Part::Missing(range) => Some(range.clone()),
        Part::Held(_) => None,
    })
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

    fn key(&self) -> &str {
        self.inner.key()
    }

    fn identity(&self) -> Option<u64> {
        self.inner.identity()
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

    fn questions(&self, requests: u64, streams: u32) -> u64 {
        self.inner.questions(requests, streams)
    }

    fn can_be_assumed(&self) -> bool {
        self.inner.can_be_assumed()
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
        Some(Traffic { bytes: asks, requests: asks, ..Traffic::default() })
    }

    fn costs_at_hand(&self) -> &Costs {
        &self.files
    }

    fn take_traffic(&self) -> Traffic {
        let AvoidedTraffic { peers, cache } = &*self.came;
        let mut traffic = self.inner.take_traffic();
        (traffic.from_peers, traffic.from_cache) = (peers.take(), cache.take());
        traffic
    }

    fn take_notes(&self) -> Vec<String> {
        let mut notes = self.inner.take_notes();
        notes.extend(self.cells.take_notes());
        notes
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        let range = offset..offset.saturating_add(buffer.len() as u64);
        let bytes = self.fetch(vec![range], 1).next().transpose()?.unwrap_or_default();
        buffer.copy_from_slice(&bytes);
        Ok(())
    }

    fn fetch(&self, requests: Vec<Range<u64>>, streams: u32) -> Pieces {
        let (mut parts, mut ends, mut oldest) = self.divided(&requests);
        if self.ask_peers(&parts, streams) {
            (parts, ends, oldest) = self.divided(&requests);
        }
        if let Err(error) = self.confirm(oldest) {
            return Box::new(std::iter::once(Err(error)));
        }
        let missing: Vec<Range<u64>> = missing(&parts).collect();
        let asked = (!missing.is_empty()).then(|| self.inner.fetch(missing, streams));
        Box::new(AssembledRead {
            inner: self.inner.clone(),
            asked,
            requests: ends.into_iter(),
            parts: parts.into_iter(),
            given: 0,
            last: None,
            gathered: PendingCells::new(self.cells.clone()),
            confirmed: self.asked.clone(),
            came: self.came.clone(),
            streams,
            again: None,
        })
    }

    fn measure(
        &self,
        requests: &[Range<u64>],
        streams: u32,
        fresh: bool,
    ) -> Result<Vec<RequestTiming>, StoreError> {
        self.inner.measure(requests, streams, fresh)
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_peers;
