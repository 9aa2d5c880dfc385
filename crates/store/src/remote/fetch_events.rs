//! Events of requests.

use std::sync::atomic::{AtomicU64, Ordering};
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
pub(super) struct FetchEvents<'a> {
    about: &'a Ids,
    scope: &'a Scope,
    /// 0: it was not recorded.
    number: u64,
    is_ended: bool,
}

impl<'a> FetchEvents<'a> {
    /// Record the start of a request for `bytes` bytes.
    pub(super) fn start(about: &'a Ids, scope: &'a Scope, bytes: u64) -> FetchEvents<'a> {
        static REQUESTS: AtomicU64 = AtomicU64::new(1);
        let mut events = FetchEvents { about, scope, number: 0, is_ended: true };
        if is_on() {
            events.number = REQUESTS.fetch_add(1, Ordering::Relaxed);
            events.is_ended = false;
            scope.adopt();
            event(Level::Usage, "FETCH_START", about, |record| {
                events.identify(record);
                record.number("ASKED_BYTES", bytes);
            });
        }
        events
    }

    fn identify(&self, record: &mut Record<'_>) {
        record.number("REQUEST", self.number);
        record.id("LIFELINE", Lifeline::of_request(self.number).id());
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
        self.record(bytes, result, error);
    }

    fn record(&mut self, bytes: usize, result: &str, error: Option<&StoreError>) {
        if std::mem::replace(&mut self.is_ended, true) {
            return;
        }
        self.scope.adopt();
        let level = if result == "error" { Level::Error } else { Level::Usage };
        event(level, "FETCH_END", self.about, |record| {
            self.identify(record);
            record.number("BYTES", bytes as u64).text("RESULT", result);
            if let Some(error) = error {
                record.text("REASON", &error.to_string());
            }
        });
    }
}

impl Drop for FetchEvents<'_> {
    /// Record the end if the reader no longer waits for the answer.
    fn drop(&mut self) {
        self.record(0, "cancelled", None);
    }
}
