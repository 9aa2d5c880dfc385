//! Serves blocks to the other workers of a pool: `GET /blocks/DIGEST,DIGEST,...`, nothing else.
//!
//! The answer is a file of the disk cache for each digest, as it is stored, after its length in
//! four bytes (little-endian; 0 if absent). The file names its object, version and cell,
//! and holds a checksum of all that: the client checks it. A digest is a number, so a request
//! cannot name any other file.

use crate::BlockCache;
use crate::tls::Identity;
use crate::unknown_clients::UnknownClients;
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::future::{Either, select};
use futures_util::stream::{self, StreamExt};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{AUTHORIZATION, HeaderMap};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq;
use swathe_net::net;
use swathe_store_api::StoreError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// Most cells of one request.
pub(crate) const MOST_CELLS: usize = 16;
/// A file that is longer is no cell.
pub(crate) const MOST_FILE_BYTES: u64 = 1 << 20;
/// Connections at a time of clients with the token; further ones are closed at once.
const CONNECTIONS: usize = 256;
/// Who has not sent the token by then is closed.
const GREETING: Duration = Duration::from_secs(5);
/// Requests that are answered at a time; others are answered that we are busy.
const REQUESTS: usize = 16;
/// Longest request line with its headers.
const REQUEST_BYTES: usize = 16 << 10;
/// An idle connection is closed after this time.
pub(crate) const IDLE: Duration = Duration::from_secs(30);
/// It takes no more requests after this time,
const LIFE: Duration = Duration::from_secs(300);
/// and is closed after this further time, even during an answer.
const LAST: Duration = Duration::from_secs(30);
/// The wait after the system had no more connections.
const PAUSE: Duration = Duration::from_millis(50);

type Body = BoxBody<Bytes, Infallible>;

struct PeerServer {
    blocks: Arc<BlockCache>,
    token: String,
    tls: Option<Arc<ServerConfig>>,
    unknown_clients: UnknownClients,
    connections: Arc<Semaphore>,
    requests: Arc<Semaphore>,
}

impl BlockCache {
    /// Serve blocks, on a free port of an address until the process ends, to clients that send
    /// the token; with an identity, by TLS only, to clients with one of the same authority.
    ///
    /// # Errors
    /// [`StoreError::Network`] if nothing can listen there, or the identity is unusable.
    pub fn serve(
        self: &Arc<BlockCache>,
        address: IpAddr,
        token: &str,
        identity: Option<&Identity>,
    ) -> Result<SocketAddr, StoreError> {
        let fail = |why: String| StoreError::Network { url: address.to_string(), why };
        let net = net().map_err(fail)?;
        let tls = identity.map(Identity::server).transpose().map_err(fail)?;
        let listening = net.runtime.block_on(TcpListener::bind((address, 0)));
        let listener = listening.map_err(|error| fail(error.to_string()))?;
        let local = listener.local_addr().map_err(|error| fail(error.to_string()))?;
        let server = PeerServer {
            blocks: self.clone(),
            token: token.to_string(),
            tls,
            unknown_clients: UnknownClients::default(),
            connections: Arc::new(Semaphore::new(CONNECTIONS)),
            requests: Arc::new(Semaphore::new(REQUESTS)),
        };
        net.runtime.spawn(Arc::new(server).open(listener));
        Ok(local)
    }
}

impl PeerServer {
    async fn open(self: Arc<PeerServer>, listener: TcpListener) {
        loop {
            let Ok((stream, from)) = listener.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            let server = self.clone();
            self.unknown_clients.admit(from.ip(), |number| {
                tokio::spawn(async move { server.accept(stream, number).await }).abort_handle()
            });
        }
    }

    async fn accept(self: Arc<PeerServer>, stream: TcpStream, number: u64) {
        let _ = stream.set_nodelay(true);
        let Some(tls) = self.tls.clone() else { return self.serve(stream, number).await };
        if let Ok(Ok(stream)) = timeout(GREETING, TlsAcceptor::from(tls).accept(stream)).await {
            self.serve(stream, number).await;
        }
    }

    async fn serve(
        self: Arc<PeerServer>,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        number: u64,
    ) {
        let authorisation = Arc::new(Notify::new());
        let (server, says) = (self.clone(), authorisation.clone());
        let service = service_fn(move |request| {
            if server.is_authorised(request.headers()) {
                says.notify_one();
            }
            let answer = server.answer(&request);
            async move { Ok::<_, Infallible>(answer) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE)
            .max_buf_size(REQUEST_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let greeting = pin!(authorisation.notified());
        match timeout(GREETING, select(connection.as_mut(), greeting)).await {
            Ok(Either::Right(_)) => self.unknown_clients.remove(number),
            Ok(Either::Left(_)) | Err(_) => return,
        }
        let Ok(_room) = self.connections.clone().try_acquire_owned() else { return };
        if timeout(LIFE, connection.as_mut()).await.is_err() {
            connection.as_mut().graceful_shutdown();
            let _ = timeout(LAST, connection).await;
        }
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Body> {
        if !self.is_authorised(request.headers()) {
            return refusal(StatusCode::UNAUTHORIZED);
        }
        if request.method() != Method::GET {
            return refusal(StatusCode::METHOD_NOT_ALLOWED);
        }
        let uri = request.uri();
        let Some(path_digests) =
            uri.path().strip_prefix("/blocks/").filter(|_| uri.query().is_none())
        else {
            return refusal(StatusCode::NOT_FOUND);
        };
        let Some(digests) = parse(path_digests) else { return refusal(StatusCode::BAD_REQUEST) };
        let Ok(room) = self.requests.clone().try_acquire_owned() else {
            return refusal(StatusCode::SERVICE_UNAVAILABLE);
        };
        let blocks = self.blocks.clone();
        let frames = stream::iter(digests).then(move |digest| {
            let _room = &room; // until the last is sent
            let blocks = blocks.clone();
            let file = tokio::task::spawn_blocking(move || frame(&blocks, digest));
            async move { Ok(Frame::data(file.await.unwrap_or_else(|_| absent()))) }
        });
        Response::new(BodyExt::boxed(StreamBody::new(frames)))
    }

    /// Whether a request has the token, in a time that does not depend on what it has instead.
    fn is_authorised(&self, headers: &HeaderMap) -> bool {
        let token = headers.get(AUTHORIZATION).map(|value| value.as_bytes()).unwrap_or_default();
        let token = token.strip_prefix(b"Bearer ").unwrap_or_default();
        !self.token.is_empty() && bool::from(token.ct_eq(self.token.as_bytes()))
    }
}

fn refusal(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Empty::new().boxed());
    *response.status_mut() = status;
    response
}

/// Digests, 32 hexadecimal digits each.
fn parse(text: &str) -> Option<Vec<u128>> {
    let digest = |text: &str| {
        let is_one = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_one.then(|| u128::from_str_radix(text, 16).ok())?
    };
    let parts = text.split(',').take(MOST_CELLS + 1).map(digest);
    parts.collect::<Option<Vec<_>>>().filter(|digests| digests.len() <= MOST_CELLS)
}

fn frame(blocks: &BlockCache, digest: u128) -> Bytes {
    let Some(file) = blocks.disk.file(digest, MOST_FILE_BYTES) else { return absent() };
    let mut frame = BytesMut::with_capacity(4 + file.len());
    frame.put_u32_le(file.len() as u32);
    frame.put_slice(&file);
    frame.freeze()
}

fn absent() -> Bytes {
    Bytes::from_static(&[0; 4])
}
