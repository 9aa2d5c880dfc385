//! `Copies`: objects on their way from store to store; files on their way into place.

use crate::errors::{class_name, to_python};
use crate::stores::Stores;
use crate::trace::scope_of;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::time::Duration;
use swathe_engine::EngineError;
use swathe_store::{CopyOrder, CopyRoute};

/// Rename files, up to the first that cannot be. See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn rename_each(py: Python<'_>, moves: Vec<(String, String)>) -> usize {
    py.detach(|| swathe_store::rename_each(&moves))
}

/// Remove a folder and all in it. See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn remove_folder(py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
    Ok(py.detach(|| std::fs::remove_dir_all(path))?)
}

/// Objects that are being copied. See `_swathe.pyi`.
#[pyclass(frozen, module = "swathe._swathe")]
pub(crate) struct Copies {
    inner: swathe_store::Copies,
}

#[pyclass(frozen, get_all, module = "swathe._swathe")]
pub(crate) struct CopyOutcome {
    number: usize,
    version: String,
    read_back: bool,
    by_servers: bool,
    detour: Option<String>,
    notes: Vec<String>,
    kind: Option<&'static str>,
    reason: String,
}

#[pymethods]
impl Copies {
    #[new]
    #[pyo3(signature = (orders, threads, stores))]
    fn new(
        py: Python<'_>,
        orders: Vec<(String, Option<String>, String, bool)>,
        threads: usize,
        stores: &Stores,
    ) -> PyResult<Copies> {
        let order = |(from, version, to, replaces)| CopyOrder { from, version, to, replaces };
        let orders = orders.into_iter().map(order).collect();
        scope_of(py)?.adopt();
        // Not through the user's blocks: copied bytes are not read again.
        let inner = swathe_store::Copies::start(stores.inner.clone(), orders, threads);
        Ok(Copies { inner: inner.map_err(|error| to_python(py, &error.into()))? })
    }

    /// Outcomes since the last call, after at most `timeout_s`; `None` when all are returned.
    fn poll(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<Vec<CopyOutcome>>> {
        let timeout = Duration::try_from_secs_f64(timeout_s)
            .map_err(|error| PyValueError::new_err(format!("timeout_s: {error}")))?;
        let outcomes = py.detach(|| self.inner.poll(timeout));
        py.check_signals()?;
        Ok(outcomes.map(|outcomes| outcomes.into_iter().map(CopyOutcome::new).collect()))
    }

    /// Bytes written so far.
    #[getter]
    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }

    fn cancel(&self) {
        self.inner.stop();
    }
}

impl CopyOutcome {
    fn new(outcome: swathe_store::CopyOutcome) -> CopyOutcome {
        let number = outcome.number;
        let nothing = CopyOutcome {
            number,
            version: String::new(),
            read_back: false,
            by_servers: false,
            detour: None,
            notes: Vec::new(),
            kind: None,
            reason: String::new(),
        };
        match outcome.outcome {
            Ok(swathe_store::CopyResult { version, read_back, notes, route }) => {
                let (version, by_servers) = (version.to_string(), route == CopyRoute::Servers);
                let detour = match route {
                    CopyRoute::Detour(why) => Some(why),
                    CopyRoute::Servers | CopyRoute::Here => None,
                };
                CopyOutcome { version, read_back, by_servers, detour, notes, ..nothing }
            }
            Err(error) => {
                let error = EngineError::from(error);
                let (kind, reason) = (Some(class_name(&error)), error.to_string());
                CopyOutcome { kind, reason, ..nothing }
            }
        }
    }
}
