//! The folder of a job: it is locked while the job lives, and removed at its end, also by others.

use crate::error::{Context, Error};
use crate::remove::remove_folder;
use crate::users::User;
use rustix::fs::{
    AtFlags, Dir, FlockOperation, Gid, Mode, OFlags, Uid, chownat, flock, mkdirat, open, openat,
    statat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Start of the names of all such folders.
const PREFIX: &str = "swathe-sandbox-";
const IS_FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Folder of a job, with `in`, `out` and `tmp` in it.
#[derive(Debug)]
pub(crate) struct JobFolder {
    pub(crate) path: PathBuf,
    parent: OwnedFd,
    name: String,
    /// Its lock says that the job lives; both processes that look after it share it.
    folder: OwnedFd,
    out: OwnedFd,
}

impl JobFolder {
    /// Make a folder for the files of a job, and remove those of jobs whose processes are gone.
    pub(crate) fn create(work: Option<&Path>, user: &User) -> Result<JobFolder, Error> {
        let work = work.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let what = || work.display().to_string();
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = open(&work, flags, Mode::empty()).context(what())?;
        sweep(&parent).context(what())?;
        let (name, folder) = new_folder(&parent).context(what())?;
        let make = |name: &str| -> rustix::io::Result<OwnedFd> {
            mkdirat(&folder, name, Mode::RWXU)?;
            let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
            chownat(&folder, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
            openat(&folder, name, IS_FOLDER, Mode::empty())
        };
        mkdirat(&folder, "in", Mode::from_raw_mode(0o755)).context(what())?;
        make("tmp").context(what())?;
        let out = make("out").context(what())?;
        Ok(JobFolder { path: work.join(&name), parent, name, folder, out })
    }

    /// The folder into which the program writes.
    pub(crate) fn out(&self) -> BorrowedFd<'_> {
        self.out.as_fd()
    }

    /// Open a folder in it.
    pub(crate) fn open(&self, name: &str) -> rustix::io::Result<OwnedFd> {
        openat(&self.folder, name, IS_FOLDER, Mode::empty())
    }

    /// Remove it; the processes of the job have ended.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        remove_folder(&self.parent, &self.name).context(self.path.display().to_string())
    }
}

/// Make a folder under a new name and lock it.
fn new_folder(parent: &OwnedFd) -> rustix::io::Result<(String, OwnedFd)> {
    loop {
        let mut random = [0_u8; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let name = format!("{PREFIX}{:016x}", u64::from_ne_bytes(random));
        // Others pass through it to `out`; its own entries are not listed to them.
        mkdirat(parent, &name, Mode::from_raw_mode(0o711))?;
        match openat(parent, &name, IS_FOLDER, Mode::empty()).and_then(|folder| {
            flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
            statat(parent, &name, AtFlags::SYMLINK_NOFOLLOW)?;
            Ok(folder)
        }) {
            // A job that starts at the same time has swept it.
            Err(Errno::NOENT | Errno::WOULDBLOCK) => {}
            other => return other.map(|folder| (name, folder)),
        }
    }
}

/// Remove the folders of this user that nobody has locked.
fn sweep(parent: &OwnedFd) -> rustix::io::Result<()> {
    for entry in Dir::read_from(parent)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_bytes().starts_with(PREFIX.as_bytes()) && is_abandoned(parent, name) {
            // Another job may sweep it at the same time; what stays is swept by the next.
            let _ = remove_folder(parent, OsStr::from_bytes(name.to_bytes()));
        }
    }
    Ok(())
}

fn is_abandoned(parent: &OwnedFd, name: &CStr) -> bool {
    let Ok(folder) = openat(parent, name, IS_FOLDER, Mode::empty()) else { return false };
    let is_own = rustix::fs::fstat(&folder).is_ok_and(|meta| meta.st_uid == geteuid().as_raw());
    is_own && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_jobs_that_are_gone_are_swept() {
        let work = tempfile::tempdir().unwrap();
        let (uid, gid) = (geteuid().as_raw(), rustix::process::getegid().as_raw());
        let user = User::for_tests(uid, gid);
        let gone = JobFolder::create(Some(work.path()), &user).unwrap();
        std::fs::write(gone.path.join("out/file"), "x").unwrap();
        let path = gone.path.clone();
        drop(gone);
        let live = JobFolder::create(Some(work.path()), &user).unwrap();
        assert!(!path.exists());
        let other = JobFolder::create(Some(work.path()), &user).unwrap();
        assert!(live.path.join("out").exists());
        other.remove().unwrap();
        assert!(!other.path.exists());
    }
}
