//! Bytes from servers, cached on local disk.
//!
//! An object is divided into cells of 256 KiB. The fetched bytes of a cell are one value in a disk
//! cache, under the object's key and version. So a changed object is simply absent, and a block
//! that was torn or damaged, whichever process was killed, is never served.
#![warn(missing_docs)]

mod assembled_read;
mod cached_store;
mod cell;
mod division;
mod peer;
mod peer_client;
mod peer_pull;
mod peer_server;
mod refetch;
mod tls;
mod whole_fetch;

use assembled_read::AssembledRead;
use bytes::Bytes;
pub use cached_store::cached_stores;
pub use cell::ObjectDescription;
use cell::{CELL_BYTES, Cells, OpenedObject, PendingCells};
use division::{Division, LastCell};
use peer_client::Peers;
pub use peer_pull::PullResult;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use swathe_disk_cache::{DiskCache, limit_of};
use swathe_plan::{Connections, Costs, Factors, Load, Others, Way};
use swathe_store_api::{
    MultiplexTiming, Pieces, RequestTiming, Source, StoreError, TRUST, Traffic, TrafficCount,
    VectorTiming, Version,
};
pub use tls::Identity;
use whole_fetch::{WholeFetch, WholeFetches};

/// Prefix of its environment variables.
const VARIABLES: &str = "SWATHE_CACHE";
/// Limit if `$SWATHE_CACHE_BYTES` is not set.
const LIMIT_BYTES: u64 = 4 << 30;
/// After the disk refused, nothing is stored for this time.
const REFUSAL_PAUSE: Duration = Duration::from_secs(60);
/// Objects with a recorded time of the last check at their server.
const MOST_CHECKS: usize = 10_000;
/// Objects with a recorded name.
const MOST_OBJECTS: usize = 100_000;

/// Bytes of objects on servers, shared by the processes of a user.
#[derive(Debug)]
pub struct BlockCache {
    disk: DiskCache,
    refusal: Mutex<WriteRefusals>,
    peers: Peers,
    /// Objects that were opened last, by what they are called.
    objects: Mutex<HashMap<String, Arc<OpenedObject>>>,
    checks: Mutex<HashMap<ReaderKey, Instant>>,
    whole_fetches: WholeFetches,
}

/// An object at a version, and its reader.
type ReaderKey = (String, Option<u64>);

/// The errors of the disk when it did not take a block.
#[derive(Debug, Default)]
struct WriteRefusals {
    last: Option<Instant>,
    /// Not reported yet.
    note: Option<String>,
    is_reported: bool,
}

impl BlockCache {
    /// The user's cache, the same for all of this process; `None` if it is switched off with a
    /// limit of 0, or has no folder.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] if `$SWATHE_CACHE_BYTES` is not a number.
    pub fn user() -> Result<Option<Arc<BlockCache>>, StoreError> {
        static BLOCKS: OnceLock<Option<Arc<BlockCache>>> = OnceLock::new();
        if limit_of("blocks", VARIABLES, LIMIT_BYTES)? == 0 {
            return Ok(None);
        }
        let open = || Some(Arc::new(BlockCache::on(BlockCache::of_user().ok()?)));
        Ok(BLOCKS.get_or_init(open).clone())
    }

    /// The user's folder: `$SWATHE_CACHE_DIR`, else `$XDG_CACHE_HOME/swathe/blocks`,
    /// else `~/.cache/swathe/blocks`; at most `$SWATHE_CACHE_BYTES` (4 GiB).
    ///
    /// # Errors
    /// As [`DiskCache::user`].
    pub fn of_user() -> Result<DiskCache, StoreError> {
        DiskCache::user("blocks", VARIABLES, LIMIT_BYTES)
    }

    /// Blocks on a disk.
    pub fn on(disk: DiskCache) -> BlockCache {
        let (refusal, objects, checks, whole_fetches) = Default::default();
        let peers = Peers::default();
        BlockCache { disk, refusal, peers, objects, checks, whole_fetches }
    }

    /// Fetch blocks from peers from now on, with an identity by TLS only.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] if the identity is unusable.
    pub fn use_peers(&self, identity: Option<&Identity>) -> Result<(), StoreError> {
        self.peers.identify(identity)
    }

    /// Set the peers that have blocks of an object: URL and token of each, in the order of use.
    pub fn set_peers(&self, object: &str, peers: Vec<(String, String)>) {
        self.peers.set(object, peers);
    }

    /// Cached bytes of an object that this process has opened under this very name.
    pub fn cached_bytes(self: &Arc<BlockCache>, object: &str) -> u64 {
        self.cells(object).map_or(0, |cells| cells.cached_bytes())
    }

    /// The cells of an object that this process has opened under this very name.
    fn cells(self: &Arc<BlockCache>, object: &str) -> Option<Cells> {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = objects.get(object).cloned();
        drop(objects);
        entry.map(|entry| Cells::of(self.clone(), entry))
    }

    /// Whether the disk takes blocks.
    fn takes(&self) -> bool {
        let refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
        refusal.last.is_none_or(|last| last.elapsed() >= REFUSAL_PAUSE)
    }

    /// Record that the server confirmed the version of an object just now, and served it.
    fn record_check(&self, reader_key: ReaderKey) {
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        if checks.len() >= MOST_CHECKS {
            checks.retain(|_, at| at.elapsed() < TRUST);
        }
        if checks.len() >= MOST_CHECKS {
            checks.clear(); // they are checked once more than needed
        }
        checks.insert(reader_key, Instant::now());
    }

    /// Whether this process checked recently, with these credentials.
    fn is_checked_recently(&self, reader_key: &ReaderKey) -> bool {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        checks.get(reader_key).is_some_and(|at| at.elapsed() < TRUST)
    }

    fn note_object(&self, object: &Arc<OpenedObject>) {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        if objects.len() >= MOST_OBJECTS && !objects.contains_key(&object.name) {
            objects.clear(); // an object that is needed again is opened again
        }
        objects.insert(object.name.clone(), object.clone());
    }

    /// Store a block, if the disk takes it.
    fn keep(&self, put: impl FnOnce(&DiskCache) -> Result<(), StoreError>) {
        if !self.takes() {
            return;
        }
        if let Err(error) = put(&self.disk) {
            let mut refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
            refusal.last = Some(Instant::now());
            if !refusal.is_reported {
                refusal.is_reported = true;
                refusal.note = Some(format!("what servers sent was not kept: {error}"));
            }
        }
    }
}

/// A source with a cache: bytes are read from cached blocks if possible, and stored if not.
#[derive(Clone)]
pub(crate) struct CachedSource {
    inner: Arc<dyn Source>,
    cells: Arc<Cells>,
    /// The costs of local files, as blocks are files.
    files: Costs,
    /// Whether the server confirmed the version.
    is_confirmed: Arc<AtomicBool>,
    avoided_traffic: Arc<AvoidedTraffic>,
    whole_fetch: Arc<WholeFetch>,
}

/// Traffic that the server was spared, since the last call.
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
    fn add(&self, traffic: TrafficCount) {
        self.bytes.fetch_add(traffic.bytes, Ordering::Relaxed);
        self.requests.fetch_add(traffic.requests, Ordering::Relaxed);
    }

    fn take(&self) -> TrafficCount {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        TrafficCount { bytes: take(&self.bytes), requests: take(&self.requests) }
    }
}

impl CachedSource {
    /// `name`: as its reader named it.
    pub fn new(
        inner: Arc<dyn Source>,
        name: &str,
        blocks: Arc<BlockCache>,
        is_confirmed: bool,
    ) -> CachedSource {
        let cells = Arc::new(Cells::new(blocks, name, &*inner));
        cells.blocks().note_object(cells.object());
        if is_confirmed {
            record_check(&cells);
        }
        let (is_confirmed, avoided_traffic) =
            (Arc::new(AtomicBool::new(is_confirmed)), Arc::default());
        let whole_fetch = cells.blocks().whole_fetch(cells.object().reader_key());
        CachedSource {
            inner,
            cells,
            files: Costs::local(),
            is_confirmed,
            avoided_traffic,
            whole_fetch,
        }
    }

    /// The same, with other costs of files.
    pub fn on(self, files: Costs) -> CachedSource {
        CachedSource { files, ..self }
    }

    fn divide(&self, requests: &[Range<u64>]) -> Division {
        Division::new(&self.cells, self.len(), self.inner.costs().gap_bytes(), requests)
    }

    /// Fetch missing parts from peers, if that is predicted to take less than the server does.
    /// Returns whether any arrived.
    fn ask_peers(&self, division: &Division, way: Way) -> bool {
        let blocks = self.cells.blocks();
        if !blocks.peers.any(&self.cells.object().name) || !blocks.takes() {
            return false;
        }
        let mut ranges: Vec<Range<u64>> = division.missing().collect();
        ranges.retain(|range| !range.is_empty() && range.end <= self.len());
        let store_s = self.read_s(&ranges, way);
        let cells = |range: Range<u64>| range.start / CELL_BYTES..=(range.end - 1) / CELL_BYTES;
        let mut numbers: Vec<u64> = ranges.into_iter().flat_map(cells).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let traffic = blocks.peers.get(&self.cells, numbers, store_s);
        self.avoided_traffic.peers.add(traffic);
        traffic.bytes > 0
    }

    /// Predicted seconds to read ranges from the server.
    fn read_s(&self, ranges: &[Range<u64>], way: Way) -> f64 {
        let load = match &self.costs().multi_range {
            Some(multi_range) => Load::of_vectors(ranges, way.ranges_per_request, multi_range),
            None => Load::of(ranges),
        };
        let load = Load { multiplexed: way.multiplexed, ..load };
        self.costs().seconds(load, way.streams.max(1))
    }

    /// Read the parts of requests: from blocks, or from the server.
    fn fetch_parts(&self, division: Division, way: Way) -> Pieces {
        if let Err(error) = self.confirm(division.oldest) {
            return Box::new(std::iter::once(Err(error)));
        }
        let missing: Vec<Range<u64>> = division.missing().collect();
        let answers = (!missing.is_empty()).then(|| self.inner.fetch_by(missing, way));
        Box::new(AssembledRead {
            inner: self.inner.clone(),
            answers,
            requests: division.ends.into_iter(),
            parts: division.parts.into_iter(),
            part_number: 0,
            last: None,
            pending: PendingCells::new(self.cells.clone()),
            is_confirmed: self.is_confirmed.clone(),
            avoided_traffic: self.avoided_traffic.clone(),
            streams: if way.multiplexed { 1 } else { way.streams },
            refetch: None,
        })
    }

    /// Whether the server must confirm that this is still the object, as the last check is too old.
    fn must_check(&self, oldest: Option<SystemTime>) -> bool {
        // Bytes from the future were fetched before the clock was set.
        let is_recent = |fetched_at: SystemTime| fetched_at.elapsed().is_ok_and(|age| age < TRUST);
        let is_known = oldest.is_none_or(is_recent) || self.is_confirmed.load(Ordering::Relaxed);
        !(is_known || is_checked_recently(&self.cells))
    }

    fn confirm(&self, oldest: Option<SystemTime>) -> Result<(), StoreError> {
        if self.must_check(oldest) {
            self.inner.read_exact_at(0, &mut [0])?;
            self.is_confirmed.store(true, Ordering::Relaxed);
            record_check(&self.cells);
        }
        Ok(())
    }
}

/// Record that the server was asked, for an object read with credentials: for others the time
/// stands with the bytes.
fn record_check(cells: &Cells) {
    let reader_key = cells.object().reader_key();
    if reader_key.1.is_some() {
        cells.blocks().record_check(reader_key);
    }
}

fn is_checked_recently(cells: &Cells) -> bool {
    let reader_key = cells.object().reader_key();
    reader_key.1.is_some() && cells.blocks().is_checked_recently(&reader_key)
}

impl Source for CachedSource {
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

    fn connections(&self) -> Connections {
        self.inner.connections()
    }

    fn factors(&self) -> Factors {
        self.inner.factors()
    }

    fn others(&self) -> Others {
        self.inner.others()
    }

    fn first(&self) -> Bytes {
        self.inner.first()
    }

    fn is_settled(&self) -> bool {
        self.inner.is_settled()
    }

    fn confirm_absence(&self) -> Result<(), StoreError> {
        self.inner.confirm_absence()
    }

    fn questions(&self, requests: u64, streams: u32) -> u64 {
        self.inner.questions(requests, streams)
    }

    fn can_be_assumed(&self) -> bool {
        self.inner.can_be_assumed()
    }

    fn at_hand(&self, ranges: &[Range<u64>]) -> Option<Traffic> {
        let gap_bytes = self.inner.costs().gap_bytes();
        let (mut division, mut last_cell): (_, LastCell) = (Division::default(), None);
        let mut oldest = None;
        for range in ranges {
            division.parts.clear();
            if range.end > self.len() {
                return None;
            }
            let fetched_at = division.divide(&self.cells, gap_bytes, range, &mut last_cell);
            if division.missing().next().is_some() {
                return None;
            }
            oldest = oldest.min(fetched_at).or(fetched_at);
        }
        let asks = u64::from(self.must_check(oldest));
        Some(Traffic { bytes: asks, requests: asks, ..Traffic::default() })
    }

    fn costs_at_hand(&self) -> &Costs {
        &self.files
    }

    fn begin_cut(&self) {
        self.whole_fetch.begin_cut();
    }

    fn take_traffic(&self) -> Traffic {
        let AvoidedTraffic { peers, cache } = &*self.avoided_traffic;
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

    fn fetch_by(&self, ranges: Vec<Range<u64>>, way: Way) -> Pieces {
        let mut division = self.divide(&ranges);
        if self.ask_peers(&division, way) {
            division = self.divide(&ranges);
        }
        let missing_ranges: Vec<Range<u64>> = division.missing().collect();
        let is_cached = || self.divide(&ranges).missing().next().is_none();
        let read_s = || self.read_s(&missing_ranges, way);
        if !missing_ranges.is_empty() && self.await_whole(read_s, is_cached) {
            division = self.divide(&ranges);
        }
        self.fetch_parts(division, way)
    }

    fn measure(
        &self,
        requests: &[Range<u64>],
        streams: u32,
        fresh: bool,
    ) -> Result<Vec<RequestTiming>, StoreError> {
        self.inner.measure(requests, streams, fresh)
    }

    fn measure_vector(
        &self,
        ranges: &[Range<u64>],
        limit: Duration,
    ) -> Result<VectorTiming, StoreError> {
        self.inner.measure_vector(ranges, limit)
    }

    fn measure_multiplexed(
        &self,
        ranges: &[Range<u64>],
        streams: u32,
        limit: Duration,
    ) -> Result<MultiplexTiming, StoreError> {
        self.inner.measure_multiplexed(ranges, streams, limit)
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_peers;
#[cfg(test)]
mod tests_whole;
