//! The results of one thread: hashed in groups, written, and reported.

use super::progress::Progress;
use super::{ResultFile, Row};
use crate::cutout::Cutout;
use crate::error::EngineError;
use crate::job::Job;
use crate::output::Output;
use crate::sha256;
use crate::timing::{Stage, record_end, record_start};
use crate::worker_context::WorkerContext;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;
use swathe_trace::Ids;

/// Results hashed together: the hash runs over up to 16 messages at once.
const HASHED_TOGETHER: usize = 16;
/// Results waiting for their hash.
const WAITING_BYTES: usize = 4 << 20;

/// Hashes and writes the results of one thread, and reports each target once.
pub(super) struct ResultWriter {
    output: Arc<Output>,
    rows: Sender<Vec<Row>>,
    /// Number of the thread.
    pub thread: usize,
    pub version: String,
    /// The store of the unit, if it is another than the division gave it.
    pub store: Option<usize>,
    /// The object of the unit, until the unit is done.
    pub file: Option<usize>,
    /// Which targets of the unit were reported or are waiting.
    pub is_reported: Vec<bool>,
    waiting: Vec<PendingResult>,
    waiting_bytes: usize,
}

struct PendingResult {
    target: usize,
    name: String,
    version: String,
    store: Option<usize>,
    bytes: Vec<u8>,
    about: Ids,
    file: usize,
}

impl ResultWriter {
    pub fn new(output: Arc<Output>, rows: Sender<Vec<Row>>, thread: usize) -> ResultWriter {
        ResultWriter {
            output,
            rows,
            thread,
            version: String::new(),
            store: None,
            file: None,
            is_reported: Vec::new(),
            waiting: Vec::new(),
            waiting_bytes: 0,
        }
    }

    pub fn begin(&mut self, targets: usize) {
        self.is_reported.clear();
        self.is_reported.resize(targets, false);
        self.version.clear();
    }

    pub fn write(
        &mut self,
        index: usize,
        target: usize,
        cutout: Cutout,
        job: &Job,
        progress: &Progress,
        work: &mut WorkerContext,
    ) {
        #[cfg(test)]
        super::tests::may_panic(&job.files[job.targets[target].file]);
        let (name, file) = (job.targets[target].name.clone(), job.targets[target].file);
        let about = work.take_about(index);
        match self.output.form(cutout, &name) {
            Err(error) => self.fail(index, target, error, about, work),
            Ok(bytes) => {
                self.is_reported[index] = true;
                progress.add(self.thread, target);
                self.waiting_bytes += bytes.len();
                let (version, store) = (self.version.clone(), self.store);
                let result = PendingResult { target, name, version, store, bytes, about, file };
                self.waiting.push(result);
                if self.waiting.len() >= HASHED_TOGETHER || self.waiting_bytes > WAITING_BYTES {
                    self.flush(work);
                }
            }
        }
    }

    pub fn fail(
        &mut self,
        index: usize,
        target: usize,
        error: EngineError,
        about: Ids,
        work: &mut WorkerContext,
    ) {
        if swathe_trace::is_on() {
            let now = Instant::now();
            work.about(index, about);
            work.begin(index, now);
            record_end(&["CUT_END"], now, &work.take_about(index), None, Some(&error));
        }
        if let Some(is_reported) = self.is_reported.get_mut(index) {
            *is_reported = true;
        }
        let (version, store) = (self.version.clone(), self.store);
        self.report(vec![Row { target, version, store, outcome: Err(error) }]);
    }

    pub fn flush(&mut self, work: &mut WorkerContext) {
        let file = self.file;
        let of_one = file.is_some() && self.waiting.iter().all(|each| Some(each.file) == file);
        let began = if of_one {
            work.stages.enter(Stage::Hash);
            work.stages.add_bytes(self.waiting_bytes as u64);
            None
        } else {
            Some(work.stages.enter_without_event(Stage::Hash))
        };
        let messages: Vec<&[u8]> = self.waiting.iter().map(|waiting| &waiting.bytes[..]).collect();
        let digests = sha256::digests(&messages);
        let hash_end = work.stages.enter_without_event(Stage::Write);
        let mut now = hash_end;
        let is_traced = swathe_trace::is_on();
        let mut rows = Vec::with_capacity(self.waiting.len());
        for (waiting, sha256) in std::mem::take(&mut self.waiting).into_iter().zip(digests) {
            let bytes = waiting.bytes.len() as u64;
            if is_traced {
                // All of one target together: what they are about is recorded once.
                if let Some(began) = began {
                    record_start("HASH_START", began, &waiting.about);
                    record_end(&["HASH_END"], hash_end, &waiting.about, None, None);
                }
                record_start("WRITE_START", now, &waiting.about);
            }
            let result = self.output.put(&waiting.name, &waiting.bytes);
            if is_traced {
                now = Instant::now();
                let error = result.as_ref().err();
                let result_bytes = error.is_none().then_some(bytes);
                record_end(&["WRITE_END", "CUT_END"], now, &waiting.about, result_bytes, error);
            }
            let PendingResult { target, version, store, bytes: spare, .. } = waiting;
            work.spare.keep(spare);
            let outcome = result.map(|()| ResultFile { bytes, sha256 });
            rows.push(Row { target, version, store, outcome });
        }
        self.report(rows);
        self.waiting_bytes = 0;
        work.stages.enter_without_event(Stage::Assemble);
    }

    fn report(&self, rows: Vec<Row>) {
        // Nobody listens any more only when the batch was dropped: then nobody wants the rows.
        let _ = self.rows.send(rows);
    }
}
