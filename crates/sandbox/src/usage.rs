//! What a job uses: CPU time, memory and processes of all that it started; its files.

use crate::cpu_time::CpuTime;
use crate::process_table::{Process, descendants};
use crate::remove::open_folder;
use rustix::fs::{AtFlags, Dir, Mode, Stat, fchmod, fstat, stat, statat};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Folders deeper than this count as too many.
const DEEPEST: usize = 100;
const BLOCK_BYTES: u64 = 512;
/// What a pipe holds at most. The kernel gives less to users who have many.
const PIPE_BYTES: u64 = 1 << 16;
/// What a socket may send before it is read, where the kernel does not say: its own default.
const SOCKET_BYTES: u64 = 212_992;

/// What the processes of a job use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessUsage {
    pub(crate) cpu_s: f64,
    pub(crate) memory_bytes: u64,
    pub(crate) threads: u64,
}

/// Return what the descendants of a process use.
///
/// Pages that processes share count once, if the sum of all would be over the limit.
pub(crate) fn process_usage(root: i32, memory_limit: u64, time: &mut CpuTime) -> ProcessUsage {
    let processes = descendants(root);
    let page = rustix::param::page_size() as u64;
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    let sum = |value: fn(&Process) -> u64| processes.iter().map(value).sum::<u64>();
    let rss_bytes = sum(|each| each.rss_pages) * page;
    let memory_bytes = match rss_bytes > memory_limit {
        true => processes.iter().map(|each| proportional_bytes(each, page)).sum(),
        false => rss_bytes,
    };
    let cpu_s = time.look(&processes) as f64 / ticks;
    ProcessUsage { cpu_s, memory_bytes, threads: sum(|each| each.threads) }
}

/// Return the memory of a process, with its part of the pages that it shares.
fn proportional_bytes(process: &Process, page: u64) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", process.pid));
    let pss = text.ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    });
    // Where it may not be asked for, all pages count.
    pss.map_or(process.rss_pages * page, |kilobytes| kilobytes * 1024)
}

/// Files below a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileUsage {
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
}

/// Return what lies below a folder; it stops once there are more inodes than the limit.
///
/// # Errors
///
/// `EACCES` if the job takes the right to read a folder again and again.
pub(crate) fn file_usage(
    folder: BorrowedFd<'_>,
    most_inodes: u64,
) -> rustix::io::Result<FileUsage> {
    let mut usage = FileUsage::default();
    let mut folders = vec![folder.try_clone_to_owned().map_err(|_| Errno::MFILE)?];
    let mut depths = vec![0];
    while let (Some(folder), Some(depth)) = (folders.pop(), depths.pop()) {
        for entry in with_rights(&folder, || Dir::read_from(&folder))? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let Some(meta) = entry_of(&folder, name)? else { continue };
            usage.inodes += 1;
            usage.bytes += meta.st_blocks as u64 * BLOCK_BYTES;
            let is_folder = meta.st_mode & libc::S_IFMT == libc::S_IFDIR;
            if usage.inodes > most_inodes || (is_folder && depth >= DEEPEST) {
                return Ok(FileUsage { inodes: most_inodes + 1, ..usage });
            }
            if is_folder {
                match open_folder(&folder, name) {
                    Ok(inner) => {
                        folders.push(inner);
                        depths.push(depth + 1);
                    }
                    // It was removed or replaced in the meantime.
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(usage)
}

/// Return what `stat` says of an entry; `None` if it was removed in the meantime.
fn entry_of(folder: &OwnedFd, name: &CStr) -> rustix::io::Result<Option<Stat>> {
    match with_rights(folder, || statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)) {
        Err(Errno::ACCESS) => Err(Errno::ACCESS),
        other => Ok(other.ok()),
    }
}

/// Do what needs all rights to a folder; its owner gets them back if the job took them.
fn with_rights<T>(
    folder: &OwnedFd,
    work: impl Fn() -> rustix::io::Result<T>,
) -> rustix::io::Result<T> {
    match work() {
        Err(Errno::ACCESS) => {
            fchmod(folder, Mode::RWXU).map_err(|_| Errno::ACCESS)?;
            work()
        }
        other => other,
    }
}

/// What the processes of a job hold open and no folder shows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpenUsage {
    /// Size of files that were removed.
    pub(crate) removed_bytes: u64,
    /// Most memory that its pipes and sockets may hold.
    pub(crate) buffer_bytes: u64,
}

/// Return what the descendants of a process hold open; files on the file system of a folder.
///
/// # Errors
///
/// `EACCES` if a live process does not show what it has open.
pub(crate) fn open_usage(root: i32, folder: &OwnedFd) -> rustix::io::Result<OpenUsage> {
    let place = fstat(folder)?;
    let socket_bytes = fs::read_to_string("/proc/sys/net/core/wmem_default");
    let socket_bytes = socket_bytes.ok().and_then(|text| text.trim().parse().ok());
    // The last message that a socket takes may be over its limit by a half.
    let socket_bytes = socket_bytes.unwrap_or(SOCKET_BYTES) * 3 / 2;
    let mut usage = OpenUsage::default();
    let mut files = HashSet::new();
    for process in descendants(root) {
        for entry in open_files(process.pid)?.into_iter().flatten().flatten() {
            let Ok(meta) = stat(entry.path()) else { continue };
            let kind = meta.st_mode & libc::S_IFMT;
            let is_removed =
                kind == libc::S_IFREG && meta.st_nlink == 0 && meta.st_dev == place.st_dev;
            let is_buffer = matches!(kind, libc::S_IFSOCK | libc::S_IFIFO);
            if !(is_removed || is_buffer) || !files.insert((meta.st_dev, meta.st_ino)) {
                continue;
            }
            match kind {
                libc::S_IFSOCK => usage.buffer_bytes += socket_bytes,
                libc::S_IFIFO => usage.buffer_bytes += PIPE_BYTES,
                _ => usage.removed_bytes += meta.st_blocks as u64 * BLOCK_BYTES,
            }
        }
    }
    Ok(usage)
}

/// Return the open files of a process; `None` if it has ended.
fn open_files(pid: i32) -> rustix::io::Result<Option<fs::ReadDir>> {
    // A process that ends shows none, before it is seen to have ended. It has no memory then.
    let is_live = |each: Process| !each.is_zombie && each.rss_pages > 0;
    for _ in 0..3 {
        match fs::read_dir(format!("/proc/{pid}/fd")) {
            Ok(entries) => return Ok(Some(entries)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                if !Process::of(pid).is_some_and(is_live) {
                    return Ok(None);
                }
            }
            Err(_) => return Ok(None),
        }
    }
    Err(Errno::ACCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn open(path: &std::path::Path) -> OwnedFd {
        fs::File::open(path).unwrap().into()
    }

    #[test]
    fn files_and_folders_count() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join("a")).unwrap();
        fs::write(top.path().join("a/b"), [1; 10_000]).unwrap();
        std::os::unix::fs::symlink("/usr", top.path().join("link")).unwrap();
        let usage = file_usage(open(top.path()).as_fd(), 100).unwrap();
        assert_eq!(usage.inodes, 3);
        assert!((10_000..100_000).contains(&usage.bytes));
        assert_eq!(file_usage(open(top.path()).as_fd(), 1).unwrap().inodes, 2);
    }

    #[test]
    fn deep_folders_count_as_too_many() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(top.path().join("d/".repeat(DEEPEST + 2))).unwrap();
        assert_eq!(file_usage(open(top.path()).as_fd(), 5000).unwrap().inodes, 5001);
    }

    #[test]
    fn processes_use_memory_and_time() {
        let script = "a=$(head -c 30000000 /dev/zero | tr '\\0' x); echo; read x";
        let mut command = std::process::Command::new("bash");
        command.args(["-c", script]).stdin(std::process::Stdio::piped());
        let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
        std::io::Read::read(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let usage = process_usage(std::process::id() as i32, 0, &mut CpuTime::default());
        assert!(usage.memory_bytes > 30_000_000 && usage.threads >= 1, "{usage:?}");
        assert!(usage.cpu_s > 0.0, "{usage:?}");
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
