//! What to ask a source for, so that it costs least: the planner with the bounds of one thread.

use std::borrow::Cow;
use std::ops::Range;
use swathe_plan::{
    Break, Busy, Caps, Connections, Costs, Factors, Load, Others, Plan, Reach, Sharing, TIE, Way,
    plan, windows,
};
use swathe_store_api::{Pieces, Source, Traffic};

/// What one thread may hold of an object while it reads it: a bound on memory, within which plans
/// choose.
const CAPS: Caps = Caps { request_bytes: 4 << 20, in_flight_bytes: 32 << 20 };

/// Compressed bytes of a file fetched at a time. A read of this size costs 10 us; smaller ones do not
/// come out faster.
pub(crate) const INPUT_BYTES: usize = 128 << 10;

/// Requests for a source.
pub(crate) struct ReadRequests {
    /// Disjoint, ascending.
    pub(crate) ranges: Vec<Range<u64>>,
    /// Their load.
    pub(crate) load: Load,
    /// Seconds that is predicted to take. Not for inflated or cached bytes.
    pub(crate) seconds: Option<f64>,
    /// How the link differs from its profile, if it is read from a server.
    pub(crate) factors: Option<Factors>,
    way: Way,
}

impl ReadRequests {
    /// Ranges that one thread reads, one after the other.
    pub(crate) fn of_one_thread(ranges: Vec<Range<u64>>) -> ReadRequests {
        let load = Load::of(&ranges);
        ReadRequests { ranges, load, seconds: None, factors: None, way: Way::single(1) }
    }

    /// Request them.
    pub(crate) fn fetch(self, source: &dyn Source) -> Pieces {
        source.fetch_by(self.ranges, self.way)
    }
}

impl From<Plan> for ReadRequests {
    fn from(plan: Plan) -> ReadRequests {
        let way = plan.way();
        let seconds = Some(plan.read_s);
        ReadRequests { ranges: plan.ranges, load: plan.load, seconds, factors: None, way }
    }
}

/// Most bytes of a local file that are read at a time.
pub(crate) fn local_cap_bytes(source: &dyn Source) -> u64 {
    source.costs().buffer_bytes().min(CAPS.request_bytes)
}

/// The plan for segments of a local file, in pieces of at most `request_bytes`. Threads do not
/// share the bytes of a file.
pub(crate) fn local_plan(
    source: &dyn Source,
    segments: &[Range<u64>],
    request_bytes: u64,
    at: Break,
) -> Plan {
    plan(segments, source.costs(), Caps { request_bytes, ..CAPS }, at, Connections::ALL)
}

/// The costs of a source as they are now: those of its profile, corrected by what the requests of
/// this process took.
pub(crate) fn current_costs(source: &dyn Source) -> (Cow<'_, Costs>, Factors) {
    let (costs, factors) = (source.costs(), source.factors());
    if factors == Factors::default() {
        return (Cow::Borrowed(costs), factors);
    }
    (Cow::Owned(costs.with_factors(factors)), factors)
}

/// What to ask a server for, or the cache if all is there. `decode_byte_s`: as for
/// [`remote_plan`].
pub(crate) fn remote_requests(
    source: &dyn Source,
    segments: &[Range<u64>],
    sharing: Sharing,
    at: Break,
    decode_byte_s: f64,
) -> ReadRequests {
    if let Some((ranges, _)) = at_hand(source, segments, at) {
        return ReadRequests::of_one_thread(ranges);
    }
    let others = source.others();
    let (current, factors) = current_costs(source);
    let costs = current.share_with(sharing, others);
    let connections = usable_connections(source.connections(), sharing, others, &costs);
    let mut plan = remote_plan(segments, &costs, at, connections, decode_byte_s);
    if !costs.busy.is_idle() {
        plan.read_s = plan.seconds_at(&own_costs(&current, sharing, others), connections);
    }
    ReadRequests { factors: Some(factors), ..plan.into() }
}

/// Costs by which the seconds of one read beside others are predicted. Its own waits count in full.
pub(crate) fn own_costs(costs: &Costs, sharing: Sharing, others: Others) -> Costs {
    let share = costs.share_with(Sharing { parts: sharing.parts, ..Sharing::default() }, others);
    Costs { busy: Busy::default(), ..share }
}

/// The part of the open connections that a reader may count on.
pub(crate) fn usable_connections(
    open: Connections,
    sharing: Sharing,
    others: Others,
    costs: &Costs,
) -> Connections {
    let readers = if costs.busy.is_idle() { 0 } else { others.in_flight.readers };
    open.part(sharing.parts.saturating_add(readers))
}

/// Plan the requests for segments of a remote object. Decoding a byte takes `decode_byte_s`.
/// Decoding runs beside reading, but starts only when its request is complete. So the last request
/// delays the end by the time to decode the largest one. Requests are not split for that.
pub(crate) fn remote_plan(
    segments: &[Range<u64>],
    costs: &Costs,
    at: Break,
    connections: Connections,
    decode_byte_s: f64,
) -> Plan {
    let seconds = |plan: &Plan| plan.read_s + plan.load.largest as f64 * decode_byte_s;
    let mut best = plan(segments, costs, CAPS, at, connections);
    if decode_byte_s == 0.0 {
        return best;
    }
    let mut request_bytes = best.load.largest / 2;
    while request_bytes >= INPUT_BYTES as u64 {
        let smaller = plan(segments, costs, Caps { request_bytes, ..CAPS }, at, connections);
        request_bytes = request_bytes.min(smaller.load.largest) / 2;
        if TIE * seconds(&smaller) < seconds(&best) {
            best = smaller;
        }
    }
    best
}

/// If all segments are cached here: what to read, as of a file, and the traffic with the
/// server. Without the gaps if another plan left those out.
pub(crate) fn at_hand(
    source: &dyn Source,
    segments: &[Range<u64>],
    at: Break,
) -> Option<(Vec<Range<u64>>, Traffic)> {
    let costs = source.costs_at_hand();
    let cap_bytes = costs.buffer_bytes().min(CAPS.request_bytes);
    [costs.gap_bytes(), 0].into_iter().find_map(|gap_bytes| {
        let requests = windows(segments, Reach { gap_bytes, cap_bytes }, at);
        source.at_hand(&requests).map(|traffic| (requests, traffic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_to_decode_is_asked_for_in_smaller_requests() {
        let plan_at = |decode_byte_s| {
            remote_plan(
                &[0..100_000_000],
                &Costs::remote(),
                Break::Anywhere,
                8.into(),
                decode_byte_s,
            )
        };
        let largest = [0.0, 2e-9, 1e-6].map(|decode_byte_s| plan_at(decode_byte_s).load.largest);
        assert!(largest[0] >= largest[1] && largest[1] > largest[2], "{largest:?}");
        assert!(largest[2] >= INPUT_BYTES as u64 / 2, "{largest:?}");
        for decode_byte_s in [2e-9, 2e-8, 1e-6] {
            let seconds = |plan: Plan| plan.read_s + plan.load.largest as f64 * decode_byte_s;
            assert!(seconds(plan_at(decode_byte_s)) <= seconds(plan_at(0.0)));
        }
    }
}
