//! Time of a job: seconds per stage, summed over threads; and events for the start and end of
//! each stage.

use crate::error::EngineError;
use std::time::{Duration, Instant};
use swathe_plan::{Factors, Load};
use swathe_trace::{Ids, Level, Record};

/// The stages of a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Opening objects, their headers and cached layouts.
    Open,
    /// Deciding which bytes to read.
    Plan,
    /// Reading bytes, and inflating whole-file compression.
    Read,
    /// Decoding tiles.
    Decode,
    /// Copying pixels into cutouts and rendering their headers.
    Assemble,
    /// SHA-256 of the results.
    Hash,
    /// Writing the results.
    Write,
}

/// All stages, in the order of a cut.
pub const STAGES: [(Stage, &str); 7] = [
    (Stage::Open, "open"),
    (Stage::Plan, "plan"),
    (Stage::Read, "read"),
    (Stage::Decode, "decode"),
    (Stage::Assemble, "assemble"),
    (Stage::Hash, "hash"),
    (Stage::Write, "write"),
];

/// The events of each.
const EVENTS: [(&str, &str); STAGES.len()] = [
    ("OPEN_START", "OPEN_END"),
    ("PLAN_START", "PLAN_END"),
    ("READ_START", "READ_END"),
    ("DECODE_START", "DECODE_END"),
    ("ASSEMBLE_START", "ASSEMBLE_END"),
    ("HASH_START", "HASH_END"),
    ("WRITE_START", "WRITE_END"),
];

/// A plan, as its event has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PlanNote {
    pub load: Load,
    /// The seconds that it is predicted to take. Not for inflated or cached bytes.
    pub seconds: Option<f64>,
    /// How the link differs from its profile, if it is read from a server.
    pub factors: Option<Factors>,
}

/// Time spent. The clock always runs for exactly one stage.
#[derive(Clone, Debug)]
pub struct Stages {
    durations: [Duration; STAGES.len()],
    now: Stage,
    since: Instant,
    read_since: Instant,
    /// Fields of the events.
    about: Ids,
    /// The stage with a recorded start and no recorded end yet.
    open_stage: Option<Stage>,
    bytes: Option<u64>,
    plan: Option<PlanNote>,
}

impl Stages {
    /// Start the clock in [`Stage::Open`], without an event.
    pub fn start() -> Stages {
        let since = Instant::now();
        Stages {
            durations: Default::default(),
            now: Stage::Open,
            since,
            read_since: since,
            about: Ids::default(),
            open_stage: None,
            bytes: None,
            plan: None,
        }
    }

    /// Set the fields of later events.
    pub(crate) fn about(&mut self, about: Ids) {
        self.record_end(None, None);
        self.about = about;
    }

    /// Enter another stage, and record that.
    pub fn enter(&mut self, stage: Stage) {
        let now = Instant::now();
        if self.open_stage != Some(stage) {
            self.record_end(Some(now), None);
            if swathe_trace::is_on() {
                let (name, _) = EVENTS[stage as usize];
                record_start(name, now, &self.about);
                self.open_stage = Some(stage);
                self.bytes = None;
            }
        }
        self.change(stage, now);
    }

    /// Enter another stage whose events are recorded target by target; returns the time.
    pub(crate) fn enter_without_event(&mut self, stage: Stage) -> Instant {
        let now = Instant::now();
        self.record_end(Some(now), None);
        self.change(stage, now);
        now
    }

    /// Add a time too short for an event to another stage.
    pub(crate) fn count(&mut self, stage: Stage) {
        self.change(stage, Instant::now());
    }

    fn change(&mut self, stage: Stage, now: Instant) {
        self.durations[self.now as usize] += now - self.since;
        self.since = now;
        self.now = stage;
        if stage == Stage::Read {
            self.read_since = now;
        }
    }

    /// The time since the last change was spent waiting for work: it counts for no stage.
    pub(crate) fn forget_wait(&mut self) {
        self.since = Instant::now();
    }

    /// When reading began last.
    pub(crate) fn read_since(&self) -> Instant {
        self.read_since
    }

    /// Add bytes to this stage.
    pub(crate) fn add_bytes(&mut self, bytes: u64) {
        self.bytes = Some(self.bytes.unwrap_or(0) + bytes);
    }

    /// Record the plan of a read.
    pub(crate) fn note_plan(&mut self, plan: PlanNote) {
        // The end of another stage must not record it.
        if self.open_stage == Some(Stage::Plan) {
            self.bytes = Some(plan.load.bytes);
            self.plan = Some(plan);
        }
    }

    /// The stage failed.
    pub(crate) fn fail(&mut self, error: &EngineError) {
        self.record_end(None, Some(error));
    }

    fn record_end(&mut self, at: Option<Instant>, error: Option<&EngineError>) {
        if let Some(stage) = self.open_stage.take() {
            let (_, name) = EVENTS[stage as usize];
            let at = at.unwrap_or_else(Instant::now);
            let (bytes, plan) = (self.bytes.take(), self.plan.take());
            record_events(&[name], at, &self.about, Some(result_of(error)), |record| {
                push_bytes(record, bytes);
                if let Some(PlanNote { load, seconds, factors }) = plan {
                    record.number("REQUESTS", load.requests).number("RANGES", load.ranges);
                    if load.multiplexed {
                        record.word("MULTIPLEXED", "yes");
                    }
                    if let Some(seconds) = seconds {
                        record.text("PREDICTED_S", &format!("{seconds:.6}"));
                    }
                    if let Some(Factors { line, latency }) = factors {
                        record.text("LINE_FACTOR", &format!("{line:.3}"));
                        record.text("LATENCY_FACTOR", &format!("{latency:.3}"));
                    }
                }
            });
        }
    }

    /// Seconds spent in a stage until its last change.
    pub fn seconds(&self, stage: Stage) -> f64 {
        self.durations[stage as usize].as_secs_f64()
    }

    /// Add what another thread spent.
    pub fn add(&mut self, other: &Stages) {
        for (mine, theirs) in self.durations.iter_mut().zip(&other.durations) {
            *mine += *theirs;
        }
    }
}

/// Record a start.
pub(crate) fn record_start(name: &str, at: Instant, about: &Ids) {
    record_events(&[name], at, about, None, |_| {});
}

/// Record an end, or several at once, with the result.
pub(crate) fn record_end(
    names: &[&str],
    at: Instant,
    about: &Ids,
    bytes: Option<u64>,
    error: Option<&EngineError>,
) {
    record_events(names, at, about, Some(result_of(error)), |record| push_bytes(record, bytes));
}

fn push_bytes(record: &mut Record<'_>, bytes: Option<u64>) {
    bytes.iter().for_each(|bytes| _ = record.number("BYTES", *bytes));
}

fn result_of(error: Option<&EngineError>) -> (&'static str, Option<&EngineError>) {
    (error.map_or("ok", EngineError::result), error)
}

/// Record events that differ in their names only, with more of their fields, and the result
/// with them.
pub(crate) fn record_events(
    names: &[&str],
    at: Instant,
    about: &Ids,
    outcome: Option<(&'static str, Option<&EngineError>)>,
    fill: impl FnOnce(&mut Record<'_>),
) {
    let is_failed = matches!(outcome, Some(("error", _)));
    let level = if is_failed { Level::Error } else { Level::Usage };
    swathe_trace::events_at(level, names, at, about, |record| {
        fill(record);
        if let Some((result, error)) = outcome {
            record.word("RESULT", result);
            if let Some(error) = error {
                record.text("REASON", &error.to_string());
            }
        }
    });
}

/// The fields of the events of an object; none while no events are recorded.
pub(crate) fn about(object: &str) -> Ids {
    let mut ids = Ids::default();
    if !swathe_trace::is_on() {
        return ids;
    }
    ids.push("OBJECT", object);
    ids.share()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_recorded_plan_is_stored_for_its_end() {
        let mut stages = Stages::start();
        stages.change(Stage::Plan, Instant::now());
        let plan = PlanNote { load: Load::single(1), seconds: Some(3.0), factors: None };
        stages.note_plan(plan);
        assert_eq!((stages.bytes, stages.plan), (None, None));
        stages.open_stage = Some(Stage::Plan);
        stages.note_plan(plan);
        assert_eq!((stages.bytes, stages.plan), (Some(1), Some(plan)));
    }
}
