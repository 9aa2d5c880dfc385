//! Folders of servers that this process listed a moment ago.

use super::table::FolderTable;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A listing is taken as true for so long. In any case the size, and the ETag if there is one, of a
/// member that is read are compared with it, and chunks that it lacks are looked for again.
const FRESH: Duration = Duration::from_secs(10);
/// Bytes of all listings that are kept, at most.
const MOST_BYTES: usize = 64 << 20;

static LISTINGS: Mutex<VecDeque<Listing>> = Mutex::new(VecDeque::new());

struct Listing {
    key: String,
    at: Instant,
    table: Arc<FolderTable>,
}

/// The listing of a folder, if it is fresh.
pub(super) fn recall(key: &str) -> Option<Arc<FolderTable>> {
    let listings = lock();
    let found = listings.iter().find(|listing| listing.key == key)?;
    (found.at.elapsed() < FRESH).then(|| found.table.clone())
}

/// Keep a listing that began at a time; the oldest are forgotten.
pub(super) fn keep(key: &str, at: Instant, table: &Arc<FolderTable>) {
    let mut listings = lock();
    listings.retain(|listing| listing.key != key && listing.at.elapsed() < FRESH);
    listings.push_back(Listing { key: key.to_string(), at, table: table.clone() });
    let mut bytes: usize = listings.iter().map(|listing| listing.table.bytes().len()).sum();
    while bytes > MOST_BYTES {
        let Some(oldest) = listings.pop_front() else { break };
        bytes -= oldest.table.bytes().len();
    }
}

fn lock() -> MutexGuard<'static, VecDeque<Listing>> {
    // A listing is whole between two statements, even after a panic.
    LISTINGS.lock().unwrap_or_else(PoisonError::into_inner)
}
