//! Chunks of arrays: their filters.

use crate::errors::{raise, wrong};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use swathe_codecs::chunk::{Filters, Scratch};

/// Decode a chunk. See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn decode_chunk<'py>(
    py: Python<'py>,
    filters_json: &str,
    skips: u32,
    data: &[u8],
    decoded_bytes: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let filters: Filters = serde_json::from_str(filters_json).map_err(wrong)?;
    let mut out = Vec::new();
    py.detach(|| filters.decode(data, skips, decoded_bytes, &mut Scratch::default(), &mut out))
        .map_err(|error| raise(py, "FormatError", error.to_string()))?;
    Ok(PyBytes::new(py, &out))
}
