//! Chunks of arrays and of objects: their filters and checksums.

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

/// The CRC-32C of bytes that follow on others. See `_swathe.pyi`.
#[pyfunction]
#[pyo3(signature = (data, start=0))]
pub(crate) fn crc32c(py: Python<'_>, data: &[u8], start: u32) -> u32 {
    py.detach(|| ::crc32c::crc32c_append(start, data))
}
