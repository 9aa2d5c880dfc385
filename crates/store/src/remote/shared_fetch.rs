//! Reads ranges. Bytes that another reader has requested already are not requested again.

use super::fetch_events::record_awaited;
use super::flights::{Flight, Landing, Part};
use super::object_reader::{ObjectReader, Piece};
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
    async fn landed(&self) -> Result<Bytes, bool> {
        let (from, to) = (self.range.start - self.start, self.range.end - self.start);
        match self.flight.clone().landed().await {
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
    pub(super) async fn fetch_shared(
        &self,
        client: &Client,
        ranges: Vec<Range<u64>>,
        scope: &Scope,
    ) -> Pieces {
        let is_vector = ranges.len() > 1;
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
        let (mut requested, mut leads, mut waits) = (Vec::new(), Vec::new(), Vec::new());
        let mut slots: Vec<Vec<Slot>> = Vec::with_capacity(ranges.len());
        for range in ranges {
            if !self.is_requested(&range) {
                requested.push(range);
                leads.push(None);
                slots.push(vec![Slot::Requested]);
                continue;
            }
            let parts = self.flights.divide(&range, gap_bytes).into_iter().map(|part| match part {
                Part::Requested(range, lead) => {
                    requested.push(range);
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
            let pieces = self.fetch_requested(client, requested, is_vector, scope).await;
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
        let (pieces, awaited) = join(request, self.awaited(client, waits, is_vector, scope)).await;
        joined(slots, pieces, awaited)
    }

    /// Request ranges: with one request if they are those of one, and it has no more than the server
    /// takes.
    async fn fetch_requested(
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

    /// The bytes of parts that others requested. What did not arrive as its reader gave up is
    /// requested by one of those who wait; what failed, by each of them.
    async fn awaited(
        &self,
        client: &Client,
        waits: Vec<Wait>,
        is_vector: bool,
        scope: &Scope,
    ) -> Pieces {
        let landed = join_all(waits.iter().map(Wait::landed)).await;
        let of = |is_abandoned: bool| {
            let missing = waits
                .iter()
                .zip(&landed)
                .filter(move |(_, landed)| matches!(landed, Err(why) if *why == is_abandoned));
            missing.map(|(wait, _)| wait.range.clone()).collect::<Vec<_>>()
        };
        let (abandoned, failed) = (of(true), of(false));
        let again = async {
            match abandoned.is_empty() {
                true => Vec::new(),
                false => Box::pin(self.fetch_parts(client, abandoned, is_vector, scope)).await,
            }
        };
        let (again, failed) =
            join(again, self.fetch_requested(client, failed, is_vector, scope)).await;
        let (mut again, mut failed) = (again.into_iter(), failed.into_iter());
        let mut pieces = Vec::with_capacity(waits.len());
        for landed in landed {
            let piece = match landed {
                Ok(bytes) => {
                    record_awaited(&self.target.about, scope, bytes.len() as u64);
                    Some(Ok((bytes, self.is_dated)))
                }
                Err(true) => again.next(),
                Err(false) => failed.next(),
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
fn joined(slots: Vec<Vec<Slot>>, requested: Pieces, awaited: Pieces) -> Pieces {
    let (mut requested, mut awaited) = (requested.into_iter(), awaited.into_iter());
    let mut pieces = Vec::with_capacity(slots.len());
    for slots in slots {
        let mut next = |slot: &Slot| match slot {
            Slot::Requested => requested.next(),
            Slot::Awaited => awaited.next(),
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
