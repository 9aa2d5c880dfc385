//! The user under which a job runs: never root.

use crate::error::{Context, Error};
use crate::process_table::processes_of;
use crate::request::UserRange;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open, openat};
use rustix::process::{getegid, geteuid, getgid, getuid};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};

/// Where root locks the ids that are in use.
const LOCKS: &str = "/run/swathe-sandbox";

/// User of a job.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Whether it is another one than that of this process.
    pub(crate) is_other: bool,
    /// Held until the job and its guardian have ended.
    _lock: Option<OwnedFd>,
}

impl User {
    /// Choose the user of a job: a free one of the range for root, else that of this process.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if root has no range; [`Error::Busy`] if all its ids are in use;
    /// [`Error::Request`] if somebody else than root has a range.
    pub(crate) fn choose(users: Option<UserRange>) -> Result<User, Error> {
        if getuid() != geteuid() || getgid() != getegid() {
            let text = "user: expected the same real and effective ids, found a setuid program";
            return Err(Error::Unavailable(text.into()));
        }
        match (getuid().is_root(), users) {
            (true, Some(range)) => free_user(range),
            (true, None) => Err(Error::Unavailable(
                "user: root runs no program of users without user ids for them; give them as `--users 70000:16`".into(),
            )),
            (false, Some(_)) => Err(Error::Request(
                "users: only root can choose user ids; this process is not root".into(),
            )),
            (false, None) => {
                let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
                Ok(User { uid, gid, is_other: false, _lock: None })
            }
        }
    }
}

#[cfg(test)]
impl User {
    /// Return a user without a lock.
    pub(crate) fn for_tests(uid: u32, gid: u32) -> User {
        User { uid, gid, is_other: false, _lock: None }
    }
}

fn free_user(range: UserRange) -> Result<User, Error> {
    match fs::DirBuilder::new().mode(0o700).create(LOCKS) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
    .context(LOCKS)?;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = open(LOCKS, flags, Mode::empty()).context(LOCKS)?;
    let meta = fs::symlink_metadata(LOCKS).context(LOCKS)?;
    if meta.uid() != 0 || meta.mode() & 0o022 != 0 {
        return Err(Error::Unavailable(format!("{LOCKS}: expected a folder of root alone")));
    }
    for uid in range.ids() {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock = openat(&folder, uid.to_string(), flags, Mode::RUSR | Mode::WUSR)
            .context(format!("{LOCKS}/{uid}"))?;
        let is_free = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        if is_free && processes_of(uid).is_empty() {
            return Ok(User { uid, gid: uid, is_other: true, _lock: Some(lock) });
        }
    }
    Err(Error::Busy(format!(
        "users: all {} ids from {} are in use, by jobs or by other processes",
        range.count, range.first
    )))
}
