//! How much of a batch is done: its targets, weighed by the seconds that they are predicted to take.

use super::lock;
use super::units::Unit;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Parts of a batch that are counted.
const PARTS: f64 = 1e15;
/// The weight of the last unit in the usual seconds of one.
const NEWEST: f64 = 0.1;

/// The targets that are done, by weight, and the units in which threads are.
pub(super) struct Progress {
    /// Part of each target; empty if all are alike.
    parts: Vec<f64>,
    each: f64,
    finished_part: AtomicU64,
    threads: Vec<Mutex<Option<OpenUnit>>>,
    /// Seconds that a thread would take for the whole batch.
    pace_s: Mutex<f64>,
}

/// The unit of a thread.
struct OpenUnit {
    at: Instant,
    part: f64,
    finished_part: f64,
}

impl Progress {
    /// The progress of `targets` with these predicted seconds, one for each. All count alike if there
    /// are more or fewer of these.
    pub fn new(targets: usize, target_s: &[f32], threads: usize) -> Progress {
        let total_s: f64 = target_s.iter().map(|&seconds| f64::from(seconds)).sum();
        let is_predicted = target_s.len() == targets && total_s.is_finite() && total_s > 0.0;
        let part = |&seconds: &f32| f64::from(seconds) / total_s;
        Progress {
            parts: if is_predicted { target_s.iter().map(part).collect() } else { Vec::new() },
            each: 1.0 / targets.max(1) as f64,
            finished_part: AtomicU64::new(0),
            threads: (0..threads).map(|_| Mutex::default()).collect(),
            pace_s: Mutex::new(if is_predicted { total_s * threads as f64 } else { f64::INFINITY }),
        }
    }

    /// The part of a target.
    fn part(&self, target: usize) -> f64 {
        self.parts.get(target).copied().unwrap_or(self.each)
    }

    /// A thread begins a unit.
    pub fn begin(&self, thread: usize, unit: &Unit) {
        let part = unit.targets.iter().map(|&target| self.part(target)).sum();
        *lock(&self.threads[thread]) =
            Some(OpenUnit { at: Instant::now(), part, finished_part: 0.0 });
    }

    /// A target of its unit has a result.
    pub fn add(&self, thread: usize, target: usize) {
        let part = self.part(target);
        if let Some(unit) = &mut *lock(&self.threads[thread]) {
            unit.finished_part += part;
        }
        self.finished_part.fetch_add((PARTS * part) as u64, Ordering::Relaxed);
    }

    /// The unit has ended; its other targets failed.
    pub fn end(&self, thread: usize) {
        let Some(unit) = lock(&self.threads[thread]).take() else { return };
        self.finished_part.fetch_add(
            (PARTS * (unit.part - unit.finished_part).max(0.0)) as u64,
            Ordering::Relaxed,
        );
        let taken_s = unit.at.elapsed().as_secs_f64() / unit.part.max(1.0 / PARTS);
        let mut pace_s = lock(&self.pace_s);
        *pace_s = if pace_s.is_finite() { *pace_s + NEWEST * (taken_s - *pace_s) } else { taken_s };
    }

    /// The unit goes to another thread: its other targets are still to be done.
    pub fn leave(&self, thread: usize) {
        lock(&self.threads[thread]).take();
    }

    /// The part that is done, from 0 to 1. Of units that are begun also what is likely done.
    pub fn fraction(&self) -> f64 {
        let pace_s = *lock(&self.pace_s);
        let likely = |unit: &Mutex<Option<OpenUnit>>| {
            let Some(OpenUnit { at, part, finished_part }) = &*lock(unit) else { return 0.0 };
            let time_part = at.elapsed().as_secs_f64() / (pace_s * part).max(1e-9);
            (likely_part(time_part) * part - finished_part).max(0.0)
        };
        let likely: f64 = self.threads.iter().map(likely).sum();
        (self.finished_part.load(Ordering::Relaxed) as f64 / PARTS + likely).min(1.0)
    }
}

/// The part of a unit that is likely done after a part of its usual time: never all of it.
fn likely_part(time_part: f64) -> f64 {
    if time_part < 0.5 { time_part } else { 1.0 - 0.25 / time_part }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_count_by_their_seconds() {
        let close = |part: f64, expected: f64| assert!((part - expected).abs() < 1e-9, "{part}");
        let progress = Progress::new(3, &[1.0, 2.0, 5.0], 1);
        for (target, fraction) in [(1, 0.25), (0, 0.375), (2, 1.0)] {
            progress.add(0, target);
            close(progress.fraction(), fraction);
        }
        for other in [vec![], vec![1.0], vec![0.0; 4], vec![f32::NAN; 4]] {
            let progress = Progress::new(4, &other, 1);
            progress.add(0, 3);
            close(progress.fraction(), 0.25);
        }
        close(Progress::new(0, &[], 1).fraction(), 0.0);
    }

    #[test]
    fn a_unit_in_which_a_thread_is_counts_in_part() {
        let progress = Progress::new(2, &[1e-6, 1e-6], 2);
        let unit = |target| Unit { targets: vec![target], ..Unit::default() };
        progress.begin(0, &unit(0));
        std::thread::sleep(std::time::Duration::from_millis(1));
        // Never all of it, however long it takes.
        assert!((0.4..0.5).contains(&progress.fraction()), "{}", progress.fraction());
        progress.add(0, 0);
        assert!((progress.fraction() - 0.5).abs() < 1e-9);
        progress.end(0);
        progress.begin(1, &unit(1));
        // The first took longer than was predicted.
        assert!((0.5..0.9).contains(&progress.fraction()), "{}", progress.fraction());
    }

    #[test]
    fn what_is_likely_done_grows_and_is_never_all() {
        let parts: Vec<f64> = (0..1000).map(|step| likely_part(f64::from(step) / 100.0)).collect();
        assert!(parts.windows(2).all(|pair| pair[0] < pair[1]) && parts[999] < 1.0);
        assert_eq!(likely_part(0.0), 0.0);
    }
}
