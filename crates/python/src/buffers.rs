//! Memory of ours that Python reads without a copy.

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};

/// Fill a view of `length` bytes, read-only.
///
/// # Safety
/// `view` comes from Python. `owner` keeps the memory alive, and nothing changes it.
pub(crate) unsafe fn fill_view(
    owner: &Bound<'_, PyAny>,
    start: *const u8,
    length: usize,
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("no view to fill"));
    }
    let Ok(length) = ffi::Py_ssize_t::try_from(length) else {
        return Err(PyBufferError::new_err("too many bytes for a buffer"));
    };
    // SAFETY: as the caller says; read-only, so the pointer is never written through.
    let status = unsafe {
        ffi::PyBuffer_FillInfo(view, owner.as_ptr(), start as *mut c_void, length, 1, flags)
    };
    if status == -1 { Err(PyErr::fetch(owner.py())) } else { Ok(()) }
}
