//! `Stores` and their measurements.

use crate::errors::{raise, to_python};
use crate::gil::enter;
use crate::listing::Listing;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use swathe_cache::{BlockCache, Identity, ObjectDescription};
use swathe_engine::{Cancel, EngineError};
use swathe_plan::Costs;
use swathe_store_api::{ListOptions, StoreSettings};

/// Bytes that are read at once: they are all in memory.
const MOST_BYTES: u64 = 64 << 20;

/// The storages that are known, and what they cost, from JSON. See `_swathe.pyi`.
#[pyclass(frozen, module = "swathe._swathe")]
pub(crate) struct Stores {
    pub(crate) inner: swathe_store_api::Stores,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    name: String,
    root: String,
    #[serde(default)]
    options: BTreeMap<String, String>,
}

impl From<Description> for StoreSettings {
    fn from(Description { name, root, options }: Description) -> StoreSettings {
        StoreSettings::new(name, root, options)
    }
}

#[pymethods]
impl Stores {
    #[new]
    #[pyo3(signature = (stores_json, costs="{}", compute=None))]
    fn new(stores_json: &str, costs: &str, compute: Option<&str>) -> PyResult<Stores> {
        let stores: Vec<Description> = serde_json::from_str(stores_json).map_err(wrong)?;
        let costs: BTreeMap<String, Costs> = serde_json::from_str(costs).map_err(wrong)?;
        costs.values().try_for_each(Costs::check).map_err(wrong)?;
        let stores = stores.into_iter().map(StoreSettings::from).collect();
        let inner = swathe_store::stores(stores).with_costs(costs);
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
    #[pyo3(signature = (place, *, with_hidden=false, may_lack=false))]
    fn list(
        &self,
        py: Python<'_>,
        place: &str,
        with_hidden: bool,
        may_lack: bool,
    ) -> PyResult<Listing> {
        let options = ListOptions { with_hidden, may_lack };
        let listing = self.inner.list(place, options);
        Ok(Listing::new(listing.map_err(|error| to_python(py, &error.into()))?))
    }

    /// Remove an object.
    fn remove(&self, py: Python<'_>, path: String) -> PyResult<()> {
        let stores = self.inner.clone();
        enter(py, &Cancel::default(), move || Ok(stores.remove(&path)?))
    }
}

impl Source {
    /// Refuse a range that ends before its start, or is too large to read at once.
    fn check_range(&self, py: Python<'_>, start: u64, stop: u64) -> PyResult<()> {
        let wrong = if start > stop {
            format!("expected a range that does not end before its start, found {start} to {stop}")
        } else if stop - start > MOST_BYTES {
            let most = MOST_BYTES >> 20;
            format!("expected at most {most} MiB at once, found {} bytes", stop - start)
        } else {
            return Ok(());
        };
        Err(raise(py, "RegionError", format!("{}: {wrong}", self.inner.url())))
    }
}

fn wrong(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// An open object, of any content. See `_swathe.pyi`.
#[pyclass(frozen, module = "swathe._swathe")]
pub(crate) struct Source {
    inner: Arc<dyn swathe_store_api::Source>,
}

#[pymethods]
impl Source {
    #[getter]
    fn size(&self) -> u64 {
        self.inner.len()
    }

    #[getter]
    fn version(&self) -> String {
        self.inner.version().to_string()
    }

    #[getter]
    fn opened_bytes(&self) -> usize {
        self.inner.first().len()
    }

    fn read<'py>(&self, py: Python<'py>, start: u64, stop: u64) -> PyResult<Bound<'py, PyBytes>> {
        self.check_range(py, start, stop)?;
        let source = self.inner.clone();
        let bytes = enter(py, &Cancel::default(), move || {
            Ok(source.fetch(vec![start..stop], 1).next().transpose()?)
        })?;
        Ok(PyBytes::new(py, &bytes.unwrap_or_default()))
    }

    fn read_ranges<'py>(
        &self,
        py: Python<'py>,
        ranges: Vec<(u64, u64)>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let mut most = MOST_BYTES;
        for &(start, stop) in &ranges {
            self.check_range(py, start, stop)?;
            let size = self.inner.len();
            let wrong = if stop > size {
                format!("expected ranges that end by {size}, found {start} to {stop}")
            } else if stop - start > most {
                format!("expected at most {} MiB at once, found more", MOST_BYTES >> 20)
            } else {
                most -= stop - start;
                continue;
            };
            return Err(raise(py, "RegionError", format!("{}: {wrong}", self.inner.url())));
        }
        let source = self.inner.clone();
        let ranges: Vec<Range<u64>> = ranges.into_iter().map(|(at, end)| at..end).collect();
        let buffers = enter(py, &Cancel::default(), move || {
            let mut buffers: Vec<Vec<u8>> =
                ranges.iter().map(|range| vec![0; (range.end - range.start) as usize]).collect();
            swathe_engine::read_ranges(&*source, &ranges, &mut buffers)?;
            Ok(buffers)
        })?;
        Ok(buffers.iter().map(|buffer| PyBytes::new(py, buffer)).collect())
    }

    #[pyo3(signature = (requests, streams, *, fresh=false))]
    fn measure(
        &self,
        py: Python<'_>,
        requests: Vec<(u64, u64)>,
        streams: u32,
        fresh: bool,
    ) -> PyResult<Vec<Timing>> {
        let source = self.inner.clone();
        enter(py, &Cancel::default(), move || measure_requests(&*source, &requests, streams, fresh))
    }

    fn measure_vector(
        &self,
        py: Python<'_>,
        ranges: Vec<(u64, u64)>,
        limit_s: f64,
    ) -> PyResult<VectorTiming> {
        let limit = Duration::try_from_secs_f64(limit_s).map_err(wrong)?;
        let (source, ranges) = (self.inner.clone(), to_ranges(&ranges));
        enter(py, &Cancel::default(), move || {
            let swathe_store_api::VectorTiming {
                refusal,
                parts,
                is_ordered,
                bytes,
                first_byte_s,
                seconds,
            } = source.measure_vector(&ranges, limit)?;
            Ok(VectorTiming { refusal, parts, is_ordered, bytes, first_byte_s, seconds })
        })
    }

    fn measure_multiplexed(
        &self,
        py: Python<'_>,
        ranges: Vec<(u64, u64)>,
        streams: u32,
        limit_s: f64,
    ) -> PyResult<MultiplexTiming> {
        let limit = Duration::try_from_secs_f64(limit_s).map_err(wrong)?;
        let (source, ranges) = (self.inner.clone(), to_ranges(&ranges));
        enter(py, &Cancel::default(), move || {
            let swathe_store_api::MultiplexTiming {
                refusal,
                bytes,
                header_bytes,
                first_byte_s,
                seconds,
            } = source.measure_multiplexed(&ranges, streams, limit)?;
            Ok(MultiplexTiming { refusal, bytes, header_bytes, first_byte_s, seconds })
        })
    }
}

/// The key of a store's measurements. See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn store_key(root: String, options: BTreeMap<String, String>) -> String {
    swathe_store::connect(StoreSettings::new(String::new(), root, options)).key()
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
    fn new(root: String) -> StoreKind {
        let settings = StoreSettings::new(String::new(), root.clone(), BTreeMap::new());
        StoreKind { root, store: swathe_store::connect(settings) }
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
    let stores = stores.unwrap_or_else(|| swathe_store::stores(Vec::new()));
    Ok(swathe_cache::cached_stores(stores, blocks(py)?))
}

/// The costs taken for granted of a store before it was probed, as JSON.
#[pyfunction]
pub(crate) fn assumed_costs(local: bool) -> PyResult<String> {
    let costs = if local { Costs::local() } else { Costs::remote() };
    serde_json::to_string(&costs).map_err(|error| PyValueError::new_err(error.to_string()))
}

#[pyclass(frozen, get_all, module = "swathe._swathe")]
pub(crate) struct Timing {
    bytes: u64,
    start_s: f64,
    first_byte_s: f64,
    end_s: f64,
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

/// Ranges from offsets and lengths.
fn to_ranges(pairs: &[(u64, u64)]) -> Vec<Range<u64>> {
    pairs.iter().map(|&(at, length)| at..at.saturating_add(length)).collect()
}

fn measure_requests(
    source: &dyn swathe_store_api::Source,
    requests: &[(u64, u64)],
    streams: u32,
    fresh: bool,
) -> Result<Vec<Timing>, EngineError> {
    let timing = |timing: swathe_store_api::RequestTiming| Timing {
        bytes: timing.bytes,
        start_s: timing.start_s,
        first_byte_s: timing.first_byte_s,
        end_s: timing.end_s,
    };
    Ok(source.measure(&to_ranges(requests), streams, fresh)?.into_iter().map(timing).collect())
}

#[pyclass(frozen, get_all, module = "swathe._swathe")]
pub(crate) struct VectorTiming {
    refusal: Option<String>,
    parts: u32,
    is_ordered: bool,
    bytes: u64,
    first_byte_s: f64,
    seconds: f64,
}

#[pyclass(frozen, get_all, module = "swathe._swathe")]
pub(crate) struct MultiplexTiming {
    refusal: Option<String>,
    bytes: u64,
    header_bytes: u32,
    first_byte_s: f64,
    seconds: f64,
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

/// Seconds that decoding takes to start at each seek point of a stream.
#[pyfunction]
pub(crate) fn measure_restarts(py: Python<'_>, path: String) -> PyResult<Vec<f64>> {
    let cancel = Cancel::default();
    let token = cancel.clone();
    enter(py, &cancel, move || {
        let stores = swathe_store::stores(Vec::new());
        swathe_engine::Object::open(&path, &stores, false, token.clone())?.measure_restarts(&token)
    })
}

/// Timings of real requests since the last call: root, bytes, in flight, first byte, seconds.
#[pyfunction]
pub(crate) fn take_timings() -> Vec<(String, u64, u32, f64, f64)> {
    let to_python = |timing: swathe_store::Timing| {
        let swathe_store::Timing { root, bytes, in_flight, first_byte_s, seconds } = timing;
        (root, bytes, in_flight, first_byte_s, seconds)
    };
    swathe_store::take_timings().into_iter().map(to_python).collect()
}

/// Let servers redirect only to each other. See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn confine(hosts: Vec<String>) {
    swathe_net::confine(hosts);
}

/// Serve blocks to other workers, and fetch theirs. See `_swathe.pyi`.
#[pyfunction]
#[pyo3(signature = (address, token, certificates=None))]
pub(crate) fn share_blocks(
    py: Python<'_>,
    address: IpAddr,
    token: String,
    certificates: Option<(PathBuf, PathBuf, PathBuf)>,
) -> PyResult<Option<u16>> {
    let Some(blocks) = blocks(py)? else { return Ok(None) };
    let identity =
        certificates.map(|(authority, certificate, key)| Identity { authority, certificate, key });
    enter(py, &Cancel::default(), move || {
        blocks.use_peers(identity.as_ref())?;
        Ok(Some(blocks.serve(address, &token, identity.as_ref())?.port()))
    })
}

/// Set which workers have blocks of objects. See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn set_block_peers(
    py: Python<'_>,
    peers: HashMap<String, Vec<(String, String)>>,
) -> PyResult<()> {
    if let Some(blocks) = blocks(py)? {
        peers.into_iter().for_each(|(object, peers)| blocks.set_peers(&object, peers));
    }
    Ok(())
}

/// Cached bytes of objects. See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn cached_bytes(py: Python<'_>, objects: Vec<String>) -> PyResult<Vec<u64>> {
    let Some(blocks) = blocks(py)? else { return Ok(vec![0; objects.len()]) };
    enter(py, &Cancel::default(), move || {
        Ok(objects.iter().map(|object| blocks.cached_bytes(object)).collect())
    })
}

/// A worker's description of an object: URL, prefix of keys, size, costs of its store, cells.
type DescriptionTuple = (String, String, u64, f64, f64, Vec<u64>);

/// Describe objects so that others can pull them. See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn describe_blocks(
    py: Python<'_>,
    objects: Vec<String>,
) -> PyResult<Vec<Option<DescriptionTuple>>> {
    let Some(blocks) = blocks(py)? else { return Ok(vec![None; objects.len()]) };
    let to_tuple = |description: ObjectDescription| {
        (
            description.url,
            description.object,
            description.size,
            description.request_s,
            description.byte_s,
            description.cells,
        )
    };
    enter(py, &Cancel::default(), move || {
        Ok(objects.iter().map(|object| blocks.describe(object).map(to_tuple)).collect())
    })
}

/// Fetch blocks from other workers. See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn pull_blocks(
    py: Python<'_>,
    name: String,
    description: DescriptionTuple,
    peers: Vec<(String, String)>,
    limit_s: f64,
    only: bool,
) -> PyResult<(u64, u64)> {
    let Some(blocks) = blocks(py)? else { return Ok((0, 0)) };
    let limit = Duration::try_from_secs_f64(limit_s)
        .map_err(|error| PyValueError::new_err(format!("limit_s: {limit_s}: {error}")))?;
    let (url, key, size, request_s, byte_s, cells) = description;
    let description = ObjectDescription { url, object: key, size, request_s, byte_s, cells };
    enter(py, &Cancel::default(), move || {
        let result = blocks.pull(&name, &description, peers, limit, only);
        Ok((result.bytes, result.blocks))
    })
}

/// The costs of other workers. See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn peer_costs(py: Python<'_>) -> PyResult<Option<(f64, f64)>> {
    Ok(blocks(py)?.and_then(|blocks| blocks.peer_costs()))
}

fn blocks(py: Python<'_>) -> PyResult<Option<Arc<BlockCache>>> {
    BlockCache::user().map_err(|error| to_python(py, &error.into()))
}
