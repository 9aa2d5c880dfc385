//! `Listing`: what stores hold.

use crate::gil::enter;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};
use swathe_engine::Cancel;
use swathe_store_api::{Entry, ListItem};

/// Path, bytes, time, ETag, and why it could not be listed.
type ListedRow = (String, Option<u64>, Option<String>, Option<String>, Option<String>);

/// The objects of a store below a prefix, page by page. See `_swathe.pyi`.
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
    fn next_page(&self, py: Python<'_>) -> PyResult<Option<Vec<ListedRow>>> {
        let inner = self.inner.clone();
        let page = enter(py, &Cancel::default(), move || {
            Ok(inner.lock().unwrap_or_else(PoisonError::into_inner).next_page()?)
        })?;
        let row = |item: ListItem| match item {
            ListItem::Object(Entry { path, size, modified, etag }) => {
                (path, size, modified, etag, None)
            }
            ListItem::Unlisted { path, why } => (path, None, None, None, Some(why)),
        };
        Ok(page.map(|page| page.into_iter().map(row).collect()))
    }

    /// The warnings since the last call.
    fn take_notes(&self, py: Python<'_>) -> Vec<String> {
        // Who has the lock may wait for the GIL.
        py.detach(|| self.inner.lock().unwrap_or_else(PoisonError::into_inner).take_notes())
    }
}
