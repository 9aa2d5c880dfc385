//! Serves blocks to the other workers of a pool: `GET /blocks/DIGEST,DIGEST,...`, nothing else.
//!
//! The answer is a file of the disk cache for each digest, as it is stored, after its length in
//! four bytes (little-endian; 0 if absent). The file names its object, version and cell,
//! and holds a checksum of all that: the client checks it. A digest is a number, so a request
//! cannot name any other file.

use crate::BlockCache;
use crate::tls::Identity;
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::stream::{self, StreamExt};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::HeaderMap;
use hyper::{Method, Request, Response, StatusCode};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use swathe_net::net;
use swathe_net::server::{Body, Limits, Server, Service, has_token, plain_answer};
use swathe_store_api::StoreError;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Most cells of one request.
pub(crate) const MOST_CELLS: usize = 16;
/// A file that is longer is no cell.
pub(crate) const MOST_FILE_BYTES: u64 = 1 << 20;
/// Limits of the connections of clients with the token.
const LIMITS: Limits =
    Limits { connections: 256, request_bytes: 16 << 10, life: Some(Duration::from_secs(300)) };
/// Requests that are answered at a time; others are answered that we are busy.
const REQUESTS: usize = 16;

struct PeerService {
    blocks: Arc<BlockCache>,
    token: String,
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
        let service = PeerService {
            blocks: self.clone(),
            token: token.to_string(),
            requests: Arc::new(Semaphore::new(REQUESTS)),
        };
        net.runtime.spawn(Arc::new(Server::new(service, LIMITS, tls)).open(listener));
        Ok(local)
    }
}

impl Service for PeerService {
    fn knows(&self, headers: &HeaderMap) -> bool {
        has_token(headers, &self.token)
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if !self.knows(request.headers()) {
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
        Response::new(BodyExt::boxed_unsync(StreamBody::new(frames)))
    }
}

fn refusal(status: StatusCode) -> Response<Body> {
    plain_answer(status, Bytes::new())
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
