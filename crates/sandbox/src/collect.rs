//! Copy the declared outputs out of a job's folder, following nothing that the job made.

use crate::report::{OutputFile, Problem};
use crate::request::Output;
use rustix::fs::{Mode, OFlags, ResolveFlags, fstat, openat, openat2, unlinkat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

const BUFFER_BYTES: usize = 1 << 18;
const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_XDEV)
    .union(ResolveFlags::NO_MAGICLINKS);

/// Folder into which outputs are copied.
#[derive(Debug)]
pub(crate) struct Results<'a> {
    pub(crate) path: &'a Path,
    pub(crate) folder: &'a OwnedFd,
}

/// Copy the outputs that are regular files of the job, within their limits.
///
/// Returns those that were copied, and why others were not. An output that is optional and missing
/// is neither.
pub(crate) fn collect(
    out: BorrowedFd<'_>,
    outputs: &[Output],
    uid: u32,
    total_bytes: u64,
    results: &Results<'_>,
) -> (Vec<OutputFile>, Vec<Problem>) {
    let (mut files, mut problems) = (Vec::new(), Vec::new());
    let mut remaining = total_bytes;
    for output in outputs {
        let limit = output.bytes.unwrap_or(total_bytes).min(remaining);
        match open_output(out, output, uid, limit) {
            Ok(None) => {}
            Ok(Some(file)) => match copy(file, output, limit, results) {
                Ok(file) => {
                    remaining -= file.bytes;
                    files.push(file);
                }
                Err(error) => problems.push(problem(output, error.to_string())),
            },
            Err(text) => problems.push(problem(output, text)),
        }
    }
    (files, problems)
}

fn problem(output: &Output, text: String) -> Problem {
    Problem { name: output.name.clone(), problem: text }
}

/// Open an output and check it; `None` if it is missing and may be.
fn open_output(
    out: BorrowedFd<'_>,
    output: &Output,
    uid: u32,
    limit: u64,
) -> Result<Option<File>, String> {
    // A FIFO must not block, a link must not be followed, a device must not be opened for long.
    let flags =
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match openat2(out, &output.name, flags, Mode::empty(), BENEATH) {
        Err(Errno::NOENT) if output.optional => return Ok(None),
        Err(Errno::NOENT) => return Err("expected a file, found none".into()),
        Err(Errno::LOOP) => return Err("expected a regular file, found a link".into()),
        Err(Errno::NXIO) => return Err("expected a regular file, found a socket".into()),
        other => other.map_err(|error| io::Error::from(error).to_string())?,
    };
    let meta = fstat(&file).map_err(|error| io::Error::from(error).to_string())?;
    if meta.st_mode & libc::S_IFMT != libc::S_IFREG {
        return Err("expected a regular file, found a folder, a pipe or a device".into());
    }
    if meta.st_nlink != 1 {
        return Err(format!("expected a file with one link, found {}", meta.st_nlink));
    }
    if meta.st_uid != uid {
        return Err(format!("expected a file of user {uid}, found one of {}", meta.st_uid));
    }
    let disk_bytes = meta.st_blocks as u64 * 512;
    let most_on_disk = limit.saturating_add(BUFFER_BYTES as u64);
    if meta.st_size as u64 > limit || disk_bytes > most_on_disk {
        return Err(format!("expected {limit} bytes at most, found {}", meta.st_size));
    }
    Ok(Some(File::from(file)))
}

/// Copy an output from its descriptor; a copy that fails is removed.
fn copy(
    mut file: File,
    output: &Output,
    limit: u64,
    results: &Results<'_>,
) -> io::Result<OutputFile> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    let target = openat(results.folder, &output.name, flags, mode)
        .map_err(|error| io::Error::other(format!("the copy: {}", io::Error::from(error))))?;
    let copy = copy_bytes(&mut file, File::from(target), limit);
    if copy.is_err() {
        unlinkat(results.folder.as_fd(), &output.name, rustix::fs::AtFlags::empty())?;
    }
    let (bytes, sha256) = copy?;
    let path = results.path.join(&output.name).to_string_lossy().into_owned();
    Ok(OutputFile { name: output.name.clone(), path, bytes, sha256 })
}

fn copy_bytes(source: &mut File, mut target: File, limit: u64) -> io::Result<(u64, String)> {
    let mut sum = Sha256::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut bytes = 0_u64;
    loop {
        let count = source.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        bytes += count as u64;
        if bytes > limit {
            return Err(io::Error::other(format!("expected {limit} bytes at most, found more")));
        }
        sum.update(&buffer[..count]);
        target.write_all(&buffer[..count])?;
    }
    let mut text = String::new();
    for byte in sum.finalize() {
        write!(text, "{byte:02x}").expect("a text takes all that is written");
    }
    Ok((bytes, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FileType, mknodat};
    use std::fs;
    use std::os::unix::fs::symlink;

    fn outputs(names: &[&str], bytes: Option<u64>) -> Vec<Output> {
        let output = |name: &&str| Output { name: name.to_string(), bytes, optional: false };
        names.iter().map(output).collect()
    }

    fn open(path: &Path) -> OwnedFd {
        File::open(path).unwrap().into()
    }

    struct Case {
        out: tempfile::TempDir,
        results: tempfile::TempDir,
    }

    impl Case {
        fn new() -> Case {
            Case { out: tempfile::tempdir().unwrap(), results: tempfile::tempdir().unwrap() }
        }

        fn collect(&self, outputs: &[Output]) -> (Vec<OutputFile>, Vec<Problem>) {
            let (out, folder) = (open(self.out.path()), open(self.results.path()));
            let results = Results { path: self.results.path(), folder: &folder };
            let uid = rustix::process::getuid().as_raw();
            collect(out.as_fd(), outputs, uid, 1000, &results)
        }

        fn problem(&self, name: &str) -> String {
            let (files, problems) = self.collect(&outputs(&[name], None));
            assert!(files.is_empty() && !self.results.path().join(name).exists());
            problems[0].problem.clone()
        }
    }

    #[test]
    fn a_file_is_copied_with_its_sum() {
        let case = Case::new();
        fs::write(case.out.path().join("grid"), "abc").unwrap();
        let (files, problems) = case.collect(&outputs(&["grid"], None));
        assert!(problems.is_empty());
        assert_eq!((files[0].bytes, fs::read(&files[0].path).unwrap()), (3, b"abc".to_vec()));
        assert!(files[0].sha256.starts_with("ba7816bf8f01cfea"));
        // What is there is not replaced.
        assert!(case.collect(&outputs(&["grid"], None)).1[0].problem.contains("exists"));
    }

    #[test]
    fn what_is_no_regular_file_is_refused_and_blocks_nobody() {
        let case = Case::new();
        let path = |name: &str| case.out.path().join(name);
        symlink("/etc/passwd", path("link")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        fs::write(path("first"), "x").unwrap();
        fs::hard_link(path("first"), path("second")).unwrap();
        mknodat(open(case.out.path()), "pipe", FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        assert!(case.problem("link").contains("a link"));
        assert!(case.problem("folder").contains("a folder"));
        assert!(case.problem("pipe").contains("a pipe"));
        assert!(case.problem("socket").contains("a socket"));
        assert!(case.problem("second").contains("one link, found 2"));
        assert!(case.problem("missing").contains("found none"));
    }

    #[test]
    fn files_over_their_limit_are_refused() {
        let case = Case::new();
        for name in ["a", "b"] {
            fs::write(case.out.path().join(name), [0; 600]).unwrap();
        }
        // 1000 bytes in all.
        let (files, problems) = case.collect(&outputs(&["a", "b"], None));
        assert_eq!((files.len(), problems.len()), (1, 1));
        let case = Case::new();
        let sparse = File::create(case.out.path().join("sparse")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        assert!(case.problem("sparse").contains("1000 bytes at most"));
        fs::write(case.out.path().join("c"), "abc").unwrap();
        assert_eq!(case.collect(&outputs(&["c"], Some(2))).1.len(), 1);
    }
}
