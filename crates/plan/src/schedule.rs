//! The time of a job: what computing costs on this host, and how parts of a job overlap.

use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What this host takes for its part of the work. Times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Compute {
    /// Starting and ending a job.
    pub job_s: f64,
    /// Opening an object that is at hand, and parsing its header.
    pub object_s: f64,
    /// Each request to a server,
    pub request_s: f64,
    /// and each byte of its answer.
    pub received_byte_s: f64,
    /// Each cut, however small: its header, its file, its row of the manifest.
    pub cut_s: f64,
    /// Each byte of pixels of a cutout.
    pub byte_s: f64,
    /// Each byte inflated from a gzip stream,
    pub gzip_byte_s: f64,
    /// and where seek points are made on the way.
    pub gzip_first_byte_s: f64,
    /// Starting to inflate at a seek point.
    pub restart_s: f64,
    /// Each byte decompressed from a bzip2 stream.
    pub bzip2_byte_s: f64,
    /// Each byte decoded from a tile, by its codec.
    pub tile_byte_s: BTreeMap<String, f64>,
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
        ];
        Compute {
            job_s: 1.5e-3,
            object_s: 15e-6,
            request_s: 200e-6,
            received_byte_s: 0.8e-9,
            cut_s: 65e-6,
            byte_s: 1.2e-9,
            gzip_byte_s: 2.1e-9,
            gzip_first_byte_s: 2.6e-9,
            restart_s: 35e-6,
            bzip2_byte_s: 45e-9,
            tile_byte_s: tiles.map(|(codec, seconds)| (codec.to_string(), seconds)).into(),
        }
    }
}

/// A part of a job that one thread does: first it waits for a storage, then it computes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Task {
    /// Seconds of waiting.
    pub wait_s: f64,
    /// Seconds of computing.
    pub compute_s: f64,
}

/// Seconds until the last of `tasks` is done, taken in order by `workers` of which `cores` can
/// compute at the same time.
pub fn finish_s(tasks: &[Task], workers: usize, cores: usize) -> f64 {
    let (workers, cores) = (workers.max(1), cores.max(1));
    // No two times of a heap are compared but as whole nanoseconds.
    let nanoseconds = |seconds: f64| (seconds * 1e9) as u64;
    let mut free: BinaryHeap<Reverse<u64>> = (0..workers).map(|_| Reverse(0)).collect();
    let mut idle: BinaryHeap<Reverse<u64>> = (0..cores).map(|_| Reverse(0)).collect();
    let mut last = 0;
    // Computing is given out in the order in which waiting ends.
    let mut ready: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
    let mut rest = tasks.iter();
    loop {
        let next_free = free.peek().map_or(u64::MAX, |Reverse(at)| *at);
        let next_ready = ready.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        if next_free <= next_ready
            && let Some(task) = rest.next()
        {
            let Some(Reverse(at)) = free.pop() else { break };
            ready.push(Reverse((at + nanoseconds(task.wait_s), nanoseconds(task.compute_s))));
        } else if let Some(Reverse((at, compute))) = ready.pop() {
            let core = idle.pop().map_or(0, |Reverse(core)| core);
            let done = at.max(core) + compute;
            idle.push(Reverse(done));
            free.push(Reverse(done));
            last = last.max(done);
        } else {
            break;
        }
    }
    last as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn task(wait_s: f64, compute_s: f64) -> Task {
        Task { wait_s, compute_s }
    }

    #[test]
    fn waiting_overlaps_and_computing_does_as_far_as_there_are_cores() {
        assert_eq!(finish_s(&[], 4, 2), 0.0);
        assert_eq!(finish_s(&[task(1.0, 0.0); 8], 4, 1), 2.0);
        assert_eq!(finish_s(&[task(0.0, 1.0); 8], 4, 2), 4.0);
        assert_eq!(finish_s(&[task(1.0, 1.0); 2], 2, 1), 3.0);
        assert_eq!(finish_s(&[task(1.0, 1.0); 2], 1, 1), 4.0);
        assert_eq!(finish_s(&[task(3.0, 0.0), task(1.0, 0.0), task(1.0, 0.0)], 2, 1), 3.0);
    }

    proptest! {
        #[test]
        fn between_the_bounds(
            parts in prop::collection::vec((0.0f64..2.0, 0.0f64..2.0), 1..40),
            workers in 1usize..9, cores in 1usize..5,
        ) {
            let tasks: Vec<Task> = parts.iter().map(|&(wait, compute)| task(wait, compute)).collect();
            let found = finish_s(&tasks, workers, cores);
            let wait: f64 = parts.iter().map(|part| part.0).sum();
            let compute: f64 = parts.iter().map(|part| part.1).sum();
            let longest = parts.iter().map(|part| part.0 + part.1).fold(0.0, f64::max);
            let least = longest.max(compute / cores as f64).max((wait + compute) / workers as f64);
            prop_assert!(found >= least - 1e-6, "{found} {least}");
            prop_assert!(found <= wait + compute + 1e-6);
        }
    }
}
