//! The threads of a batch: each takes unit after unit and cuts what it can of it.

use super::lock;
use super::objects::Objects;
use super::progress::Progress;
use super::units::{Unit, divide, place, take_part, workers};
use super::writer::ResultWriter;
use crate::assemble;
use crate::cutout::PlacedRegion;
use crate::error::EngineError;
use crate::job::{Job, Target};
use crate::object::Object;
use crate::template::Template;
use crate::timing::{Stage, about};
use crate::worker_context::{Cancel, SpareBuffers, WorkerContext};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use swathe_plan::{ReaderGroup, Sharing};
use swathe_trace::Ids;

/// What the threads of a batch share.
pub(super) struct BatchState {
    pub job: Arc<Job>,
    units: Mutex<VecDeque<Unit>>,
    objects: Objects,
    /// Threads, and how many of them are at work on a unit.
    pub workers: u32,
    busy: AtomicU32,
    pub progress: Progress,
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
}

impl BatchState {
    pub fn new(job: Arc<Job>, cancel: Cancel, target_s: &[f32]) -> BatchState {
        let units = divide(&job);
        let mut unit_counts = vec![0; job.files.len()];
        for unit in &units {
            unit_counts[unit.file] += 1;
        }
        let workers = workers(&job, units.len());
        BatchState {
            objects: Objects::new(unit_counts),
            workers: workers as u32,
            progress: Progress::new(job.targets.len(), target_s, workers),
            busy: AtomicU32::new(0),
            readers: ReaderGroup::new_group(),
            units: Mutex::new(units),
            notes: Mutex::default(),
            cancel,
            job,
        }
    }

    /// Cut units until none is left.
    pub fn run(&self, writer: &mut ResultWriter) -> WorkerContext {
        self.readers.enter();
        let mut work = WorkerContext::start(self.cancel.clone());
        work.spare = SpareBuffers::reclaim();
        while !self.cancel.is_cancelled() {
            let Some(unit) = lock(&self.units).pop_front() else { break };
            work.stages.about(self.about_file(unit.file));
            work.stages.enter(Stage::Open);
            let waiting = lock(&self.units).len() as u32;
            let busy = self.busy.fetch_add(1, Ordering::Relaxed) + 1;
            let parts = (busy + waiting).min(self.workers);
            work.reading.sharing = Sharing { parts, objective: self.job.objective };
            work.keeps = unit.is_part;
            self.progress.begin(writer.thread, &unit);
            let result = catch_unwind(AssertUnwindSafe(|| self.run_unit(&unit, writer, &mut work)));
            self.busy.fetch_sub(1, Ordering::Relaxed);
            if let Err(panic) = result {
                let message = panic
                    .downcast_ref::<String>()
                    .cloned()
                    .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
                    .unwrap_or_default();
                let error = || EngineError::Internal {
                    place: format!("cutting from {}", self.job.files[unit.file]),
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
            }
            self.progress.end(writer.thread);
            let notes = self.objects.release(unit.file, &self.cancel);
            lock(&self.notes).extend(notes);
        }
        work.stages.about(Ids::default());
        writer.file = None;
        writer.flush(&mut work);
        work.spare.leave();
        work.stages.enter_unrecorded(Stage::Open);
        work
    }

    fn open(&self, file: usize) -> Result<Arc<Object>, (bool, String)> {
        let Job { files, stores, .. } = &*self.job;
        self.objects.open(file, &files[file], stores, &self.cancel)
    }

    fn run_unit(&self, unit: &Unit, writer: &mut ResultWriter, work: &mut WorkerContext) {
        writer.begin(unit.targets.len());
        writer.file = Some(unit.file);
        work.cut_events.clear();
        let object = match self.open(unit.file) {
            Ok(object) => object,
            Err((missing, message)) => {
                work.stages.fail(&reopen_error(missing, &message));
                return self.fail_rest(unit, writer, work, || reopen_error(missing, &message));
            }
        };
        if self.run_on_object(unit, &object, writer, work) {
            return;
        }
        // The index was behind the server: read again what came from the index.
        self.objects.forget(unit.file, &object);
        match self.open(unit.file) {
            Ok(object) => {
                self.run_on_object(unit, &object, writer, work);
            }
            Err((missing, message)) => {
                work.stages.fail(&reopen_error(missing, &message));
                self.fail_rest(unit, writer, work, || reopen_error(missing, &message));
            }
        }
    }

    /// Cut the targets of a unit that are not reported yet; false if the object is not the
    /// version that was assumed.
    fn run_on_object(
        &self,
        unit: &Unit,
        object: &Object,
        writer: &mut ResultWriter,
        work: &mut WorkerContext,
    ) -> bool {
        writer.version = object.version();
        let template = match object.template(&self.job.selectors[unit.hdu]) {
            Ok(template) => template,
            Err(error) if object.is_stale(&error) => return false,
            Err(error) => {
                work.stages.fail(&error);
                let message = error.to_string();
                let mut first = Some(error);
                self.fail_rest(unit, writer, work, || {
                    first.take().unwrap_or_else(|| reopen_error(false, &message))
                });
                return true;
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
        let open_unit = OpenUnit { unit, object, template: &template };
        while !regions.is_empty() && !self.cancel.is_cancelled() {
            if !self.run_part(open_unit, take_part(&mut regions), writer, work) {
                return false;
            }
        }
        true
    }

    /// Cut what fits in memory at once. If that fails, cut one by one: only the targets that
    /// need the damaged part are lost. False if the object is not the version that was assumed.
    fn run_part(
        &self,
        open_unit: OpenUnit<'_>,
        part: Vec<(usize, PlacedRegion)>,
        writer: &mut ResultWriter,
        work: &mut WorkerContext,
    ) -> bool {
        let result = self.cut(open_unit, part.clone(), writer, work);
        let Err(mut error) = result else { return true };
        if open_unit.object.is_stale(&error) {
            return false;
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
            if !matches!(error, EngineError::Interrupted) {
                let message = error.to_string();
                let own = std::mem::replace(&mut error, reopen_error(false, &message));
                let target = open_unit.unit.targets[index];
                writer.fail(index, target, own, self.about(target, open_unit.object), work);
            }
        }
        true
    }

    /// Cut, and pass on each result. If the checksum of the stream is still to be checked, results
    /// wait until it was.
    fn cut(
        &self,
        OpenUnit { unit, object, template }: OpenUnit<'_>,
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
        let object = self.about_file(unit.file);
        for (index, &target) in unit.targets.iter().enumerate() {
            if !writer.is_reported.get(index).copied().unwrap_or(false) {
                writer.fail(index, target, error(), self.about_in(target, &object), work);
            }
        }
    }

    /// What the events of an object are about; nothing while none are recorded.
    fn about_file(&self, file: usize) -> Ids {
        if !swathe_trace::is_on() {
            return Ids::default();
        }
        about(&self.job.stores.display_name(&self.job.files[file]))
    }

    /// What the events of a target are about; nothing while none are recorded.
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
