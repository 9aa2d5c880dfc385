//! What the index keeps of an object: its HDUs and its seek points, for one version of it.

use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use swathe_codecs::stream::SeekTable;
use swathe_disk_cache::DiskCache;
use swathe_fits::Hdu;
use swathe_store_api::{Source, Version};

/// Kept things may take this part of the object they describe.
const SHARE: u64 = 8; // percent
/// Changes whenever the kept form does, so that old entries are not found.
const FORMAT: u32 = 5;

/// HDUs and seek points of one version of an object.
#[derive(Serialize, Deserialize)]
pub(crate) struct IndexEntry {
    /// HDUs found so far, from the first.
    pub hdus: Vec<Hdu>,
    /// Where the next header would start; `None` when all were found.
    pub next: Option<u64>,
    /// Why what follows them is no HDU.
    pub ignored: Option<String>,
    /// Seek points of a compressed object.
    pub seek: Option<SeekTable>,
}

/// The user's index, or why there is none. Opened once per process.
fn shelf() -> Result<&'static DiskCache, &'static str> {
    static SHELF: OnceLock<Result<DiskCache, String>> = OnceLock::new();
    SHELF
        .get_or_init(|| DiskCache::index().map_err(|error| error.to_string()))
        .as_ref()
        .map_err(String::as_str)
}

/// Of an object on a server the last version is kept, so that it can be read without asking which
/// it is. Versions of a file lie side by side: which it is costs nothing to know.
fn key(object: &str, local: Option<&Version>) -> String {
    match local {
        Some(version) => format!("layout {FORMAT}\n{object}\n{version}"),
        None => format!("layout {FORMAT}\n{object}"),
    }
}

fn key_of(source: &dyn Source) -> String {
    key(source.key(), source.is_local().then(|| source.version()))
}

/// What is kept of this version of the object; `None` where nothing (readable) is.
pub(crate) fn load(source: &dyn Source) -> Option<IndexEntry> {
    if !source.version().is_told_apart() {
        return None;
    }
    let (version, kept) = read(&key_of(source))?;
    (version == *source.version()).then_some(kept)
}

/// The version of an object on a server that was seen last, and what is kept of it.
pub(crate) fn load_last(object: &str) -> Option<(Version, IndexEntry)> {
    read(&key(object, None))
}

fn read(key: &str) -> Option<(Version, IndexEntry)> {
    let value = shelf().ok()?.get(key)?;
    let (sizes, rest) = value.split_at_checked(8)?;
    let packed = u32::from_le_bytes(sizes[..4].try_into().ok()?) as usize;
    let unpacked = u32::from_le_bytes(sizes[4..].try_into().ok()?) as usize;
    let (layout, seek) = rest.split_at_checked(packed)?;
    let mut bytes = vec![0; unpacked];
    libdeflater::Decompressor::new().deflate_decompress(layout, &mut bytes).ok()?;
    let (version, hdus, next, ignored) = postcard::from_bytes(&bytes).ok()?;
    let seek = postcard::from_bytes(seek).ok()?;
    Some((version, IndexEntry { hdus, next, ignored, seek }))
}

/// Keep what is known of the object, in at most [`SHARE`] percent of its size. Seek points are
/// thinned to fit; of an object so small that even its headers do not fit nothing is kept:
/// reading it whole is as quick.
///
/// # Errors
/// Where the index cannot be written. The cut itself is not harmed.
pub(crate) fn save(source: &dyn Source, kept: &mut IndexEntry) -> Result<(), String> {
    if !source.version().is_told_apart() {
        return Ok(());
    }
    let layout = postcard::to_stdvec(&(source.version(), &kept.hdus, kept.next, &kept.ignored))
        .map_err(|e| e.to_string())?;
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::fastest());
    let mut packed = vec![0; compressor.deflate_compress_bound(layout.len())];
    let length =
        compressor.deflate_compress(&layout, &mut packed).map_err(|error| error.to_string())?;
    let (Ok(packed_size), Ok(layout_size)) = (u32::try_from(length), u32::try_from(layout.len()))
    else {
        return Ok(());
    };
    let mut value = Vec::with_capacity(8 + length);
    value.extend_from_slice(&packed_size.to_le_bytes());
    value.extend_from_slice(&layout_size.to_le_bytes());
    value.extend_from_slice(&packed[..length]);
    let allowed = source.len() * SHARE / 100;
    let left = allowed.saturating_sub(value.len() as u64 + OVERHEAD);
    if let Some(seek) = &mut kept.seek {
        seek.thin(left as usize);
    }
    value.extend(postcard::to_stdvec(&kept.seek).map_err(|error| error.to_string())?);
    if value.len() as u64 > allowed {
        return Ok(());
    }
    shelf()?.put(&key_of(source), &value).map_err(|error| error.to_string())
}

/// Bytes around the seek points: the shelf's own header and the key.
const OVERHEAD: u64 = 512;
