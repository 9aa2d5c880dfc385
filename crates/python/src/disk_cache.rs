//! The caches on local disk: the index and the blocks.

use crate::gil::enter;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use swathe_cache::BlockCache;
use swathe_disk_cache::DiskCache;
use swathe_engine::Cancel;
use swathe_store_api::StoreError;

#[pyclass(frozen, get_all, module = "swathe._swathe")]
pub(crate) struct CacheUsage {
    name: String,
    folder: PathBuf,
    values: u64,
    bytes: u64,
    limit: u64,
}

/// The content of a folder: "blocks" or "index". See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn cache_usage(py: Python<'_>, name: String) -> PyResult<CacheUsage> {
    let open = opener(&name)?;
    enter(py, &Cancel::default(), move || {
        let cache = open()?;
        let usage = cache.usage()?;
        Ok(CacheUsage {
            name,
            folder: cache.folder().to_path_buf(),
            values: usage.values,
            bytes: usage.bytes,
            limit: usage.limit,
        })
    })
}

/// Empty a folder: "blocks" or "index".
#[pyfunction]
pub(crate) fn clear_cache(py: Python<'_>, name: String) -> PyResult<()> {
    let open = opener(&name)?;
    enter(py, &Cancel::default(), move || Ok(open()?.clear()?))
}

fn opener(name: &str) -> PyResult<fn() -> Result<DiskCache, StoreError>> {
    match name {
        "blocks" => Ok(BlockCache::of_user),
        "index" => Ok(DiskCache::index),
        _ => Err(PyValueError::new_err(format!("expected blocks or index, found {name:?}"))),
    }
}

/// A block cache of numbers. See `_swathe.pyi`.
#[pyclass(module = "swathe._swathe")]
pub(crate) struct SimulatedCache(swathe_disk_cache::SimulatedCache);

#[pymethods]
impl SimulatedCache {
    #[new]
    fn new(limit_bytes: u64) -> Self {
        Self(swathe_disk_cache::SimulatedCache::new(limit_bytes))
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    #[getter]
    fn young_bytes(&self) -> u64 {
        self.0.young_bytes()
    }

    fn note(
        &mut self,
        name: &str,
        blocks: u64,
        block_bytes: u64,
        seconds: f64,
        now_s: f64,
    ) -> Vec<(String, u64)> {
        self.0.note(name, blocks, block_bytes, seconds, now_s)
    }

    fn drop(&mut self, name: &str) {
        self.0.drop(name);
    }
}
