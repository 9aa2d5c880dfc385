//! Where results go: a folder, a zip or tar archive, or one multi-extension FITS file.

use crate::cutout::Cutout;
use crate::error::EngineError;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use swathe_fits::as_extension;

/// The kinds of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// One file per cutout.
    Folder,
    /// Stored, not compressed: pixels of the sky hardly are.
    Zip,
    /// POSIX tar.
    Tar,
    /// One IMAGE extension per cutout, EXTNAME its name.
    Fits,
}

/// An open output, written by many threads.
pub(crate) struct Output {
    path: PathBuf,
    sink: Sink,
}

enum Sink {
    Folder,
    Zip(Mutex<Option<zip::ZipWriter<File>>>),
    Tar(Mutex<File>),
    Fits(Mutex<File>),
}

impl Output {
    /// Open an output; `append` keeps what an archive already holds.
    ///
    /// # Errors
    /// [`EngineError::Output`] where it cannot be written.
    pub(crate) fn open(path: &Path, kind: OutputKind, append: bool) -> Result<Output, EngineError> {
        let sink = open_sink(path, kind, append).map_err(|source| output_error(path, source))?;
        Ok(Output { path: path.to_path_buf(), sink })
    }

    /// The bytes of a cutout as this output holds them.
    ///
    /// # Errors
    /// [`EngineError::OutputKind`] where it cannot hold it.
    pub(crate) fn form(&self, cutout: Cutout, name: &str) -> Result<Vec<u8>, EngineError> {
        let Sink::Fits(_) = self.sink else { return Ok(cutout.file) };
        if cutout.template.has_companions() {
            return Err(EngineError::OutputKind {
                path: self.path.display().to_string(),
                why: "one FITS file cannot hold cutouts whose WCS needs lookup tables, as their \
                      EXTVER would clash; write a folder, .zip or .tar"
                    .into(),
            });
        }
        let header = as_extension(cutout.header(), name, cutout.data()).map_err(|source| {
            EngineError::Header {
                url: cutout.template.url.clone(),
                hdu: cutout.template.hdu,
                source,
            }
        })?;
        let mut bytes = header;
        bytes.extend_from_slice(&cutout.file[cutout.data.start..]);
        Ok(bytes)
    }

    /// Write a result under its name. A result that cannot be written whole leaves nothing.
    ///
    /// # Errors
    /// [`EngineError::Output`].
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> Result<(), EngineError> {
        let path = self.path.join(name);
        if name.is_empty() || name.contains(['/', '\\', '\0']) || name == "." || name == ".." {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "not a plain file name");
            return Err(output_error(&path, source));
        }
        match &self.sink {
            Sink::Folder => write_file(&path, bytes),
            Sink::Zip(writer) => put_zip(lock(writer).as_mut(), name, bytes),
            Sink::Tar(file) => extend(&mut lock(file), &TAR_END, |file| put_tar(file, name, bytes)),
            Sink::Fits(file) => extend(&mut lock(file), &[], |file| file.write_all(bytes)),
        }
        .map_err(|source| output_error(&path, source))
    }

    /// Write what ends an archive, where it was not written before.
    ///
    /// # Errors
    /// [`EngineError::Output`].
    pub(crate) fn close(self) -> Result<(), EngineError> {
        let closed = match self.sink {
            Sink::Folder | Sink::Fits(_) | Sink::Tar(_) => Ok(()),
            Sink::Zip(writer) => match lock(&writer).take() {
                Some(writer) => writer.finish().map(drop).map_err(cause),
                None => Ok(()),
            },
        };
        closed.map_err(|source| output_error(&self.path, source))
    }
}

const TAR_BLOCK: usize = 512;
/// What ends a tar archive. It is there after every member: at the last, the disk may be full.
const TAR_END: [u8; 2 * TAR_BLOCK] = [0; 2 * TAR_BLOCK];

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // An archive is truncated to its last whole member on any failure.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn output_error(path: &Path, source: io::Error) -> EngineError {
    EngineError::Output { path: path.display().to_string(), source }
}

fn open_sink(path: &Path, kind: OutputKind, append: bool) -> io::Result<Sink> {
    if kind == OutputKind::Folder {
        std::fs::create_dir_all(path)?;
        // Whether files can be made is known before the first cut is.
        let probe = path.join(format!(".swathe-{}", std::process::id()));
        File::create(&probe)?;
        return match std::fs::remove_file(&probe) {
            // Another batch of this process looked at the same time.
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(Sink::Folder),
        };
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent)?;
    }
    let append = append && path.exists();
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(!append).open(path)?;
    match kind {
        OutputKind::Folder => Ok(Sink::Folder),
        OutputKind::Zip if append => {
            let writer = zip::ZipWriter::new_append(file).map_err(cause)?;
            Ok(Sink::Zip(Mutex::new(Some(writer))))
        }
        OutputKind::Zip => Ok(Sink::Zip(Mutex::new(Some(zip::ZipWriter::new(file))))),
        OutputKind::Tar => {
            let end = if append { tar_end(&mut file)? } else { 0 };
            file.set_len(end)?;
            file.seek(SeekFrom::Start(end))?;
            extend(&mut file, &TAR_END, |_| Ok(()))?;
            Ok(Sink::Tar(Mutex::new(file)))
        }
        OutputKind::Fits => {
            if append {
                file.seek(SeekFrom::End(0))?;
            } else {
                file.write_all(&swathe_fits::minimal_primary().to_bytes())?;
            }
            Ok(Sink::Fits(Mutex::new(file)))
        }
    }
}

/// Write a whole file, or leave none.
fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    if let Err(error) = file.write_all(bytes) {
        drop(file);
        std::fs::remove_file(path)?;
        return Err(error);
    }
    Ok(())
}

/// What the operating system said, where that is what went wrong.
fn cause(error: zip::result::ZipError) -> io::Error {
    match error {
        zip::result::ZipError::Io(error) => error,
        error => io::Error::other(error),
    }
}

fn put_zip(writer: Option<&mut zip::ZipWriter<File>>, name: &str, bytes: &[u8]) -> io::Result<()> {
    let Some(writer) = writer else { return Err(io::Error::other("the archive is closed")) };
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Stored)
        .unix_permissions(0o644)
        .large_file(bytes.len() as u64 > u64::from(u32::MAX));
    writer.start_file(name, options).map_err(cause)?;
    if let Err(error) = writer.write_all(bytes) {
        writer.abort_file().map_err(cause)?;
        return Err(error);
    }
    Ok(())
}

/// Write to a file, before what always ends it; if that fails the file is left as it was.
fn extend(
    file: &mut File,
    last: &[u8],
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let begin = file.stream_position()?;
    let written = write(file).and_then(|()| {
        let end = file.stream_position()?;
        file.write_all(last)?;
        Ok(end)
    });
    if written.is_err() {
        // Its place was taken before, so that there is room for it.
        file.seek(SeekFrom::Start(begin))?;
        file.write_all(last)?;
        file.set_len(begin + last.len() as u64)?;
    }
    file.seek(SeekFrom::Start(*written.as_ref().unwrap_or(&begin)))?;
    written.map(drop)
}

fn put_tar(file: &mut File, name: &str, bytes: &[u8]) -> io::Result<()> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let mut header = tar::Header::new_ustar();
    header.set_path(name)?;
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_mtime(now.map_or(0, |since| since.as_secs()));
    header.set_entry_type(tar::EntryType::Regular);
    header.set_cksum();
    file.write_all(header.as_bytes())?;
    file.write_all(bytes)?;
    file.write_all(&[0; TAR_BLOCK][..bytes.len().next_multiple_of(TAR_BLOCK) - bytes.len()])
}

/// Where the last whole member of a tar file ends.
fn tar_end(file: &mut File) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let mut archive = tar::Archive::new(&mut *file as &mut dyn ReadSeek);
    let mut end = 0;
    for entry in archive.entries_with_seek()? {
        let Ok(entry) = entry else { break };
        let after = entry.raw_file_position() + entry.size().next_multiple_of(TAR_BLOCK as u64);
        if after > length {
            break;
        }
        end = after;
    }
    Ok(end)
}

trait ReadSeek: Read + Seek {}
impl<T: Read + Seek> ReadSeek for T {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_that_begin_at_the_same_time_open_one_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        Output::open(folder.path(), OutputKind::Folder, false).expect("opened");
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 0);
    }
}
