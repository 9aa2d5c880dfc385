//! The destinations of results: a folder, a zip or tar archive, or one multi-extension FITS file.
//!
//! Everything is seen under its name when it is whole, and no file that is read is ever replaced:
//! `python/swathe/core/outputs.py` decides that for names before a batch begins, this at the moment
//! of writing.

mod growing_file;
mod placing;
mod zip;

use crate::cutout::Cutout;
use crate::error::EngineError;
use crate::job::{Job, OutputKind};
use growing_file::GrowingFile;
use placing::{Sources, publish, sync_folder};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use swathe_fits::as_extension;
pub use zip::{Member, Members, members};
use zip::{Zip, ZipEntry};

/// An open output, written by many threads.
pub struct Output {
    path: PathBuf,
    container: Container,
    overwrite: bool,
    sources: RwLock<Sources>,
}

enum Container {
    Folder,
    Zip(Mutex<Zip>),
    Tar(Mutex<GrowingFile>),
    Fits(Mutex<GrowingFile>),
    Null,
}

impl Output {
    /// Open the output of a batch. An archive is written under the hidden name
    /// [`part_path`] until it is closed.
    ///
    /// # Errors
    /// [`EngineError::Output`] if it cannot be written.
    pub fn open(job: &Job) -> Result<Output, EngineError> {
        let sources = RwLock::new(Sources::new(job));
        let container = open_container(job).map_err(|source| output_error(&job.output, source))?;
        Ok(Output { path: job.output.clone(), container, overwrite: job.overwrite, sources })
    }

    /// From now on, never replace the files that this job reads.
    pub(crate) fn protect_sources(&self, job: &Job) {
        let sources = Sources::new(job);
        *self.sources.write().unwrap_or_else(PoisonError::into_inner) = sources;
    }

    /// The bytes of a cutout as this output holds them.
    ///
    /// # Errors
    /// [`EngineError::OutputKind`] if this kind of output cannot store it.
    pub(crate) fn form(&self, cutout: Cutout, name: &str) -> Result<Vec<u8>, EngineError> {
        let Container::Fits(_) = self.container else { return Ok(cutout.file) };
        if cutout.template.has_companions() {
            return Err(EngineError::OutputKind {
                path: self.path.display().to_string(),
                why: "one FITS file cannot hold cutouts whose WCS needs lookup tables, as their \
                      EXTVER would clash; write a folder, .zip or .tar"
                    .into(),
            });
        }
        let header = as_extension(cutout.header(), name, cutout.data())
            .map_err(|source| cutout.template.header_error(source))?;
        let mut bytes = header;
        bytes.extend_from_slice(&cutout.file[cutout.data.start..]);
        Ok(bytes)
    }

    /// Write a result under its name. A result that cannot be written whole leaves nothing. Of FITS
    /// it is the bytes of extensions.
    ///
    /// # Errors
    /// [`EngineError::Output`]; [`EngineError::OutputExists`], [`EngineError::OutputIsSource`].
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<(), EngineError> {
        let path = self.path.join(name);
        if name.is_empty() || name.contains(['/', '\\', '\0']) || name == "." || name == ".." {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "not a plain file name");
            return Err(output_error(&path, source));
        }
        match &self.container {
            Container::Folder => return self.put_file(&path, bytes),
            Container::Zip(zip) => {
                let ready = ZipEntry::new(name, bytes);
                lock(zip).add(ready)
            }
            Container::Tar(file) => {
                let length = bytes.len() as u64;
                let header = tar_header(name, length).map_err(|e| output_error(&path, e))?;
                lock(file).add(&[header.as_bytes(), bytes, tar_padding(length)])
            }
            Container::Fits(file) => lock(file).add(&[bytes]),
            Container::Null => Ok(()),
        }
        .map_err(|source| output_error(&path, source))
    }

    fn put_file(&self, path: &Path, bytes: &[u8]) -> Result<(), EngineError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let new = self.path.join(format!(".swathe-{}-{number}.part", std::process::id()));
        let result = File::create_new(&new)
            .and_then(|mut file| file.write_all(bytes))
            .map_err(|source| output_error(path, source))
            .and_then(|()| self.publish(&new, path));
        if result.is_err() {
            // No file exists if it could not be created.
            let _ = std::fs::remove_file(&new);
        }
        result
    }

    /// Write the manifest, a file, as the last member of a zip or tar archive, and rename the output
    /// to its name. All is on the disk then; of a folder the names. The manifest of a FITS file is
    /// [`put`](Output::put) before.
    ///
    /// # Errors
    /// As [`Output::put`]; the archive stays unfinished.
    pub fn close(&self, manifest: Option<&Path>) -> Result<(), EngineError> {
        let fail = |source| output_error(&self.path, source);
        let manifest = manifest.map(File::open).transpose().map_err(fail)?;
        match &self.container {
            Container::Null => return Ok(()),
            Container::Folder => return sync_folder(&self.path).map_err(fail),
            Container::Zip(zip) => {
                let mut zip = lock(zip);
                if let Some(mut file) = manifest {
                    zip.add_file(MANIFEST, &mut file).map_err(fail)?;
                }
                zip.finish().map_err(fail)?;
            }
            Container::Tar(tar) => {
                let mut tar = lock(tar);
                if let Some(mut file) = manifest {
                    add_to_tar(&mut tar, MANIFEST, &mut file).map_err(fail)?;
                }
                tar.sync().map_err(fail)?;
            }
            Container::Fits(file) => lock(file).sync().map_err(fail)?,
        }
        self.publish(&part_path(&self.path), &self.path)?;
        sync_folder(folder_of(&self.path)).map_err(fail)
    }

    fn publish(&self, new: &Path, path: &Path) -> Result<(), EngineError> {
        let sources = self.sources.read().unwrap_or_else(PoisonError::into_inner);
        publish(new, path, self.overwrite, &sources)
    }
}

/// The manifest within an archive.
const MANIFEST: &str = "manifest.ecsv";
const TAR_BLOCK: u64 = 512;
/// The end mark of a tar archive. Written after every member: at the last, the disk may be full.
const TAR_END: [u8; 2 * TAR_BLOCK as usize] = [0; 2 * TAR_BLOCK as usize];
/// `O_NOFOLLOW` of Linux and macOS: a link may lead to a file that is not ours.
const O_NOFOLLOW: i32 = if cfg!(target_os = "linux") { 0o400_000 } else { 0x0100 };

/// The name of an archive until it is whole: it stays when the process is killed.
pub fn part_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.part"))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // An archive is truncated to its last whole member on any failure.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn output_error(path: &Path, source: io::Error) -> EngineError {
    EngineError::Output { path: path.display().to_string(), source }
}

fn open_container(job: &Job) -> io::Result<Container> {
    match job.kind {
        OutputKind::Null => return Ok(Container::Null),
        OutputKind::Folder => {
            open_folder(&job.output)?;
            return Ok(Container::Folder);
        }
        OutputKind::Zip | OutputKind::Tar | OutputKind::Fits => {}
    }
    std::fs::create_dir_all(folder_of(&job.output))?;
    let file = open_archive(&job.output, job.append.is_some())?;
    let end = job.append.unwrap_or(0).min(file.metadata()?.len());
    match job.kind {
        OutputKind::Folder => Ok(Container::Folder),
        OutputKind::Null => Ok(Container::Null),
        OutputKind::Zip => {
            Ok(Container::Zip(Mutex::new(Zip::new(file, end, &part_path(&job.output))?)))
        }
        OutputKind::Tar => Ok(Container::Tar(Mutex::new(GrowingFile::new(file, end, &TAR_END)?))),
        OutputKind::Fits => {
            let mut file = GrowingFile::new(file, end, &[])?;
            if end == 0 {
                file.add(&[&swathe_fits::minimal_primary().to_bytes()])?;
            }
            Ok(Container::Fits(Mutex::new(file)))
        }
    }
}

fn open_folder(path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(path)?;
    // Whether files can be created is known before the first cut is.
    let probe = path.join(format!(".swathe-{}", std::process::id()));
    match File::create_new(&probe).and_then(|_| std::fs::remove_file(&probe)) {
        // Another batch of this process looks at the same time.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

/// Open the unfinished archive: a new one, or the existing one to append to.
fn open_archive(path: &Path, append: bool) -> io::Result<File> {
    let part = part_path(path);
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(O_NOFOLLOW);
    if !append {
        match std::fs::remove_file(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        return options.create_new(true).open(&part);
    }
    if !part.exists() && path.exists() {
        // Seen again when it is whole.
        std::fs::rename(path, &part)?;
    }
    options.create(true).truncate(false).open(&part)
}

fn add_to_tar(tar: &mut GrowingFile, name: &str, file: &mut File) -> io::Result<()> {
    let bytes = file.metadata()?.len();
    let header = tar_header(name, bytes)?;
    let padding = tar_padding(bytes);
    tar.add_file(header.as_bytes(), file, bytes, &[padding])
}

fn tar_header(name: &str, bytes: u64) -> io::Result<tar::Header> {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let mut header = tar::Header::new_ustar();
    header.set_path(name)?;
    header.set_size(bytes);
    header.set_mode(0o644);
    header.set_mtime(since_epoch.map_or(0, |since| since.as_secs()));
    header.set_entry_type(tar::EntryType::Regular);
    header.set_cksum();
    Ok(header)
}

fn tar_padding(bytes: u64) -> &'static [u8] {
    &TAR_END[..(bytes.next_multiple_of(TAR_BLOCK) - bytes) as usize]
}

#[cfg(test)]
mod tests;
