//! An object of a server that is open to be read: as a source of bytes.

use super::attempt::{Attempt, Try};
use super::propfind_version::{OpenedRemote, round};
use super::range_request::Validators;
use super::request_target::RequestTarget;
use crate::timing::{Timing, record};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use reqwest::{Client, StatusCode};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use swathe_net::net;
use swathe_plan::Costs;
use swathe_store_api::{Failure, Pieces, RequestTiming, Source, StoreError, Traffic, Version};
use swathe_trace::Scope;
use tokio::sync::mpsc;

/// Memory reserved before bytes have come.
const RESERVE_BYTES: u64 = 8 << 20;

/// An object on a server, at the version it had when it was opened.
pub(crate) struct RemoteObject {
    inner: Arc<Inner>,
}

struct Inner {
    target: RequestTarget,
    version: Version,
    seen: Validators,
    /// The first bytes, if they were sent with opening.
    first: Bytes,
    /// Whether the date must be requested separately.
    is_dated: bool,
}

/// The bytes of a range, and whether the date is to be checked before they are returned. Not for
/// bytes sent with opening: if they were of a version after the date, later reads report it.
type Piece = (Bytes, bool);

impl RemoteObject {
    /// Open an object: ask for its first bytes, and learn its size and version with them.
    pub(super) fn open(target: RequestTarget) -> Result<RemoteObject, StoreError> {
        let begun = target.block_on(async |client| target.begin(client).await)?;
        let OpenedRemote { size, seen, first, is_dated } = begun;
        let tag = match seen.strong() {
            Some(tag) => tag.to_string(),
            None => target.marked(seen.tag().unwrap_or("unversioned")),
        };
        let version = Version { size, tag };
        Ok(RemoteObject { inner: Arc::new(Inner { target, version, seen, first, is_dated }) })
    }

    /// An object assumed to be at a version seen before, without a request: the first read checks.
    /// `None` if a read could not check it.
    pub(super) fn assume(target: RequestTarget, version: Version) -> Option<RemoteObject> {
        if target.is_hiding() {
            return None;
        }
        let is_dated = !version.tag.starts_with('"');
        let is_date = version.is_told_apart() && !version.tag.starts_with("W/");
        if is_dated && !(is_date && target.is_dating()) {
            return None;
        }
        let etag = (!is_dated).then(|| version.tag.clone());
        let seen = Validators { etag, ..Validators::default() };
        let inner = Inner { target, version, seen, first: Bytes::new(), is_dated };
        Some(RemoteObject { inner: Arc::new(inner) })
    }
}

impl Inner {
    fn len(&self) -> u64 {
        self.version.size
    }

    fn changed(&self) -> StoreError {
        StoreError::Changed { url: self.target.url.clone(), version: self.version.to_string() }
    }

    /// Return the pieces of a round, once they are known to be of the version that was opened.
    async fn vouched(
        &self,
        client: &Client,
        scope: &Scope,
        pieces: Vec<Result<Piece, StoreError>>,
    ) -> Vec<Result<Bytes, StoreError>> {
        if pieces.iter().flatten().any(|(_, is_asked_for)| *is_asked_for) {
            let is_same = |date: &str| self.target.marked(date) == self.version.tag;
            let vouched = self.target.vouch(client, scope, is_same, || self.changed()).await;
            if let Err(error) = vouched {
                return vec![Err(error)];
            }
        }
        pieces.into_iter().map(|piece| piece.map(|(bytes, _)| bytes)).collect()
    }

    /// The bytes of a range; continues after a broken answer.
    async fn fetch(
        &self,
        client: &Client,
        range: Range<u64>,
        scope: &Scope,
    ) -> Result<Piece, StoreError> {
        let target = &self.target;
        if range.end > self.len() || range.start > range.end {
            return Err(target.short(&range, self.len().saturating_sub(range.start)));
        }
        if range.is_empty() {
            return Ok((Bytes::new(), false));
        }
        if range.end <= self.first.len() as u64 {
            return Ok((self.first.slice(range.start as usize..range.end as usize), false));
        }
        let bytes = Vec::with_capacity((range.end - range.start).min(RESERVE_BYTES) as usize);
        let attempt = RangeAttempt { object: self, client, range, bytes };
        let (read, attempt) = target.read(scope, attempt).await;
        read.map(|()| (attempt.bytes.into(), self.is_dated))
    }

    /// One request for the missing part of a range; returns the time until the answer began.
    async fn attempt(
        &self,
        client: &Client,
        range: &Range<u64>,
        stall: Duration,
        bytes: &mut Vec<u8>,
    ) -> Result<Duration, Failure> {
        let target = &self.target;
        let rest = range.start + bytes.len() as u64..range.end;
        let began = Instant::now();
        let response = target.send(client, &rest, self.seen.strong(), stall).await?;
        let first_byte = began.elapsed();
        let status = response.status();
        if status.is_success() && self.seen.differ(&Validators::of(&response)) {
            return Err(self.changed().into());
        }
        match status {
            StatusCode::PARTIAL_CONTENT => {}
            StatusCode::OK => return Err(target.no_ranges().into()),
            // Every requested range was inside the object.
            StatusCode::PRECONDITION_FAILED | StatusCode::RANGE_NOT_SATISFIABLE => {
                return Err(self.changed().into());
            }
            _ => return Err(target.refused(response, stall).await),
        }
        match target.content_range(&response)? {
            (_, Some(total)) if total != self.len() => {
                return Err(self.changed().into());
            }
            (found, _) if found != rest => return Err(target.wrong_range(&response, &rest)),
            _ => target.body(response, &rest, first_byte, stall, bytes).await?,
        }
        Ok(first_byte)
    }
}

/// A request for the missing part of a range.
struct RangeAttempt<'a> {
    object: &'a Inner,
    client: &'a Client,
    range: Range<u64>,
    bytes: Vec<u8>,
}

impl Attempt for RangeAttempt<'_> {
    type Answer = ();

    async fn run(&mut self, numbers: Try) -> Result<(), Failure> {
        let RangeAttempt { object, client, range, bytes } = self;
        let (began, had) = (Instant::now(), bytes.len());
        let stall = object.target.allowed(numbers.failed);
        let first_byte = object.attempt(client, range, stall, bytes).await?;
        record(Timing {
            root: object.target.store_key.clone(),
            bytes: (bytes.len() - had) as u64,
            in_flight: numbers.in_flight,
            first_byte_s: first_byte.as_secs_f64(),
            seconds: began.elapsed().as_secs_f64(),
        });
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

impl Source for RemoteObject {
    fn url(&self) -> &str {
        &self.inner.target.url
    }

    fn key(&self) -> &str {
        &self.inner.target.key
    }

    fn version(&self) -> &Version {
        &self.inner.version
    }

    fn identity(&self) -> Option<u64> {
        self.inner.target.identity
    }

    fn is_local(&self) -> bool {
        false
    }

    fn costs(&self) -> &Costs {
        &self.inner.target.store.costs
    }

    fn connections(&self) -> u32 {
        self.inner.target.limiter.connections()
    }

    fn first(&self) -> Bytes {
        self.inner.first.clone()
    }

    fn can_be_assumed(&self) -> bool {
        self.inner.seen.strong().is_some() || self.inner.is_dated
    }

    fn questions(&self, requests: u64, streams: u32) -> u64 {
        if self.inner.is_dated { requests.div_ceil(u64::from(round(streams))) } else { 0 }
    }

    fn take_traffic(&self) -> Traffic {
        let RequestTarget { bytes, requests, .. } = &self.inner.target;
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Traffic { bytes: take(bytes), requests: take(requests), ..Traffic::default() }
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        let range = offset..offset.saturating_add(buffer.len() as u64);
        let inner = &self.inner;
        let scope = Scope::current();
        let bytes = inner.target.block_on(async |client| {
            let pieces = inner.fetch(client, range, &scope).await;
            inner.vouched(client, &scope, vec![pieces]).await.into_iter().collect()
        });
        let bytes: Vec<Bytes> = bytes?;
        buffer.copy_from_slice(&bytes[0]);
        Ok(())
    }

    fn fetch(&self, requests: Vec<Range<u64>>, streams: u32) -> Pieces {
        let net = match net() {
            Ok(net) => net,
            Err(why) => return Box::new(std::iter::once(Err(self.inner.target.network(why)))),
        };
        let (sender, mut receiver) = mpsc::channel(1);
        let inner = self.inner.clone();
        let scope = Scope::current();
        net.runtime.spawn(async move {
            let fetch = |range| inner.fetch(&net.client, range, &scope);
            let fetches = requests.into_iter().map(fetch);
            let pieces = stream::iter(fetches).buffered(streams.max(1) as usize);
            // What waits for the date keeps no other request from being sent.
            let mut pieces = if inner.is_dated {
                pieces
                    .chunks(round(streams) as usize)
                    .map(|pieces| inner.vouched(&net.client, &scope, pieces))
                    .buffered(2)
                    .flat_map(stream::iter)
                    .left_stream()
            } else {
                pieces.map(|piece| piece.map(|(bytes, _)| bytes)).right_stream()
            };
            // The caller may have enough: the requests in flight then end with this task.
            while let Some(piece) = pieces.next().await {
                let is_last = piece.is_err();
                if sender.send(piece).await.is_err() || is_last {
                    break;
                }
            }
        });
        Box::new(std::iter::from_fn(move || receiver.blocking_recv()))
    }

    fn measure(
        &self,
        requests: &[Range<u64>],
        streams: u32,
        fresh: bool,
    ) -> Result<Vec<RequestTiming>, StoreError> {
        let inner = &self.inner;
        let began = Instant::now();
        inner.target.block_on(async |client| {
            let one = async |range: &Range<u64>| {
                // The connections of a client that is thrown away are open for nobody.
                let (client, _permit) = if fresh {
                    (swathe_net::client().map_err(|why| inner.target.network(why))?, None)
                } else {
                    (client.clone(), Some(inner.target.limiter.permit().await))
                };
                let start_s = began.elapsed().as_secs_f64();
                let mut bytes = Vec::new();
                let stall = inner.target.stall.most;
                let answered = inner.attempt(&client, range, stall, &mut bytes).await;
                let first_byte = answered.map_err(|failure| failure.error)?;
                Ok(RequestTiming {
                    bytes: bytes.len() as u64,
                    start_s,
                    first_byte_s: start_s + first_byte.as_secs_f64(),
                    end_s: began.elapsed().as_secs_f64(),
                })
            };
            let attempts = requests.iter().map(one);
            stream::iter(attempts).buffered(streams.max(1) as usize).try_collect().await
        })
    }
}
