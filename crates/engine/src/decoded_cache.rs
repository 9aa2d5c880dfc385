//! Decoded blocks and tiles, cached in the memory of this process: a second cut from the same
//! object decodes nothing twice.

use crate::error::EngineError;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use swathe_disk_cache::limit_of;
use swathe_store_api::{Source, TRUST};

/// Bytes of a compressed stream that are cached together.
pub(crate) const BLOCK_BYTES: u64 = 64 << 10;
/// Limit if `$SWATHE_MEMORY_BYTES` is not set.
const LIMIT_BYTES: u64 = 256 << 20;
/// A read is divided into at most this many blocks: 4 GiB.
const MOST_BLOCKS: u64 = 1 << 16;
/// Larger pieces are not cached: a bound on what the first cut from one does for later ones.
const MOST_BYTES: usize = 4 << 20;
/// Memory of a piece besides its bytes, about.
const ENTRY_BYTES: u64 = 200;
/// Initial capacity, in pieces.
const SCAN_LIMIT: usize = 1024;

/// A piece of what an object holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Piece {
    /// The elements of a tile or chunk, decoded. `part`: number of the HDU or array.
    Tile { part: usize, tile: u64 },
    /// One block of the decompressed stream.
    Block(u64),
}

type Key = (Arc<str>, Piece);
type PieceCache = Cache<Key, CacheEntry, EntryWeight>;

#[derive(Clone)]
struct CacheEntry {
    bytes: Arc<[u8]>,
    at: Instant,
}

#[derive(Clone)]
struct EntryWeight;

impl Weighter<Key, CacheEntry> for EntryWeight {
    fn weight(&self, _: &Key, entry: &CacheEntry) -> u64 {
        entry.bytes.len() as u64 + ENTRY_BYTES
    }
}

/// The cache for one version of one object.
#[derive(Clone)]
pub(crate) struct DecodedCache {
    pieces: &'static PieceCache,
    object: Arc<str>,
    /// An object on a server may have changed without our knowing.
    is_local: bool,
}

impl DecodedCache {
    /// The cache for this object; `None` if memory is switched off with a limit of 0, or if a
    /// change of the object would not show in its version.
    ///
    /// # Errors
    /// If `$SWATHE_MEMORY_BYTES` is not a number.
    pub(crate) fn of(source: &dyn Source) -> Result<Option<DecodedCache>, EngineError> {
        static PIECES: OnceLock<PieceCache> = OnceLock::new();
        let limit = limit_of("memory", "SWATHE_MEMORY", LIMIT_BYTES)?;
        if limit == 0 || !source.is_settled() {
            return Ok(None);
        }
        let pieces = PIECES.get_or_init(|| Cache::with_weighter(SCAN_LIMIT, limit, EntryWeight));
        // A server may refuse to others what it serves to some.
        let (key, version, identity) = (source.key(), source.version(), source.identity());
        let object = format!("{key}\n{version}\n{identity:?}").into();
        Ok(Some(DecodedCache { pieces, object, is_local: source.is_local() }))
    }

    /// Whether a piece of this many bytes can be cached.
    pub(crate) fn takes(bytes: usize) -> bool {
        bytes <= MOST_BYTES
    }

    /// The bytes of a piece, if they are cached.
    pub(crate) fn get(&self, piece: Piece) -> Option<Arc<[u8]>> {
        let CacheEntry { bytes, at } = self.pieces.get(&(self.object.clone(), piece))?;
        (self.is_local || at.elapsed() < TRUST).then_some(bytes)
    }

    /// Keep the bytes of a piece.
    pub(crate) fn put(&self, piece: Piece, bytes: &[u8]) -> Arc<[u8]> {
        let bytes: Arc<[u8]> = bytes.into();
        let entry = CacheEntry { bytes: bytes.clone(), at: Instant::now() };
        self.pieces.insert((self.object.clone(), piece), entry);
        bytes
    }
}

/// The blocks that hold a window of a stream.
pub(crate) fn blocks_of(window: &Range<u64>) -> Range<u64> {
    window.start / BLOCK_BYTES..window.end.div_ceil(BLOCK_BYTES)
}

/// The range of a block in its stream; the last one is shorter.
pub(crate) fn range_of(block: u64) -> Range<u64> {
    block * BLOCK_BYTES..block.saturating_add(1).saturating_mul(BLOCK_BYTES)
}

/// Whether the blocks of these windows are few enough to be looked up one by one: a damaged header
/// may ask for any number of bytes.
pub(crate) fn takes_blocks_of(windows: &[Range<u64>]) -> bool {
    let blocks = windows.iter().map(|window| (window.end - window.start) / BLOCK_BYTES + 2);
    blocks.fold(0, u64::saturating_add) < MOST_BLOCKS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(pieces: &'static PieceCache, object: &str) -> DecodedCache {
        DecodedCache { pieces, object: object.into(), is_local: true }
    }

    #[test]
    fn the_limit_holds_and_objects_are_kept_apart() {
        const LIMIT: u64 = 1 << 20;
        let pieces = Box::leak(Box::new(Cache::with_weighter(SCAN_LIMIT, LIMIT, EntryWeight)));
        let (one, other) = (memory(pieces, "one"), memory(pieces, "other"));
        for number in 0..500 {
            one.put(Piece::Block(number), &[1; 10_000]);
            other.put(Piece::Block(number), &[2; 3_000]);
            assert!(pieces.weight() <= LIMIT, "{}", pieces.weight());
            for (memory, byte) in [(&one, 1), (&other, 2)] {
                let bytes = memory.get(Piece::Block(number));
                assert!(bytes.is_none_or(|bytes| bytes.iter().all(|&bytes| bytes == byte)));
            }
        }
        let blocks = (0..500).filter(|&number| one.get(Piece::Block(number)).is_some()).count();
        assert!((20..=105).contains(&blocks), "{blocks}");
        assert_eq!(one.get(Piece::Tile { part: 0, tile: 499 }), None);
    }

    #[test]
    fn blocks_cover_their_window() {
        assert_eq!(blocks_of(&(0..1)), 0..1);
        assert_eq!(blocks_of(&(BLOCK_BYTES - 1..BLOCK_BYTES + 1)), 0..2);
        assert_eq!(blocks_of(&(BLOCK_BYTES..2 * BLOCK_BYTES)), 1..2);
        assert!(takes_blocks_of(&[0..1 << 30, 2 << 30..3 << 30]));
        assert!(!takes_blocks_of(&[0..1 << 30, 2 << 30..u64::MAX]));
    }
}
