//! How far the repair of an object is, for those who watch it.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the repair of one object: what was read to look at it, and what was written.
#[derive(Debug, Default)]
pub struct RepairProgress {
    done_bytes: AtomicU64,
    total_bytes: AtomicU64,
    write_bytes: AtomicU64,
}

impl RepairProgress {
    /// Bytes that were read or written, of all that are to be, as far as these are known.
    pub fn counts(&self) -> (u64, u64) {
        // In this order: no more are done than there are.
        let done_bytes = self.done_bytes.load(Ordering::Acquire);
        (done_bytes, self.total_bytes.load(Ordering::Acquire).max(done_bytes))
    }

    /// Bytes that were written.
    pub fn written_bytes(&self) -> u64 {
        self.write_bytes.load(Ordering::Relaxed)
    }

    /// Add `bytes` to what is to be read or written.
    pub(crate) fn expect(&self, bytes: u64) {
        self.total_bytes.fetch_add(bytes, Ordering::Release);
    }

    /// Expect to read a part.
    pub(crate) fn part(&self, bytes: u64) -> PartProgress<'_> {
        self.expect(bytes);
        PartProgress { progress: self, left: bytes }
    }

    /// Bytes were handed to the writer of a part.
    pub(crate) fn add_write(&self, bytes: u64) {
        self.write_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.done_bytes.fetch_add(bytes, Ordering::Release);
    }
}

/// A part that is being read. What was not read of it at the end is not needed any more.
pub(crate) struct PartProgress<'a> {
    progress: &'a RepairProgress,
    left: u64,
}

impl PartProgress<'_> {
    /// Bytes of it were read and compared.
    pub(crate) fn add(&mut self, bytes: u64) {
        let bytes = bytes.min(self.left);
        self.left -= bytes;
        self.progress.done_bytes.fetch_add(bytes, Ordering::Release);
    }
}

impl Drop for PartProgress<'_> {
    fn drop(&mut self) {
        self.add(self.left);
    }
}
