//! Where the time of a job goes: seconds per stage, summed over threads.

use std::time::{Duration, Instant};

/// The stages of a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Opening objects, their headers and kept layouts.
    Open,
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
pub const STAGES: [(Stage, &str); 6] = [
    (Stage::Open, "open"),
    (Stage::Read, "read"),
    (Stage::Decode, "decode"),
    (Stage::Assemble, "assemble"),
    (Stage::Hash, "hash"),
    (Stage::Write, "write"),
];

/// Time spent. The clock always runs for exactly one stage.
#[derive(Clone, Debug)]
pub struct Stages {
    spent: [Duration; STAGES.len()],
    now: Stage,
    since: Instant,
}

impl Stages {
    /// Start the clock in [`Stage::Open`].
    pub fn start() -> Stages {
        Stages { spent: Default::default(), now: Stage::Open, since: Instant::now() }
    }

    /// Go on to another stage; gives the one left.
    pub fn enter(&mut self, stage: Stage) -> Stage {
        let now = Instant::now();
        self.spent[self.now as usize] += now - self.since;
        self.since = now;
        std::mem::replace(&mut self.now, stage)
    }

    /// Leave out the time since the last change of stage (a thread waiting for work).
    pub fn skip(&mut self) {
        self.since = Instant::now();
    }

    /// Seconds spent in a stage until its last change.
    pub fn seconds(&self, stage: Stage) -> f64 {
        self.spent[stage as usize].as_secs_f64()
    }

    /// Add what another thread spent.
    pub fn add(&mut self, other: &Stages) {
        for (mine, theirs) in self.spent.iter_mut().zip(&other.spent) {
            *mine += *theirs;
        }
    }
}
