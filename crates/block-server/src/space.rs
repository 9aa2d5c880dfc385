//! Room on a disk: what is free, and what objects that are being written take of it.

use crate::disk::Disk;
use crate::error::RequestError;
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use swathe_store::free_and_total;

/// Bytes of a disk that an object being written may use. Dropped, they are free again.
#[derive(Debug)]
pub(crate) struct Room {
    disk: Arc<Disk>,
    bytes: u64,
}

impl Disk {
    /// Bytes that are free for objects, and all that there are.
    pub(crate) fn space(&self) -> Result<(u64, u64), RequestError> {
        self.check_present()?;
        let missing = |error: Errno| RequestError::DiskMissing {
            disk: self.name.clone(),
            why: io::Error::from(error).to_string(),
        };
        let (free, total) = free_and_total(&self.member.path).map_err(missing)?;
        Ok(match self.max_bytes {
            None => (free, total),
            Some(most) => {
                let room = most.saturating_sub(self.used_bytes.load(Ordering::Relaxed));
                (free.min(room), total.min(most))
            }
        })
    }

    /// Free bytes of an object that is no more.
    pub(crate) fn release(&self, bytes: u64) {
        let less = |bytes_now: u64| Some(bytes_now.saturating_sub(bytes));
        let _ = self.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Take no bytes yet for an object that is being written.
    pub(crate) fn room(self: &Arc<Disk>) -> Room {
        Room { disk: self.clone(), bytes: 0 }
    }
}

impl Room {
    /// Take bytes, in all.
    ///
    /// # Errors
    /// [`RequestError::DiskFull`] beyond the limit of the disk.
    pub(crate) fn grow_to(&mut self, bytes: u64) -> Result<(), RequestError> {
        let Some(most) = self.disk.max_bytes else { return Ok(()) };
        let more = bytes.saturating_sub(self.bytes);
        let grow = |bytes_now: u64| bytes_now.checked_add(more).filter(|&sum| sum <= most);
        match self.disk.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow) {
            Ok(_) => {
                self.bytes += more;
                Ok(())
            }
            Err(bytes_now) => {
                let why = format!("{bytes_now} of {most} bytes are used, {more} more are needed");
                Err(RequestError::DiskFull { disk: self.disk.name.clone(), why })
            }
        }
    }

    /// Bytes that it has.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Give all but `bytes` bytes back.
    pub(crate) fn shrink_to(&mut self, bytes: u64) {
        self.disk.release(self.bytes.saturating_sub(bytes));
        self.bytes = self.bytes.min(bytes);
    }

    /// Leave the bytes to the object, of this size.
    pub(crate) fn keep(&mut self, size: u64) {
        self.disk.release(self.bytes.saturating_sub(size));
        self.bytes = 0;
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.disk.release(self.bytes);
    }
}
