//! Remove a folder whatever is in it, without following a link.

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, chmod, fchmod, fstat, openat, renameat, unlinkat,
};
use rustix::io::{Errno, Result};
use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Entries of a folder that are read at once.
const BATCH: usize = 1000;

/// Remove a folder and all that is in it; nothing if it is not there.
///
/// Folders within folders are moved to the top before they are emptied, so a path of any depth
/// needs two descriptors and no stack.
///
/// # Errors
///
/// The error of the system, if an entry can be neither removed nor moved.
pub(crate) fn remove_folder(parent: impl AsFd, name: impl AsRef<OsStr>) -> Result<()> {
    let name = name.as_ref();
    let top = match open_folder(&parent, name) {
        Err(Errno::NOENT) => return Ok(()),
        other => other?,
    };
    let mut number = 0_u64;
    loop {
        let entries = entries(&top)?;
        if entries.is_empty() {
            break;
        }
        for entry in entries {
            match unlinkat(&top, &entry, AtFlags::empty()) {
                Err(Errno::ISDIR | Errno::PERM) => empty(&top, &entry, &mut number)?,
                other => other?,
            }
        }
    }
    drop(top);
    unlinkat(&parent, name, AtFlags::REMOVEDIR)
}

/// Remove a folder below the top; its own folders are moved up.
fn empty(top: &OwnedFd, name: &CString, number: &mut u64) -> Result<()> {
    let folder = open_folder(top, name)?;
    loop {
        let entries = entries(&folder)?;
        if entries.is_empty() {
            return unlinkat(top, name, AtFlags::REMOVEDIR);
        }
        for entry in entries {
            match unlinkat(&folder, &entry, AtFlags::empty()) {
                Err(Errno::ISDIR | Errno::PERM) => {
                    // The owner may move a folder only if it can be written to.
                    drop(open_folder(&folder, &entry)?);
                    move_up(&folder, &entry, top, number)?;
                }
                other => other?,
            }
        }
    }
}

/// Move a folder to the top under a name that is not in use.
fn move_up(folder: &OwnedFd, entry: &CString, top: &OwnedFd, number: &mut u64) -> Result<()> {
    loop {
        *number += 1;
        match renameat(folder, entry, top, format!(".swathe-{number}")) {
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            other => return other,
        }
    }
}

/// Open a folder, not a link to one, after giving its owner all rights to it.
pub(crate) fn open_folder(
    parent: impl AsFd,
    name: impl rustix::path::Arg + Copy,
) -> Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(&parent, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let place = openat(&parent, name, flags | OFlags::PATH, Mode::empty())?;
            // The descriptor names the folder itself: no link can take its place.
            chmod(format!("/proc/self/fd/{}", place.as_raw_fd()), Mode::RWXU)?;
            openat(&parent, name, flags, Mode::empty())
        }
        Ok(folder) => {
            let mode = Mode::from_raw_mode(fstat(&folder)?.st_mode);
            if !mode.contains(Mode::RWXU) {
                fchmod(&folder, mode | Mode::RWXU)?;
            }
            Ok(folder)
        }
        other => other,
    }
}

fn entries(folder: &OwnedFd) -> Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let is_own = entry.file_type() == FileType::Directory
            && matches!(entry.file_name().to_bytes(), b"." | b"..");
        if !is_own {
            names.push(entry.file_name().to_owned());
        }
        if names.len() == BATCH {
            break;
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{mkdirat, mknodat};
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn open(path: &std::path::Path) -> OwnedFd {
        rustix::fs::open(path, OFlags::DIRECTORY, Mode::empty()).unwrap()
    }

    #[test]
    fn links_special_files_and_locked_folders_are_removed() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("precious"), "x").unwrap();
        let top = tempfile::tempdir().unwrap();
        let job = top.path().join("job");
        fs::create_dir_all(job.join("a/b/c")).unwrap();
        symlink(outside.path(), job.join("link")).unwrap();
        symlink(outside.path(), job.join("a/b/link")).unwrap();
        let pipe = Mode::RUSR | Mode::WUSR;
        mknodat(open(&job.join("a")), "pipe", FileType::Fifo, pipe, 0).unwrap();
        fs::set_permissions(job.join("a/b"), fs::Permissions::from_mode(0o000)).unwrap();
        remove_folder(open(top.path()), "job").unwrap();
        assert!(!job.exists() && outside.path().join("precious").exists());
        remove_folder(open(top.path()), "job").unwrap();
    }

    #[test]
    fn a_path_of_any_depth_is_removed() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join("job")).unwrap();
        let mut folder = open(&top.path().join("job"));
        for _ in 0..3000 {
            mkdirat(&folder, "deep", Mode::RWXU).unwrap();
            folder = openat(&folder, "deep", OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
        remove_folder(open(top.path()), "job").unwrap();
        assert_eq!(fs::read_dir(top.path()).unwrap().count(), 0);
    }
}
