//! Times of objects: of two of one name the one of the later time counts.

use rustix::fs::{Timespec, Timestamps, UTIME_OMIT};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

const SECOND_NS: u64 = 1_000_000_000;

/// The latest time that an object was given, or that was seen on a disk, in nanoseconds.
static LAST: AtomicU64 = AtomicU64::new(0);

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
