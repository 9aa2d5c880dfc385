//! An object of a server at the version it had when it was opened: ranges of it.

use super::attempt::{Attempt, Try};
use super::flights::RangeFlights;
use super::line_turns::LineTurn;
use super::link_meter::RequestKind;
use super::range_request::{ByteTarget, Conditions, ReaderBuffer, Validators};
use super::request_events::record_refusal;
use super::request_target::RequestTarget;
use crate::timing::{Timing, record};
use bytes::Bytes;
use reqwest::header::HeaderMap;
use reqwest::{Client, StatusCode};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use swathe_plan::{Costs, InFlight};
use swathe_store_api::{Failure, StoreError, Version};
use swathe_trace::Scope;

/// Memory reserved before bytes have come.
pub(super) const RESERVE_BYTES: u64 = 8 << 20;

/// A read of at least this length goes straight into the buffer of its reader. Shorter reads are of
/// headers and rows. Several readers often need those at the same time, and share a request.
const DIRECT_BYTES: usize = 256 << 10;

/// An object, and what was seen of it.
pub(super) struct ObjectReader {
    pub(super) target: RequestTarget,
    pub(super) version: Version,
    pub(super) validators: Validators,
    /// The first bytes, if they were sent with opening.
    pub(super) first: Bytes,
    /// Whether the date must be requested separately.
    pub(super) is_dated: bool,
    /// The costs without what the server may refuse: requests for many ranges, requests that share
    /// a connection, both.
    pub(super) reduced_costs: [OnceLock<Costs>; 3],
    /// Not reported yet.
    pub(super) notes: Mutex<Vec<String>>,
    /// Ranges of it that are on their way.
    pub(super) flights: Arc<RangeFlights>,
    /// Whether the server must say of each answer that it verified it, and what its checksum is.
    pub(super) needs_proof: bool,
}

/// The bytes of a range, and whether the date is to be checked before they are returned. Not for
/// bytes sent with opening: if they were of a version after the date, later reads report it.
pub(super) type Piece = (Bytes, bool);

impl ObjectReader {
    pub(super) fn len(&self) -> u64 {
        self.version.size
    }

    /// The costs of reading as the server was not seen to refuse it.
    pub(super) fn costs(&self) -> &Costs {
        let limiter = &self.target.limiter;
        let refuses = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        self.reduced_costs(refuses(&limiter.refuses_vectors), refuses(&limiter.refuses_http2))
    }

    /// The costs of reading without requests for many ranges, or without shared connections.
    pub(super) fn reduced_costs(&self, vectors: bool, http2: bool) -> &Costs {
        let all = &self.target.store.costs;
        let costs = match (vectors, http2) {
            (false, false) => return all,
            (true, false) => &self.reduced_costs[0],
            (false, true) => &self.reduced_costs[1],
            (true, true) => &self.reduced_costs[2],
        };
        costs.get_or_init(|| Costs {
            multi_range: all.multi_range.filter(|_| !vectors),
            multiplexed: all.multiplexed.filter(|_| !http2),
            ..all.clone()
        })
    }

    /// From now on, send requests over HTTP/1.1.
    pub(super) fn refuse_http2(&self, why: &str) {
        let target = &self.target;
        if target.limiter.refuses_http2.swap(true, Ordering::Relaxed) {
            return;
        }
        record_refusal("HTTP2_REFUSED", &target.about, why);
        self.note(format!(
            "{}: requests over HTTP/2 were refused ({why}); HTTP/1.1 is used until `swathe probe` \
             is run again",
            target.store_key
        ));
    }

    /// Leave a note for the user.
    pub(super) fn note(&self, note: String) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }

    /// Most ranges of it in one request, at least one.
    pub(super) fn most_ranges(&self) -> u32 {
        self.target.store.costs.multi_range.map_or(1, |of| of.most_ranges(self.len()))
    }

    /// Whether a range is read with a request: it is in the object, and did not come with opening.
    pub(super) fn is_requested(&self, range: &Range<u64>) -> bool {
        !range.is_empty() && range.end <= self.len() && range.end > self.first.len() as u64
    }

    /// What requests for it say beside their ranges.
    pub(super) fn conditions(&self) -> Conditions<'_> {
        Conditions { etag: self.validators.strong(), wants_digest: self.needs_proof }
    }

    pub(super) fn change_error(&self) -> StoreError {
        // Who opens it from now on must not get what was asked for before.
        self.target.forget_opening();
        StoreError::Changed { url: self.target.url.clone(), version: self.version.to_string() }
    }

    /// Return the pieces of a round, once they are known to be of the version that was opened.
    pub(super) async fn check_version(
        &self,
        client: &Client,
        scope: &Scope,
        pieces: Vec<Result<Piece, StoreError>>,
    ) -> Vec<Result<Bytes, StoreError>> {
        if pieces.iter().flatten().any(|(_, is_asked_for)| *is_asked_for) {
            let is_same = |date: &str| self.target.add_mark(date) == self.version.tag;
            let result = self.target.vouch(client, scope, is_same, || self.change_error()).await;
            if let Err(error) = result {
                return vec![Err(error)];
            }
        }
        pieces.into_iter().map(|piece| piece.map(|(bytes, _)| bytes)).collect()
    }

    /// The bytes of a range; continues after a broken answer.
    pub(super) async fn fetch(
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
        let turn = self.turn(&range).await;
        let attempt = RangeAttempt { object: self, client, range, bytes, turn };
        let (result, attempt) = target.read(scope, attempt).await;
        result.map(|()| (attempt.bytes.into(), self.is_dated))
    }

    /// Read a range into the buffer of its reader, with a request that no other reader joins;
    /// `false` if it is to be read otherwise: it is short, or is not requested, or a part of it is
    /// on its way to another.
    pub(super) async fn read_into(
        &self,
        client: &Client,
        range: &Range<u64>,
        buffer: &mut [u8],
        scope: &Scope,
    ) -> Result<bool, StoreError> {
        let is_long = buffer.len() >= DIRECT_BYTES;
        if !is_long || !self.is_requested(range) || self.flights.has_any(range) {
            return Ok(false);
        }
        let bytes = ReaderBuffer { buffer, count: 0 };
        let turn = self.turn(range).await;
        let attempt = RangeAttempt { object: self, client, range: range.clone(), bytes, turn };
        self.target.read(scope, attempt).await.0?;
        if self.is_dated {
            let is_same = |date: &str| self.target.add_mark(date) == self.version.tag;
            self.target.vouch(client, scope, is_same, || self.change_error()).await?;
        }
        Ok(true)
    }

    /// Wait until a range may be requested, if it is long and the line was measured.
    async fn turn(&self, range: &Range<u64>) -> Option<LineTurn<'_>> {
        let target = &self.target;
        if !target.store.is_measured {
            return None;
        }
        let (costs, bytes) = (self.costs(), range.end - range.start);
        // Those who wait to be sent need the line, too.
        let _entry = target.limiter.ledger.enter(target.group, InFlight::request(1, bytes));
        target.limiter.line.wait(costs, target.limiter.link.factors(costs), bytes).await
    }

    /// One request for the missing part of a range; returns how the answer began. `kind`: but for
    /// its ranges and bytes; `turn`: that of a long one.
    pub(super) async fn attempt(
        &self,
        client: &Client,
        range: &Range<u64>,
        stall: Duration,
        (kind, turn): (RequestKind, Option<&LineTurn<'_>>),
        bytes: &mut impl ByteTarget,
    ) -> Result<AnswerStart, Failure> {
        let target = &self.target;
        let rest = range.start + bytes.count() as u64..range.end;
        let began = Instant::now();
        let kind = RequestKind { ranges: 1, bytes: rest.end - rest.start, ..kind };
        let mut clock = target.clock(kind).in_turn(turn);
        let response =
            target.send(client, std::slice::from_ref(&rest), self.conditions(), stall).await?;
        let first_byte = began.elapsed();
        let status = response.status();
        if status.is_success() && self.validators.differ(&Validators::of(&response)) {
            return Err(self.change_error().into());
        }
        match status {
            StatusCode::PARTIAL_CONTENT => {}
            StatusCode::OK => return Err(target.no_ranges().into()),
            // Every requested range was inside the object.
            StatusCode::PRECONDITION_FAILED | StatusCode::RANGE_NOT_SATISFIABLE => {
                return Err(self.change_error().into());
            }
            _ => return Err(target.status_error(response, stall).await),
        }
        match target.content_range(&response)? {
            (_, Some(total)) if total != self.len() => Err(self.change_error().into()),
            (range, _) if range != rest => Err(target.wrong_range(&response, &rest)),
            _ => {
                let mut check = target.check_of(&response, self.needs_proof)?;
                clock.start_answer();
                let header_bytes = framed_header_bytes(response.headers());
                let had = bytes.count();
                let body =
                    target.body(response, &rest, (first_byte, stall), &mut check, bytes, clock);
                if let Err(failure) = body.await {
                    // Part of an answer proves nothing.
                    if self.needs_proof {
                        bytes.truncate(had);
                    }
                    return Err(failure);
                }
                Ok(AnswerStart { first_byte, header_bytes })
            }
        }
    }
}

/// How an answer began.
pub(super) struct AnswerStart {
    pub(super) first_byte: Duration,
    /// Bytes that its headers take over HTTP/2, with those that frame it and its data.
    pub(super) header_bytes: u32,
}

/// About what headers take in HPACK (RFC 7541), where names are known and values are not
/// compressed: a byte or two beside the value. Two frames have a head of nine bytes each.
fn framed_header_bytes(headers: &HeaderMap) -> u32 {
    18 + headers.values().map(|value| value.len() as u32 + 2).sum::<u32>()
}

/// A request for the missing part of a range.
struct RangeAttempt<'a, B> {
    object: &'a ObjectReader,
    client: &'a Client,
    range: Range<u64>,
    bytes: B,
    turn: Option<LineTurn<'a>>,
}

impl<B: ByteTarget> Attempt for RangeAttempt<'_, B> {
    type Answer = ();

    async fn run(&mut self, numbers: Try) -> Result<(), Failure> {
        let RangeAttempt { object, client, range, bytes, turn } = self;
        let (began, had) = (Instant::now(), bytes.count());
        let stall = object.target.stall_limit(numbers.failures);
        let kind = RequestKind { connects: numbers.connects, ..RequestKind::default() };
        let AnswerStart { first_byte, .. } =
            object.attempt(client, range, stall, (kind, turn.as_ref()), bytes).await?;
        record(Timing {
            root: object.target.store_key.clone(),
            bytes: (bytes.count() - had) as u64,
            in_flight: numbers.in_flight,
            first_byte_s: first_byte.as_secs_f64(),
            seconds: began.elapsed().as_secs_f64(),
        });
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.bytes.count()
    }

    fn next_request(&self) -> InFlight {
        InFlight::request(1, self.range.end - self.range.start - self.bytes.count() as u64)
    }
}
