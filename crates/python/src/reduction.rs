//! Pixels binned into the cells of a grid.

use crate::errors::raise;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};
use swathe_regrid::{
    Bounds, Grid, Needs, Partial, Pixels, RegridError, Statistic, gaussian_latitudes,
};

/// A grid that is partly filled. See `_swathe.pyi`.
#[pyclass(frozen)]
pub(crate) struct Reduction(Mutex<Partial>);

#[pymethods]
impl Reduction {
    #[new]
    #[pyo3(signature = (kind, steps, bounds, *, std=false, extremes=false, mode=false))]
    fn new(
        py: Python<'_>,
        kind: &str,
        steps: (f64, f64),
        bounds: (f64, f64, f64, f64),
        std: bool,
        extremes: bool,
        mode: bool,
    ) -> PyResult<Reduction> {
        let (west, south, east, north) = bounds;
        let grid = match kind {
            "gaussian" => Grid::gaussian(steps.0 as usize),
            "healpix" => Grid::healpix(steps.0 as usize, true),
            "healpix-ring" => Grid::healpix(steps.0 as usize, false),
            _ => Grid::regular(steps.0, steps.1, Bounds { west, south, east, north }),
        };
        let grid = grid.map_err(|error| to_python(py, &error))?;
        Ok(Reduction(Mutex::new(Partial::new(grid, Needs { std, extremes, mode }))))
    }

    #[getter]
    fn cells(&self) -> usize {
        self.lock().grid().cells()
    }

    #[getter]
    fn outside(&self) -> u64 {
        self.lock().outside()
    }

    fn edges(&self) -> Option<(Vec<f64>, Vec<f64>)> {
        self.lock().grid().edges().map(|(rows, columns)| (rows.to_vec(), columns.to_vec()))
    }

    #[pyo3(signature = (latitude, longitude, values, valid=None, threads=1))]
    fn add(
        &self,
        py: Python<'_>,
        latitude: PyBuffer<f64>,
        longitude: PyBuffer<f64>,
        values: PyBuffer<f64>,
        valid: Option<PyBuffer<u8>>,
        threads: usize,
    ) -> PyResult<()> {
        let pixels = Pixels {
            latitude: elements(py, &latitude)?,
            longitude: elements(py, &longitude)?,
            values: elements(py, &values)?,
            valid: valid.as_ref().map(|valid| elements(py, valid)).transpose()?,
        };
        py.detach(|| self.lock().add(pixels, threads)).map_err(|error| to_python(py, &error))
    }

    fn merge(&self, py: Python<'_>, other: PyRef<'_, Reduction>) -> PyResult<()> {
        let other = &*other;
        // A copy: locks of two are never held at a time, so that none waits for the other.
        py.detach(|| {
            let copy = other.lock().clone();
            self.lock().merge(&copy)
        })
        .map_err(|error| to_python(py, &error))
    }

    fn write(&self, py: Python<'_>, statistic: &str, out: PyBuffer<f64>) -> PyResult<()> {
        let statistic = match statistic {
            "pixels" => Statistic::Pixels,
            "count" => Statistic::Count,
            "mean" => Statistic::Mean,
            "std" => Statistic::Std,
            "min" => Statistic::Min,
            "max" => Statistic::Max,
            "mode" => Statistic::Mode,
            _ => {
                let expected = "pixels, count, mean, std, min, max or mode";
                let text = format!("statistic: expected {expected}, found {statistic:.40}");
                return Err(raise(py, "OptionError", text));
            }
        };
        let mut values = vec![0.0; out.item_count()];
        self.lock().write(statistic, &mut values).map_err(|error| to_python(py, &error))?;
        out.copy_from_slice(py, &values)
    }
}

impl Reduction {
    fn lock(&self) -> std::sync::MutexGuard<'_, Partial> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The Gaussian latitudes of a number. See `_swathe.pyi`.
#[pyfunction(name = "gaussian_latitudes")]
pub(crate) fn latitudes(number: usize) -> Vec<f64> {
    gaussian_latitudes(number)
}

fn elements<'a, T: Element>(py: Python<'_>, buffer: &'a PyBuffer<T>) -> PyResult<&'a [T]> {
    if !buffer.is_c_contiguous() {
        let text = "pixels: expected arrays in C order, found others".to_owned();
        return Err(raise(py, "OptionError", text));
    }
    if buffer.item_count() == 0 {
        return Ok(&[]);
    }
    // SAFETY: the buffer keeps the memory alive; it is in one piece, and PyBuffer has checked type
    // and alignment. The wrapper in Python passes arrays that nobody else changes meanwhile.
    Ok(unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<T>(), buffer.item_count()) })
}

fn to_python(py: Python<'_>, error: &RegridError) -> PyErr {
    let class = match error {
        RegridError::TooManyCells { .. } => "LimitError",
        RegridError::Lengths { .. } | RegridError::Coordinate { .. } => "RegionError",
        _ => "OptionError",
    };
    raise(py, class, error.to_string())
}
