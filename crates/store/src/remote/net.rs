//! The runtime that waits for servers, and the client on it.

use crate::error::StoreError;
use reqwest::{Client, ClientBuilder, redirect};
use std::error::Error;
use std::sync::Mutex;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// A server that takes longer to accept a connection has failed.
const CONNECT: Duration = Duration::from_secs(10);
/// Redirects followed for one request.
const REDIRECTS: usize = 5;
/// Pauses before a failed request is tried again.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(1)];
/// Threads that move bytes and decrypt them.
const WORKERS: usize = 2;
/// Threads that look up names.
const RESOLVERS: usize = 8;

/// What all remote objects of this process share.
pub(super) struct Net {
    pub(super) runtime: Runtime,
    pub(super) client: Client,
}

/// A failed attempt.
pub(super) struct Failure {
    pub(super) error: StoreError,
    /// Whether another attempt may succeed.
    pub(super) transient: bool,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure { error, transient: false }
    }
}

/// The runtime and client, made when first asked for, and again in a process forked since: a
/// fork takes no threads along. They are never dropped.
pub(super) fn net() -> Result<&'static Net, String> {
    static NET: Mutex<Option<(u32, &'static Net)>> = Mutex::new(None);
    let mut slot = NET.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let process = std::process::id();
    match *slot {
        Some((made_by, net)) if made_by == process => Ok(net),
        _ => {
            let net = Box::leak(Box::new(make()?));
            *slot = Some((process, net));
            Ok(net)
        }
    }
}

fn make() -> Result<Net, String> {
    // Fails only where another part of the process has chosen, which will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(RESOLVERS)
        .thread_name("swathe-net")
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start threads: {error}"))?;
    // A system without root certificates can still read http://; https:// then fails by itself.
    let client = settings()
        .build()
        .or_else(|_| settings().tls_certs_only([]).build())
        .map_err(|error| format!("cannot make an HTTP client: {}", cause(&error)))?;
    Ok(Net { runtime, client })
}

fn settings() -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("swathe/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .read_timeout(super::STALL)
        .redirect(redirect::Policy::limited(REDIRECTS))
        // It would take the secrets of a query to other servers.
        .referer(false)
        // Ranges side by side would share one connection of HTTP/2, and its window.
        .http1_only()
}

/// Try again, a few times, what fails for a reason that may pass.
pub(super) async fn retry<T>(
    attempt: impl AsyncFn() -> Result<T, Failure>,
) -> Result<T, StoreError> {
    for pause in PAUSES {
        match attempt().await {
            Err(failure) if failure.transient => tokio::time::sleep(pause).await,
            done => return done.map_err(|failure| failure.error),
        }
    }
    attempt().await.map_err(|failure| failure.error)
}

/// The first cause of an error; unlike the error itself it does not name the URL.
pub(super) fn cause(error: &reqwest::Error) -> String {
    let Some(mut cause) = error.source() else {
        return if error.is_timeout() { "timed out".into() } else { "request failed".into() };
    };
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
