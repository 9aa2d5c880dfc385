//! The locked file that says how many bytes are in use, and what went last.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Two numbers, each followed by its complement.
const BYTES: usize = 32;

/// What the file says.
pub(super) struct Ledger {
    file: File,
    /// In use.
    pub(super) bytes: u64,
    /// Where the highest stood of what went: what was put since then began there.
    pub(super) level: SystemTime,
}

impl Ledger {
    /// What stands in a file; the file, where that is nothing.
    pub(super) fn of(file: File) -> Result<Ledger, File> {
        let mut noted = [0; BYTES];
        if file.read_exact_at(&mut noted, 0).is_err() {
            return Err(file);
        }
        match (number(&noted[..16]), number(&noted[16..])) {
            (Some(bytes), Some(level)) => {
                Ok(Ledger { file, bytes, level: UNIX_EPOCH + Duration::from_nanos(level) })
            }
            _ => Err(file),
        }
    }

    /// One of which nothing is noted yet.
    pub(super) fn new(file: File, level: SystemTime) -> Ledger {
        Ledger { file, bytes: 0, level }
    }

    /// Note how many bytes are in use, and the level.
    pub(super) fn set(&mut self, bytes: u64) -> std::io::Result<()> {
        let level = self.level.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let mut noted = Vec::with_capacity(BYTES);
        for number in [bytes, u64::try_from(level).unwrap_or(u64::MAX)] {
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
