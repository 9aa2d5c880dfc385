//! Names of files on a disk. When a function here returns, the new names are on the disk.

use crate::disk::{Disk, ObjectStatus};
use crate::error::RequestError;
use crate::identity::random_number;
use crate::object_path::ObjectPath;
use crate::object_time::unique_times;
use crate::own_folder::remove;
use hyper::StatusCode;
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, openat, renameat, renameat_with, unlinkat,
    utimensat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use swathe_store::sync_folder;

/// Give a file on a disk another name. A file that had this name is gone then, with its checksums.
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

/// Set the time of a file to now. Of two objects of one name, the one with the later time counts.
pub(crate) fn note_time(folder: &OwnedFd, path: &ObjectPath) -> io::Result<()> {
    Ok(utimensat(folder, path.name(), &unique_times(), AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Move an object from its name into our folder; its path there. `None` if the name leads to another
/// object than that of `status`.
pub(crate) fn set_aside(
    disk: &Disk,
    path: &ObjectPath,
    status: &ObjectStatus,
) -> Result<Option<PathBuf>, RequestError> {
    let fail = |error: io::Error| disk.fail(path, error);
    let place = disk.aside_path(random_number().map_err(fail)?, path);
    let Some(folder) = disk.open_folder(path)? else { return Ok(None) };
    let Some(old) = OldFile::pin(&folder, path).map_err(|error| fail(error.into()))? else {
        return Ok(None);
    };
    let old_status = old.0.metadata().map_err(fail)?;
    let key = |status: &ObjectStatus| (status.id.inode, status.modified_ns);
    // The status of a link is that of its target.
    if old_status.is_file() && key(&ObjectStatus::of(&old_status)) != key(status) {
        return Ok(None);
    }
    renameat(&folder, path.name(), CWD, &place).map_err(|error| fail(error.into()))?;
    // Its new name is on the disk before the old one is gone.
    let aside = place.parent().unwrap_or(Path::new("/"));
    File::open(aside).and_then(|aside| aside.sync_all()).map_err(fail)?;
    sync_folder(&folder).map_err(fail)?;
    disk.release(old_status.len());
    disk.counts.aside_objects.fetch_add(1, Ordering::Relaxed);
    Ok(Some(place))
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
