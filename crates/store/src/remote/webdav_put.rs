//! Objects that are written to WebDAV servers, and to XRootD's through their HTTP door.
//!
//! The bytes of an object are written under a hidden name beside its own (PUT), and renamed when
//! it is whole (MOVE): XRootD shows unfinished files. Missing folders are
//! created (MKCOL). Servers may redirect us, as they may when we read, and the targets are sent
//! no token. A long body cannot be sent twice, so an empty one goes ahead to find the way.

use super::request_target::{RequestTarget, has_mark};
use super::retry::sending;
use super::webdav::{DEPTH, ROOM, is_xrootd, method};
use crate::redact::percent_decode;
use bytes::Bytes;
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use reqwest::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use reqwest::{Body, Method, RequestBuilder, StatusCode, Url};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use swathe_net::{connect_events, host, net};
use swathe_store_api::{Failure, PartSums, Sink, StoreError, part_name};
use swathe_trace::Scope;
use tokio::sync::mpsc::{self, Sender};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Up to this length, all bytes are sent before a server can redirect the request.
const EAGER_BYTES: u64 = 64 << 10;
/// How long to wait for the removal of an abandoned file.
pub(super) const TIDYING: Duration = Duration::from_secs(5);

const DESTINATION: HeaderName = HeaderName::from_static("destination");
const OVERWRITE: HeaderName = HeaderName::from_static("overwrite");

/// An object on its way to a server. Dropped before it is finished, it leaves nothing behind.
pub(super) struct WebdavPut {
    target: Arc<RequestTarget>,
    name: Url,
    part_url: Url,
    /// The URL to which the server redirects the hidden name.
    at: Url,
    body: RequestBody,
    /// Bytes of the longest part.
    part_bytes: u64,
    is_xrootd: bool,
    /// The number of the room on the server that it is written in.
    room: Option<String>,
    is_finished: bool,
}

/// The body.
enum RequestBody {
    Whole(Bytes),
    /// Part after part, by one request; no sender: all of them were.
    Parts(Option<Sender<Bytes>>, JoinHandle<Result<(), Failure>>),
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
                let state = target.with_retries(async |_| target.look(client, &name).await).await?;
                Ok(state.is_xrootd)
            })?;
            target.check_uncut(&name, is_xrootd)?;
        }
        let part_url = part_url_of(&name);
        let (at, body) = (part_url.clone(), RequestBody::Whole(Bytes::new()));
        let target = Arc::new(target);
        let (part_bytes, is_finished) = (0, false);
        let mut put = WebdavPut {
            target,
            name,
            part_url,
            at,
            body,
            part_bytes,
            is_xrootd,
            room,
            is_finished,
        };
        if put.room.is_some() {
            // It is a server that does not redirect us, and the room is for one request.
            put.target.block_on(async |client| {
                let make = async |_| put.target.make_folders(client, &put.part_url).await;
                put.target.with_retries(make).await
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
        let response = target.block_on(async |client| {
            let put = async || {
                let request = target.writing(client, Method::PUT, &self.at);
                let request = in_room(request, self.room.as_deref());
                // nginx requires a length even of none.
                let request = request.header(CONTENT_LENGTH, body.len()).body(body.clone());
                target.answer(request, &self.at, Some(sending(body.len() as u64))).await
            };
            let result = target.with_retries(async |_| {
                let mut response = put().await?;
                // A folder may lack; of nginx that is a 500.
                if matches!(response.status().as_u16(), 404 | 409 | 500) && !has_created {
                    let has_folders = target.make_folders(client, &self.part_url).await?;
                    has_created = true;
                    if has_folders {
                        response = put().await?;
                    }
                }
                target.check_success(response, "PUT").await
            });
            result.await
        })?;
        let mut at = response.url().clone();
        if at.origin() == self.part_url.origin() {
            // These are not in the request of the object, but a header beside it.
            let _ = at.set_username(self.part_url.username());
            let _ = at.set_password(self.part_url.password());
        }
        self.at = at;
        self.is_xrootd |= is_xrootd(&response);
        Ok(())
    }

    /// Begin a request that sends the bytes written from now on.
    fn stream(&mut self, size: u64) -> Result<(), StoreError> {
        let (sender, mut parts) = mpsc::channel(1);
        let frame = |part| Ok::<_, Infallible>(Frame::data(part));
        let parts =
            stream::poll_fn(move |context| parts.poll_recv(context).map(|part| part.map(frame)));
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
                target.check_success(target.answer(request, &at, None).await?, "PUT").await
            };
            let put = connect_events::trace(&target.about, &scope, 0, put).await;
            target.limiter.tell(put.as_ref().err().map(|failure| &failure.retry));
            put.map(|_| ())
        });
        self.body = RequestBody::Parts(Some(sender), request);
        Ok(())
    }

    /// Wait for the result of the request that sends the parts; no more follow.
    fn end(&mut self) -> Result<(), Failure> {
        let RequestBody::Parts(parts, request) = &mut self.body else { return Ok(()) };
        *parts = None;
        // Two of them may still be on their way.
        let (target, limit) = (&self.target, sending(2 * self.part_bytes));
        let result = target.block_on(async |_| Ok(timeout(limit, request).await))?;
        match result {
            Ok(Ok(result)) => result,
            Ok(Err(why)) => Err(target.network(why.to_string()).into()),
            Err(_) => Err(target.stall_error(&host(&self.at), limit).into()),
        }
    }

    fn rename(&self, replaces: bool) -> Result<(), StoreError> {
        let target = &self.target;
        let overwrite = if replaces { "T" } else { "F" };
        let to = self.destination()?;
        target.block_on(async |client| {
            let result = target.with_retries(async |failures| {
                let request = target.writing(client, method("MOVE"), &self.part_url);
                let request = request.header(DESTINATION, &to).header(OVERWRITE, overwrite);
                let response = target.answer(request, &self.part_url, Some(sending(0))).await?;
                // An earlier one may have succeeded: the caller checks the target.
                if failures > 0 && response.status() == StatusCode::NOT_FOUND {
                    return Ok(());
                }
                if !replaces && response.status() == StatusCode::PRECONDITION_FAILED {
                    return Err(StoreError::Exists { url: target.url.clone() }.into());
                }
                target.check_success(response, "MOVE").await.map(|_| ())
            });
            result.await
        })
    }

    /// The name as MOVE takes it. XRootD (5.5) decodes no `%20` there, and drops non-ASCII
    /// characters at the end of a header.
    fn destination(&self) -> Result<HeaderValue, StoreError> {
        self.target.check_uncut(&self.name, self.is_xrootd)?;
        let mut url = self.name.clone();
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        let text = match self.is_xrootd {
            false => url.to_string().into_bytes(),
            true => {
                [url.origin().ascii_serialization().into(), percent_decode(url.path())].concat()
            }
        };
        let is_cut = self.is_xrootd && !text.last().is_some_and(u8::is_ascii_graphic);
        match HeaderValue::from_bytes(&text) {
            Ok(name) if !is_cut => Ok(name),
            _ => Err(self
                .target
                .unsupported_error("the server cannot be told to give it such a name")),
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
                self.part_bytes = self.part_bytes.max(part.len() as u64);
                let limit = sending(self.part_bytes);
                let is_sent =
                    target.block_on(async |_| match timeout(limit, parts.send(part)).await {
                        Ok(is_sent) => Ok(is_sent.is_ok()),
                        Err(_) => Err(target.stall_error(&host(&self.at), limit)),
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
        _sums: &PartSums,
        _part_bytes: u64,
        replaces: bool,
    ) -> Result<(), Failure> {
        match &mut self.body {
            RequestBody::Whole(body) => {
                let body = std::mem::take(body);
                self.put(body)?;
            }
            RequestBody::Parts(..) => self.end()?,
        }
        self.rename(replaces)?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for WebdavPut {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        if let RequestBody::Parts(_, request) = &self.body {
            request.abort();
        }
        // Hidden, and written anew the next time, if it cannot be removed.
        let _ = self.target.block_on(async |client| {
            let request = self.target.writing(client, Method::DELETE, &self.part_url);
            let request = request.header(DEPTH, "0");
            Ok(self.target.answer(request, &self.part_url, Some(TIDYING)).await.is_ok())
        });
    }
}

fn in_room(request: RequestBuilder, room: Option<&str>) -> RequestBuilder {
    match room {
        Some(room) => request.header(ROOM, room),
        None => request,
    }
}

/// The hidden name of an object while it comes.
pub(super) fn part_url_of(name: &Url) -> Url {
    let mut url = name.clone();
    let last = name.path().rsplit('/').next().unwrap_or_default();
    let last = String::from_utf8_lossy(&percent_decode(last)).into_owned();
    if let Ok(mut parts) = url.path_segments_mut() {
        parts.pop().push(&part_name(&last));
    }
    url
}
