//! The runtime that waits for servers, and the client on it.

use reqwest::{Client, ClientBuilder, redirect};
use std::error::Error;
use std::sync::Mutex;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// A server that takes longer to accept a connection has failed.
const CONNECT: Duration = Duration::from_secs(10);
/// Redirects followed for one request.
const REDIRECTS: usize = 5;
/// Threads that move bytes and decrypt them.
const WORKERS: usize = 2;
/// Threads that look up names.
const RESOLVERS: usize = 8;

/// What all remote objects of this process share.
pub(crate) struct Net {
    pub(crate) runtime: Runtime,
    pub(super) client: Client,
}

/// The runtime and client, made when first asked for, and again in a process forked since: a
/// fork takes no threads along. They are never dropped.
pub(crate) fn net() -> Result<&'static Net, String> {
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
    Ok(Net { runtime, client: client()? })
}

/// A client with no connection yet.
pub(super) fn client() -> Result<Client, String> {
    // A system without root certificates can still read http://; https:// then fails by itself.
    settings()
        .build()
        .or_else(|_| settings().tls_certs_only([]).build())
        .map_err(|error| format!("cannot make an HTTP client: {}", cause(&error)))
}

fn settings() -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("swathe/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .redirect(redirect::Policy::limited(REDIRECTS))
        // It would take the secrets of a query to other servers.
        .referer(false)
        // Ranges side by side would share one connection of HTTP/2, and its window.
        .http1_only()
        // XRootD's HTTP door knows "Range", and takes "range" for something else.
        .http1_title_case_headers()
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
