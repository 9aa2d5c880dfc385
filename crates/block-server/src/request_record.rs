//! What is recorded of a request: its events, and counts for `/metrics`.
//!
//! The time of an answer has four parts: the wait for a disk, the wait for the client to take more
//! bytes, the wait for bytes of the client, and the rest, which is the server's own work. A disk reads
//! while other bytes are sent, and writes while others come. So its work may take longer than the
//! wait for it.

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
use swathe_trace::{Ids, Level, Lifeline, event, is_on};
use tokio::sync::OwnedSemaphorePermit;

/// The methods that are counted each.
pub(crate) const METHODS: [&str; 11] = [
    "GET", "HEAD", "PUT", "DELETE", "MKCOL", "MOVE", "COPY", "PROPFIND", "RESERVE", "OPTIONS",
    "other",
];
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
    /// Times of all requests together, and of parts of them.
    pub(crate) request_ns: AtomicU64,
    pub(crate) wait_ns: AtomicU64,
    pub(crate) send_ns: AtomicU64,
    /// How late the server came to its work.
    pub(crate) late_ns: AtomicU64,
}

impl RequestCounts {
    /// Answers so far.
    pub(crate) fn answers(&self) -> u64 {
        self.by_class.iter().flatten().map(|count| count.load(Ordering::Relaxed)).sum()
    }
}

/// One request, from its head to the last byte of its answer.
#[derive(Debug)]
pub(crate) struct RequestRecord {
    counts: Arc<RequestCounts>,
    method: Method,
    work: Arc<WorkRecord>,
    start: Instant,
    status: AtomicU16,
    queue_ns: AtomicU64,
    /// On the threads of disks, with the verification.
    disk_ns: AtomicU64,
    /// Waits for disks, without what was read while other bytes were sent.
    wait_ns: AtomicU64,
    /// Waits until the connection takes more.
    send_ns: AtomicU64,
    /// Waits for bytes of the body of the request.
    receive_ns: AtomicU64,
    /// Of the work of disks, what was done meanwhile.
    aside_ns: AtomicU64,
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
        lifeline: Option<Lifeline>,
        room: Option<OwnedSemaphorePermit>,
    ) -> Arc<RequestRecord> {
        counts.in_flight.fetch_add(1, Ordering::Relaxed);
        let about = if is_on() { ids(lifeline) } else { Ids::default() };
        event(Level::Usage, "SERVE_START", &about, |record| {
            record.text("METHOD", method.as_str()).text("PATH", path);
        });
        Arc::new(RequestRecord {
            counts: counts.clone(),
            method: method.clone(),
            work: Arc::new(WorkRecord { about, verify_ns: AtomicU64::new(0) }),
            start: Instant::now(),
            status: AtomicU16::new(0),
            queue_ns: AtomicU64::new(0),
            disk_ns: AtomicU64::new(0),
            wait_ns: AtomicU64::new(0),
            send_ns: AtomicU64::new(0),
            receive_ns: AtomicU64::new(0),
            aside_ns: AtomicU64::new(0),
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

    /// The answer begins: until now it waited for the work of disks.
    pub(crate) fn begin_answer(&self, status: StatusCode) {
        self.status.store(status.as_u16(), Ordering::Relaxed);
        let work_ns = self.queue_ns.load(Ordering::Relaxed) + self.disk_ns.load(Ordering::Relaxed);
        let work_ns = work_ns.saturating_sub(self.aside_ns.load(Ordering::Relaxed));
        let elapsed_ns = self.start.elapsed().as_nanos() as u64;
        self.wait_ns.store(work_ns.min(elapsed_ns), Ordering::Relaxed);
    }

    /// Count bytes of the body of the request, and how long they were waited for.
    pub(crate) fn count_body(&self, bytes: usize, wait: Duration) {
        self.body_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.receive_ns.fetch_add(wait.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Count work of disks that ran beside other waits of the request.
    pub(crate) fn count_aside(&self, time: Duration) {
        self.aside_ns.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.is_under_way.load(Ordering::Relaxed)
    }

    /// Note that disks have begun to work for it.
    pub(crate) fn set_under_way(&self) {
        self.is_under_way.store(true, Ordering::Relaxed);
    }

    /// What is recorded of its work.
    pub(crate) fn work(&self) -> &Arc<WorkRecord> {
        &self.work
    }

    /// Note the disk that the object lies on.
    pub(crate) fn set_disk(&self, name: &Arc<str>) {
        *self.disk.lock().unwrap_or_else(PoisonError::into_inner) = Some(name.clone());
    }

    /// Note why it is not served as requested.
    pub(crate) fn set_error(&self, error: String) {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

/// What is recorded of the work for a request: a thread of a disk may hold it after the request ended.
#[derive(Debug, Default)]
pub(crate) struct WorkRecord {
    /// Fields of the events: the number of the request here, and its lifeline, by the client.
    about: Ids,
    verify_ns: AtomicU64,
}

impl WorkRecord {
    /// Read bytes from a disk, with events.
    pub(crate) fn read<T, E>(
        &self,
        disk: &str,
        bytes: usize,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.on_disk("DISK_READ", disk, bytes, work)
    }

    /// Write bytes to a disk, with events.
    pub(crate) fn write<T, E>(
        &self,
        disk: &str,
        bytes: usize,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.on_disk("DISK_WRITE", disk, bytes, work)
    }

    /// Wait until bytes are on a disk, with events.
    pub(crate) fn sync<T, E>(
        &self,
        disk: &str,
        bytes: usize,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.on_disk("DISK_SYNC", disk, bytes, work)
    }

    fn on_disk<T, E>(
        &self,
        name: &'static str,
        disk: &str,
        bytes: usize,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let stage = Stage::start(name, &self.about, Some(disk));
        let result = work();
        stage.end(bytes, result.is_ok());
        result
    }

    /// Verify bytes that were read, or compute the checksums of those to write, with events.
    pub(crate) fn verify<T, E>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let (stage, start) = (Stage::start("VERIFY", &self.about, None), Instant::now());
        let result = work();
        self.verify_ns.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        stage.end(bytes, result.is_ok());
        result
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        let counts = &self.counts;
        counts.in_flight.fetch_sub(1, Ordering::Relaxed);
        let (out, body) = (*self.answer_bytes.get_mut(), *self.body_bytes.get_mut());
        counts.answer_bytes.fetch_add(out, Ordering::Relaxed);
        counts.body_bytes.fetch_add(body, Ordering::Relaxed);
        let elapsed = self.start.elapsed();
        let [wait_ns, send_ns] = [&mut self.wait_ns, &mut self.send_ns].map(|ns| *ns.get_mut());
        for (count, ns) in [
            (&counts.request_ns, elapsed.as_nanos() as u64),
            (&counts.wait_ns, wait_ns),
            (&counts.send_ns, send_ns),
        ] {
            count.fetch_add(ns, Ordering::Relaxed);
        }
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
        let [queue_ns, disk_ns, receive_ns] =
            [&mut self.queue_ns, &mut self.disk_ns, &mut self.receive_ns].map(|ns| *ns.get_mut());
        let verify_ns = self.work.verify_ns.load(Ordering::Relaxed);
        let times = [
            ("QUEUE_S", queue_ns),
            ("DISK_S", disk_ns.saturating_sub(verify_ns)),
            ("VERIFY_S", verify_ns),
            ("WAIT_S", wait_ns),
            ("SEND_S", send_ns),
            ("RECEIVE_S", receive_ns),
        ];
        let error = self.error.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let result = match (status, &error) {
            (_, None) if (200..400).contains(&status) => "ok",
            (404, _) => "missing",
            _ => "error",
        };
        let level = if result == "error" { Level::Error } else { Level::Usage };
        let disk_name = self.disk.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        event(level, "SERVE_END", &self.work.about, |record| {
            record.number("STATUS", status.into()).number("BYTES", out + body);
            for (key, ns) in times {
                record.seconds(key, Duration::from_nanos(ns));
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

/// The fields of the events of a request.
fn ids(lifeline: Option<Lifeline>) -> Ids {
    static REQUESTS: AtomicU64 = AtomicU64::new(1);
    let mut ids = Ids::default();
    ids.push("REQUEST", &REQUESTS.fetch_add(1, Ordering::Relaxed).to_string());
    if let Some(lifeline) = lifeline {
        ids.push("LIFELINE", &format!("{:016x}", lifeline.id()));
    }
    ids
}

/// A stage of an answer with a recorded start.
struct Stage {
    name: &'static str,
    about: Option<Ids>,
}

impl Stage {
    fn start(name: &'static str, about: &Ids, disk: Option<&str>) -> Stage {
        let mut stage = Stage { name, about: None };
        if is_on() {
            let about = disk.map_or_else(|| about.clone(), |disk| about.after("DISK", disk));
            event(Level::Usage, &format!("{name}_START"), &about, |_| {});
            stage.about = Some(about);
        }
        stage
    }

    fn end(self, bytes: usize, is_ok: bool) {
        let Some(about) = self.about else { return };
        let (level, result) = if is_ok { (Level::Usage, "ok") } else { (Level::Error, "error") };
        event(level, &format!("{}_END", self.name), &about, |record| {
            record.number("BYTES", bytes as u64).word("RESULT", result);
        });
    }
}

/// The body of an answer; the record of its request ends with it.
pub(crate) struct RecordedBody {
    body: Body,
    record: Arc<RequestRecord>,
    /// Since when the next piece is awaited.
    wait_start: Option<Instant>,
    /// Since when the last one is being sent.
    send_start: Option<Instant>,
    sending: Option<Stage>,
}

impl RecordedBody {
    pub(crate) fn new(body: Body, record: Arc<RequestRecord>) -> RecordedBody {
        RecordedBody { body, record, wait_start: None, send_start: None, sending: None }
    }

    fn count(&mut self, frame: &Poll<Option<Result<Frame<Bytes>, io::Error>>>) {
        if frame.is_pending() {
            self.wait_start.get_or_insert_with(Instant::now);
            return;
        }
        add_since(&self.record.wait_ns, self.wait_start.take());
        match frame {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.record.answer_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
                self.send_start = Some(Instant::now());
                let about = &self.record.work.about;
                self.sending.get_or_insert_with(|| Stage::start("SEND", about, None));
            }
            Poll::Ready(Some(Err(error))) => {
                self.record.counts.broken_answers.fetch_add(1, Ordering::Relaxed);
                self.record.set_error(error.to_string());
            }
            _ => {}
        }
    }
}

fn add_since(count: &AtomicU64, start: Option<Instant>) {
    let elapsed = start.map_or(Duration::ZERO, |start| start.elapsed());
    count.fetch_add(elapsed.as_nanos() as u64, Ordering::Relaxed);
}

impl Drop for RecordedBody {
    fn drop(&mut self) {
        add_since(&self.record.send_ns, self.send_start.take());
        add_since(&self.record.wait_ns, self.wait_start.take());
        if let Some(stage) = self.sending.take() {
            let is_ok = self.record.error.lock().unwrap_or_else(PoisonError::into_inner).is_none();
            stage.end(self.record.answer_bytes.load(Ordering::Relaxed) as usize, is_ok);
        }
    }
}

impl HttpBody for RecordedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let start = self.send_start.take();
        add_since(&self.record.send_ns, start);
        let frame = Pin::new(&mut self.body).poll_frame(context);
        self.count(&frame);
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
