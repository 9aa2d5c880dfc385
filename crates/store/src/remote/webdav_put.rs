//! Objects that are written to WebDAV servers, and to XRootD's through their HTTP door.
//!
//! The bytes of an object are written under a hidden name beside its own (PUT), and renamed when
//! it is whole (MOVE): XRootD shows unfinished files. Missing folders are
//! created (MKCOL). Servers may redirect us, as they may when we read, and the targets are sent
//! no token. A long body cannot be sent twice, so an empty one goes ahead to find the way.

use super::hidden_object::HiddenObject;
use super::request_events::IdleClock;
use super::request_target::{RequestTarget, has_mark};
use super::response::header;
use super::retry::sending;
use super::webdav::{ROOM, UploadLabel, is_xrootd};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use reqwest::header::CONTENT_LENGTH;
use reqwest::{Body, Method, RequestBuilder, Response, Url};
use std::convert::Infallible;
use std::sync::Arc;
use swathe_net::{connect_events, host, net};
use swathe_store_api::{CRC32_HEADER, Comparison, Failure, PartSums, Retry, Sink, StoreError};
use swathe_trace::Scope;
use tokio::sync::mpsc::{self, Sender};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Bytes of a streamed body that are handed over at a time: a server that takes fewer in the time that
/// these may take is given up.
const CHUNK_BYTES: usize = 256 << 10;
/// Bytes that may still be on their way when the last were handed over.
const LAST_BYTES: u64 = 2 << 20;
/// Up to this length, all bytes are sent before a server can redirect the request.
const EAGER_BYTES: u64 = 64 << 10;

/// An object on its way to a server. Dropped before it is finished, it leaves nothing behind.
pub(super) struct WebdavPut {
    object: HiddenObject,
    target: Arc<RequestTarget>,
    /// The URL to which the server redirects the hidden name.
    at: Url,
    body: RequestBody,
    /// The number of the room on the server that it is written in.
    room: Option<String>,
    /// CRC-32 of what the server wrote, if it says so.
    crc_there: Option<String>,
}

/// The body.
enum RequestBody {
    Whole(Bytes),
    /// Part after part, by one request; no sender: all of them were.
    Parts(Option<Sender<Bytes>>, JoinHandle<Result<Option<String>, Failure>>),
}

impl WebdavPut {
    /// Begin to write an object of `size` bytes, at once or in parts.
    pub(super) fn create(
        target: RequestTarget,
        size: u64,
        in_parts: bool,
        room: Option<String>,
    ) -> Result<WebdavPut, StoreError> {
        let mut is_xrootd = target.is_xrootd;
        let name = target.name()?;
        if has_mark(&name) {
            // Before something else is written over.
            is_xrootd = target.block_on(async |client| {
                let look = async |_| target.look(client, &name).await;
                Ok(target.with_retries_within(sending(0), look).await?.is_xrootd)
            })?;
        }
        let object = HiddenObject::new(target, is_xrootd)?;
        let (target, at) = (object.target.clone(), object.part_url.clone());
        let body = RequestBody::Whole(Bytes::new());
        let crc_there = None;
        let mut put = WebdavPut { object, target, at, body, room, crc_there };
        if put.room.is_some() {
            // It is a server that does not redirect us, and the room is for one request.
            put.target.block_on(async |client| {
                let make = async |_| put.target.make_folders(client, &put.object.part_url).await;
                put.target.with_retries_within(sending(0), make).await
            })?;
        } else if in_parts || size > EAGER_BYTES {
            put.put(Bytes::new())?;
        }
        if in_parts {
            put.stream(size)?;
        }
        Ok(put)
    }

    /// Send a whole body to the hidden name, and learn the URL to which the server redirects it.
    fn put(&mut self, body: Bytes) -> Result<(), StoreError> {
        let target = self.target.clone();
        let mut has_created = false;
        let limit = sending(body.len() as u64);
        let response = target.block_on(async |client| {
            let put = async || {
                let request = target.writing(client, Method::PUT, &self.at);
                let request = in_room(request, self.room.as_deref());
                // nginx requires a length even of none.
                let request = request.header(CONTENT_LENGTH, body.len()).body(body.clone());
                let label = UploadLabel::new("PUT", body.len() as u64);
                target.upload_answer(request, &self.at, Some(limit), label).await
            };
            let result = target.with_retries_within(limit, async |_| {
                let mut response = put().await?;
                // A folder may lack; of nginx that is a 500.
                if matches!(response.status().as_u16(), 404 | 409 | 500) && !has_created {
                    let has_folders = target.make_folders(client, &self.object.part_url).await?;
                    has_created = true;
                    if has_folders {
                        response = put().await?;
                    }
                }
                target.check_success(response, "PUT").await
            });
            result.await
        })?;
        self.at = self.object.with_user(response.url().clone());
        self.object.is_xrootd |= is_xrootd(&response);
        self.crc_there = crc_of(&response);
        Ok(())
    }

    /// Begin a request that sends the bytes written from now on.
    fn stream(&mut self, size: u64) -> Result<(), StoreError> {
        let (sender, mut parts) = mpsc::channel(1);
        let frame = |part| Ok::<_, Infallible>(Frame::data(part));
        let (idle, mut idle_since) = (IdleClock::if_on(), None);
        let label = UploadLabel { idle: idle.clone(), ..UploadLabel::new("PUT", size) };
        let parts = stream::poll_fn(move |context| {
            let part = parts.poll_recv(context);
            if let Some(idle) = &idle {
                idle.count(&part, &mut idle_since);
            }
            part.map(|part| part.map(frame))
        });
        let body = Body::wrap(StreamBody::new(parts));
        let (target, at, scope) = (self.target.clone(), self.at.clone(), Scope::current());
        let room = self.room.take();
        let net = net().map_err(|why| self.target.network(why))?;
        let request = net.runtime.spawn(async move {
            // Without a permit: a long request would block one that its parts' reads need,
            // if that is the same store, and one that waits for it takes no parts.
            let put = async {
                let request = target.writing(&net.client, Method::PUT, &at);
                let request = in_room(request, room.as_deref());
                let request = request.header(CONTENT_LENGTH, size).body(body);
                // The writer watches that the parts are taken.
                let response = target.upload_answer(request, &at, None, label).await?;
                target.check_success(response, "PUT").await
            };
            let put = connect_events::trace(&target.about, &scope, 0, put).await;
            target.limiter.tell(put.as_ref().err().map(|failure| &failure.retry));
            put.map(|response| crc_of(&response))
        });
        self.body = RequestBody::Parts(Some(sender), request);
        Ok(())
    }

    /// Wait for the result of the request that sends the parts; no more follow.
    fn end(&mut self) -> Result<(), Failure> {
        let RequestBody::Parts(parts, request) = &mut self.body else { return Ok(()) };
        *parts = None;
        let (target, limit) = (&self.target, sending(LAST_BYTES));
        let result = target.block_on(async |_| Ok(timeout(limit, request).await))?;
        match result {
            Ok(Ok(result)) => {
                self.crc_there = result?;
                Ok(())
            }
            Ok(Err(why)) => Err(target.network(why.to_string()).into()),
            Err(_) => Err(target.stall_error(&host(&self.at), limit).into()),
        }
    }
}

impl Sink for WebdavPut {
    /// Send a part, or keep it until it is finished.
    fn write(&mut self, part: Bytes) -> Result<(), Failure> {
        let target = &self.target;
        match &mut self.body {
            RequestBody::Whole(body) => *body = part,
            RequestBody::Parts(None, _) => {
                return Err(target.network("it was sent already".into()).into());
            }
            RequestBody::Parts(Some(parts), _) => {
                let limit = sending(CHUNK_BYTES as u64);
                let is_sent = target.block_on(async |_| {
                    let mut rest = part;
                    while !rest.is_empty() {
                        let chunk = rest.split_to(rest.len().min(CHUNK_BYTES));
                        match timeout(limit, parts.send(chunk)).await {
                            Ok(Ok(())) => {}
                            Ok(Err(_)) => return Ok(false),
                            Err(_) => return Err(target.stall_error(&host(&self.at), limit)),
                        }
                    }
                    Ok(true)
                })?;
                if !is_sent {
                    // The request has ended, and says why.
                    self.end()?;
                    let why = "it was answered before all was sent";
                    return Err(self.target.network(why.into()).into());
                }
            }
        }
        Ok(())
    }

    fn finish(
        mut self: Box<Self>,
        sums: &PartSums,
        _part_bytes: u64,
        replaces: bool,
    ) -> Result<Comparison, Failure> {
        match &mut self.body {
            RequestBody::Whole(body) => {
                let body = std::mem::take(body);
                self.put(body)?;
            }
            RequestBody::Parts(..) => self.end()?,
        }
        // What is compared by other checksums is read back.
        let crc = sums.crc32().map(|crc| format!("{crc:08x}"));
        let is_compared = crc.is_some() && self.crc_there.is_some();
        if let (Some(crc), Some(found)) = (crc, &self.crc_there)
            && *found != crc
        {
            let url = self.target.url.clone();
            let (expected, found) = (format!("CRC-32 {crc}"), format!("CRC-32 {found}"));
            let error = StoreError::Differs { url, expected, found };
            return Err(Failure { error, retry: Retry::Passing });
        }
        self.object.rename(replaces)?;
        Ok(if is_compared { Comparison::Checksum } else { Comparison::Missing })
    }
}

/// The CRC-32 that the answer of a block server has.
fn crc_of(response: &Response) -> Option<String> {
    header(response, CRC32_HEADER).map(str::to_ascii_lowercase)
}

impl Drop for WebdavPut {
    fn drop(&mut self) {
        if let RequestBody::Parts(_, request) = &self.body {
            request.abort();
        }
    }
}

fn in_room(request: RequestBuilder, room: Option<&str>) -> RequestBuilder {
    match room {
        Some(room) => request.header(ROOM, room),
        None => request,
    }
}
