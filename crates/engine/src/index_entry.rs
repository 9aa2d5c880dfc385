//! What the index keeps of an object, for one version of it: its HDUs or its chunk index, and its
//! seek points.

use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use swathe_codecs::stream::SeekTable;
use swathe_disk_cache::DiskCache;
use swathe_fits::Hdu;
use swathe_store_api::{Source, Version};

/// An index entry may take this part of the object it describes.
const SHARE: u64 = 8; // percent
/// A chunk index may take as much in any case: to make it again takes a process.
const CHUNKS_BYTES: u64 = 1 << 20;
/// A larger one is not believed to be one.
const MOST_INDEX_BYTES: usize = 1 << 30;
/// Changes whenever the format of an entry does, so that old entries are ignored.
const FORMAT: u32 = 7;

/// HDUs or chunk index, and seek points, of one version of an object.
#[derive(Serialize, Deserialize)]
pub(crate) struct IndexEntry {
    /// HDUs read so far, from the first.
    pub hdus: Vec<Hdu>,
    /// Where the next header would start; `None` when all were read.
    pub next: Option<u64>,
    /// Why what follows them is no HDU.
    pub warning: Option<String>,
    /// Seek points of a compressed object.
    pub seek: Option<SeekTable>,
    /// The bytes of its chunk index, if it is not FITS.
    pub chunks: Option<serde_bytes::ByteBuf>,
    /// Its members, if it is a folder of a server.
    pub members: Option<serde_bytes::ByteBuf>,
}

/// The user's index, or the error. Opened once per process.
fn disk_cache() -> Result<&'static DiskCache, &'static str> {
    static DISK_CACHE: OnceLock<Result<DiskCache, String>> = OnceLock::new();
    DISK_CACHE
        .get_or_init(|| DiskCache::index().map_err(|error| error.to_string()))
        .as_ref()
        .map_err(String::as_str)
}

/// For an object on a server the last version is cached, so that it can be read without asking
/// for its version. Versions of a file lie side by side: its version costs nothing to know.
fn key(object: &str, local: Option<&Version>) -> String {
    match local {
        Some(version) => format!("layout {FORMAT}\n{object}\n{version}"),
        None => format!("layout {FORMAT}\n{object}"),
    }
}

fn key_of(source: &dyn Source) -> String {
    key(source.key(), source.is_local().then(|| source.version()))
}

/// The entry of this version of the object; `None` if nothing (readable) is cached.
pub(crate) fn load(source: &dyn Source) -> Option<IndexEntry> {
    if !source.version().is_told_apart() {
        return None;
    }
    let (version, entry) = read(&key_of(source))?;
    (version == *source.version()).then_some(entry)
}

/// The version of an object on a server that was seen last, and its entry.
pub(crate) fn load_last(object: &str) -> Option<(Version, IndexEntry)> {
    read(&key(object, None))
}

fn read(key: &str) -> Option<(Version, IndexEntry)> {
    let value = disk_cache().ok()?.get(key)?;
    let (sizes, rest) = value.split_at_checked(8)?;
    let packed_size = u32::from_le_bytes(sizes[..4].try_into().ok()?) as usize;
    let layout_size = u32::from_le_bytes(sizes[4..].try_into().ok()?) as usize;
    let (layout, seek) = rest.split_at_checked(packed_size)?;
    if layout_size > MOST_INDEX_BYTES {
        return None;
    }
    let mut bytes = vec![0; layout_size];
    libdeflater::Decompressor::new().deflate_decompress(layout, &mut bytes).ok()?;
    let (version, hdus, next, warning, chunks, members) = postcard::from_bytes(&bytes).ok()?;
    let seek = postcard::from_bytes(seek).ok()?;
    Some((version, IndexEntry { hdus, next, warning, seek, chunks, members }))
}

/// Save the entry of the object, in at most [`SHARE`] percent of its size. Seek points are
/// thinned to fit; for an object so small that even its headers do not fit nothing is saved:
/// reading it whole is as quick.
///
/// # Errors
/// If the index cannot be written. The cut itself is not harmed.
pub(crate) fn save(source: &dyn Source, entry: &mut IndexEntry) -> Result<(), String> {
    if !source.version().is_told_apart() {
        return Ok(());
    }
    let IndexEntry { hdus, next, warning, chunks, members, .. } = &*entry;
    let layout = postcard::to_stdvec(&(source.version(), hdus, next, warning, chunks, members))
        .map_err(|e| e.to_string())?;
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::fastest());
    let mut packed_layout = vec![0; compressor.deflate_compress_bound(layout.len())];
    let length = compressor
        .deflate_compress(&layout, &mut packed_layout)
        .map_err(|error| error.to_string())?;
    let (Ok(packed_size), Ok(layout_size)) = (u32::try_from(length), u32::try_from(layout.len()))
    else {
        return Ok(());
    };
    let mut value = Vec::with_capacity(8 + length);
    value.extend_from_slice(&packed_size.to_le_bytes());
    value.extend_from_slice(&layout_size.to_le_bytes());
    value.extend_from_slice(&packed_layout[..length]);
    let least_bytes = if entry.chunks.is_some() { CHUNKS_BYTES } else { 0 };
    let least_bytes =
        least_bytes.max(members.as_ref().map_or(0, |members| 2 * members.len() as u64));
    let most_bytes = (source.len() * SHARE / 100).max(least_bytes);
    let room = most_bytes.saturating_sub(value.len() as u64 + OVERHEAD);
    if let Some(seek) = &mut entry.seek {
        seek.thin(room as usize);
    }
    value.extend(postcard::to_stdvec(&entry.seek).map_err(|error| error.to_string())?);
    if value.len() as u64 > most_bytes {
        return Ok(());
    }
    disk_cache()?.put(&key_of(source), &value).map_err(|error| error.to_string())
}

/// Bytes around the seek points: the header of the cache and the key.
const OVERHEAD: u64 = 512;
