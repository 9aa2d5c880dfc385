//! `Batch` and its rows.

use crate::errors::to_python;
use crate::gil::enter;
use crate::object::{parse_mode, parse_objective, selector, set_traffic};
use crate::stores::{Stores, inner};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use swathe_engine::{
    Cancel, EngineError, ObjectCopy, OpenSources, OutputKind, ReplicaStore, Replicas, Row, STAGES,
    Target,
};
use swathe_plan::Compute;

/// The order for a batch. See `_swathe.pyi`.
#[pyclass(frozen, module = "swathe._swathe")]
pub(crate) struct Job {
    inner: Arc<swathe_engine::Job>,
    /// Predicted seconds of each target, once they were estimated.
    target_s: Mutex<Vec<f32>>,
}

#[pymethods]
impl Job {
    #[new]
    #[pyo3(signature = (files, file, hdu, hdu_index, planes, planes_index, boxes,
                        names, *, output, kind, mode="trim",
                        fill=None, threads=1, append=None, overwrite=false,
                        stores=None, ids=None, most_bytes=None,
                        objective="auto", replicas=None))]
    #[allow(clippy::too_many_arguments)] // a keyword each, checked by the stub
    fn new(
        py: Python<'_>,
        files: Vec<String>,
        file: PyBuffer<i32>,
        hdu: Vec<Bound<'_, PyAny>>,
        hdu_index: PyBuffer<i32>,
        planes: Vec<Vec<(i64, i64)>>,
        planes_index: PyBuffer<i32>,
        boxes: PyBuffer<i64>,
        names: Vec<String>,
        output: PathBuf,
        kind: &str,
        mode: &str,
        fill: Option<f64>,
        threads: usize,
        append: Option<u64>,
        overwrite: bool,
        stores: Option<&Stores>,
        ids: Option<Vec<String>>,
        most_bytes: Option<u64>,
        objective: &str,
        replicas: Option<ReplicaColumns>,
    ) -> PyResult<Job> {
        let selectors = hdu.iter().map(|hdu| selector(Some(hdu))).collect::<PyResult<Vec<_>>>()?;
        let columns = TargetColumns { file, hdu_index, planes_index, boxes, names, ids };
        let targets = columns.targets(py, files.len(), selectors.len(), planes.len())?;
        let inner = swathe_engine::Job {
            replicas: replicas.map(|replicas| check_replicas(replicas, &files)).transpose()?,
            files,
            selectors,
            targets,
            output,
            kind: parse_kind(kind)?,
            append,
            overwrite,
            mode: parse_mode(py, mode)?,
            fill,
            most_bytes,
            planes,
            objective: parse_objective(py, objective)?,
            threads,
            stores: inner(py, stores)?,
            open_sources: OpenSources::default(),
        };
        Ok(Job { inner: Arc::new(inner), target_s: Mutex::default() })
    }

    /// Start cutting into this output, which stays open; by default into the job's own.
    #[pyo3(signature = (output=None))]
    fn start(&self, py: Python<'_>, output: Option<&Output>) -> PyResult<Batch> {
        let output = match output {
            Some(output) => output.get(py)?,
            None => self.open(py)?.get(py)?,
        };
        let job = self.inner.clone();
        let cancel = Cancel::default();
        let token = cancel.clone();
        let target_s = lock(py, &self.target_s)?.clone();
        let inner =
            enter(py, &cancel, move || swathe_engine::Batch::start(job, output, token, &target_s))?;
        Ok(Batch { inner: Mutex::new(Some(inner)), cancel })
    }

    /// Open its output, for batches or for results that Python computes.
    fn open(&self, py: Python<'_>) -> PyResult<Output> {
        let output = py.detach(|| swathe_engine::Output::open(&self.inner));
        let inner = output.map_err(|error| to_python(py, &error))?;
        Ok(Output { inner: Mutex::new(Some(Arc::new(inner))) })
    }

    /// Estimate its costs, storage by storage, as JSON.
    #[pyo3(signature = (compute=None, most=None, machines=1, keeps=false))]
    fn estimate(
        &self,
        py: Python<'_>,
        compute: Option<&str>,
        most: Option<usize>,
        machines: usize,
        keeps: bool,
    ) -> PyResult<String> {
        let wrong = |error: serde_json::Error| PyValueError::new_err(error.to_string());
        let compute: Compute =
            compute.map(serde_json::from_str).transpose().map_err(wrong)?.unwrap_or_default();
        let job = self.inner.clone();
        let cancel = Cancel::default();
        let token = cancel.clone();
        let most = most.unwrap_or(usize::MAX);
        let estimate = enter(py, &cancel, move || {
            swathe_engine::estimate(&job, &compute, most, machines, keeps, &token)
        })?;
        let mut target_s = vec![0.0; self.inner.targets.len()];
        for &(target, seconds) in estimate.iter().flat_map(|each| &each.target_s) {
            target_s[target] = seconds;
        }
        *lock(py, &self.target_s)? = target_s;
        serde_json::to_string(&estimate).map_err(wrong)
    }
}

/// The targets of a job, a column for each field.
struct TargetColumns {
    /// Numbers of their files.
    file: PyBuffer<i32>,
    /// Numbers of their HDUs.
    hdu_index: PyBuffer<i32>,
    /// Numbers of their ranges of planes.
    planes_index: PyBuffer<i32>,
    /// Four numbers for each.
    boxes: PyBuffer<i64>,
    names: Vec<String>,
    ids: Option<Vec<String>>,
}

impl TargetColumns {
    /// The targets of a job with these numbers of files, selectors and ranges of planes.
    fn targets(
        self,
        py: Python<'_>,
        files: usize,
        selectors: usize,
        ranges: usize,
    ) -> PyResult<Vec<Target>> {
        let file = self.file.to_vec(py)?;
        let hdu_index = self.hdu_index.to_vec(py)?;
        let planes_index = self.planes_index.to_vec(py)?;
        let boxes = self.boxes.to_vec(py)?;
        let count = self.names.len();
        let are_whole = [&file, &hdu_index, &planes_index].iter().all(|each| each.len() == count);
        if !are_whole || boxes.len() != 4 * count {
            return Err(PyValueError::new_err(format!(
                "{count} names, but {} files, {} HDUs, {} planes and {} box numbers",
                file.len(),
                hdu_index.len(),
                planes_index.len(),
                boxes.len()
            )));
        }
        let number = |value: i32, limit: usize, what: &str| {
            usize::try_from(value).ok().filter(|&value| value < limit).ok_or_else(|| {
                PyValueError::new_err(format!("{what} {value} is not below {limit}"))
            })
        };
        if self.ids.as_ref().is_some_and(|ids| ids.len() != count) {
            return Err(PyValueError::new_err(format!("{count} names, but another number of ids")));
        }
        let mut ids = self.ids.into_iter().flatten();
        let mut targets = Vec::with_capacity(count);
        for (target, name) in self.names.into_iter().enumerate() {
            targets.push(Target {
                file: number(file[target], files, "file")?,
                hdu: number(hdu_index[target], selectors, "hdu")?,
                planes: number(planes_index[target], ranges, "planes")?,
                pixels: [0, 1, 2, 3].map(|column| boxes[4 * target + column]),
                name,
                id: ids.next(),
            });
        }
        Ok(targets)
    }
}

fn parse_kind(kind: &str) -> PyResult<OutputKind> {
    Ok(match kind {
        "folder" => OutputKind::Folder,
        "zip" => OutputKind::Zip,
        "tar" => OutputKind::Tar,
        "fits" => OutputKind::Fits,
        "null" => OutputKind::Null,
        _ => return Err(PyValueError::new_err(format!("unknown kind of output {kind:?}"))),
    })
}

/// Stores by name and predicted seconds of a target; then for each file the store and URL of its
/// copies, first those of the file itself.
type ReplicaColumns = (Vec<(String, f64)>, Vec<Vec<(usize, String)>>);

/// The replicas of these files.
fn check_replicas((stores, copies): ReplicaColumns, files: &[String]) -> PyResult<Replicas> {
    let count = stores.len();
    let is_of = |(copies, file): (&Vec<(usize, String)>, &String)| {
        copies.iter().all(|&(store, _)| store < count)
            && copies.first().is_some_and(|(_, url)| url == file)
    };
    if copies.len() != files.len() || !copies.iter().zip(files).all(is_of) {
        return Err(PyValueError::new_err(format!(
            "replicas: expected for each of {} files its own store and URL and those of its copies, \
             in one of {count} stores; found others",
            files.len()
        )));
    }
    if stores.iter().any(|&(_, target_s)| !(target_s.is_finite() && target_s >= 0.0)) {
        return Err(PyValueError::new_err(
            "replicas: expected seconds for each store, found others",
        ));
    }
    let copy = |(store, url)| ObjectCopy { store, url };
    Ok(Replicas {
        stores: stores
            .into_iter()
            .map(|(name, target_s)| ReplicaStore { name, target_s })
            .collect(),
        copies: copies.into_iter().map(|each| each.into_iter().map(copy).collect()).collect(),
    })
}

/// The open output of one job or of several.
#[pyclass(frozen, module = "swathe._swathe")]
pub(crate) struct Output {
    inner: Mutex<Option<Arc<swathe_engine::Output>>>,
}

impl Output {
    fn get(&self, py: Python<'_>) -> PyResult<Arc<swathe_engine::Output>> {
        let output = lock(py, &self.inner)?.clone();
        output.ok_or_else(|| PyValueError::new_err("the output is closed"))
    }
}

#[pymethods]
impl Output {
    /// Write a result.
    fn put(&self, py: Python<'_>, name: &str, content: &[u8]) -> PyResult<()> {
        let output = self.get(py)?;
        py.detach(|| output.put(name, content)).map_err(|error| to_python(py, &error))
    }

    /// Close it, with its manifest, a file. All batches have ended.
    #[pyo3(signature = (manifest=None))]
    fn close(&self, py: Python<'_>, manifest: Option<PathBuf>) -> PyResult<()> {
        let output = self.get(py)?;
        lock(py, &self.inner)?.take();
        py.detach(|| output.close(manifest.as_deref())).map_err(|error| to_python(py, &error))
    }
}

/// What a lock guards. A thread that panicked may have left it half done: that is an error, not the
/// end of the rows.
fn lock<'a, T>(py: Python<'_>, mutex: &'a Mutex<T>) -> PyResult<MutexGuard<'a, T>> {
    mutex.lock().map_err(|_| to_python(py, &poison_error()))
}

fn poison_error() -> EngineError {
    EngineError::Internal {
        place: "a batch".into(),
        message: "a thread panicked; the message is on standard error".into(),
    }
}

/// A running batch. Its receiver allows one thread at a time, hence the lock.
#[pyclass(frozen, module = "swathe._swathe")]
pub(crate) struct Batch {
    inner: Mutex<Option<swathe_engine::Batch>>,
    cancel: Cancel,
}

#[pymethods]
impl Batch {
    /// Rows finished since the last call, after at most `timeout_s`; `None` when all are returned.
    fn poll(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<Rows>> {
        let rows = self.wait(py, timeout_s, |batch, timeout| batch.poll(timeout))?;
        Ok(rows.map(Rows::new))
    }

    /// Rows finished since the last call, as soon as there are `enough`, or after `timeout_s`, by
    /// columns; `None` when all are returned.
    fn gather<'py>(
        &self,
        py: Python<'py>,
        enough: usize,
        timeout_s: f64,
    ) -> PyResult<Option<Columns<'py>>> {
        let rows = self.wait(py, timeout_s, |batch, timeout| batch.gather(enough, timeout))?;
        Ok(rows.map(|rows| columns(py, rows)))
    }

    /// The part of the predicted seconds whose targets are done; 1 when it is finished.
    fn progress(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(lock(py, &self.inner)?.as_ref().map_or(1.0, swathe_engine::Batch::progress))
    }

    fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Wait for the threads; what it cost.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Some(batch) = lock(py, &self.inner)?.take() else {
            return Err(PyValueError::new_err("the batch is finished"));
        };
        // Not through `enter`: the threads are waited for even when Ctrl-C comes again.
        let summary = py.detach(|| batch.finish()).map_err(|error| to_python(py, &error))?;
        let cost = PyDict::new(py);
        for (stage, name) in STAGES {
            cost.set_item(name, summary.stages.seconds(stage))?;
        }
        cost.set_item("wall", summary.wall_s)?;
        set_traffic(&cost, summary.traffic)?;
        cost.set_item("notes", summary.notes)?;
        Ok(cost)
    }
}

/// The whole members of a zip archive in their order, whether it has a directory or not, one by one.
#[pyclass(module = "swathe._swathe")]
pub(crate) struct ZipMembers {
    members: swathe_engine::Members<File>,
}

#[pymethods]
impl ZipMembers {
    #[new]
    fn new(path: PathBuf) -> PyResult<ZipMembers> {
        Ok(ZipMembers { members: swathe_engine::Members::of(File::open(path)?)? })
    }

    fn __iter__(members: PyRef<'_, Self>) -> PyRef<'_, Self> {
        members
    }

    /// Name, bytes, and the end of the next.
    fn __next__(&mut self) -> PyResult<Option<(String, u64, u64)>> {
        let member = self.members.next().transpose()?;
        Ok(member.map(|member| (member.name, member.size, member.end)))
    }
}

impl Batch {
    /// Wait for rows, as `ask` does, and let other threads of Python work meanwhile.
    fn wait(
        &self,
        py: Python<'_>,
        timeout_s: f64,
        ask: impl Fn(&swathe_engine::Batch, Duration) -> Option<Vec<Row>> + Sync,
    ) -> PyResult<Option<Vec<Row>>> {
        let timeout = Duration::try_from_secs_f64(timeout_s)
            .map_err(|error| PyValueError::new_err(format!("timeout_s: {error}")))?;
        let rows = py.detach(|| {
            let inner = self.inner.lock().map_err(|_| poison_error())?;
            Ok(inner.as_ref().and_then(|batch| ask(batch, timeout)))
        });
        py.check_signals()?;
        rows.map_err(|error| to_python(py, &error))
    }
}

/// Targets and bytes as 64-bit integers, digests of 32 bytes, the distinct versions, the number of
/// each row's version as 32-bit integers, and failures: index among these rows, status, reason; then
/// the index and the store of rows that were read from another store than the job's file.
type Columns<'py> = (
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Vec<String>,
    Bound<'py, PyBytes>,
    Vec<(usize, &'static str, String)>,
    Vec<(usize, usize)>,
);

fn columns(py: Python<'_>, rows: Vec<Row>) -> Columns<'_> {
    let count = rows.len();
    let mut targets = Vec::with_capacity(8 * count);
    let mut sizes = Vec::with_capacity(8 * count);
    let mut digests = Vec::with_capacity(32 * count);
    let mut codes = Vec::with_capacity(4 * count);
    let (mut versions, mut failures, mut moves) = (Vec::<String>::new(), Vec::new(), Vec::new());
    let mut code_of = HashMap::new();
    for (at, Row { target, version, store, outcome }) in rows.into_iter().enumerate() {
        let code = code_of.get(&version).copied().unwrap_or_else(|| {
            let code = versions.len() as i32;
            code_of.insert(version.clone(), code);
            versions.push(version);
            code
        });
        moves.extend(store.map(|store| (at, store)));
        let (bytes, sha256) = match outcome {
            Ok(result) => (result.bytes, result.sha256),
            Err(error) => {
                failures.push((at, error.status(), error.to_string()));
                (0, [0; 32])
            }
        };
        targets.extend_from_slice(&(target as i64).to_ne_bytes());
        sizes.extend_from_slice(&bytes.to_ne_bytes());
        digests.extend_from_slice(&sha256);
        codes.extend_from_slice(&code.to_ne_bytes());
    }
    (
        PyBytes::new(py, &targets),
        PyBytes::new(py, &sizes),
        PyBytes::new(py, &digests),
        versions,
        PyBytes::new(py, &codes),
        failures,
        moves,
    )
}

/// Finished rows, as parallel lists.
#[pyclass(frozen, get_all, module = "swathe._swathe")]
pub(crate) struct Rows {
    target: Vec<usize>,
    status: Vec<&'static str>,
    reason: Vec<String>,
    bytes: Vec<u64>,
    version: Vec<String>,
    sha256: Vec<String>,
}

impl Rows {
    fn new(source: Vec<Row>) -> Rows {
        let mut rows = Rows {
            target: Vec::new(),
            status: Vec::new(),
            reason: Vec::new(),
            bytes: Vec::new(),
            version: Vec::new(),
            sha256: Vec::new(),
        };
        for row in source {
            rows.target.push(row.target);
            rows.version.push(row.version);
            match row.outcome {
                Ok(result) => {
                    rows.status.push("ok");
                    rows.reason.push(String::new());
                    rows.bytes.push(result.bytes);
                    rows.sha256.push(hex(&result.sha256));
                }
                Err(error) => {
                    rows.status.push(error.status());
                    rows.reason.push(error.to_string());
                    rows.bytes.push(0);
                    rows.sha256.push(String::new());
                }
            }
        }
        rows
    }
}

fn hex(digest: &[u8; 32]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    digest
        .iter()
        .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
        .map(char::from)
        .collect()
}
