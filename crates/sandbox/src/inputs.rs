//! Inputs of a job: opened here, and readable by its user there.

use crate::error::{Context, Error};
use crate::folder::JobFolder;
use crate::request::Input;
use crate::users::User;
use rustix::fs::{CWD, Mode, OFlags, fstat, open, openat, stat, symlinkat};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// An input, open for reading.
#[derive(Debug)]
pub(crate) struct OpenInput {
    pub(crate) name: String,
    pub(crate) file: OwnedFd,
    pub(crate) is_folder: bool,
}

/// How the job reaches its inputs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By a descriptor of the file.
    File,
    /// By its path.
    Path,
}

/// Open the inputs of a request; they are regular files or folders.
pub(crate) fn open_inputs(inputs: &[Input]) -> Result<Vec<OpenInput>, Error> {
    inputs.iter().map(open_input).collect()
}

fn open_input(input: &Input) -> Result<OpenInput, Error> {
    let refuse = |why: String| Error::Request(format!("input {}: {why}", input.name));
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match (&input.path, input.descriptor) {
        (Some(path), _) => open(path, flags, Mode::empty())
            .map_err(|error| refuse(format!("{}: {}", path.display(), io::Error::from(error))))?,
        (None, number) => {
            let number = number.filter(|number| *number > 2);
            let number = number.ok_or_else(|| refuse("expected a descriptor above 2".into()))?;
            // SAFETY: the number is only duplicated, which fails if it is not open.
            let borrow = unsafe { BorrowedFd::borrow_raw(number) };
            borrow
                .try_clone_to_owned()
                .map_err(|error| refuse(format!("descriptor {number}: {error}")))?
        }
    };
    let kind = fstat(&file).context(format!("input {}", input.name))?.st_mode & libc::S_IFMT;
    if kind != libc::S_IFREG && kind != libc::S_IFDIR {
        return Err(refuse("expected a regular file or a folder".into()));
    }
    Ok(OpenInput { name: input.name.clone(), file, is_folder: kind == libc::S_IFDIR })
}

/// Return the inputs as the job's user can read them: the same file, or a copy where it cannot.
///
/// # Errors
///
/// [`Error::Request`] if the user cannot read a folder, which is not copied.
pub(crate) fn readable_inputs(
    inputs: &[OpenInput],
    way: Way,
    user: &User,
    folder: &JobFolder,
) -> Result<Vec<OwnedFd>, Error> {
    let is_readable = match user.is_other {
        true => crate::child::answers_as(user, inputs.len(), |at| is_readable(&inputs[at], way))
            .context("inputs")?,
        false => inputs.iter().map(|each| way == Way::File || own_path(each).is_some()).collect(),
    };
    let all = inputs.iter().zip(is_readable);
    all.map(|(input, is_readable)| match (is_readable, input.is_folder) {
        (true, _) => input.file.try_clone().context(format!("input {}", input.name)),
        (false, true) => Err(Error::Request(format!(
            "input {}: expected a folder that user {} can read",
            input.name, user.uid
        ))),
        (false, false) => copy(input, folder).context(format!("input {}", input.name)),
    })
    .collect()
}

/// Make links `in/NAME` to inputs that the job reaches by their paths.
pub(crate) fn link_inputs(
    inputs: &[OpenInput],
    readable: &[OwnedFd],
    folder: &JobFolder,
) -> Result<(), Error> {
    let links = folder.open("in").context("inputs")?;
    for (input, file) in inputs.iter().zip(readable) {
        let path = path_of(file).context(format!("input {}", input.name))?;
        match symlinkat(path, &links, &input.name) {
            Err(rustix::io::Errno::EXIST) => {} // a copy
            other => other.context(format!("input {}", input.name))?,
        }
    }
    Ok(())
}

/// Check, as the job's user, whether an input can be opened.
fn is_readable(input: &OpenInput, way: Way) -> bool {
    let path = match way {
        // Bubblewrap looks up the path of a descriptor, as the job's user.
        Way::File => own_path(input)
            .map(|_| PathBuf::from(format!("/proc/self/fd/{}", input.file.as_raw_fd()))),
        Way::Path => own_path(input),
    };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    path.is_some_and(|path| open(path, flags, Mode::empty()).is_ok())
}

/// Return the path of an input, if it still leads to it.
fn own_path(input: &OpenInput) -> Option<PathBuf> {
    let path = path_of(&input.file).ok()?;
    let (there, here) = (stat(&path).ok()?, fstat(&input.file).ok()?);
    ((there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)).then_some(path)
}

fn path_of(file: &OwnedFd) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Copy an input into the folder of the job, readable by everybody who gets there.
fn copy(input: &OpenInput, folder: &JobFolder) -> io::Result<OwnedFd> {
    let copies = folder.open("in")?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let mut target = match openat(&copies, &input.name, flags, Mode::from_raw_mode(0o444)) {
        Ok(target) => File::from(target),
        // The other mode has been tried before.
        Err(rustix::io::Errno::EXIST) => return reopen(&copies, &input.name),
        Err(error) => return Err(error.into()),
    };
    // Opened anew: the position of a descriptor that was handed over is not ours to move.
    let path = format!("/proc/self/fd/{}", input.file.as_raw_fd());
    let mut source =
        File::from(openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?);
    io::copy(&mut source, &mut target)?;
    reopen(&copies, &input.name)
}

fn reopen(copies: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(copies, name, flags, Mode::empty())?)
}
