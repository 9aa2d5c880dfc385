//! How a file takes its place: whole, and not that of what must stay.

use crate::error::EngineError;
use crate::job::Job;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

type FileId = (u64, u64);

/// The local files that a batch reads, by device and inode. They are looked at when the first
/// output has the name of a file that exists.
pub(crate) struct Sources {
    files: Vec<PathBuf>,
    identities: OnceLock<HashMap<FileId, PathBuf>>,
}

impl Sources {
    /// The objects of a batch, and their copies, that are files of this machine.
    pub fn new(job: &Job) -> Sources {
        let copies = job.replicas.iter().flat_map(|replicas| replicas.copies.iter().flatten());
        let objects = job.files.iter().chain(copies.map(|copy| &copy.url));
        let files = objects.filter_map(|object| job.stores.file_of(object)).collect();
        Sources { files, identities: OnceLock::new() }
    }

    /// Refuse an output that is one of the sources, also under another name.
    ///
    /// # Errors
    /// [`EngineError::OutputIsSource`].
    pub fn check(&self, path: &Path, existing: &Metadata) -> Result<(), EngineError> {
        let identities = self.identities.get_or_init(|| {
            let stat = |file: &PathBuf| Some((identity(&fs::metadata(file).ok()?), file.clone()));
            self.files.iter().filter_map(stat).collect()
        });
        match identities.get(&identity(existing)) {
            Some(source) => Err(EngineError::OutputIsSource {
                path: path.display().to_string(),
                source_path: source.display().to_string(),
            }),
            None => Ok(()),
        }
    }
}

fn identity(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

/// Rename a whole file to its final name.
///
/// # Errors
/// [`EngineError::OutputExists`] if one exists that is not to be replaced;
/// [`EngineError::OutputIsSource`]; [`EngineError::Output`]. The new file is left as it is.
pub(crate) fn publish(
    new: &Path,
    path: &Path,
    overwrite: bool,
    sources: &Sources,
) -> Result<(), EngineError> {
    let fail = |source| EngineError::Output { path: path.display().to_string(), source };
    let exists = || EngineError::OutputExists { path: path.display().to_string() };
    if overwrite && fs::symlink_metadata(path).is_ok() {
        if let Ok(existing) = fs::metadata(path) {
            sources.check(path, &existing)?;
        }
        // What replaces something is on the disk before that goes.
        File::open(new).and_then(|file| file.sync_data()).map_err(fail)?;
        return fs::rename(new, path).map_err(fail);
    }
    match rename_new(new, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists()),
        result => result.map_err(fail),
    }
}

/// Rename a file to a name that must be free.
fn rename_new(new: &Path, path: &Path) -> io::Result<()> {
    match renameat_with(CWD, new, CWD, path, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        result => return result.map_err(io::Error::from),
    }
    // File systems that lack this have hard links, or no way to be sure.
    match fs::hard_link(new, path) {
        Ok(()) => fs::remove_file(new),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        Err(_) if fs::symlink_metadata(path).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(new, path),
    }
}

/// Wait until the names in the folder of a file are on the disk.
///
/// # Errors
/// If that fails.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
