//! The fetch of a whole object, beside single cuts from it that came one after another.
//!
//! Nobody says how many cuts will come. The rule of [`RentOrBuy`] decides from what they took so
//! far; the fetched bytes are blocks like all others.

use crate::{BlockCache, CachedSource, ReaderKey};
use std::collections::HashMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use swathe_plan::{Break, Caps, Choice, Connections, Costs, Plan, RentOrBuy, plan};
use swathe_store_api::{Source, StoreError};
use swathe_trace::{Ids, Level, event};

/// A whole object takes at most this part of the limit of the cache.
const PART_OF_LIMIT: u64 = 8;
/// Memory of one fetch.
const CAPS: Caps = Caps { request_bytes: 4 << 20, in_flight_bytes: 16 << 20 };
/// Fetches at a time in a process.
const FETCHES: usize = 4;
/// Objects whose cuts are counted.
const OBJECTS: usize = 1000;

static FETCH_COUNT: AtomicUsize = AtomicUsize::new(0);

/// The fetches of the objects from which single cuts were made.
#[derive(Debug, Default)]
pub(crate) struct WholeFetches(Mutex<HashMap<ReaderKey, Arc<WholeFetch>>>);

impl WholeFetches {
    pub(crate) fn of(&self, reader_key: ReaderKey) -> Arc<WholeFetch> {
        let mut fetches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if fetches.len() >= OBJECTS && !fetches.contains_key(&reader_key) {
            fetches.clear(); // their cuts are counted anew
        }
        fetches.entry(reader_key).or_default().clone()
    }
}

/// The single cuts from an object, and the fetch of all of it.
#[derive(Debug, Default)]
pub(crate) struct WholeFetch {
    state: Mutex<FetchState>,
    change: Condvar,
    /// Predicted seconds to fetch all of it.
    whole_s: OnceLock<f64>,
}

#[derive(Debug, Default)]
struct FetchState {
    cuts: u64,
    rule: RentOrBuy,
    running: Option<Running>,
    has_failed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    /// The process that fetches: a fork takes no threads along.
    process: u32,
    planned_s: f64,
    bytes: u64,
    done_bytes: u64,
}

impl Running {
    /// Predicted seconds until it is done.
    fn rest_s(self) -> f64 {
        let part = self.done_bytes as f64 / self.bytes.max(1) as f64;
        self.planned_s * (1.0 - part).max(0.0)
    }
}

impl WholeFetch {
    fn lock(&self) -> MutexGuard<'_, FetchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Count a cut that begins.
    pub(crate) fn begin_cut(&self) {
        self.lock().cuts += 1;
    }

    fn update(&self, change: impl FnOnce(&mut FetchState)) {
        change(&mut self.lock());
        self.change.notify_all();
    }
}

/// The plan to fetch ranges of an object with no more streams than fill the line, so that others
/// have at least half of what they have alone.
fn whole_plan(ranges: &[Range<u64>], costs: &Costs, connections: Connections) -> Plan {
    let costs = Costs { streams: costs.filling_streams(), ..costs.clone() };
    plan(ranges, &costs, CAPS, Break::Anywhere, connections)
}

impl CachedSource {
    /// Before ranges are fetched in `read_s` that are not cached: begin to fetch the whole object beside them,
    /// or wait until it brought them, `if_all_here`, as the rule says. Returns whether it waited.
    pub(crate) fn await_whole(
        &self,
        read_s: impl Fn() -> f64,
        if_all_here: impl Fn() -> bool,
    ) -> bool {
        let choice = {
            let mut state = self.whole_fetch.lock();
            if state.cuts == 0 {
                return false;
            }
            let read_s = read_s();
            if state.cuts == 1 || state.has_failed || !self.can_hold_whole() {
                state.rule.spend(read_s);
                return false;
            }
            let process = std::process::id();
            state.running = state.running.filter(|running| running.process == process);
            let rest_s = state.running.map(Running::rest_s);
            let whole_s = *self.whole_fetch.whole_s.get_or_init(|| {
                whole_plan(&[0..self.len()], self.costs(), self.connections()).read_s
            });
            state.rule.choose(read_s, whole_s, rest_s)
        };
        match choice {
            Choice::Ranges => false,
            Choice::RangesBesideWhole => {
                self.start_whole();
                false
            }
            Choice::Whole => {
                if !self.start_whole() {
                    return false;
                }
                let mut state = self.whole_fetch.lock();
                while state.running.is_some() {
                    state =
                        self.whole_fetch.change.wait(state).unwrap_or_else(PoisonError::into_inner);
                    drop(state);
                    if if_all_here() {
                        break;
                    }
                    state = self.whole_fetch.lock();
                }
                true
            }
        }
    }

    fn can_hold_whole(&self) -> bool {
        let blocks = self.cells.blocks();
        self.len() <= self.cells.limit() / PART_OF_LIMIT && blocks.takes()
    }

    /// Fetch what is not cached, in a thread; returns whether one does.
    fn start_whole(&self) -> bool {
        let mut state = self.whole_fetch.lock();
        if state.running.is_some() {
            return true;
        }
        let ranges: Vec<Range<u64>> = self.divide(&[0..self.len()]).missing().collect();
        let one_more = |now: usize| (now < FETCHES).then_some(now + 1);
        let order = Ordering::Relaxed;
        if ranges.is_empty() || FETCH_COUNT.fetch_update(order, order, one_more).is_err() {
            return false;
        }
        let plan = whole_plan(&ranges, self.costs(), self.connections());
        let (process, bytes) = (std::process::id(), plan.load.bytes);
        state.running = Some(Running { process, planned_s: plan.read_s, bytes, done_bytes: 0 });
        drop(state);
        let source = self.clone();
        let thread = thread::Builder::new().name("swathe-whole".to_string());
        let result = thread.spawn(move || {
            // Whatever happens, those who wait must be told.
            let outcome = catch_unwind(AssertUnwindSafe(|| source.fetch_whole(&plan)));
            if let Ok(outcome) = &outcome {
                source.record_whole(bytes, outcome.as_ref().err());
            }
            source.end_whole(!matches!(outcome, Ok(Ok(()))));
        });
        if result.is_err() {
            self.end_whole(true);
        }
        result.is_ok()
    }

    fn fetch_whole(&self, plan: &Plan) -> Result<(), StoreError> {
        let lengths = plan.ranges.iter().map(|range| range.end - range.start);
        let division = self.divide(&plan.ranges);
        let pieces = self.fetch_parts(division, plan.way());
        for (length, piece) in lengths.zip(pieces) {
            piece?;
            self.whole_fetch.update(|state| {
                if let Some(running) = &mut state.running {
                    running.done_bytes += length;
                }
            });
        }
        Ok(())
    }

    fn end_whole(&self, has_failed: bool) {
        FETCH_COUNT.fetch_sub(1, Ordering::Relaxed);
        self.whole_fetch.update(|state| {
            // If blocks are evicted later, reads are counted from here.
            (state.running, state.rule, state.has_failed) =
                (None, RentOrBuy::default(), has_failed);
        });
    }

    fn record_whole(&self, bytes: u64, error: Option<&StoreError>) {
        let level = if error.is_some() { Level::Error } else { Level::Usage };
        event(level, "WHOLE_FETCHED", &Ids::default(), |record| {
            record.text("OBJECT", self.cells.object().display_name()).number("BYTES", bytes);
            match error {
                None => record.text("RESULT", "ok"),
                Some(error) => record.text("RESULT", "error").text("REASON", &error.to_string()),
            };
        });
    }
}

impl BlockCache {
    pub(crate) fn whole_fetch(&self, reader_key: ReaderKey) -> Arc<WholeFetch> {
        self.whole_fetches.of(reader_key)
    }
}

#[cfg(test)]
impl CachedSource {
    /// Whether a thread fetches the whole object.
    pub(crate) fn is_fetched_whole(&self) -> bool {
        self.whole_fetch.lock().running.is_some()
    }
}
