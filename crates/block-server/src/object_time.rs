//! Times of objects: of two of one name the one of the later time counts.

use rustix::fs::{Timespec, Timestamps, UTIME_OMIT};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

const SECOND_NS: u64 = 1_000_000_000;

/// The latest time that an object was given, or that was seen on a disk, in nanoseconds.
static LAST: AtomicU64 = AtomicU64::new(0);

/// File systems give a folder the time of the clock's last tick. That is at most this much too early.
const TICK_NS: i128 = 10_000_000;

/// Learn the time of an object. What is named after this gets a later time, also if the clock was set
/// back.
pub(crate) fn learn_time(modified_ns: i128) {
    // Times that no clock has, as of a damaged file, say nothing.
    if let Ok(time) = i64::try_from(modified_ns) {
        LAST.fetch_max(time.max(0) as u64, Ordering::Relaxed);
    }
}

/// Learn when a folder changed last.
pub(crate) fn learn_folder_time(folder: &Metadata) {
    let ns = i128::from(folder.mtime()) * i128::from(SECOND_NS) + i128::from(folder.mtime_nsec());
    learn_time(ns + TICK_NS);
}

/// The times of a file that is named now.
pub(crate) fn unique_times() -> Timestamps {
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let time = unique_time();
    let last_modification =
        Timespec { tv_sec: (time / SECOND_NS) as i64, tv_nsec: (time % SECOND_NS) as _ };
    Timestamps { last_access, last_modification }
}

/// The time, later than any before: two objects with one inode, one after the other, differ by it.
fn unique_time() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64);
    let last = LAST.fetch_max(now, Ordering::Relaxed);
    match now > last {
        true => now,
        false => LAST.fetch_add(1, Ordering::Relaxed) + 1,
    }
}
