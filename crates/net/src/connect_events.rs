//! Events of the request that a task works on: its answer, and new connections for it (name lookup,
//! TCP, TLS).
//!
//! The client reports neither the server nor the request of a connection. A connection is begun
//! while a request is polled, which has both; it may be finished later, by another thread.

use crate::causes::root_cause;
use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use swathe_trace::{Ids, Level, Lifeline, Scope, event, is_on};
use tower_layer::Layer;
use tower_service::Service;

tokio::task_local! {
    static CURRENT: CurrentRequest;
}

/// The request that events of its connections refer to.
#[derive(Clone)]
struct CurrentRequest {
    about: Ids,
    scope: Scope,
    /// 0: it has none.
    number: u64,
    /// Its server now: redirects change that.
    server: Arc<Mutex<String>>,
}

impl CurrentRequest {
    fn server(&self) -> MutexGuard<'_, String> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Run `work`, which may open connections, for request `number` with the ids of `about`.
pub async fn trace<F: Future>(about: &Ids, scope: &Scope, number: u64, work: F) -> F::Output {
    if !is_on() {
        return work.await;
    }
    let (about, scope, server) = (about.clone(), scope.clone(), Arc::default());
    CURRENT.scope(CurrentRequest { about, scope, number, server }, work).await
}

/// Run `work`, which may open connections: for the current request if any, else for this thread's
/// work. Threads of the runtime have no work of their own, only that of a request.
pub async fn trace_current<F: Future>(work: F) -> F::Output {
    if CURRENT.try_with(|_| ()).is_ok() {
        return work.await;
    }
    trace(&Ids::default(), &Scope::current(), 0, work).await
}

/// Set the server of the request from here on.
pub fn set_server(server: impl FnOnce() -> String) {
    let _ = CURRENT.try_with(|request| *request.server() = server());
}

/// The lifeline of the current request, if its events have one: to be sent with it.
pub fn lifeline() -> Option<Lifeline> {
    let number = CURRENT.try_with(|request| request.number).ok().filter(|&number| number > 0)?;
    Some(Lifeline::of_request(number))
}

/// Record that the answer to the current request begins.
pub fn record_answer(status: u16) {
    let Some(request) = CURRENT.try_with(CurrentRequest::clone).ok().filter(|_| is_on()) else {
        return;
    };
    if request.number > 0 {
        request.scope.adopt();
        event(Level::Usage, "FETCH_ANSWER", &request.about, |record| {
            record.number("REQUEST", request.number);
            record.id("LIFELINE", Lifeline::of_request(request.number).id());
            record.number("STATUS", status.into());
        });
    }
}

/// Records the connections of a client, with its limit for the time to connect.
#[derive(Clone)]
pub struct TraceConnects(pub Duration);

impl<S> Layer<S> for TraceConnects {
    type Service = Connector<S>;

    fn layer(&self, inner: S) -> Connector<S> {
        Connector { inner, patience: self.0 }
    }
}

/// Opens connections, and records them.
#[derive(Clone)]
pub struct Connector<S> {
    inner: S,
    patience: Duration,
}

type ConnectError = Box<dyn Error + Send + Sync>;

impl<S, To> Service<To> for Connector<S>
where
    S: Service<To, Error = ConnectError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, ConnectError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, to: To) -> Self::Future {
        let connecting = self.inner.call(to);
        match ConnectionAttempt::start(self.patience) {
            None => Box::pin(connecting),
            Some(mut attempt) => Box::pin(async move {
                let result = connecting.await;
                attempt.end(result.as_ref().err().map(|error| root_cause(&**error)));
                result
            }),
        }
    }
}

/// A connection with a recorded start.
struct ConnectionAttempt {
    request: CurrentRequest,
    server: String,
    began: Instant,
    patience: Duration,
    is_ended: bool,
}

impl ConnectionAttempt {
    fn start(patience: Duration) -> Option<ConnectionAttempt> {
        let request = CURRENT.try_with(CurrentRequest::clone).ok().filter(|_| is_on())?;
        let server = request.server().clone();
        let attempt =
            ConnectionAttempt { request, server, began: Instant::now(), patience, is_ended: false };
        attempt.record("CONNECT_START", None);
        Some(attempt)
    }

    fn end(&mut self, error: Option<String>) {
        self.is_ended = true;
        match error {
            None => self.record("CONNECT_END", Some(("ok", None))),
            Some(reason) => self.record("CONNECT_END", Some(("error", Some(&reason)))),
        }
    }

    fn record(&self, name: &str, outcome: Option<(&str, Option<&str>)>) {
        let CurrentRequest { about, scope, number, .. } = &self.request;
        scope.adopt();
        let is_error = matches!(outcome, Some(("error", _)));
        let level = if is_error { Level::Error } else { Level::Usage };
        event(level, name, about, |record| {
            if *number > 0 {
                record.number("REQUEST", *number);
            }
            record.text("SERVER", &self.server);
            if let Some((result, reason)) = outcome {
                record.text("RESULT", result);
                reason.iter().for_each(|reason| _ = record.text("REASON", reason));
            }
        });
    }
}

impl Drop for ConnectionAttempt {
    /// Record the end if the reader no longer waits for it.
    fn drop(&mut self) {
        match (self.is_ended, self.began.elapsed() >= self.patience) {
            (true, _) => {}
            (false, true) => self.end(Some(format!("not accepted within {:?}", self.patience))),
            (false, false) => self.record("CONNECT_END", Some(("cancelled", None))),
        }
    }
}
