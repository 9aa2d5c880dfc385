//! A folder of small values by key, limited in size, shared by processes.
//!
//! One file per key, named by the key's hash. A value is written to a file of its own and
//! renamed into place, so that a reader sees all of it or nothing, whoever is killed when; what
//! is damaged anyway fails its checksum and counts as absent.

use crate::error::StoreError;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

const MAGIC: &[u8; 8] = b"SWSHELF1";
/// Magic, checksum, bytes of the key, bytes of the value.
const HEAD_BYTES: usize = 8 + 4 + 4 + 8;
/// Size limit where `$SWATHE_INDEX_BYTES` does not say.
const LIMIT_BYTES: u64 = 1 << 30;
/// Folders the files are spread over.
const FAN_OUT: u64 = 256;
/// Eviction goes down to this share of the limit, so that it is not needed for every value.
const EVICT_TO_PERCENT: u64 = 90;
/// One value in this share of the limit, written by this process, before usage is counted again.
const COUNT_EVERY_PERCENT: u64 = 2;
/// A file left half-written by a killed process is removed after this time.
const ABANDONED: Duration = Duration::from_secs(3600);
/// A value that was read is marked as used if its last mark is older than this.
const MARK_EVERY: Duration = Duration::from_secs(600);

/// A size-limited folder of values.
#[derive(Debug)]
pub struct Shelf {
    folder: PathBuf,
    limit: u64,
    /// Bytes put since usage was last counted; starts so high that the first `put` counts.
    since_count: AtomicU64,
}

/// What a shelf holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Number of values.
    pub values: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Bytes allowed.
    pub limit: u64,
}

struct Kept {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

impl Shelf {
    /// The user's index: `$SWATHE_INDEX_DIR`, else `$XDG_CACHE_HOME/swathe/index`, else
    /// `~/.cache/swathe/index`; at most `$SWATHE_INDEX_BYTES` (1 GiB).
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] where the environment says nothing usable.
    pub fn user() -> Result<Shelf, StoreError> {
        let path = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let folder = path("SWATHE_INDEX_DIR")
            .or_else(|| path("XDG_CACHE_HOME").map(|cache| cache.join("swathe/index")))
            .or_else(|| path("HOME").map(|home| home.join(".cache/swathe/index")));
        let Some(folder) = folder else {
            return Err(StoreError::Unsupported {
                url: "index".into(),
                why: "none of SWATHE_INDEX_DIR, XDG_CACHE_HOME and HOME is set".into(),
            });
        };
        let limit = match std::env::var("SWATHE_INDEX_BYTES") {
            Err(_) => LIMIT_BYTES,
            Ok(text) => text.parse().map_err(|_| StoreError::Unsupported {
                url: "index".into(),
                why: format!("SWATHE_INDEX_BYTES must be a number of bytes, not {text:?}"),
            })?,
        };
        Ok(Shelf::at(folder, limit))
    }

    /// A shelf in a folder, made when the first value is put.
    pub fn at(folder: impl Into<PathBuf>, limit: u64) -> Shelf {
        Shelf { folder: folder.into(), limit, since_count: AtomicU64::new(u64::MAX / 2) }
    }

    /// The value put last under `key`; `None` where there is none that can be read whole.
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        let mut file = File::open(self.path(key)).ok()?;
        let stat = file.metadata().ok()?;
        if stat.len() > self.limit {
            return None;
        }
        let mut bytes = Vec::with_capacity(stat.len() as usize + 1);
        file.read_to_end(&mut bytes).ok()?;
        let value_at = check(&bytes, key)?;
        if stat.modified().ok()?.elapsed().is_ok_and(|age| age > MARK_EVERY) {
            // Only the order of eviction hangs on the mark, and the folder may be read-only.
            let _ = file.set_modified(SystemTime::now());
        }
        bytes.drain(..value_at);
        Some(bytes)
    }

    /// Keep `value` under `key`, in place of what was there. Values used longest ago give way
    /// when the limit is reached; one larger than the limit is not kept.
    ///
    /// # Errors
    /// [`StoreError::Io`] where the folder cannot be written.
    pub fn put(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        let bytes = (HEAD_BYTES + key.len() + value.len()) as u64;
        if bytes > self.limit {
            return Ok(());
        }
        let path = self.path(key);
        let fail = |source| StoreError::Io { url: path.display().to_string(), source };
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder).map_err(fail)?;
        static UNIQUE: AtomicU64 = AtomicU64::new(0);
        let unique = UNIQUE.fetch_add(1, Ordering::Relaxed);
        let new = folder.join(format!("{}-{unique}.new", std::process::id()));
        let written = write_new(&new, key, value).and_then(|()| fs::rename(&new, &path));
        if let Err(error) = written {
            // The write's own error is what the caller must see.
            let _ = fs::remove_file(&new);
            return Err(fail(error));
        }
        let since = self.since_count.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if since > self.limit / 100 * COUNT_EVERY_PERCENT {
            self.since_count.store(0, Ordering::Relaxed);
            self.evict(&path)?;
        }
        Ok(())
    }

    /// What is held.
    ///
    /// # Errors
    /// [`StoreError::Io`] where the folder cannot be read.
    pub fn usage(&self) -> Result<Usage, StoreError> {
        let kept = self.list()?;
        let bytes = kept.iter().map(|value| value.bytes).sum();
        Ok(Usage { values: kept.len() as u64, bytes, limit: self.limit })
    }

    /// Remove all values.
    ///
    /// # Errors
    /// [`StoreError::Io`] where one cannot be removed.
    pub fn clear(&self) -> Result<(), StoreError> {
        self.list()?.iter().try_for_each(|kept| remove(&kept.path))
    }

    fn path(&self, key: &str) -> PathBuf {
        let hash = fnv1a(key.as_bytes());
        self.folder.join(format!("{:02x}", hash as u64 % FAN_OUT)).join(format!("{hash:032x}"))
    }

    /// Remove what was used longest ago until the limit is kept, but never `spared`.
    fn evict(&self, spared: &Path) -> Result<(), StoreError> {
        let mut kept = self.list()?;
        let mut bytes: u64 = kept.iter().map(|value| value.bytes).sum();
        if bytes <= self.limit {
            return Ok(());
        }
        kept.sort_by_key(|value| value.used);
        for value in kept.iter().filter(|value| value.path != spared) {
            if bytes <= self.limit / 100 * EVICT_TO_PERCENT {
                break;
            }
            remove(&value.path)?;
            bytes -= value.bytes;
        }
        Ok(())
    }

    /// All values; removes files that a killed process left half-written.
    fn list(&self) -> Result<Vec<Kept>, StoreError> {
        let mut kept = Vec::new();
        for folder in entries(&self.folder)? {
            if !folder.is_dir() {
                continue;
            }
            for path in entries(&folder)? {
                // Another process may have removed it in the meantime.
                let Ok(stat) = fs::metadata(&path) else { continue };
                let used = stat.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                if path.extension().is_some_and(|extension| extension == "new") {
                    if used.elapsed().is_ok_and(|age| age > ABANDONED) {
                        remove(&path)?;
                    }
                } else {
                    kept.push(Kept { path, bytes: stat.len(), used });
                }
            }
        }
        Ok(kept)
    }
}

fn write_new(path: &Path, key: &str, value: &[u8]) -> std::io::Result<()> {
    let mut head = [0; HEAD_BYTES];
    head[..8].copy_from_slice(MAGIC);
    head[8..12].copy_from_slice(&checksum(key, value).to_le_bytes());
    head[12..16].copy_from_slice(&(key.len() as u32).to_le_bytes());
    head[16..].copy_from_slice(&(value.len() as u64).to_le_bytes());
    let mut file = File::create(path)?;
    file.write_all(&head)?;
    file.write_all(key.as_bytes())?;
    file.write_all(value)
}

fn checksum(key: &str, value: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key.as_bytes());
    hasher.update(value);
    hasher.finalize()
}

/// Where the value starts in a file that holds it whole, under this very key.
fn check(bytes: &[u8], key: &str) -> Option<usize> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
    let (found_key, value) = rest.split_at_checked(key.len())?;
    let whole = head[..8] == *MAGIC
        && head[12..16] == (key.len() as u32).to_le_bytes()
        && head[16..] == (value.len() as u64).to_le_bytes()
        && found_key == key.as_bytes()
        && head[8..12] == checksum(key, value).to_le_bytes();
    whole.then_some(HEAD_BYTES + key.len())
}

/// The paths in a folder; none where it does not exist.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let fail = |source| StoreError::Io { url: folder.display().to_string(), source };
    match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(fail(error)),
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path()).map_err(fail)).collect(),
    }
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(StoreError::Io { url: path.display().to_string(), source: error })
        }
        _ => Ok(()),
    }
}

/// FNV-1a of 128 bits: stable between builds, and a clash only costs a miss, for the key is
/// stored with the value.
fn fnv1a(bytes: &[u8]) -> u128 {
    const PRIME: u128 = 0x0000000001000000000000000000013b;
    const OFFSET: u128 = 0x6c62272e07bb014262b821756295c58d;
    bytes.iter().fold(OFFSET, |hash, &byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shelf(limit: u64) -> (tempfile::TempDir, Shelf) {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf::at(folder.path().join("index"), limit);
        (folder, shelf)
    }

    fn file_of(shelf: &Shelf, key: &str) -> PathBuf {
        shelf.path(key)
    }

    #[test]
    fn values_come_back_and_are_replaced() {
        let (_folder, shelf) = shelf(1 << 20);
        assert_eq!(shelf.get("a"), None);
        shelf.put("a", b"one").unwrap();
        shelf.put("b", b"").unwrap();
        shelf.put("a", b"two").unwrap();
        assert_eq!(shelf.get("a").unwrap(), b"two");
        assert_eq!(shelf.get("b").unwrap(), b"");
        assert_eq!(shelf.usage().unwrap().values, 2);
        shelf.clear().unwrap();
        assert_eq!(shelf.get("a"), None);
        assert_eq!(shelf.usage().unwrap().bytes, 0);
    }

    #[test]
    fn a_file_damaged_at_any_byte_or_cut_anywhere_counts_as_absent() {
        let (_folder, shelf) = shelf(1 << 20);
        shelf.put("key", b"some value").unwrap();
        let path = file_of(&shelf, "key");
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 4;
            fs::write(&path, &bad).unwrap();
            assert_eq!(shelf.get("key"), None, "byte {at} flipped");
            fs::write(&path, &good[..at]).unwrap();
            assert_eq!(shelf.get("key"), None, "cut at byte {at}");
        }
        fs::write(&path, &good).unwrap();
        assert_eq!(shelf.get("key").unwrap(), b"some value");
    }

    #[test]
    fn a_clash_of_hashes_is_no_hit() {
        let (_folder, shelf) = shelf(1 << 20);
        shelf.put("key", b"value").unwrap();
        fs::create_dir_all(file_of(&shelf, "other").parent().unwrap()).unwrap();
        fs::copy(file_of(&shelf, "key"), file_of(&shelf, "other")).unwrap();
        assert_eq!(shelf.get("other"), None);
    }

    #[test]
    fn the_limit_holds_and_the_longest_unused_goes_first() {
        let (_folder, shelf) = shelf(50_000);
        let value = vec![7; 1000];
        for i in 0..100 {
            shelf.put(&format!("{i}"), &value).unwrap();
            let age = Duration::from_secs(1000 - i);
            let file = File::options().write(true).open(file_of(&shelf, &format!("{i}"))).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
            assert!(shelf.usage().unwrap().bytes <= 52_000);
        }
        assert_eq!(shelf.get("0"), None);
        assert_eq!(shelf.get("99").unwrap(), value);
        shelf.put("huge", &vec![0; 60_000]).unwrap();
        assert_eq!(shelf.get("huge"), None);
        assert_eq!(shelf.get("99").unwrap(), value);
    }

    #[test]
    fn abandoned_files_are_removed_and_fresh_ones_left() {
        let (_folder, shelf) = shelf(1 << 20);
        shelf.put("key", b"value").unwrap();
        let folder = file_of(&shelf, "key").parent().unwrap().to_path_buf();
        let (old, new) = (folder.join("1-0.new"), folder.join("1-1.new"));
        File::create(&old).unwrap().set_modified(SystemTime::now() - 2 * ABANDONED).unwrap();
        File::create(&new).unwrap();
        assert_eq!(shelf.usage().unwrap().values, 1);
        assert!(!old.exists() && new.exists());
    }

    #[test]
    fn an_unwritable_folder_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, b"").unwrap();
        let error = Shelf::at(file.join("index"), 1 << 20).put("key", b"value").unwrap_err();
        assert!(error.to_string().contains("file/index"), "{error}");
    }

    #[test]
    fn many_writers_and_readers_see_whole_values() {
        let (_folder, shelf) = shelf(200_000);
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in 0..3u8 {
                let shelf = &shelf;
                scope.spawn(move || {
                    for i in 0..200 {
                        let value = vec![writer; 500 + i];
                        shelf.put(&format!("{}", i % 20), &value).unwrap();
                    }
                });
            }
            let (shelf, stop) = (&shelf, &stop);
            let reader = scope.spawn(move || {
                let mut seen = 0;
                while !stop.load(Ordering::Relaxed) {
                    for i in 0..20 {
                        if let Some(value) = shelf.get(&format!("{i}")) {
                            assert!(value.iter().all(|byte| *byte == value[0]));
                            seen += 1;
                        }
                    }
                }
                seen
            });
            std::thread::sleep(Duration::from_millis(200));
            stop.store(true, Ordering::Relaxed);
            assert!(reader.join().unwrap() > 0);
        });
    }
}
