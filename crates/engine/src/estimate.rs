//! What a batch will cost, from headers and cached layouts alone: no pixel is read.

mod reads;
mod store;
mod unit;

use crate::batch::{Unit, divide, workers};
use crate::error::EngineError;
use crate::job::Job;
use crate::worker_context::Cancel;
use serde::Serialize;
use std::collections::BTreeMap;
use store::StoreUnits;
use swathe_plan::{Compute, Load, Plan};
use swathe_store_api::Traffic;

/// Expected costs of the part of a batch that one storage serves.
#[derive(Clone, Debug, Serialize)]
pub struct Estimate {
    /// Key of the storage.
    pub root: String,
    /// Whether its costs were measured.
    pub is_measured: bool,
    /// Objects.
    pub objects: usize,
    /// Targets.
    pub targets: usize,
    /// Objects whose headers were read because the index lacked them.
    pub headers_read: usize,
    /// Objects looked into; the others are taken to be like them.
    pub looked_into: usize,
    /// Objects of these that cannot be read.
    pub unreadable: usize,
    /// Why; of the first hundred.
    pub faults: Vec<String>,
    /// Expected traffic of the storage.
    pub traffic: Traffic,
    /// Expected seconds.
    pub median_s: f64,
    /// Expected seconds of a batch that reads from the sources that the estimate opened.
    pub when_open_s: f64,
    /// Seconds of computing among them, over all threads.
    pub compute_s: f64,
    /// Seconds of writing results among those.
    pub write_s: f64,
    /// How some objects will be read.
    pub explained: Vec<ReadExplanation>,
    /// Targets by their numbers, each with its part of `median_s`.
    #[serde(skip)]
    pub target_s: Vec<(usize, f32)>,
}

/// How one object will be read.
#[derive(Clone, Debug, Serialize)]
pub struct ReadExplanation {
    /// The object.
    pub url: String,
    /// Targets.
    pub targets: usize,
    /// How: plain ranges, tiles, from seek points, or decompressed once.
    pub method: &'static str,
    /// Objects that are read at the same time: each plan is with its part of the storage.
    pub at_once: usize,
    /// The objective of the plans: `latency`, or `throughput` if others use the line or the server.
    pub objective: &'static str,
    /// The part of the line that others use, 0 to 1.
    pub line_busy: f64,
    /// The requests, one plan for each time what was read says what to read next.
    pub plans: Vec<Plan>,
    /// Bytes that are decompressed or decoded.
    pub unpacked_bytes: u64,
    /// Seconds of computing that this takes.
    pub unpack_s: f64,
    /// The plans that were not chosen.
    pub instead: Vec<Alternative>,
}

/// Another way to read an object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alternative {
    /// How: `each piece`, `whole object`, or `decompressed once`.
    pub how: &'static str,
    /// Its requests and bytes.
    pub load: Load,
    /// Seconds of reading, as those of a plan.
    pub read_s: f64,
    /// Seconds of unpacking.
    pub unpack_s: f64,
}

/// Estimate what a batch costs, storage by storage. Of each storage at most `most` units are looked
/// into, spread over all. Headers that the index lacks are read and cached. `machines`: the number
/// of machines like this one that share the work and the storages. `keeps`: the batch of this job
/// follows, and reads from the sources that were opened; they are not opened again.
///
/// # Errors
/// [`EngineError::Interrupted`]. An object that cannot be read is one of the faults.
pub fn estimate(
    job: &Job,
    compute: &Compute,
    most: usize,
    machines: usize,
    keeps: bool,
    cancel: &Cancel,
) -> Result<Vec<Estimate>, EngineError> {
    let units = divide(job);
    let mut by_root: BTreeMap<String, Vec<&Unit>> = BTreeMap::new();
    let roots: Vec<String> = job.files.iter().map(|file| job.stores.locate(file).0.key()).collect();
    for unit in &units {
        by_root.entry(roots[unit.file].clone()).or_default().push(unit);
    }
    let workers = |files: &[String], units: usize| {
        let workers = workers(job, files, units.div_ceil(machines.max(1)));
        workers.saturating_mul(machines).clamp(1, units.max(1))
    };
    let all_units = units.len();
    by_root
        .into_iter()
        .map(|(root, units)| {
            let workers = match job.replicas {
                // Each has threads of its own.
                Some(_) => workers(&job.files[units[0].file..=units[0].file], units.len()),
                None => workers(&job.files, all_units),
            };
            StoreUnits { job, compute, units, workers, machines, keeps }
                .estimate(root, most, cancel)
        })
        .collect()
}
