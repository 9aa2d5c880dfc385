//! What parts are asked for.

use crate::shards::ShardId;
use std::ops::Range;
use swathe_plan::{Break, Caps, Connections, Costs, Plan, plan};

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

/// The plan for ranges of a part, at these costs.
pub(crate) fn plan_asks(asks: &[Ask], costs: &Costs, connections: Connections) -> Plan {
    let ranges: Vec<Range<u64>> = asks.iter().map(|ask| ask.in_part.clone()).collect();
    plan(&ranges, costs, CAPS, Break::Anywhere, connections)
}
