//! What the units of one storage cost together.

use super::Estimate;
use super::unit::{UnitEstimate, UnitEstimator};
use crate::batch::Unit;
use crate::error::EngineError;
use crate::job::Job;
use crate::worker_context::Cancel;
use swathe_plan::{Compute, Costs, Load, Task, finish_s, paced_s};
use swathe_store_api::Traffic;

/// At most this many errors are reported for each storage.
const MOST_FAULTS: usize = 100;

/// The units of a batch that one storage serves.
pub(super) struct StoreUnits<'a> {
    pub job: &'a Job,
    pub compute: &'a Compute,
    /// At least one.
    pub units: Vec<&'a Unit>,
    /// Threads, of all machines.
    pub workers: usize,
    pub machines: usize,
    /// Whether the batch follows, and reads from the sources that are opened.
    pub keeps: bool,
}

impl StoreUnits<'_> {
    fn file(&self) -> &String {
        &self.job.files[self.units[0].file]
    }

    /// Estimate what they cost; at most `most` of them are looked into.
    pub fn estimate(
        &self,
        root: String,
        most: usize,
        cancel: &Cancel,
    ) -> Result<Estimate, EngineError> {
        let units = &self.units;
        let (store, _) = self.job.stores.locate(self.file());
        let settings = store.settings();
        let numbers = spread(units.len(), most);
        let estimates = self.sample(&settings.costs, &numbers, cancel)?;
        let all: Vec<&UnitEstimate> = (0..units.len())
            .map(|index| &estimates[index * estimates.len() / units.len()])
            .collect();
        let tasks: Vec<&Task> = all.iter().map(|estimate| &estimate.task).collect();
        let mut traffic = Traffic::default();
        all.iter().for_each(|estimate| traffic.add(estimate.traffic));
        let mut files: Vec<usize> = units.iter().map(|unit| unit.file).collect();
        files.sort_unstable();
        files.dedup();
        let median_s = self.median_s(&settings.costs, &all, &tasks, traffic);
        let is_opening = |estimate: &UnitEstimate| {
            estimate.task.steps.len() > estimate.task_when_open.steps.len()
        };
        let when_open_s = if self.keeps && estimates.iter().any(is_opening) {
            let open_tasks: Vec<&Task> = (0..units.len())
                .map(|index| match numbers.binary_search(&index) {
                    Ok(_) => &all[index].task_when_open,
                    Err(_) => &all[index].task,
                })
                .collect();
            self.median_s(&settings.costs, &all, &open_tasks, traffic)
        } else {
            median_s
        };
        let mut faults: Vec<String> =
            estimates.iter().filter_map(|estimate| estimate.fault.clone()).collect();
        // HDUs of one object are units of their own.
        faults.dedup();
        Ok(Estimate {
            root,
            target_s: target_seconds(units, &tasks, median_s),
            is_measured: settings.is_measured,
            objects: files.len(),
            targets: units.iter().map(|unit| unit.targets.len()).sum(),
            headers_read: estimates.iter().filter(|estimate| estimate.has_read_header).count(),
            looked_into: estimates.len(),
            unreadable: faults.len(),
            faults: faults.into_iter().take(MOST_FAULTS).collect(),
            traffic,
            median_s,
            when_open_s,
            compute_s: tasks.iter().map(|task| task.compute_s).sum(),
            write_s: all.iter().map(|estimate| estimate.write_s).sum(),
            explained: estimates.into_iter().filter_map(|estimate| estimate.explanation).collect(),
        })
    }

    /// Look into the units of these numbers.
    fn sample(
        &self,
        costs: &Costs,
        numbers: &[usize],
        cancel: &Cancel,
    ) -> Result<Vec<UnitEstimate>, EngineError> {
        let split = numbers.partition_point(|&number| number < self.workers);
        let sample: Vec<&Unit> = numbers.iter().map(|&number| self.units[number]).collect();
        let (first, later) = sample.split_at(split);
        let StoreUnits { job, compute, workers, keeps, .. } = *self;
        let estimator = UnitEstimator { job, compute, costs, workers, keeps, cancel };
        let mut estimates = estimator.estimate_all(first, 0);
        // Those that are read later find the connections open that the first ones opened.
        let streams: u32 = estimates.iter().map(|estimate| estimate.streams).sum();
        let streams = streams.saturating_mul(workers as u32) / first.len().max(1) as u32;
        estimates.extend(estimator.estimate_all(later, streams.min(costs.streams)));
        cancel.check()?;
        Ok(estimates)
    }

    /// Seconds for all units. `tasks` are those of the estimates, `traffic` is their sum.
    fn median_s(
        &self,
        costs: &Costs,
        estimates: &[&UnitEstimate],
        tasks: &[&Task],
        traffic: Traffic,
    ) -> f64 {
        let waits = tasks.iter().any(|task| !task.steps.is_empty());
        // Those that are lacking when the first objects are read are opened together.
        let open = self.job.stores.connections(self.file());
        let streams: u32 =
            estimates.iter().take(self.workers).map(|estimate| estimate.streams).sum();
        let multiplexed: u64 = estimates.iter().map(|estimate| estimate.multiplexed).sum();
        let is_lacking =
            open.streams < streams.min(costs.streams) || (multiplexed > 0 && !open.multiplexed);
        let connect_s = if waits && is_lacking { costs.connect_s } else { 0.0 };
        let cores = self.job.threads.saturating_mul(self.machines);
        let finish_s = finish_s(tasks, self.workers, cores, costs.total_bytes_per_s);
        let latency_s = if waits { costs.latency_s() } else { 0.0 };
        let helping = costs.streams.saturating_mul(self.machines.max(1) as u32);
        let paced_s = paced_s(traffic.requests - multiplexed, latency_s, helping, streams);
        let served_s = if self.job.stores.is_served_here(self.file()) {
            let further = estimates.iter().map(|estimate| estimate.further_ranges).sum();
            let moved_s = moved_s(costs, traffic, multiplexed, further);
            // The server computes too, from the first request on: its time for a request, or a
            // byte, was measured together with ours.
            let (requests, bytes) = (traffic.requests as f64, traffic.bytes as f64);
            let ours_s = requests * self.compute.request_s + bytes * self.compute.received_byte_s;
            let compute_s: f64 = tasks.iter().map(|task| task.compute_s).sum();
            latency_s + moved_s + (compute_s - ours_s).max(0.0) / cores as f64
        } else {
            0.0
        };
        self.compute.job_s + connect_s + finish_s.max(served_s).max(paced_s)
    }
}

/// Seconds until a server on this machine has sent all. `multiplexed` of the requests share a
/// connection; `further` ranges come after the first of their request.
fn moved_s(costs: &Costs, traffic: Traffic, multiplexed: u64, further: u64) -> f64 {
    let load = |requests, ranges, bytes, multiplexed| Load {
        requests,
        ranges,
        bytes,
        largest: 0,
        multiplexed,
    };
    let single_requests = traffic.requests - multiplexed;
    let single = load(single_requests, single_requests + further, traffic.bytes, false);
    let seconds = costs.served_s(single) + costs.served_s(load(multiplexed, multiplexed, 0, true));
    seconds.max(traffic.bytes as f64 / costs.total_bytes_per_s)
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
