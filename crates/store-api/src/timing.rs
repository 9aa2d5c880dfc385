//! The results of measuring single requests.

use crate::error::StoreError;
use bytes::Bytes;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// When a request of a measurement began, was first answered, and ended: seconds since the
/// measurement began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestTiming {
    /// Bytes received.
    pub bytes: u64,
    /// When it was sent.
    pub start_s: f64,
    /// When its answer began; of a file, when it ended.
    pub first_byte_s: f64,
    /// When its last byte arrived.
    pub end_s: f64,
}

/// Read ranges with `streams` threads, and measure each read. When an answer began is not seen.
///
/// # Errors
/// The first read that fails, in the order of the ranges.
pub fn measure_reads(
    requests: &[Range<u64>],
    streams: u32,
    read: impl Fn(&Range<u64>) -> Result<Bytes, StoreError> + Sync,
) -> Result<Vec<RequestTiming>, StoreError> {
    let (began, next) = (Instant::now(), AtomicUsize::new(0));
    let timings: Mutex<Vec<Option<Result<RequestTiming, StoreError>>>> =
        Mutex::new(requests.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..streams.max(1) {
            scope.spawn(|| {
                while let Some((at, range)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    requests.get(at).map(|range| (at, range))
                } {
                    let start_s = began.elapsed().as_secs_f64();
                    let timing = read(range).map(|bytes| {
                        let end_s = began.elapsed().as_secs_f64();
                        let bytes = bytes.len() as u64;
                        RequestTiming { bytes, start_s, first_byte_s: end_s, end_s }
                    });
                    timings.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(timing);
                }
            });
        }
    });
    let timings = timings.into_inner().unwrap_or_else(PoisonError::into_inner);
    timings.into_iter().flatten().collect()
}

/// How one request for many ranges was answered.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorTiming {
    /// Why that is of no use; `None` if all ranges came.
    pub refusal: Option<String>,
    /// Parts of the answer: fewer than ranges, if the server merged some.
    pub parts: u32,
    /// Whether they came in the order of the request.
    pub is_ordered: bool,
    /// Bytes of the answer, with what parts have beside their data.
    pub bytes: u64,
    /// Seconds until the answer began,
    pub first_byte_s: f64,
    /// and until its last byte.
    pub seconds: f64,
}

/// How requests that shared one connection of HTTP/2 were answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MultiplexTiming {
    /// Why that is of no use; `None` if all ranges came.
    pub refusal: Option<String>,
    /// Bytes of all ranges.
    pub bytes: u64,
    /// Bytes of the headers of an answer, and of what frames it.
    pub header_bytes: u32,
    /// Seconds until the first answer began,
    pub first_byte_s: f64,
    /// and until the last byte of all.
    pub seconds: f64,
}
