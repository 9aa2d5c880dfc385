//! Events of requests: FETCH of those that read, UPLOAD of those that write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};
use swathe_net::connect_events;
use swathe_store_api::StoreError;
use swathe_trace::{Ids, Level, Lifeline, Record, Scope, event, is_on};

/// The fields of events of an object, also of those recorded after it is opened.
pub(super) fn about(object: &str, store: &str) -> Ids {
    let mut ids = Ids::default();
    ids.push("OBJECT", object);
    ids.push("STORE", store);
    ids
}

/// Record that a server did not answer a way of requesting as its profile says.
pub(super) fn record_refusal(name: &str, about: &Ids, why: &str) {
    event(Level::Warning, name, about, |record| {
        record.text("REASON", why);
    });
}

/// Record that bytes were on their way to another reader, and need no request.
pub(super) fn record_shared_wait(about: &Ids, scope: &Scope, bytes: u64) {
    if is_on() {
        scope.adopt();
        event(Level::Usage, "FETCH_SHARED", about, |record| {
            record.number("BYTES", bytes);
        });
    }
}

/// A request with a recorded start, perhaps by another thread than will record its end.
pub(super) struct RequestEvents<'a> {
    about: &'a Ids,
    scope: &'a Scope,
    /// Its method, if it writes.
    method: Option<&'static str>,
    /// 0: it was not recorded.
    number: u64,
    is_ended: bool,
}

impl<'a> RequestEvents<'a> {
    /// Record the start of a request for `bytes` bytes.
    pub(super) fn start(about: &'a Ids, scope: &'a Scope, bytes: u64) -> RequestEvents<'a> {
        RequestEvents::of_method(about, scope, None, bytes)
    }

    /// Record the start of a request that sends `bytes` bytes, or of another that writes.
    pub(super) fn start_upload(
        about: &'a Ids,
        scope: &'a Scope,
        method: &'static str,
        bytes: u64,
    ) -> RequestEvents<'a> {
        RequestEvents::of_method(about, scope, Some(method), bytes)
    }

    fn of_method(
        about: &'a Ids,
        scope: &'a Scope,
        method: Option<&'static str>,
        bytes: u64,
    ) -> RequestEvents<'a> {
        static REQUESTS: AtomicU64 = AtomicU64::new(1);
        let mut events = RequestEvents { about, scope, method, number: 0, is_ended: true };
        if is_on() {
            events.number = REQUESTS.fetch_add(1, Ordering::Relaxed);
            events.is_ended = false;
            scope.adopt();
            let name = if method.is_some() { "UPLOAD_START" } else { "FETCH_START" };
            event(Level::Usage, name, about, |record| {
                events.identify(record);
                record.number("ASKED_BYTES", bytes);
            });
        }
        events
    }

    fn identify(&self, record: &mut Record<'_>) {
        record.number("REQUEST", self.number);
        record.id("LIFELINE", Lifeline::of_request(self.number).id());
        if let Some(method) = self.method {
            record.word("METHOD", method);
        }
    }

    /// Run it; connections that are opened for it are recorded, too.
    pub(super) async fn during<F: Future>(&self, work: F) -> F::Output {
        match self.number {
            0 => work.await,
            number => connect_events::trace(self.about, self.scope, number, work).await,
        }
    }

    pub(super) fn end(mut self, bytes: usize, error: Option<&StoreError>) {
        let result = match error {
            None => "ok",
            Some(StoreError::NotFound { .. }) => "missing",
            Some(_) => "error",
        };
        self.record(bytes as u64, result, |record| {
            if let Some(error) = error {
                record.text("REASON", &error.to_string());
            }
        });
    }

    /// Record the end of a request that writes: the status of its answer or the error, and how long
    /// there were no bytes to send.
    pub(super) fn end_upload(
        mut self,
        bytes: u64,
        answer: Result<u16, &StoreError>,
        idle: Option<Duration>,
    ) {
        let (result, reason) = match answer {
            // A folder may lack, or a condition may not hold: the client expects that.
            Ok(404 | 409 | 412) => ("missing", String::new()),
            Ok(status @ 400..) => ("error", format!("the answer is {status}")),
            Ok(_) => ("ok", String::new()),
            Err(error) => ("error", error.to_string()),
        };
        self.record(if result == "ok" { bytes } else { 0 }, result, |record| {
            if let Some(idle) = idle {
                record.seconds("IDLE_S", idle);
            }
            if !reason.is_empty() {
                record.text("REASON", &reason);
            }
        });
    }

    fn record(&mut self, bytes: u64, result: &str, fill: impl FnOnce(&mut Record<'_>)) {
        if std::mem::replace(&mut self.is_ended, true) {
            return;
        }
        self.scope.adopt();
        let level = if result == "error" { Level::Error } else { Level::Usage };
        let name = if self.method.is_some() { "UPLOAD_END" } else { "FETCH_END" };
        event(level, name, self.about, |record| {
            self.identify(record);
            record.number("BYTES", bytes).text("RESULT", result);
            fill(record);
        });
    }
}

impl Drop for RequestEvents<'_> {
    /// Record the end if nobody waits for the answer any more.
    fn drop(&mut self) {
        self.record(0, "cancelled", |_| {});
    }
}

/// How long a request waited for the bytes that it is to send: its own line is idle then.
#[derive(Clone, Debug, Default)]
pub(super) struct IdleClock(Arc<AtomicU64>);

impl IdleClock {
    /// The clock, while events are recorded.
    pub(super) fn if_on() -> Option<IdleClock> {
        is_on().then(IdleClock::default)
    }

    /// Add the time of one wait; `since`: when it began, kept by the caller between two polls.
    pub(super) fn count<T>(&self, poll: &Poll<T>, since: &mut Option<Instant>) {
        if poll.is_pending() {
            since.get_or_insert_with(Instant::now);
        } else if let Some(since) = since.take() {
            self.0.fetch_add(since.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
    }

    pub(super) fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}
