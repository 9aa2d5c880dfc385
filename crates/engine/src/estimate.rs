//! What a batch will cost, from headers and cached layouts alone: no pixel is read.

mod reads;

use crate::batch::{Unit, divide, place, workers};
use crate::cutout::PlacedRegion;
use crate::error::EngineError;
use crate::job::{Job, OutputKind};
use crate::object::Object;
use crate::requests::own_costs;
use crate::worker_context::Cancel;
use reads::{Reads, reads};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use swathe_plan::{
    Compute, Connections, Costs, Load, Plan, Sharing, Step, Task, finish_s, paced_s,
};
use swathe_store_api::Traffic;
use swathe_trace::Scope;

/// Objects looked into at the same time.
const LOOKERS: usize = 16;
/// At most this many errors are reported for each storage.
const MOST_FAULTS: usize = 100;

/// What the part of a batch that one storage serves is expected to cost.
#[derive(Clone, Debug, Serialize)]
pub struct Estimate {
    /// Of the storage, as its key has it.
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
    /// Of these, what computing takes, over all threads.
    pub compute_s: f64,
    /// Of that, what writing the results takes.
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
    /// What the plans keep small: `latency`, or `throughput` if others use the line or the server.
    pub objective: &'static str,
    /// The part of the line that others use, 0 to 1.
    pub line_busy: f64,
    /// The requests, one plan for each time what was read says what to read next.
    pub plans: Vec<Plan>,
    /// Bytes that are decompressed or decoded.
    pub unpacked: u64,
    /// Seconds of computing that this takes.
    pub unpack_s: f64,
    /// What was not chosen.
    pub instead: Vec<Alternative>,
}

/// Another way to read an object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alternative {
    /// How: `each piece`, `whole object`, or `decompressed once`.
    pub how: &'static str,
    /// What it would ask for.
    pub load: Load,
    /// Seconds of reading, as those of a plan.
    pub read_s: f64,
    /// Seconds of unpacking.
    pub unpack_s: f64,
}

/// The estimate of one unit.
#[derive(Clone, Debug, Default)]
struct UnitEstimate {
    task: Task,
    /// Seconds to write the results, a part of the task.
    write_s: f64,
    /// Requests in flight.
    streams: u32,
    traffic: Traffic,
    /// Ranges of requests after the first of each.
    further_ranges: u64,
    /// Requests that share a connection.
    multiplexed: u64,
    has_read_header: bool,
    explained: Option<ReadExplanation>,
    fault: Option<String>,
}

/// Expect what a batch costs, storage by storage. Of each storage at most `most` units are looked
/// into, spread over all. Headers the index lacks are read, and cached. `machines`: how many like
/// this one share the work, and the storages.
///
/// # Errors
/// Only if nothing can be expected at all; an object that cannot be read is expected to fail.
pub fn estimate(
    job: &Job,
    compute: &Compute,
    most: usize,
    machines: usize,
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
    let cores = job.threads.saturating_mul(machines);
    let all_units = units.len();
    by_root
        .into_iter()
        .map(|(root, units)| {
            let (store, _) = job.stores.locate(&job.files[units[0].file]);
            let workers = match job.replicas {
                // Each has threads of its own.
                Some(_) => workers(&job.files[units[0].file..=units[0].file], units.len()),
                None => workers(&job.files, all_units),
            };
            let looked_into = spread(units.len(), most);
            let costs = &store.settings().costs;
            let estimator = |open_streams| {
                let units = &units;
                move |index: usize| {
                    expect(job, units[index], compute, costs, workers, open_streams, cancel)
                }
            };
            // Those that are read later find the connections open that the first ones opened.
            let (first, later) =
                looked_into.split_at(looked_into.partition_point(|&unit| unit < workers));
            let mut estimates = estimate_units(first, estimator(0));
            let streams: u32 = estimates.iter().map(|estimate| estimate.streams).sum();
            let streams = streams.saturating_mul(workers as u32) / first.len().max(1) as u32;
            estimates.extend(estimate_units(later, estimator(streams.min(costs.streams))));
            cancel.check()?;
            let all: Vec<&UnitEstimate> = (0..units.len())
                .map(|index| &estimates[index * estimates.len() / units.len()])
                .collect();
            let tasks: Vec<&Task> = all.iter().map(|expected| &expected.task).collect();
            let mut traffic = Traffic::default();
            all.iter().for_each(|expected| traffic.add(expected.traffic));
            let mut files: Vec<usize> = units.iter().map(|unit| unit.file).collect();
            files.sort_unstable();
            files.dedup();
            let waits = tasks.iter().any(|task| !task.steps.is_empty());
            // Those that are lacking when the first objects are read are opened together.
            let open = job.stores.connections(&job.files[units[0].file]);
            let used: u32 = all.iter().take(workers).map(|expected| expected.streams).sum();
            let multiplexed: u64 = all.iter().map(|expected| expected.multiplexed).sum();
            let most_streams = used.min(store.settings().costs.streams);
            let is_lacking = open.streams < most_streams || (multiplexed > 0 && !open.multiplexed);
            let connect_s =
                if waits && is_lacking { store.settings().costs.connect_s } else { 0.0 };
            let finish_s =
                finish_s(&tasks, workers, cores, store.settings().costs.total_bytes_per_s);
            let compute_s: f64 = tasks.iter().map(|task| task.compute_s).sum();
            let latency_s = if waits { store.settings().costs.latency_s() } else { 0.0 };
            let helping = store.settings().costs.streams.saturating_mul(machines.max(1) as u32);
            let paced_s = paced_s(traffic.requests - multiplexed, latency_s, helping, used);
            let served_s = if job.stores.is_served_here(&job.files[units[0].file]) {
                // The server computes too, from the first request on: its time for a request, or a
                // byte, was measured together with ours.
                let (requests, bytes) = (traffic.requests as f64, traffic.bytes as f64);
                let further: u64 = all.iter().map(|expected| expected.further_ranges).sum();
                let (single_requests, bytes_all) = (traffic.requests - multiplexed, traffic.bytes);
                let load = |requests, ranges, bytes, multiplexed| Load {
                    requests,
                    ranges,
                    bytes,
                    largest: 0,
                    multiplexed,
                };
                let costs = &store.settings().costs;
                let moved_s = costs.served_s(load(
                    single_requests,
                    single_requests + further,
                    bytes_all,
                    false,
                )) + costs.served_s(load(multiplexed, multiplexed, 0, true));
                let moved_s = moved_s.max(bytes / costs.total_bytes_per_s);
                let ours_s = requests * compute.request_s + bytes * compute.received_byte_s;
                latency_s + moved_s + (compute_s - ours_s).max(0.0) / cores as f64
            } else {
                0.0
            };
            let mut faults: Vec<String> =
                estimates.iter().filter_map(|expected| expected.fault.clone()).collect();
            // HDUs of one object are units of their own.
            faults.dedup();
            let median_s = compute.job_s + connect_s + finish_s.max(served_s).max(paced_s);
            let target_s = target_seconds(&units, &tasks, median_s);
            Ok(Estimate {
                root,
                target_s,
                is_measured: store.settings().is_measured,
                objects: files.len(),
                targets: units.iter().map(|unit| unit.targets.len()).sum(),
                headers_read: estimates.iter().filter(|expected| expected.has_read_header).count(),
                looked_into: estimates.len(),
                unreadable: faults.len(),
                faults: faults.into_iter().take(MOST_FAULTS).collect(),
                traffic,
                median_s,
                compute_s,
                write_s: all.iter().map(|expected| expected.write_s).sum(),
                explained: estimates
                    .into_iter()
                    .filter_map(|expected| expected.explained)
                    .collect(),
            })
        })
        .collect()
}

/// Divide seconds over the targets of some units, as their tasks take them when alone.
fn target_seconds(units: &[&Unit], tasks: &[&Task], seconds: f64) -> Vec<(usize, f32)> {
    let total: f64 = tasks.iter().map(|task| task.alone_s()).sum();
    let scale = if total > 0.0 { seconds / total } else { 0.0 };
    let each = |(unit, task): (&&Unit, &&Task)| {
        let each_s = scale * task.alone_s() / unit.targets.len().max(1) as f64;
        unit.targets.iter().map(move |&target| (target, each_s as f32)).collect::<Vec<_>>()
    };
    units.iter().zip(tasks).flat_map(each).collect()
}

/// At most `most` numbers below `count`, evenly spread.
fn spread(count: usize, most: usize) -> Vec<usize> {
    let samples = count.min(most.max(1));
    (0..samples).map(|index| index * count / samples).collect()
}

/// Estimate each of these units, several at the same time.
fn estimate_units(
    units: &[usize],
    expect: impl Fn(usize) -> UnitEstimate + Sync,
) -> Vec<UnitEstimate> {
    let next = AtomicUsize::new(0);
    let estimates: Mutex<Vec<UnitEstimate>> =
        Mutex::new(vec![UnitEstimate::default(); units.len()]);
    let trace_scope = Scope::current();
    std::thread::scope(|scope| {
        for _ in 0..LOOKERS.min(units.len()) {
            scope.spawn(|| {
                trace_scope.adopt();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&unit) = units.get(at) else { break };
                    let expected = expect(unit);
                    estimates.lock().unwrap_or_else(PoisonError::into_inner)[at] = expected;
                }
            });
        }
    });
    estimates.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Expect what a unit costs. `open_streams`: connections that are open by then.
fn expect(
    job: &Job,
    unit: &Unit,
    compute: &Compute,
    costs: &Costs,
    workers: usize,
    open_streams: u32,
    cancel: &Cancel,
) -> UnitEstimate {
    let targets = unit.targets.len();
    let waits = job.stores.server_of(&job.files[unit.file]).is_some();
    let share = costs.share(workers as u32);
    // That all threads share the line is seen to when their parts are put together.
    let alone = Costs { total_bytes_per_s: costs.total_bytes_per_s, ..share.clone() };
    let opening = if waits {
        let bytes = costs.first_bytes();
        let open = Step { wait_s: costs.open_s, ..Step::default() };
        let mut steps = vec![open];
        steps.extend(Step::reading(&alone, Load::single(bytes), 1));
        (Traffic { bytes, requests: 1, ..Traffic::default() }, steps)
    } else {
        (Traffic::default(), Vec::new())
    };
    let failure = |error: EngineError| UnitEstimate {
        task: Task { steps: opening.1.clone(), compute_s: compute.object_s },
        streams: 1,
        traffic: opening.0,
        fault: Some(error.to_string()),
        ..UnitEstimate::default()
    };
    cancel.enter();
    let object = match Object::open(&job.files[unit.file], &job.stores, false, cancel.clone()) {
        Ok(object) => object,
        Err(error) => return failure(error),
    };
    let has_read_header = !object.is_assumed() && waits;
    let template = match object.template(&job.selectors[unit.hdu]) {
        Ok(template) => template,
        Err(error) => return failure(error),
    };
    // Cached for the batch, which need not read it again. Of a stream the first read does that.
    let is_cached = object.kind().is_none() && object.settle(cancel).is_ok();
    let regions: Vec<PlacedRegion> =
        unit.targets.iter().filter_map(|&target| place(job, &template, target).ok()).collect();
    let is_asked_anew = waits && !(object.is_assumed() || is_cached && object.can_be_assumed());
    // They come with the answer to that.
    let opened_bytes = if is_asked_anew { object.source().first().len() as u64 } else { 0 };
    // At least the one that the object was, or will be, opened on.
    let connections = object.connections();
    let streams = connections.streams.max(open_streams);
    let mut connections = Connections { streams, ..connections }.part(workers as u32);
    connections.streams = connections.streams.max(1);
    let sharing = Sharing { parts: workers as u32, objective: job.objective };
    let others = object.source().others();
    let store_costs = costs;
    let costs = store_costs.share_with(sharing, others);
    let Reads { method, mut plans, unpacked, unpack_s, instead } =
        reads(&object, &template, &regions, &costs, connections, opened_bytes, compute);
    let is_busy = !costs.busy.is_idle();
    if is_busy && waits {
        let own = own_costs(store_costs, sharing, others);
        plans.iter_mut().for_each(|plan| plan.read_s = plan.seconds_at(&own, connections));
    }

    let mut expected = UnitEstimate { has_read_header, ..UnitEstimate::default() };
    let pixels: usize = regions.iter().map(|region| region.bytes).sum();
    let cut_s = if job.kind == OutputKind::Null {
        regions.len() as f64 * compute.null_cut_s + pixels as f64 * compute.byte_s
    } else {
        expected.write_s = compute.write_s(regions.len(), pixels);
        compute.cut_s(regions.len(), pixels)
    };
    expected.task.compute_s = compute.object_s + cut_s + unpack_s;
    if waits && is_asked_anew {
        expected.traffic.add(opening.0);
        expected.task.steps = opening.1;
        expected.streams = 1;
    }
    for plan in plans.iter().filter(|plan| plan.load.requests > 0) {
        let Load { requests, ranges, bytes, .. } = plan.load;
        expected.further_ranges += ranges - requests;
        let dates = object.source().questions(requests, plan.streams);
        let total = Traffic { bytes, requests: requests + dates, ..Traffic::default() };
        expected.traffic.add(total);
        if waits {
            expected.task.steps.extend(Step::reading(&alone, plan.load, plan.streams));
            // For the last of the dates; the others are requested beside reading.
            expected.task.steps.extend((dates > 0).then(|| Step::asking(&alone)));
            if plan.load.multiplexed {
                expected.multiplexed += requests;
            } else {
                expected.streams = expected.streams.max(plan.streams);
            }
        } else {
            // Copied from the page cache by the thread itself.
            expected.task.compute_s += alone.seconds(plan.load, plan.streams);
        }
    }
    if waits {
        expected.task.compute_s += expected.traffic.requests as f64 * compute.request_s
            + expected.traffic.bytes as f64 * compute.received_byte_s;
    }
    let url = object.url().to_string();
    let at_once = if waits { workers } else { 1 };
    expected.explained = Some(ReadExplanation {
        url,
        targets,
        method,
        at_once,
        objective: if is_busy { "throughput" } else { "latency" },
        line_busy: costs.busy.line,
        plans,
        unpacked,
        unpack_s,
        instead,
    });
    expected
}
