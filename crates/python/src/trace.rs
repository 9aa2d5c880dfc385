//! Events: recording and reading them.

use crate::buffers::fill_view;
use crate::errors::raise;
use pyo3::exceptions::{PyBaseException, PyOSError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyString, PyTuple};
use std::ffi::c_int;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use swathe_trace::{
    ClockReply, DictColumn, EventTable, Field, Ids, Level, Line, ReadError, StartError, is_key,
};

/// Numbers of one kind, through the buffer protocol.
#[pyclass(frozen, module = "swathe._swathe")]
pub(crate) struct Column {
    values: Values,
}

enum Values {
    Times(Vec<i64>),
    Codes(Vec<i32>),
    Numbers(Vec<f64>),
}

impl Values {
    fn start_and_bytes(&self) -> (*const u8, usize) {
        match self {
            Values::Times(values) => (values.as_ptr().cast(), size_of_val(&values[..])),
            Values::Codes(values) => (values.as_ptr().cast(), size_of_val(&values[..])),
            Values::Numbers(values) => (values.as_ptr().cast(), size_of_val(&values[..])),
        }
    }
}

#[pymethods]
impl Column {
    /// # Safety
    /// Called by Python with a valid view. The memory belongs to the column, which the view's
    /// reference to `slf` keeps alive and nothing changes.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let (start, length) = slf.get().values.start_and_bytes();
        // SAFETY: see above.
        unsafe { fill_view(slf.as_any(), start, length, view, flags) }
    }
}

/// A column, and its words if its values are codes.
type Read<'py> = (Column, Option<Bound<'py, PyTuple>>);

/// Times, names, other columns by key, damaged lines with reasons, and how many those are.
type Events<'py> = (Column, Read<'py>, Vec<(String, Read<'py>)>, Vec<(u64, String)>, u64);

/// Read files of ULM lines.
#[pyfunction]
pub(crate) fn read_ulm(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Events<'_>> {
    let mut signal = None;
    let table = py.detach(|| {
        swathe_trace::read(&paths, &mut || {
            signal = Python::attach(|py| py.check_signals()).err();
            signal.is_none()
        })
    });
    let EventTable { time_ns, event, fields, damaged_lines, damaged_count } = match (table, signal)
    {
        (Err(ReadError::Interrupted), Some(signal)) => return Err(signal),
        (table, _) => table.map_err(|error| raise(py, read_class(&error), error.to_string()))?,
    };
    let field = |(key, field)| {
        let column = match field {
            Field::Words(column) => words(py, column)?,
            Field::Numbers(numbers) => (Column { values: Values::Numbers(numbers) }, None),
        };
        Ok((key, column))
    };
    let fields = fields.into_iter().map(field).collect::<PyResult<_>>()?;
    let damaged_lines =
        damaged_lines.into_iter().map(|damage| (damage.line, damage.reason)).collect();
    let times = Column { values: Values::Times(time_ns) };
    Ok((times, words(py, event)?, fields, damaged_lines, damaged_count))
}

fn words(py: Python<'_>, DictColumn { codes, words }: DictColumn) -> PyResult<Read<'_>> {
    Ok((Column { values: Values::Codes(codes) }, Some(PyTuple::new(py, words)?)))
}

fn read_class(error: &ReadError) -> &'static str {
    match error {
        ReadError::Io { source, .. } => match source.kind() {
            std::io::ErrorKind::NotFound => "NotFoundError",
            std::io::ErrorKind::PermissionDenied => "AccessError",
            _ => "SourceError",
        },
        _ => "FormatError",
    }
}

/// An event as a line. See `_swathe.pyi`.
#[pyfunction]
#[pyo3(signature = (time_ns, host, name, fields, *, prog="swathe"))]
pub(crate) fn ulm_line(
    time_ns: i64,
    host: String,
    name: String,
    fields: &Bound<'_, PyDict>,
    prog: &str,
) -> PyResult<String> {
    let mut line = Line {
        time_ns,
        host,
        prog: prog.into(),
        level: "Usage".into(),
        event: name,
        fields: Vec::with_capacity(fields.len()),
    };
    for (key, value) in fields.iter() {
        let key = field_key(&key)?;
        if OWN[..FIRST].contains(&&key[..]) {
            return Err(own_key(&key));
        }
        let Some(value) = field_text(&value)? else { continue };
        if is_error(&key, &value) {
            line.level = "Error".into();
        }
        line.fields.push((key, value));
    }
    let mut text = Vec::new();
    line.push(&mut text);
    Ok(String::from_utf8(text)?)
}

/// The times of a line `CLOCK_REPLY`. See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn clock_reply(py: Python<'_>, line: &[u8]) -> PyResult<Option<(i64, i64, i64)>> {
    let reply = ClockReply::parse(line);
    let reply = reply.map_err(|error| raise(py, "FormatError", error.to_string()))?;
    Ok(reply.map(|reply| (reply.asked_ns, reply.received_ns, reply.sent_ns)))
}

/// A file that lines are appended to. See `_swathe.pyi`.
#[pyclass(frozen, module = "swathe._swathe")]
pub(crate) struct RotatingFile {
    inner: Mutex<swathe_trace::RotatingFile>,
}

#[pymethods]
impl RotatingFile {
    #[new]
    #[pyo3(signature = (path, *, rotate_bytes, keep))]
    fn new(py: Python<'_>, path: PathBuf, rotate_bytes: Option<u64>, keep: u32) -> PyResult<Self> {
        let file = py.detach(|| swathe_trace::RotatingFile::open(&path, rotate_bytes, keep));
        let inner = file.map_err(|error| os_error(py, &error))?;
        Ok(RotatingFile { inner: Mutex::new(inner) })
    }

    /// Make room for whole lines; why the file cannot be renamed.
    fn begin(&self, py: Python<'_>, length: u64) -> PyResult<Option<Py<PyBaseException>>> {
        let stays = self.with_file(py, |file| file.begin(length))?;
        Ok(stays.map(|error| os_error(py, &error).into_value(py)))
    }

    /// Append some of the bytes; how many.
    fn append(&self, py: Python<'_>, content: &[u8]) -> PyResult<usize> {
        self.with_file(py, |file| file.append(content))
    }
}

impl RotatingFile {
    fn with_file<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut swathe_trace::RotatingFile) -> io::Result<T> + Send,
    ) -> PyResult<T> {
        // What it guards is whole between statements.
        py.detach(|| work(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner)))
            .map_err(|error| os_error(py, &error))
    }
}

/// The error of a call of the system, as Python raises it.
fn os_error(py: Python<'_>, error: &io::Error) -> PyErr {
    let Some(number) = error.raw_os_error() else {
        return PyOSError::new_err(error.to_string());
    };
    match py.import("os").and_then(|os| os.call_method1("strerror", (number,))) {
        Ok(text) => PyOSError::new_err((number, text.unbind())),
        Err(error) => error,
    }
}

/// Keys that every event has of itself.
const OWN: [&str; 7] = ["DATE", "HOST", "PROG", "LVL", "NL.EVNT", "PID", "THREAD"];
/// The fields among these that every line has.
const FIRST: usize = 5;
/// Keys that events of the engine have of themselves.
const ENGINE: [&str; 8] =
    ["TARGET", "OBJECT", "REQUEST", "STORE", "PEER", "BYTES", "RESULT", "REASON"];

/// Start recording events.
#[pyfunction]
pub(crate) fn trace_start(
    py: Python<'_>,
    place: &str,
    prog: &str,
    host: &str,
    token: Option<String>,
) -> PyResult<()> {
    py.detach(|| swathe_trace::start(place, prog, host, token)).map_err(|error| {
        let class = match error {
            StartError::Io { .. } => "OutputError",
            _ => "TraceError",
        };
        raise(py, class, error.to_string())
    })
}

/// Stop recording; how many events were recorded, dropped and written.
#[pyfunction]
pub(crate) fn trace_stop(py: Python<'_>) -> (u64, u64, u64) {
    let counts = py.detach(swathe_trace::stop).unwrap_or_default();
    (counts.recorded_events, counts.dropped_events, counts.written_events)
}

/// Whether events are recorded.
#[pyfunction]
pub(crate) fn trace_is_on() -> bool {
    swathe_trace::is_on()
}

/// Record nothing in a forked child.
#[pyfunction]
pub(crate) fn trace_forget() {
    swathe_trace::forget();
}

/// Record an event.
#[pyfunction]
pub(crate) fn trace_event(name: &str, fields: &Bound<'_, PyDict>) -> PyResult<()> {
    if !is_key(name) {
        return Err(no_key("the name of an event", name));
    }
    let mut level = Level::Usage;
    let mut ids = Ids::default();
    let mut keys = Vec::with_capacity(fields.len());
    for (key, value) in fields.iter() {
        let Some((key, value)) = field(&key, &value)? else { continue };
        if keys.contains(&key) {
            return Err(PyValueError::new_err(format!("the event {name} has {key} twice")));
        }
        if is_error(&key, &value) {
            level = Level::Error;
        }
        ids.push(&key, &value);
        keys.push(key);
    }
    if !swathe_trace::is_on() {
        return Ok(());
    }
    let scope = scope_of(fields.py())?;
    let is_hidden = |(key, _): &&(String, String)| keys.contains(key);
    if scope.ids().iter().any(|id| is_hidden(&id)) {
        // What the event says of itself counts.
        let rest = scope.ids().iter().filter(|id| !is_hidden(id)).cloned().collect();
        swathe_trace::Scope::new(rest).adopt();
    } else {
        scope.adopt();
    }
    swathe_trace::event(level, name, &ids, |_| {});
    Ok(())
}

/// Ids that all events of a context of Python carry: of a thread, or of one of its tasks.
#[pyclass(frozen, module = "swathe._swathe")]
pub(crate) struct Scope {
    inner: swathe_trace::Scope,
}

#[pymethods]
impl Scope {
    /// Make them those of this context.
    fn enter(slf: &Bound<'_, Self>) -> PyResult<()> {
        variable(slf.py())?.call_method1(intern!(slf.py(), "set"), (slf,)).map(drop)
    }
}

/// The scope of each context. Native threads adopt it when Python enters native code.
fn variable(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static VARIABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let variable = VARIABLE.get_or_try_init(py, || -> PyResult<_> {
        let none = PyDict::new(py);
        none.set_item("default", Scope { inner: swathe_trace::Scope::default() })?;
        let class = py.import("contextvars")?.getattr("ContextVar")?;
        Ok(class.call(("swathe.trace",), Some(&none))?.unbind())
    })?;
    Ok(variable.bind(py))
}

/// The scope of the context that this thread is in.
pub(crate) fn scope_of(py: Python<'_>) -> PyResult<swathe_trace::Scope> {
    let scope = variable(py)?.call_method0(intern!(py, "get"))?;
    Ok(scope.cast::<Scope>()?.get().inner.clone())
}

/// Add ids to all events of this context, `keep`: those it lacks; returns the ids before.
#[pyfunction]
pub(crate) fn trace_scope<'py>(
    ids: &Bound<'py, PyDict>,
    keep: bool,
) -> PyResult<Bound<'py, Scope>> {
    let py = ids.py();
    let before = scope_of(py)?;
    let mut all = before.ids().to_vec();
    for (key, value) in ids.iter() {
        let Some((key, value)) = field(&key, &value)? else { continue };
        if ENGINE.contains(&&key[..]) {
            return Err(PyValueError::new_err(format!(
                "{key} is of single events, not of a scope"
            )));
        }
        if keep && all.iter().any(|(other, _)| *other == key) {
            continue;
        }
        all.retain(|(other, _)| *other != key);
        all.push((key, value));
    }
    Scope::enter(&Bound::new(py, Scope { inner: swathe_trace::Scope::new(all) })?)?;
    Bound::new(py, Scope { inner: before })
}

/// A field as it is written; none for `None`.
fn field(key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<Option<(String, String)>> {
    let key = field_key(key)?;
    if OWN.contains(&&key[..]) {
        return Err(own_key(&key));
    }
    Ok(field_text(value)?.map(|text| (key, text)))
}

fn field_key(key: &Bound<'_, PyAny>) -> PyResult<String> {
    let mut key: String = key.extract()?;
    key.make_ascii_uppercase();
    if is_key(&key) { Ok(key) } else { Err(no_key("the key of a field", &key)) }
}

/// A value as it is written; none for `None`.
fn field_text(value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if value.is_none() {
        return Ok(None);
    }
    // Text is UTF-8 here: half a surrogate pair is not.
    let text = if let Ok(text) = value.cast::<PyString>() {
        text.to_string_lossy().into_owned()
    } else if value.is_instance_of::<PyBool>() {
        (if value.is_truthy()? { "true" } else { "false" }).to_string()
    } else {
        value.str()?.to_string_lossy().into_owned()
    };
    Ok(Some(text))
}

/// Whether a field makes an event an error.
fn is_error(key: &str, value: &str) -> bool {
    key == "RESULT" && value == "error"
}

fn own_key(key: &str) -> PyErr {
    PyValueError::new_err(format!("{key} is what every event has of itself"))
}

fn no_key(what: &str, text: &str) -> PyErr {
    let text: String = text.chars().take(80).collect();
    PyValueError::new_err(format!(
        "{what}: expected A-Z first, then A-Z, 0-9, '.', '_' and '-', 64 at most, got {text:?}"
    ))
}
