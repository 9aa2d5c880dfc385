//! `Listing`: what buckets hold.

use crate::gil::enter;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};
use swathe_engine::Cancel;

/// Path, bytes, time and ETag.
type Entry = (String, u64, String, Option<String>);

/// The objects of a bucket, page by page. See `_swathe.pyi`.
#[pyclass(frozen, module = "swathe._swathe")]
pub(crate) struct Listing {
    inner: Arc<Mutex<Box<dyn swathe_store_api::Listing>>>,
}

impl Listing {
    pub(crate) fn new(inner: Box<dyn swathe_store_api::Listing>) -> Listing {
        Listing { inner: Arc::new(Mutex::new(inner)) }
    }
}

#[pymethods]
impl Listing {
    /// The next page; `None` when all were returned.
    fn next_page(&self, py: Python<'_>) -> PyResult<Option<Vec<Entry>>> {
        let inner = self.inner.clone();
        let page = enter(py, &Cancel::default(), move || {
            Ok(inner.lock().unwrap_or_else(PoisonError::into_inner).next_page()?)
        })?;
        let entry = |entry: swathe_store_api::Entry| {
            let swathe_store_api::Entry { path, size, modified, etag } = entry;
            (path, size, modified, etag)
        };
        Ok(page.map(|page| page.into_iter().map(entry).collect()))
    }
}
