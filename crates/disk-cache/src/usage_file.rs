//! The locked file with the number of bytes in use, and the last evictions.

use super::eviction::EvictionLevel;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Numbers, each followed by its complement: bytes in use; the level, the bytes evicted since it
/// rose, and their mean priority.
const NUMBERS: usize = 4;
const BYTES: usize = 16 * NUMBERS;

/// The contents of the file.
pub(super) struct UsageFile {
    file: File,
    /// In use.
    pub(super) bytes: u64,
    pub(super) level: EvictionLevel,
}

impl UsageFile {
    /// Read a file; returns the file if it is empty or damaged.
    pub(super) fn of(file: File) -> Result<UsageFile, File> {
        let mut bytes = [0; BYTES];
        if file.read_exact_at(&mut bytes, 0).is_err() {
            return Err(file);
        }
        let numbers: Option<Vec<u64>> = bytes.chunks_exact(16).map(number).collect();
        match numbers.as_deref() {
            Some(&[bytes, at, evicted_bytes, evicted_priority]) => Ok(UsageFile {
                file,
                bytes,
                level: EvictionLevel {
                    at: time(at),
                    evicted_bytes,
                    evicted_priority: time(evicted_priority),
                },
            }),
            _ => Err(file),
        }
    }

    /// Whether a file is short enough to be one, whatever its contents, and has no other name.
    pub(super) fn may_be(file: &File) -> std::io::Result<bool> {
        let stat = file.metadata()?;
        Ok(stat.is_file() && stat.len() <= BYTES as u64 && stat.nlink() <= 1)
    }

    /// A new one, without numbers.
    pub(super) fn new(file: File, level: SystemTime) -> UsageFile {
        UsageFile { file, bytes: 0, level: EvictionLevel::new(level) }
    }

    /// Note how many bytes are in use, and the level.
    pub(super) fn set(&mut self, bytes: u64) -> std::io::Result<()> {
        let EvictionLevel { at, evicted_bytes, evicted_priority } = self.level;
        let mut content = Vec::with_capacity(BYTES);
        for number in [bytes, nanos(at), evicted_bytes, nanos(evicted_priority)] {
            content.extend_from_slice(&number.to_le_bytes());
            content.extend_from_slice(&(!number).to_le_bytes());
        }
        self.file.write_all_at(&content, 0)?;
        self.bytes = bytes;
        Ok(())
    }
}

fn number(bytes: &[u8]) -> Option<u64> {
    let (number, complement) = bytes.split_at_checked(8)?;
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
