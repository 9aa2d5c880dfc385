//! Every error of the engine as one of the Python classes in `swathe.errors`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;
use swathe_array::RegionError;
use swathe_engine::EngineError;
use swathe_store_api::StoreError;

/// The Python class for an error. Exhaustive if the crates allow it; a variant added later
/// without a class here raises the base class, which a test looks for.
pub(crate) fn class_name(error: &EngineError) -> &'static str {
    match error {
        EngineError::Store(error) => match error {
            StoreError::NotFound { .. } => "NotFoundError",
            StoreError::Forbidden { .. } => "AccessError",
            StoreError::Changed { .. } | StoreError::Differs { .. } => "ChangedError",
            StoreError::NoIndex { .. } => "DatasetError",
            StoreError::Exists { .. } => "OutputExistsError",
            _ => "SourceError",
        },
        EngineError::Shared { missing: true, .. } => "NotFoundError",
        EngineError::Empty { .. }
        | EngineError::NotAnImage { .. }
        | EngineError::Truncated { .. }
        | EngineError::Stream { .. }
        | EngineError::Header { .. }
        | EngineError::LostHdus { .. }
        | EngineError::NotFits { .. }
        | EngineError::ChunkIndex { .. }
        | EngineError::Tile { .. } => "FormatError",
        EngineError::NoSuchHdu { .. } => "NoSuchHduError",
        EngineError::NoArray { .. } => "NoSuchArrayError",
        EngineError::Region { source, .. } => match source {
            RegionError::NoOverlap { .. } => "NoOverlapError",
            RegionError::Partial { .. } => "PartialOverlapError",
            _ => "RegionError",
        },
        EngineError::Planes { .. }
        | EngineError::Fill { .. }
        | EngineError::TooLarge { .. }
        | EngineError::MostlyOutside { .. }
        | EngineError::Memory { .. }
        | EngineError::TooMany { .. } => "RegionError",
        EngineError::OutputExists { .. } => "OutputExistsError",
        EngineError::Output { .. }
        | EngineError::OutputIsSource { .. }
        | EngineError::OutputKind { .. } => "OutputError",
        _ => "SwatheError",
    }
}

/// The exception to raise for an error: that of the signal, if one interrupted the work.
pub(crate) fn to_python(py: Python<'_>, error: &EngineError) -> PyErr {
    if let EngineError::Interrupted = error
        && let Err(signal) = py.check_signals()
    {
        return signal;
    }
    raise(py, class_name(error), error.to_string())
}

/// An exception of a class in `swathe.errors`, wherever the package defines it.
pub(crate) fn raise(py: Python<'_>, class: &str, message: String) -> PyErr {
    let class = py
        .import("swathe")
        .and_then(|package| package.getattr("errors"))
        .and_then(|errors| errors.getattr(class))
        .and_then(|class| Ok(class.cast_into::<PyType>()?));
    match class {
        Ok(class) => PyErr::from_type(class, (message,)),
        Err(error) => error,
    }
}

/// A wrong argument.
pub(crate) fn wrong(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}
