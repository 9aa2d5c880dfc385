//! `WindowReader`.

use crate::gil::{enter, stay};
use crate::object::{Object, Pixels, parse_objective};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};
use std::path::PathBuf;
use swathe_array::Region;
use swathe_engine::{Cancel, FileState};

#[pyclass(frozen, module = "swathe._swathe")]
pub(crate) struct WindowReader {
    inner: swathe_engine::WindowReader,
}

/// The elements of a window, and its first and last indices and its shape, slowest axis first.
type Window<'py> = (Pixels, Bound<'py, PyTuple>, Bound<'py, PyTuple>, Bound<'py, PyTuple>);

#[pymethods]
impl WindowReader {
    /// Of an array of a local file that was opened in this state: mode, device, inode, size, and
    /// nanoseconds since 1970 when it was changed.
    #[new]
    fn new(
        py: Python<'_>,
        native: &Object,
        array: String,
        file: PathBuf,
        state: (u32, u64, u64, u64, i128),
    ) -> PyResult<WindowReader> {
        let (mode, device, inode, size, modified_ns) = state;
        let state = FileState { mode, device, inode, size, modified_ns };
        let object = native.inner();
        let inner = enter(py, &Cancel::default(), move || {
            swathe_engine::WindowReader::new(object, array, file, state)
        })?;
        Ok(WindowReader { inner })
    }

    /// Cut a box; `None` if it is no tuple of four integers, or as the engine has it.
    fn cut<'py>(
        &self,
        py: Python<'py>,
        window: &Bound<'py, PyAny>,
        objective: &str,
    ) -> PyResult<Option<Window<'py>>> {
        let objective = parse_objective(py, objective)?;
        let Some(region) = numbers(window).and_then(|numbers| self.inner.region(numbers)) else {
            return Ok(None);
        };
        let Some(cutout) = stay(py, || self.inner.cut(&region, objective))? else {
            return Ok(None);
        };
        let Region { start, stop } = &region;
        let sides = start.iter().zip(stop).map(|(first, last)| last - first);
        let tuple = |numbers: Vec<i64>| PyTuple::new(py, numbers);
        Ok(Some((
            Pixels::new(cutout),
            tuple(start.iter().rev().copied().collect())?,
            tuple(stop.iter().rev().copied().collect())?,
            tuple(sides.rev().collect())?,
        )))
    }
}

/// The four integers of a box.
fn numbers(window: &Bound<'_, PyAny>) -> Option<[i64; 4]> {
    let numbers = window.cast_exact::<PyTuple>().ok()?;
    if numbers.len() != 4 {
        return None;
    }
    let mut corner_and_size = [0; 4];
    for (number, place) in numbers.iter_borrowed().zip(&mut corner_and_size) {
        *place = number.cast_exact::<PyInt>().ok()?.extract().ok()?;
    }
    Some(corner_and_size)
}
