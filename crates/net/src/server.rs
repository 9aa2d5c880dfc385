//! Servers of HTTP/1.1: the connections, their limits, TLS and the end. What is answered is up to
//! a [`Service`].

mod certificates;
mod pace;
mod paced_stream;
mod unknown_clients;

use bytes::Bytes;
pub use certificates::{certificates, private_key, server_tls};
use futures_util::future::{Either, pending, select};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderMap};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
pub use pace::Pace;
use paced_stream::PacedStream;
use rustls::ServerConfig;
use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use unknown_clients::UnknownClients;

/// Who has not shown by then that it may be here is closed.
const GREETING: Duration = Duration::from_secs(5);
/// An idle connection is closed after this time.
pub const IDLE: Duration = Duration::from_secs(30);
/// A connection at the end of its life is closed after this time, even during an answer.
const LAST: Duration = Duration::from_secs(30);
/// The wait after the system had no more connections.
const PAUSE: Duration = Duration::from_millis(50);

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// What answers requests.
pub trait Service: Send + Sync + 'static {
    /// Whether the headers of a request show that its client may be here.
    fn knows(&self, headers: &HeaderMap) -> bool;

    /// Answer a request.
    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Response<Body>> + Send;
}

/// Limits of a server.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at a time of clients that it knows; further ones are closed at once.
    pub connections: usize,
    /// Longest request line with its headers.
    pub request_bytes: usize,
    /// A connection takes no more requests after this time; `None`: as long as its client wants.
    pub life: Option<Duration>,
}

/// Connections of clients.
pub struct Server<S> {
    service: S,
    limits: Limits,
    tls: Option<Arc<ServerConfig>>,
    unknown_clients: UnknownClients,
    connections: Arc<Semaphore>,
    drain: watch::Sender<bool>,
}

impl<S: Service> Server<S> {
    /// A server, with TLS only if `tls` is given.
    pub fn new(service: S, limits: Limits, tls: Option<Arc<ServerConfig>>) -> Server<S> {
        let connections = Arc::new(Semaphore::new(limits.connections));
        let (unknown_clients, drain) = (UnknownClients::default(), watch::Sender::new(false));
        Server { service, limits, tls, unknown_clients, connections, drain }
    }

    /// Serve until it is drained.
    pub async fn open(self: Arc<Self>, listener: TcpListener) {
        let mut drain = self.drain.subscribe();
        loop {
            let accept = pin!(listener.accept());
            let (stream, from) = match select(accept, pin!(wait(&mut drain))).await {
                Either::Left((Ok(client), _)) => client,
                Either::Left((Err(_), _)) => {
                    sleep(PAUSE).await;
                    continue;
                }
                Either::Right(_) => return,
            };
            let server = self.clone();
            self.unknown_clients.admit(from.ip(), |number| {
                tokio::spawn(async move { server.accept(stream, number).await }).abort_handle()
            });
        }
    }

    /// Take no more requests, and wait until all answers are sent; returns whether they were within
    /// the limit.
    pub async fn drain(&self, limit: Duration) -> bool {
        self.drain.send_replace(true);
        timeout(limit, self.drain.closed()).await.is_ok()
    }

    async fn accept(self: Arc<Self>, stream: TcpStream, number: u64) {
        let _ = stream.set_nodelay(true);
        let stream = PacedStream::new(stream);
        let Some(tls) = self.tls.clone() else { return self.serve(stream, number).await };
        if let Ok(Ok(stream)) = timeout(GREETING, TlsAcceptor::from(tls).accept(stream)).await {
            self.serve(stream, number).await;
        }
    }

    async fn serve(
        self: Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        number: u64,
    ) {
        let mut drain = self.drain.subscribe();
        let authorisation = Arc::new(Notify::new());
        let (server, says) = (self.clone(), authorisation.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            if server.service.knows(request.headers()) {
                says.notify_one();
            }
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.service.answer(request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE)
            .max_buf_size(self.limits.request_bytes)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let greeting = pin!(authorisation.notified());
        match timeout(GREETING, select(connection.as_mut(), greeting)).await {
            Ok(Either::Right(_)) => self.unknown_clients.remove(number),
            Ok(Either::Left(_)) | Err(_) => return,
        }
        let Ok(_room) = self.connections.clone().try_acquire_owned() else { return };
        let (stop, life) = (pin!(wait(&mut drain)), pin!(self.life()));
        let end = select(stop, life);
        let last = match select(connection.as_mut(), end).await {
            Either::Left(_) => return,
            // How long that may take is up to who drains.
            Either::Right((Either::Left(_), _)) => None,
            Either::Right((Either::Right(_), _)) => Some(LAST),
        };
        connection.as_mut().graceful_shutdown();
        match last {
            None => drop(connection.await),
            Some(last) => drop(timeout(last, connection).await),
        }
    }

    async fn life(&self) {
        match self.limits.life {
            Some(life) => sleep(life).await,
            None => pending().await,
        }
    }
}

/// Wait until a server is drained.
async fn wait(drain: &mut watch::Receiver<bool>) {
    // The sender, which is part of the server, is still there.
    let _ = drain.wait_for(|&drain| drain).await;
}

/// Whether headers have a token, in a time that does not depend on what they have instead.
pub fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let value = headers.get(AUTHORIZATION).map(|value| value.as_bytes()).unwrap_or_default();
    let value = value.strip_prefix(b"Bearer ").unwrap_or_default();
    !token.is_empty() && bool::from(value.ct_eq(token.as_bytes()))
}

/// An answer without headers of its own; the text, if it is not empty, explains the status.
pub fn plain_answer(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(full_body(text.into()));
    *response.status_mut() = status;
    response
}

/// A body that is whole.
pub fn full_body(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    #[test]
    fn only_the_token_is_the_token() {
        for (value, is_it) in [
            ("Bearer secret-1", true),
            ("Bearer secret-2", false),
            ("Bearer ", false),
            ("secret-1", false),
            ("Basic secret-1", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            assert_eq!(has_token(&headers, "secret-1"), is_it, "{value}");
            assert!(!has_token(&headers, ""), "{value}");
        }
        assert!(!has_token(&HeaderMap::new(), "secret-1"));
    }
}
