//! Events of connections that are made: the name looked up, TCP, TLS.
//!
//! The client says of a connection neither where it goes nor for what. It is begun while a request
//! is looked at, which says both; it may be finished later, by another thread.

use crate::causes::root_cause;
use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use swathe_trace::{Ids, Level, Scope, event, is_on};
use tower_layer::Layer;
use tower_service::Service;

tokio::task_local! {
    static ASKING: Asking;
}

/// A request, as far as events of its connections tell of it.
#[derive(Clone)]
struct Asking {
    about: Ids,
    scope: Scope,
    /// 0: it has none.
    number: u64,
    /// Where it goes now: redirects change that.
    server: Arc<Mutex<String>>,
}

impl Asking {
    fn server(&self) -> MutexGuard<'_, String> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Do what may make connections, for request `number` of what `about` says.
pub async fn traced<F: Future>(about: &Ids, scope: &Scope, number: u64, work: F) -> F::Output {
    if !is_on() {
        return work.await;
    }
    let (about, scope, server) = (about.clone(), scope.clone(), Arc::default());
    ASKING.scope(Asking { about, scope, number, server }, work).await
}

/// Do what may make connections: for what is being told already, else for what this thread does.
/// Threads of the runtime do nothing of their own: what they are given says for what it is.
pub async fn traced_as_current<F: Future>(work: F) -> F::Output {
    if ASKING.try_with(|_| ()).is_ok() {
        return work.await;
    }
    traced(&Ids::default(), &Scope::current(), 0, work).await
}

/// Say where the request goes from here on.
pub fn set_server(server: impl FnOnce() -> String) {
    let _ = ASKING.try_with(|asking| *asking.server() = server());
}

/// Tells of the connections that a client makes, which waits for each at most so long.
#[derive(Clone)]
pub struct TraceConnects(pub Duration);

impl<S> Layer<S> for TraceConnects {
    type Service = Connector<S>;

    fn layer(&self, inner: S) -> Connector<S> {
        Connector { inner, patience: self.0 }
    }
}

/// Makes connections, and tells of them.
#[derive(Clone)]
pub struct Connector<S> {
    inner: S,
    patience: Duration,
}

type Failed = Box<dyn Error + Send + Sync>;

impl<S, To> Service<To> for Connector<S>
where
    S: Service<To, Error = Failed>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = Failed;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, Failed>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, to: To) -> Self::Future {
        let connecting = self.inner.call(to);
        match Connecting::start(self.patience) {
            None => Box::pin(connecting),
            Some(mut told) => Box::pin(async move {
                let made = connecting.await;
                told.end(made.as_ref().err().map(|error| root_cause(&**error)));
                made
            }),
        }
    }
}

/// A connection whose beginning was told.
struct Connecting {
    asking: Asking,
    server: String,
    began: Instant,
    patience: Duration,
    ended: bool,
}

impl Connecting {
    fn start(patience: Duration) -> Option<Connecting> {
        let asking = ASKING.try_with(Asking::clone).ok().filter(|_| is_on())?;
        let server = asking.server().clone();
        let told = Connecting { asking, server, began: Instant::now(), patience, ended: false };
        told.tell("CONNECT_START", None);
        Some(told)
    }

    fn end(&mut self, failed: Option<String>) {
        self.ended = true;
        match failed {
            None => self.tell("CONNECT_END", Some(("ok", None))),
            Some(reason) => self.tell("CONNECT_END", Some(("error", Some(&reason)))),
        }
    }

    fn tell(&self, name: &str, ended: Option<(&str, Option<&str>)>) {
        let Asking { about, scope, number, .. } = &self.asking;
        scope.adopt();
        let failed = matches!(ended, Some(("error", _)));
        let level = if failed { Level::Error } else { Level::Usage };
        event(level, name, about, |record| {
            if *number > 0 {
                record.number("REQUEST", *number);
            }
            record.text("SERVER", &self.server);
            if let Some((result, reason)) = ended {
                record.text("RESULT", result);
                reason.iter().for_each(|reason| _ = record.text("REASON", reason));
            }
        });
    }
}

impl Drop for Connecting {
    /// Nobody waits for it any more.
    fn drop(&mut self) {
        match (self.ended, self.began.elapsed() >= self.patience) {
            (true, _) => {}
            (false, true) => self.end(Some(format!("not accepted within {:?}", self.patience))),
            (false, false) => self.tell("CONNECT_END", Some(("cancelled", None))),
        }
    }
}
