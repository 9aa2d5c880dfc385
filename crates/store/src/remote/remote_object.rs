//! An object of a server that is open to be read: as a source of bytes.

use super::flights;
use super::link_meter::RequestKind;
use super::multiplexed_read::MultiplexedRead;
use super::object_reader::{ObjectReader, Piece};
use super::propfind_version::{OpenedRemote, round};
use super::range_request::Validators;
use super::request_target::RequestTarget;
use super::vector_request::vector_requests;
use bytes::Bytes;
use futures_util::future::FutureExt;
use futures_util::stream::{self, Stream, StreamExt, TryStreamExt};
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use swathe_net::{Net, net};
use swathe_plan::{Connections, Costs, Factors, Others, Way};
use swathe_store_api::{
    Checksum, Failure, Interrupt, MultiplexTiming, Pieces, RequestTiming, Retry, Source,
    StoreError, Traffic, VectorTiming, Version,
};
use swathe_trace::Scope;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// An object on a server, at the version it had when it was opened.
pub(crate) struct RemoteObject {
    inner: Arc<ObjectReader>,
}

impl RemoteObject {
    /// Open an object: ask for its first bytes, and learn its size and version with them.
    pub(super) fn open(target: RequestTarget) -> Result<RemoteObject, StoreError> {
        let opened_object = target.block_on(async |client| target.join_opening(client).await)?;
        let OpenedRemote { size, validators, first, is_dated } = opened_object;
        let tag = match validators.strong() {
            Some(tag) => tag.to_string(),
            None => target.add_mark(validators.tag().unwrap_or("unversioned")),
        };
        let version = Version { size, tag };
        Ok(RemoteObject::new(target, version, validators, first, is_dated))
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
        let validators = Validators { etag, ..Validators::default() };
        Some(RemoteObject::new(target, version, validators, Bytes::new(), is_dated))
    }

    /// The same at a version that an ETag stands for, where each answer must be proven.
    pub(super) fn assume_with_proof(
        target: RequestTarget,
        version: Version,
    ) -> Option<RemoteObject> {
        if !version.tag.starts_with('"') {
            return None;
        }
        let mut object = RemoteObject::assume(target, version)?;
        // What others asked for is not proven.
        let inner = Arc::get_mut(&mut object.inner)?;
        (inner.needs_proof, inner.flights) = (true, Arc::default());
        Some(object)
    }

    /// An object of a size, without a request: reads check only that. `None` if hidden words may make it
    /// another object.
    pub(super) fn assume_size(target: RequestTarget, size: u64) -> Option<RemoteObject> {
        let version = Version { size, tag: "unversioned".into() };
        let object =
            |target| RemoteObject::new(target, version, Validators::default(), Bytes::new(), false);
        (!target.is_hiding()).then(|| object(target))
    }

    fn new(
        target: RequestTarget,
        version: Version,
        validators: Validators,
        first: Bytes,
        is_dated: bool,
    ) -> RemoteObject {
        let flights = if target.is_hiding() || !version.is_told_apart() {
            Arc::default()
        } else {
            flights::of_object(&target.key, &version, target.identity)
        };
        let (reduced_costs, notes) = Default::default();
        let inner = ObjectReader {
            target,
            version,
            validators,
            first,
            is_dated,
            reduced_costs,
            notes,
            flights,
            needs_proof: false,
        };
        RemoteObject { inner: Arc::new(inner) }
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
        self.inner.costs()
    }

    fn connections(&self) -> Connections {
        self.inner.target.limiter.connections()
    }

    fn factors(&self) -> Factors {
        let target = &self.inner.target;
        target.limiter.link.factors(&target.store.costs)
    }

    fn others(&self) -> Others {
        self.inner.target.limiter.others(self.inner.target.group)
    }

    fn first(&self) -> Bytes {
        self.inner.first.clone()
    }

    fn checksums(&self) -> Result<Vec<Checksum>, StoreError> {
        let ObjectReader { target, version, .. } = &*self.inner;
        target.block_on(async |client| target.checksums(client, version).await)
    }

    fn can_be_assumed(&self) -> bool {
        self.inner.validators.strong().is_some() || self.inner.is_dated
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
        let _reader = inner.target.enter_reader();
        inner.target.block_on(async |client| {
            if inner.read_into(client, &range, buffer, &scope).await? {
                return Ok(());
            }
            let pieces = inner.fetch_ranges(client, vec![range], &scope).await;
            let pieces = inner.check_version(client, &scope, pieces).await;
            let bytes = pieces.into_iter().collect::<Result<Vec<Bytes>, StoreError>>()?;
            buffer.copy_from_slice(&bytes[0]);
            Ok(())
        })
    }

    fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.inner.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn fetch_by(&self, ranges: Vec<Range<u64>>, way: Way) -> Pieces {
        let net = match net() {
            Ok(net) => net,
            Err(why) => return Box::new(std::iter::once(Err(self.inner.target.network(why)))),
        };
        let (sender, mut receiver) = mpsc::channel(1);
        let (inner, scope) = (self.inner.clone(), Scope::current());
        let reader = inner.target.enter_reader();
        net.runtime.spawn(async move {
            let _reader = reader;
            let answers = answers(&inner, net, ranges, way, &scope);
            let mut rounds = bytes_of(answers, &inner, net, way.streams, &scope);
            // The caller may have enough: the requests in flight then end with this task.
            while let Some(mut pieces) = rounds.next().await {
                let error = pieces.iter().position(Result::is_err);
                error.into_iter().for_each(|at| pieces.truncate(at + 1));
                if sender.send(pieces).await.is_err() || error.is_some() {
                    break;
                }
            }
        });
        let interrupt = Interrupt::current();
        let url = self.inner.target.url.clone();
        // What one answer brought is handed over at once: a wake-up for each row of a cut takes longer
        // than the rest of its work.
        let mut pieces = Vec::new().into_iter();
        Box::new(std::iter::from_fn(move || {
            loop {
                if let Some(piece) = pieces.next() {
                    return Some(piece);
                }
                match net.runtime.block_on(interrupt.unless_set(receiver.recv())) {
                    Some(next) => pieces = next?.into_iter(),
                    None => return Some(Err(StoreError::Interrupted { url: url.clone() })),
                }
            }
        }))
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
                    (client.clone(), Some(inner.target.limiter.permit(false).await))
                };
                let (mut bytes, mut start_s) = (Vec::new(), began.elapsed().as_secs_f64());
                let stall = inner.target.stall.most;
                let kind = RequestKind { connects: true, ..RequestKind::default() };
                let mut result =
                    inner.attempt(&client, range, stall, (kind, None), &mut bytes).await;
                // A server may close an idle connection at the moment at which it is used again.
                if let Err(Failure { retry: Retry::Passing, .. }) = &result
                    && bytes.is_empty()
                {
                    start_s = began.elapsed().as_secs_f64();
                    result = inner.attempt(&client, range, stall, (kind, None), &mut bytes).await;
                }
                let first_byte = result.map_err(|failure| failure.error)?.first_byte;
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

    fn measure_vector(
        &self,
        ranges: &[Range<u64>],
        limit: Duration,
    ) -> Result<VectorTiming, StoreError> {
        let inner = &self.inner;
        inner.target.block_on(async |client| inner.measure_vector(client, ranges, limit).await)
    }

    fn measure_multiplexed(
        &self,
        ranges: &[Range<u64>],
        streams: u32,
        limit: Duration,
    ) -> Result<MultiplexTiming, StoreError> {
        let inner = &self.inner;
        let net = net().map_err(|why| inner.target.network(why))?;
        net.runtime.block_on(inner.measure_multiplexed(net, ranges, streams, limit))
    }
}

/// The answers to the requests of a read, in order: the pieces of each.
fn answers(
    object: &Arc<ObjectReader>,
    net: &'static Net,
    ranges: Vec<Range<u64>>,
    way: Way,
    scope: &Scope,
) -> impl Stream<Item = Vec<Result<Piece, StoreError>>> + use<> {
    let (object, scope, streams) = (object.clone(), scope.clone(), way.streams);
    if way.multiplexed {
        return MultiplexedRead::new(object, net, ranges, streams, scope).pieces().left_stream();
    }
    let requests = vector_requests(&object, ranges, way.ranges_per_request);
    // Others may wait for a request, however slowly this reader takes what it brings.
    let is_one = requests.len() == 1;
    let fetch = move |ranges| {
        let (object, scope) = (object.clone(), scope.clone());
        let task = async move { object.fetch_ranges(&net.client, ranges, &scope).await };
        if is_one {
            task.left_future()
        } else {
            AbortOnDropHandle::new(net.runtime.spawn(task))
                .map(|result| result.unwrap_or_else(|error| resume_unwind(error.into_panic())))
                .right_future()
        }
    };
    let fetches = requests.into_iter().map(fetch);
    stream::iter(fetches).buffered(streams.max(1) as usize).right_stream()
}

/// The bytes of the pieces, by answer. If the version of the object is a date, that is checked first:
/// what waits for it keeps no other request from being sent.
fn bytes_of(
    answers: impl Stream<Item = Vec<Result<Piece, StoreError>>>,
    object: &ObjectReader,
    net: &'static Net,
    streams: u32,
    scope: &Scope,
) -> impl Stream<Item = Vec<Result<Bytes, StoreError>>> {
    if object.is_dated {
        let check = move |answers: Vec<Vec<_>>| {
            object.check_version(&net.client, scope, answers.into_iter().flatten().collect())
        };
        let rounds = answers.chunks(round(streams) as usize).map(check);
        return rounds.buffered(2).left_stream();
    }
    let bytes = |pieces: Vec<Result<Piece, StoreError>>| {
        pieces.into_iter().map(|piece| piece.map(|(bytes, _)| bytes)).collect()
    };
    answers.map(bytes).right_stream()
}
