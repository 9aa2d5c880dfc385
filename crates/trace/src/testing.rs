//! For tests of other crates.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Run `work`; returns the events meanwhile, also those of other threads. They are written to a
/// folder.
///
/// # Panics
/// If they cannot be written.
pub fn record_trace(folder: &Path, work: impl FnOnce()) -> String {
    // A process records to one place at a time.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let place = folder.join("run.ulm");
    crate::start(place.to_str().expect("text"), "p", "h", None).expect("started");
    work();
    crate::stop().expect("stopped");
    std::fs::read_to_string(&place).expect("read")
}
