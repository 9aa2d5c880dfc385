//! What a part is asked for, and what that costs.

use crate::shards::ShardId;
use std::ops::Range;
use swathe_plan::{Break, Caps, Connections, Costs, Load, Plan, plan, soonest};
use swathe_store_api::{PROVEN_BYTES, Source, Store};

/// What one part may hold in memory on the way.
const CAPS: Caps = Caps { request_bytes: 4 << 20, in_flight_bytes: 32 << 20 };

/// Damaged bytes of a part around which gaps are left out; with more, no gap is read.
pub(crate) const MOST_DAMAGES: usize = 8;

/// A range of a shard that a part is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) id: ShardId,
    /// Bytes of the shard.
    pub(crate) in_shard: Range<u64>,
    /// Where they are in the part.
    pub(crate) in_part: Range<u64>,
}

/// A plan that asks for what two plans ask for, in the way of the first.
fn one_after_another(mut first: Plan, next: Plan) -> Plan {
    first.ranges.extend(next.ranges);
    first.read_s += next.read_s;
    first
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

    /// The same costs where `readers` read from the server at the same time.
    pub(crate) fn share(self, readers: u32) -> PartCosts {
        PartCosts { current: self.current.share(readers), ..self }
    }

    /// The plan for ranges of the part; `is_proven`: with answers that the server proves. Gaps with
    /// bytes that are damaged are not read.
    pub(crate) fn plan(&self, asks: &[Ask], damaged_bytes: &[u64], is_proven: bool) -> Plan {
        let ranges: Vec<Range<u64>> = asks.iter().map(|ask| ask.in_part.clone()).collect();
        let is_apart = damaged_bytes.len() >= MOST_DAMAGES;
        let groups = ranges.chunk_by(|one, next| {
            one.end >= next.start
                || !is_apart
                    && !damaged_bytes.iter().any(|&byte| one.end <= byte && byte < next.start)
        });
        let plans = groups.map(|group| self.plan_group(group, is_proven));
        plans.reduce(one_after_another).unwrap_or_default()
    }

    fn plan_group(&self, ranges: &[Range<u64>], is_proven: bool) -> Plan {
        let caps = match is_proven {
            true => Caps { request_bytes: PROVEN_BYTES, ..CAPS },
            false => CAPS,
        };
        plan(ranges, &self.current, caps, Break::Anywhere, self.connections)
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

#[cfg(test)]
mod tests {
    use super::*;
    use swathe_plan::{Curve, MultiRange};

    #[test]
    fn rows_are_predicted_to_take_longer_where_others_read_from_the_server() {
        let mut current = Costs { streams: 16, total_bytes_per_s: 14e6, ..Costs::remote() };
        current.request = Curve::affine(0.0024, 14e6);
        let multi_range = MultiRange {
            ranges: 400,
            header_bytes: 7205,
            range_s: 1e-5,
            part_bytes: 104,
            gap_bytes: 0,
        };
        current.multi_range = Some(multi_range);
        let asks = (0..100).map(|row| {
            let range = 4096 * row..4096 * row + 200;
            Ask { id: (0, 0), in_shard: range.clone(), in_part: range }
        });
        let asks: Vec<Ask> = asks.collect();
        let costs = PartCosts { current, connections: Connections::ALL };
        let alone_s = costs.plan(&asks, &[], true).read_s;
        assert!(costs.share(8).plan(&asks, &[], true).read_s > 2.0 * alone_s);
    }
}
