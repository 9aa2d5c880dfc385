//! The runtime that waits for servers, and the client on it.

use crate::causes::why;
use crate::connect_events::{self, TraceConnects};
use crate::run_delay;
use reqwest::StatusCode;
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Client, ClientBuilder, Url};
use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// A server that takes longer to accept a connection has failed.
const CONNECT: Duration = Duration::from_secs(10);
/// Bytes of a request on a shared connection that may be under way: as many as a plan requests at a
/// time, so that no window holds up a server.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
/// The same of all its requests.
const CONNECTION_WINDOW_BYTES: u32 = 32 << 20;
/// The time after which a silent connection that requests wait for is checked.
const PING: Duration = Duration::from_secs(5);
/// Redirects followed for one request.
pub const REDIRECTS: usize = 5;
/// Threads that move bytes and decrypt them.
const WORKERS: usize = 2;
/// Threads that look up names.
const RESOLVERS: usize = 8;

/// The runtime and the client that all remote objects of this process share.
pub struct Net {
    /// The runtime on which requests wait.
    pub runtime: Runtime,
    /// The client that sends them, over HTTP/1.1: each on a connection that is free, or a new one.
    pub client: Client,
    multiplexing: OnceLock<Client>,
}

impl Net {
    /// The client that sends all requests to a server on one connection, over HTTP/2. It offers
    /// servers nothing else. It is made when it is first used.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub fn multiplexing(&self) -> Result<&Client, String> {
        if let Some(client) = self.multiplexing.get() {
            return Ok(client);
        }
        let client = build_client(multiplexing_settings)?;
        Ok(self.multiplexing.get_or_init(|| client))
    }
}

/// The runtime and client, created at the first use, and again in a process forked since: a
/// fork takes no threads along. They are never dropped.
pub fn net() -> Result<&'static Net, String> {
    static NET: Mutex<Option<(u32, &'static Net)>> = Mutex::new(None);
    let mut slot = NET.lock().unwrap_or_else(|error| error.into_inner());
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
    // Fails only if another part of the process has chosen, which will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(RESOLVERS)
        .thread_name("swathe-net")
        .on_thread_start(|| {
            run_delay::note_thread();
            block_sigpipe();
        })
        .on_thread_stop(run_delay::forget_thread)
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start threads: {error}"))?;
    Ok(Net { runtime, client: client()?, multiplexing: OnceLock::new() })
}

/// Let no write to a closed connection end the process, as it would end a program in C: in this thread
/// the signal stays pending, and the write is an error.
fn block_sigpipe() {
    // SAFETY: the set is initialised before it is read, and belongs to this function.
    unsafe {
        let mut signals = std::mem::zeroed();
        libc::sigemptyset(&mut signals);
        libc::sigaddset(&mut signals, libc::SIGPIPE);
        libc::pthread_sigmask(libc::SIG_BLOCK, &signals, std::ptr::null_mut());
    }
}

/// A client with no connection yet, over HTTP/1.1.
pub fn client() -> Result<Client, String> {
    build_client(single_settings)
}

fn build_client(settings: fn() -> ClientBuilder) -> Result<Client, String> {
    // A system without root certificates can still read http://; https:// then fails by itself.
    settings()
        .build()
        .or_else(|_| settings().tls_certs_only([]).build())
        .map_err(|error| format!("cannot make an HTTP client: {}", why(&error)))
}

fn settings() -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("swathe/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .connector_layer(TraceConnects(CONNECT))
        .redirect(Policy::custom(follow))
        // It would take the secrets of a query to other servers.
        .referer(false)
}

fn single_settings() -> ClientBuilder {
    settings()
        // Ranges side by side would share one connection of HTTP/2, and its window.
        .http1_only()
        // XRootD's HTTP door knows "Range", and takes "range" for something else.
        .http1_title_case_headers()
}

fn multiplexing_settings() -> ClientBuilder {
    settings()
        // Over TLS too nothing else is offered: a server that does not speak it says so before
        // anything is requested, and only one connection is opened for all that wait for one.
        .http2_prior_knowledge()
        .http2_initial_stream_window_size(STREAM_WINDOW_BYTES)
        .http2_initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        // A connection that is dead would take all further requests too.
        .http2_keep_alive_interval(PING)
        .http2_keep_alive_timeout(CONNECT)
}

/// Servers that lead only to each other. See [`confine`].
static CONFINED_HOSTS: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Let these servers, `host` or `host:port`, redirect only to each other from now on: so that who
/// may name URLs of them reads nothing else. Others, of stores that were declared, lead anywhere.
pub fn confine(hosts: Vec<String>) {
    *CONFINED_HOSTS.write().unwrap_or_else(PoisonError::into_inner) = hosts;
}

tokio::task_local! {
    static KEEPING_METHOD: ();
    static STAYING: ();
}

/// Run what must not become a GET: if its answer says that the result is elsewhere (303), that is
/// the answer.
pub async fn keeping_method<F: Future>(work: F) -> F::Output {
    KEEPING_METHOD.scope((), work).await
}

/// Run a request whose redirects its caller follows, as not every server may see all its headers: a
/// redirect is the answer. One that [`confine`] forbids is an error all the same.
pub async fn staying<F: Future>(work: F) -> F::Output {
    STAYING.scope((), work).await
}

fn follow(attempt: Attempt<'_>) -> Action {
    let hosts = CONFINED_HOSTS.read().unwrap_or_else(PoisonError::into_inner);
    let is_confined = |url: &Url| hosts.iter().any(|host| is_of(url, host));
    if attempt.previous().len() > REDIRECTS {
        attempt.error("too many redirects")
    } else if attempt.previous().first().is_some_and(is_confined) && !is_confined(attempt.url()) {
        let to = attempt.url().host_str().unwrap_or_default().to_owned();
        attempt.error(RefusedRedirect(to))
    } else if STAYING.try_with(|()| ()).is_ok()
        || attempt.status() == StatusCode::SEE_OTHER && KEEPING_METHOD.try_with(|()| ()).is_ok()
    {
        attempt.stop()
    } else {
        connect_events::set_server(|| host(attempt.url()));
        attempt.follow()
    }
}

/// Whether a URL is of a server, `host` at the port of its scheme or `host:port`.
fn is_of(url: &Url, server: &str) -> bool {
    let Some(port) = url.port_or_known_default() else { return false };
    match url.host_str().and_then(|host| server.strip_prefix(host)) {
        Some("") => url.port().is_none(),
        Some(rest) => rest.strip_prefix(':').is_some_and(|port_text| port_text == port.to_string()),
        None => false,
    }
}

/// Whether a URL is of this machine.
pub fn is_here(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let number = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || number.is_ok_and(|number| number.is_loopback())
}

/// Refuse to send a token if others on the way could read it; `what`: the setting with the URL.
pub fn check_private(url: &Url, what: &str) -> Result<(), String> {
    if url.scheme() == "https" || is_here(url) {
        return Ok(());
    }
    Err(format!(
        "would send a token over http://: the {what} must be https://, or the option anonymous true"
    ))
}

/// A server led to one that may not be read.
#[derive(Debug)]
pub struct RefusedRedirect(String);

impl fmt::Display for RefusedRedirect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "it leads to {}, which may not be read here", self.0)
    }
}

impl Error for RefusedRedirect {}

/// Why a redirect was not followed, if it may not be.
pub fn leads_away(error: &reqwest::Error) -> Option<&RefusedRedirect> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(refusal) = error.downcast_ref() {
            return Some(refusal);
        }
        cause = error.source();
    }
    None
}

/// The server of a URL.
pub fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_string(), |port| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_over_tls_or_nowhere() {
        for (url, private) in [
            ("https://storage.example/a", true),
            ("http://localhost:9000/a", true),
            ("http://127.0.0.1/a", true),
            ("http://[::1]:80/a", true),
            ("http://127.example/a", false),
            ("http://192.0.2.1/a", false),
            ("http://[2001:db8::1]/a", false),
        ] {
            assert_eq!(check_private(&Url::parse(url).unwrap(), "URL").is_ok(), private, "{url}");
        }
    }
}
