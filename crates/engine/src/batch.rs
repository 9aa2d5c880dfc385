//! Many targets at once: grouped by object, cut by several threads, written as they are done.

use crate::assemble;
use crate::cutout::{Cutout, Mode, Placed};
use crate::error::EngineError;
use crate::object::{Object, Selector, about};
use crate::output::{Output, OutputKind};
use crate::sha256;
use crate::stages::{Stage, Stages, tell_end, tell_start};
use crate::template::Template;
use crate::work::{Cancel, Work};
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use swathe_array::{Region, RegionError};
use swathe_store::{Stores, Traffic};
use swathe_trace::{Ids, Scope};

/// Targets of one object that a thread takes at once: few enough that threads share the work on
/// one object, many enough that what they share is read once.
const UNIT_TARGETS: usize = 256;
/// Pixels being assembled by one thread, unless one cutout alone is larger.
const UNIT_BYTES: usize = 32 << 20;
/// Threads that wait for servers at the same time; each may hold [`UNIT_BYTES`].
const WAITING_THREADS: usize = 16;
/// Results hashed together: the hash runs over up to 16 messages at once.
const HASHED_TOGETHER: usize = 16;
/// Results waiting for their hash.
const WAITING_BYTES: usize = 4 << 20;

/// One target of a batch.
#[derive(Clone, Debug)]
pub struct Target {
    /// Which of the batch's objects.
    pub file: usize,
    /// Which of the batch's selectors.
    pub hdu: usize,
    /// First pixel on NAXIS1 and NAXIS2, from 0; then width and height.
    pub pixels: [i64; 4],
    /// Name of its result.
    pub name: String,
    /// What its user calls it, where that is another name.
    pub id: Option<String>,
}

/// What is to be cut, and where it goes.
#[derive(Clone)]
pub struct Job {
    /// URLs of the objects.
    pub files: Vec<String>,
    /// HDUs that targets refer to.
    pub selectors: Vec<Selector>,
    /// The targets.
    pub targets: Vec<Target>,
    /// Folder or archive.
    pub output: PathBuf,
    /// Which of those.
    pub kind: OutputKind,
    /// Whether to keep what an archive already holds.
    pub append: bool,
    /// What happens at the edge of an image.
    pub mode: Mode,
    /// Physical value of pixels outside the image.
    pub fill: Option<f64>,
    /// Planes `[start, stop)` on NAXIS3 and the axes behind it; all on those left out. An image
    /// that has not all of them is not cut.
    pub planes: Vec<(i64, i64)>,
    /// Threads that compute. Those that wait for servers are more.
    pub threads: usize,
    /// The storages that are known.
    pub stores: Stores,
}

/// How a target ended.
#[derive(Debug)]
pub struct Row {
    /// Its number in the batch.
    pub target: usize,
    /// The version of the object, if it could be opened.
    pub version: String,
    /// The result, or why there is none.
    pub outcome: Result<Written, EngineError>,
}

/// A result that was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: [u8; 32],
}

/// What a batch cost.
pub struct Summary {
    /// Time per stage, summed over threads.
    pub stages: Stages,
    /// What was asked of storages.
    pub traffic: Traffic,
    /// Seconds from start to finish.
    pub wall_s: f64,
    /// What the user should be told though the work went on.
    pub notes: Vec<String>,
}

/// A running batch.
pub struct Batch {
    rows: Receiver<Row>,
    threads: Vec<std::thread::JoinHandle<Work>>,
    shared: Arc<Shared>,
    started: Instant,
}

struct Shared {
    job: Job,
    output: Mutex<Option<Arc<Output>>>,
    units: Mutex<VecDeque<Unit>>,
    files: Vec<Mutex<Slot>>,
    /// Threads, and how many of them are at work on a unit.
    workers: u32,
    busy: AtomicU32,
    notes: Mutex<Vec<String>>,
    cancel: Cancel,
}

/// Some targets of one HDU of one object.
pub(crate) struct Unit {
    pub file: usize,
    pub hdu: usize,
    pub targets: Vec<usize>,
    /// Whether other units hold targets of the same HDU.
    pub is_part: bool,
}

/// A unit, and what it is cut from.
#[derive(Clone, Copy)]
struct Opened<'a> {
    unit: &'a Unit,
    object: &'a Object,
    template: &'a Arc<Template>,
}

/// An object while units of it are left.
struct Slot {
    units_left: usize,
    opened: Option<Result<Arc<Object>, String>>,
    missing: bool,
    /// Whether the index is known to be behind.
    fresh: bool,
}

/// Rows are gathered for this part of the time the batch has run, so that it ends no later by
/// more than that,
const GATHER_SHARE: u32 = 50;
/// and no longer than this.
const GATHER_LONGEST: Duration = Duration::from_millis(20);

impl Batch {
    /// Start cutting.
    ///
    /// # Errors
    /// [`EngineError::Output`] where the output cannot be written.
    pub fn start(job: Job, cancel: Cancel) -> Result<Batch, EngineError> {
        let output = Arc::new(Output::open(&job.output, job.kind, job.append)?);
        let units = divide(&job);
        let mut left = vec![0; job.files.len()];
        for unit in &units {
            left[unit.file] += 1;
        }
        let slot = |units_left| {
            Mutex::new(Slot { units_left, opened: None, missing: false, fresh: false })
        };
        let threads = workers(&job).clamp(1, units.len().max(1));
        let shared = Arc::new(Shared {
            files: left.into_iter().map(slot).collect(),
            workers: threads as u32,
            busy: AtomicU32::new(0),
            units: Mutex::new(units),
            output: Mutex::new(Some(output.clone())),
            notes: Mutex::default(),
            cancel,
            job,
        });
        let scope = Scope::current();
        let (sender, rows) = channel();
        let mut batch = Batch { rows, threads: Vec::new(), shared, started: Instant::now() };
        for number in 0..threads {
            let shared = batch.shared.clone();
            let mut writer = Writer::new(output.clone(), sender.clone());
            let scope = scope.clone();
            let thread =
                std::thread::Builder::new().name(format!("swathe-cut-{number}")).spawn(move || {
                    scope.enter();
                    shared.run(&mut writer)
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
            Ok(row) => {
                let gather = (self.started.elapsed() / GATHER_SHARE).min(GATHER_LONGEST);
                std::thread::sleep(gather.min(timeout));
                let mut rows = vec![row];
                rows.extend(self.rows.try_iter());
                Some(rows)
            }
            Err(RecvTimeoutError::Timeout) => Some(Vec::new()),
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }

    /// Stop soon; results already made stay.
    pub fn cancel(&self) {
        self.shared.cancel.cancel();
    }

    /// Wait for the threads and close the output.
    ///
    /// # Errors
    /// [`EngineError::Output`] where the end of an archive cannot be written.
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
        let output = lock(&self.shared.output).take();
        if let Some(output) = output.and_then(Arc::into_inner) {
            output.close()?;
        }
        let notes = std::mem::take(&mut *lock(&self.shared.notes));
        let wall_s = self.started.elapsed().as_secs_f64();
        Ok(Summary { stages, traffic, wall_s, notes })
    }
}

/// How many threads to start: as many as may compute, or, where servers are read, as many as their
/// streams can be used by; each waits most of the time.
pub(crate) fn workers(job: &Job) -> usize {
    let streams = |file: &String| job.stores.server_of(file).map(|(_, costs)| costs.streams);
    let most = job.files.iter().filter_map(streams).max().unwrap_or(1);
    job.threads.max(WAITING_THREADS.min(most as usize))
}

/// Group targets by object and HDU, in the order the objects first appear, each group from the
/// first image row to the last.
pub(crate) fn divide(job: &Job) -> VecDeque<Unit> {
    let mut groups: Vec<Unit> = Vec::new();
    let mut number: HashMap<(usize, usize), usize> = HashMap::new();
    for (target, Target { file, hdu, .. }) in job.targets.iter().enumerate() {
        let group = *number.entry((*file, *hdu)).or_insert_with(|| {
            groups.push(Unit { file: *file, hdu: *hdu, targets: Vec::new(), is_part: false });
            groups.len() - 1
        });
        groups[group].targets.push(target);
    }
    let mut units = VecDeque::new();
    for Unit { file, hdu, mut targets, .. } in groups {
        targets.sort_by_key(|&target| (job.targets[target].pixels[1], target));
        let is_part = targets.len() > UNIT_TARGETS;
        for part in targets.chunks(UNIT_TARGETS) {
            units.push_back(Unit { file, hdu, targets: part.to_vec(), is_part });
        }
    }
    units
}

/// A target on its image.
pub(crate) fn place(job: &Job, template: &Template, target: usize) -> Result<Placed, EngineError> {
    let [x, y, width, height] = job.targets[target].pixels;
    let shape = &template.image.shape;
    let overflow = |axis, start, size: i64| {
        template.region_error(RegionError::Empty { axis, start, stop: start.wrapping_add(size) })
    };
    let mut start = vec![x, y];
    let mut stop = vec![
        x.checked_add(width).ok_or_else(|| overflow(0, x, width))?,
        y.checked_add(height).ok_or_else(|| overflow(1, y, height))?,
    ];
    for (axis, &(first, last)) in (2..).zip(&job.planes) {
        // Whatever the mode: nobody asks for planes that there are not, but by mistake.
        let length = shape.get(axis).map_or(0, |&length| i64::try_from(length).unwrap_or(i64::MAX));
        if !(0 <= first && first < last && last <= length) {
            return Err(template.planes_error(axis, first, last));
        }
        start.push(first);
        stop.push(last);
    }
    for &length in shape.iter().skip(start.len()) {
        start.push(0);
        stop.push(i64::try_from(length).unwrap_or(i64::MAX));
    }
    let region = Region::new(start, stop).map_err(|error| template.region_error(error))?;
    Placed::new(template, &region, job.mode, job.fill)
}

impl Shared {
    fn run(&self, writer: &mut Writer) -> Work {
        let mut work = Work::start(self.cancel.clone());
        while !self.cancel.is_cancelled() {
            let Some(unit) = lock(&self.units).pop_front() else { break };
            work.stages.about(self.about_file(unit.file));
            work.stages.enter(Stage::Open);
            let waiting = lock(&self.units).len() as u32;
            let busy = self.busy.fetch_add(1, Ordering::Relaxed) + 1;
            work.reading.share = (busy + waiting).min(self.workers);
            work.keeps = unit.is_part;
            let ran = catch_unwind(AssertUnwindSafe(|| self.run_unit(&unit, writer, &mut work)));
            self.busy.fetch_sub(1, Ordering::Relaxed);
            if let Err(panic) = ran {
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
                let Work { stages, begun, .. } = work;
                work = Work { stages, begun, ..Work::start(self.cancel.clone()) };
                self.fail_rest(&unit, writer, &mut work, error);
            }
            self.release(&unit);
        }
        work.stages.about(Ids::default());
        writer.file = None;
        writer.flush(&mut work);
        work.stages.enter_untold(Stage::Open);
        work
    }

    fn run_unit(&self, unit: &Unit, writer: &mut Writer, work: &mut Work) {
        writer.begin(unit.targets.len());
        writer.file = Some(unit.file);
        work.begun.clear();
        let object = match self.open(unit.file) {
            Ok(object) => object,
            Err((missing, message)) => {
                work.stages.fail(&reopen_error(missing, &message));
                return self.fail_rest(unit, writer, work, || reopen_error(missing, &message));
            }
        };
        if self.run_opened(unit, &object, writer, work) {
            return;
        }
        // The index was behind the server: what it kept is asked for again.
        self.open_again(unit.file, &object);
        match self.open(unit.file) {
            Ok(object) => {
                self.run_opened(unit, &object, writer, work);
            }
            Err((missing, message)) => {
                work.stages.fail(&reopen_error(missing, &message));
                self.fail_rest(unit, writer, work, || reopen_error(missing, &message));
            }
        }
    }

    /// Cut the targets of a unit that were not told yet; false where the object is not the
    /// version that was assumed.
    fn run_opened(
        &self,
        unit: &Unit,
        object: &Object,
        writer: &mut Writer,
        work: &mut Work,
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
        let mut placed = VecDeque::new();
        let about = object.about();
        for (index, &target) in unit.targets.iter().enumerate() {
            if writer.reported[index] {
                continue;
            }
            match place(&self.job, &template, target) {
                Ok(mut place) => {
                    place.about = self.about_in(target, &about);
                    placed.push_back((index, place));
                }
                Err(error) => {
                    writer.fail(index, target, error, &self.about_in(target, &about), work)
                }
            }
        }
        let opened = Opened { unit, object, template: &template };
        while !placed.is_empty() && !self.cancel.is_cancelled() {
            if !self.run_part(opened, take_part(&mut placed), writer, work) {
                return false;
            }
        }
        true
    }

    /// Cut what fits in memory at once. Where that fails, cut one by one: only the targets that
    /// need the damaged part are lost. False where the object is not the version that was assumed.
    fn run_part(
        &self,
        opened: Opened<'_>,
        part: Vec<(usize, Placed)>,
        writer: &mut Writer,
        work: &mut Work,
    ) -> bool {
        let tried = self.cut(opened, part.clone(), writer, work);
        let Err(mut error) = tried else { return true };
        if opened.object.is_stale(&error) {
            return false;
        }
        let alone = part.len() == 1;
        for (index, placed) in part {
            if writer.reported[index] || self.cancel.is_cancelled() {
                continue;
            }
            if !alone {
                match self.cut(opened, vec![(index, placed)], writer, work) {
                    Ok(()) => continue,
                    Err(own) => error = own,
                }
            }
            if !matches!(error, EngineError::Interrupted) {
                let message = error.to_string();
                let own = std::mem::replace(&mut error, reopen_error(false, &message));
                let target = opened.unit.targets[index];
                writer.fail(index, target, own, &self.about(target, opened.object), work);
            }
        }
        true
    }

    /// Cut, and hand on each result; those of a stream whose checksum is still to come only
    /// when it has come.
    fn cut(
        &self,
        Opened { unit, object, template }: Opened<'_>,
        part: Vec<(usize, Placed)>,
        writer: &mut Writer,
        work: &mut Work,
    ) -> Result<(), EngineError> {
        let mut held = Vec::new();
        let hold = object.is_unverified();
        assemble::cut(object, template, part, work, &mut |index, cutout, work| {
            let target = unit.targets[index];
            match cutout {
                Ok(cutout) if hold => held.push((index, cutout)),
                Ok(cutout) => writer.give(index, target, cutout, &self.job, work),
                Err(error) => writer.fail(index, target, error, &self.about(target, object), work),
            }
            Ok(())
        })?;
        if hold {
            work.stages.enter(Stage::Read);
            let settled = object.settle(&self.cancel);
            work.reading.add(object.take_traffic());
            settled.inspect_err(|error| work.stages.fail(error))?;
        }
        for (index, cutout) in held {
            writer.give(index, unit.targets[index], cutout, &self.job, work);
        }
        Ok(())
    }

    /// The object, opened once for all its units.
    fn open(&self, file: usize) -> Result<Arc<Object>, (bool, String)> {
        let mut slot = lock(&self.files[file]);
        if slot.opened.is_none() {
            let Job { files, stores, .. } = &self.job;
            let opened = Object::open(&files[file], stores, slot.fresh, self.cancel.clone());
            slot.missing = opened.as_ref().is_err_and(EngineError::is_missing);
            slot.opened = Some(opened.map(Arc::new).map_err(|error| error.to_string()));
        }
        match &slot.opened {
            Some(Ok(object)) => Ok(object.clone()),
            Some(Err(message)) => Err((slot.missing, message.clone())),
            None => Err((false, "not opened".into())),
        }
    }

    /// Forget an object that was opened at a version it no longer has.
    fn open_again(&self, file: usize, stale: &Object) {
        let mut slot = lock(&self.files[file]);
        slot.fresh = true;
        if let Some(Ok(object)) = &slot.opened
            && std::ptr::eq(&**object, stale)
        {
            slot.opened = None;
        }
    }

    /// Close the object after its last unit, and keep what was learnt of it.
    fn release(&self, unit: &Unit) {
        let mut slot = lock(&self.files[unit.file]);
        slot.units_left -= 1;
        if slot.units_left > 0 {
            return;
        }
        if let Some(Ok(object)) = slot.opened.take() {
            drop(slot);
            if let Err(error) = object.settle(&self.cancel)
                && !matches!(error, EngineError::Interrupted)
            {
                lock(&self.notes).push(error.to_string());
            }
            lock(&self.notes).extend(object.take_notes());
        }
    }

    fn fail_rest(
        &self,
        unit: &Unit,
        writer: &mut Writer,
        work: &mut Work,
        mut error: impl FnMut() -> EngineError,
    ) {
        let object = self.about_file(unit.file);
        for (index, &target) in unit.targets.iter().enumerate() {
            if !writer.reported.get(index).copied().unwrap_or(false) {
                writer.fail(index, target, error(), &self.about_in(target, &object), work);
            }
        }
    }

    /// What the events of an object are about; nothing while none are recorded.
    fn about_file(&self, file: usize) -> Ids {
        if !swathe_trace::is_on() {
            return Ids::default();
        }
        about(&self.job.stores.called(&self.job.files[file]))
    }

    /// What the events of a target are about; nothing while none are recorded.
    fn about(&self, target: usize, object: &Object) -> Ids {
        self.about_in(target, &object.about())
    }

    fn about_in(&self, target: usize, object: &Ids) -> Ids {
        let mut ids = Ids::default();
        if swathe_trace::is_on() {
            let Target { name, id, .. } = &self.job.targets[target];
            ids.push("TARGET", id.as_ref().unwrap_or(name));
            ids.extend(object);
        }
        ids
    }
}

/// Take from the front what fits in memory at once, at least one.
fn take_part(placed: &mut VecDeque<(usize, Placed)>) -> Vec<(usize, Placed)> {
    let mut bytes = 0;
    let mut part = Vec::new();
    while let Some((_, next)) = placed.front() {
        bytes += next.bytes;
        if !part.is_empty() && bytes > UNIT_BYTES {
            break;
        }
        part.extend(placed.pop_front());
    }
    part
}

/// An error that many targets share, told again.
fn reopen_error(missing: bool, message: &str) -> EngineError {
    EngineError::Shared { missing, message: message.to_string() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Panics are caught per unit; what these locks guard is whole between statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hashes and writes the results of one thread, and reports each target once.
struct Writer {
    output: Arc<Output>,
    rows: Sender<Row>,
    version: String,
    /// The object of the unit, as long as there is one.
    file: Option<usize>,
    /// Which targets of the unit were reported or are waiting.
    reported: Vec<bool>,
    waiting: Vec<Waiting>,
    waiting_bytes: usize,
}

struct Waiting {
    target: usize,
    name: String,
    version: String,
    bytes: Vec<u8>,
    about: Ids,
    file: usize,
}

impl Writer {
    fn new(output: Arc<Output>, rows: Sender<Row>) -> Writer {
        Writer {
            output,
            rows,
            version: String::new(),
            file: None,
            reported: Vec::new(),
            waiting: Vec::new(),
            waiting_bytes: 0,
        }
    }

    fn begin(&mut self, targets: usize) {
        self.reported.clear();
        self.reported.resize(targets, false);
        self.version.clear();
    }

    fn give(
        &mut self,
        index: usize,
        target: usize,
        mut cutout: Cutout,
        job: &Job,
        work: &mut Work,
    ) {
        #[cfg(test)]
        tests::may_panic(&job.files[job.targets[target].file]);
        let name = job.targets[target].name.clone();
        let about = std::mem::take(&mut cutout.about);
        match self.output.form(cutout, &name) {
            Err(error) => self.fail(index, target, error, &about, work),
            Ok(bytes) => {
                self.reported[index] = true;
                self.waiting_bytes += bytes.len();
                let version = self.version.clone();
                let file = job.targets[target].file;
                self.waiting.push(Waiting { target, name, version, bytes, about, file });
                if self.waiting.len() >= HASHED_TOGETHER || self.waiting_bytes > WAITING_BYTES {
                    self.flush(work);
                }
            }
        }
    }

    fn fail(
        &mut self,
        index: usize,
        target: usize,
        error: EngineError,
        about: &Ids,
        work: &mut Work,
    ) {
        if swathe_trace::is_on() {
            let now = Instant::now();
            work.begin(index, now, about);
            tell_end("CUT_END", now, about, None, Some(&error));
        }
        if let Some(reported) = self.reported.get_mut(index) {
            *reported = true;
        }
        self.report(target, self.version.clone(), Err(error));
    }

    fn flush(&mut self, work: &mut Work) {
        let file = self.file;
        let of_one = file.is_some() && self.waiting.iter().all(|each| Some(each.file) == file);
        let began = if of_one {
            work.stages.enter(Stage::Hash);
            work.stages.moved(self.waiting_bytes as u64);
            None
        } else {
            Some(work.stages.enter_untold(Stage::Hash))
        };
        let messages: Vec<&[u8]> = self.waiting.iter().map(|waiting| &waiting.bytes[..]).collect();
        let digests = sha256::digests(&messages);
        let hashed = work.stages.enter_untold(Stage::Write);
        let mut now = hashed;
        let traced = swathe_trace::is_on();
        for (waiting, sha256) in std::mem::take(&mut self.waiting).into_iter().zip(digests) {
            let bytes = waiting.bytes.len() as u64;
            if traced {
                // All of one target together: what they are about is recorded once.
                if let Some(began) = began {
                    tell_start("HASH_START", began, &waiting.about);
                    tell_end("HASH_END", hashed, &waiting.about, None, None);
                }
                tell_start("WRITE_START", now, &waiting.about);
            }
            let written = self.output.put(&waiting.name, &waiting.bytes);
            if traced {
                now = Instant::now();
                let error = written.as_ref().err();
                let told = error.is_none().then_some(bytes);
                tell_end("WRITE_END", now, &waiting.about, told, error);
                tell_end("CUT_END", now, &waiting.about, told, error);
            }
            let outcome = written.map(|()| Written { bytes, sha256 });
            self.report(waiting.target, waiting.version, outcome);
        }
        self.waiting_bytes = 0;
        work.stages.enter_untold(Stage::Assemble);
    }

    fn report(&self, target: usize, version: String, outcome: Result<Written, EngineError>) {
        // Nobody listens any more only when the batch was dropped: then nobody wants the row.
        let _ = self.rows.send(Row { target, version, outcome });
    }
}

#[cfg(test)]
mod tests;
