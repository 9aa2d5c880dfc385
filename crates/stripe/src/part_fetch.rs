//! Ranges of one part on their way.

use crate::hedge::Hedges;
use crate::object::Object;
use crate::part_costs::{Ask, PartCosts};
use crate::read_events::{StageEvents, in_part};
use crate::shards::ShardRanges;
use crate::threads::spawn;
use bytes::Bytes;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use swathe_store_api::{Interrupt, Source, StoreError};
use swathe_trace::Scope;

/// Reads of a file of this machine beyond this have a thread of their own.
const INLINE_BYTES: u64 = 1 << 20;
/// A fetch is late after these multiples of its predicted time and of its latency,
const LATE_FACTORS: (f64, f64) = (2.0, 3.0);
/// and not before this time.
const LATE_LEAST: Duration = Duration::from_millis(20);
/// A fetch that takes this much longer than predicted counts as failed,
const TIMEOUT: f64 = 10.0;
/// but not before this time.
const TIMEOUT_LEAST: Duration = Duration::from_secs(3);
/// Block servers tell of damage in blocks of this many bytes.
pub(crate) const DAMAGE_BYTES: u64 = 4096;
/// No prediction is longer.
const LONGEST_S: f64 = 1e6;
/// What opening a part and planning its read are reckoned to take.
const OPENING_S: f64 = 0.25;

/// What is reported of a fetch.
pub(crate) enum Message {
    /// How it is read.
    Planned {
        /// What it is read from.
        source: Arc<dyn Source>,
        /// Ranges of the part, ascending and apart.
        windows: Vec<Range<u64>>,
        /// Predicted time.
        predicted_s: f64,
        /// Latency of the server.
        latency_s: f64,
    },
    /// The end and its time, perhaps with an error.
    End(Instant, Option<StoreError>),
}

/// The bytes of the first ranges.
type Pieces = Arc<Mutex<Vec<Bytes>>>;

/// Ranges of a part that were asked for. Dropped, it ends its waits.
pub(crate) struct PartFetch {
    pub(crate) part: u32,
    pub(crate) what: Arc<PartAsks>,
    /// [`Part::move_count`] when it was begun.
    ///
    /// [`Part::move_count`]: crate::part::Part::move_count
    pub(crate) move_count: u32,
    pub(crate) is_running: bool,
    /// Whether it is in addition, as another part is late.
    pub(crate) is_hedge: bool,
    /// Whether others were asked because this one is late.
    pub(crate) has_hedge: bool,
    /// What comes, as ranges of the part.
    windows: Vec<Range<u64>>,
    /// What it is read from, once that is open.
    source: Option<Arc<dyn Source>>,
    /// What came. It is not told piece by piece: a cut is hundreds of them.
    pieces: Pieces,
    began: Instant,
    predicted_s: f64,
    latency_s: f64,
    interrupt: Interrupt,
    /// Pieces that had come when that was last looked at, and since when there are no more.
    last: (usize, Instant),
}

/// What is to be read of a part, ascending, on how many streams at most.
pub(crate) struct PartAsks {
    pub(crate) part: u32,
    pub(crate) asks: Vec<Ask>,
    pub(crate) most_streams: u32,
    /// Bytes of the part that are damaged: nothing is read through to what is behind them.
    pub(crate) damaged_bytes: Vec<u64>,
    /// Whether the ranges are short, as rows of a cut.
    pub(crate) are_short: bool,
    /// The part, where its server proves what it sends; else it is compared with checksums.
    pub(crate) proof: Option<Arc<dyn Source>>,
}

impl PartFetch {
    /// Ask a part for ranges. What comes is sent with this number.
    pub(crate) fn start(
        object: &Arc<Object>,
        what: PartAsks,
        number: usize,
        sender: &Sender<(usize, Message)>,
    ) -> PartFetch {
        let what = Arc::new(what);
        let part = what.part;
        let interrupt = Interrupt::current().child();
        let fetch = PartFetch {
            part,
            what: what.clone(),
            move_count: object.parts[part as usize].move_count(),
            is_running: true,
            is_hedge: false,
            has_hedge: false,
            windows: Vec::new(),
            source: None,
            pieces: Arc::default(),
            began: Instant::now(),
            predicted_s: OPENING_S,
            latency_s: 0.0,
            interrupt: interrupt.clone(),
            last: (0, Instant::now()),
        };
        let bytes: u64 = what.asks.iter().map(|ask| ask.in_part.end - ask.in_part.start).sum();
        let (object, sender) = (object.clone(), sender.clone());
        let is_inline = object.parts[part as usize].is_local() && bytes <= INLINE_BYTES;
        let report = move |message| sender.send((number, message)).is_ok();
        let pieces = fetch.pieces.clone();
        if is_inline {
            run(&object, &what, &pieces, &report);
            return fetch;
        }
        let scope = Scope::current();
        let again = report.clone();
        let url = object.url.clone();
        let thread = spawn(move || {
            scope.enter();
            interrupt.enter();
            let read = || run(&object, &what, &pieces, &report);
            if catch_unwind(AssertUnwindSafe(read)).is_err() {
                let source = std::io::Error::other("the thread that read it panicked");
                let error = StoreError::Io { url: object.url.clone(), source };
                report(Message::End(Instant::now(), Some(error)));
            }
        });
        if let Err(source) = thread {
            again(Message::End(Instant::now(), Some(StoreError::Io { url, source })));
        }
        fetch
    }

    /// Take a message; of a part that was read, `hedges` learn its time, if they are given.
    pub(crate) fn take(
        &mut self,
        message: Message,
        hedges: Option<&Hedges>,
    ) -> Option<Result<(), StoreError>> {
        match message {
            Message::Planned { source, windows, predicted_s, latency_s } => {
                (self.windows, self.latency_s) = (windows, latency_s);
                self.source = Some(source);
                self.predicted_s = self.began.elapsed().as_secs_f64() + predicted_s;
            }
            Message::End(at, error) => {
                self.is_running = false;
                if let (None, Some(hedges)) = (&error, hedges) {
                    let time = at.saturating_duration_since(self.began);
                    hedges.add_time(time.as_secs_f64() / self.late_after(1.0).as_secs_f64());
                }
                return Some(error.map_or(Ok(()), Err));
            }
        }
        None
    }

    /// What it is read from, once that is open.
    pub(crate) fn source(&self) -> Option<&Arc<dyn Source>> {
        self.source.as_ref()
    }

    /// What was asked for in the block that a damaged byte of the part is in.
    pub(crate) fn damages_of(&self, byte: u64) -> ShardRanges {
        let start = byte / DAMAGE_BYTES * DAMAGE_BYTES;
        let end = start.saturating_add(DAMAGE_BYTES);
        let mut damages = ShardRanges::default();
        for ask in &self.what.asks {
            let (from, until) = (start.max(ask.in_part.start), end.min(ask.in_part.end));
            if from < until {
                let in_shard = |at: u64| ask.in_shard.start + (at - ask.in_part.start);
                damages.add(ask.id, in_shard(from)..in_shard(until));
            }
        }
        damages
    }

    /// Whether a byte of the part is read, be it between what was asked for.
    pub(crate) fn reads(&self, byte: u64) -> bool {
        self.windows.iter().any(|window| window.contains(&byte))
    }

    /// The bytes of a range of the part, if they came.
    pub(crate) fn bytes_of(&self, range: &Range<u64>) -> Option<Bytes> {
        let pieces = lock(&self.pieces);
        let windows = &self.windows[..pieces.len().min(self.windows.len())];
        let first = windows.partition_point(|window| window.end <= range.start);
        let (window, piece) = (windows.get(first)?, &pieces[first]);
        let inside = |at: u64| (at - window.start) as usize;
        if window.start <= range.start && range.end <= window.end {
            return Some(piece.slice(inside(range.start)..inside(range.end)));
        }
        let mut bytes = Vec::with_capacity((range.end - range.start) as usize);
        let mut at = range.start;
        for (window, piece) in windows.iter().zip(&*pieces).skip(first) {
            if window.start > at || at == range.end {
                break;
            }
            let until = window.end.min(range.end);
            let inside = |at: u64| (at - window.start) as usize;
            bytes.extend_from_slice(&piece[inside(at)..inside(until)]);
            at = until;
        }
        (at == range.end).then(|| bytes.into())
    }

    /// When it is late; `patience`: that of [`Hedges::patience`].
    pub(crate) fn late_at(&self, patience: f64) -> Instant {
        self.began + self.late_after(patience)
    }

    fn late_after(&self, patience: f64) -> Duration {
        let seconds = LATE_FACTORS.0 * self.predicted_s + LATE_FACTORS.1 * self.latency_s;
        let seconds = patience * seconds.max(LATE_LEAST.as_secs_f64());
        Duration::from_secs_f64(seconds.min(LONGEST_S))
    }

    /// When it counts as failed.
    pub(crate) fn timeout_at(&self) -> Instant {
        let seconds = TIMEOUT * self.predicted_s;
        self.began + TIMEOUT_LEAST.max(Duration::from_secs_f64(seconds.min(LONGEST_S)))
    }

    /// Whether nothing came for some time; once in that time.
    pub(crate) fn is_silent(&mut self, now: Instant, time: Duration) -> bool {
        let count = lock(&self.pieces).len();
        if !self.is_running || count > self.last.0 {
            self.last = (count, now);
        }
        let is_silent = now.saturating_duration_since(self.last.1) >= time;
        if is_silent {
            self.last.1 = now;
        }
        is_silent
    }

    /// Wait for it no longer.
    pub(crate) fn abandon(&mut self) {
        self.is_running = false;
        self.interrupt.set();
    }
}

impl Drop for PartFetch {
    fn drop(&mut self) {
        self.interrupt.set();
    }
}

/// Read a part, and report what comes. `report` is false once nobody listens.
fn run(object: &Object, what: &PartAsks, pieces: &Pieces, report: &dyn Fn(Message) -> bool) {
    let part = what.part;
    let stage = StageEvents::start("PART", object, |about| {
        about.push("SERVER", &object.parts[part as usize].server_name());
        about.push("PART", &part.to_string());
    });
    let result = in_part(part, || read(object, what, pieces, report));
    stage.end(result.as_ref().copied());
    report(Message::End(Instant::now(), result.err()));
}

/// Read the bytes of a part into `pieces`; how many came.
fn read(
    object: &Object,
    what: &PartAsks,
    pieces: &Pieces,
    report: &dyn Fn(Message) -> bool,
) -> Result<u64, StoreError> {
    let source = match &what.proof {
        Some(source) => source.clone(),
        None => object.parts[what.part as usize].open()?,
    };
    let places = object.parts[what.part as usize].places();
    // Which of several servers has the part is not known here.
    let reader = match &places[..] {
        [server] => Some(server.enter_reader()),
        _ => None,
    };
    let costs = PartCosts::of_source(&*source).on_streams(what.most_streams);
    // To split some rows is of no use where others wait for the same line. A long read is divided by
    // its windows, and needs all streams for each.
    let costs = match &reader {
        Some(reader) if what.are_short => costs.share(reader.number),
        _ => costs,
    };
    let (is_proven, latency_s) = (what.proof.is_some(), costs.latency_s());
    let plan = costs.plan(&what.asks, &what.damaged_bytes, is_proven);
    let (way, windows) = (plan.way(), plan.ranges.clone());
    let mut byte_count = 0;
    let message =
        Message::Planned { source: source.clone(), windows, predicted_s: plan.read_s, latency_s };
    if !report(message) {
        return Ok(byte_count);
    }
    let short = |window: &Range<u64>, found: u64| StoreError::ShortRead {
        url: source.url().to_string(),
        start: window.start,
        expected: window.end - window.start,
        found,
    };
    let mut windows = plan.ranges.iter();
    for (piece, window) in source.fetch_by(plan.ranges.clone(), way).zip(&mut windows) {
        let bytes = piece?;
        let length = bytes.len() as u64;
        if length != window.end - window.start {
            return Err(short(window, length));
        }
        byte_count += length;
        lock(pieces).push(bytes);
        if Interrupt::current().is_set() {
            return Ok(byte_count);
        }
    }
    // A source that ends early gives no error.
    windows.next().map_or(Ok(byte_count), |window| Err(short(window, 0)))
}

fn lock(pieces: &Pieces) -> MutexGuard<'_, Vec<Bytes>> {
    pieces.lock().unwrap_or_else(PoisonError::into_inner)
}
