//! The thread that writes: takes records out of the rings, makes lines of them, and hands these to
//! the sink.

use crate::date::push_second;
use crate::fields::Record;
use crate::ring::{Head, RECORD_BYTES, SHARED_FIELDS};
use crate::session::{Level, Session, anchor, lock};
use crate::sink::{LineSink, Origin};
use crate::ulm::push_field;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Lines written together: of a quarter of that, the kernel takes a third more time for a byte. A
/// file that is renamed at 1 MB has room for it.
const BATCH_BYTES: usize = 512 << 10;
/// How long an event may lie in its ring.
const LINGER: Duration = Duration::from_millis(50);
/// How often the two clocks are compared, and when they have come apart.
const COMPARE: Duration = Duration::from_secs(1);
const APART_NS: i64 = 20_000;
/// More than the last event has beside its start: name and three numbers.
const END_BYTES: usize = 200;

const LEVELS: [(Level, &str); 4] = [
    (Level::Usage, "Usage"),
    (Level::Error, "Error"),
    (Level::Warning, "Warning"),
    (Level::Info, "Info"),
];

pub(crate) struct EventWriter {
    session: Arc<Session>,
    sink: Box<dyn LineSink>,
    /// State of each ring.
    threads: Vec<RingState>,
    /// Room for the longest record.
    record: Box<[u8]>,
    lines: Lines,
    compared_at: Instant,
    /// Whether a warning was printed.
    has_warned: bool,
}

/// The writer's state of a ring.
#[derive(Default)]
struct RingState {
    /// ` PID=... THREAD=... JOB=...`, then the ids of its last event, and those that it shares.
    text: Vec<u8>,
    /// The ends of the first and of the second of these.
    ends: [usize; 2],
    common: Vec<u8>,
}

impl RingState {
    /// Set the fields of all later events.
    fn set(&mut self, head: Head, text: &[u8], number: u64) {
        self.common.clear();
        if head.level == SHARED_FIELDS {
            self.common.extend_from_slice(text);
            self.text.truncate(self.ends[1]);
            return self.text.extend_from_slice(text);
        }
        self.text.clear();
        let pid = std::process::id().into();
        Record(&mut self.text).number("PID", pid).number("THREAD", number);
        self.text.extend_from_slice(text);
        self.ends = [self.text.len(); 2];
    }

    fn set_own(&mut self, own: &[u8]) {
        self.text.truncate(self.ends[0]);
        self.text.extend_from_slice(own);
        self.ends[1] = self.text.len();
        self.text.extend_from_slice(&self.common);
    }
}

/// What lines of a level begin with, `DATE=... HOST=... PROG=... LVL=... NL.EVNT=`, as the last
/// one did.
struct Start {
    text: Vec<u8>,
    us: i64,
    second: i64,
}

/// The range of the seconds in it, and of their decimals.
const SECOND: std::ops::Range<usize> = 5..19;
const FRACTION: std::ops::Range<usize> = 20..26;

impl Start {
    fn new(from: &Origin, level: &str) -> Start {
        let mut text = b"DATE=YYYYMMDDhhmmss.ffffff".to_vec();
        for (key, value) in [("HOST", &from.host[..]), ("PROG", &from.prog), ("LVL", level)] {
            push_field(&mut text, key, value);
        }
        text.extend_from_slice(b" NL.EVNT=");
        Start { text, us: i64::MIN, second: i64::MIN }
    }

    /// Its offset at a time.
    fn at(&mut self, time_ns: i64) -> &[u8] {
        let us = time_ns.div_euclid(1000);
        if us != self.us {
            self.us = us;
            let (second, us) = (us.div_euclid(1_000_000), us.rem_euclid(1_000_000) as u32);
            if second != self.second {
                self.second = second;
                let mut date = Vec::new();
                push_second(&mut date, second);
                self.text[SECOND].copy_from_slice(&date);
            }
            let mut unit = 100_000;
            for digit in &mut self.text[FRACTION] {
                *digit = b'0' + (us / unit % 10) as u8;
                unit /= 10;
            }
        }
        &self.text
    }
}

/// Lines to be written.
struct Lines {
    text: Vec<u8>,
    count: u64,
    starts: [Start; LEVELS.len()],
    offset_ns: i64,
}

impl Lines {
    fn push(&mut self, state: &mut RingState, head: Head, text: &[u8]) {
        let level = usize::from(head.level) % LEVELS.len();
        let start = self.starts[level].at(self.offset_ns + head.time_ns as i64);
        let (mut names, rest) = text.split_at(usize::from(head.name).min(text.len()));
        let (own, fields) = rest.split_at(usize::from(head.ids).min(rest.len()));
        if !head.same {
            state.set_own(own);
        }
        while let Some(end) = names.iter().position(|byte| *byte == b' ') {
            for part in [start, &names[..end], &state.text, fields, b"\n"] {
                self.text.extend_from_slice(part);
            }
            self.count += 1;
            names = &names[end + 1..];
        }
    }
}

impl EventWriter {
    pub fn new(session: Arc<Session>, sink: Box<dyn LineSink>, from: &Origin) -> EventWriter {
        let lines = Lines {
            text: Vec::with_capacity(BATCH_BYTES + RECORD_BYTES),
            count: 0,
            starts: LEVELS.map(|(_, level)| Start::new(from, level)),
            offset_ns: offset_ns(),
        };
        let (threads, record) = (Vec::new(), vec![0; RECORD_BYTES].into());
        let (compared_at, has_warned) = (Instant::now(), false);
        EventWriter { session, sink, threads, record, lines, compared_at, has_warned }
    }

    pub fn run(&mut self) {
        let session = self.session.clone();
        loop {
            let stopping = session.stopping.load(Ordering::Acquire);
            let ready = self.sink.ready();
            let is_ready = matches!(ready, Ok(true));
            self.note(ready.map(drop));
            // The rest in the rings at the end is lost, and counted so.
            if is_ready {
                self.take();
            }
            if stopping {
                if is_ready {
                    self.end();
                }
                return;
            }
            session.asleep.store(true, Ordering::Relaxed);
            std::thread::park_timeout(LINGER);
            session.asleep.store(false, Ordering::Relaxed);
        }
    }

    /// Take all out of the rings, and write it.
    fn take(&mut self) {
        if self.compared_at.elapsed() > COMPARE {
            self.compared_at = Instant::now();
            let offset_ns = offset_ns();
            if (offset_ns - self.lines.offset_ns).abs() > APART_NS {
                self.lines.offset_ns = offset_ns;
            }
        }
        let rings = lock(&self.session.rings).clone();
        let mut record = std::mem::take(&mut self.record);
        for (index, ring) in rings.iter().enumerate() {
            if self.threads.len() == index {
                self.threads.push(RingState::default());
            }
            let mut state = std::mem::take(&mut self.threads[index]);
            ring.take(&mut record, &mut |head, text| {
                if head.name == 0 {
                    return state.set(head, text, ring.number);
                }
                self.lines.push(&mut state, head, text);
                if self.lines.text.len() >= BATCH_BYTES {
                    self.flush();
                }
            });
            self.threads[index] = state;
        }
        self.record = record;
        self.flush();
    }

    /// Write the lines, unless they were given up: then they were counted as lost.
    fn flush(&mut self) {
        let count = std::mem::take(&mut self.lines.count);
        if count > 0 && !self.session.given_up.load(Ordering::Acquire) {
            let mut lost_lines = 0;
            let result = self.sink.write(&self.lines.text, &mut lost_lines);
            self.note(result);
            self.session.written_events.fetch_add(count - lost_lines.min(count), Ordering::AcqRel);
        }
        self.lines.text.clear();
    }

    /// The last event: the number of events.
    fn end(&mut self) {
        let mut text = b"TRACE_END ".to_vec();
        let name = text.len() as u8;
        let level = Level::Usage as u8;
        let start = &self.lines.starts[usize::from(level)];
        let in_memory = self.sink.pending_lines(start.text.len() + END_BYTES);
        let counts = self.session.counts();
        Record(&mut text)
            .number("PID", std::process::id().into())
            .number("RECORDED", counts.recorded_events)
            .number("DROPPED", counts.dropped_events - in_memory.min(counts.dropped_events));
        let time_ns = anchor().elapsed().as_nanos() as u64;
        let head = Head { name, level, time_ns, ..Head::default() };
        self.lines.push(&mut RingState::default(), head, &text);
        // It is not among those that are counted, and comes after all lines in memory.
        let result = self.sink.write(&self.lines.text, &mut 0);
        self.note(result);
        let mut line_count = 0;
        let result = self.sink.finish(&mut line_count);
        self.note(result);
        self.session.written_events.fetch_add(line_count.min(in_memory), Ordering::AcqRel);
    }

    /// Say once that it does not work.
    fn note(&mut self, result: io::Result<()>) {
        let Err(error) = result else { return };
        if !std::mem::replace(&mut self.has_warned, true) {
            let place = &self.session.place;
            // Nobody can be told that this failed too.
            let _ = writeln!(
                io::stderr(),
                "swathe: events cannot be written to {place}: {error}; they are dropped until they can be"
            );
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
        let duration = after.saturating_duration_since(before);
        let middle = before.saturating_duration_since(anchor()) + duration / 2;
        (duration, unix.as_nanos() as i64 - middle.as_nanos() as i64)
    };
    (0..5).map(look).min().map_or(0, |(_, offset_ns)| offset_ns)
}
