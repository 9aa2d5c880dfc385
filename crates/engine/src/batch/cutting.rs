//! The threads of a batch: each takes unit after unit and cuts what it can of it.

use super::lock;
use super::moves::Moves;
use super::objects::{Objects, OpenError};
use super::progress::Progress;
use super::store_queues::{Ending, Next, StoreLimits, StoreQueues};
use super::units::{Unit, divide, place, take_part, workers};
use super::writer::ResultWriter;
use crate::assemble;
use crate::cutout::PlacedRegion;
use crate::error::EngineError;
use crate::job::{Job, ObjectCopy, Replicas, Target};
use crate::object::Object;
use crate::template::Template;
use crate::timing::{Stage, about};
use crate::worker_context::{Cancel, SpareBuffers, WorkerContext};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use swathe_plan::{ReaderGroup, Sharing};
use swathe_trace::Ids;

/// A thread without work asks again after this time: a store may be slow by then.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// The state that the threads of a batch share.
pub(super) struct BatchState {
    pub job: Arc<Job>,
    queues: Mutex<StoreQueues>,
    /// A unit has ended.
    unit_end: Condvar,
    start: Instant,
    objects: Objects,
    /// Threads.
    pub workers: u32,
    pub progress: Progress,
    pub moves: Moves,
    /// The threads as one group of readers, for others that read from the same storages.
    readers: ReaderGroup,
    pub notes: Mutex<Vec<String>>,
    pub cancel: Cancel,
}

/// A unit, and what it is cut from.
#[derive(Clone, Copy)]
struct OpenUnit<'a> {
    unit: &'a Unit,
    object: &'a Object,
    template: &'a Arc<Template>,
    /// Whether another copy of the object can be read if this one cannot.
    has_other: bool,
}

/// How far the cutting of a unit, or of a part of it, came.
enum CutEnd {
    /// All its targets are reported.
    Done,
    /// The object is not the version that was assumed.
    Stale,
    /// The store failed, and there is another copy: the other targets are not reported.
    Failed(OpenError),
}

impl BatchState {
    pub fn new(job: Arc<Job>, cancel: Cancel, target_s: &[f32]) -> BatchState {
        let mut units = divide(&job);
        let mut unit_counts = vec![0; job.files.len()];
        for unit in &units {
            unit_counts[unit.file] += 1;
        }
        let moves = Moves::new(job.replicas.as_ref());
        let copies = |file: usize| match &job.replicas {
            Some(replicas) => replicas.copies[file].len(),
            None => 1,
        };
        let objects = Objects::new(unit_counts, copies);
        let (queues, workers) = match &job.replicas {
            Some(replicas) => {
                predict(&mut units, replicas, target_s);
                queues_of_stores(&job, replicas, units)
            }
            None => {
                let workers = workers(&job, &job.files, units.len());
                (StoreQueues::of_one(units, workers), workers)
            }
        };
        BatchState {
            objects,
            workers: workers as u32,
            progress: Progress::new(job.targets.len(), target_s, workers),
            readers: ReaderGroup::new_group(),
            queues: Mutex::new(queues),
            unit_end: Condvar::new(),
            start: Instant::now(),
            notes: Mutex::default(),
            moves,
            cancel,
            job,
        }
    }

    fn now_s(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// The next unit, and how many share its store; waits for one that may come.
    fn next(&self, writer: &mut ResultWriter, work: &mut WorkerContext) -> Option<(Unit, u32)> {
        let mut has_flushed = false;
        while !self.cancel.is_cancelled() {
            let mut queues = lock(&self.queues);
            match queues.next(self.now_s()) {
                Next::Unit(unit, parts) => return Some((unit, parts)),
                Next::End => return None,
                Next::Wait if has_flushed => {
                    let wait = self.unit_end.wait_timeout(queues, ASK_AGAIN);
                    drop(wait.unwrap_or_else(PoisonError::into_inner));
                    work.stages.forget_wait();
                }
                Next::Wait => {
                    drop(queues);
                    self.flush(writer, work);
                    has_flushed = true;
                }
            }
        }
        None
    }

    /// Write what waits for more.
    fn flush(&self, writer: &mut ResultWriter, work: &mut WorkerContext) {
        work.stages.about(Ids::default());
        writer.file = None;
        writer.flush(work);
    }

    /// Cut units until none is left.
    pub fn run(&self, writer: &mut ResultWriter) -> WorkerContext {
        self.readers.enter();
        self.cancel.enter();
        let mut work = WorkerContext::start(self.cancel.clone());
        work.spare = SpareBuffers::reclaim();
        while let Some((mut unit, parts)) = self.next(writer, &mut work) {
            let about = self.about_copy(&unit);
            if let Some(last_move) = unit.last_move.take() {
                self.moves.record(last_move, unit.targets.len(), &about);
            }
            work.stages.about(about);
            work.stages.enter(Stage::Open);
            work.reading.sharing = Sharing { parts, objective: self.job.objective };
            work.keeps = unit.is_part;
            writer.store = self.other_store(&unit);
            self.progress.begin(writer.thread, &unit);
            let has_other = lock(&self.queues).has_other(&unit);
            let result = catch_unwind(AssertUnwindSafe(|| {
                self.run_unit(&unit, has_other, writer, &mut work)
            }));
            match result {
                Ok(Ok(ending)) => lock(&self.queues).end(&unit, ending, self.now_s()),
                Ok(Err(failure)) => {
                    if self.retry(unit.clone(), failure.clone(), writer) {
                        self.unit_end.notify_all();
                        self.progress.leave(writer.thread);
                        continue;
                    }
                    self.fail_rest(&unit, writer, &mut work, || failure.to_error());
                }
                Err(panic) => {
                    let message = panic
                        .downcast_ref::<String>()
                        .cloned()
                        .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
                        .unwrap_or_default();
                    let error = || EngineError::Internal {
                        place: format!("cutting from {}", self.job.url(unit.file, unit.copy)),
                        message: message.clone(),
                    };
                    work.stages.fail(&error());
                    // Its buffers are as they were left.
                    let WorkerContext { stages, cut_events, .. } = work;
                    work = WorkerContext {
                        stages,
                        cut_events,
                        ..WorkerContext::start(self.cancel.clone())
                    };
                    self.fail_rest(&unit, writer, &mut work, error);
                    lock(&self.queues).end(&unit, Ending::Done, self.now_s());
                }
            }
            self.unit_end.notify_all();
            self.progress.end(writer.thread);
            let notes = self.objects.release(unit.file, &self.cancel);
            lock(&self.notes).extend(notes);
        }
        self.flush(writer, &mut work);
        work.spare.leave();
        work.stages.enter_without_event(Stage::Open);
        work
    }

    /// The store of a unit failed: let another read the targets without a result. False if there
    /// are none, or no other store.
    fn retry(&self, mut unit: Unit, failure: OpenError, writer: &ResultWriter) -> bool {
        let is_store = failure.is_of_whole_store;
        let now_s = self.now_s();
        let mut queues = lock(&self.queues);
        self.moves.fail(queues.store_of(&unit), &failure.message);
        queues.end(&unit, Ending::Failed { is_store }, now_s);
        let mut is_reported = writer.is_reported.iter().copied();
        unit.targets.retain(|_| !is_reported.next().unwrap_or(false));
        unit.failure = Some(match unit.failure.take() {
            Some(earlier) => earlier.and(failure),
            None => failure,
        });
        !unit.targets.is_empty() && queues.retry(unit, now_s)
    }

    /// The store of a unit, if it is not that of the job's file.
    fn other_store(&self, unit: &Unit) -> Option<usize> {
        (unit.copy > 0).then(|| lock(&self.queues).store_of(unit))
    }

    fn open(&self, unit: &Unit) -> Result<Arc<Object>, OpenError> {
        self.objects.open(unit.file, unit.copy, &self.job, &self.cancel)
    }

    /// Cut a unit.
    ///
    /// # Errors
    /// The failure of the store, if there is another copy.
    fn run_unit(
        &self,
        unit: &Unit,
        has_other: bool,
        writer: &mut ResultWriter,
        work: &mut WorkerContext,
    ) -> Result<Ending, OpenError> {
        writer.begin(unit.targets.len());
        writer.file = Some(unit.file);
        work.cut_events.clear();
        for _ in 0..2 {
            let object = match self.open(unit) {
                Ok(object) => object,
                Err(_) if self.cancel.is_cancelled() => break,
                Err(failure) => {
                    work.stages.fail(&failure.to_error());
                    if has_other && failure.is_of_store && !self.cancel.is_cancelled() {
                        return Err(failure);
                    }
                    let is_store = failure.is_of_whole_store;
                    let failure = match &unit.failure {
                        Some(earlier) => earlier.clone().and(failure),
                        None => failure,
                    };
                    self.fail_rest(unit, writer, work, || failure.to_error());
                    return Ok(Ending::Failed { is_store });
                }
            };
            match self.run_on_object(unit, &object, has_other, writer, work) {
                CutEnd::Done => break,
                CutEnd::Failed(failure) => return Err(failure),
                // The index was behind the server: read again what came from the index.
                CutEnd::Stale => self.objects.forget(unit.file, unit.copy, &object),
            }
        }
        Ok(Ending::Done)
    }

    /// Cut the targets of a unit that are not reported yet.
    fn run_on_object(
        &self,
        unit: &Unit,
        object: &Object,
        has_other: bool,
        writer: &mut ResultWriter,
        work: &mut WorkerContext,
    ) -> CutEnd {
        writer.version = object.version();
        let template = match object.template(&self.job.selectors[unit.hdu]) {
            Ok(template) => template,
            Err(error) if object.is_stale(&error) => return CutEnd::Stale,
            Err(error) => {
                work.stages.fail(&error);
                if self.is_for_other(&error, has_other) {
                    return CutEnd::Failed(OpenError::of(&error));
                }
                let message = error.to_string();
                let mut first = Some(error);
                self.fail_rest(unit, writer, work, || {
                    first.take().unwrap_or_else(|| reopen_error(false, &message))
                });
                return CutEnd::Done;
            }
        };
        let mut regions = VecDeque::new();
        let about = object.about();
        for (index, &target) in unit.targets.iter().enumerate() {
            if writer.is_reported[index] {
                continue;
            }
            match place(&self.job, &template, target) {
                Ok(place) => {
                    if swathe_trace::is_on() {
                        work.about(index, self.about_in(target, &about));
                    }
                    regions.push_back((index, place));
                }
                Err(error) => {
                    writer.fail(index, target, error, self.about_in(target, &about), work)
                }
            }
        }
        let open_unit = OpenUnit { unit, object, template: &template, has_other };
        while !regions.is_empty() && !self.cancel.is_cancelled() {
            match self.run_part(open_unit, take_part(&mut regions), writer, work) {
                CutEnd::Done => {}
                end => return end,
            }
        }
        CutEnd::Done
    }

    /// Whether an error is one of the store, and another copy is to be read.
    fn is_for_other(&self, error: &EngineError, has_other: bool) -> bool {
        has_other && error.is_of_store() && !self.cancel.is_cancelled()
    }

    /// Cut what fits in memory at once. If that fails, cut one by one: only the targets that
    /// need the damaged part are lost.
    fn run_part(
        &self,
        open_unit: OpenUnit<'_>,
        part: Vec<(usize, PlacedRegion)>,
        writer: &mut ResultWriter,
        work: &mut WorkerContext,
    ) -> CutEnd {
        let result = self.cut(open_unit, part.clone(), writer, work);
        let Err(mut error) = result else { return CutEnd::Done };
        if open_unit.object.is_stale(&error) {
            return CutEnd::Stale;
        }
        if self.is_for_other(&error, open_unit.has_other) {
            return CutEnd::Failed(OpenError::of(&error));
        }
        let alone = part.len() == 1;
        for (index, region) in part {
            if writer.is_reported[index] || self.cancel.is_cancelled() {
                continue;
            }
            if !alone {
                match self.cut(open_unit, vec![(index, region)], writer, work) {
                    Ok(()) => continue,
                    Err(own) => error = own,
                }
            }
            if self.is_for_other(&error, open_unit.has_other) {
                return CutEnd::Failed(OpenError::of(&error));
            }
            if !matches!(error, EngineError::Interrupted) {
                let message = error.to_string();
                let own = std::mem::replace(&mut error, reopen_error(false, &message));
                let target = open_unit.unit.targets[index];
                writer.fail(index, target, own, self.about(target, open_unit.object), work);
            }
        }
        CutEnd::Done
    }

    /// Cut, and pass on each result. If the checksum of the stream is still to be checked, results
    /// wait until it was.
    fn cut(
        &self,
        OpenUnit { unit, object, template, has_other }: OpenUnit<'_>,
        part: Vec<(usize, PlacedRegion)>,
        writer: &mut ResultWriter,
        work: &mut WorkerContext,
    ) -> Result<(), EngineError> {
        let mut waiting = Vec::new();
        let hold = object.is_unverified();
        assemble::cut(object, template, part, work, &mut |index, cutout, work| {
            let target = unit.targets[index];
            match cutout {
                Ok(cutout) if hold => waiting.push((index, cutout)),
                Ok(cutout) => writer.write(index, target, cutout, &self.job, &self.progress, work),
                Err(error) if self.is_for_other(&error, has_other) => return Err(error),
                Err(error) => writer.fail(index, target, error, self.about(target, object), work),
            }
            Ok(())
        })?;
        if hold {
            work.stages.enter(Stage::Read);
            let result = object.settle(&self.cancel);
            work.reading.add(object.take_traffic());
            result.inspect_err(|error| work.stages.fail(error))?;
        }
        for (index, cutout) in waiting {
            writer.write(index, unit.targets[index], cutout, &self.job, &self.progress, work);
        }
        Ok(())
    }

    fn fail_rest(
        &self,
        unit: &Unit,
        writer: &mut ResultWriter,
        work: &mut WorkerContext,
        mut error: impl FnMut() -> EngineError,
    ) {
        let object = self.about_copy(unit);
        for (index, &target) in unit.targets.iter().enumerate() {
            if !writer.is_reported.get(index).copied().unwrap_or(false) {
                writer.fail(index, target, error(), self.about_in(target, &object), work);
            }
        }
    }

    /// The fields of the events of an object; none while no events are recorded.
    fn about_copy(&self, unit: &Unit) -> Ids {
        if !swathe_trace::is_on() {
            return Ids::default();
        }
        about(&self.job.stores.display_name(self.job.url(unit.file, unit.copy)))
    }

    /// The fields of the events of a target; none while no events are recorded.
    fn about(&self, target: usize, object: &Object) -> Ids {
        self.about_in(target, &object.about())
    }

    fn about_in(&self, target: usize, object: &Ids) -> Ids {
        if !swathe_trace::is_on() {
            return Ids::default();
        }
        let Target { name, id, .. } = &self.job.targets[target];
        object.after("TARGET", id.as_ref().unwrap_or(name))
    }
}

/// An error that many targets share, repeated for one of them.
fn reopen_error(missing: bool, message: &str) -> EngineError {
    EngineError::Shared { missing, message: message.to_string() }
}

/// Enter the predicted seconds of each unit: of its targets, or, without them, those of its store.
fn predict(units: &mut [Unit], replicas: &Replicas, target_s: &[f32]) {
    for unit in units {
        let store = replicas.copies[unit.file][0].store;
        let alike_s = replicas.stores[store].target_s * unit.targets.len() as f64;
        let of_targets =
            unit.targets.iter().map(|&target| target_s.get(target).map(|&s| f64::from(s)));
        unit.seconds = of_targets.sum::<Option<f64>>().filter(|&s| s > 0.0).unwrap_or(alike_s);
    }
}

/// A queue for each store, and how many threads read from all.
fn queues_of_stores(job: &Job, replicas: &Replicas, units: Vec<Unit>) -> (StoreQueues, usize) {
    let stores = replicas.stores.len();
    let (mut first_copies, mut readable) = (vec![0; stores], vec![0; stores]);
    let mut example: Vec<Option<&String>> = vec![None; stores];
    for unit in &units {
        for (copy, at) in replicas.copies[unit.file].iter().enumerate() {
            first_copies[at.store] += usize::from(copy == 0);
            readable[at.store] += 1;
            example[at.store].get_or_insert(&at.url);
        }
    }
    let (mut of_servers, mut of_files) = (0, 0);
    let limits = (0..stores).map(|store| {
        let most = workers(job, example[store], readable[store]);
        let is_server = example[store].is_some_and(|url| job.stores.server_of(url).is_some());
        if is_server {
            of_servers += most
        } else {
            of_files = of_files.max(most)
        }
        let target_s = replicas.stores[store].target_s;
        let limit = if first_copies[store] == 0 {
            most
        } else {
            workers(job, example[store], first_copies[store]).min(most)
        };
        StoreLimits { target_s, limit, most }
    });
    let limits: Vec<StoreLimits> = limits.collect();
    let threads = (of_servers + of_files).clamp(1, units.len().max(1));
    let store = |copies: &Vec<ObjectCopy>| copies.iter().map(|copy| copy.store).collect();
    let copies = replicas.copies.iter().map(store).collect();
    (StoreQueues::new(units, limits, copies), threads)
}
