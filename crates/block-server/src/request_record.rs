//! What is recorded of a request: its event, and counts for `/metrics`.

use crate::disk_queue::WorkTimes;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::{Method, StatusCode};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use swathe_net::server::Body;
use swathe_trace::{Ids, Level, event, is_on};
use tokio::sync::OwnedSemaphorePermit;

/// The methods that are counted each.
pub(crate) const METHODS: [&str; 10] =
    ["GET", "HEAD", "PUT", "DELETE", "MKCOL", "MOVE", "PROPFIND", "RESERVE", "OPTIONS", "other"];
/// Classes of statuses: 1xx to 5xx.
pub(crate) const CLASSES: usize = 5;

/// Counts of requests since the start.
#[derive(Debug, Default)]
pub(crate) struct RequestCounts {
    pub(crate) by_class: [[AtomicU64; CLASSES]; METHODS.len()],
    pub(crate) body_bytes: AtomicU64,
    pub(crate) answer_bytes: AtomicU64,
    pub(crate) broken_answers: AtomicU64,
    pub(crate) in_flight: AtomicUsize,
}

/// One request, from its head to the last byte of its answer.
#[derive(Debug)]
pub(crate) struct RequestRecord {
    counts: Arc<RequestCounts>,
    method: Method,
    path: String,
    start: Instant,
    status: AtomicU16,
    queue_ns: AtomicU64,
    disk_ns: AtomicU64,
    body_bytes: AtomicU64,
    answer_bytes: AtomicU64,
    disk: Mutex<Option<Arc<str>>>,
    /// Whether disks have begun to work for it.
    is_under_way: AtomicBool,
    error: Mutex<Option<String>>,
    /// Its place among the requests that are answered.
    _room: Option<OwnedSemaphorePermit>,
}

impl RequestRecord {
    pub(crate) fn start(
        counts: &Arc<RequestCounts>,
        method: &Method,
        path: &str,
        room: Option<OwnedSemaphorePermit>,
    ) -> Arc<RequestRecord> {
        counts.in_flight.fetch_add(1, Ordering::Relaxed);
        Arc::new(RequestRecord {
            counts: counts.clone(),
            method: method.clone(),
            path: path.to_string(),
            start: Instant::now(),
            status: AtomicU16::new(0),
            queue_ns: AtomicU64::new(0),
            disk_ns: AtomicU64::new(0),
            body_bytes: AtomicU64::new(0),
            answer_bytes: AtomicU64::new(0),
            disk: Mutex::default(),
            is_under_way: AtomicBool::new(false),
            error: Mutex::default(),
            _room: room,
        })
    }

    pub(crate) fn add_times(&self, times: WorkTimes) {
        self.queue_ns.fetch_add(times.queue.as_nanos() as u64, Ordering::Relaxed);
        self.disk_ns.fetch_add(times.disk.as_nanos() as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_body(&self, bytes: usize) {
        self.body_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.is_under_way.load(Ordering::Relaxed)
    }

    /// Note that disks have begun to work for it.
    pub(crate) fn set_under_way(&self) {
        self.is_under_way.store(true, Ordering::Relaxed);
    }

    /// Note the disk that the object lies on.
    pub(crate) fn set_disk(&self, name: &Arc<str>) {
        *self.disk.lock().unwrap_or_else(PoisonError::into_inner) = Some(name.clone());
    }

    pub(crate) fn set_status(&self, status: StatusCode) {
        self.status.store(status.as_u16(), Ordering::Relaxed);
    }

    /// Note why it is not served as requested.
    pub(crate) fn set_error(&self, error: String) {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        let counts = &self.counts;
        counts.in_flight.fetch_sub(1, Ordering::Relaxed);
        let (out, body) = (*self.answer_bytes.get_mut(), *self.body_bytes.get_mut());
        counts.answer_bytes.fetch_add(out, Ordering::Relaxed);
        counts.body_bytes.fetch_add(body, Ordering::Relaxed);
        let status = *self.status.get_mut();
        let method = METHODS.iter().position(|&method| method == self.method.as_str());
        let by_class = &counts.by_class[method.unwrap_or(METHODS.len() - 1)];
        // Without a status the client went away before it got one.
        if let Some(count) = by_class.get((status / 100).wrapping_sub(1) as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if !is_on() {
            return;
        }
        let [queue, disk] =
            [&mut self.queue_ns, &mut self.disk_ns].map(|ns| Duration::from_nanos(*ns.get_mut()));
        let network = self.start.elapsed().saturating_sub(queue + disk);
        let error = self.error.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let result = match (status, &error) {
            (_, None) if (200..400).contains(&status) => "ok",
            (404, _) => "missing",
            _ => "error",
        };
        let level = if result == "error" { Level::Error } else { Level::Usage };
        let disk_name = self.disk.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        event(level, "SERVE", &Ids::default(), |record| {
            record.text("METHOD", self.method.as_str()).text("PATH", &self.path);
            record.number("STATUS", status.into()).number("BYTES", out + body);
            for (key, time) in [("QUEUE_S", queue), ("DISK_S", disk), ("NETWORK_S", network)] {
                record.text(key, &format!("{:.6}", time.as_secs_f64()));
            }
            if let Some(name) = &disk_name {
                record.text("DISK", name);
            }
            record.text("RESULT", result);
            if let Some(error) = &error {
                record.text("REASON", error);
            }
        });
    }
}

/// The body of an answer; the record of its request ends with it.
pub(crate) struct RecordedBody {
    body: Body,
    record: Arc<RequestRecord>,
}

impl RecordedBody {
    pub(crate) fn new(body: Body, record: Arc<RequestRecord>) -> RecordedBody {
        RecordedBody { body, record }
    }
}

impl HttpBody for RecordedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        match &frame {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.record.answer_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            }
            Poll::Ready(Some(Err(error))) => {
                self.record.counts.broken_answers.fetch_add(1, Ordering::Relaxed);
                self.record.set_error(error.to_string());
            }
            _ => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
