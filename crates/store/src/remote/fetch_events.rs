//! Events of requests.

use std::sync::atomic::{AtomicU64, Ordering};
use swathe_net::connect_events;
use swathe_store_api::StoreError;
use swathe_trace::{Ids, Level, Scope, event, is_on};

/// What events of an object are about, also of those recorded later than it is opened.
pub(super) fn about(called: &str, store: &str) -> Ids {
    let mut ids = Ids::default();
    ids.push("OBJECT", called);
    ids.push("STORE", store);
    ids
}

/// A request whose beginning was told, perhaps by another thread than will tell its end.
pub(super) struct FetchEvents<'a> {
    about: &'a Ids,
    scope: &'a Scope,
    /// 0: it was not told.
    number: u64,
    ended: bool,
}

impl<'a> FetchEvents<'a> {
    pub(super) fn start(about: &'a Ids, scope: &'a Scope) -> FetchEvents<'a> {
        static REQUESTS: AtomicU64 = AtomicU64::new(1);
        let mut told = FetchEvents { about, scope, number: 0, ended: true };
        if is_on() {
            told.number = REQUESTS.fetch_add(1, Ordering::Relaxed);
            told.ended = false;
            scope.adopt();
            event(Level::Usage, "FETCH_START", about, |record| {
                record.number("REQUEST", told.number);
            });
        }
        told
    }

    /// Do it; connections that are made for it are told, too.
    pub(super) async fn during<F: Future>(&self, work: F) -> F::Output {
        match self.number {
            0 => work.await,
            number => connect_events::traced(self.about, self.scope, number, work).await,
        }
    }

    pub(super) fn end(mut self, bytes: usize, error: Option<&StoreError>) {
        let result = match error {
            None => "ok",
            Some(StoreError::NotFound { .. }) => "missing",
            Some(_) => "error",
        };
        self.tell(bytes, result, error);
    }

    fn tell(&mut self, bytes: usize, result: &str, error: Option<&StoreError>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.scope.adopt();
        let level = if result == "error" { Level::Error } else { Level::Usage };
        event(level, "FETCH_END", self.about, |record| {
            record.number("REQUEST", self.number).number("BYTES", bytes as u64);
            record.text("RESULT", result);
            if let Some(error) = error {
                record.text("REASON", &error.to_string());
            }
        });
    }
}

impl Drop for FetchEvents<'_> {
    /// Nobody wanted the answer any more.
    fn drop(&mut self) {
        self.tell(0, "cancelled", None);
    }
}
