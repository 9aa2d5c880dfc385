//! Cells: the cached bytes of 256 KiB of an object.

use crate::BlockCache;
use bytes::Bytes;
use std::ops::Range;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use swathe_disk_cache::value_in;
use swathe_store_api::Source;

/// Bytes of an object in a cell.
pub(crate) const CELL_BYTES: u64 = 256 << 10;
/// When the oldest bytes were fetched (seconds since 1970), and the number of extents.
const HEAD_BYTES: usize = 8 + 4;
/// Start and length of an extent.
const EXTENT_BYTES: usize = 4 + 4;
/// Extents that a peek reads; a cell with more is read whole.
const PEEKED_EXTENTS: usize = 510;
/// Cells that are looked at to estimate how much of an object is cached.
const MOST_SAMPLES: u64 = 1024;
/// Cells that are looked at to list the cached ones for other workers: those of 64 GiB.
const MOST_LISTED_CELLS: u64 = 1 << 18;

/// The cells of one version of an object.
pub(crate) struct Cells {
    blocks: Arc<BlockCache>,
    of: Arc<OpenedObject>,
    /// Whether those who have it, too, are about to go.
    only: bool,
}

/// One version of an object.
#[derive(Debug)]
pub(crate) struct OpenedObject {
    /// As its reader named it.
    pub(crate) name: String,
    pub(crate) url: String,
    /// Prefix of the keys of its cells.
    object: String,
    size: u64,
    /// Seconds of a request to its store, and seconds for each byte.
    request_s: f64,
    byte_s: f64,
    /// Who asks for it, as [`Source::identity`].
    identity: Option<u64>,
}

/// An object as a peer needs it to request its cells, and the cells that are here.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectDescription {
    /// Its URL, as users may see it.
    pub url: String,
    /// Prefix of the keys of its cells: place and version.
    pub object: String,
    /// Bytes of all of it.
    pub size: u64,
    /// Seconds of a request to its store.
    pub request_s: f64,
    /// Seconds for each byte.
    pub byte_s: f64,
    /// Numbers of the cells that are here, most likely.
    pub cells: Vec<u64>,
}

impl OpenedObject {
    /// An object as another worker describes it.
    pub(crate) fn from_description(name: &str, description: &ObjectDescription) -> OpenedObject {
        OpenedObject {
            name: name.to_string(),
            url: description.url.clone(),
            object: description.object.clone(),
            size: description.size,
            request_s: description.request_s,
            byte_s: description.byte_s,
            identity: None,
        }
    }

    /// The key for the time when its server was asked: the permissions of others do not count.
    pub(crate) fn reader_key(&self) -> (String, Option<u64>) {
        (self.object.clone(), self.identity)
    }

    /// The fetch time of bytes that arrive now, for later readers. Bytes read with credentials are
    /// never recent: a reader with other ones, and every other process, has to ask the server.
    pub(crate) fn fetched_s(&self) -> u64 {
        if self.identity.is_none() { now_s() } else { 0 }
    }

    /// Whether this is the same object, at the same version.
    pub(crate) fn is_same(&self, other: &OpenedObject) -> bool {
        self.object == other.object && self.size == other.size
    }
}

impl OpenedObject {
    /// Its name in events; the URL that was opened may hold credentials.
    pub(crate) fn display_name(&self) -> &str {
        if self.name.contains("://") { &self.url } else { &self.name }
    }
}

impl Cells {
    /// The cells of a source with this name.
    pub(crate) fn new(blocks: Arc<BlockCache>, name: &str, source: &dyn Source) -> Cells {
        let url = source.url().to_string();
        let object = format!("{}\n{}", source.key(), source.version());
        let (costs, size) = (source.costs(), source.len());
        let request_s = costs.latency_s();
        let byte_s = (costs.request.seconds(CELL_BYTES as f64) - request_s) / CELL_BYTES as f64;
        let (name, identity) = (name.to_string(), source.identity());
        let of = OpenedObject { name, url, object, size, request_s, byte_s, identity };
        Cells::of(blocks, Arc::new(of))
    }

    pub(crate) fn of(blocks: Arc<BlockCache>, of: Arc<OpenedObject>) -> Cells {
        Cells { blocks, of, only: false }
    }

    /// The same, worth what its store asks for it: nobody else will have it.
    pub(crate) fn only(self, only: bool) -> Cells {
        Cells { only, ..self }
    }

    pub(crate) fn object(&self) -> &Arc<OpenedObject> {
        &self.of
    }

    pub(crate) fn take_notes(&self) -> Vec<String> {
        let note = self.blocks.refusal.lock().unwrap_or_else(PoisonError::into_inner).note.take();
        self.blocks.peers.take_notes().into_iter().chain(note).collect()
    }

    pub(crate) fn blocks(&self) -> &BlockCache {
        &self.blocks
    }

    /// Limit of the bytes of all objects.
    pub(crate) fn limit(&self) -> u64 {
        self.blocks.disk.limit()
    }

    /// The description of the object for other workers.
    pub(crate) fn describe(&self) -> ObjectDescription {
        let OpenedObject { url, object, size, request_s, byte_s, .. } = &*self.of;
        let count = size.div_ceil(CELL_BYTES).min(MOST_LISTED_CELLS);
        ObjectDescription {
            url: url.clone(),
            object: object.clone(),
            size: *size,
            request_s: *request_s,
            byte_s: *byte_s,
            cells: (0..count).filter(|&number| self.blocks.disk.has(&self.key(number))).collect(),
        }
    }

    /// The numbers of those cells that are not wholly here.
    pub(crate) fn lacking(&self, numbers: &[u64]) -> Vec<u64> {
        let is_whole = |number| self.peek(number).is_some_and(|c| c.bytes() == self.len(number));
        let count = self.of.size.div_ceil(CELL_BYTES);
        let numbers = numbers.iter().copied().filter(|&number| number < count);
        numbers.filter(|&number| !is_whole(number)).collect()
    }

    /// Count the cells that are cached, at least in part.
    pub(crate) fn cached_count(&self, numbers: &[u64]) -> u64 {
        numbers.iter().filter(|&&number| self.blocks.disk.has(&self.key(number))).count() as u64
    }

    /// Seconds to fetch this many bytes of it if they were not cached: from its store, or from
    /// a peer that has them.
    pub(crate) fn refetch_s(&self, bytes: u64) -> f64 {
        let store_s = self.of.request_s + bytes as f64 * self.of.byte_s;
        let peers = (!self.only).then_some(&self.blocks.peers);
        let peer_s = peers.and_then(|peers| peers.refetch_s(&self.of.name, bytes));
        peer_s.map_or(store_s, |peer_s| store_s.min(peer_s))
    }

    /// An estimate of the cached bytes of the object; of many cells, from a sample.
    pub(crate) fn cached_bytes(&self) -> u64 {
        let count = self.of.size.div_ceil(CELL_BYTES);
        let step = count.div_ceil(MOST_SAMPLES).max(1);
        let numbers = (0..count).step_by(step as usize);
        let sample_count = count.div_ceil(step).max(1);
        let bytes: u64 = numbers.filter_map(|number| self.peek(number)).map(|c| c.bytes()).sum();
        (bytes as f64 * count as f64 / sample_count as f64) as u64
    }

    /// Store a cell from a peer; `None` if it is not that cell.
    pub(crate) fn adopt(&self, number: u64, file: Bytes) -> Option<()> {
        let cell = Cell::whole(number, value_in(file, &self.key(number))?)?;
        let length = self.len(number) as usize;
        let pieces: Vec<_> = cell.owned_pieces().collect();
        if cell.extents.last().is_none_or(|last| last.end > length) {
            return None;
        }
        // By the clock of another machine.
        self.store(number, &pieces, cell.fetched_s.min(now_s()));
        Some(())
    }

    pub(crate) fn key(&self, number: u64) -> String {
        format!("{}\n{number}", self.of.object)
    }

    fn len(&self, number: u64) -> u64 {
        CELL_BYTES.min(self.of.size.saturating_sub(number * CELL_BYTES))
    }

    /// Which bytes of a cell are here, most likely, without the bytes.
    pub(crate) fn peek(&self, number: u64) -> Option<Cell> {
        let most = HEAD_BYTES + PEEKED_EXTENTS * EXTENT_BYTES;
        let value = self.blocks.disk.peek(&self.key(number), most)?;
        match Cell::parse(number, &value) {
            Some((cell, _)) => Some(cell),
            None => self.load(number),
        }
    }

    /// The cached part of a cell, checked.
    pub(crate) fn load(&self, number: u64) -> Option<Cell> {
        let weight = |bytes| self.refetch_s(bytes);
        Cell::whole(number, self.blocks.disk.get_with_weight(&self.key(number), Some(&weight))?)
    }

    /// Add pieces, each with its position in the cell, to those cached.
    pub(crate) fn store(&self, number: u64, pieces: &[(usize, Bytes)], fetched_s: u64) {
        let length = self.len(number) as usize;
        let key = self.key(number);
        let weight = |bytes| self.refetch_s(bytes);
        match pieces {
            [(0, piece)] if piece.len() == length => {
                let mut value = head(fetched_s, &[0..length]);
                value.extend_from_slice(piece);
                self.blocks.keep(|disk| disk.put_with_weight(&key, &value, Some(&weight)));
            }
            _ => self.blocks.keep(|disk| {
                disk.update(&key, Some(&weight), |old| {
                    let old = old.and_then(|value| Cell::whole(number, value));
                    join_pieces(old.as_ref(), pieces, length, fetched_s)
                })
            }),
        }
    }
}

/// The value of a cell with new pieces; `None` if all of them were cached.
fn join_pieces(
    old: Option<&Cell>,
    pieces: &[(usize, Bytes)],
    length: usize,
    fetched_s: u64,
) -> Option<Vec<u8>> {
    let mut extents: Vec<Range<usize>> =
        pieces.iter().map(|(at, piece)| *at..at + piece.len()).collect();
    extents.extend(old.iter().flat_map(|old| old.extents.iter().cloned()));
    let extents = merge_ranges(extents);
    if old.is_some_and(|old| old.extents == extents) {
        return None;
    }
    let mut all = vec![0; length];
    let pieces = pieces.iter().map(|(at, piece)| (*at, &piece[..]));
    for (at, piece) in old.into_iter().flat_map(Cell::pieces).chain(pieces) {
        all.get_mut(at..at + piece.len())?.copy_from_slice(piece);
    }
    let fetched_s = old.map_or(u64::MAX, |old| old.fetched_s).min(fetched_s);
    let mut value = head(fetched_s, &extents);
    extents.into_iter().for_each(|extent| value.extend_from_slice(&all[extent]));
    Some(value)
}

/// The head of a cell: the time of the fetch, and its extents.
fn head(fetched_s: u64, extents: &[Range<usize>]) -> Vec<u8> {
    let bytes: usize = extents.iter().map(|extent| EXTENT_BYTES + extent.len()).sum();
    let mut head = Vec::with_capacity(HEAD_BYTES + bytes);
    head.extend_from_slice(&fetched_s.to_le_bytes());
    head.extend_from_slice(&(extents.len() as u32).to_le_bytes());
    for extent in extents {
        head.extend_from_slice(&(extent.start as u32).to_le_bytes());
        head.extend_from_slice(&(extent.len() as u32).to_le_bytes());
    }
    head
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Some of the bytes of a cell.
pub(crate) struct Cell {
    start: u64,
    fetched_s: u64,
    /// Places in the cell, ascending, apart.
    extents: Vec<Range<usize>>,
    /// The bytes of all extents, one after the other; none after a peek.
    data: Bytes,
}

impl Cell {
    /// A cell without its bytes, and where those start; `None` if it is not a cell.
    fn parse(number: u64, value: &[u8]) -> Option<(Cell, usize)> {
        let (head, rest) = value.split_at_checked(HEAD_BYTES)?;
        let fetched_s = u64::from_le_bytes(head[..8].try_into().ok()?);
        let count = u32::from_le_bytes(head[8..].try_into().ok()?) as usize;
        let table_bytes = count.checked_mul(EXTENT_BYTES)?;
        let mut extents = Vec::new();
        let mut from = 0;
        for entry in rest.get(..table_bytes)?.chunks_exact(EXTENT_BYTES) {
            let start = u32::from_le_bytes(entry[..4].try_into().ok()?) as usize;
            let end = start.checked_add(u32::from_le_bytes(entry[4..].try_into().ok()?) as usize)?;
            if start < from || end <= start || end > CELL_BYTES as usize {
                return None;
            }
            from = end + 1;
            extents.push(start..end);
        }
        let start = number * CELL_BYTES;
        Some((Cell { start, fetched_s, extents, data: Bytes::new() }, HEAD_BYTES + table_bytes))
    }

    /// A cell with its bytes.
    fn whole(number: u64, value: Bytes) -> Option<Cell> {
        let (mut cell, data_at) = Cell::parse(number, &value)?;
        let bytes: usize = cell.extents.iter().map(Range::len).sum();
        cell.data = value.slice(data_at..);
        (cell.data.len() == bytes).then_some(cell)
    }

    /// When the oldest of its bytes were fetched.
    pub(crate) fn fetched_at(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.fetched_s)
    }

    /// The parts of a range of the object that are here, ascending.
    pub(crate) fn ranges(&self, of: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
        self.extents.iter().filter_map(|extent| {
            let start = of.start.max(self.start + extent.start as u64);
            let end = of.end.min(self.start + extent.end as u64);
            (start < end).then_some(start..end)
        })
    }

    /// The bytes of a range of the object, if all are here.
    pub(crate) fn get(&self, range: Range<u64>) -> Option<&[u8]> {
        let from = range.start.checked_sub(self.start)? as usize;
        let length = (range.end - range.start) as usize;
        let (at, piece) = self.pieces().find(|(at, piece)| from < at + piece.len())?;
        let skip = from.checked_sub(at)?;
        piece.get(skip..skip + length)
    }

    fn bytes(&self) -> u64 {
        self.extents.iter().map(|extent| extent.len() as u64).sum()
    }

    /// As [`Cell::pieces`], as owned bytes.
    fn owned_pieces(&self) -> impl Iterator<Item = (usize, Bytes)> {
        self.pieces().map(|(at, piece)| (at, self.data.slice_ref(piece)))
    }

    /// Its extents: each one's place, and bytes.
    fn pieces(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let mut rest = &self.data[..];
        self.extents.iter().map_while(move |extent| {
            let (piece, tail) = rest.split_at_checked(extent.end - extent.start)?;
            rest = tail;
            Some((extent.start, piece))
        })
    }
}

/// The same bytes in ascending ranges that do not touch.
fn merge_ranges(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut union: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match union.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => union.push(range),
        }
    }
    union
}

/// Fetched bytes of the current cell: stored once, when the next one begins.
pub(crate) struct PendingCells {
    cells: Arc<Cells>,
    number: u64,
    pieces: Vec<(usize, Bytes)>,
}

impl PendingCells {
    pub(crate) fn new(cells: Arc<Cells>) -> PendingCells {
        PendingCells { cells, number: 0, pieces: Vec::new() }
    }

    pub(crate) fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Take bytes of the object that start at `start`.
    pub(crate) fn add(&mut self, mut start: u64, bytes: &Bytes) {
        let mut rest = bytes.clone();
        while !rest.is_empty() {
            let (number, at) = (start / CELL_BYTES, start % CELL_BYTES);
            if number != self.number {
                self.store();
                self.number = number;
            }
            let piece = rest.split_to(rest.len().min((CELL_BYTES - at) as usize));
            start += piece.len() as u64;
            self.pieces.push((at as usize, piece));
        }
    }

    fn store(&mut self) {
        let pieces = std::mem::take(&mut self.pieces);
        if !pieces.is_empty() {
            self.cells.store(self.number, &pieces, self.cells.object().fetched_s());
        }
    }
}

impl Drop for PendingCells {
    fn drop(&mut self) {
        self.store();
    }
}
