//! A folder of values by key that never grows beyond its limit, shared by processes.
//!
//! One file per key, named by the key's hash. A value is written to a file of its own and
//! renamed into place, so that a reader sees all of it or nothing, whoever is killed when; what
//! is damaged anyway fails its checksum, counts as absent and is removed.
//!
//! Who writes or removes holds a lock on the file `usage`, which says how many bytes there are.
//! They are added before they are written and taken off after they are removed: whoever is killed
//! in between leaves too large a number, never too small a one. Readers need no lock.

use crate::error::StoreError;
use bytes::Bytes;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

const MAGIC: &[u8; 8] = b"SWSHELF1";
/// Magic, checksum, bytes of the key, bytes of the value.
const HEAD_BYTES: usize = 8 + 4 + 4 + 8;
/// Folders the files are spread over.
const FAN_OUT: u64 = 256;
/// What file systems give space in.
const DISK_BLOCK_BYTES: u64 = 4096;
/// Eviction goes down to this share of the limit, so that it is not needed for every value.
const EVICT_TO_PERCENT: u64 = 90;
/// A value that was read is marked as used if its last mark is older than this.
const MARK_EVERY: Duration = Duration::from_secs(60);
/// A writer that has waited for the others so long gives up: one of them may have been stopped.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// Where the bytes in use are written down.
const USAGE_FILE: &str = "usage";

/// A size-limited folder of values.
#[derive(Debug)]
pub struct Shelf {
    folder: PathBuf,
    limit: u64,
    /// Threads of this process queue here, and only one waits for other processes.
    writing: Mutex<()>,
}

/// What a shelf holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Number of values.
    pub values: u64,
    /// Bytes their files take on disk.
    pub bytes: u64,
    /// Bytes allowed.
    pub limit: u64,
}

struct Kept {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// The locked file that says how many bytes are in use.
struct Ledger {
    file: File,
    bytes: u64,
}

impl Shelf {
    /// A shelf of the user: `$<variables>_DIR`, else `$XDG_CACHE_HOME/swathe/<name>`, else
    /// `~/.cache/swathe/<name>`; at most `$<variables>_BYTES`, else `limit`.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] where the environment says nothing usable.
    pub fn user(name: &str, variables: &str, limit: u64) -> Result<Shelf, StoreError> {
        let path = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let unusable = |why| StoreError::Unsupported { url: name.into(), why };
        let own_folder = format!("{variables}_DIR");
        let folder = path(&own_folder)
            .or_else(|| path("XDG_CACHE_HOME").map(|cache| cache.join("swathe").join(name)))
            .or_else(|| path("HOME").map(|home| home.join(".cache/swathe").join(name)))
            .ok_or_else(|| {
                unusable(format!("none of {own_folder}, XDG_CACHE_HOME and HOME is set"))
            })?;
        Ok(Shelf::at(folder, limit_of(name, variables, limit)?))
    }

    /// The user's index: at most 1 GiB unless `$SWATHE_INDEX_BYTES` says otherwise.
    ///
    /// # Errors
    /// As [`Shelf::user`].
    pub fn index() -> Result<Shelf, StoreError> {
        Shelf::user("index", "SWATHE_INDEX", 1 << 30)
    }

    /// A shelf in a folder, made when the first value is put.
    pub fn at(folder: impl Into<PathBuf>, limit: u64) -> Shelf {
        Shelf { folder: folder.into(), limit, writing: Mutex::new(()) }
    }

    /// Where it lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Bytes allowed.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The value put last under `key`; `None` where there is none that can be read whole.
    pub fn get(&self, key: &str) -> Option<Bytes> {
        let path = self.path(key);
        let mut file = File::open(&path).ok()?;
        let bytes = self.read(&mut file)?;
        let Some(value_at) = check(&bytes, key) else {
            self.discard(&path, key);
            return None;
        };
        if file.metadata().ok()?.modified().ok()?.elapsed().is_ok_and(|age| age > MARK_EVERY) {
            // Only the order of eviction hangs on the mark, and the folder may be read-only.
            let _ = file.set_modified(SystemTime::now());
        }
        Some(Bytes::from(bytes).slice(value_at..))
    }

    /// Up to `max` first bytes of the value under `key`, not checked: what [`Shelf::get`] is
    /// likely to give.
    pub fn glance(&self, key: &str, max: usize) -> Option<Bytes> {
        let file = File::open(self.path(key)).ok()?;
        let value_at = HEAD_BYTES + key.len();
        let mut bytes = vec![0; value_at + max];
        let read = file.read_at(&mut bytes, 0).ok()?;
        bytes.truncate(read);
        let whole = bytes.starts_with(MAGIC) && bytes.get(HEAD_BYTES..value_at)? == key.as_bytes();
        whole.then(|| Bytes::from(bytes).slice(value_at..))
    }

    /// Keep `value` under `key`, in place of what was there. Values used longest ago give way
    /// before the limit is passed; one larger than the limit is not kept.
    ///
    /// # Errors
    /// [`StoreError::Io`] where the folder cannot be written.
    pub fn put(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        if self.fits(key, value).is_none() {
            return Ok(());
        }
        let _turn = self.turn();
        let ledger = self.ledger()?;
        self.write(ledger, key, value)
    }

    /// Keep what `change` makes of the value under `key`, if it makes anything; nobody else
    /// changes it meanwhile. As [`Shelf::put`].
    ///
    /// # Errors
    /// As [`Shelf::put`].
    pub fn update(
        &self,
        key: &str,
        change: impl FnOnce(Option<Bytes>) -> Option<Vec<u8>>,
    ) -> Result<(), StoreError> {
        let _turn = self.turn();
        let ledger = self.ledger()?;
        let kept = File::open(self.path(key)).ok().and_then(|mut file| self.read(&mut file));
        let kept = kept.and_then(|bytes| {
            let value_at = check(&bytes, key)?;
            Some(Bytes::from(bytes).slice(value_at..))
        });
        match change(kept) {
            Some(value) => self.write(ledger, key, &value),
            None => Ok(()),
        }
    }

    /// What a value takes, unless it is larger than the limit.
    fn fits(&self, key: &str, value: &[u8]) -> Option<u64> {
        let bytes = on_disk((HEAD_BYTES + key.len() + value.len()) as u64);
        (bytes <= self.limit).then_some(bytes)
    }

    fn write(&self, mut ledger: Ledger, key: &str, value: &[u8]) -> Result<(), StoreError> {
        let Some(bytes) = self.fits(key, value) else { return Ok(()) };
        let path = self.path(key);
        if ledger.bytes + bytes > self.limit {
            let most = (self.limit / 100 * EVICT_TO_PERCENT).min(self.limit - bytes);
            let left = self.evict(most)?;
            ledger.set(left).map_err(|source| self.fail(source))?;
        }
        let before = ledger.bytes;
        ledger.set(before + bytes).map_err(|source| self.fail(source))?;
        let replaced = fs::metadata(&path).map_or(0, |stat| on_disk(stat.len()));
        let new = path.with_extension("new");
        let folder = path.parent().unwrap_or(&self.folder);
        let written = fs::create_dir_all(folder)
            .and_then(|()| write_new(&new, key, value))
            .and_then(|()| fs::rename(&new, &path));
        let now = match written {
            Ok(()) => before + bytes - replaced.min(before),
            Err(_) => {
                // The write's own error is what the caller must see.
                let _ = fs::remove_file(&new);
                before
            }
        };
        let noted = ledger.set(now);
        written
            .and(noted)
            .map_err(|source| StoreError::Io { url: path.display().to_string(), source })
    }

    /// What is held.
    ///
    /// # Errors
    /// [`StoreError::Io`] where the folder cannot be read.
    pub fn usage(&self) -> Result<Usage, StoreError> {
        // Where nothing can be written nothing changes either.
        let _turn = self.turn();
        let _ledger = self.folder.exists().then(|| self.ledger().ok());
        let kept = self.list()?;
        let bytes = kept.iter().map(|value| value.bytes).sum();
        let values = kept.iter().filter(|value| !value.is_unfinished()).count() as u64;
        Ok(Usage { values, bytes, limit: self.limit })
    }

    /// Remove all values.
    ///
    /// # Errors
    /// [`StoreError::Io`] where one cannot be removed.
    pub fn clear(&self) -> Result<(), StoreError> {
        if !self.folder.exists() {
            return Ok(());
        }
        let _turn = self.turn();
        let mut ledger = self.ledger()?;
        let left = self.evict(0)?;
        ledger.set(left).map_err(|source| self.fail(source))
    }

    /// The file of the value whose key has this digest, as it is, if it is no longer than `most`:
    /// for [`value_in`] to check by whoever gets it.
    pub(crate) fn file(&self, digest: u128, most: u64) -> Option<Vec<u8>> {
        let mut file = File::open(self.path_of(digest)).ok()?;
        (file.metadata().ok()?.len() <= most).then(|| self.read(&mut file))?
    }

    fn path(&self, key: &str) -> PathBuf {
        self.path_of(digest(key))
    }

    fn path_of(&self, hash: u128) -> PathBuf {
        self.folder.join(format!("{:02x}", hash as u64 % FAN_OUT)).join(format!("{hash:032x}"))
    }

    fn fail(&self, source: std::io::Error) -> StoreError {
        StoreError::Io { url: self.folder.display().to_string(), source }
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
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
            let left = ledger.bytes.saturating_sub(on_disk(bytes.len() as u64));
            // Too large a number only means that it is counted again sooner.
            let _ = ledger.set(left);
        }
    }

    /// The right to write, and how much there is. What others left half-written is theirs no
    /// more, for whoever writes holds this.
    fn ledger(&self) -> Result<Ledger, StoreError> {
        // Others have no business in what was read with a user's credentials.
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        made.map_err(|source| self.fail(source))?;
        let path = self.folder.join(USAGE_FILE);
        let fail = |source| StoreError::Io { url: path.display().to_string(), source };
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(fail)?;
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
        let mut ledger = Ledger { file, bytes: 0 };
        match ledger.noted() {
            Some(bytes) => ledger.bytes = bytes,
            None => {
                let left = self.evict(u64::MAX)?;
                ledger.set(left).map_err(fail)?;
            }
        }
        Ok(ledger)
    }

    /// Remove what was used longest ago until at most so many bytes are left, and what was left
    /// half-written. Gives what is left. Only for who holds the ledger.
    fn evict(&self, most: u64) -> Result<u64, StoreError> {
        let (unfinished, mut kept): (Vec<Kept>, Vec<Kept>) =
            self.list()?.into_iter().partition(Kept::is_unfinished);
        unfinished.iter().try_for_each(|kept| remove(&kept.path))?;
        let mut bytes: u64 = kept.iter().map(|value| value.bytes).sum();
        if bytes > most {
            kept.sort_by_key(|value| value.used);
        }
        for value in kept {
            if bytes <= most {
                break;
            }
            remove(&value.path)?;
            bytes -= value.bytes;
        }
        Ok(bytes)
    }

    /// All files of values, finished or not.
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
                kept.push(Kept { path, bytes: on_disk(stat.len()), used });
            }
        }
        Ok(kept)
    }
}

impl Kept {
    fn is_unfinished(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "new")
    }
}

impl Ledger {
    /// The number that stands in the file, with its complement.
    fn noted(&self) -> Option<u64> {
        let mut noted = [0; 16];
        self.file.read_exact_at(&mut noted, 0).ok()?;
        let (bytes, complement) = noted.split_at(8);
        let bytes = u64::from_le_bytes(bytes.try_into().ok()?);
        (complement == (!bytes).to_le_bytes()).then_some(bytes)
    }

    fn set(&mut self, bytes: u64) -> std::io::Result<()> {
        let mut noted = [0; 16];
        noted[..8].copy_from_slice(&bytes.to_le_bytes());
        noted[8..].copy_from_slice(&(!bytes).to_le_bytes());
        self.file.write_all_at(&noted, 0)?;
        self.bytes = bytes;
        Ok(())
    }
}

/// A limit that users may set: `$VARIABLES_BYTES`, else `limit`. `name`: what it limits.
///
/// # Errors
/// [`StoreError::Unsupported`] where the variable is no number.
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

/// What a file of so many bytes takes.
fn on_disk(length: u64) -> u64 {
    length.next_multiple_of(DISK_BLOCK_BYTES)
}

/// By which the file of a key is found.
pub(crate) fn digest(key: &str) -> u128 {
    fnv1a(key.as_bytes())
}

/// The value in a file of a shelf, if the file is whole and of this very key.
pub(crate) fn value_in(file: Bytes, key: &str) -> Option<Bytes> {
    check(&file, key).map(|value_at| file.slice(value_at..))
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
        assert_eq!(shelf.get("a").unwrap(), "two");
        assert_eq!(shelf.get("b").unwrap(), "");
        assert_eq!(shelf.usage().unwrap().values, 2);
        shelf.clear().unwrap();
        assert_eq!(shelf.get("a"), None);
        assert_eq!(shelf.usage().unwrap().bytes, 0);
    }

    #[test]
    fn a_file_damaged_at_any_byte_or_cut_anywhere_counts_as_absent_and_is_removed() {
        let (_folder, shelf) = shelf(1 << 20);
        shelf.put("key", b"some value").unwrap();
        let path = file_of(&shelf, "key");
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 4;
            for bad in [&bad, &good[..at]] {
                fs::write(&path, bad).unwrap();
                assert_eq!(shelf.get("key"), None, "byte {at} flipped or cut off");
                assert!(!path.exists());
            }
        }
        fs::write(&path, &good).unwrap();
        assert_eq!(shelf.get("key").unwrap(), "some value");
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
        let limit = 20 * 4096;
        let (_folder, shelf) = shelf(limit);
        let value = vec![7; 1000];
        for i in 0..100 {
            shelf.put(&format!("{i}"), &value).unwrap();
            let age = Duration::from_secs(1000 - i);
            let file = File::options().write(true).open(file_of(&shelf, &format!("{i}"))).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
            assert!(shelf.usage().unwrap().bytes <= limit);
        }
        assert_eq!(shelf.get("0"), None);
        assert_eq!(shelf.get("99").unwrap(), value);
        assert!(shelf.usage().unwrap().values >= 17);
        shelf.put("huge", &[0; 100_000]).unwrap();
        assert_eq!(shelf.get("huge"), None);
        assert_eq!(shelf.get("99").unwrap(), value);
    }

    #[test]
    fn replacing_a_value_takes_no_more_room() {
        let (_folder, shelf) = shelf(10 * 4096);
        shelf.put("kept", b"kept").unwrap();
        for i in 0..100 {
            shelf.put("key", format!("{i}").as_bytes()).unwrap();
        }
        assert_eq!(shelf.usage().unwrap(), Usage { values: 2, bytes: 2 * 4096, limit: 10 * 4096 });
        assert_eq!(shelf.ledger().unwrap().bytes, 2 * 4096);
        assert_eq!(shelf.get("kept").unwrap(), "kept");
    }

    #[test]
    fn what_a_killed_writer_left_is_counted_and_then_removed() {
        let (_folder, shelf) = shelf(4 * 4096);
        shelf.put("key", b"value").unwrap();
        let left = file_of(&shelf, "other").with_extension("new");
        fs::create_dir_all(left.parent().unwrap()).unwrap();
        fs::write(&left, [1; 5000]).unwrap();
        shelf.ledger().unwrap().set(3 * 4096).unwrap();
        assert_eq!(shelf.usage().unwrap().values, 1);
        shelf.put("one", b"1").unwrap();
        assert!(left.exists());
        shelf.put("two", b"2").unwrap();
        assert!(!left.exists());
        assert_eq!(shelf.get("two").unwrap(), "2");
    }

    #[test]
    fn without_its_number_the_folder_is_counted() {
        let (_folder, shelf) = shelf(1 << 20);
        shelf.put("key", b"value").unwrap();
        for wrong in [&b""[..], b"short", &[7; 16]] {
            fs::write(shelf.folder.join(USAGE_FILE), wrong).unwrap();
            assert_eq!(shelf.ledger().unwrap().bytes, 4096);
        }
        fs::remove_dir_all(&shelf.folder).unwrap();
        shelf.put("key", b"value").unwrap();
        assert_eq!(shelf.ledger().unwrap().bytes, 4096);
    }

    #[test]
    fn a_writer_that_was_stopped_holds_nobody_up_for_long() {
        let (_folder, shelf) = shelf(1 << 20);
        shelf.put("key", b"value").unwrap();
        let _stopped = shelf.ledger().unwrap();
        let began = Instant::now();
        let error = shelf.put("key", b"other").unwrap_err();
        assert!(error.to_string().contains(USAGE_FILE), "{error}");
        assert!(began.elapsed() < 2 * LONGEST_WAIT);
        assert_eq!(shelf.get("key").unwrap(), "value");
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
    fn many_writers_and_readers_see_whole_values_and_the_limit_holds() {
        let (_folder, shelf) = shelf(200_000);
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4u8)
                .map(|writer| {
                    // Each as if in a process of its own.
                    let shelf = Shelf::at(shelf.folder(), 200_000);
                    scope.spawn(move || {
                        for i in 0..300 {
                            let value = vec![writer; 500 + 40 * i];
                            shelf.put(&format!("{}", i % 70), &value).unwrap();
                        }
                    })
                })
                .collect();
            let (shelf, stop) = (&shelf, &stop);
            let reader = scope.spawn(move || {
                let mut seen = 0;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    for i in 0..70 {
                        if let Some(value) = shelf.get(&format!("{i}")) {
                            assert!(value.iter().all(|byte| *byte == value[0]));
                            seen += 1;
                        }
                    }
                    assert!(shelf.usage().unwrap().bytes <= 200_000);
                }
                seen
            });
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(reader.join().unwrap() > 0);
        });
        let found = shelf.usage().unwrap();
        assert_eq!(shelf.ledger().unwrap().bytes, found.bytes);
    }
}
