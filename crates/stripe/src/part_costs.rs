//! What a part is asked for, and what that costs.

use crate::shards::ShardId;
use std::ops::Range;
use swathe_plan::{Break, Caps, Connections, Costs, Load, Plan, plan, soonest};
use swathe_store_api::{PROVEN_BYTES, Source, Store};

/// What one part may hold in memory on the way.
const CAPS: Caps = Caps { request_bytes: 4 << 20, in_flight_bytes: 32 << 20 };

/// A range of a shard that a part is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) id: ShardId,
    /// Bytes of the shard.
    pub(crate) in_shard: Range<u64>,
    /// Where they are in the part.
    pub(crate) in_part: Range<u64>,
}

/// What a part costs: as its server was measured, and as the requests of this process show.
pub(crate) struct PartCosts {
    current: Costs,
    connections: Connections,
}

impl PartCosts {
    /// Those of an open part.
    pub(crate) fn of_source(source: &dyn Source) -> PartCosts {
        PartCosts {
            current: source.costs().with_factors(source.factors()),
            connections: source.connections(),
        }
    }

    /// Those of a part that is not open yet.
    pub(crate) fn of_store(store: &dyn Store) -> PartCosts {
        PartCosts { current: store.settings().costs.clone(), connections: store.connections() }
    }

    /// Seconds until an answer begins.
    pub(crate) fn latency_s(&self) -> f64 {
        self.current.latency_s()
    }

    /// The same costs with at most `most` requests in flight.
    pub(crate) fn on_streams(mut self, most: u32) -> PartCosts {
        self.current.streams = self.current.streams.min(most.max(1));
        self
    }

    /// The plan for ranges of the part; `is_proven`: with answers that the server proves.
    pub(crate) fn plan(&self, asks: &[Ask], is_proven: bool) -> Plan {
        let ranges: Vec<Range<u64>> = asks.iter().map(|ask| ask.in_part.clone()).collect();
        let caps = match is_proven {
            true => Caps { request_bytes: PROVEN_BYTES, ..CAPS },
            false => CAPS,
        };
        plan(&ranges, &self.current, caps, Break::Anywhere, self.connections)
    }

    /// Seconds to read ranges of the part, roughly: the quickest of some simple plans.
    pub(crate) fn estimate_s(&self, asks: &[Ask]) -> f64 {
        let (Some(first), Some(last)) = (asks.first(), asks.last()) else { return 0.0 };
        let costs = &self.current;
        let lengths = asks.iter().map(|ask| ask.in_part.end - ask.in_part.start);
        let bytes: u64 = lengths.clone().sum();
        let count = asks.len() as u64;
        let span_bytes = last.in_part.end - first.in_part.start;
        let each = Load { requests: count, ranges: count, bytes, ..Load::single(0) };
        let each = Load { largest: lengths.max().unwrap_or(0), ..each };
        let pieces = std::iter::successors(Some(1u64), |pieces| Some(2 * pieces))
            .take_while(|&pieces| pieces <= u64::from(costs.streams))
            .map(|pieces| Load {
                requests: pieces,
                ranges: pieces,
                bytes: span_bytes,
                largest: span_bytes.div_ceil(pieces),
                multiplexed: false,
            });
        let vector = costs.multi_range.as_ref().filter(|_| count > 1).map(|multi_range| {
            let bytes = bytes + count * u64::from(multi_range.part_bytes);
            let requests = count.div_ceil(u64::from(multi_range.ranges).max(1));
            Load { requests, ranges: count, bytes, largest: bytes / requests, multiplexed: false }
        });
        pieces
            .chain([each])
            .chain(vector)
            .map(|load| soonest(load, costs, self.connections))
            .fold(f64::INFINITY, f64::min)
    }
}
