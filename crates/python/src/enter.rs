//! The one way from Python into long work: without the GIL, with Ctrl-C, with errors mapped.

use crate::errors::to_python;
use crate::trace::scope_of;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use swathe_engine::{Cancel, EngineError};

/// How long Ctrl-C may go unnoticed.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// Run `work` on a thread of its own while this one waits for it or for a signal. On a signal
/// `cancel` is set and the signal's exception raised; the thread then ends by itself. Signals reach
/// only the main thread of Python: any other runs `work` itself. Its events have the ids of the
/// context of Python that it is called in.
pub(crate) fn enter<T: Send + 'static>(
    py: Python<'_>,
    cancel: &Cancel,
    work: impl FnOnce() -> Result<T, EngineError> + Send + 'static,
) -> PyResult<T> {
    let scope = scope_of(py)?;
    if !is_main(py)? {
        scope.adopt();
        return match py.detach(|| catch_unwind(AssertUnwindSafe(work))) {
            Ok(result) => result.map_err(|error| to_python(py, &error)),
            Err(_) => Err(panicked(py)),
        };
    }
    let (sender, mut receiver) = channel();
    let spawned = std::thread::Builder::new().name("swathe".into()).spawn(move || {
        scope.enter();
        // The receiver is gone only if a signal ended the wait: then nobody wants the result.
        let _ = sender.send(work());
    });
    if let Err(source) = spawned {
        return Err(to_python(
            py,
            &EngineError::Internal {
                place: "starting a thread".into(),
                message: source.to_string(),
            },
        ));
    }
    loop {
        let (waited, kept) = py.detach(move || (receiver.recv_timeout(SIGNALS_EVERY), receiver));
        match waited {
            Ok(result) => return result.map_err(|error| to_python(py, &error)),
            Err(RecvTimeoutError::Timeout) => {
                receiver = kept;
                if let Err(signal) = py.check_signals() {
                    cancel.cancel();
                    return Err(signal);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Err(panicked(py)),
        }
    }
}

fn panicked(py: Python<'_>) -> PyErr {
    to_python(
        py,
        &EngineError::Internal {
            place: "native code".into(),
            message: "a thread panicked; the message is on standard error".into(),
        },
    )
}

/// Whether this is the main thread of Python.
fn is_main(py: Python<'_>) -> PyResult<bool> {
    static ASK: PyOnceLock<(Py<PyAny>, Py<PyAny>)> = PyOnceLock::new();
    let (main, current) = ASK.get_or_try_init(py, || -> PyResult<_> {
        let threading = py.import("threading")?;
        let function = |name| Ok::<_, PyErr>(threading.getattr(name)?.unbind());
        Ok((function("main_thread")?, function("get_ident")?))
    })?;
    main.bind(py).call0()?.getattr("ident")?.eq(current.bind(py).call0()?)
}
