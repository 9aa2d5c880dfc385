//! One disk: a folder with objects, and a hidden folder with what is ours. It may be absent, go and
//! come back.

use crate::block_sums::{BlockSums, ObjectId, SumsError};
use crate::disk_queue::{DiskQueue, LONGEST, QueueError};
use crate::error::RequestError;
use crate::identity::{Identity, Member};
use crate::object_path::ObjectPath;
use crate::request_record::RequestRecord;
use rustix::fs::{OFlags, statvfs};
use rustix::io::Errno;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use swathe_store::{Refusal, StoreFolders};

/// Our folder on a disk.
const OWN_FOLDER: &str = ".swathe";
/// Beginning of the names of files that are being written.
const NEW_PREFIX: &str = "put-";
/// A folder that is only a place to open from.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

/// Counts of a disk since the start.
#[derive(Debug, Default)]
pub(crate) struct DiskCounts {
    pub(crate) read_bytes: AtomicU64,
    pub(crate) write_bytes: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) damages: AtomicU64,
    /// Time of all work of its threads.
    pub(crate) work_ns: AtomicU64,
}

/// A disk of the server.
#[derive(Debug)]
pub(crate) struct Disk {
    /// Its folder, as messages name it.
    pub(crate) name: Arc<str>,
    pub(crate) member: Member,
    folders: StoreFolders,
    /// The folder as it was last, and the lock of it; `None`: the disk was missing.
    presence: Mutex<Option<Presence>>,
    queue: DiskQueue,
    max_bytes: Option<u64>,
    /// Bytes of objects, and of those that are being written, if there is a limit.
    used_bytes: AtomicU64,
    pub(crate) counts: DiskCounts,
}

#[derive(Debug)]
struct Presence {
    device: u64,
    inode: u64,
    _lock: File,
}

/// Bytes of a disk that an object being written may use. Dropped, they are free again.
#[derive(Debug)]
pub(crate) struct Room {
    disk: Arc<Disk>,
    bytes: u64,
}

impl Disk {
    /// A disk, present or not.
    pub(crate) fn start(member: Member, max_bytes: Option<u64>) -> io::Result<Disk> {
        let name: Arc<str> = member.path.display().to_string().into();
        Ok(Disk {
            folders: StoreFolders::new(member.path.clone(), Vec::new()),
            presence: Mutex::default(),
            queue: DiskQueue::start(&name)?,
            max_bytes,
            used_bytes: AtomicU64::default(),
            counts: DiskCounts::default(),
            name,
            member,
        })
    }

    /// Have a thread of the disk do work, and count how long that takes.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Disk>,
        record: &RequestRecord,
        work: impl FnOnce(&Arc<Disk>) -> Result<T, RequestError> + Send + 'static,
    ) -> Result<T, RequestError> {
        self.run_within(LONGEST, record, work).await
    }

    /// The same, with a limit of time.
    pub(crate) async fn run_within<T: Send + 'static>(
        self: &Arc<Disk>,
        limit: Duration,
        record: &RequestRecord,
        work: impl FnOnce(&Arc<Disk>) -> Result<T, RequestError> + Send + 'static,
    ) -> Result<T, RequestError> {
        let disk = self.clone();
        let result = match self.queue.run_within(limit, move || work(&disk)).await {
            Ok((result, times)) => {
                record.add_times(times);
                let disk_ns = times.disk.as_nanos() as u64;
                self.counts.work_ns.fetch_add(disk_ns, Ordering::Relaxed);
                result
            }
            Err(QueueError::Panic) => Err(RequestError::Panic { disk: self.name.clone() }),
            Err(QueueError::Busy) => {
                let (disk, seconds) = (self.name.clone(), limit.as_secs());
                Err(RequestError::DiskBusy { disk, seconds })
            }
        };
        if let Err(error) = &result {
            let is_damage = error.is_damage();
            self.counts.damages.fetch_add(is_damage.into(), Ordering::Relaxed);
            let is_error = error.status().is_server_error();
            self.counts.errors.fetch_add(is_error.into(), Ordering::Relaxed);
            if is_damage {
                record.set_disk(&self.name);
                eprintln!("swathe: {error}");
            }
        }
        result
    }

    /// Work that waits for the disk or runs there.
    pub(crate) fn queue_length(&self) -> usize {
        self.queue.length()
    }

    /// Check that the disk is there, and the one that it was.
    pub(crate) fn check_present(&self) -> Result<(), RequestError> {
        let missing = |why: String| RequestError::DiskMissing { disk: self.name.clone(), why };
        let status = fs::metadata(&self.member.path).map_err(|error| missing(error.to_string()))?;
        let mut presence = self.presence.lock().unwrap_or_else(PoisonError::into_inner);
        match &*presence {
            Some(last) if (last.device, last.inode) == (status.dev(), status.ino()) => Ok(()),
            _ => {
                *presence = None;
                *presence = Some(self.adopt(&status).map_err(missing)?);
                Ok(())
            }
        }
    }

    /// Take possession of a disk that is there for the first time, or again.
    fn adopt(&self, status: &Metadata) -> Result<Presence, String> {
        let expected = self.member.id;
        match Identity::read(&self.own(IDENTITY))? {
            Some(identity) if identity.id == expected => {}
            Some(identity) => {
                return Err(format!("expected disk {expected:016x}, found {:016x}", identity.id));
            }
            None => {
                return Err(format!(
                    "expected disk {expected:016x}, found a folder without .swathe/disk"
                ));
            }
        }
        let fail = |error: io::Error| error.to_string();
        for name in [NEW, SUMS] {
            fs::create_dir_all(self.own(name)).map_err(fail)?;
        }
        let lock = File::create(self.own("lock")).map_err(fail)?;
        lock.try_lock().map_err(|_| "another server uses it".to_string())?;
        self.remove_leftovers().map_err(fail)?;
        if self.max_bytes.is_some() {
            let bytes = object_bytes(&self.member.path).map_err(fail)?;
            self.used_bytes.store(bytes, Ordering::Relaxed);
        }
        Ok(Presence { device: status.dev(), inode: status.ino(), _lock: lock })
    }

    /// Remove what was being written when the server was killed: nobody else has the lock.
    fn remove_leftovers(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.own(NEW))? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(NEW_PREFIX) {
                let inode = entry.metadata()?.ino();
                remove(&self.sums_path(inode))?;
                remove(&entry.path())?;
            }
        }
        Ok(())
    }

    /// A path in our folder.
    fn own(&self, name: &str) -> PathBuf {
        own_path(&self.member.path, name)
    }

    /// Paths of a file that is being written, and of its checksums.
    pub(crate) fn new_paths(&self, number: u64) -> [PathBuf; 2] {
        let folder = self.own(NEW);
        [format!("{NEW_PREFIX}{number:016x}"), format!("{NEW_PREFIX}{number:016x}.sums")]
            .map(|name| folder.join(name))
    }

    /// The path of the checksums of a file.
    pub(crate) fn sums_path(&self, inode: u64) -> PathBuf {
        self.own(SUMS).join(format!("{:02x}", inode & 0xff)).join(format!("{inode:x}"))
    }

    /// Open what a path leads to below the disk; `None`: nothing.
    pub(crate) fn open(
        &self,
        path: &ObjectPath,
        flags: OFlags,
    ) -> Result<Option<OwnedFd>, RequestError> {
        self.open_path(path, path.as_path(), flags)
    }

    /// Open the folder of a path; `None`: there is none.
    pub(crate) fn open_folder(&self, path: &ObjectPath) -> Result<Option<OwnedFd>, RequestError> {
        self.open_path(path, path.folder(), FOLDER)
    }

    fn open_path(
        &self,
        path: &ObjectPath,
        place: &Path,
        flags: OFlags,
    ) -> Result<Option<OwnedFd>, RequestError> {
        self.check_present()?;
        match self.folders.open(place, flags) {
            Ok(file) => Ok(Some(file)),
            Err(Refusal::LeadsOut) => Err(self.leads_out(path)),
            Err(Refusal::Io(error)) if is_absence(&error) => Ok(None),
            Err(Refusal::Io(error)) => Err(self.fail(path, error)),
        }
    }

    /// Open a folder, and make what is missing of it.
    pub(crate) fn make_folder(
        &self,
        path: &ObjectPath,
        folder: &Path,
    ) -> Result<OwnedFd, RequestError> {
        self.check_present()?;
        self.folders.make_folder(folder).map_err(|refusal| match refusal {
            Refusal::LeadsOut => self.leads_out(path),
            Refusal::Io(error) => self.fail(path, error),
        })
    }

    fn leads_out(&self, path: &ObjectPath) -> RequestError {
        RequestError::LeadsOut { path: path.to_string(), disk: self.name.clone() }
    }

    /// The checksums of an open file, if it has any.
    pub(crate) fn open_sums(
        &self,
        path: &ObjectPath,
        id: ObjectId,
    ) -> Result<Option<BlockSums>, RequestError> {
        let file = match File::open(self.sums_path(id.inode)) {
            Err(error) if is_absence(&error) => return Ok(None),
            result => result.map_err(|error| self.fail(path, error))?,
        };
        BlockSums::open(file, id).map_err(|error| self.sums_error(path, error))
    }

    pub(crate) fn sums_error(&self, path: &ObjectPath, error: SumsError) -> RequestError {
        let (path_text, disk) = (path.to_string(), self.name.clone());
        match error {
            SumsError::Io(error) => self.fail(path, error),
            SumsError::Block { byte, expected, found } => {
                RequestError::DamagedBlock { path: path_text, disk, byte, expected, found }
            }
            SumsError::Damaged(found) => RequestError::Damaged {
                path: path_text,
                disk,
                byte: 0,
                expected: "its checksums".into(),
                found,
            },
        }
    }

    /// The error for what the operating system said.
    pub(crate) fn fail(&self, path: &ObjectPath, error: io::Error) -> RequestError {
        let disk = self.name.clone();
        match error.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => {
                RequestError::DiskFull { disk, why: error.to_string() }
            }
            _ => RequestError::Io { path: path.to_string(), disk, source: error },
        }
    }

    /// Bytes that are free for objects, and all that there are.
    pub(crate) fn space(&self) -> Result<(u64, u64), RequestError> {
        self.check_present()?;
        let missing = |error: Errno| RequestError::DiskMissing {
            disk: self.name.clone(),
            why: io::Error::from(error).to_string(),
        };
        let (free, total) = free_and_total(&self.member.path).map_err(missing)?;
        Ok(match self.max_bytes {
            None => (free, total),
            Some(most) => {
                let room = most.saturating_sub(self.used_bytes.load(Ordering::Relaxed));
                (free.min(room), total.min(most))
            }
        })
    }

    /// Free bytes of an object that is no more.
    pub(crate) fn release(&self, bytes: u64) {
        let less = |bytes_now: u64| Some(bytes_now.saturating_sub(bytes));
        let _ = self.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Take no bytes yet for an object that is being written.
    pub(crate) fn room(self: &Arc<Disk>) -> Room {
        Room { disk: self.clone(), bytes: 0 }
    }
}

impl Room {
    /// Take bytes, in all.
    ///
    /// # Errors
    /// [`RequestError::DiskFull`] beyond the limit of the disk.
    pub(crate) fn grow_to(&mut self, bytes: u64) -> Result<(), RequestError> {
        let Some(most) = self.disk.max_bytes else { return Ok(()) };
        let more = bytes.saturating_sub(self.bytes);
        let grow = |bytes_now: u64| bytes_now.checked_add(more).filter(|&sum| sum <= most);
        match self.disk.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow) {
            Ok(_) => {
                self.bytes += more;
                Ok(())
            }
            Err(bytes_now) => {
                let why = format!("{bytes_now} of {most} bytes are used, {more} more are needed");
                Err(RequestError::DiskFull { disk: self.disk.name.clone(), why })
            }
        }
    }

    /// Leave the bytes to the object, of this size.
    pub(crate) fn keep(&mut self, size: u64) {
        self.disk.release(self.bytes.saturating_sub(size));
        self.bytes = 0;
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.disk.release(self.bytes);
    }
}

/// Names in our folder.
pub(crate) const IDENTITY: &str = "disk";
const NEW: &str = "new";
const SUMS: &str = "sums";

/// A path in our folder on a disk.
pub(crate) fn own_path(disk: &Path, name: &str) -> PathBuf {
    disk.join(OWN_FOLDER).join(name)
}

/// Bytes that are free on the file system of a folder, and all that it has.
pub(crate) fn free_and_total(path: &Path) -> rustix::io::Result<(u64, u64)> {
    let space = statvfs(path)?;
    Ok((
        space.f_bavail.saturating_mul(space.f_frsize),
        space.f_blocks.saturating_mul(space.f_frsize),
    ))
}

pub(crate) fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

/// Remove a file, if it is there.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if !is_absence(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Bytes of all files of a folder but ours, and but those that we may not read, as in `lost+found`.
fn object_bytes(root: &Path) -> io::Result<u64> {
    use io::ErrorKind::{NotFound, PermissionDenied};
    let is_left_out = |error: &io::Error| matches!(error.kind(), NotFound | PermissionDenied);
    let mut bytes = 0;
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Err(error) if folder != root && is_left_out(&error) => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            // Of a link, not of its target.
            let status = match entry.metadata() {
                Err(error) if is_left_out(&error) => continue,
                status => status?,
            };
            if status.is_file() {
                bytes += status.len();
            } else if status.is_dir() && !(folder == root && entry.file_name() == OWN_FOLDER) {
                folders.push(entry.path());
            }
        }
    }
    Ok(bytes)
}

/// What is known of an object without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectStatus {
    pub(crate) id: ObjectId,
    pub(crate) modified_ns: i128,
}

impl ObjectStatus {
    pub(crate) fn of(status: &Metadata) -> ObjectStatus {
        let birth = status.created().ok().and_then(|birth| birth.duration_since(UNIX_EPOCH).ok());
        let id = ObjectId {
            size: status.len(),
            inode: status.ino(),
            birth_ns: birth.map_or(0, |birth| birth.as_nanos() as u64),
        };
        let modified_ns =
            i128::from(status.mtime()) * 1_000_000_000 + i128::from(status.mtime_nsec());
        ObjectStatus { id, modified_ns }
    }

    pub(crate) fn modified(&self) -> SystemTime {
        let ns = u64::try_from(self.modified_ns).unwrap_or(0);
        UNIX_EPOCH + Duration::from_nanos(ns)
    }

    /// The strong ETag. Times of files that we write are all different.
    pub(crate) fn etag(&self) -> String {
        format!("\"{:x}-{:x}-{:x}\"", self.id.inode, self.id.size, self.modified_ns)
    }
}
