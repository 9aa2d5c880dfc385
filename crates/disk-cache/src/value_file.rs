//! The file of a value: its magic, checksum and lengths, then its key and the value.

use bytes::Bytes;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::time::SystemTime;
use swathe_store_api::StoreError;

pub(super) const MAGIC: &[u8; 8] = b"SWSHELF1";
/// Magic, checksum, bytes of the key, bytes of the value.
pub(super) const HEAD_BYTES: usize = 8 + 4 + 4 + 8;
/// The unit of allocation of file systems.
const DISK_BLOCK_BYTES: u64 = 4096;

/// Size on disk of a file of `length` bytes.
pub(super) fn on_disk(length: u64) -> u64 {
    length.next_multiple_of(DISK_BLOCK_BYTES)
}

/// The number that names the file of a key.
pub fn digest(key: &str) -> u128 {
    fnv1a(key.as_bytes())
}

/// The value in a file of a cache, if the file is whole and of this very key.
pub fn value_in(file: Bytes, key: &str) -> Option<Bytes> {
    check(&file, key).map(|value_at| file.slice(value_at..))
}

pub(super) fn write_new(
    path: &Path,
    key: &str,
    value: &[u8],
    priority: Option<SystemTime>,
) -> std::io::Result<()> {
    let mut head = [0; HEAD_BYTES];
    head[..8].copy_from_slice(MAGIC);
    head[8..12].copy_from_slice(&checksum(key, value).to_le_bytes());
    head[12..16].copy_from_slice(&(key.len() as u32).to_le_bytes());
    head[16..].copy_from_slice(&(value.len() as u64).to_le_bytes());
    let mut file = File::create(path)?;
    file.write_all(&head)?;
    file.write_all(key.as_bytes())?;
    file.write_all(value)?;
    priority.map_or(Ok(()), |priority| file.set_modified(priority))
}

fn checksum(key: &str, value: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key.as_bytes());
    hasher.update(value);
    hasher.finalize()
}

/// The offset of the value in a file, if the file is whole and of this very key.
pub(super) fn check(bytes: &[u8], key: &str) -> Option<usize> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
    let (stored_key, value) = rest.split_at_checked(key.len())?;
    let is_intact = head[..8] == *MAGIC
        && head[12..16] == (key.len() as u32).to_le_bytes()
        && head[16..] == (value.len() as u64).to_le_bytes()
        && stored_key == key.as_bytes()
        && head[8..12] == checksum(key, value).to_le_bytes();
    is_intact.then_some(HEAD_BYTES + key.len())
}

/// Whether a file was written by a cache; one that does not exist was. A half-written one may be
/// empty.
pub(super) fn is_ours(path: &Path) -> Result<bool, StoreError> {
    let mut begin = Vec::new();
    let result = File::open(path).and_then(|file| file.take(8).read_to_end(&mut begin));
    match result {
        Ok(_) => Ok(MAGIC.starts_with(&begin)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(source) => Err(StoreError::Io { url: path.display().to_string(), source }),
    }
}

/// FNV-1a of 128 bits: stable between builds, and a clash only costs a miss, for the key is
/// stored with the value.
fn fnv1a(bytes: &[u8]) -> u128 {
    const PRIME: u128 = 0x0000000001000000000000000000013b;
    const OFFSET: u128 = 0x6c62272e07bb014262b821756295c58d;
    bytes.iter().fold(OFFSET, |hash, &byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}
