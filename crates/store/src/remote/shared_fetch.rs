//! Reads ranges. Bytes that another reader has requested already are not requested again.

use super::flights::{Flight, Landing, Part};
use super::object_reader::{ObjectReader, Piece};
use super::request_events::record_shared_wait;
use bytes::{Bytes, BytesMut};
use futures_util::future::{join, join_all};
use reqwest::Client;
use std::ops::Range;
use swathe_store_api::StoreError;
use swathe_trace::Scope;

/// Pieces of ranges in their order. An error is the last.
type Pieces = Vec<Result<Piece, StoreError>>;

/// A part of a range, by its number among those of its kind.
enum Slot {
    Requested,
    Awaited,
}

/// A part that is on its way to another reader, and where the flight starts.
struct Wait {
    range: Range<u64>,
    start: u64,
    flight: Flight<Bytes>,
}

impl Wait {
    /// The bytes of the part; `Err`: whether its reader gave up.
    async fn receive(&self) -> Result<Bytes, bool> {
        let (from, to) = (self.range.start - self.start, self.range.end - self.start);
        match self.flight.clone().receive().await {
            Landing::Arrived(bytes) if bytes.len() as u64 >= to => {
                Ok(bytes.slice(from as usize..to as usize))
            }
            Landing::Arrived(_) | Landing::Failed => Err(false),
            Landing::Abandoned => Err(true),
        }
    }
}

impl ObjectReader {
    /// The bytes of the ranges of one request. Parts that are on their way to another reader are
    /// awaited instead. If they do not arrive, they are requested.
    pub(super) async fn fetch_ranges(
        &self,
        client: &Client,
        ranges: Vec<Range<u64>>,
        scope: &Scope,
    ) -> Pieces {
        let is_vector = ranges.len() > 1;
        // Nobody else may use what is proven to one reader, and a cut has hundreds of rows to enter.
        if self.needs_proof {
            return self.fetch_own(client, ranges, is_vector, scope).await;
        }
        self.fetch_parts(client, ranges, is_vector, scope).await
    }

    async fn fetch_parts(
        &self,
        client: &Client,
        ranges: Vec<Range<u64>>,
        is_vector: bool,
        scope: &Scope,
    ) -> Pieces {
        let gap_bytes = self.target.store.costs.gap_bytes();
        let (mut ranges_to_request, mut leads, mut waits) = (Vec::new(), Vec::new(), Vec::new());
        let mut slots: Vec<Vec<Slot>> = Vec::with_capacity(ranges.len());
        for range in ranges {
            if !self.is_requested(&range) {
                ranges_to_request.push(range);
                leads.push(None);
                slots.push(vec![Slot::Requested]);
                continue;
            }
            let parts = self.flights.divide(&range, gap_bytes).into_iter().map(|part| match part {
                Part::Requested(range, lead) => {
                    ranges_to_request.push(range);
                    leads.push(Some(lead));
                    Slot::Requested
                }
                Part::Awaited(range, start, flight) => {
                    waits.push(Wait { range, start, flight });
                    Slot::Awaited
                }
            });
            slots.push(parts.collect());
        }
        let request = async {
            let pieces = self.fetch_own(client, ranges_to_request, is_vector, scope).await;
            for (number, lead) in leads.into_iter().enumerate() {
                let landing = match pieces.get(number) {
                    Some(Ok((bytes, _))) => Landing::Arrived(bytes.clone()),
                    _ => Landing::Failed,
                };
                if let Some(lead) = lead {
                    lead.land(landing);
                }
            }
            pieces
        };
        let (pieces, others) =
            join(request, self.receive_all(client, waits, is_vector, scope)).await;
        join_parts(slots, pieces, others)
    }

    /// Request ranges: with one request if they are those of one, and it has no more than the server
    /// takes.
    async fn fetch_own(
        &self,
        client: &Client,
        ranges: Vec<Range<u64>>,
        is_vector: bool,
        scope: &Scope,
    ) -> Pieces {
        let most = if is_vector { self.most_ranges() as usize } else { 1 };
        let requests =
            ranges.chunks(most).map(|some| self.fetch_vector(client, some.to_vec(), scope));
        let mut pieces = Vec::with_capacity(ranges.len());
        for answer in join_all(requests).await {
            for piece in answer {
                let is_last = piece.is_err();
                pieces.push(piece);
                if is_last {
                    return pieces;
                }
            }
        }
        pieces
    }

    /// The bytes of parts that others requested. If the reader of a part gave up, one of the waiting
    /// readers requests it; if its request failed, each of them does.
    async fn receive_all(
        &self,
        client: &Client,
        waits: Vec<Wait>,
        is_vector: bool,
        scope: &Scope,
    ) -> Pieces {
        let results = join_all(waits.iter().map(Wait::receive)).await;
        let of = |is_abandoned: bool| {
            let missing = waits
                .iter()
                .zip(&results)
                .filter(move |(_, result)| matches!(result, Err(why) if *why == is_abandoned));
            missing.map(|(wait, _)| wait.range.clone()).collect::<Vec<_>>()
        };
        let (to_retry, own_fetches) = (of(true), of(false));
        let retries = async {
            match to_retry.is_empty() {
                true => Vec::new(),
                false => Box::pin(self.fetch_parts(client, to_retry, is_vector, scope)).await,
            }
        };
        let (retries, own_fetches) =
            join(retries, self.fetch_own(client, own_fetches, is_vector, scope)).await;
        let (mut retries, mut own_fetches) = (retries.into_iter(), own_fetches.into_iter());
        let mut pieces = Vec::with_capacity(waits.len());
        for result in results {
            let piece = match result {
                Ok(bytes) => {
                    record_shared_wait(&self.target.about, scope, bytes.len() as u64);
                    Some(Ok((bytes, self.is_dated)))
                }
                Err(true) => retries.next(),
                Err(false) => own_fetches.next(),
            };
            let is_last = !matches!(piece, Some(Ok(_)));
            pieces.extend(piece);
            if is_last {
                break;
            }
        }
        pieces
    }
}

/// The pieces of ranges from those of their parts.
fn join_parts(slots: Vec<Vec<Slot>>, own: Pieces, others: Pieces) -> Pieces {
    let (mut own, mut others) = (own.into_iter(), others.into_iter());
    let mut pieces = Vec::with_capacity(slots.len());
    for slots in slots {
        let mut next = |slot: &Slot| match slot {
            Slot::Requested => own.next(),
            Slot::Awaited => others.next(),
        };
        // After an error nothing follows.
        let parts: Option<Result<Vec<Piece>, StoreError>> = slots.iter().map(&mut next).collect();
        match parts {
            None => return pieces,
            Some(Err(error)) => {
                pieces.push(Err(error));
                return pieces;
            }
            Some(Ok(mut parts)) if parts.len() == 1 => pieces.extend(parts.pop().map(Ok)),
            Some(Ok(parts)) => {
                let mut bytes = BytesMut::with_capacity(parts.iter().map(|(of, _)| of.len()).sum());
                let is_dated = parts.iter().any(|(_, is_dated)| *is_dated);
                parts.iter().for_each(|(part, _)| bytes.extend_from_slice(part));
                pieces.push(Ok((bytes.freeze(), is_dated)));
            }
        }
    }
    pieces
}
