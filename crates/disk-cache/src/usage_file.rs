//! The locked file that says how many bytes are in use, and what went last.

use super::eviction::Level;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Numbers, each followed by its complement: bytes in use; of the level where it is, how much
/// went since it rose, and where that stood.
const NUMBERS: usize = 4;
const BYTES: usize = 16 * NUMBERS;

/// What the file says.
pub(super) struct UsageFile {
    file: File,
    /// In use.
    pub(super) bytes: u64,
    pub(super) level: Level,
}

impl UsageFile {
    /// What stands in a file; the file, where that is nothing.
    pub(super) fn of(file: File) -> Result<UsageFile, File> {
        let mut noted = [0; BYTES];
        if file.read_exact_at(&mut noted, 0).is_err() {
            return Err(file);
        }
        let numbers: Option<Vec<u64>> = noted.chunks_exact(16).map(number).collect();
        match numbers.as_deref() {
            Some(&[bytes, at, gone, stood]) => Ok(UsageFile {
                file,
                bytes,
                level: Level { at: time(at), gone, stood: time(stood) },
            }),
            _ => Err(file),
        }
    }

    /// Whether a file is short enough to be one, whatever stands in it, and has no other name.
    pub(super) fn may_be(file: &File) -> std::io::Result<bool> {
        let stat = file.metadata()?;
        Ok(stat.is_file() && stat.len() <= BYTES as u64 && stat.nlink() <= 1)
    }

    /// One of which nothing is noted yet.
    pub(super) fn new(file: File, level: SystemTime) -> UsageFile {
        UsageFile { file, bytes: 0, level: Level::new(level) }
    }

    /// Note how many bytes are in use, and the level.
    pub(super) fn set(&mut self, bytes: u64) -> std::io::Result<()> {
        let Level { at, gone, stood } = self.level;
        let mut noted = Vec::with_capacity(BYTES);
        for number in [bytes, nanos(at), gone, nanos(stood)] {
            noted.extend_from_slice(&number.to_le_bytes());
            noted.extend_from_slice(&(!number).to_le_bytes());
        }
        self.file.write_all_at(&noted, 0)?;
        self.bytes = bytes;
        Ok(())
    }
}

fn number(noted: &[u8]) -> Option<u64> {
    let (number, complement) = noted.split_at_checked(8)?;
    let number = u64::from_le_bytes(number.try_into().ok()?);
    (complement == (!number).to_le_bytes()).then_some(number)
}

fn time(nanos: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(nanos)
}

fn nanos(time: SystemTime) -> u64 {
    let nanos = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    u64::try_from(nanos).unwrap_or(u64::MAX)
}
