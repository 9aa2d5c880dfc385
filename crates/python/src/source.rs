//! Open objects of any content, and measurements of their reads.

use crate::errors::{raise, wrong};
use crate::gil::enter;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use swathe_engine::{Cancel, EngineError};

/// Bytes that are read at once: they are all in memory.
const MOST_BYTES: u64 = 64 << 20;

/// An open object, of any content. See `_swathe.pyi`.
#[pyclass(frozen, module = "swathe._swathe")]
pub(crate) struct Source {
    pub(crate) inner: Arc<dyn swathe_store_api::Source>,
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

    /// Whether others read it, too.
    #[getter]
    fn is_shared(&self) -> bool {
        Arc::strong_count(&self.inner) > 1
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

#[pyclass(frozen, get_all, module = "swathe._swathe")]
pub(crate) struct Timing {
    bytes: u64,
    start_s: f64,
    first_byte_s: f64,
    end_s: f64,
}

/// Ranges from offsets and lengths.
fn to_ranges(pairs: &[(u64, u64)]) -> Vec<Range<u64>> {
    pairs.iter().map(|&(at, length)| at..at.saturating_add(length)).collect()
}

pub(crate) fn measure_requests(
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

/// Bytes that servers have sent to this process.
#[pyfunction]
pub(crate) fn received_bytes() -> u64 {
    swathe_store::received_bytes()
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
