//! One recording, from its start to its end: what the threads that record share with the one that
//! writes.

use crate::ring::Ring;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Instant;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The ordinary.
    Usage,
    /// Something failed.
    Error,
    /// Something a user should know.
    Warning,
    /// Something a user may want to know.
    Info,
}

/// How many events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events that were recorded.
    pub recorded_events: u64,
    /// Lost: not stored, or not written.
    pub dropped_events: u64,
    /// Events that were written.
    pub written_events: u64,
}

/// The shared state.
pub(crate) struct Session {
    pub(crate) number: u32,
    pub(crate) place: String,
    pub(crate) rings: Mutex<Vec<Arc<Ring>>>,
    pub(crate) writer: OnceLock<Thread>,
    pub(crate) asleep: AtomicBool,
    pub(crate) stopping: AtomicBool,
    /// The wait for the writer has timed out: the rest is lost.
    pub(crate) given_up: AtomicBool,
    pub(crate) end_signal: Mutex<Receiver<()>>,
    /// Events that were written.
    pub(crate) written_events: AtomicU64,
    /// Events of threads without a ring.
    pub(crate) homeless: AtomicU64,
    /// Rings that threads have left.
    pub(crate) release_count: AtomicU64,
}

impl Session {
    /// How many events until now. Events in rings, or on their way to the sink, are dropped unless
    /// it is written later.
    pub(crate) fn counts(&self) -> Counts {
        // In this order: an event put in meanwhile is not yet recorded.
        let written_events = self.written_events.load(Ordering::Acquire);
        let rings = lock(&self.rings);
        let recorded_events: u64 = rings.iter().map(|ring| ring.events()).sum();
        let lost_events: u64 = rings.iter().map(|ring| ring.lost_events()).sum();
        let lost_events = lost_events + self.homeless.load(Ordering::Relaxed);
        Counts {
            recorded_events,
            dropped_events: lost_events + recorded_events.saturating_sub(written_events),
            written_events,
        }
    }
}

/// The moment from which all times of events are counted.
pub(crate) fn anchor() -> Instant {
    static ANCHOR: OnceLock<Instant> = OnceLock::new();
    *ANCHOR.get_or_init(Instant::now)
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
