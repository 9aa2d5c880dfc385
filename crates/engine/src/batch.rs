//! Many targets at once: grouped by object, cut by several threads, written as they are done.

mod cutting;
mod moves;
mod objects;
mod pace;
mod progress;
mod store_queues;
mod units;
mod writer;

use crate::error::EngineError;
use crate::job::Job;
use crate::output::Output;
use crate::timing::Stages;
use crate::worker_context::{Cancel, WorkerContext};
use cutting::BatchState;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use swathe_store_api::Traffic;
use swathe_trace::Scope;
pub(crate) use units::{Unit, divide, place, workers};
use writer::ResultWriter;

/// Rows are gathered for this part of the time the batch has run, so that it ends no later by
/// more than that,
const GATHER_SHARE: u32 = 50;
/// and no longer than this.
const GATHER_LONGEST: Duration = Duration::from_millis(20);

/// How a target ended.
#[derive(Debug)]
pub struct Row {
    /// Its number in the batch.
    pub target: usize,
    /// The version of the object, if it could be opened.
    pub version: String,
    /// The store it was read from, if that is another than the one of the job's file.
    pub store: Option<usize>,
    /// The result, or the error.
    pub outcome: Result<ResultFile, EngineError>,
}

/// A result that was written.
#[derive(Clone, Debug)]
pub struct ResultFile {
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: [u8; 32],
}

/// The costs of a batch.
pub struct Summary {
    /// Time per stage, summed over threads.
    pub stages: Stages,
    /// Traffic of the storages.
    pub traffic: Traffic,
    /// Seconds from start to finish.
    pub wall_s: f64,
    /// Warnings for the user; the work went on.
    pub notes: Vec<String>,
}

/// A running batch.
pub struct Batch {
    rows: Receiver<Vec<Row>>,
    threads: Vec<std::thread::JoinHandle<WorkerContext>>,
    state: Arc<BatchState>,
    start: Instant,
}

impl Batch {
    /// Start cutting into an open output. Several batches may write to it, one after another.
    /// `target_s`: seconds that each target is predicted to take; if others, all count alike.
    ///
    /// # Errors
    /// [`EngineError::Internal`] if no thread can be started.
    pub fn start(
        job: impl Into<Arc<Job>>,
        output: Arc<Output>,
        cancel: Cancel,
        target_s: &[f32],
    ) -> Result<Batch, EngineError> {
        let job = job.into();
        output.protect_sources(&job);
        let state = Arc::new(BatchState::new(job, cancel, target_s));
        let threads = state.workers;
        let scope = Scope::current();
        let (sender, rows) = channel();
        let start = Instant::now();
        let mut batch = Batch { rows, threads: Vec::new(), state, start };
        for number in 0..threads {
            let state = batch.state.clone();
            let mut writer = ResultWriter::new(output.clone(), sender.clone(), number as usize);
            let scope = scope.clone();
            let thread =
                std::thread::Builder::new().name(format!("swathe-cut-{number}")).spawn(move || {
                    scope.enter();
                    state.run(&mut writer)
                });
            match thread {
                Ok(thread) => batch.threads.push(thread),
                // With at least one thread the batch is only slower.
                Err(_) if number > 0 => break,
                Err(source) => {
                    return Err(EngineError::Internal {
                        place: "starting a thread".into(),
                        message: source.to_string(),
                    });
                }
            }
        }
        Ok(batch)
    }

    /// Rows finished since the last call, waiting for the first of them at most `timeout`, and
    /// then a little for more: telling each alone costs as much as a tenth of making it. `None`
    /// when no more will come.
    pub fn poll(&self, timeout: Duration) -> Option<Vec<Row>> {
        match self.rows.recv_timeout(timeout) {
            Ok(mut rows) => {
                let gather = (self.start.elapsed() / GATHER_SHARE).min(GATHER_LONGEST);
                std::thread::sleep(gather.min(timeout));
                rows.extend(self.rows.try_iter().flatten());
                Some(rows)
            }
            Err(RecvTimeoutError::Timeout) => Some(Vec::new()),
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }

    /// Rows finished since the last call, after `timeout` at the latest: as soon as `enough` rows
    /// are finished, or no more will follow. `None` when all rows were returned.
    pub fn gather(&self, enough: usize, timeout: Duration) -> Option<Vec<Row>> {
        let until = Instant::now() + timeout;
        let mut rows = Vec::new();
        while rows.len() < enough {
            match self.rows.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(more) => rows.extend(more),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) if rows.is_empty() => return None,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Some(rows)
    }

    /// The part of the predicted seconds whose targets are done, from 0 to 1.
    pub fn progress(&self) -> f64 {
        self.state.progress.fraction()
    }

    /// Stop soon; results already written stay.
    pub fn cancel(&self) {
        self.state.cancel.cancel();
    }

    /// Wait for the threads; returns the costs.
    ///
    /// # Errors
    /// [`EngineError::Internal`] if a thread died.
    pub fn finish(self) -> Result<Summary, EngineError> {
        let mut stages = Stages::start();
        let mut traffic = Traffic::default();
        for thread in self.threads {
            let work = thread.join().map_err(|_| EngineError::Internal {
                place: "cutting".into(),
                message: "a thread died".into(),
            })?;
            stages.add(&work.stages);
            traffic.add(work.traffic());
        }
        let mut notes = std::mem::take(&mut *lock(&self.state.notes));
        notes.extend(self.state.moves.notes());
        let wall_s = self.start.elapsed().as_secs_f64();
        Ok(Summary { stages, traffic, wall_s, notes })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Panics are caught per unit; what these locks guard is whole between statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
