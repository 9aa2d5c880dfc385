//! `Stores` and their measurements.

use crate::block_peers::blocks;
use crate::errors::{to_python, wrong};
use crate::gil::enter;
use crate::listing::Listing;
use crate::source::{Source, Timing, measure_requests};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use swathe_engine::Cancel;
use swathe_plan::Costs;
use swathe_store_api::{ListOptions, StoreDescription, StoreError, StoreSettings, StripePlace};
use swathe_stripe::Upkeep;

/// The storages that are known, and what they cost, from JSON. See `_swathe.pyi`.
#[pyclass(frozen, module = "swathe._swathe")]
pub(crate) struct Stores {
    pub(crate) inner: swathe_store_api::Stores,
}

#[pymethods]
impl Stores {
    #[new]
    #[pyo3(signature = (stores_json, costs="{}", compute=None))]
    fn new(stores_json: &str, costs: &str, compute: Option<&str>) -> PyResult<Stores> {
        let stores: Vec<StoreDescription> = serde_json::from_str(stores_json).map_err(wrong)?;
        if stores.iter().any(StoreDescription::has_costs) {
            return Err(PyValueError::new_err("costs: expected them beside the stores"));
        }
        let costs: BTreeMap<String, Costs> = serde_json::from_str(costs).map_err(wrong)?;
        costs.values().try_for_each(Costs::check).map_err(wrong)?;
        let stores = stores.into_iter().map(StoreSettings::from).collect();
        let inner = swathe_stripe::stores(stores).with_costs(costs);
        let compute = compute.map(serde_json::from_str).transpose().map_err(wrong)?;
        Ok(Stores { inner: inner.computing(compute.unwrap_or_default()) })
    }

    /// Key of the store of an object, and the object's URL or path.
    fn locate(&self, path: &str) -> (String, String) {
        let (store, url) = self.inner.locate(path);
        (store.key(), url)
    }

    /// Whether an object can be written.
    fn is_writable(&self, path: &str) -> bool {
        self.inner.locate(path).0.is_writable()
    }

    /// The path of an object that is a file of this machine.
    fn local_path(&self, path: &str) -> Option<PathBuf> {
        self.inner.file_of(path)
    }

    /// The bearer token that the server of an object is sent.
    fn bearer(&self, py: Python<'_>, path: &str) -> PyResult<Option<String>> {
        self.inner.bearer(path).map_err(|error| to_python(py, &error.into()))
    }

    /// The URL to request an object from its server; `None` for buckets.
    fn http_url(&self, py: Python<'_>, path: &str) -> PyResult<Option<String>> {
        self.inner.http_url(path).map_err(|error| to_python(py, &error.into()))
    }

    /// Open an object to read its bytes, not through the user's blocks.
    fn open(&self, py: Python<'_>, path: String) -> PyResult<Source> {
        let stores = self.inner.clone();
        Ok(Source { inner: enter(py, &Cancel::default(), move || Ok(stores.open(&path)?))? })
    }

    /// The objects below `NAME:prefix`.
    #[pyo3(signature = (place, *, with_hidden=false, may_lack=false, tells_links=false))]
    fn list(
        &self,
        py: Python<'_>,
        place: &str,
        with_hidden: bool,
        may_lack: bool,
        tells_links: bool,
    ) -> PyResult<Listing> {
        let options = ListOptions { with_hidden, may_lack, tells_links };
        let listing = self.inner.list(place, options);
        Ok(Listing::new(listing.map_err(|error| to_python(py, &error.into()))?))
    }

    /// The state of all parts of a striped object, as JSON.
    fn check_stripe(&self, py: Python<'_>, object: &str, deep: bool) -> PyResult<String> {
        self.look_after(py, object, move |upkeep, url| upkeep.check(url, deep))
    }

    /// Rebuild the parts of a striped object that are not whole; what was done, as JSON.
    #[pyo3(signature = (object, deep=true, progress=None))]
    fn repair_stripe(
        &self,
        py: Python<'_>,
        object: &str,
        deep: bool,
        progress: Option<&RepairProgress>,
    ) -> PyResult<String> {
        let progress = progress.map(|progress| progress.0.clone()).unwrap_or_default();
        self.look_after(py, object, move |upkeep, url| upkeep.repair(url, deep, &progress))
    }

    /// The servers of a striped store, as JSON; `count`: with what is on them.
    fn stripe_servers(&self, py: Python<'_>, name: &str, count: bool) -> PyResult<String> {
        self.look_after(py, &format!("{name}:"), move |upkeep, _| Ok(upkeep.server_reports(count)))
    }

    /// One server of a striped store, as JSON; `null` if it has no such one.
    fn stripe_server(&self, py: Python<'_>, name: &str, server: String) -> PyResult<String> {
        let work = move |upkeep: &Upkeep, _: &str| Ok(upkeep.server_report(&server));
        self.look_after(py, &format!("{name}:"), work)
    }

    /// Ask the servers of a striped store that failed a moment ago, so that they take part again.
    fn ask_failed_servers(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let work = |upkeep: &Upkeep, _: &str| {
            upkeep.ask_failed_servers();
            Ok(())
        };
        self.look_after(py, &format!("{name}:"), work).map(drop)
    }

    /// The stripe that most servers of a striped store are of, as JSON; `null` if none says one.
    fn stripe_name(&self, py: Python<'_>, name: &str) -> PyResult<String> {
        self.look_after(py, &format!("{name}:"), |upkeep, _| Ok(upkeep.stripe()))
    }

    /// Use the empty servers of a striped store from now on; their names, as JSON.
    fn admit_empty_servers(&self, py: Python<'_>, name: &str) -> PyResult<String> {
        self.look_after(py, &format!("{name}:"), |upkeep, _| upkeep.admit_empty_servers())
    }

    /// How often parts of a striped store were late in this process, as JSON.
    fn stripe_hedges(&self, py: Python<'_>, name: &str) -> PyResult<String> {
        self.look_after(py, &format!("{name}:"), |upkeep, _| Ok(upkeep.hedges()))
    }

    /// Parts that no record of a striped store names, as JSON; with `remove`, without those.
    fn stripe_leftovers(&self, py: Python<'_>, name: &str, remove: bool) -> PyResult<String> {
        self.look_after(py, &format!("{name}:"), move |upkeep, _| upkeep.leftovers(remove))
    }

    /// Remove an object.
    fn remove(&self, py: Python<'_>, path: String) -> PyResult<()> {
        let stores = self.inner.clone();
        enter(py, &Cancel::default(), move || Ok(stores.remove(&path)?))
    }
}

impl Stores {
    /// Run `work` on the striped store of an object, and give its result as JSON.
    fn look_after<T: serde::Serialize + Send + 'static>(
        &self,
        py: Python<'_>,
        object: &str,
        work: impl FnOnce(&Upkeep, &str) -> Result<T, StoreError> + Send + 'static,
    ) -> PyResult<String> {
        let (store, url) = self.inner.locate(object);
        let settings = store.settings().clone();
        if settings.over.is_empty() {
            return Err(PyValueError::new_err(format!("{object}: expected a striped store")));
        }
        let report =
            enter(py, &Cancel::default(), move || Ok(work(&Upkeep::new(settings), &url)?))?;
        serde_json::to_string(&report).map_err(wrong)
    }
}

/// How far the repair of a striped object is. See `_swathe.pyi`.
#[pyclass(frozen, module = "swathe._swathe")]
pub(crate) struct RepairProgress(Arc<swathe_stripe::RepairProgress>);

#[pymethods]
impl RepairProgress {
    #[new]
    fn new() -> RepairProgress {
        RepairProgress(Arc::default())
    }

    /// Bytes read or written, of all that are to be.
    #[getter]
    fn counts(&self) -> (u64, u64) {
        self.0.counts()
    }

    /// Bytes written.
    #[getter]
    fn written_bytes(&self) -> u64 {
        self.0.written_bytes()
    }
}

/// The key of a store's measurements. See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn store_key(root: String, options: BTreeMap<String, String>) -> String {
    swathe_stripe::connect(StoreSettings::new(String::new(), root, options)).key()
}

/// The kind of a store, by its URL. See `_swathe.pyi`.
#[pyclass(frozen, module = "swathe._swathe")]
pub(crate) struct StoreKind {
    root: String,
    store: Arc<dyn swathe_store_api::Store>,
}

#[pymethods]
impl StoreKind {
    #[new]
    #[pyo3(signature = (root, over=Vec::new()))]
    fn new(root: String, over: Vec<String>) -> StoreKind {
        let settings_of = |root| StoreSettings::new(String::new(), root, BTreeMap::new());
        let place = |root| StripePlace { store: settings_of(root), prefix: String::new() };
        let over = over.into_iter().map(place).collect();
        let settings = StoreSettings { over, ..settings_of(root.clone()) };
        StoreKind { root, store: swathe_stripe::connect(settings) }
    }

    #[getter]
    fn is_local(&self) -> bool {
        self.store.is_local()
    }

    #[getter]
    fn is_bucket(&self) -> bool {
        self.store.is_bucket()
    }

    #[getter]
    fn is_webdav(&self) -> bool {
        self.store.is_webdav()
    }

    #[getter]
    fn is_writable(&self) -> bool {
        self.store.is_writable()
    }

    #[getter]
    fn local_path(&self, py: Python<'_>) -> PyResult<Option<PathBuf>> {
        self.store.local_path(&self.root).map_err(|error| to_python(py, &error.into()))
    }
}

/// The storages to read from, through the user's blocks.
pub(crate) fn inner(py: Python<'_>, stores: Option<&Stores>) -> PyResult<swathe_store_api::Stores> {
    let stores = stores.map(|stores| stores.inner.clone());
    let stores = stores.unwrap_or_else(|| swathe_stripe::stores(Vec::new()));
    Ok(swathe_cache::cached_stores(stores, blocks(py)?))
}

/// The costs taken for granted of a store before it was probed, as JSON.
#[pyfunction]
pub(crate) fn assumed_costs(local: bool) -> PyResult<String> {
    let costs = if local { Costs::local() } else { Costs::remote() };
    serde_json::to_string(&costs).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Let servers redirect only to each other. See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn confine(hosts: Vec<String>) {
    swathe_net::confine(hosts);
}

/// Time ranged reads of one object. See `_swathe.pyi`.
#[pyfunction]
#[pyo3(signature = (url, requests, streams, *, fresh=false, stores=None))]
pub(crate) fn measure(
    py: Python<'_>,
    url: String,
    requests: Vec<(u64, u64)>,
    streams: u32,
    fresh: bool,
    stores: Option<&Stores>,
) -> PyResult<Vec<Timing>> {
    let stores = inner(py, stores)?;
    enter(py, &Cancel::default(), move || {
        measure_requests(&*stores.open(&url)?, &requests, streams, fresh)
    })
}

/// Open an object, to measure reads of it. See `_swathe.pyi`.
#[pyfunction]
#[pyo3(signature = (url, stores=None))]
pub(crate) fn open_source(
    py: Python<'_>,
    url: String,
    stores: Option<&Stores>,
) -> PyResult<Source> {
    let stores = inner(py, stores)?;
    Ok(Source { inner: enter(py, &Cancel::default(), move || Ok(stores.open(&url)?))? })
}

/// Open an object anew: seconds, and its bytes.
#[pyfunction]
#[pyo3(signature = (url, stores=None))]
pub(crate) fn measure_open(
    py: Python<'_>,
    url: String,
    stores: Option<&Stores>,
) -> PyResult<(f64, u64)> {
    let stores = inner(py, stores)?;
    enter(py, &Cancel::default(), move || {
        let began = std::time::Instant::now();
        let source = stores.open(&url)?;
        Ok((began.elapsed().as_secs_f64(), source.len()))
    })
}
