//! What one unit costs: its object is opened, and its reads are planned.

use super::ReadExplanation;
use super::reads::{Reads, reads};
use crate::batch::{Unit, place};
use crate::cutout::PlacedRegion;
use crate::error::EngineError;
use crate::job::{Job, OutputKind};
use crate::object::Object;
use crate::requests::own_costs;
use crate::worker_context::Cancel;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use swathe_plan::{Compute, Connections, Costs, Load, Plan, Sharing, Step, Task};
use swathe_store_api::Traffic;
use swathe_trace::Scope;

/// Objects looked into at the same time.
const LOOKERS: usize = 16;

/// The estimate of one unit.
#[derive(Clone, Debug, Default)]
pub(super) struct UnitEstimate {
    pub task: Task,
    /// The same if the batch reads from the source that was opened for the estimate.
    pub task_when_open: Task,
    /// Seconds to write the results, a part of the task.
    pub write_s: f64,
    /// Requests in flight.
    pub streams: u32,
    pub traffic: Traffic,
    /// Ranges of requests after the first of each.
    pub further_ranges: u64,
    /// Requests that share a connection.
    pub multiplexed: u64,
    pub has_read_header: bool,
    pub explanation: Option<ReadExplanation>,
    pub fault: Option<String>,
}

/// Estimates units of one storage.
pub(super) struct UnitEstimator<'a> {
    pub job: &'a Job,
    pub compute: &'a Compute,
    /// Costs of the storage.
    pub costs: &'a Costs,
    /// Threads that read from it.
    pub workers: usize,
    /// Whether the batch follows, and reads from the sources that are opened.
    pub keeps: bool,
    pub cancel: &'a Cancel,
}

impl UnitEstimator<'_> {
    /// Estimate each of some units, several at the same time. `open_streams`: connections that are
    /// open by then.
    pub fn estimate_all(&self, units: &[&Unit], open_streams: u32) -> Vec<UnitEstimate> {
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
                        let estimate = self.estimate(unit, open_streams);
                        estimates.lock().unwrap_or_else(PoisonError::into_inner)[at] = estimate;
                    }
                });
            }
        });
        estimates.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Estimate one unit. An object that cannot be read is a fault in it.
    fn estimate(&self, unit: &Unit, open_streams: u32) -> UnitEstimate {
        let UnitEstimator { job, compute, costs, workers, keeps, cancel } = *self;
        let waits = job.stores.server_of(&job.files[unit.file]).is_some();
        // That all threads share the line is seen to when their parts are put together.
        let total_bytes_per_s = costs.total_bytes_per_s;
        let alone = Costs { total_bytes_per_s, ..costs.share(workers as u32) };
        let (opening, opening_steps) =
            if waits { self.opening(&alone) } else { Default::default() };
        let failure = |error: EngineError| UnitEstimate {
            task: Task { steps: opening_steps.clone(), compute_s: compute.object_s },
            streams: 1,
            traffic: opening,
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
        let connections = self.connections(&object, open_streams);
        let sharing = Sharing { parts: workers as u32, objective: job.objective };
        let others = object.source().others();
        let shared_costs = costs.share_with(sharing, others);
        let is_busy = !shared_costs.busy.is_idle();
        let mut reads =
            reads(&object, &template, &regions, &shared_costs, connections, opened_bytes, compute);
        if is_busy && waits {
            let own = own_costs(costs, sharing, others);
            reads
                .plans
                .iter_mut()
                .for_each(|plan| plan.read_s = plan.seconds_at(&own, connections));
        }

        let mut estimate = UnitEstimate { has_read_header, ..UnitEstimate::default() };
        let pixel_bytes = regions.iter().map(|region| region.bytes).sum();
        if job.kind != OutputKind::Null {
            estimate.write_s = compute.write_s(regions.len(), pixel_bytes);
        }
        estimate.task.compute_s = self.cut_s(regions.len(), pixel_bytes) + reads.unpack_s;
        if waits && is_asked_anew {
            estimate.traffic.add(opening);
            estimate.streams = 1;
        }
        for plan in reads.plans.iter().filter(|plan| plan.load.requests > 0) {
            let dates = object.source().questions(plan.load.requests, plan.streams);
            estimate.add_plan(plan, &alone, dates, waits);
        }
        if waits {
            estimate.task.compute_s += estimate.traffic.requests as f64 * compute.request_s
                + estimate.traffic.bytes as f64 * compute.received_byte_s;
        }
        estimate.task_when_open = estimate.task.clone();
        if waits && is_asked_anew {
            estimate.task.steps.splice(0..0, opening_steps);
            if keeps {
                job.open_sources.put(&job.files[unit.file], object.shared_source());
            }
        }
        let Reads { method, plans, unpacked_bytes, unpack_s, instead } = reads;
        estimate.explanation = Some(ReadExplanation {
            url: object.url().to_string(),
            targets: unit.targets.len(),
            method,
            at_once: if waits { workers } else { 1 },
            objective: if is_busy { "throughput" } else { "latency" },
            line_busy: shared_costs.busy.line,
            plans,
            unpacked_bytes,
            unpack_s,
            instead,
        });
        estimate
    }

    /// Traffic and steps of the request that opens an object.
    fn opening(&self, alone: &Costs) -> (Traffic, Vec<Step>) {
        let bytes = self.costs.first_bytes();
        let mut steps = vec![Step { wait_s: self.costs.open_s, ..Step::default() }];
        steps.extend(Step::reading(alone, Load::single(bytes), 1));
        (Traffic { bytes, requests: 1, ..Traffic::default() }, steps)
    }

    /// The connections of one thread: at least the one that the object was, or will be, opened on.
    fn connections(&self, object: &Object, open_streams: u32) -> Connections {
        let open = object.connections();
        let streams = open.streams.max(open_streams);
        let mut part = Connections { streams, ..open }.part(self.workers as u32);
        part.streams = part.streams.max(1);
        part
    }

    /// Seconds of computing for one object and its cutouts, without unpacking.
    fn cut_s(&self, results: usize, pixel_bytes: usize) -> f64 {
        let compute = self.compute;
        let cut_s = if self.job.kind == OutputKind::Null {
            results as f64 * compute.null_cut_s + pixel_bytes as f64 * compute.byte_s
        } else {
            compute.cut_s(results, pixel_bytes)
        };
        compute.object_s + cut_s
    }
}

impl UnitEstimate {
    /// Add the reads of a plan. `dates`: requests for the date of the object. `waits`: it is read
    /// from a server.
    fn add_plan(&mut self, plan: &Plan, alone: &Costs, dates: u64, waits: bool) {
        let Load { requests, ranges, bytes, multiplexed, .. } = plan.load;
        self.further_ranges += ranges - requests;
        self.traffic.add(Traffic { bytes, requests: requests + dates, ..Traffic::default() });
        if !waits {
            // Copied from the page cache by the thread itself.
            self.task.compute_s += alone.seconds(plan.load, plan.streams);
            return;
        }
        self.task.steps.extend(Step::reading(alone, plan.load, plan.streams));
        // For the last of the dates; the others are requested beside reading.
        self.task.steps.extend((dates > 0).then(|| Step::asking(alone)));
        if multiplexed {
            self.multiplexed += requests;
        } else {
            self.streams = self.streams.max(plan.streams);
        }
    }
}
