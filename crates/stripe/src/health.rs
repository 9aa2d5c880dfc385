//! What this process knows of the state of a server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Whether a server failed.
#[derive(Debug, Default)]
pub(crate) struct Health {
    pub(crate) failed_at: Option<Instant>,
    /// Whether all that is known is that a reader did not wait for it.
    pub(crate) is_late: bool,
    /// Whether it said nothing for seconds.
    pub(crate) is_hanging: bool,
    /// Whether it is being asked again.
    pub(crate) is_asked: bool,
    /// A file that it was asked for.
    pub(crate) path: String,
    /// When its folder was there.
    pub(crate) folder_seen_at: Option<Instant>,
}

impl Health {
    /// That of a server, by its name and URL: one per process.
    pub(crate) fn of(key: &str) -> Arc<Mutex<Health>> {
        static ALL: Mutex<BTreeMap<String, Arc<Mutex<Health>>>> = Mutex::new(BTreeMap::new());
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(key.to_string()).or_default().clone()
    }
}
