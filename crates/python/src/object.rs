//! `Object`, `HduInfo` and `Cutout`.

use crate::buffers::fill_view;
use crate::errors::{raise, to_python};
use crate::gil::{enter, stay};
use crate::stores::{Stores, inner};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use std::ffi::c_int;
use std::ops::Range;
use std::sync::Arc;
use swathe_array::Region;
use swathe_engine::{Cancel, EngineError, Mode, Part, Selector};
use swathe_fits::{Hdu, HduKind, Image};
use swathe_layout::Storage;
use swathe_plan::Objective;
use swathe_store_api::Traffic;

/// A path or URL as users may see it.
#[pyfunction]
pub(crate) fn redact_url(url: &str) -> String {
    swathe_store::redact_url(url)
}

/// Open an object by path or URL.
#[pyfunction]
#[pyo3(signature = (url, stores=None, fresh=false))]
pub(crate) fn open(
    py: Python<'_>,
    url: String,
    stores: Option<&Stores>,
    fresh: bool,
) -> PyResult<Object> {
    let stores = inner(py, stores)?;
    let cancel = Cancel::default();
    let token = cancel.clone();
    let inner =
        enter(py, &cancel, move || swathe_engine::Object::open_alone(&url, &stores, fresh, token))?;
    Ok(Object { inner: Arc::new(inner) })
}

#[pyclass(frozen, module = "swathe._swathe")]
pub(crate) struct Object {
    inner: Arc<swathe_engine::Object>,
}

#[pymethods]
impl Object {
    #[getter]
    fn url(&self) -> &str {
        self.inner.url()
    }

    #[getter]
    fn kind(&self) -> &'static str {
        use swathe_codecs::stream::StreamKind;
        match self.inner.kind() {
            None => "plain",
            Some(StreamKind::Gzip) => "gzip",
            Some(StreamKind::Bzip2) => "bzip2",
            Some(StreamKind::Compress) => "compress",
        }
    }

    #[getter]
    fn size(&self) -> u64 {
        self.inner.size()
    }

    #[getter]
    fn version(&self) -> String {
        self.inner.version()
    }

    /// Bytes and requests since it was opened, as those of a batch.
    fn traffic<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let cost = PyDict::new(py);
        set_traffic(&cost, py.detach(|| self.inner.traffic()))?;
        Ok(cost)
    }

    fn notes(&self) -> Vec<String> {
        self.inner.take_notes()
    }

    fn hdus(&self, py: Python<'_>) -> PyResult<Vec<HduInfo>> {
        let object = self.inner.clone();
        let hdus = enter(py, &Cancel::default(), move || {
            let hdus = object.hdus()?;
            object.settle(&Cancel::default())?;
            Ok(hdus)
        })?;
        Ok(hdus.iter().map(|hdu| HduInfo::new(hdu)).collect())
    }

    #[pyo3(signature = (hdu=None))]
    fn find(&self, py: Python<'_>, hdu: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
        let selector = selector(hdu)?;
        if let Some(hdu) = self.inner.known_hdu(&selector) {
            return Ok(hdu.index);
        }
        let object = self.inner.clone();
        Ok(enter(py, &Cancel::default(), move || object.find(&selector))?.index)
    }

    /// Shape of an image, NumPy order.
    fn shape(&self, py: Python<'_>, hdu: usize) -> PyResult<Vec<u64>> {
        let object = self.inner.clone();
        let selector = Selector::Index(hdu);
        let template = match object.known_template(&selector) {
            Some(template) => template,
            None => enter(py, &Cancel::default(), move || object.template(&selector))?,
        };
        Ok(template.layout.shape.iter().rev().copied().collect())
    }

    fn header<'py>(&self, py: Python<'py>, hdu: usize) -> PyResult<Bound<'py, PyBytes>> {
        let object = self.inner.clone();
        let header = enter(py, &Cancel::default(), move || {
            let info = object.find(&Selector::Index(hdu))?;
            match info.kind() {
                HduKind::Image | HduKind::CompressedImage => {
                    Ok(object.template(&Selector::Index(hdu))?.image()?.header.to_bytes())
                }
                _ => Ok(info.header.to_bytes()),
            }
        })?;
        Ok(PyBytes::new(py, &header))
    }

    fn wcs_hdus<'py>(&self, py: Python<'py>, hdu: usize) -> PyResult<Bound<'py, PyBytes>> {
        let object = self.inner.clone();
        let file = enter(py, &Cancel::default(), move || {
            Ok(object.template(&Selector::Index(hdu))?.wcs_file())
        })?;
        Ok(PyBytes::new(py, &file))
    }

    #[pyo3(signature = (hdu, start, stop, mode, fill=None, objective="auto"))]
    #[allow(clippy::too_many_arguments)] // as the stub has them
    fn cut(
        &self,
        py: Python<'_>,
        hdu: usize,
        start: Vec<i64>,
        stop: Vec<i64>,
        mode: &str,
        fill: Option<f64>,
        objective: &str,
    ) -> PyResult<Cutout> {
        let mode = parse_mode(py, mode)?;
        let objective = parse_objective(py, objective)?;
        let url = self.inner.url().to_string();
        let region = Region::new(start, stop).map_err(|source| {
            to_python(py, &EngineError::Region { url, part: Part::hdu(hdu), source })
        })?;
        let cutout = self.cut_region(py, Selector::Index(hdu), region, mode, fill, objective)?;
        Ok(Cutout { inner: Arc::new(cutout) })
    }

    /// Several regions that lie within an image, read together.
    #[pyo3(signature = (hdu, regions, objective="auto"))]
    fn cut_each(
        &self,
        py: Python<'_>,
        hdu: usize,
        regions: Vec<(Vec<i64>, Vec<i64>)>,
        objective: &str,
    ) -> PyResult<Vec<Cutout>> {
        let objective = parse_objective(py, objective)?;
        let new = |(start, stop)| {
            Region::new(start, stop).map_err(|source| {
                let url = self.inner.url().to_string();
                to_python(py, &EngineError::Region { url, part: Part::hdu(hdu), source })
            })
        };
        let regions = regions.into_iter().map(new).collect::<PyResult<Vec<Region>>>()?;
        let (object, cancel) = (self.inner.clone(), Cancel::default());
        let token = cancel.clone();
        let selector = Selector::Index(hdu);
        let work = move || {
            let mode = Mode::Strict;
            swathe_engine::cut_each(&object, &selector, &regions, mode, None, objective, &token)
        };
        let cutouts = enter(py, &cancel, work)?;
        Ok(cutouts.into_iter().map(|inner| Cutout { inner: Arc::new(inner) }).collect())
    }

    #[getter]
    fn is_local(&self) -> bool {
        self.inner.is_local()
    }

    /// Whether it is a file of FITS, as far as that is known without a read.
    #[getter]
    fn is_fits(&self) -> Option<bool> {
        self.inner.is_fits()
    }

    /// Bytes of the decompressed object; fewer than asked for only at its end.
    fn read_at<'py>(
        &self,
        py: Python<'py>,
        at: u64,
        length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (object, cancel) = (self.inner.clone(), Cancel::default());
        let token = cancel.clone();
        let bytes = enter(py, &cancel, move || object.read_at(at, length, &token))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Bytes of ranges of the decompressed object, `(start, stop)`, which ascend without overlap.
    fn read_ranges<'py>(
        &self,
        py: Python<'py>,
        ranges: Vec<(u64, u64)>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let (object, cancel) = (self.inner.clone(), Cancel::default());
        let token = cancel.clone();
        let ranges: Vec<Range<u64>> = ranges.into_iter().map(|(at, end)| at..end).collect();
        let parts = enter(py, &cancel, move || object.read_ranges(&ranges, &token))?;
        Ok(parts.iter().map(|part| PyBytes::new(py, part)).collect())
    }

    /// How many of its first bytes are in memory since it was opened.
    #[getter]
    fn first_bytes(&self) -> usize {
        self.inner.first().len()
    }

    /// Bytes that are best read at once by a reader of few.
    #[getter]
    fn block_bytes(&self, py: Python<'_>) -> u64 {
        // A folder opens a member for it.
        py.detach(|| self.inner.block_bytes())
    }

    /// Length of the decompressed object.
    fn content_len(&self, py: Python<'_>) -> PyResult<u64> {
        let (object, cancel) = (self.inner.clone(), Cancel::default());
        let token = cancel.clone();
        enter(py, &cancel, move || object.content_len(&token))
    }

    /// The JSON of its chunk index, if it is known.
    fn chunk_index<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.inner.chunk_index().map(|index| PyBytes::new(py, index.json()))
    }

    fn set_chunk_index(&self, py: Python<'_>, index: Vec<u8>) -> PyResult<()> {
        let object = self.inner.clone();
        enter(py, &Cancel::default(), move || object.set_chunk_index(&index))?;
        Ok(())
    }

    /// The members of a folder, as it was opened, whose names begin with a prefix.
    fn member_names(&self, py: Python<'_>, prefix: String) -> Vec<String> {
        py.detach(|| self.inner.member_names(&prefix))
    }

    /// Elements `[start, stop)` of an array, fastest axis first, as they are stored.
    #[pyo3(signature = (path, start, stop, mode="strict", objective="auto"))]
    fn read_array(
        &self,
        py: Python<'_>,
        path: String,
        start: Vec<i64>,
        stop: Vec<i64>,
        mode: &str,
        objective: &str,
    ) -> PyResult<Pixels> {
        let (mode, objective) = (parse_mode(py, mode)?, parse_objective(py, objective)?);
        let region = Region::new(start, stop).map_err(|source| {
            let part = Part::array(0, &path);
            to_python(py, &EngineError::Region { url: self.inner.url().into(), part, source })
        })?;
        let cutout = self.cut_region(py, Selector::Array(path), region, mode, None, objective)?;
        Ok(Pixels::new(cutout))
    }
}

impl Object {
    pub(crate) fn inner(&self) -> Arc<swathe_engine::Object> {
        self.inner.clone()
    }

    fn cut_region(
        &self,
        py: Python<'_>,
        selector: Selector,
        region: Region,
        mode: Mode,
        fill: Option<f64>,
        objective: Objective,
    ) -> PyResult<swathe_engine::Cutout> {
        let (object, cancel) = (self.inner.clone(), Cancel::default());
        let token = cancel.clone();
        let is_brief = swathe_engine::is_brief(&object, &selector, &region);
        let work =
            move || swathe_engine::cut(&object, &selector, &region, mode, fill, objective, &token);
        if is_brief { stay(py, work) } else { enter(py, &cancel, work) }
    }
}

/// Set the items of traffic.
pub(crate) fn set_traffic(cost: &Bound<'_, PyDict>, traffic: Traffic) -> PyResult<()> {
    cost.set_item("bytes_moved", traffic.bytes)?;
    cost.set_item("requests", traffic.requests)?;
    let (peers, cache) = (traffic.from_peers, traffic.from_cache);
    cost.set_item("from_peers", (peers.bytes, peers.requests))?;
    cost.set_item("from_cache", (cache.bytes, cache.requests))
}

/// Which HDU a Python argument means.
pub(crate) fn selector(hdu: Option<&Bound<'_, PyAny>>) -> PyResult<Selector> {
    let Some(hdu) = hdu.filter(|hdu| !hdu.is_none()) else { return Ok(Selector::FirstImage) };
    if hdu.is_instance_of::<PyString>() {
        let name: String = hdu.extract()?;
        let is_path = name.starts_with('/');
        return Ok(if is_path { Selector::Array(name) } else { Selector::Name(name, None) });
    }
    if let Ok((name, version)) = hdu.extract::<(String, i64)>() {
        return Ok(Selector::Name(name, Some(version)));
    }
    match hdu.extract::<usize>() {
        Ok(index) => Ok(Selector::Index(index)),
        Err(_) => Err(PyTypeError::new_err(format!(
            "hdu must be a number from 0, a name, a (name, version) pair or None, not {hdu}"
        ))),
    }
}

pub(crate) fn parse_mode(py: Python<'_>, mode: &str) -> PyResult<Mode> {
    match mode {
        "trim" => Ok(Mode::Trim),
        "partial" => Ok(Mode::Partial),
        "strict" => Ok(Mode::Strict),
        _ => {
            let why = format!("mode: expected 'trim', 'partial' or 'strict', found {mode:?}");
            Err(raise(py, "RegionError", why))
        }
    }
}

pub(crate) fn parse_objective(py: Python<'_>, objective: &str) -> PyResult<Objective> {
    objective.parse().map_err(|why| raise(py, "OptionError", why))
}

#[pyclass(frozen, get_all, module = "swathe._swathe")]
pub(crate) struct HduInfo {
    index: usize,
    name: Option<String>,
    version: i64,
    kind: &'static str,
    bitpix: Option<i64>,
    shape: Vec<u64>,
    codec: Option<String>,
    tile_shape: Option<Vec<u64>>,
    data_start: u64,
    problem: Option<String>,
}

#[pymethods]
impl HduInfo {
    fn __repr__(&self) -> String {
        let mut text = format!("<HDU {}", self.index);
        if let Some(name) = &self.name {
            text += &format!(" {name}");
        }
        text += &format!(": {}", self.kind);
        if let Some(bitpix) = self.bitpix {
            text += &format!(", BITPIX {bitpix}, shape {:?}", self.shape);
        }
        if let Some(codec) = &self.codec {
            text += &format!(", {codec}");
        }
        text + ">"
    }
}

impl HduInfo {
    fn new(hdu: &Hdu) -> HduInfo {
        let kind = match hdu.kind() {
            HduKind::Image => "image",
            HduKind::CompressedImage => "compressed-image",
            HduKind::Table => "table",
            HduKind::Empty => "empty",
            _ => "other",
        };
        let mut info = HduInfo {
            index: hdu.index,
            name: hdu.name(),
            version: hdu.version(),
            kind,
            bitpix: None,
            shape: Vec::new(),
            codec: None,
            tile_shape: None,
            data_start: hdu.data_start,
            problem: None,
        };
        if !matches!(hdu.kind(), HduKind::Image | HduKind::CompressedImage) {
            return info;
        }
        match hdu.image() {
            Ok(image) => {
                info.bitpix = Some(image.dtype.bitpix());
                info.shape = image.layout.shape.iter().rev().copied().collect();
                if let Storage::Chunked(table) = &image.layout.storage {
                    info.codec = Some(table.codec_name().to_string());
                    info.tile_shape =
                        Some(table.grid().chunk_shape.iter().rev().copied().collect());
                }
            }
            Err(error) => info.problem = Some(error.to_string()),
        }
        info
    }
}

#[pyclass(frozen, module = "swathe._swathe")]
pub(crate) struct Cutout {
    inner: Arc<swathe_engine::Cutout>,
}

#[pymethods]
impl Cutout {
    #[getter]
    fn stored(&self) -> Pixels {
        Pixels { inner: self.inner.clone() }
    }

    #[getter]
    fn bitpix(&self, py: Python<'_>) -> PyResult<i64> {
        Ok(self.image(py)?.dtype.bitpix())
    }

    #[getter]
    fn shape(&self) -> Vec<u64> {
        self.inner.region.shape().into_iter().rev().collect()
    }

    /// Whether the pixels were decoded from tiles: astropy then returns native byte order.
    #[getter]
    fn native(&self) -> bool {
        matches!(self.inner.template.layout.storage, Storage::Chunked(_))
    }

    /// BSCALE, BZERO and BLANK. A BLANK that is no integer counts for nothing, as in astropy.
    #[getter]
    fn scaling(&self, py: Python<'_>) -> PyResult<(f64, f64, Option<i64>)> {
        let (template, image) = (&self.inner.template, self.image(py)?);
        let number = |keyword, default| match image.header.get_float(keyword) {
            Ok(number) => Ok(number.unwrap_or(default)),
            Err(source) => {
                let (url, hdu) = (template.url.clone(), template.part.number());
                Err(to_python(py, &EngineError::Header { url, hdu, source }))
            }
        };
        let blank = image.header.get_int("BLANK").ok().flatten();
        Ok((number("BSCALE", 1.0)?, number("BZERO", 0.0)?, blank))
    }

    #[getter]
    fn header<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.inner.header())
    }

    #[getter]
    fn start(&self) -> Vec<i64> {
        self.inner.region.start.clone()
    }

    fn fits<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner.file)
    }
}

impl Cutout {
    fn image(&self, py: Python<'_>) -> PyResult<&Image> {
        self.inner.template.image().map_err(|error| to_python(py, &error))
    }
}

/// The stored pixels of a cutout, uncopied, through the buffer protocol.
#[pyclass(frozen, module = "swathe._swathe")]
pub(crate) struct Pixels {
    inner: Arc<swathe_engine::Cutout>,
}

impl Pixels {
    pub(crate) fn new(cutout: swathe_engine::Cutout) -> Pixels {
        Pixels { inner: Arc::new(cutout) }
    }
}

#[pymethods]
impl Pixels {
    fn __len__(&self) -> usize {
        self.inner.data().len()
    }

    /// # Safety
    /// Called by Python with a valid view. The memory belongs to the cutout, which the view's
    /// reference to `slf` keeps alive and nothing changes.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let pixels = slf.get().inner.data();
        // SAFETY: see above.
        unsafe { fill_view(slf.as_any(), pixels.as_ptr(), pixels.len(), view, flags) }
    }
}
