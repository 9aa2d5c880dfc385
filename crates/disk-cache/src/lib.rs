//! A folder of values by key that never grows beyond its limit, shared by processes.
//!
//! One file per key, named by the key's hash. A value is written to a file of its own and
//! renamed into place, so that a reader sees all of it or nothing, whichever process is killed. A
//! damaged file fails its checksum, counts as absent and is removed.
//!
//! A process that writes or removes locks the file `usage`, which has the number of bytes in use.
//! Bytes are added before they are written and subtracted after they are removed: a process that is
//! killed in between leaves too large a number, never too small a one. Readers need no lock.
//!
//! The modification time of each file is its priority; the lowest is evicted first. For values
//! without a weight it is the time of the last use. For those with one it is the level of the cache
//! at the time and, for each use, the cost of fetching them again divided by their size; the level
//! rises to the priority of evicted values (GreedyDual-Size with frequency, Cherkasova 1998).
//! No more is evicted than necessary. See `docs/design/016-eviction.md`.
#![warn(missing_docs)]

mod eviction;
mod folder;
mod simulated_cache;
mod usage_file;
mod value_file;

use bytes::Bytes;
use eviction::{EvictionLevel, MARK_EVERY, eviction_order, gain};
use folder::{Candidate, PART_SUFFIX, change_time, list, path_in, rank, remove, remove_ours};
use rustix::fs::OFlags;
pub use simulated_cache::SimulatedCache;
use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use swathe_store_api::StoreError;
use usage_file::UsageFile;
use value_file::{HEAD_BYTES, MAGIC, check, is_ours, on_disk, write_new};
pub use value_file::{digest, value_in};

/// The newest values, up to this part of the limit, are evicted last: the reader that fetched
/// them is about to read them.
pub const YOUNG: u64 = 8;
/// A writer gives up after this wait for the others: one of them may have been stopped.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// The file with the number of bytes in use.
const USAGE_FILE: &str = "usage";

/// The seconds that it takes to fetch a value again, by its bytes; `None`: only the time of the
/// last use counts.
pub type Weight<'a> = Option<&'a dyn Fn(u64) -> f64>;

/// A size-limited folder of values.
#[derive(Debug)]
pub struct DiskCache {
    folder: PathBuf,
    limit: u64,
    /// A value that was read is marked as used if its last mark is older than this.
    mark_every: Duration,
    /// Threads of this process queue here, and only one waits for other processes. The values to
    /// evict next, as far as they were chosen.
    writing: Mutex<VecDeque<Candidate>>,
}

/// The contents of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Number of values.
    pub values: u64,
    /// Bytes their files take on disk.
    pub bytes: u64,
    /// Bytes allowed.
    pub limit: u64,
}

impl DiskCache {
    /// A cache of the user: `$<variables>_DIR`, else `$XDG_CACHE_HOME/swathe/<name>`, else
    /// `~/.cache/swathe/<name>`; at most `$<variables>_BYTES`, else `limit`.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] if the environment has no usable values.
    pub fn user(name: &str, variables: &str, limit: u64) -> Result<DiskCache, StoreError> {
        let path = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let unusable = |why| StoreError::Unsupported { url: name.into(), why };
        let own_folder = format!("{variables}_DIR");
        let folder = path(&own_folder)
            .or_else(|| path("XDG_CACHE_HOME").map(|cache| cache.join("swathe").join(name)))
            .or_else(|| path("HOME").map(|home| home.join(".cache/swathe").join(name)))
            .ok_or_else(|| {
                unusable(format!("none of {own_folder}, XDG_CACHE_HOME and HOME is set"))
            })?;
        Ok(DiskCache::at(folder, limit_of(name, variables, limit)?))
    }

    /// The user's index: at most 1 GiB unless `$SWATHE_INDEX_BYTES` says otherwise.
    ///
    /// # Errors
    /// As [`DiskCache::user`].
    pub fn index() -> Result<DiskCache, StoreError> {
        DiskCache::user("index", "SWATHE_INDEX", 1 << 30)
    }

    /// A cache in a folder, created when the first value is put.
    pub fn at(folder: impl Into<PathBuf>, limit: u64) -> DiskCache {
        let mark_every = MARK_EVERY;
        DiskCache { folder: folder.into(), limit, mark_every, writing: Mutex::default() }
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Bytes allowed.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The value put last under `key`; `None` if none can be read whole.
    pub fn get(&self, key: &str) -> Option<Bytes> {
        self.get_with_weight(key, None)
    }

    /// As [`DiskCache::get`], of a value that was put with a weight.
    pub fn get_with_weight(&self, key: &str, weight: Weight<'_>) -> Option<Bytes> {
        let path = self.path(key);
        let mut file = File::open(&path).ok()?;
        let bytes = self.read(&mut file)?;
        let Some(value_at) = check(&bytes, key) else {
            self.discard(&path, key);
            return None;
        };
        // Only the order of eviction hangs on the mark, and the folder may be read-only.
        let _ = self.mark(&file, weight);
        Some(Bytes::from(bytes).slice(value_at..))
    }

    /// Record a use of a value.
    fn mark(&self, file: &File, weight: Weight<'_>) -> Option<()> {
        let stat = file.metadata().ok()?;
        let mark = if weight.is_some() { change_time(&stat) } else { stat.modified().ok()? };
        if mark.elapsed().is_ok_and(|age| age > self.mark_every) {
            let priority = match weight {
                None => SystemTime::now(),
                Some(seconds) => {
                    let gain = gain(seconds(stat.len()), on_disk(stat.len()));
                    self.level()?.after_use(stat.modified().ok()?, gain)
                }
            };
            let _ = file.set_modified(priority);
        }
        Some(())
    }

    /// Up to `max` first bytes of the value under `key`, not checked: most likely those of
    /// [`DiskCache::get`].
    pub fn peek(&self, key: &str, max: usize) -> Option<Bytes> {
        let file = File::open(self.path(key)).ok()?;
        let value_at = HEAD_BYTES + key.len();
        let mut bytes = vec![0; value_at + max];
        let read = file.read_at(&mut bytes, 0).ok()?;
        bytes.truncate(read);
        let is_intact =
            bytes.starts_with(MAGIC) && bytes.get(HEAD_BYTES..value_at)? == key.as_bytes();
        is_intact.then(|| Bytes::from(bytes).slice(value_at..))
    }

    /// Whether a value is stored under `key`, most likely.
    pub fn has(&self, key: &str) -> bool {
        self.path(key).exists()
    }

    /// Store `value` under `key`, in place of the earlier one. The values used longest ago are
    /// evicted before the limit is passed; one larger than the limit is not stored.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the folder cannot be written.
    pub fn put(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.put_with_weight(key, value, None)
    }

    /// As [`DiskCache::put`]; those of lowest priority are evicted.
    ///
    /// # Errors
    /// As [`DiskCache::put`].
    pub fn put_with_weight(
        &self,
        key: &str,
        value: &[u8],
        weight: Weight<'_>,
    ) -> Result<(), StoreError> {
        if self.fits(key, value).is_none() {
            return Ok(());
        }
        let mut files = self.turn();
        let ledger = self.ledger()?;
        self.write(&mut files, ledger, key, value, weight)
    }

    /// Store the result of `change` for the value under `key`, if any; nobody else
    /// changes it meanwhile. As [`DiskCache::put_with_weight`].
    ///
    /// # Errors
    /// As [`DiskCache::put`].
    pub fn update(
        &self,
        key: &str,
        weight: Weight<'_>,
        change: impl FnOnce(Option<Bytes>) -> Option<Vec<u8>>,
    ) -> Result<(), StoreError> {
        let mut files = self.turn();
        let ledger = self.ledger()?;
        let value = File::open(self.path(key)).ok().and_then(|mut file| self.read(&mut file));
        let value = value.and_then(|bytes| {
            let value_at = check(&bytes, key)?;
            Some(Bytes::from(bytes).slice(value_at..))
        });
        match change(value) {
            Some(value) => self.write(&mut files, ledger, key, &value, weight),
            None => Ok(()),
        }
    }

    /// The size of a value on disk, unless it is larger than the limit.
    fn fits(&self, key: &str, value: &[u8]) -> Option<u64> {
        let bytes = on_disk((HEAD_BYTES + key.len() + value.len()) as u64);
        (bytes <= self.limit).then_some(bytes)
    }

    fn write(
        &self,
        files: &mut VecDeque<Candidate>,
        mut ledger: UsageFile,
        key: &str,
        value: &[u8],
        weight: Weight<'_>,
    ) -> Result<(), StoreError> {
        let Some(bytes) = self.fits(key, value) else { return Ok(()) };
        let path = self.path(key);
        self.make_room(files, &mut ledger, bytes)?;
        let before = ledger.bytes;
        ledger.set(before + bytes).map_err(|source| self.fail(source))?;
        let (old_bytes, earlier) = fs::metadata(&path)
            .map_or((0, None), |stat| (on_disk(stat.len()), stat.modified().ok()));
        let priority = weight.map(|seconds| ledger.level.put(earlier, gain(seconds(bytes), bytes)));
        let new = path.with_extension(PART_SUFFIX);
        let folder = path.parent().unwrap_or(&self.folder);
        let result = fs::create_dir_all(folder)
            .and_then(|()| write_new(&new, key, value, priority))
            .and_then(|()| fs::rename(&new, &path));
        let now = match result {
            Ok(()) => before + bytes - old_bytes.min(before),
            Err(_) => {
                // The write's own error is what the caller must see.
                let _ = fs::remove_file(&new);
                before
            }
        };
        let usage_result = ledger.set(now);
        result
            .and(usage_result)
            .map_err(|source| StoreError::Io { url: path.display().to_string(), source })
    }

    /// The number of values and their bytes.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the folder cannot be read.
    pub fn usage(&self) -> Result<Usage, StoreError> {
        // If nothing can be written nothing changes either.
        let _turn = self.turn();
        let _ledger = self.folder.exists().then(|| self.ledger().ok());
        let values = list(&self.folder)?;
        let bytes = values.iter().map(|value| value.rank.bytes).sum();
        let count = values.iter().filter(|value| !value.is_unfinished()).count() as u64;
        Ok(Usage { values: count, bytes, limit: self.limit })
    }

    /// Remove all values. Files of others stay, whatever their names.
    ///
    /// # Errors
    /// [`StoreError::Io`] if one cannot be read or removed.
    pub fn clear(&self) -> Result<(), StoreError> {
        if !self.folder.exists() {
            return Ok(());
        }
        let _turn = self.turn();
        let mut ledger = self.ledger()?;
        for value in list(&self.folder)? {
            if is_ours(&value.path)? {
                remove(&value.path)?;
            }
        }
        ledger.set(0).map_err(|source| self.fail(source))
    }

    /// The priority of a new value.
    fn level(&self) -> Option<EvictionLevel> {
        let file = File::open(self.folder.join(USAGE_FILE)).ok()?;
        UsageFile::of(file).ok().map(|ledger| ledger.level)
    }

    /// The file of the value whose key has this digest, as it is, if it is no longer than `most`:
    /// the receiver checks it with [`value_in`].
    pub fn file(&self, digest: u128, most: u64) -> Option<Vec<u8>> {
        let mut file = File::open(path_in(&self.folder, digest)).ok()?;
        (file.metadata().ok()?.len() <= most).then(|| self.read(&mut file))?
    }

    fn path(&self, key: &str) -> PathBuf {
        path_in(&self.folder, digest(key))
    }

    fn fail(&self, source: std::io::Error) -> StoreError {
        StoreError::Io { url: self.folder.display().to_string(), source }
    }

    fn turn(&self) -> MutexGuard<'_, VecDeque<Candidate>> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, file: &mut File) -> Option<Vec<u8>> {
        let length = file.metadata().ok()?.len();
        if length > self.limit {
            return None;
        }
        let mut bytes = Vec::with_capacity(length as usize + 1);
        file.read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Remove a file that is damaged, unless another process has put a good one in its place.
    fn discard(&self, path: &Path, key: &str) {
        let _turn = self.turn();
        let Ok(mut ledger) = self.ledger() else { return };
        let Ok(bytes) = fs::read(path) else { return };
        if check(&bytes, key).is_none() && fs::remove_file(path).is_ok() {
            let rest_bytes = ledger.bytes.saturating_sub(on_disk(bytes.len() as u64));
            // Too large a number only means that it is counted again sooner.
            let _ = ledger.set(rest_bytes);
        }
    }

    /// The right to write, and the bytes in use. Files that others left half-written may be removed,
    /// for a writer has this lock.
    fn ledger(&self) -> Result<UsageFile, StoreError> {
        // Others must not see bytes that were read with a user's credentials.
        let result = DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        result.map_err(|source| self.fail(source))?;
        let path = self.folder.join(USAGE_FILE);
        let fail = |source| StoreError::Io { url: path.display().to_string(), source };
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(OFlags::NOFOLLOW.bits() as i32)
            .open(&path)
            .map_err(fail)?;
        if !UsageFile::may_be(&file).map_err(fail)? {
            let why = "expected what a folder of blocks or layouts holds, found another file";
            let why = format!("{why}; give the cache or the index a folder of its own");
            return Err(StoreError::Unsupported { url: path.display().to_string(), why });
        }
        let began = Instant::now();
        let mut pause = Duration::from_micros(50);
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if began.elapsed() < LONGEST_WAIT => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(5));
                }
                Err(error) => return Err(fail(error.into())),
            }
        }
        UsageFile::of(file).or_else(|file| {
            // No value may have a higher priority than new ones.
            let level = list(&self.folder)?.iter().map(|value| value.rank.priority).max();
            let mut ledger = UsageFile::new(file, level.unwrap_or_else(SystemTime::now));
            self.count(&mut ledger)?;
            Ok(ledger)
        })
    }

    /// Evict values until `incoming` bytes fit.
    fn make_room(
        &self,
        files: &mut VecDeque<Candidate>,
        ledger: &mut UsageFile,
        incoming: u64,
    ) -> Result<(), StoreError> {
        let most = self.limit.saturating_sub(incoming);
        while ledger.bytes > most {
            let Some(next) = files.pop_front() else {
                let values = self.count(ledger)?;
                let excess = ledger.bytes.saturating_sub(most);
                if excess > 0 {
                    *files =
                        eviction_order(values, |value| value.rank, self.limit, incoming, excess);
                }
                continue;
            };
            // It may have been used, or removed, since it was chosen.
            if fs::metadata(&next.path).is_ok_and(|stat| rank(&stat) == next.rank) {
                remove_ours(&next.path)?;
                ledger.level.note_eviction(next.rank.bytes, next.rank.priority, self.limit);
                let rest_bytes = ledger.bytes.saturating_sub(next.rank.bytes);
                ledger.set(rest_bytes).map_err(|source| self.fail(source))?;
            }
        }
        Ok(())
    }

    /// Count the bytes in use, and remove half-written files.
    fn count(&self, ledger: &mut UsageFile) -> Result<Vec<Candidate>, StoreError> {
        let (part_files, values): (Vec<Candidate>, Vec<Candidate>) =
            list(&self.folder)?.into_iter().partition(Candidate::is_unfinished);
        part_files.iter().try_for_each(|value| remove_ours(&value.path))?;
        let bytes = values.iter().map(|value| value.rank.bytes).sum();
        ledger.set(bytes).map_err(|source| self.fail(source))?;
        Ok(values)
    }
}

/// A limit that users may set: `$VARIABLES_BYTES`, else `limit`. `name`: what it limits.
///
/// # Errors
/// [`StoreError::Unsupported`] if the variable is not a number.
pub fn limit_of(name: &str, variables: &str, limit: u64) -> Result<u64, StoreError> {
    let variable = format!("{variables}_BYTES");
    match std::env::var(&variable) {
        Err(_) => Ok(limit),
        Ok(text) => text.parse().map_err(|_| StoreError::Unsupported {
            url: name.into(),
            why: format!("{variable} must be a number of bytes, not {text:?}"),
        }),
    }
}

#[cfg(test)]
mod tests;
