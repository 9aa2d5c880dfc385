//! The cheapest requests for a set of segments.

mod gaps;
mod trials;

use crate::costs::{Costs, Load};
use crate::many_ranges::{Connections, MultiRange};
use crate::windows::{Break, Reach, each_window, windows};
use gaps::Gaps;
use std::ops::Range;
use trials::{TrialPlan, Trials, WindowTrial};

/// Plans whose times differ by less than this are equally good, for profiles are not known
/// any better (`docs/design/007-cost-model.md`): of them the one with the least work for the
/// store is taken.
pub const TIE: f64 = 1.04;
/// Up to this many gaps, each is tried, and requests made even; of more gaps, those are tried
/// that the number of requests points at.
const FEW_GAPS: usize = 8;

/// Limits by memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// One request.
    pub request_bytes: u64,
    /// All requests in flight.
    pub in_flight_bytes: u64,
}

/// How ranges are put into requests, and requests on connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// How many ranges go into each request.
    pub ranges_per_request: u32,
    /// How many requests are in flight at the same time.
    pub streams: u32,
    /// Whether the requests share one connection of HTTP/2.
    pub multiplexed: bool,
}

impl Way {
    /// A request for each range, each on a connection of its own.
    pub fn single(streams: u32) -> Way {
        Way { ranges_per_request: 1, streams, multiplexed: false }
    }
}

/// Requests that cover a set of segments, and what they are expected to cost.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Plan {
    /// Disjoint ranges, ascending.
    pub ranges: Vec<Range<u64>>,
    /// How many of them go into each request; the last may have fewer.
    pub ranges_per_request: u32,
    /// How many requests are in flight at the same time.
    pub streams: u32,
    /// Their load, and whether they share one connection.
    pub load: Load,
    /// Expected seconds, with those of opening connections that are not open yet.
    pub read_s: f64,
    /// Gaps up to this are read through, and requests that would grow larger are split.
    pub reach: Reach,
}

impl Plan {
    /// How its ranges are requested.
    pub fn way(&self) -> Way {
        let Plan { ranges_per_request, streams, .. } = *self;
        Way { ranges_per_request, streams, multiplexed: self.load.multiplexed }
    }

    /// Expected seconds of its requests at these costs. `connections` is as for [`plan`].
    pub fn seconds_at(&self, costs: &Costs, connections: Connections) -> f64 {
        seconds_on(self.load, self.streams, costs, connections)
    }
}

/// Plan the reading of segments, sorted by their start; they may overlap. `connections`:
/// connections that are open; for more streams than that, others have to be opened first. Takes
/// n log n of the number of segments.
///
/// For any number of requests, the fewest bytes are read by closing the smallest gaps. So the
/// candidates are how many gaps to close, how large requests may grow, and how many to have in
/// flight (`docs/design/007-cost-model.md`); if the store honours it, also how many ranges go into
/// a request (`docs/design/019-vector-reads.md`), and how many requests on one connection
/// (`docs/design/022-http2.md`).
pub fn plan(
    ranges: &[Range<u64>],
    costs: &Costs,
    caps: Caps,
    at: Break,
    connections: impl Into<Connections>,
) -> Plan {
    let connections = connections.into();
    if let Some(gap_bytes) = costs.single_gap() {
        let reach = Reach { gap_bytes, cap_bytes: caps.request_bytes };
        let ranges = windows(ranges, reach, at);
        let load = Load::of(&ranges);
        let seconds = costs.seconds(load, 1);
        return Plan { ranges, ranges_per_request: 1, streams: 1, load, read_s: seconds, reach };
    }
    let spans = windows(ranges, Reach { gap_bytes: 0, cap_bytes: u64::MAX }, at);
    let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
        return Plan::default();
    };
    let span = first.start..last.end;
    let (base, gaps) = (Load::of(&spans), Gaps::of(&spans));
    let mut trials = Trials::new(ranges, &spans, costs, caps, at, connections);
    let lengths = gaps.worth_trying(base, costs, &trials.streams);
    // First, since what is slower in any case is not tried any more.
    if let Some(multi_range) = &costs.multi_range {
        trials.try_vectors(&gaps, &lengths, multi_range);
    }
    trials.try_gaps(&lengths, base);
    if spans.len() <= FEW_GAPS + 1 {
        trials.try_small_requests(gaps.largest(), span.end - span.start);
    }
    // If segments touch, the borders between them may divide the whole better than even pieces.
    let each = trials.add(Reach { gap_bytes: 0, cap_bytes: 1 }, Break::BetweenSegments);
    if let Some(multiplex) = &costs.multiplexed {
        trials.try_multiplex(&gaps, &lengths, multiplex);
    }
    let plainest = [base, Load::of(&[span]), each]
        .map(|load| soonest(load, costs, connections))
        .into_iter()
        .fold(f64::INFINITY, f64::min);
    let TrialPlan { seconds, load, streams, windows: trial } = trials.best(plainest);
    let WindowTrial { reach, at, ranges_per_request } = trial;
    Plan {
        ranges: windows(ranges, reach, at),
        ranges_per_request,
        streams,
        load,
        read_s: seconds,
        reach,
    }
}

/// The least seconds in which requests that come to this are answered, on any number of streams.
/// `connections` is as for [`plan`].
pub fn soonest(load: Load, costs: &Costs, connections: Connections) -> f64 {
    stream_counts(costs.streams, connections.streams)
        .map(|streams| seconds_on(load, streams, costs, connections))
        .fold(f64::INFINITY, f64::min)
}

fn seconds_on(load: Load, streams: u32, costs: &Costs, connections: Connections) -> f64 {
    let is_open =
        if load.multiplexed { connections.multiplexed } else { streams <= connections.streams };
    let connect_s = if is_open { 0.0 } else { costs.connect_s };
    costs.seconds(load, streams) + connect_s
}

/// 1, 2, 4, ... and the highest number allowed, with and without opening connections.
fn stream_counts(most: u32, open_count: u32) -> impl Iterator<Item = u32> {
    let powers = std::iter::successors(Some(1u32), |streams| streams.checked_mul(2));
    let open = (1..most).contains(&open_count) && !open_count.is_power_of_two();
    powers
        .take_while(move |&streams| streams < most)
        .chain(open.then_some(open_count))
        .chain([most])
}

impl Load {
    /// The load of one request for this many bytes.
    pub fn single(bytes: u64) -> Load {
        Load { requests: 1, ranges: 1, bytes, largest: bytes, multiplexed: false }
    }

    /// The load of ranges, with a request for each.
    pub fn of(ranges: &[Range<u64>]) -> Load {
        ranges.iter().fold(Load::default(), |load, range| load.and(1, range.end - range.start))
    }

    /// The load of the windows of segments, with a request for each.
    fn of_windows(segments: &[Range<u64>], reach: Reach, at: Break) -> Load {
        let mut load = Load::default();
        each_window(segments, reach, at, &mut |window| {
            load = load.and(1, window.end - window.start);
        });
        load
    }

    /// The load of ranges, with `ranges_per_request` of them in each request.
    pub fn of_vectors(
        ranges: &[Range<u64>],
        ranges_per_request: u32,
        multi_range: &MultiRange,
    ) -> Load {
        ranges.chunks(ranges_per_request.max(1) as usize).fold(Load::default(), |load, request| {
            let data: u64 = request.iter().map(|range| range.end - range.start).sum();
            // A single range is not sent as a part.
            let parts = if request.len() > 1 { request.len() as u64 } else { 0 };
            let headers = parts * u64::from(multi_range.part_bytes);
            load.and(request.len() as u64, data + headers)
        })
    }

    /// With another request.
    fn and(self, ranges: u64, bytes: u64) -> Load {
        Load {
            requests: self.requests + 1,
            ranges: self.ranges + ranges,
            bytes: self.bytes + bytes,
            largest: self.largest.max(bytes),
            ..self
        }
    }
}

#[cfg(test)]
mod tests;
