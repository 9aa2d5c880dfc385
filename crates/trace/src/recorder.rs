//! Recording: threads put events into rings of their own, one thread writes them out.
//!
//! Rules: off, an event costs one relaxed load. On, it costs no lock and no system call, and never
//! waits; what finds no room is counted. Nothing that happens to the place where events go fails
//! or delays the work.

use crate::date::{push_digits, push_second};
use crate::place::{Place, PlaceError};
use crate::ring::{Head, Put, RECORD_BYTES, Ring};
use crate::scope::Scope;
use crate::sink::{self, From, Sink};
use crate::ulm::{push_field, push_short};
use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::Thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Threads that record at the same time; what more of them do is lost.
const THREADS: usize = 512;
/// Lines written together.
const BATCH_BYTES: usize = 128 << 10;
/// How long an event may lie in its ring.
const LINGER: Duration = Duration::from_millis(50);
/// How long the end may take before what is left is given up.
const LAST: Duration = Duration::from_secs(10);
/// How often the two clocks are compared, and when they have come apart.
const COMPARE: Duration = Duration::from_secs(1);
const APART_NS: i64 = 20_000;

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

const LEVELS: [(Level, &str); 4] = [
    (Level::Usage, "Usage"),
    (Level::Error, "Error"),
    (Level::Warning, "Warning"),
    (Level::Info, "Info"),
];

/// Why recording did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// It goes on already.
    #[error("events are being recorded already, to {place}")]
    Running {
        /// Where to.
        place: String,
    },
    /// The place is none.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// It cannot be written to.
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

/// How many events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Found room.
    pub recorded: u64,
    /// Are lost: found no room, or could not be written.
    pub dropped: u64,
    /// Were written.
    pub written: u64,
}

/// Number of the recorder that records; 0: none does.
static RECORDING: AtomicU32 = AtomicU32::new(0);
static CURRENT: Mutex<Option<Arc<Recorder>>> = Mutex::new(None);
static STARTED: AtomicU32 = AtomicU32::new(0);

struct Recorder {
    number: u32,
    place: String,
    rings: Mutex<Vec<Arc<Ring>>>,
    writer: OnceLock<Thread>,
    asleep: AtomicBool,
    stopping: AtomicBool,
    ended: Mutex<Receiver<()>>,
    /// Taken from rings; of them lost; and lost by threads without a ring.
    taken: AtomicU64,
    unwritten: AtomicU64,
    homeless: AtomicU64,
}

/// Whether events are recorded.
#[inline]
pub fn is_on() -> bool {
    RECORDING.load(Ordering::Relaxed) != 0
}

/// Start recording. `token` is for a collector.
///
/// # Errors
/// Where it goes on already, or the place cannot be written to. That a collector does not answer
/// is no error: it is asked again.
pub fn start(place: &str, prog: &str, host: &str, token: Option<String>) -> Result<(), StartError> {
    let mut current = lock_soon(&CURRENT).ok_or(StartError::Busy)?;
    if let Some(recorder) = &*current {
        return Err(StartError::Running { place: recorder.place.clone() });
    }
    anchor();
    let from = From { host: host.to_string(), prog: prog.to_string(), token };
    let failed = |source| StartError::Io { place: place.to_string(), source };
    let sink = sink::open(&place.parse::<Place>()?, &from).map_err(failed)?;
    let (end, ended) = sync_channel(1);
    let number = STARTED.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
    let recorder = Arc::new(Recorder {
        number,
        place: place.to_string(),
        rings: Mutex::default(),
        writer: OnceLock::new(),
        asleep: AtomicBool::new(false),
        stopping: AtomicBool::new(false),
        ended: Mutex::new(ended),
        taken: AtomicU64::new(0),
        unwritten: AtomicU64::new(0),
        homeless: AtomicU64::new(0),
    });
    let mut writer = Writer::new(recorder.clone(), sink, &from);
    let thread = std::thread::Builder::new()
        .name("swathe-trace".into())
        .spawn(move || {
            writer.run();
            // Nobody waits any more only when that took too long.
            let _ = end.send(());
        })
        .map_err(failed)?;
    let _ = recorder.writer.set(thread.thread().clone());
    *current = Some(recorder);
    RECORDING.store(number, Ordering::Release);
    Ok(())
}

/// Stop recording, and write what is left; `None` where nothing was recorded.
pub fn stop() -> Option<Counts> {
    let mut current = lock_soon(&CURRENT)?;
    let recorder = current.take()?;
    RECORDING.store(0, Ordering::Release);
    recorder.stopping.store(true, Ordering::Release);
    if let Some(writer) = recorder.writer.get() {
        writer.unpark();
    }
    let _ = lock(&recorder.ended).recv_timeout(LAST);
    let (recorded, unwritten) = recorder.tally();
    Some(Counts {
        recorded,
        dropped: recorder.lost() + unwritten,
        written: recorded - unwritten.min(recorded),
    })
}

/// In a forked child: record nothing. The thread that writes is not there.
pub fn forget() {
    RECORDING.store(0, Ordering::Release);
    if let Ok(mut current) = CURRENT.try_lock() {
        std::mem::forget(current.take());
    }
}

/// Record an event of a moment. `name`: a key; `about`: its first fields.
#[inline]
pub fn event_at(
    level: Level,
    name: &str,
    at: Instant,
    about: &Ids,
    fill: impl FnOnce(&mut Record<'_>),
) {
    let number = RECORDING.load(Ordering::Relaxed);
    if number != 0 {
        record(number, level, name, at, about, fill);
    }
}

/// Record an event of now.
#[inline]
pub fn event(level: Level, name: &str, about: &Ids, fill: impl FnOnce(&mut Record<'_>)) {
    let number = RECORDING.load(Ordering::Relaxed);
    if number != 0 {
        record(number, level, name, Instant::now(), about, fill);
    }
}

/// The fields of an event.
pub struct Record<'a>(&'a mut Vec<u8>);

/// Fields that many events have, ready to be written.
#[derive(Clone, Debug, Default)]
pub struct Ids(Vec<u8>);

impl Ids {
    /// Add others.
    pub fn extend(&mut self, others: &Ids) {
        self.0.extend_from_slice(&others.0);
    }

    /// Add one.
    pub fn push(&mut self, key: &str, value: &str) {
        Record(&mut self.0).text(key, value);
    }
}

impl Record<'_> {
    /// A text. A long one is cut.
    pub fn text(&mut self, key: &str, value: &str) -> &mut Self {
        push_short(self.0, key, value);
        self
    }

    /// A whole number.
    pub fn number(&mut self, key: &str, value: u64) -> &mut Self {
        self.0.push(b' ');
        self.0.extend_from_slice(key.as_bytes());
        self.0.push(b'=');
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut left = value;
        loop {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        self.0.extend_from_slice(&digits[at..]);
        self
    }
}

/// What a thread records into.
struct Local {
    recorder: Arc<Recorder>,
    ring: Arc<Ring>,
    text: Vec<u8>,
    /// Of the last event.
    about: Vec<u8>,
    /// The scope was not told since it changed.
    scope_changed: bool,
}

impl Drop for Local {
    fn drop(&mut self) {
        self.ring.close();
    }
}

thread_local! {
    static LOCAL: RefCell<Option<Local>> = const { RefCell::new(None) };
}

pub(crate) fn scope_changed() {
    let _ = LOCAL.try_with(|local| {
        if let Ok(mut local) = local.try_borrow_mut()
            && let Some(local) = &mut *local
        {
            local.scope_changed = true;
        }
    });
}

fn record(
    number: u32,
    level: Level,
    name: &str,
    at: Instant,
    about: &Ids,
    fill: impl FnOnce(&mut Record<'_>),
) {
    // It fails only at the very end of a thread.
    let _ = LOCAL.try_with(|local| {
        let Ok(mut local) = local.try_borrow_mut() else { return };
        if !matches!(&*local, Some(local) if local.recorder.number == number) {
            *local = register(number);
        }
        if let Some(local) = &mut *local {
            local.record(level, name, at, about, fill);
        }
    });
}

/// A ring for this thread: one that another has left, or a new one.
#[cold]
fn register(number: u32) -> Option<Local> {
    let recorder = lock_soon(&CURRENT)?.clone().filter(|recorder| recorder.number == number)?;
    let mut rings = lock(&recorder.rings);
    let left = rings.iter().find(|ring| ring.is_over()).cloned();
    let ring = match left {
        Some(ring) => {
            ring.reopen();
            ring
        }
        None if rings.len() >= THREADS => {
            recorder.homeless.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        None => {
            let ring = Arc::new(Ring::new(rings.len() as u64 + 1));
            rings.push(ring.clone());
            ring
        }
    };
    drop(rings);
    let (text, about) = (Vec::new(), Vec::new());
    Some(Local { recorder, ring, text, about, scope_changed: true })
}

impl Local {
    fn record(
        &mut self,
        level: Level,
        name: &str,
        at: Instant,
        Ids(about): &Ids,
        fill: impl FnOnce(&mut Record<'_>),
    ) {
        if self.scope_changed {
            let scope = Scope::current();
            if self.ring.put(Head::default(), scope.text()) == Put::Lost {
                return;
            }
            self.scope_changed = false;
        }
        let (Ok(length), Ok(ids)) = (u8::try_from(name.len()), u16::try_from(about.len())) else {
            return self.ring.lose();
        };
        // Events that follow each other are often about the same.
        let same = !about.is_empty() && self.about == *about;
        self.text.clear();
        self.text.extend_from_slice(name.as_bytes());
        if !same {
            self.text.extend_from_slice(about);
        }
        fill(&mut Record(&mut self.text));
        let time_ns = at.saturating_duration_since(anchor()).as_nanos() as u64;
        let ids = if same { 0 } else { ids };
        let head = Head { name: length, level: level as u8, ids, same, time_ns };
        let put = self.ring.put(head, &self.text);
        if !same && put != Put::Lost {
            self.about.clear();
            self.about.extend_from_slice(about);
        }
        if put == Put::Pressing
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

impl Recorder {
    /// Events taken from rings, and how many of them were not written.
    fn tally(&self) -> (u64, u64) {
        let taken = self.taken.load(Ordering::Acquire);
        (taken, self.unwritten.load(Ordering::Acquire))
    }

    /// Events that found no room.
    fn lost(&self) -> u64 {
        let rings: u64 = lock(&self.rings).iter().map(|ring| ring.lost()).sum();
        rings + self.homeless.load(Ordering::Relaxed)
    }
}

/// What all times of events are counted from.
fn anchor() -> Instant {
    static ANCHOR: OnceLock<Instant> = OnceLock::new();
    *ANCHOR.get_or_init(Instant::now)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lock, unless it is not to be had: a process that was forked while it was held never gets it.
fn lock_soon<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    let until = Instant::now() + LAST + Duration::from_secs(1);
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(TryLockError::WouldBlock) => return None,
        }
    }
}

/// Nanoseconds since 1970 of the moment that all times are counted from, by the clock as it goes
/// now: the best of a few looks at both clocks.
fn offset_ns() -> i64 {
    let look = |_| {
        let before = Instant::now();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let after = Instant::now();
        let took = after.saturating_duration_since(before);
        let middle = before.saturating_duration_since(anchor()) + took / 2;
        (took, unix.as_nanos() as i64 - middle.as_nanos() as i64)
    };
    (0..5).map(look).min().map_or(0, |(_, offset_ns)| offset_ns)
}

/// The thread that writes.
struct Writer {
    recorder: Arc<Recorder>,
    sink: Box<dyn Sink>,
    /// ` HOST=... PROG=... LVL=... NL.EVNT=` of each level.
    starts: [Vec<u8>; LEVELS.len()],
    /// Of each ring.
    threads: Vec<Known>,
    lines: Lines,
    compared: Instant,
    /// That it does not work was said.
    warned: bool,
}

/// What is known of a ring.
#[derive(Default)]
struct Known {
    /// ` PID=... THREAD=... JOB=...`
    thread: Vec<u8>,
    /// The ids of its last event.
    about: Vec<u8>,
}

/// Lines to be written.
struct Lines {
    text: Vec<u8>,
    count: u64,
    offset_ns: i64,
    /// The last second, as it is written.
    second: i64,
    date: Vec<u8>,
}

impl Lines {
    fn push(&mut self, start: &[u8], known: &mut Known, head: Head, text: &[u8]) {
        let time_ns = self.offset_ns + head.time_ns as i64;
        let second = time_ns.div_euclid(1_000_000_000);
        if second != self.second {
            self.second = second;
            self.date.clear();
            self.date.extend_from_slice(b"DATE=");
            push_second(&mut self.date, second);
            self.date.push(b'.');
        }
        let (name, rest) = text.split_at(usize::from(head.name).min(text.len()));
        let (ids, fields) = rest.split_at(usize::from(head.ids).min(rest.len()));
        if !head.same {
            known.about.clear();
            known.about.extend_from_slice(ids);
        }
        self.text.extend_from_slice(&self.date);
        push_digits(&mut self.text, time_ns.rem_euclid(1_000_000_000) / 1000, 6);
        for part in [start, name, &known.thread, &known.about, fields] {
            self.text.extend_from_slice(part);
        }
        self.text.push(b'\n');
        self.count += 1;
    }
}

impl Writer {
    fn new(recorder: Arc<Recorder>, sink: Box<dyn Sink>, from: &From) -> Writer {
        let starts = LEVELS.map(|(_, level)| {
            let mut start = Vec::new();
            for (key, value) in [("HOST", &from.host[..]), ("PROG", &from.prog), ("LVL", level)] {
                push_field(&mut start, key, value);
            }
            start.extend_from_slice(b" NL.EVNT=");
            start
        });
        let lines = Lines {
            text: Vec::new(),
            count: 0,
            offset_ns: offset_ns(),
            second: i64::MIN,
            date: Vec::new(),
        };
        let (threads, compared) = (Vec::new(), Instant::now());
        Writer { recorder, sink, starts, threads, lines, compared, warned: false }
    }

    fn run(&mut self) {
        let recorder = self.recorder.clone();
        loop {
            let stopping = recorder.stopping.load(Ordering::Acquire);
            let ready = self.sink.ready();
            let is_ready = matches!(ready, Ok(true));
            self.note(ready.map(drop));
            if is_ready || stopping {
                self.take(is_ready);
            }
            if stopping {
                if is_ready {
                    self.end();
                }
                return;
            }
            recorder.asleep.store(true, Ordering::Relaxed);
            std::thread::park_timeout(LINGER);
            recorder.asleep.store(false, Ordering::Relaxed);
        }
    }

    /// Take all out of the rings, and write it where that can be done.
    fn take(&mut self, write: bool) {
        if self.compared.elapsed() > COMPARE {
            self.compared = Instant::now();
            let offset_ns = offset_ns();
            if (offset_ns - self.lines.offset_ns).abs() > APART_NS {
                self.lines.offset_ns = offset_ns;
            }
        }
        let rings = lock(&self.recorder.rings).clone();
        let mut text = Vec::new();
        for (index, ring) in rings.iter().enumerate() {
            if self.threads.len() == index {
                self.threads.push(Known::default());
            }
            let mut known = std::mem::take(&mut self.threads[index]);
            ring.take(&mut text, &mut |head, text| {
                if head.name == 0 {
                    known.thread.clear();
                    let (pid, number) = (std::process::id().into(), ring.number);
                    Record(&mut known.thread).number("PID", pid).number("THREAD", number);
                    known.thread.extend_from_slice(text);
                    return;
                }
                let start = &self.starts[usize::from(head.level) % LEVELS.len()];
                self.lines.push(start, &mut known, head, text);
                if self.lines.text.len() >= BATCH_BYTES {
                    self.flush(write);
                }
            });
            self.threads[index] = known;
        }
        self.flush(write);
    }

    fn flush(&mut self, write: bool) {
        let count = std::mem::take(&mut self.lines.count);
        if count == 0 {
            return;
        }
        self.recorder.taken.fetch_add(count, Ordering::AcqRel);
        let mut lost = 0;
        if write {
            let written = self.sink.write(&self.lines.text, &mut lost);
            self.note(written);
        } else {
            lost = count;
        }
        self.recorder.unwritten.fetch_add(lost, Ordering::AcqRel);
        self.lines.text.clear();
    }

    /// The last event: how many there were.
    fn end(&mut self) {
        let (recorded, unwritten) = self.recorder.tally();
        let mut text = b"TRACE_END".to_vec();
        let name = text.len() as u8;
        Record(&mut text)
            .number("PID", std::process::id().into())
            .number("RECORDED", recorded)
            .number("DROPPED", self.recorder.lost() + unwritten);
        let time_ns = anchor().elapsed().as_nanos() as u64;
        let level = Level::Usage as u8;
        let head = Head { name, level, time_ns, ..Head::default() };
        let start = &self.starts[usize::from(level)];
        self.lines.push(start, &mut Known::default(), head, &text);
        let mut lost = 0;
        let written = self.sink.write(&self.lines.text, &mut 0);
        self.note(written);
        let finished = self.sink.finish(&mut lost);
        self.note(finished);
        self.recorder.unwritten.fetch_add(lost, Ordering::AcqRel);
    }

    /// Say once that it does not work.
    fn note(&mut self, result: io::Result<()>) {
        let Err(error) = result else { return };
        if !std::mem::replace(&mut self.warned, true) {
            let place = &self.recorder.place;
            // There is nobody to tell that this failed too.
            let _ = writeln!(
                io::stderr(),
                "swathe: events cannot be written to {place}: {error}; they are dropped until they can be"
            );
        }
    }
}
