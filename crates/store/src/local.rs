//! Files.

use crate::error::StoreError;
use crate::source::{Source, Version};
use bytes::Bytes;
use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

/// `O_NONBLOCK` of Linux and macOS: opening a pipe nobody writes to must not hang.
const O_NONBLOCK: i32 = if cfg!(target_os = "linux") { 0o4000 } else { 0x0004 };

/// A file, read by position.
pub(crate) struct Local {
    url: String,
    version: Version,
    file: File,
}

impl Local {
    /// Open a regular file.
    pub(crate) fn open(path: PathBuf) -> Result<Local, StoreError> {
        // Absolute, so that the index and the manifest know it from any working directory.
        let path = std::path::absolute(&path)
            .map_err(|source| StoreError::from_io(&path.display().to_string(), source))?;
        let url = path.to_string_lossy().into_owned();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(O_NONBLOCK)
            .open(&path)
            .map_err(|source| StoreError::from_io(&url, source))?;
        let stat = file.metadata().map_err(|source| StoreError::from_io(&url, source))?;
        if !stat.is_file() {
            let why = if stat.is_dir() { "a folder, not a file" } else { "not a regular file" };
            return Err(StoreError::Unsupported { url, why: why.into() });
        }
        let tag = format!("mtime:{}.{:09}-ino:{}", stat.mtime(), stat.mtime_nsec(), stat.ino());
        Ok(Local { url, version: Version { size: stat.len(), tag }, file })
    }
}

impl Source for Local {
    fn url(&self) -> &str {
        &self.url
    }

    fn version(&self) -> &Version {
        &self.version
    }

    fn is_local(&self) -> bool {
        true
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.file.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => {
                    return Err(StoreError::ShortRead {
                        url: self.url.clone(),
                        start: offset,
                        wanted: buffer.len() as u64,
                        found: filled as u64,
                    });
                }
                Ok(read) => filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(StoreError::from_io(&self.url, error)),
            }
        }
        Ok(())
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, StoreError> {
        let read = |range: &Range<u64>| {
            // Checked first, so that an impossible range allocates nothing.
            if range.end > self.len() || range.start > range.end {
                return Err(StoreError::ShortRead {
                    url: self.url.clone(),
                    start: range.start,
                    wanted: range.end.saturating_sub(range.start),
                    found: self.len().saturating_sub(range.start),
                });
            }
            let mut bytes = vec![0; (range.end - range.start) as usize];
            self.read_exact_at(range.start, &mut bytes)?;
            Ok(bytes.into())
        };
        ranges.iter().map(read).collect()
    }
}
