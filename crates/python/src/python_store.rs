//! Stores that are written in Python: those of schemes that packages add.
//!
//! `swathe.stores.store_kinds.store_at` returns the object of a store, whose methods are those of
//! `swathe.stores.protocol.ObjectStore`. It is asked for with each call, so that a process forked
//! since gets one of its own, and so that a store is created without the GIL.

use crate::python_errors::PythonCall;
use crate::python_source::{PythonSource, Status};
use crate::python_writes::{FrontSink, PythonSink};
use crate::source;
use crate::stores::Stores;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator};
use std::sync::Arc;
use swathe_store::{no_such_scheme, percent_decode, percent_encode, redact_url};
use swathe_store_api::{
    Entry, LONGEST_PATH_BYTES, ListItem, ListOptions, Listing, ObjectName, Sink, Source, Store,
    StoreError, StoreSettings, is_hidden,
};

/// Objects of one page of a listing.
const PAGE: usize = 1_000;
/// The scheme of stores in front of others: their objects are opened and written in those.
const FRONT: &str = "cache";
/// Bytes of a path that are written as they are in a URL.
const PLAIN: &[u8] = b"-._~/!$&'()*+,;=:@";

/// The store with these settings.
pub(crate) fn connect(settings: StoreSettings) -> Arc<dyn Store> {
    Arc::new(PythonStore { settings })
}

/// A store that is written in Python.
#[derive(Clone, Debug)]
struct PythonStore {
    settings: StoreSettings,
}

impl PythonStore {
    /// Whether its objects lie in other stores: `swathe.stores.protocol.FrontStore`.
    fn is_front(&self) -> bool {
        self.settings.scheme() == FRONT
    }

    /// The path of an object or a folder in the store.
    fn path_of(&self, url: &str) -> Result<String, StoreError> {
        let wrong = |why: &str| StoreError::Unsupported { url: redact_url(url), why: why.into() };
        let rest = url.strip_prefix(&self.settings.root).unwrap_or_default();
        let path = String::from_utf8(percent_decode(rest.trim_matches('/')))
            .map_err(|_| wrong("expected the name of an object in UTF-8"))?;
        if path.len() > LONGEST_PATH_BYTES {
            return Err(wrong(&format!(
                "expected a name of at most {LONGEST_PATH_BYTES} bytes, found {}",
                path.len()
            )));
        }
        if path.contains('\0') || path.split('/').any(|part| matches!(part, "." | "..")) {
            return Err(wrong("expected a name without '.', '..' or null characters as parts"));
        }
        if path.contains("//") {
            return Err(wrong("expected a name without empty parts"));
        }
        Ok(path)
    }

    /// The path of an object.
    fn object_path(&self, url: &str) -> Result<String, StoreError> {
        let path = self.path_of(url)?;
        if path.is_empty() || url.ends_with('/') {
            let why = "expected the name of an object, found a folder".to_string();
            return Err(StoreError::Unsupported { url: redact_url(url), why });
        }
        Ok(path)
    }

    /// Call its object in Python.
    fn call<T>(
        &self,
        url: &str,
        work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Result<T, StoreError> {
        let url = self.display_url(url);
        let result = PythonCall::about(&url).run(|py| {
            let options = PyDict::new(py);
            for (name, value) in &self.settings.options {
                options.set_item(name, value)?;
            }
            let kinds = py.import("swathe.stores.store_kinds")?;
            let store = kinds.call_method1("store_at", (&self.settings.root, options))?;
            if store.is_none() { Ok(None) } else { work(&store).map(Some) }
        });
        result?.ok_or_else(|| no_such_scheme(&url))
    }
}

impl Store for PythonStore {
    fn settings(&self) -> &StoreSettings {
        &self.settings
    }

    fn object_key(&self, url: &str) -> String {
        self.display_url(url)
    }

    fn url_of(&self, path: &str) -> String {
        let path = percent_encode(path.trim_start_matches('/'), PLAIN);
        format!("{}/{path}", self.settings.root)
    }

    fn display_url(&self, url: &str) -> String {
        redact_url(url)
    }

    /// What cannot be written to says so when it is asked.
    fn is_writable(&self) -> bool {
        true
    }

    /// The room of a store in front of others is limited, so it is told the size first.
    fn takes_any_size(&self) -> bool {
        !self.is_front()
    }

    fn open(&self, object: ObjectName<'_>) -> Result<Arc<dyn Source>, StoreError> {
        let path = self.object_path(object.url)?;
        if self.is_front() {
            return self.call(object.url, |store| {
                let source = store.call_method1("open_source", (&path,))?;
                Ok(source.cast::<source::Source>()?.get().inner.clone())
            });
        }
        let (status, store) = self.call(object.url, |store| {
            let status: Status = store.call_method1("stat", (&path,))?.extract()?;
            Ok((status, store.clone().unbind()))
        })?;
        let (url, costs) = (self.display_url(object.url), self.settings.costs.clone());
        Ok(Arc::new(PythonSource::new(store, path, url, &status, costs)))
    }

    fn list(
        &self,
        object: ObjectName<'_>,
        options: ListOptions,
    ) -> Result<Box<dyn Listing>, StoreError> {
        let prefix = self.path_of(object.url)?;
        let (store, url) = (self.clone(), object.url.to_string());
        let is_folder = object.url.ends_with('/');
        let state = ListingState::Unasked;
        Ok(Box::new(PythonListing {
            store,
            url,
            prefix,
            is_folder,
            options,
            state,
            is_empty: true,
        }))
    }

    fn create(
        &self,
        object: ObjectName<'_>,
        size: u64,
        in_parts: bool,
    ) -> Result<Box<dyn Sink>, StoreError> {
        let path = self.object_path(object.url)?;
        if self.is_front() {
            let (writer, stores, name) = self.call(object.url, |store| {
                let writer = store.call_method1("begin_write", (&path, size))?;
                let stores = writer.getattr("stores")?.cast::<Stores>()?.get().inner.clone();
                let name: String = writer.getattr("name")?.extract()?;
                Ok((writer.unbind(), stores, name))
            })?;
            // Dropped if the object cannot be begun, it takes back what it noted.
            let sink = FrontSink::new(writer, self.display_url(object.url));
            return Ok(Box::new(sink.over(stores.create(&name, size, in_parts)?)));
        }
        let writer =
            self.call(object.url, |store| Ok(store.call_method1("create", (&path,))?.unbind()))?;
        Ok(Box::new(PythonSink::new(writer, self.display_url(object.url))))
    }

    fn remove(&self, object: ObjectName<'_>) -> Result<(), StoreError> {
        let path = self.object_path(object.url)?;
        self.call(object.url, |store| store.call_method1("remove", (&path,)).map(drop))
    }
}

/// How far a listing is.
enum ListingState {
    Unasked,
    Begun(Py<PyIterator>),
    Ended,
}

/// The objects at or below a path, as the iterator of a store gives them.
struct PythonListing {
    store: PythonStore,
    url: String,
    prefix: String,
    /// Whether only objects below the path are listed.
    is_folder: bool,
    options: ListOptions,
    state: ListingState,
    is_empty: bool,
}

impl PythonListing {
    /// The next objects of the store, and whether there may be more.
    fn take(&mut self) -> Result<(Vec<Entry>, bool), StoreError> {
        if let ListingState::Unasked = self.state {
            let objects = self.store.call(&self.url, |store| {
                let objects = store.call_method1("list", (&self.prefix,))?;
                Ok(objects.try_iter()?.unbind())
            })?;
            self.state = ListingState::Begun(objects);
        }
        let ListingState::Begun(objects) = &self.state else { return Ok((Vec::new(), false)) };
        let url = self.store.display_url(&self.url);
        PythonCall::about(&url).run(|py| {
            let objects = objects.bind(py).clone();
            let page: PyResult<Vec<Entry>> =
                objects.take(PAGE).map(|object| Ok(object?.extract::<Status>()?.into())).collect();
            let page = page?;
            let is_full = page.len() == PAGE;
            Ok((page, is_full))
        })
    }

    /// What of a path lies below the listed one; `None` if it is not listed.
    fn below<'a>(&self, path: &'a str) -> Option<&'a str> {
        if self.prefix.is_empty() {
            return Some(path);
        }
        match path.strip_prefix(&self.prefix)? {
            "" => (!self.is_folder).then_some(""),
            rest => rest.strip_prefix('/'),
        }
    }
}

impl Listing for PythonListing {
    fn next_page(&mut self) -> Result<Option<Vec<ListItem>>, StoreError> {
        if let ListingState::Ended = self.state {
            return Ok(None);
        }
        let (mut page, has_more) = self.take()?;
        if !has_more {
            self.state = ListingState::Ended;
        }
        page.retain(|entry| self.below(&entry.path).is_some());
        self.is_empty &= page.is_empty();
        if self.is_empty && !has_more && !self.options.may_lack && !self.prefix.is_empty() {
            let (url, why) = (self.store.display_url(&self.url), ": no such folder".to_string());
            return Err(StoreError::NotFound { url, why });
        }
        let is_listed = |entry: &Entry| {
            self.options.with_hidden || !self.below(&entry.path).is_some_and(is_hidden)
        };
        Ok(Some(page.into_iter().filter(is_listed).map(ListItem::Object).collect()))
    }
}
