//! Recording: threads put events into rings of their own, one thread writes them out.
//!
//! Rules: off, an event costs one relaxed load. On, it costs no lock and no system call, and never
//! waits; an event that does not fit is counted. Nothing that happens at the destination fails
//! or delays the work.

use crate::destination::{Destination, DestinationError};
use crate::fields::{Ids, Record};
use crate::open_sink::open_sink;
use crate::ring::{Head, LARGE, PutResult, RECORD_BYTES, Ring, SCOPE, SHARED_FIELDS, SMALL};
use crate::scope::{self, Scope};
pub use crate::session::{Counts, Level};
use crate::session::{Session, anchor, lock};
use crate::sink::{LineSink, Origin};
use crate::writer::EventWriter;
use std::cell::RefCell;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::{Duration, Instant};

/// Threads that record at the same time; what more of them do is lost.
const THREADS: usize = 512;
/// The first of them have large rings, the others small ones: 60 MiB for all of them.
const LARGE_RINGS: usize = 64;
/// How long the end may take before the rest is given up.
const LAST: Duration = Duration::from_secs(10);

/// Why recording did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A recording runs already.
    #[error("events are being recorded already, to {place}")]
    Running {
        /// The destination.
        place: String,
    },
    /// The place is none.
    #[error(transparent)]
    Destination(#[from] DestinationError),
    /// The destination cannot be written.
    #[error("events cannot be written to {place}: {source}")]
    Io {
        /// The place.
        place: String,
        /// Why.
        source: io::Error,
    },
    /// Another thread starts or stops at this moment, or did when this process was forked.
    #[error("events are being started or stopped by another thread")]
    Busy,
}

/// Number of the recorder that records; 0: none does.
static RECORDING: AtomicU32 = AtomicU32::new(0);
/// Locked only for a moment: threads that record for the first time look here.
static CURRENT: Mutex<Option<Arc<Session>>> = Mutex::new(None);
/// Locked during a start or stop.
static CHANGING: Mutex<()> = Mutex::new(());
static SESSION_COUNT: AtomicU32 = AtomicU32::new(0);

/// Whether events are recorded.
#[inline]
pub fn is_on() -> bool {
    RECORDING.load(Ordering::Relaxed) != 0
}

/// Start recording. `token` is for a collector.
///
/// # Errors
/// If it is already recording, or the destination cannot be written to. A collector that does not
/// answer is no error: it is tried again.
pub fn start(place: &str, prog: &str, host: &str, token: Option<String>) -> Result<(), StartError> {
    let from = Origin { host: host.to_string(), prog: prog.to_string(), token };
    start_with(place, &from, || {
        open_sink(&place.parse::<Destination>()?, &from)
            .map_err(|source| StartError::Io { place: place.to_string(), source })
    })
}

fn start_with(
    place: &str,
    from: &Origin,
    open: impl FnOnce() -> Result<Box<dyn LineSink>, StartError>,
) -> Result<(), StartError> {
    let _changing = lock_in_time(&CHANGING).ok_or(StartError::Busy)?;
    let current = || lock_in_time(&CURRENT).ok_or(StartError::Busy);
    if let Some(recorder) = &*current()? {
        return Err(StartError::Running { place: recorder.place.clone() });
    }
    anchor();
    let sink = open()?;
    let (end, end_signal) = sync_channel(1);
    let number = SESSION_COUNT.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
    let recorder = Arc::new(Session {
        number,
        place: place.to_string(),
        rings: Mutex::default(),
        writer: OnceLock::new(),
        asleep: AtomicBool::new(false),
        stopping: AtomicBool::new(false),
        given_up: AtomicBool::new(false),
        end_signal: Mutex::new(end_signal),
        written_events: AtomicU64::new(0),
        homeless: AtomicU64::new(0),
        release_count: AtomicU64::new(0),
    });
    let mut writer = EventWriter::new(recorder.clone(), sink, from);
    let thread = std::thread::Builder::new()
        .name("swathe-trace".into())
        .spawn(move || {
            writer.run();
            // Nobody waits any more only when that took too long.
            let _ = end.send(());
        })
        .map_err(|source| StartError::Io { place: place.to_string(), source })?;
    let _ = recorder.writer.set(thread.thread().clone());
    *current()? = Some(recorder);
    RECORDING.store(number, Ordering::Release);
    Ok(())
}

/// Stop recording, and write the rest; `None` if nothing was recorded.
pub fn stop() -> Option<Counts> {
    stop_within(LAST)
}

fn stop_within(last: Duration) -> Option<Counts> {
    let _changing = lock_in_time(&CHANGING)?;
    let recorder = lock_in_time(&CURRENT)?.take()?;
    RECORDING.store(0, Ordering::Release);
    recorder.stopping.store(true, Ordering::Release);
    if let Some(writer) = recorder.writer.get() {
        writer.unpark();
    }
    if lock(&recorder.end_signal).recv_timeout(last).is_err() {
        recorder.given_up.store(true, Ordering::Release);
    }
    Some(recorder.counts())
}

/// In a forked child: record nothing. Its writer thread does not exist.
pub fn forget() {
    RECORDING.store(0, Ordering::Release);
    // A lock that another thread had is never released here: then nothing can be started.
    if let Ok(mut current) = CURRENT.try_lock() {
        std::mem::forget(current.take());
    }
}

/// Record events of a moment that differ in their names only, which are keys. `about`: their first
/// fields.
#[inline]
pub fn events_at(
    level: Level,
    names: &[&str],
    at: Instant,
    about: &Ids,
    fill: impl FnOnce(&mut Record<'_>),
) {
    let number = RECORDING.load(Ordering::Relaxed);
    if number != 0 {
        record(number, level, names, at, about, fill);
    }
}

/// Record an event of now. `name`: a key; `about`: its first fields.
#[inline]
pub fn event(level: Level, name: &str, about: &Ids, fill: impl FnOnce(&mut Record<'_>)) {
    let number = RECORDING.load(Ordering::Relaxed);
    if number != 0 {
        record(number, level, &[name], Instant::now(), about, fill);
    }
}

/// The recorder of a thread.
struct Local {
    recorder: Arc<Session>,
    /// The recorder's, at hand.
    number: u32,
    /// `None`: all were in use.
    ring: Option<Arc<Ring>>,
    /// How many had been left by others when one was looked for.
    release_count: u64,
    text: Vec<u8>,
    /// Fields of the last event.
    about: Ids,
    at: Instant,
    time_ns: u64,
    /// The scope changed and is not recorded yet.
    has_new_scope: bool,
}

impl Drop for Local {
    fn drop(&mut self) {
        if let Some(ring) = &self.ring {
            ring.close();
            self.recorder.release_count.fetch_add(1, Ordering::Release);
        }
    }
}

thread_local! {
    static LOCAL: RefCell<Option<Local>> = const { RefCell::new(None) };
}

fn record(
    number: u32,
    level: Level,
    names: &[&str],
    at: Instant,
    about: &Ids,
    fill: impl FnOnce(&mut Record<'_>),
) {
    // It fails only at the very end of a thread.
    let _ = LOCAL.try_with(|local| {
        let Ok(mut local) = local.try_borrow_mut() else { return };
        if !matches!(&*local, Some(local) if local.serves(number)) {
            *local = register(number);
        }
        if let Some(local) = &mut *local {
            local.record(level, names, at, about, fill);
        }
    });
}

/// A ring for this thread: of those that others have left the emptiest, or a new one.
#[cold]
fn register(number: u32) -> Option<Local> {
    let recorder = lock_in_time(&CURRENT)?.clone().filter(|recorder| recorder.number == number)?;
    let mut rings = lock(&recorder.rings);
    let release_count = recorder.release_count.load(Ordering::Acquire);
    let free_rings = rings.iter().filter(|ring| ring.is_closed());
    let mut ring = free_rings.min_by_key(|ring| ring.used_words()).cloned();
    match &ring {
        Some(ring) => ring.reopen(),
        None if rings.len() >= THREADS => {}
        None => {
            let words = if rings.len() < LARGE_RINGS { LARGE } else { SMALL };
            let new_ring = Arc::new(Ring::new(rings.len() as u64 + 1, words));
            rings.push(new_ring.clone());
            ring = Some(new_ring);
        }
    }
    drop(rings);
    let (text, about) = (Vec::new(), Ids::default());
    let (at, time_ns) = (anchor(), 0);
    Some(Local {
        recorder,
        number,
        ring,
        release_count,
        text,
        about,
        at,
        time_ns,
        has_new_scope: true,
    })
}

impl Local {
    /// Whether the recorder cannot be improved.
    fn serves(&self, number: u32) -> bool {
        self.number == number
            && (self.ring.is_some()
                || self.recorder.release_count.load(Ordering::Relaxed) == self.release_count)
    }

    fn record(
        &mut self,
        level: Level,
        names: &[&str],
        at: Instant,
        Ids { own, common }: &Ids,
        fill: impl FnOnce(&mut Record<'_>),
    ) {
        let events = names.len() as u8;
        let Some(ring) = &self.ring else {
            self.recorder.homeless.fetch_add(events.into(), Ordering::Relaxed);
            return;
        };
        self.has_new_scope |= scope::take_change();
        if self.has_new_scope {
            let scope = Scope::current();
            let head = Head { level: SCOPE, events, ..Head::default() };
            if ring.put(head, scope.text()) == PutResult::Lost {
                return;
            }
            self.has_new_scope = false;
            self.about = Ids::default();
        }
        if !self.about.shares(common) {
            let text = common.as_deref().unwrap_or_default();
            let head = Head { level: SHARED_FIELDS, events, ..Head::default() };
            // Equal ones may have been created twice.
            if self.about.common.as_deref().unwrap_or_default() != text
                && ring.put(head, text) == PutResult::Lost
            {
                return;
            }
            self.about.common.clone_from(common);
        }
        self.text.clear();
        for name in names {
            self.text.extend_from_slice(name.as_bytes());
            self.text.push(b' ');
        }
        let (Ok(name), Ok(ids)) = (u8::try_from(self.text.len()), u16::try_from(own.len())) else {
            return ring.lose(events);
        };
        // Events that follow each other are often about the same, and of the same moment.
        let same = !own.is_empty() && self.about.own == *own;
        if !same {
            self.text.extend_from_slice(own);
        }
        fill(&mut Record(&mut self.text));
        if at != self.at {
            self.at = at;
            self.time_ns = at.saturating_duration_since(anchor()).as_nanos() as u64;
        }
        let ids = if same { 0 } else { ids };
        let head = Head { name, events, level: level as u8, ids, same, time_ns: self.time_ns };
        let result = ring.put(head, &self.text);
        if !same && result != PutResult::Lost {
            self.about.own.clone_from(own);
        }
        if result == PutResult::Pressing
            && self.recorder.asleep.load(Ordering::Relaxed)
            && self.recorder.asleep.swap(false, Ordering::Relaxed)
            && let Some(writer) = self.recorder.writer.get()
        {
            writer.unpark();
        }
        if self.text.capacity() > 2 * RECORD_BYTES {
            self.text = Vec::new();
        }
    }
}

/// The lock, unless it cannot be taken: a process forked while it was locked never gets it.
fn lock_in_time<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    let until = Instant::now() + LAST + Duration::from_secs(1);
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(error)) => return Some(error.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(TryLockError::WouldBlock) => return None,
        }
    }
}

#[cfg(test)]
mod tests;
