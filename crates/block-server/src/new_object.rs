//! Objects that are written: a file under a name of ours, its checksums, then one rename.
//!
//! The checksums have their place before the object gets its name, and those of an object that is
//! replaced go after it. So each object that has a name has its own, whenever we are killed.

use crate::block_sums::SumsWriter;
use crate::disk::{Disk, ObjectStatus, Room, remove};
use crate::error::RequestError;
use crate::identity::random_number;
use crate::object_path::ObjectPath;
use hyper::StatusCode;
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_OMIT,
    fallocate, futimens, linkat, openat, renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

const SECOND_NS: u64 = 1_000_000_000;

/// An object on its way to a disk. Dropped before it has a name, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct NewObject {
    disk: Arc<Disk>,
    path: ObjectPath,
    file: File,
    sums: SumsWriter,
    /// Of the file and of its checksums.
    paths: [PathBuf; 2],
    room: Room,
    bytes: u64,
    status: Option<ObjectStatus>,
    has_name: bool,
}

impl NewObject {
    /// Begin an object; of a length, if that is known.
    pub(crate) fn create(
        disk: &Arc<Disk>,
        path: &ObjectPath,
        length: Option<u64>,
    ) -> Result<NewObject, RequestError> {
        disk.check_present()?;
        let mut room = disk.room();
        room.grow_to(length.unwrap_or(0))?;
        let fail = |error| disk.fail(path, error);
        let paths = disk.new_paths(random_number().map_err(fail)?);
        let file = File::create_new(&paths[0]).map_err(fail)?;
        let sums = File::create_new(&paths[1]).inspect_err(|_| drop(remove(&paths[0])));
        let sums = SumsWriter::new(sums.map_err(fail)?);
        let (disk, path) = (disk.clone(), path.clone());
        let (bytes, status, has_name) = (0, None, false);
        let new = NewObject { disk, path, file, sums, paths, room, bytes, status, has_name };
        if let Some(length) = length.filter(|&length| length > 0) {
            // So that a disk without room says so before the bytes are sent.
            // File systems that cannot do it write all the same.
            if let Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) =
                fallocate(&new.file, FallocateFlags::KEEP_SIZE, 0, length)
            {
                return Err(new.fail(error.into()));
            }
        }
        Ok(new)
    }

    /// Write the next bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), RequestError> {
        self.bytes += bytes.len() as u64;
        self.room.grow_to(self.bytes)?;
        let result = self.file.write_all(bytes).and_then(|()| self.sums.add(bytes));
        result.map_err(|error| self.fail(error))?;
        self.disk.counts.write_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Wait until all is on the disk, and put the checksums in their place.
    pub(crate) fn seal(&mut self) -> Result<(), RequestError> {
        let result = self.try_seal();
        self.status = Some(result.map_err(|error| self.fail(error))?);
        Ok(())
    }

    fn try_seal(&mut self) -> io::Result<ObjectStatus> {
        let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        futimens(&self.file, &Timestamps { last_access, last_modification: unique_time() })?;
        self.file.sync_all()?;
        let status = ObjectStatus::of(&self.file.metadata()?);
        self.sums.finish(status.id)?;
        let place = self.disk.sums_path(status.id.inode);
        let folder = place.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder)?;
        fs::rename(&self.paths[1], &place)?;
        File::open(folder)?.sync_all()?;
        Ok(status)
    }

    /// Give it its name. Sealed objects only; `replaces`: whether an object of that name may be.
    ///
    /// # Errors
    /// With status 412 if there is one and it may not.
    pub(crate) fn name(mut self, replaces: bool) -> Result<ObjectStatus, RequestError> {
        let Some(status) = self.status.clone() else {
            return Err(self.fail(io::Error::other("it is not sealed")));
        };
        let (path, disk) = (self.path.clone(), self.disk.clone());
        let folder = disk.make_folder(&path, path.folder())?;
        let result = rename(&disk, (CWD, self.paths[0].as_path()), (&folder, &path), replaces);
        // It may have its name although that may not be on the disk yet.
        self.has_name = result.is_ok() || !self.paths[0].exists();
        if self.has_name {
            self.room.keep(self.bytes);
        }
        result.map(|()| status)
    }

    fn fail(&self, error: io::Error) -> RequestError {
        self.disk.fail(&self.path, error)
    }
}

impl Drop for NewObject {
    fn drop(&mut self) {
        if self.has_name {
            return;
        }
        // Removed at the next start, if they cannot be now. The file is still open, so its inode is
        // no other's.
        if let Ok(metadata) = self.file.metadata() {
            let _ = remove(&self.disk.sums_path(metadata.ino()));
        }
        self.paths.iter().for_each(|path| drop(remove(path)));
    }
}

/// Give a file on a disk another name, with all that follows from it for one that had it.
pub(crate) fn rename(
    disk: &Disk,
    (from_folder, from): (impl AsFd, &Path),
    (folder, path): (&OwnedFd, &ObjectPath),
    replaces: bool,
) -> Result<(), RequestError> {
    let fail = |error: Errno| disk.fail(path, error.into());
    let to = path.name();
    let old = OldFile::pin(folder, path).map_err(fail)?;
    let result = match replaces {
        true => renameat(&from_folder, from, folder, to),
        false => match renameat_with(&from_folder, from, folder, to, RenameFlags::NOREPLACE) {
            // File systems that cannot, as NFS, have hard links.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                linkat(&from_folder, from, folder, to, AtFlags::empty())
                    .and_then(|()| unlinkat(&from_folder, from, AtFlags::empty()))
            }
            result => result,
        },
    };
    match result {
        Err(Errno::EXIST) if !replaces => {
            let text = format!("{path}: exists already");
            return Err(RequestError::refuse(StatusCode::PRECONDITION_FAILED, text));
        }
        Err(Errno::ISDIR | Errno::EXIST | Errno::NOTEMPTY) => {
            let text = format!("{path}: expected an object or nothing, found a folder");
            return Err(RequestError::refuse(StatusCode::CONFLICT, text));
        }
        result => result.map_err(fail)?,
    }
    if let Some(old) = old {
        old.forget(disk).map_err(|error| disk.fail(path, error))?;
    }
    sync_folder(folder).map_err(|error| disk.fail(path, error))
}

/// Remove a file from a disk, with its checksums.
pub(crate) fn remove_object(
    disk: &Disk,
    folder: &OwnedFd,
    path: &ObjectPath,
) -> Result<(), RequestError> {
    let fail = |error: io::Error| disk.fail(path, error);
    let old = OldFile::pin(folder, path).map_err(|error| fail(error.into()))?;
    unlinkat(folder, path.name(), AtFlags::empty()).map_err(|error| fail(error.into()))?;
    if let Some(old) = old {
        old.forget(disk).map_err(fail)?;
    }
    sync_folder(folder).map_err(fail)
}

/// Wait until the names in a folder are on the disk.
pub(crate) fn sync_folder(folder: &OwnedFd) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    File::from(openat(folder, ".", flags, Mode::empty())?).sync_all()
}

/// A file that loses its name. As long as it is open no other gets its inode, and with that its
/// checksums.
struct OldFile(File);

impl OldFile {
    fn pin(folder: &OwnedFd, path: &ObjectPath) -> rustix::io::Result<Option<OldFile>> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(folder, path.name(), flags, Mode::empty()) {
            Ok(file) => Ok(Some(OldFile(file.into()))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Remove the checksums of a file without names.
    fn forget(self, disk: &Disk) -> io::Result<()> {
        let status = self.0.metadata()?;
        if status.is_file() && status.nlink() == 0 {
            disk.release(status.len());
            remove(&disk.sums_path(status.ino()))?;
        }
        Ok(())
    }
}

/// The time, later than any before: two objects with one inode, one after the other, differ by it.
fn unique_time() -> Timespec {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64);
    let last = LAST.fetch_max(now, Ordering::Relaxed);
    let time = match now > last {
        true => now,
        false => LAST.fetch_add(1, Ordering::Relaxed) + 1,
    };
    Timespec { tv_sec: (time / SECOND_NS) as i64, tv_nsec: (time % SECOND_NS) as _ }
}
