//! The block server, which runs until a signal.

use crate::errors::raise;
use pyo3::prelude::*;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use swathe_block_server::{BlockServer, Settings, Tokens};

/// How long a signal may go unnoticed.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);
/// How long answers that are under way may take after a signal.
const LAST: Duration = Duration::from_secs(10);

/// Serve disks. See `_swathe.pyi`.
#[pyfunction]
#[pyo3(signature = (
    disks, address, port, tell, *, write_token=None, read_token=None, certificate=None,
    max_bytes=None, forget=Vec::new(),
))]
#[allow(clippy::too_many_arguments)] // as the stub has them
pub(crate) fn serve_disks(
    py: Python<'_>,
    disks: Vec<PathBuf>,
    address: IpAddr,
    port: u16,
    tell: &Bound<'_, PyAny>,
    write_token: Option<String>,
    read_token: Option<String>,
    certificate: Option<(PathBuf, PathBuf)>,
    max_bytes: Option<u64>,
    forget: Vec<PathBuf>,
) -> PyResult<()> {
    let tokens = Tokens { write: write_token, read: read_token };
    let settings = Settings { disks, forget, max_bytes, address, port, tokens, certificate };
    let server = py.detach(|| BlockServer::start(settings));
    let server = server.map_err(|error| raise(py, "SettingsError", error.to_string()))?;
    tell.call1((server.address().port(), server.missing_disks().to_vec()))?;
    let signal = loop {
        py.detach(|| std::thread::sleep(SIGNALS_EVERY));
        if let Err(signal) = py.check_signals() {
            break signal;
        }
    };
    // A second signal ends it at once.
    let start = Instant::now();
    while !py.detach(|| server.drain(SIGNALS_EVERY)) && start.elapsed() < LAST {
        py.check_signals()?;
    }
    py.detach(|| drop(server));
    Err(signal)
}
