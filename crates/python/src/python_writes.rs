//! Writing to stores that are written in Python.

use crate::python_errors::PythonCall;
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use swathe_store_api::{Comparison, Failure, PartAlgorithm, PartSums, Sink};

/// An object that is being written: `swathe.stores.protocol.ObjectWriter`.
pub(crate) struct PythonSink {
    writer: Option<Py<PyAny>>,
    url: String,
}

impl PythonSink {
    pub(crate) fn new(writer: Py<PyAny>, url: String) -> PythonSink {
        PythonSink { writer: Some(writer), url }
    }
}

impl Sink for PythonSink {
    fn write(&mut self, part: Bytes) -> Result<(), Failure> {
        let Some(writer) = &self.writer else { return Ok(()) };
        PythonCall::about(&self.url).run_write(|py| {
            writer.bind(py).call_method1("write", (PyBytes::new(py, &part),)).map(drop)
        })
    }

    fn finish(
        mut self: Box<Self>,
        _sums: &PartSums,
        _part_bytes: u64,
        replaces: bool,
    ) -> Result<Comparison, Failure> {
        if let Some(writer) = &self.writer {
            PythonCall::about(&self.url)
                .run_write(|py| writer.bind(py).call_method1("finish", (replaces,)).map(drop))?;
        }
        self.writer = None;
        Ok(Comparison::Missing)
    }
}

impl Drop for PythonSink {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            // What it leaves behind nobody sees, and the store removes it later.
            let _ = PythonCall::about(&self.url)
                .run(|py| writer.bind(py).call_method0("abort").map(drop));
        }
    }
}

/// An object that is being written to another store: `swathe.stores.protocol.FrontWriter`.
pub(crate) struct FrontSink {
    inner: Option<Box<dyn Sink>>,
    /// Told when it is written, or that it is not: in Python, as its name is there.
    writer: PythonSink,
}

impl FrontSink {
    pub(crate) fn new(writer: Py<PyAny>, url: String) -> FrontSink {
        FrontSink { inner: None, writer: PythonSink::new(writer, url) }
    }

    /// The same, with what writes to the other store.
    pub(crate) fn over(self, inner: Box<dyn Sink>) -> FrontSink {
        FrontSink { inner: Some(inner), ..self }
    }
}

impl Sink for FrontSink {
    fn write(&mut self, part: Bytes) -> Result<(), Failure> {
        self.inner.as_mut().map_or(Ok(()), |inner| inner.write(part))
    }

    fn part_algorithm(&self) -> PartAlgorithm {
        self.inner.as_ref().map_or(PartAlgorithm::Crc32, |inner| inner.part_algorithm())
    }

    /// Finish the object of the other store, whose name is new, then that of this one.
    fn finish(
        self: Box<Self>,
        sums: &PartSums,
        part_bytes: u64,
        replaces: bool,
    ) -> Result<Comparison, Failure> {
        let FrontSink { inner, writer } = *self;
        let comparison = match inner {
            Some(inner) => inner.finish(sums, part_bytes, true)?,
            None => Comparison::Missing,
        };
        Box::new(writer).finish(sums, part_bytes, replaces)?;
        Ok(comparison)
    }
}
