//! One disk: a folder with objects, and a hidden folder with what is ours. It may be absent, go and
//! come back.

use crate::block_sums::{BlockSums, ObjectId, SumsError};
use crate::disk_queue::{DiskQueue, LONGEST, QueueError, THREADS, WorkTimes};
use crate::error::RequestError;
use crate::identity::{Identity, Member};
use crate::object_path::ObjectPath;
use crate::object_time::learn_folder_time;
use crate::own_folder::{
    ABSENT, ASIDE, IDENTITY, LOCK, NEW, NEW_PREFIX, Presence, SUMS, aside_name, is_at,
    is_not_found, lock_disk, make_own_folder, object_bytes, own_path, remove,
};
use crate::request_record::RequestRecord;
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use swathe_store::{Refusal, StoreFolders};
use tokio::sync::Notify;

/// A folder that is only a place to open from.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

/// Counts of a disk since the start.
#[derive(Debug, Default)]
pub(crate) struct DiskCounts {
    pub(crate) read_bytes: AtomicU64,
    pub(crate) write_bytes: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) damages: AtomicU64,
    /// Objects that were set aside: another disk had a newer one of the name.
    pub(crate) aside_objects: AtomicU64,
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
    /// The lock that the start took, until the disk is first used.
    start_lock: Mutex<Option<File>>,
    /// Whether it was absent since its last arrival was counted.
    was_absent: AtomicBool,
    group: Arc<DiskGroup>,
    pub(crate) queue: DiskQueue,
    pub(crate) max_bytes: Option<u64>,
    /// Bytes of objects, and of those that are being written, if there is a limit.
    pub(crate) used_bytes: AtomicU64,
    pub(crate) counts: DiskCounts,
}

/// What all disks of a server share.
#[derive(Debug)]
pub(crate) struct DiskGroup {
    pub(crate) members: Vec<Member>,
    /// How often a disk came, at the start or later.
    pub(crate) arrivals: AtomicU64,
    pub(crate) arrival: Notify,
}

impl Disk {
    /// A disk, present or not; `lock`: of one that is present.
    pub(crate) fn start(
        member: Member,
        max_bytes: Option<u64>,
        lock: Option<File>,
        group: &Arc<DiskGroup>,
    ) -> io::Result<Disk> {
        let name: Arc<str> = member.path.display().to_string().into();
        Ok(Disk {
            folders: StoreFolders::new(member.path.clone(), Vec::new()),
            presence: Mutex::default(),
            start_lock: Mutex::new(lock),
            was_absent: AtomicBool::new(false),
            group: group.clone(),
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
        let (result, times) = self.run_for_nobody(limit, work).await;
        record.add_times(times);
        if result.as_ref().is_err_and(|error| error.damage().is_some()) {
            record.set_disk(&self.name);
        }
        result
    }

    /// The same, for no request.
    pub(crate) async fn run_for_nobody<T: Send + 'static>(
        self: &Arc<Disk>,
        limit: Duration,
        work: impl FnOnce(&Arc<Disk>) -> Result<T, RequestError> + Send + 'static,
    ) -> (Result<T, RequestError>, WorkTimes) {
        let disk = self.clone();
        let busy = |why: String| RequestError::DiskBusy { disk: self.name.clone(), why };
        let (result, times) = match self.queue.run_within(limit, move || work(&disk)).await {
            Ok((result, times)) => {
                let disk_ns = times.disk.as_nanos() as u64;
                self.counts.work_ns.fetch_add(disk_ns, Ordering::Relaxed);
                (result, times)
            }
            Err(error) => {
                let error = match error {
                    QueueError::Panic => RequestError::Panic { disk: self.name.clone() },
                    QueueError::Busy => busy(format!("no answer in {} s", limit.as_secs())),
                    QueueError::Silent => busy("it does not answer".into()),
                };
                (Err(error), WorkTimes::default())
            }
        };
        if let Err(error) = &result {
            let is_damage = error.damage().is_some();
            self.counts.damages.fetch_add(is_damage.into(), Ordering::Relaxed);
            let is_error = error.status().is_server_error();
            self.counts.errors.fetch_add(is_error.into(), Ordering::Relaxed);
            if is_damage {
                eprintln!("swathe: {error}");
            }
        }
        (result, times)
    }

    /// Refuse work for one more request, if those that wait for this disk leave too few of the
    /// `free` places of requests to others.
    pub(crate) fn check_share(&self, free: usize) -> Result<(), RequestError> {
        let waiting = self.queue.length();
        if waiting < 2 * free + THREADS {
            return Ok(());
        }
        let (disk, why) =
            (self.name.clone(), format!("{waiting} requests wait for it; come again"));
        Err(RequestError::DiskBusy { disk, why })
    }

    /// Work that waits for the disk or runs there.
    pub(crate) fn queue_length(&self) -> usize {
        self.queue.length()
    }

    /// Whether it was absent when it was last looked for.
    pub(crate) fn was_absent(&self) -> bool {
        self.was_absent.load(Ordering::Acquire)
    }

    /// Check that the disk is there, and the one that it was.
    pub(crate) fn check_present(&self) -> Result<(), RequestError> {
        let missing = |why: String| RequestError::DiskMissing { disk: self.name.clone(), why };
        let status = fs::metadata(&self.member.path).map_err(|error| {
            self.was_absent.store(true, Ordering::Release);
            missing(error.to_string())
        })?;
        let mut presence = self.presence.lock().unwrap_or_else(PoisonError::into_inner);
        match &*presence {
            Some(last) if (last.device, last.inode) == (status.dev(), status.ino()) => {}
            _ => {
                self.was_absent.store(true, Ordering::Release);
                *presence = None;
                *presence = Some(self.adopt(&status).map_err(missing)?);
            }
        }
        if self.was_absent.swap(false, Ordering::AcqRel) {
            self.group.arrivals.fetch_add(1, Ordering::Release);
            self.group.arrival.notify_one();
        }
        Ok(())
    }

    /// Take possession of a disk that is there for the first time, or again.
    fn adopt(&self, status: &Metadata) -> Result<Presence, String> {
        let expected = self.member.id;
        let identity = match Identity::read(&self.own(IDENTITY))? {
            Some(identity) if identity.id == expected => identity,
            Some(identity) => {
                return Err(format!("expected disk {expected:016x}, found {:016x}", identity.id));
            }
            None => {
                return Err(format!(
                    "expected disk {expected:016x}, found a folder without .swathe/disk"
                ));
            }
        };
        let fail = |error: io::Error| error.to_string();
        let start_lock = self.start_lock.lock().unwrap_or_else(PoisonError::into_inner).take();
        let lock = match start_lock {
            Some(lock) if is_at(&lock, &self.own(LOCK)) => lock,
            _ => lock_disk(&self.member.path)?,
        };
        for name in [NEW, SUMS, ABSENT, ASIDE] {
            make_own_folder(&self.own(name)).map_err(fail)?;
        }
        // These changed when names did.
        for name in [NEW, ABSENT] {
            learn_folder_time(&fs::metadata(self.own(name)).map_err(fail)?);
        }
        self.remove_leftovers().map_err(fail)?;
        let mut absences = self.read_absences().map_err(fail)?;
        let members = &self.group.members;
        if identity.members != *members {
            // What it does not know of may have objects of the same names.
            let is_new = |id: &u64| identity.members.iter().all(|member| member.id != *id);
            let ids: Vec<u64> = members.iter().map(|member| member.id).filter(is_new).collect();
            self.write_absences(&ids).map_err(fail)?;
            absences.extend(ids.into_iter().map(|id| (id, 0)));
            let identity = Identity { id: expected, members: members.clone() };
            identity.write(&self.own(IDENTITY)).map_err(fail)?;
        }
        if self.max_bytes.is_some() {
            let bytes = object_bytes(&self.member.path).map_err(fail)?;
            self.used_bytes.store(bytes, Ordering::Relaxed);
        }
        Ok(Presence { device: status.dev(), inode: status.ino(), absences, _lock: lock })
    }

    fn read_absences(&self) -> io::Result<BTreeMap<u64, u64>> {
        let mut absences = BTreeMap::new();
        for entry in fs::read_dir(self.own(ABSENT))? {
            let id = u64::from_str_radix(&entry?.file_name().to_string_lossy(), 16);
            absences.extend(id.map(|id| (id, 0)));
        }
        Ok(absences)
    }

    fn write_absences(&self, ids: &[u64]) -> io::Result<()> {
        let folder = self.own(ABSENT);
        for id in ids {
            File::create(folder.join(format!("{id:016x}")))?;
        }
        File::open(folder)?.sync_all()
    }

    /// Note that names on this disk change while others are absent: they are compared with it when
    /// they are back.
    pub(crate) fn note_absences(&self, ids: &[u64]) -> Result<(), RequestError> {
        self.change_absences(|absences| {
            let is_new = |id: &u64| !absences.contains_key(id);
            let new_ids: Vec<u64> = ids.iter().copied().filter(is_new).collect();
            if !new_ids.is_empty() {
                self.write_absences(&new_ids)?;
            }
            ids.iter().for_each(|&id| *absences.entry(id).or_default() += 1);
            Ok(())
        })
    }

    /// Note that a disk which was absent was compared with this one. `notes`: of it, before the
    /// comparison; if there are more, it was absent again. Whether it is forgotten.
    pub(crate) fn forget_absence(&self, id: u64, notes: u64) -> Result<bool, RequestError> {
        let mut is_over = true;
        self.change_absences(|absences| {
            is_over = absences.get(&id).is_none_or(|&now| now == notes);
            if is_over {
                remove(&self.own(ABSENT).join(format!("{id:016x}")))?;
                absences.remove(&id);
            }
            Ok(())
        })?;
        Ok(is_over)
    }

    /// The disks that were absent while names on this one changed, and how often that was noted.
    pub(crate) fn absences(&self) -> Result<Vec<(u64, u64)>, RequestError> {
        let mut notes = Vec::new();
        self.change_absences(|absences| {
            notes.extend(absences.iter().map(|(&id, &notes)| (id, notes)));
            Ok(())
        })?;
        Ok(notes)
    }

    fn change_absences(
        &self,
        change: impl FnOnce(&mut BTreeMap<u64, u64>) -> io::Result<()>,
    ) -> Result<(), RequestError> {
        self.check_present()?;
        let mut presence = self.presence.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = |why: String| RequestError::DiskMissing { disk: self.name.clone(), why };
        let presence = presence.as_mut().ok_or_else(|| missing("it went away".into()))?;
        change(&mut presence.absences).map_err(|error| missing(error.to_string()))
    }

    /// Remove what was being written when the server was killed: nobody else has the lock.
    fn remove_leftovers(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.own(NEW))? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(NEW_PREFIX) {
                let status = entry.metadata()?;
                // With a second name it is an object, which lost only this one's removal.
                if status.nlink() == 1 {
                    remove(&self.sums_path(status.ino()))?;
                }
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

    /// A path for an object that is set aside.
    pub(crate) fn aside_path(&self, number: u64, path: &ObjectPath) -> PathBuf {
        self.own(ASIDE).join(aside_name(number, path))
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
            Err(Refusal::Io(error)) if is_not_found(&error) => Ok(None),
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
            Err(error) if is_not_found(&error) => return Ok(None),
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
