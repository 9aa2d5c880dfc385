//! The time of a job: what computing costs on this host, and how parts of a job overlap.

use crate::costs::{Costs, IDLE, Load};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::LazyLock;

/// Bytes of an answer on the line besides its body: 280 of nginx, some more of others.
const ANSWER_BYTES: u64 = 300;
/// This many rounds of requests of all readers begin and end about together. Later ones do not, as
/// some have less to read than others: the bytes one waits for then arrive while others read.
const ROUNDS_TOGETHER: u64 = 4;

/// The times of this host for its part of the work, in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Compute {
    /// Starting and ending a job.
    pub job_s: f64,
    /// Opening an object that is at hand, and parsing its header.
    pub object_s: f64,
    /// Each request to a server,
    pub request_s: f64,
    /// and each byte of its answer.
    pub received_byte_s: f64,
    /// Each cut, however small: its header, its file in a temporary folder, its row of the
    /// manifest.
    pub cut_s: f64,
    /// The same without a file, when results are dropped.
    pub null_cut_s: f64,
    /// Each byte of pixels of a cutout.
    pub byte_s: f64,
    /// The part of `cut_s` and `byte_s` that writes to the temporary folder.
    pub write: WriteCosts,
    /// What writing to the output of the job takes; as `write` if it is not known.
    pub output: Option<WriteCosts>,
    /// Each byte inflated from a gzip stream,
    pub gzip_byte_s: f64,
    /// and if seek points are made on the way.
    pub gzip_first_byte_s: f64,
    /// Starting to inflate at a seek point.
    pub restart_s: f64,
    /// Each byte decompressed from a bzip2 stream.
    pub bzip2_byte_s: f64,
    /// Each byte decoded from a tile or chunk, by its codec or filter.
    pub tile_byte_s: BTreeMap<String, f64>,
    /// Times of calls around the engine, by name; not used here.
    pub call: BTreeMap<String, f64>,
    /// Times of making results from cutouts, by format and then by name; not used here.
    pub formats: BTreeMap<String, BTreeMap<String, f64>>,
}

impl Default for Compute {
    /// A 2.5 GHz Xeon of 2019 (`docs/benchmarks.md`), for a host that was not measured.
    fn default() -> Compute {
        let tiles = [
            ("RICE_1", 3.6e-9),
            ("GZIP_1", 5.5e-9),
            ("GZIP_2", 5.0e-9),
            ("HCOMPRESS_1", 9e-9),
            ("PLIO_1", 1.5e-9),
            ("NOCOMPRESS", 0.2e-9),
            ("none", 0.1e-9),
            ("deflate", 3e-9),
            ("gzip", 3e-9),
            ("shuffle", 0.2e-9),
            ("fletcher32", 0.4e-9),
            ("crc32c", 0.2e-9),
            ("horizontal", 0.3e-9),
            ("floating", 0.5e-9),
            ("lzw", 8e-9),
            ("packbits", 0.2e-9),
            ("lzf", 3.3e-9),
            ("lz4", 0.5e-9),
            ("zstd", 1.8e-9),
            ("bzip2", 26e-9),
            ("bitshuffle", 2.2e-9),
            ("blosc", 1.5e-9),
            ("szip", 11e-9),
            ("scaleoffset", 4e-9),
            ("nbit", 4e-9),
        ];
        Compute {
            job_s: 1.5e-3,
            object_s: 15e-6,
            request_s: 200e-6,
            received_byte_s: 0.8e-9,
            cut_s: 65e-6,
            null_cut_s: 15e-6,
            byte_s: 1.2e-9,
            write: WriteCosts { result_s: 30e-6, byte_s: 0.5e-9 },
            output: None,
            gzip_byte_s: 2.1e-9,
            gzip_first_byte_s: 2.6e-9,
            restart_s: 35e-6,
            bzip2_byte_s: 45e-9,
            tile_byte_s: tiles.map(|(codec, seconds)| (codec.to_string(), seconds)).into(),
            call: BTreeMap::new(),
            formats: BTreeMap::new(),
        }
    }
}

/// Seconds of a thread to write results to one output.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WriteCosts {
    /// Each result, however small.
    pub result_s: f64,
    /// Each of its bytes.
    pub byte_s: f64,
}

impl WriteCosts {
    /// Seconds to write some results.
    pub fn seconds(&self, results: usize, bytes: usize) -> f64 {
        results as f64 * self.result_s + bytes as f64 * self.byte_s
    }
}

impl Compute {
    /// Seconds for each byte decoded by a codec, or by filters one after the other, such as
    /// `shuffle+deflate`. One that was not measured takes its usual time; one that is not known,
    /// that of gzip.
    pub fn decode_byte_s(&self, codec: &str) -> f64 {
        let usual = LazyLock::force(&USUAL);
        let byte_s = |name: &str| {
            let own = self.tile_byte_s.get(name).or_else(|| usual.tile_byte_s.get(name));
            own.copied().unwrap_or(self.gzip_byte_s)
        };
        codec.split('+').map(byte_s).sum()
    }

    /// Seconds to write results to the output of the job.
    pub fn write_s(&self, results: usize, bytes: usize) -> f64 {
        self.output.unwrap_or(self.write).seconds(results, bytes)
    }

    /// Seconds to cut results, which have `bytes` of pixels in all, and to write them to the
    /// output of the job.
    pub fn cut_s(&self, results: usize, bytes: usize) -> f64 {
        let here_s = results as f64 * self.cut_s + bytes as f64 * self.byte_s;
        // Writing was measured beside other work, so its part may seem to be all of it.
        let other_s = here_s - self.write.seconds(results, bytes);
        other_s.max(results as f64 * self.null_cut_s) + self.write_s(results, bytes)
    }
}

/// For what was not measured on a host.
static USUAL: LazyLock<Compute> = LazyLock::new(Compute::default);

/// A part of a job that one thread does: first it reads, step after step, then it computes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    /// One after the other.
    pub steps: Vec<Step>,
    /// Seconds of computing.
    pub compute_s: f64,
}

impl Task {
    /// Seconds that it takes if nothing else is done.
    pub fn alone_s(&self) -> f64 {
        self.steps.iter().map(|step| step.wait_s + step.alone_s).sum::<f64>() + self.compute_s
    }
}

/// A wait for a storage, and what it then sends over the line that all share.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Step {
    /// Seconds until something comes.
    pub wait_s: f64,
    /// Bytes that come.
    pub bytes: f64,
    /// Seconds that they take if nothing else is on the line.
    pub alone_s: f64,
}

impl Step {
    /// Another wait, for an answer that is next to nothing.
    pub fn asking(costs: &Costs) -> Step {
        Step { wait_s: costs.latency_s(), bytes: ANSWER_BYTES as f64, alone_s: 0.0 }
    }

    /// The step that reads a load on a number of streams.
    pub fn reading(costs: &Costs, load: Load, streams: u32) -> Vec<Step> {
        let streams = streams.max(1);
        let rounds = load.requests.div_ceil(u64::from(streams)).min(ROUNDS_TOGETHER);
        let waits = |round| costs.latency_s() * if round == 0 { 1.0 } else { IDLE };
        let waits_s: f64 = (0..rounds).map(waits).sum();
        let bytes = load.bytes + load.requests * ANSWER_BYTES;
        let part = |round| Step {
            wait_s: waits(round),
            bytes: bytes as f64 / rounds as f64,
            alone_s: (costs.seconds(load, streams) - waits_s).max(0.0) / rounds as f64,
        };
        (0..rounds).map(part).collect()
    }
}

/// Seconds that requests of several objects take at least, each answered after `latency_s`: they
/// may be more at a time than were measured to help, `helping`. The first rounds of those do not
/// count on that; later ones come while others wait, on all the streams in use.
pub fn paced_s(requests: u64, latency_s: f64, helping: u32, streams: u32) -> f64 {
    let helping = u64::from(helping.max(1));
    let first = requests.min(ROUNDS_TOGETHER * helping);
    let most = helping.max(u64::from(streams));
    latency_s * (first as f64 / helping as f64 + (requests - first) as f64 / most as f64)
}

/// Seconds until the last of `tasks` is done, taken in order by `workers` of which `cores` can
/// compute at the same time. Reads at the same time share the line evenly, which
/// carries `bytes_per_s`: it is idle while all of them wait.
pub fn finish_s(tasks: &[&Task], workers: usize, cores: usize, bytes_per_s: f64) -> f64 {
    let workers = workers.clamp(1, tasks.len().max(1));
    // No two times of a heap are compared but as whole nanoseconds.
    let nanoseconds = |seconds: f64| (seconds * 1e9) as u64;
    let mut events: BinaryHeap<Reverse<(u64, Event, usize)>> =
        (0..workers).map(|worker| Reverse((0, Event::Free, worker))).collect();
    let mut at_work: Vec<(&Task, usize)> = vec![(&NONE, 0); workers];
    let mut idle: BinaryHeap<Reverse<u64>> = (0..cores.max(1)).map(|_| Reverse(0)).collect();
    let mut line = SharedLine::new(bytes_per_s);
    let mut rest = tasks.iter();
    let mut last = 0;
    loop {
        let next = events.peek().map_or(u64::MAX, |Reverse((at, ..))| *at);
        if let Some((at, worker, until)) = line.take_reader(next) {
            events.push(Reverse((at.max(until), Event::Ready, worker)));
            continue;
        }
        let Some(Reverse((at, event, worker))) = events.pop() else { break };
        let (task, step_index) = &mut at_work[worker];
        match event {
            Event::Free => {
                last = last.max(at);
                if let Some(next) = rest.next() {
                    (*task, *step_index) = (next, 0);
                    events.push(Reverse((at, Event::Ready, worker)));
                }
            }
            Event::Ready => match task.steps.get(*step_index) {
                Some(step) => {
                    events.push(Reverse((at + nanoseconds(step.wait_s), Event::Comes, worker)));
                }
                None => {
                    // Computing is assigned in the order in which reading ends.
                    let core = idle.pop().map_or(0, |Reverse(core)| core);
                    let end = at.max(core) + nanoseconds(task.compute_s);
                    idle.push(Reverse(end));
                    events.push(Reverse((end, Event::Free, worker)));
                }
            },
            Event::Comes => {
                let Step { bytes, alone_s, .. } = task.steps[*step_index];
                *step_index += 1;
                line.join(at, bytes, worker, at + nanoseconds(alone_s));
            }
        }
    }
    last as f64 / 1e9
}

/// The task of a worker without one.
static NONE: Task = Task { steps: Vec::new(), compute_s: 0.0 };

/// An event of a worker.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// It takes the next task.
    Free,
    /// A step, or all that was before the first, is done.
    Ready,
    /// The bytes of a step begin to come.
    Comes,
}

/// A line that its readers share evenly.
struct SharedLine {
    bytes_per_s: f64,
    at: u64,
    /// Bytes that each reader would have had, if it had been there from the beginning.
    bytes_each: f64,
    /// Those who read: how many bytes each will have had then, in whole millibytes; which worker
    /// it is, and when it ends at the earliest.
    readers: BinaryHeap<Reverse<(u64, usize, u64)>>,
}

impl SharedLine {
    fn new(bytes_per_s: f64) -> SharedLine {
        SharedLine { bytes_per_s, at: 0, bytes_each: 0.0, readers: BinaryHeap::new() }
    }

    fn go_to(&mut self, at: u64) {
        if !self.readers.is_empty() {
            let seconds = (at - self.at) as f64 / 1e9;
            self.bytes_each += seconds * self.bytes_per_s / self.readers.len() as f64;
        }
        self.at = at;
    }

    fn join(&mut self, at: u64, bytes: f64, worker: usize, until: u64) {
        self.go_to(at);
        self.readers.push(Reverse((((self.bytes_each + bytes) * 1e3) as u64, worker, until)));
    }

    /// The reader that has all its bytes first, if that is no later than `limit`: when, which, and
    /// when that one ends at the earliest.
    fn take_reader(&mut self, limit: u64) -> Option<(u64, usize, u64)> {
        let &Reverse((had, worker, until)) = self.readers.peek()?;
        let rest_bytes = (had as f64 / 1e3 - self.bytes_each).max(0.0);
        let seconds = rest_bytes * self.readers.len() as f64 / self.bytes_per_s;
        let at = self.at.saturating_add((seconds * 1e9) as u64);
        if at > limit {
            return None;
        }
        self.go_to(at);
        self.readers.pop();
        Some((at, worker, until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn filters_take_the_sum_of_their_times() {
        let tile_byte_s = BTreeMap::from([("deflate".to_string(), 1e-9)]);
        let compute = Compute { tile_byte_s, ..Compute::default() };
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-15, "{a} {b}");
        close(compute.decode_byte_s("deflate"), 1e-9);
        let shuffle_s = Compute::default().tile_byte_s["shuffle"];
        close(compute.decode_byte_s("shuffle+deflate"), 1e-9 + shuffle_s);
        close(compute.decode_byte_s("a new filter"), compute.gzip_byte_s);
    }

    #[test]
    fn costs_that_a_newer_version_stored_are_read() {
        let compute: Compute = serde_json::from_str(
            r#"{"cut_s": 2.0, "new": 1, "write": {"result_s": 1.0, "byte_s": 0.5, "new": 1}}"#,
        )
        .unwrap();
        let write = WriteCosts { result_s: 1.0, byte_s: 0.5 };
        assert_eq!(compute, Compute { cut_s: 2.0, write, ..Compute::default() });
        let costs = r#"{"connect_s": 1, "open_s": 1, "request": [[1, 1], [2, 2]], "new": [],
            "total_bytes_per_s": 1, "requests_per_s": 1, "streams": 1}"#;
        assert_eq!(serde_json::from_str::<Costs>(costs).unwrap().streams, 1);
        serde_json::from_str::<Costs>(r#"{"connect_s": 1}"#).unwrap_err();
    }

    fn task(wait_s: f64, compute_s: f64) -> Task {
        Task { steps: vec![Step { wait_s, ..Step::default() }], compute_s }
    }

    fn finish(tasks: &[Task], workers: usize, cores: usize, bytes_per_s: f64) -> f64 {
        finish_s(&tasks.iter().collect::<Vec<_>>(), workers, cores, bytes_per_s)
    }

    #[test]
    fn waiting_overlaps_and_computing_does_as_far_as_there_are_cores() {
        let finish = |tasks: &[Task], workers, cores| finish(tasks, workers, cores, 1.0);
        assert_eq!(finish(&[], 4, 2), 0.0);
        assert_eq!(finish(&vec![task(1.0, 0.0); 8], 4, 1), 2.0);
        assert_eq!(finish(&vec![task(0.0, 1.0); 8], 4, 2), 4.0);
        assert_eq!(finish(&vec![task(1.0, 1.0); 2], 2, 1), 3.0);
        assert_eq!(finish(&vec![task(1.0, 1.0); 2], 1, 1), 4.0);
        assert_eq!(finish(&[task(3.0, 0.0), task(1.0, 0.0), task(1.0, 0.0)], 2, 1), 3.0);
    }

    #[test]
    fn a_line_is_shared_by_those_who_read_and_idle_while_all_wait() {
        let step = |bytes, alone_s| Step { wait_s: 1.0, bytes, alone_s };
        let reads = |steps: &[Step]| Task { steps: steps.to_vec(), compute_s: 0.0 };
        let close = |tasks: &[Task], workers, seconds: f64| {
            let total = finish(tasks, workers, 1, 10.0);
            assert!((total - seconds).abs() < 1e-6, "{total} {seconds}");
        };
        let (ten, slow) = (step(10.0, 1.0), step(10.0, 4.0));
        close(&[reads(&[ten])], 1, 2.0);
        close(&vec![reads(&[ten]); 2], 2, 3.0);
        // Nothing comes for either second in which both wait.
        close(&vec![reads(&[ten, ten]); 2], 2, 6.0);
        // One waits while the other reads.
        close(&[reads(&[ten]), reads(&[Step { wait_s: 2.0, ..ten }])], 2, 3.0);
        close(&[reads(&[ten]), reads(&[step(20.0, 2.0)])], 2, 4.0);
        // A read that is slow by itself shares less than it might.
        close(&vec![reads(&[slow]); 2], 2, 5.0);
        close(&vec![reads(&[slow]); 2], 1, 10.0);
    }

    #[test]
    fn a_read_alone_takes_what_its_costs_say() {
        let costs = Costs { total_bytes_per_s: 1e7, streams: 4, ..Costs::remote() };
        for (requests, streams, rounds) in [(1, 4, 1), (4, 4, 1), (9, 4, 3), (100, 4, 4), (3, 0, 3)]
        {
            let bytes = 50_000 * requests;
            let load =
                Load { requests, ranges: requests, bytes, largest: 50_000, multiplexed: false };
            let steps = Step::reading(&costs, load, streams);
            assert_eq!(steps.len(), rounds);
            let bytes: f64 = steps.iter().map(|step| step.bytes).sum();
            assert!((bytes - (50_300 * requests) as f64).abs() < 1e-3, "{bytes}");
            let task = Task { steps, compute_s: 0.5 };
            let (total, alone_s) =
                (finish(&[task], 1, 1, 1e9), costs.seconds(load, streams.max(1)));
            assert!((total - 0.5 - alone_s).abs() < 1e-6, "{total} {alone_s}");
        }
        assert_eq!(Step::reading(&costs, Load::default(), 4), []);
    }

    #[test]
    fn later_rounds_are_paced_by_the_streams_in_use() {
        let close = |total: f64, seconds: f64| assert!((total - seconds).abs() < 1e-12, "{total}");
        close(paced_s(0, 0.02, 64, 140), 0.0);
        close(paced_s(128, 0.02, 64, 140), 0.04);
        close(paced_s(256, 0.02, 64, 140), 0.08);
        close(paced_s(256 + 1400, 0.02, 64, 140), 0.08 + 0.2);
        // No fewer than were measured, and some at all.
        close(paced_s(256 + 640, 0.02, 64, 10), 0.08 + 0.2);
        close(paced_s(3, 0.02, 0, 0), 0.06);
    }

    proptest! {
        #[test]
        fn between_the_bounds(
            parts in prop::collection::vec(
                (prop::collection::vec((0.0f64..2.0, 0.0f64..20.0, 1.0f64..3.0), 0..3), 0.0f64..2.0),
                1..40,
            ),
            workers in 1usize..9, cores in 1usize..5,
        ) {
            let rate = 10.0;
            let step = |&(wait_s, bytes, slower): &(f64, f64, f64)| {
                Step { wait_s, bytes, alone_s: slower * bytes / rate }
            };
            let tasks: Vec<Task> = parts
                .iter()
                .map(|(steps, compute_s)| {
                    Task { steps: steps.iter().map(step).collect(), compute_s: *compute_s }
                })
                .collect();
            let total = finish(&tasks, workers, cores, rate);
            let bytes: f64 = tasks.iter().flat_map(|task| &task.steps).map(|step| step.bytes).sum();
            let compute: f64 = tasks.iter().map(|task| task.compute_s).sum();
            let longest = tasks.iter().map(Task::alone_s).fold(0.0, f64::max);
            let all: f64 = tasks.iter().map(Task::alone_s).sum();
            let least =
                longest.max(compute / cores as f64).max(all / workers as f64).max(bytes / rate);
            prop_assert!(total >= least - 1e-5, "{total} {least}");
            prop_assert!(total <= all + 1e-5, "{total} {all}");
        }
    }
}
