//! Our folder on a disk: its names, and its lock. Also what a disk is asked by its path.

use crate::object_path::{OWN_FOLDER, ObjectPath};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Beginning of the names of files that are being written.
pub(crate) const NEW_PREFIX: &str = "put-";
/// Names in our folder.
pub(crate) const IDENTITY: &str = "disk";
pub(crate) const NEW: &str = "new";
pub(crate) const SUMS: &str = "sums";
pub(crate) const ABSENT: &str = "absent";
pub(crate) const ASIDE: &str = "aside";
pub(crate) const LOCK: &str = "lock";

/// Most bytes of a name in a folder.
const LONGEST_NAME: usize = 255;

/// A path in our folder on a disk.
pub(crate) fn own_path(disk: &Path, name: &str) -> PathBuf {
    disk.join(OWN_FOLDER).join(name)
}

/// The name of an object that is set aside: a number, and its path, or the end of a long one.
pub(crate) fn aside_name(number: u64, path: &ObjectPath) -> String {
    let path = path.url_path().replace('/', "%2F");
    let start = path.len().saturating_sub(LONGEST_NAME - 17);
    format!("{number:016x}-{}", &path[start..])
}

/// Make a folder of ours, if it is not there; the name of a new one is on the disk then.
pub(crate) fn make_own_folder(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Ok(()) => File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all(),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether an error says that a path leads to no file.
pub(crate) fn is_not_found(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

/// Remove a file, if it is there.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if !is_not_found(&error) => Err(error),
        _ => Ok(()),
    }
}

/// A disk that is there.
#[derive(Debug)]
pub(crate) struct Presence {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    /// Disks that were absent while names on this one changed, and how often that was noted since
    /// this one came.
    pub(crate) absences: BTreeMap<u64, u64>,
    pub(crate) _lock: File,
}

/// Lock a disk for this server: as long as the file is open.
pub(crate) fn lock_disk(path: &Path) -> Result<File, String> {
    let fail = |error: io::Error| error.to_string();
    make_own_folder(&path.join(OWN_FOLDER)).map_err(fail)?;
    let options = File::options().write(true).create(true).truncate(false).to_owned();
    let lock = options.open(own_path(path, LOCK)).map_err(fail)?;
    lock.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => "another server uses it".to_string(),
        TryLockError::Error(error) => {
            format!("{} cannot be locked: {error}", own_path(path, LOCK).display())
        }
    })?;
    Ok(lock)
}

/// Whether a path still leads to an open file.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    let id = |status: Metadata| (status.dev(), status.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(there)) => id(ours) == id(there),
        _ => false,
    }
}

/// Bytes of all files on a disk. Our folder does not count, nor what we may not read, as `lost+found`.
pub(crate) fn object_bytes(root: &Path) -> io::Result<u64> {
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
