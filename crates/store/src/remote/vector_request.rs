//! Requests for many ranges of an object. What is not answered as such is requested range by range.

use super::attempt::{Attempt, Try};
use super::link_meter::{RequestClock, RequestKind};
use super::object_reader::{ObjectReader, Piece};
use super::range_request::{AnswerCheck, Validators};
use super::request_events::record_refusal;
use super::response::header;
use super::stall_timeout::Trickle;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use reqwest::header::{CONTENT_RANGE, CONTENT_TYPE, HeaderName};
use reqwest::{Client, Response, StatusCode};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use swathe_net::host;
use swathe_plan::{Break, Caps, InFlight, plan};
use swathe_store_api::{
    Failure, JOINED_HEADER, Multipart, PROVEN_BYTES, Retry, StoreError, VectorTiming,
};
use swathe_trace::Scope;
use tokio::time::timeout;

/// Memory of an object that is read range by range.
pub(super) const CAPS: Caps = Caps { request_bytes: 4 << 20, in_flight_bytes: 32 << 20 };

/// Divide ranges into requests of up to `ranges_per_request`, and no more than the server takes.
/// Ranges of a request ascend and do not overlap.
pub(super) fn vector_requests(
    object: &ObjectReader,
    ranges: Vec<Range<u64>>,
    ranges_per_request: u32,
) -> Vec<Vec<Range<u64>>> {
    let most = ranges_per_request.min(object.most_ranges()) as usize;
    let most_bytes = if object.needs_proof { PROVEN_BYTES } else { CAPS.in_flight_bytes };
    let mut requests: Vec<Vec<Range<u64>>> = Vec::new();
    let mut byte_count = 0;
    for range in ranges {
        let length = range.end.saturating_sub(range.start);
        let is_requested = object.is_requested(&range);
        let open = requests.last_mut().filter(|request| {
            let follows = |last: &Range<u64>| object.is_requested(last) && last.end <= range.start;
            is_requested
                && request.len() < most
                && byte_count + length <= most_bytes
                && request.last().is_some_and(follows)
        });
        match open {
            Some(request) => {
                byte_count += length;
                request.push(range);
            }
            None => {
                byte_count = length;
                requests.push(vec![range]);
            }
        }
    }
    requests
}

impl ObjectReader {
    /// The bytes of the ranges of one request.
    pub(super) async fn fetch_vector(
        &self,
        client: &Client,
        ranges: Vec<Range<u64>>,
        scope: &Scope,
    ) -> Vec<Result<Piece, StoreError>> {
        if let [range] = &ranges[..] {
            return vec![self.fetch(client, range.clone(), scope).await];
        }
        let target = &self.target;
        if target.limiter.refuses_vectors.load(Ordering::Relaxed) {
            return self.fetch_each(client, &ranges, scope).await;
        }
        let attempt = VectorAttempt::new(self, client, ranges);
        let (answer, attempt) = target.read(scope, attempt).await;
        let refusal = match answer {
            Err(error) => return vec![Err(error)],
            Ok(refusal) => refusal,
        };
        let missing: Vec<Range<u64>> = attempt
            .ranges
            .iter()
            .zip(&attempt.bytes.counts)
            .filter(|&(range, &count)| (count as u64) < range.end - range.start)
            .map(|(range, _)| range.clone())
            .collect();
        let mut rests = self.fetch_each(client, &missing, scope).await.into_iter();
        let mut pieces = Vec::with_capacity(attempt.ranges.len());
        for (range, bytes) in attempt.ranges.iter().zip(attempt.bytes.into_pieces()) {
            let is_complete = bytes.len() as u64 == range.end - range.start;
            match if is_complete { None } else { rests.next() } {
                None => pieces.push(Ok((bytes, self.is_dated))),
                Some(piece) => {
                    let is_last = piece.is_err();
                    pieces.push(piece);
                    if is_last {
                        return pieces;
                    }
                }
            }
        }
        // The server answers, but not that.
        if let Some(why) = refusal {
            self.refuse_vectors(&why);
        }
        pieces
    }

    /// From now on, request range by range.
    fn refuse_vectors(&self, why: &str) {
        let target = &self.target;
        if target.limiter.refuses_vectors.swap(true, Ordering::Relaxed) {
            return;
        }
        record_refusal("VECTOR_REFUSED", &target.about, why);
        self.note(format!(
            "{}: a request for many ranges was refused ({why}); ranges are requested one by one \
             until `swathe probe` is run again",
            target.store_key
        ));
    }

    /// The bytes of ranges that do not overlap, by the requests of HTTP/1.1 that then cost least.
    pub(super) async fn fetch_each(
        &self,
        client: &Client,
        ranges: &[Range<u64>],
        scope: &Scope,
    ) -> Vec<Result<Piece, StoreError>> {
        let connections = self.target.limiter.connections();
        let most_bytes = if self.needs_proof { PROVEN_BYTES } else { CAPS.request_bytes };
        let (caps, costs) =
            (Caps { request_bytes: most_bytes, ..CAPS }, self.reduced_costs(true, true));
        let plan = plan(ranges, costs, caps, Break::BetweenSegments, connections);
        let fetch = |window: &Range<u64>| self.fetch(client, window.clone(), scope);
        let fetches = stream::iter(plan.ranges.iter().map(fetch));
        let mut windows = fetches.buffered(plan.streams.max(1) as usize);
        let (mut pieces, mut rest) = (Vec::new(), ranges);
        for window in &plan.ranges {
            let (bytes, is_dated) = match windows.next().await {
                Some(Ok(piece)) => piece,
                Some(Err(error)) => {
                    pieces.push(Err(error));
                    break;
                }
                None => break,
            };
            let count = rest.partition_point(|range| range.end <= window.end);
            let (inside, others) = rest.split_at(count);
            rest = others;
            pieces.extend(inside.iter().map(|range| {
                let from = (range.start - window.start) as usize;
                let to = (range.end - window.start) as usize;
                Ok((Bytes::copy_from_slice(&bytes[from..to]), is_dated))
            }));
        }
        pieces
    }

    /// Measure one request for many ranges.
    pub(super) async fn measure_vector(
        &self,
        client: &Client,
        ranges: &[Range<u64>],
        limit: Duration,
    ) -> Result<VectorTiming, StoreError> {
        let mut attempt = VectorAttempt::new(self, client, ranges.to_vec());
        let began = Instant::now();
        let _permit = self.target.limiter.permit(false).await;
        let refusal = match timeout(limit, attempt.request(limit, true)).await {
            Err(_) => Some(format!("no whole answer in {} s", limit.as_secs_f32())),
            Ok(Ok(refusal)) => refusal,
            Ok(Err(Failure { error, retry: Retry::Passing })) => Some(error.to_string()),
            Ok(Err(failure)) => return Err(failure.error),
        };
        let AnswerShape { parts, is_ordered, bytes, first_byte } = attempt.shape;
        let (first_byte_s, seconds) = (first_byte.as_secs_f64(), began.elapsed().as_secs_f64());
        Ok(VectorTiming { refusal, parts, is_ordered, bytes, first_byte_s, seconds })
    }
}

/// The last answer, as far as it came.
#[derive(Default)]
struct AnswerShape {
    parts: u32,
    is_ordered: bool,
    bytes: u64,
    first_byte: Duration,
}

/// A request for what is missing of many ranges.
struct VectorAttempt<'a> {
    object: &'a ObjectReader,
    client: &'a Client,
    /// Ascending, disjoint, not empty, inside the object.
    ranges: Vec<Range<u64>>,
    bytes: RangeBytes,
    shape: AnswerShape,
}

/// The first bytes of each of some ranges, in one buffer: hundreds of rows need no memory each.
struct RangeBytes {
    buffer: Vec<u8>,
    /// Where each range begins in it.
    starts: Vec<usize>,
    /// Bytes of each range that have come.
    counts: Vec<usize>,
}

impl RangeBytes {
    fn new(ranges: &[Range<u64>]) -> RangeBytes {
        let mut end = 0;
        let starts = ranges.iter().map(|range| {
            let start = end;
            end += (range.end - range.start) as usize;
            start
        });
        let starts = starts.collect();
        RangeBytes { buffer: vec![0; end], starts, counts: vec![0; ranges.len()] }
    }

    fn append(&mut self, number: usize, bytes: &[u8]) {
        let start = self.starts[number] + self.counts[number];
        self.buffer[start..start + bytes.len()].copy_from_slice(bytes);
        self.counts[number] += bytes.len();
    }

    /// The bytes of each range that have come.
    fn into_pieces(self) -> impl Iterator<Item = Bytes> {
        let buffer = Bytes::from(self.buffer);
        let pieces = self.starts.into_iter().zip(self.counts);
        pieces.map(move |(start, count)| buffer.slice(start..start + count))
    }
}

impl<'a> VectorAttempt<'a> {
    fn new(
        object: &'a ObjectReader,
        client: &'a Client,
        ranges: Vec<Range<u64>>,
    ) -> VectorAttempt<'a> {
        let bytes = RangeBytes::new(&ranges);
        VectorAttempt { object, client, ranges, bytes, shape: AnswerShape::default() }
    }

    /// The numbers and the rests of ranges that are not complete.
    fn missing(&self) -> impl Iterator<Item = (usize, Range<u64>)> {
        let ranges = self.ranges.iter().zip(&self.bytes.counts).enumerate();
        ranges.filter_map(|(number, (range, &count))| {
            let rest = range.start + count as u64..range.end;
            (!rest.is_empty()).then_some((number, rest))
        })
    }

    /// Send one request; `Some` is why it is of no use to request many ranges.
    /// `connects`: whether a connection is opened for it, as far as is known.
    async fn request(
        &mut self,
        stall: Duration,
        connects: bool,
    ) -> Result<Option<String>, Failure> {
        let (numbers, rests): (Vec<usize>, Vec<Range<u64>>) = self.missing().unzip();
        if rests.is_empty() {
            return Ok(None);
        }
        let (object, target) = (self.object, &self.object.target);
        let began = Instant::now();
        let kind = RequestKind {
            ranges: rests.len() as u64,
            bytes: rests.iter().map(|rest| rest.end - rest.start).sum(),
            connects,
            is_multiplexed: false,
        };
        let mut clock = target.clock(kind);
        let response = target.send(self.client, &rests, object.conditions(), stall).await?;
        self.shape = AnswerShape { first_byte: began.elapsed(), ..AnswerShape::default() };
        let status = response.status();
        if status.is_success() && object.validators.differ(&Validators::of(&response)) {
            return Err(object.change_error().into());
        }
        match status {
            StatusCode::PARTIAL_CONTENT => {}
            StatusCode::PRECONDITION_FAILED => return Err(object.change_error().into()),
            // The whole object, or a list or a header that is too long for it: whether the object
            // changed, a request for one range says.
            StatusCode::OK
            | StatusCode::BAD_REQUEST
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::URI_TOO_LONG
            | StatusCode::RANGE_NOT_SATISFIABLE
            | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            | StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::NOT_IMPLEMENTED => return Ok(Some(format!("answer {status}"))),
            _ => return Err(target.status_error(response, stall).await),
        }
        let kind = header(&response, CONTENT_TYPE).unwrap_or_default();
        let object_size = header(&response, HeaderName::from_static(JOINED_HEADER));
        let parts = match (object_size, header(&response, CONTENT_RANGE)) {
            (Some(size), _) => Multipart::sequence(size, rests, object.len()),
            (None, Some(range))
                if !kind.trim_start().to_ascii_lowercase().starts_with("multipart/") =>
            {
                Multipart::single(range, rests, object.len())
            }
            _ => Multipart::new(kind, rests, object.len()),
        };
        match parts {
            Err(error) => Ok(Some(error.to_string())),
            Ok(parts) => {
                let mut check = target.check_of(&response, object.needs_proof)?;
                clock.start_answer();
                let lengths = self.bytes.counts.clone();
                let all = (&numbers[..], &lengths[..]);
                let answer = self.receive(response, parts, all, stall, &mut check, clock).await;
                // Part of an answer proves nothing.
                if object.needs_proof && !matches!(answer, Ok(None)) {
                    self.keep_first(&lengths);
                }
                answer
            }
        }
    }

    /// Shorten the bytes of each range to a length.
    fn keep_first(&mut self, lengths: &[usize]) {
        self.bytes.counts.copy_from_slice(lengths);
    }

    /// Take the parts of an answer. If it is not right, nothing of it is used. `numbers`: the ranges
    /// that were asked for; `lengths`: the bytes that each range had before.
    async fn receive(
        &mut self,
        mut response: Response,
        mut parts: Multipart,
        (numbers, lengths): (&[usize], &[usize]),
        stall: Duration,
        check: &mut AnswerCheck,
        mut clock: RequestClock<'_>,
    ) -> Result<Option<String>, Failure> {
        let target = &self.object.target;
        let mut silence = self.shape.first_byte;
        let mut trickle = Trickle::start();
        loop {
            let began = Instant::now();
            let chunk = timeout(stall, response.chunk()).await;
            let wait = began.elapsed();
            silence = silence.max(wait);
            let chunk = match chunk {
                Err(_) => {
                    return Err(Failure::passing(target.stall_error(&host(response.url()), stall)));
                }
                Ok(Err(error)) => {
                    let (host, why) = (host(response.url()), swathe_net::why(&error));
                    let why = format!("{host} broke off an answer of many ranges: {why}");
                    return Err(Failure::passing(target.network(why)));
                }
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) if parts.is_complete() => {
                    target.check_answer(check)?;
                    target.limiter.silence.tell(silence);
                    clock.finish();
                    return Ok(None);
                }
                Ok(Ok(None)) if parts.is_ended() => {
                    return Ok(Some("ranges were left out of the answer".into()));
                }
                Ok(Ok(None)) => {
                    let why = format!("{} ended an answer inside a part", host(response.url()));
                    return Err(Failure::passing(target.network(why)));
                }
            };
            target.bytes.fetch_add(chunk.len() as u64, Ordering::Relaxed);
            clock.add_bytes(chunk.len(), wait);
            if let Some((_, found)) = check {
                found.add(&chunk);
            }
            let bytes = &mut self.bytes;
            let result = parts.feed(&chunk, &mut |at, data| bytes.append(numbers[at], data));
            self.shape.bytes += chunk.len() as u64;
            (self.shape.parts, self.shape.is_ordered) = (parts.parts(), parts.is_ordered());
            if let Err(error) = result {
                self.keep_first(lengths);
                return Ok(Some(error.to_string()));
            }
            if let Some(why) = trickle.count(chunk.len(), Instant::now())
                && !parts.is_complete()
            {
                let why = format!("{} {why}", host(response.url()));
                return Err(Failure::passing(target.network(why)));
            }
        }
    }
}

impl Attempt for VectorAttempt<'_> {
    /// Why the server is not to be sent such requests, if it is not.
    type Answer = Option<String>;

    async fn run(&mut self, numbers: Try) -> Result<Option<String>, Failure> {
        let (began, had) = (Instant::now(), self.bytes());
        let stall = self.object.target.stall_limit(numbers.failures);
        match self.request(stall, numbers.connects).await {
            // XRootD cuts the connection at too many ranges, and never answers some lists.
            Err(Failure { error, retry: Retry::Passing })
                if self.bytes() == had && (numbers.failures > 0 || began.elapsed() >= stall) =>
            {
                Ok(Some(error.to_string()))
            }
            answer => answer,
        }
    }

    fn bytes(&self) -> usize {
        self.bytes.counts.iter().sum()
    }

    fn next_request(&self) -> InFlight {
        let lengths = self.missing().map(|(_, rest)| rest.end - rest.start);
        let (count, bytes) = lengths.fold((0, 0), |(count, sum), bytes| (count + 1, sum + bytes));
        InFlight::request(count, bytes)
    }
}
