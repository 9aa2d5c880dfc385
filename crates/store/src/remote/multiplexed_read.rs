//! Requests that share one connection of HTTP/2. What is not answered there is requested on
//! connections of HTTP/1.1, in the same read.

use super::attempt::{Attempt, Try};
use super::link_meter::RequestKind;
use super::object_reader::{ObjectReader, Piece, RESERVE_BYTES};
use super::vector_request::CAPS;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use reqwest::Client;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use swathe_net::Net;
use swathe_store_api::{Failure, MultiplexTiming, Retry, StoreError, StoreSettings};
use swathe_trace::Scope;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// Most ranges that are planned anew together, when the server was found not to speak HTTP/2.
const MOST_SINGLE_RANGES: usize = 10_000;

/// Why requests to a store may not share a connection, if they may not: its option `http2`.
pub(super) fn why_no_multiplexing(settings: &StoreSettings) -> Option<&'static str> {
    let is_plain = |url: &str| url.starts_with("http://") || url.starts_with("dav://");
    let server = ["endpoint", "door"].iter().find_map(|name| settings.options.get(*name));
    match settings.options.get("http2").map(String::as_str) {
        Some("never") => Some("the option http2 is never"),
        Some("always") => None,
        _ if is_plain(server.unwrap_or(&settings.root)) => {
            Some("over http:// it is spoken only if the option http2 is always")
        }
        _ => None,
    }
}

/// Settings without what they do not allow.
pub(super) fn restrict(mut settings: StoreSettings) -> StoreSettings {
    if why_no_multiplexing(&settings).is_some() {
        settings.costs.multiplexed = None;
    }
    settings
}

/// A read whose requests share a connection.
pub(super) struct MultiplexedRead {
    object: Arc<ObjectReader>,
    net: &'static Net,
    scope: Scope,
    streams: usize,
    /// Not requested yet, in order.
    queue: VecDeque<Range<u64>>,
    /// In order, too. Each is a task of its own: a reader that waits with the answer to one must not
    /// hold up the connection, which others use as well.
    in_flight: VecDeque<(Range<u64>, AbortOnDropHandle<Answer>)>,
    /// Why the rest is read over HTTP/1.1.
    refusal: Option<String>,
    is_over: bool,
}

/// The bytes of a range, and why the rest of it is to be read over HTTP/1.1, if it is.
type Answer = Result<(Vec<u8>, Option<String>), StoreError>;

impl MultiplexedRead {
    pub(super) fn new(
        object: Arc<ObjectReader>,
        net: &'static Net,
        ranges: Vec<Range<u64>>,
        streams: u32,
        scope: Scope,
    ) -> MultiplexedRead {
        let (in_flight, refusal) = Default::default();
        let (queue, streams) = (ranges.into(), streams.max(1) as usize);
        MultiplexedRead { object, net, scope, streams, queue, in_flight, refusal, is_over: false }
    }

    /// The pieces, in order, some at a time; an error is the last.
    pub(super) fn pieces(self) -> BoxStream<'static, Vec<Result<Piece, StoreError>>> {
        let next = async |mut reader: MultiplexedRead| {
            let pieces = if reader.is_over { None } else { reader.next().await }?;
            reader.is_over = pieces.iter().any(Result::is_err);
            Some((pieces, reader))
        };
        stream::unfold(self, next).boxed()
    }

    async fn next(&mut self) -> Option<Vec<Result<Piece, StoreError>>> {
        let is_refused = |reader: &MultiplexedRead| {
            reader.refusal.is_some()
                || reader.object.target.limiter.refuses_http2.load(Ordering::Relaxed)
        };
        if !is_refused(self) {
            match self.net.multiplexing() {
                Ok(client) => self.send(client),
                Err(why) => self.refusal = Some(why),
            }
        }
        if is_refused(self) {
            return self.next_over_http1().await;
        }
        let (range, task) = self.in_flight.pop_front()?;
        match self.answer(task).await {
            Err(error) => Some(vec![Err(error)]),
            Ok((bytes, None)) => Some(vec![Ok(self.piece(&range, bytes))]),
            Ok((bytes, Some(why))) => {
                self.refusal = Some(why);
                self.fetch_rest(vec![(range, bytes)]).await
            }
        }
    }

    /// Send as many requests as may be in flight.
    fn send(&mut self, client: &Client) {
        while self.in_flight.len() < self.streams {
            let Some(range) = self.queue.pop_front() else { break };
            let attempt = MultiplexedAttempt::new(self.object.clone(), client, range.clone());
            let scope = self.scope.clone();
            let task = tokio::spawn(async move { attempt.answer(&scope).await });
            self.in_flight.push_back((range, AbortOnDropHandle::new(task)));
        }
    }

    async fn answer(&self, task: AbortOnDropHandle<Answer>) -> Answer {
        match task.await {
            Ok(answer) => answer,
            Err(error) => Err(self.object.target.network(format!("a request ended: {error}"))),
        }
    }

    fn piece(&self, range: &Range<u64>, bytes: Vec<u8>) -> Piece {
        (bytes.into(), self.object.is_dated && self.object.is_requested(range))
    }

    /// The next ranges, over HTTP/1.1, as many as fit into memory.
    async fn next_over_http1(&mut self) -> Option<Vec<Result<Piece, StoreError>>> {
        let mut ranges = Vec::new();
        let mut batch_bytes = 0;
        while batch_bytes < CAPS.in_flight_bytes && ranges.len() < MOST_SINGLE_RANGES {
            let (range, bytes) = match self.in_flight.pop_front() {
                Some((range, task)) => match self.answer(task).await {
                    Ok((bytes, _)) => (range, bytes),
                    Err(error) => return Some(vec![Err(error)]),
                },
                None => match self.queue.pop_front() {
                    Some(range) => (range, Vec::new()),
                    None => break,
                },
            };
            batch_bytes += range.end.saturating_sub(range.start);
            ranges.push((range, bytes));
        }
        if ranges.is_empty() { None } else { self.fetch_rest(ranges).await }
    }

    /// Ranges with their first bytes: the rest comes over HTTP/1.1.
    async fn fetch_rest(
        &mut self,
        ranges: Vec<(Range<u64>, Vec<u8>)>,
    ) -> Option<Vec<Result<Piece, StoreError>>> {
        let is_requested = |range: &Range<u64>| self.object.is_requested(range);
        let rest = |range: &Range<u64>, bytes: &[u8]| range.start + bytes.len() as u64..range.end;
        let rests = ranges.iter().filter(|(range, _)| is_requested(range));
        let rests: Vec<Range<u64>> = rests
            .map(|(range, bytes)| rest(range, bytes))
            .filter(|range| !range.is_empty())
            .collect();
        let mut tails =
            self.object.fetch_each(&self.net.client, &rests, &self.scope).await.into_iter();
        let mut pieces = Vec::with_capacity(ranges.len());
        for (range, mut bytes) in ranges {
            let rest = rest(&range, &bytes);
            let piece = if !is_requested(&range) {
                self.object.fetch(&self.net.client, range, &self.scope).await
            } else if rest.is_empty() {
                Ok(self.piece(&range, bytes))
            } else {
                match tails.next()? {
                    Ok((tail, _)) => {
                        bytes.extend_from_slice(&tail);
                        Ok(self.piece(&range, bytes))
                    }
                    Err(error) => Err(error),
                }
            };
            let is_last = piece.is_err();
            pieces.push(piece);
            if is_last {
                return Some(pieces);
            }
        }
        // The server answers, but not so.
        if let Some(why) = &self.refusal {
            self.object.refuse_http2(why);
        }
        Some(pieces)
    }
}

/// A request for the missing part of a range, on the shared connection.
struct MultiplexedAttempt {
    object: Arc<ObjectReader>,
    client: Client,
    range: Range<u64>,
    bytes: Vec<u8>,
}

impl MultiplexedAttempt {
    fn new(object: Arc<ObjectReader>, client: &Client, range: Range<u64>) -> MultiplexedAttempt {
        MultiplexedAttempt { object, client: client.clone(), range, bytes: Vec::new() }
    }

    async fn answer(mut self, scope: &Scope) -> Answer {
        if !self.object.is_requested(&self.range) {
            let (bytes, _) = self.object.fetch(&self.client, self.range, scope).await?;
            return Ok((bytes.into(), None));
        }
        self.bytes.reserve((self.range.end - self.range.start).min(RESERVE_BYTES) as usize);
        let object = self.object.clone();
        let (refusal, attempt) = object.target.read_in_stream(scope, self).await;
        Ok((attempt.bytes, refusal?))
    }
}

impl Attempt for MultiplexedAttempt {
    /// Why the server is not to be sent such requests, if it is not.
    type Answer = Option<String>;

    async fn run(&mut self, numbers: Try) -> Result<Option<String>, Failure> {
        let (began, had) = (Instant::now(), self.bytes.len());
        let stall = self.object.target.stall_limit(numbers.failures);
        let MultiplexedAttempt { object, client, range, bytes } = self;
        let kind = RequestKind {
            connects: numbers.connects,
            is_multiplexed: true,
            ..RequestKind::default()
        };
        let Err(failure) = object.attempt(client, range, stall, (kind, None), bytes).await else {
            return Ok(None);
        };
        let is_of_the_connection =
            matches!(failure.error, StoreError::Network { .. } | StoreError::Unsupported { .. });
        let is_over = match failure.retry {
            Retry::Never => true,
            // A connection that the server closes is opened anew, once.
            Retry::Passing => numbers.failures > 0 || began.elapsed() >= stall,
            Retry::Overloaded { .. } => false,
        };
        match is_of_the_connection && is_over && self.bytes.len() == had {
            true => Ok(Some(failure.error.to_string())),
            false => Err(failure),
        }
    }

    fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

impl ObjectReader {
    /// Measure requests that share a connection.
    pub(super) async fn measure_multiplexed(
        &self,
        net: &Net,
        ranges: &[Range<u64>],
        streams: u32,
        limit: Duration,
    ) -> Result<MultiplexTiming, StoreError> {
        let (began, none) = (Instant::now(), MultiplexTiming::default());
        let refusal_of = |why: String| MultiplexTiming { refusal: Some(why), ..none.clone() };
        if let Some(why) = why_no_multiplexing(&self.target.store) {
            return Ok(refusal_of(why.to_string()));
        }
        let client = net.multiplexing().map_err(|why| self.target.network(why))?;
        let one = async |range: &Range<u64>| {
            let _permit = self.target.limiter.permit(true).await;
            let (send_time, mut bytes) = (began.elapsed(), Vec::new());
            let kind =
                RequestKind { connects: true, is_multiplexed: true, ..RequestKind::default() };
            let start = self.attempt(client, range, limit, (kind, None), &mut bytes).await?;
            let first_byte_s = (send_time + start.first_byte).as_secs_f64();
            Ok(MultiplexTiming {
                bytes: bytes.len() as u64,
                header_bytes: start.header_bytes,
                first_byte_s,
                seconds: began.elapsed().as_secs_f64(),
                ..none.clone()
            })
        };
        let all = stream::iter(ranges.iter().map(one)).buffered(streams.max(1) as usize);
        let all = all.try_fold(none.clone(), async |all, one: MultiplexTiming| {
            let is_first = all.bytes == 0;
            Ok(MultiplexTiming {
                bytes: all.bytes + one.bytes,
                header_bytes: one.header_bytes,
                first_byte_s: if is_first { one.first_byte_s } else { all.first_byte_s },
                seconds: all.seconds.max(one.seconds),
                ..all
            })
        });
        match timeout(limit, all).await {
            Err(_) => Ok(refusal_of(format!("no whole answer in {} s", limit.as_secs_f32()))),
            Ok(Ok(timing)) => Ok(timing),
            Ok(Err(Failure { error: StoreError::Network { why, .. }, .. })) => Ok(refusal_of(why)),
            Ok(Err(failure)) => Err(failure.error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_tls_it_is_spoken_only_if_that_is_set() {
        let why = |root: &str, options: &[(&str, &str)]| {
            let options = options.iter().map(|(name, value)| (name.to_string(), value.to_string()));
            why_no_multiplexing(&StoreSettings::new("a".into(), root.into(), options.collect()))
        };
        for (root, options, may) in [
            ("https://host/a", &[][..], true),
            ("http://host/a", &[], false),
            ("http://host/a", &[("http2", "always")], true),
            ("https://host/a", &[("http2", "never")], false),
            ("https://host/a", &[("http2", "auto")], true),
            ("dav://host/a", &[], false),
            ("s3://bucket", &[], true),
            ("s3://bucket", &[("endpoint", "http://127.0.0.1:9000")], false),
        ] {
            assert_eq!(why(root, options).is_none(), may, "{root} {options:?}");
        }
    }
}
