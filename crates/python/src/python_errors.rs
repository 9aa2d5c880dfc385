//! Exceptions of stores that are written in Python, as errors of stores.

use pyo3::exceptions::{
    PyConnectionError, PyException, PyFileExistsError, PyFileNotFoundError, PyImportError,
    PyKeyboardInterrupt, PyNotImplementedError, PyOSError, PyPermissionError, PyTimeoutError,
};
use pyo3::prelude::*;
use swathe_store_api::{Failure, StoreError, Version};

/// Longest text of an exception in an error, in characters.
const LONGEST_TEXT: usize = 2_000;

/// A call of a store that is written in Python.
pub(crate) struct PythonCall<'a> {
    /// The object, as users may see it.
    pub(crate) url: &'a str,
    /// The version that is read, if one is.
    pub(crate) version: Option<&'a Version>,
}

impl<'a> PythonCall<'a> {
    /// A call about an object or a folder.
    pub(crate) fn about(url: &'a str) -> PythonCall<'a> {
        PythonCall { url, version: None }
    }

    /// Run `work` with the GIL: no other lock may be held that a thread of Python waits for.
    pub(crate) fn run<T>(
        &self,
        work: impl FnOnce(Python<'_>) -> PyResult<T>,
    ) -> Result<T, StoreError> {
        let result = Python::try_attach(|py| work(py).map_err(|error| self.error(py, &error)));
        // The interpreter is shutting down, and does not wait for this thread.
        result.unwrap_or_else(|| Err(StoreError::Interrupted { url: self.url.to_string() }))
    }

    /// The same for a part of writing: what a broken connection ended is tried again.
    pub(crate) fn run_write<T>(
        &self,
        work: impl FnOnce(Python<'_>) -> PyResult<T>,
    ) -> Result<T, Failure> {
        let mut may_pass = false;
        let result = self.run(|py| {
            work(py).inspect_err(|error| {
                may_pass = error.is_instance_of::<PyConnectionError>(py)
                    || error.is_instance_of::<PyTimeoutError>(py);
            })
        });
        result.map_err(|error| match may_pass {
            true => Failure::passing(error),
            false => Failure::from(error),
        })
    }

    fn error(&self, py: Python<'_>, error: &PyErr) -> StoreError {
        let url = self.url.to_string();
        let class = Class::of(py, error);
        let text = self.text_of(py, error, &class);
        let why = if text.is_empty() { String::new() } else { format!("; {text}") };
        match class {
            Class::Missing => StoreError::NotFound { url, why },
            Class::Forbidden => StoreError::Forbidden { url, why },
            Class::Exists => StoreError::Exists { url },
            Class::Changed => {
                let version = self.version.map(Version::to_string).unwrap_or_default();
                StoreError::Changed { url, version }
            }
            Class::Unsupported => StoreError::Unsupported { url, why: text },
            Class::Io(code) => {
                StoreError::Io { url, source: std::io::Error::from_raw_os_error(code) }
            }
            Class::Interruption => {
                if error.is_instance_of::<PyKeyboardInterrupt>(py) {
                    interrupt_main(py);
                }
                StoreError::Interrupted { url }
            }
            Class::Other | Class::Own => StoreError::Network { url, why: text },
        }
    }

    /// What an exception says, without the object at its start; of a class that is not ours, also the
    /// name of the class.
    fn text_of(&self, py: Python<'_>, error: &PyErr, class: &Class) -> String {
        let text = error.value(py).str().map(|text| text.to_string()).unwrap_or_default();
        let text: String = text.chars().take(LONGEST_TEXT).collect();
        let text = text.strip_prefix(&format!("{}: ", self.url)).unwrap_or(&text).to_string();
        if !matches!(class, Class::Other) {
            return text;
        }
        let class = error.get_type(py).name().map(|name| name.to_string()).unwrap_or_default();
        format!("{class}: {text}")
    }
}

/// What an exception calls for.
enum Class {
    Missing,
    Forbidden,
    Exists,
    Changed,
    Unsupported,
    /// An error of the operating system, by its number.
    Io(i32),
    /// No error, but an end of the work, as Ctrl-C.
    Interruption,
    /// Another of the package.
    Own,
    Other,
}

impl Class {
    fn of(py: Python<'_>, error: &PyErr) -> Class {
        let is_ours = |class: &str| {
            let errors = py.import("swathe").and_then(|package| package.getattr("errors"));
            let class = errors.and_then(|errors| errors.getattr(class));
            class.is_ok_and(|class| error.matches(py, class).unwrap_or(false))
        };
        if !error.is_instance_of::<PyException>(py) {
            Class::Interruption
        } else if error.is_instance_of::<PyFileNotFoundError>(py) {
            Class::Missing
        } else if error.is_instance_of::<PyPermissionError>(py) {
            Class::Forbidden
        } else if error.is_instance_of::<PyFileExistsError>(py) {
            Class::Exists
        } else if is_ours("ChangedError") {
            Class::Changed
        } else if error.is_instance_of::<PyNotImplementedError>(py)
            || error.is_instance_of::<PyImportError>(py)
            || is_ours("StoreSettingsError")
        {
            Class::Unsupported
        } else if let Some(code) = system_error(py, error) {
            Class::Io(code)
        } else if is_ours("SwatheError") {
            Class::Own
        } else {
            Class::Other
        }
    }
}

/// Tell the main thread of Python, as Ctrl-C does: it raises the exception.
fn interrupt_main(py: Python<'_>) {
    let result = py.import("_thread").and_then(|module| module.call_method0("interrupt_main"));
    if let Err(error) = result {
        error.write_unraisable(py, None);
    }
}

/// The number of an error of the operating system that is not one of a connection.
fn system_error(py: Python<'_>, error: &PyErr) -> Option<i32> {
    let is_connection =
        error.is_instance_of::<PyConnectionError>(py) || error.is_instance_of::<PyTimeoutError>(py);
    if is_connection || !error.is_instance_of::<PyOSError>(py) {
        return None;
    }
    error.value(py).getattr("errno").ok()?.extract().ok()
}
