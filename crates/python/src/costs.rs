//! The formula of costs, element by element of NumPy's arrays.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::cell::Cell;
use swathe_plan::{Costs, Requests};

type Array = PyBuffer<f64>;

/// Seconds of one request of each size on an idle connection. See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn request_s(py: Python<'_>, costs: &str, out: Array, size: Array) -> PyResult<()> {
    let costs = parse_costs(costs)?;
    fill(py, &out, [&size], |[size]| costs.request.seconds(size))
}

/// Seconds of requests to a store. See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn requests_s(
    py: Python<'_>,
    costs: &str,
    out: Array,
    size: Array,
    count: Array,
    streams: Array,
    largest: Array,
) -> PyResult<()> {
    let costs = parse_costs(costs)?;
    fill(py, &out, [&size, &count, &streams, &largest], |[size, count, streams, largest]| {
        costs.requests_s(Requests::new(count, streams), size, largest)
    })
}

/// Seconds of requests whose answers share a line. See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn line_s(
    py: Python<'_>,
    out: Array,
    count: Array,
    streams: Array,
    wait_s: Array,
    sending_s: Array,
) -> PyResult<()> {
    fill_batches(
        py,
        &out,
        [&count, &streams],
        [&wait_s, &sending_s],
        |requests, [wait, sending]| requests.line_s(wait, sending),
    )
}

/// Seconds of requests to a server that makes one wait for another. See `_swathe.pyi`.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // the terms of the formula
pub(crate) fn queue_s(
    py: Python<'_>,
    works: bool,
    out: Array,
    count: Array,
    streams: Array,
    each_s: Array,
    own_s: Array,
    serve_s: Array,
) -> PyResult<()> {
    let inputs = [&each_s, &own_s, &serve_s];
    fill_batches(py, &out, [&count, &streams], inputs, |requests, [each, own, serve]| {
        requests.queue_s(each, own, serve, works)
    })
}

fn parse_costs(costs: &str) -> PyResult<Costs> {
    let costs: Costs =
        serde_json::from_str(costs).map_err(|error| PyValueError::new_err(error.to_string()))?;
    costs.check().map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(costs)
}

/// Write to `out` what a formula says of each element of the inputs.
fn fill<const N: usize>(
    py: Python<'_>,
    out: &Array,
    inputs: [&Array; N],
    formula: impl Fn([f64; N]) -> f64,
) -> PyResult<()> {
    let (out, inputs) = cells_of(py, out, inputs)?;
    fill_cells(out, inputs, formula);
    Ok(())
}

/// The same for batches of requests: the first axis of `out` and of the inputs.
fn fill_batches<const N: usize>(
    py: Python<'_>,
    out: &Array,
    [count, streams]: [&Array; 2],
    inputs: [&Array; N],
    formula: impl Fn(Requests, [f64; N]) -> f64,
) -> PyResult<()> {
    let (out, inputs) = cells_of(py, out, inputs)?;
    let (count, streams) = (count.to_vec(py)?, streams.to_vec(py)?);
    if count.len() != streams.len() {
        return Err(unlike(count.len(), streams.len()));
    }
    let points = out.len() / count.len().max(1);
    if points * count.len() != out.len() {
        return Err(PyValueError::new_err(format!(
            "arrays: expected a multiple of {} numbers, found {}",
            count.len(),
            out.len()
        )));
    }
    for (batch, (count, streams)) in count.into_iter().zip(streams).enumerate() {
        let here = batch * points..(batch + 1) * points;
        let requests = Requests::new(count, streams);
        let inputs = inputs.map(|input| &input[here.clone()]);
        fill_cells(&out[here], inputs, |terms| formula(requests, terms));
    }
    Ok(())
}

#[inline]
fn fill_cells<const N: usize>(
    out: &[Cell<f64>],
    inputs: [&[Cell<f64>]; N],
    formula: impl Fn([f64; N]) -> f64,
) {
    let inputs = inputs.map(|input| &input[..out.len()]);
    for (at, cell) in out.iter().enumerate() {
        cell.set(formula(inputs.map(|input| input[at].get())));
    }
}

type Cells<'a> = &'a [Cell<f64>];

/// The memory of `out` and of the inputs.
fn cells_of<'a, const N: usize>(
    py: Python<'a>,
    out: &'a Array,
    inputs: [&'a Array; N],
) -> PyResult<(Cells<'a>, [Cells<'a>; N])> {
    if out.readonly() {
        return Err(PyValueError::new_err(
            "out: expected an array to write, found a read-only one",
        ));
    }
    let out = cells(py, out)?;
    let mut all = [out; N];
    for (input, array) in all.iter_mut().zip(inputs) {
        *input = cells(py, array)?;
        if input.len() != out.len() {
            return Err(unlike(out.len(), input.len()));
        }
    }
    Ok((out, all))
}

fn cells<'a>(_py: Python<'a>, array: &'a Array) -> PyResult<Cells<'a>> {
    let slice = array
        .as_slice_ptr()
        .ok_or_else(|| PyValueError::new_err("an array: expected a contiguous one"))?;
    // SAFETY: the buffer keeps the memory alive and is of f64. Nothing else changes it, since this
    // thread has the GIL (`_py`) and calls nothing of Python; where arrays overlap, cells may, too.
    Ok(unsafe { &*(slice.as_ptr() as *const [Cell<f64>]) })
}

fn unlike(expected: usize, found: usize) -> PyErr {
    PyValueError::new_err(format!("an array: expected {expected} numbers, found {found}"))
}
