//! Room on a block server (`docs/block-server.md`): reserved by its method RESERVE, kept as long as
//! this process lives, and filled by a PUT that names it. Other servers do not know the method.

use super::hidden_object::{TIDYING, part_url_of};
use super::request_target::RequestTarget;
use super::response::header;
use super::retry::sending;
use super::webdav::{ROOM, method};
use super::webdav_put::WebdavPut;
use reqwest::header::HeaderName;
use reqwest::{Client, Response, StatusCode, Url};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use swathe_net::net;
use swathe_store_api::{Failure, ObjectName, Room, Sink, StoreError};
use tokio::task::JoinHandle;
use tokio::time::sleep;

const BYTES: HeaderName = HeaderName::from_static("swathe-bytes");
const SECONDS: HeaderName = HeaderName::from_static("swathe-seconds");
/// How long the server keeps room after the last word from us.
const LIFE_S: u64 = 600;
/// How often we say that we still need it.
const RENEWAL: Duration = Duration::from_secs(LIFE_S / 4);

/// Makes the target of requests for an object of the store.
pub(super) type TargetOf = Box<dyn Fn(ObjectName<'_>) -> Result<RequestTarget, StoreError> + Send>;

pub(super) struct WebdavRoom {
    target_of: TargetOf,
    target: Arc<RequestTarget>,
    url: Url,
    /// `None` once it is filled.
    id: Option<String>,
    bytes: Arc<AtomicU64>,
    renewal: JoinHandle<()>,
}

impl WebdavRoom {
    pub(super) fn create(
        target: RequestTarget,
        bytes: u64,
        target_of: TargetOf,
    ) -> Result<WebdavRoom, StoreError> {
        // The disk where the object will be written first.
        let url = part_url_of(&target.name()?);
        let target = Arc::new(target);
        let id = reserve(&target, &url, None, bytes)?;
        let bytes = Arc::new(AtomicU64::new(bytes));
        let net = net().map_err(|why| target.network(why))?;
        let renewal = {
            let (target, url, id, bytes) = (target.clone(), url.clone(), id.clone(), bytes.clone());
            net.runtime.spawn(async move {
                loop {
                    sleep(RENEWAL).await;
                    // If the server does not answer now, it may the next time; the room is there
                    // for longer. If it is gone, filling it says so.
                    let bytes = bytes.load(Ordering::Relaxed);
                    let _ = ask(&target, &net.client, &url, Some(&id), bytes).await;
                }
            })
        };
        Ok(WebdavRoom { target_of, target, url, id: Some(id), bytes, renewal })
    }
}

/// Reserve room, or more of it; returns its number.
fn reserve(
    target: &RequestTarget,
    url: &Url,
    id: Option<&str>,
    bytes: u64,
) -> Result<String, StoreError> {
    target.block_on(async |client| {
        let ask = async |_| ask(target, client, url, id, bytes).await;
        target.with_retries_within(sending(0), ask).await
    })
}

async fn ask(
    target: &RequestTarget,
    client: &Client,
    url: &Url,
    id: Option<&str>,
    bytes: u64,
) -> Result<String, Failure> {
    let response = send(target, client, url, (id, bytes), sending(0)).await?;
    let number = header(&response, ROOM).map(str::to_string);
    match (response.status(), number) {
        (status, Some(number)) if status.is_success() => Ok(number),
        // Answers of servers that do not know the method.
        (
            StatusCode::BAD_REQUEST
            | StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::NOT_IMPLEMENTED,
            _,
        ) => Err(no_room(target).into()),
        (status, None) if status.is_success() => Err(no_room(target).into()),
        _ => Err(target.status_error(response, sending(0)).await),
    }
}

fn no_room(target: &RequestTarget) -> StoreError {
    target.unsupported_error("its server cannot reserve room")
}

async fn send(
    target: &RequestTarget,
    client: &Client,
    url: &Url,
    (id, bytes): (Option<&str>, u64),
    limit: Duration,
) -> Result<Response, Failure> {
    let request = target.writing(client, method("RESERVE"), url);
    let mut request = request.header(BYTES, bytes).header(SECONDS, LIFE_S);
    if let Some(id) = id {
        request = request.header(ROOM, id);
    }
    target.answer(request, url, Some(limit)).await
}

impl Room for WebdavRoom {
    fn grow(&mut self, bytes: u64) -> Result<(), StoreError> {
        if bytes > self.bytes.load(Ordering::Relaxed) {
            reserve(&self.target, &self.url, self.id.as_deref(), bytes)?;
            self.bytes.store(bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    fn fill(
        mut self: Box<Self>,
        object: ObjectName<'_>,
        size: u64,
        in_parts: bool,
    ) -> Result<Box<dyn Sink>, StoreError> {
        let target = (self.target_of)(object)?;
        self.renewal.abort();
        Ok(Box::new(WebdavPut::create(target, size, in_parts, self.id.take())?))
    }
}

impl Drop for WebdavRoom {
    fn drop(&mut self) {
        self.renewal.abort();
        let Some(id) = &self.id else { return };
        // The server frees it by itself if it is not told.
        let give_back = async |client: &Client| {
            let answer = send(&self.target, client, &self.url, (Some(id), 0), TIDYING).await;
            answer.map(drop).map_err(|failure| failure.error)
        };
        let _ = self.target.block_on(give_back);
    }
}
