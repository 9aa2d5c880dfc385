//! The cheapest requests for a set of segments.

use crate::costs::{Costs, Load};
use crate::many_ranges::{Connections, MultiRange, Multiplexed};
use crate::windows::{Break, Reach, windows};
use std::ops::Range;

/// Plans whose times differ by less than this are equally good, for profiles are not known
/// any better (`docs/design/007-cost-model.md`): of them the one with the least work for the
/// store is taken.
pub const TIE: f64 = 1.04;
/// Into at most this many requests of the same size the whole is tried to be split.
const MOST_PIECES: u64 = 1 << 14;
/// Looking at this many segments takes less than a millisecond.
const FEW_SEGMENTS: u64 = 1 << 17;
/// Streams for which counts of pieces are tried if these are what counts.
const MOST_STREAMS: u32 = 16;
/// Nor are more counts of pieces tried one by one.
const FEW_PIECES: u64 = 64;
/// Requests are even enough when none could be smaller by more than one part in this many.
const EVEN: u64 = 64;
/// What is in flight on a connection that requests share arrives in this time: else one that waits
/// for the others looks like one that the server forgot.
const FLIGHT_S: f64 = 1.0;
/// Up to this many gaps, each is tried, and requests made even; of more gaps, those are tried
/// that the number of requests points at.
const FEW_GAPS: usize = 8;

/// What memory allows.
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
    /// What they come to, and whether they share one connection.
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
    if spans.is_empty() {
        return Plan::default();
    }
    let (base, gaps) = (Load::of(&spans), Gaps::of(&spans));
    // Segments that touch are read together, but may be read apart.
    let segments = match at {
        Break::Anywhere => &spans,
        Break::BetweenSegments => ranges,
    };
    let streams: Vec<u32> = stream_counts(costs.streams, connections.streams).collect();

    let mut plans: Vec<TrialPlan> = Vec::new();
    let mut try_all = |reach, at| {
        let load = Load::of(&windows(ranges, reach, at));
        let windows = WindowTrial { reach, at, ranges_per_request: 1 };
        plans.extend(trials(load, windows, &streams, costs, connections));
        load
    };
    // Beside others the number of requests matters more than their rounds.
    let most_streams = if costs.busy.is_idle() { costs.streams } else { MOST_STREAMS };
    let lengths = gaps.worth_trying(base, costs, &streams);
    for &gap_bytes in &lengths {
        let merged_load =
            Load::of(&windows(segments, Reach { gap_bytes, cap_bytes: u64::MAX }, at));
        for pieces in piece_counts(most_streams, spans.len()) {
            let cap_bytes = merged_load.bytes.div_ceil(pieces).min(caps.request_bytes);
            let reach = even_out(segments, Reach { gap_bytes, cap_bytes }, at);
            let load = try_all(reach, at);
            // Smaller ones split what needs no splitting.
            if load.largest <= base.largest.div_ceil(4 * u64::from(costs.streams)) {
                break;
            }
        }
    }
    let span = spans[0].start..spans[spans.len() - 1].end;
    if spans.len() <= FEW_GAPS + 1 {
        // Other gaps than the smallest, if that makes the largest request smaller; for few
        // segments also none, and any number of those that touch together.
        let largest = gaps.largest();
        let (parts, most, gap_choices): (_, _, &[u64]) = if ranges.len() <= FEW_GAPS + 1 {
            (ranges, ranges.len(), &[0, largest])
        } else {
            (segments, spans.len().min(costs.streams as usize), &[largest])
        };
        let cap_bytes = (span.end - span.start).min(caps.request_bytes);
        for &gap_bytes in gap_choices {
            for pieces in 1..=most {
                let widest = Reach { gap_bytes, cap_bytes };
                let reach = smallest_cap(parts, widest, Break::BetweenSegments, pieces);
                try_all(reach, Break::BetweenSegments);
            }
        }
    }
    // If segments touch, the borders between them may divide the whole better than even pieces.
    let alone = Reach { gap_bytes: 0, cap_bytes: 1 };
    let each = try_all(alone, Break::BetweenSegments);
    if let Some(multi_range) = &costs.multi_range {
        let lengths = lengths.clone();
        for gap_bytes in gaps.worth_vectors(lengths, costs, multi_range, &streams, span.end) {
            let reach = Reach { gap_bytes, cap_bytes: caps.request_bytes };
            let merged_ranges = windows(ranges, reach, at);
            for ranges_per_request in vector_sizes(&merged_ranges, multi_range, caps, &streams) {
                let load = Load::of_vectors(&merged_ranges, ranges_per_request, multi_range);
                let windows = WindowTrial { reach, at, ranges_per_request };
                plans.extend(trials(load, windows, &streams, costs, connections));
            }
        }
    }
    if let Some(multiplexed) = &costs.multiplexed {
        let flights: Vec<u32> = stream_counts(multiplexed.requests, multiplexed.requests).collect();
        for gap_bytes in gaps.worth_multiplexing(lengths, costs, multiplexed) {
            let reach = Reach { gap_bytes, cap_bytes: caps.request_bytes };
            let load = Load { multiplexed: true, ..Load::of(&windows(ranges, reach, at)) };
            let windows = WindowTrial { reach, at, ranges_per_request: 1 };
            let most = (multiplexed.bytes_per_s * FLIGHT_S) as u64;
            let fits = |trial: &TrialPlan| load.largest <= most / u64::from(trial.streams);
            plans.extend(trials(load, windows, &flights, costs, connections).filter(fits));
        }
    }
    plans.retain(|TrialPlan { load, streams, windows, .. }| {
        let is_segment = at == Break::BetweenSegments && windows.ranges_per_request == 1;
        let fits = load.largest <= caps.request_bytes || is_segment;
        fits && (*streams == 1 || load.largest <= caps.in_flight_bytes / u64::from(*streams))
    });
    let plainest = [base, Load::of(&[span]), each]
        .map(|load| soonest(load, costs, connections))
        .into_iter()
        .fold(f64::INFINITY, f64::min);
    let TrialPlan { seconds, load, streams, windows: chosen } = choose(&plans, plainest, costs);
    let WindowTrial { reach, at, ranges_per_request } = chosen;
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

/// A way to read, and what it comes to.
#[derive(Clone, Copy)]
struct TrialPlan {
    seconds: f64,
    load: Load,
    streams: u32,
    windows: WindowTrial,
}

/// How segments are merged, and their windows put into requests.
#[derive(Clone, Copy)]
struct WindowTrial {
    reach: Reach,
    at: Break,
    ranges_per_request: u32,
}

/// These windows on each number of streams.
fn trials(
    load: Load,
    windows: WindowTrial,
    streams: &[u32],
    costs: &Costs,
    connections: Connections,
) -> impl Iterator<Item = TrialPlan> {
    streams.iter().map(move |&streams| {
        let seconds = seconds_on(load, streams, costs, connections);
        TrialPlan { seconds, load, streams, windows }
    })
}

/// Numbers of ranges in a request: as many as are allowed, as fit, and as keep all streams busy
/// for a round or a few.
fn vector_sizes(
    merged: &[Range<u64>],
    multi_range: &MultiRange,
    caps: Caps,
    streams: &[u32],
) -> Vec<u32> {
    let count = merged.len() as u64;
    let most = u64::from(multi_range.most_ranges(merged.last().map_or(0, |last| last.end)));
    let largest = merged.iter().map(|range| range.end - range.start).max().unwrap_or(1);
    let fitting = caps.request_bytes / (largest + u64::from(multi_range.part_bytes)).max(1);
    let even = streams
        .iter()
        .flat_map(|&streams| [1, 4].map(|rounds| count.div_ceil(rounds * u64::from(streams))));
    let mut sizes: Vec<u32> = even
        .chain([most, fitting])
        .map(|size| size.min(most).min(count) as u32)
        .filter(|&size| size > 1)
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Of those that are as quick as the quickest, and not slower than the `plainest` ways, the one
/// that leaves the store the most time for others, with the fewest requests and streams.
fn choose(plans: &[TrialPlan], plainest: f64, costs: &Costs) -> TrialPlan {
    let quickest = plans.iter().map(|plans| plans.seconds).fold(f64::INFINITY, f64::min);
    // What is busy anyway has no time to leave to others.
    let tie = 1.0 + (TIE - 1.0) * (1.0 - costs.busy.line.max(costs.busy.server));
    let enough = (quickest * tie).min(plainest).max(quickest);
    let good = plans.iter().filter(|plans| plans.seconds <= enough);
    let modest = good.min_by(|one, other| {
        let work = |plans: &TrialPlan| costs.work_s(plans.load);
        let requests_and_streams = |plans: &TrialPlan| (plans.load.requests, plans.streams);
        work(one)
            .total_cmp(&work(other))
            .then_with(|| requests_and_streams(one).cmp(&requests_and_streams(other)))
    });
    *modest.unwrap_or(&plans[0])
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

/// The smallest cap that needs no more requests, so that none comes much later than the others.
fn even_out(segments: &[Range<u64>], reach: Reach, at: Break) -> Reach {
    if segments.len() > FEW_GAPS + 1 {
        return reach;
    }
    smallest_cap(segments, reach, at, windows(segments, reach, at).len())
}

/// Approximately the smallest cap, up to that of `reach`, with at most `most` windows.
fn smallest_cap(segments: &[Range<u64>], reach: Reach, at: Break, most: usize) -> Reach {
    let with = |cap_bytes| Reach { cap_bytes, ..reach };
    let (mut too_small, mut enough) = (0, reach.cap_bytes);
    // Of few, each border counts.
    let even = if segments.len() <= FEW_GAPS + 1 { u64::MAX } else { EVEN };
    while enough - too_small > 1 + enough / even {
        let middle = too_small + (enough - too_small) / 2;
        if windows(segments, with(middle), at).len() > most {
            too_small = middle;
        } else {
            enough = middle;
        }
    }
    with(enough)
}

/// Pieces that the whole is split into: all counts up to four for each stream if the segments
/// are few, then 1, 2, 3, 4, 6, 8, 12 and so on.
fn piece_counts(streams: u32, segments: usize) -> impl Iterator<Item = u64> {
    let small_counts = (4 * u64::from(streams)).min(FEW_PIECES).min(FEW_SEGMENTS / segments as u64);
    let rounds = [1, 2, 4].map(|rounds| rounds * u64::from(streams));
    let powers = (0..14).flat_map(|power| [1 << power, 3 << power]);
    let mut counts: Vec<u64> = (1..=small_counts).chain(rounds).chain(powers).collect();
    counts.sort_unstable();
    counts.dedup();
    counts.into_iter().take_while(|&pieces| pieces <= MOST_PIECES)
}

/// The gaps between segments, smallest first.
struct Gaps(Vec<u64>);

impl Gaps {
    fn of(spans: &[Range<u64>]) -> Gaps {
        let mut gaps: Vec<u64> = spans.windows(2).map(|pair| pair[1].start - pair[0].end).collect();
        gaps.sort_unstable();
        Gaps(gaps)
    }

    fn largest(&self) -> u64 {
        self.0.last().copied().unwrap_or(0)
    }

    /// Lengths up to which gaps may be worth closing; all of them, if they are few.
    fn worth_trying(&self, base: Load, costs: &Costs, streams: &[u32]) -> Vec<u64> {
        let mut lengths = if self.0.len() <= FEW_GAPS {
            self.0.clone()
        } else {
            streams.iter().map(|&streams| self.cheapest(base, costs, streams)).collect()
        };
        lengths.extend([0, self.largest()]);
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// Lengths up to which gaps may be worth closing if requests have many ranges: of those as
    /// above, what costs as much as another range, and what makes the ranges fit into one request,
    /// or one on each stream. Closing a gap that is not longer than a part's headers costs nothing.
    fn worth_vectors(
        &self,
        mut lengths: Vec<u64>,
        costs: &Costs,
        multi_range: &MultiRange,
        streams: &[u32],
        end: u64,
    ) -> Vec<u64> {
        let part_bytes = u64::from(multi_range.part_bytes);
        let free = part_bytes.max(u64::from(multi_range.gap_bytes));
        let speeds = [costs.stream_bytes_per_s(), costs.total_bytes_per_s];
        lengths.extend(speeds.map(|per_s| part_bytes + (multi_range.range_s * per_s) as u64));
        let most = u64::from(multi_range.most_ranges(end));
        lengths.extend(streams.iter().filter_map(|&streams| {
            let excess = (self.0.len() as u64 + 1).saturating_sub(most * u64::from(streams));
            self.0.get(excess.checked_sub(1)? as usize).copied()
        }));
        lengths.iter_mut().for_each(|length| *length = (*length).max(free));
        lengths.retain(|&length| length < self.largest());
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// Lengths up to which gaps may be worth closing if requests share a connection: of those as
    /// above, what costs as much as another request.
    fn worth_multiplexing(
        &self,
        mut lengths: Vec<u64>,
        costs: &Costs,
        multiplexed: &Multiplexed,
    ) -> Vec<u64> {
        let header_bytes = u64::from(multiplexed.header_bytes);
        let bytes_per_s = multiplexed.bytes_per_s.min(costs.total_bytes_per_s);
        let request_s = [multiplexed.request_s, multiplexed.latency_s];
        lengths.extend(request_s.map(|seconds| header_bytes + (seconds * bytes_per_s) as u64));
        // So that all go in one round, or a few.
        lengths.extend([1, 2, 4].iter().filter_map(|rounds| {
            let most = rounds * multiplexed.requests as usize;
            self.0.get((self.0.len() + 1).saturating_sub(most).checked_sub(1)?).copied()
        }));
        lengths.iter_mut().for_each(|length| *length = (*length).max(header_bytes));
        lengths.retain(|&length| length < self.largest());
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// Up to which length gaps are best closed, on this many streams. That large requests hold up
    /// the others is left out: they can be split.
    fn cheapest(&self, base: Load, costs: &Costs, streams: u32) -> u64 {
        let seconds = |closed_gaps: u64, bytes: u64| {
            let requests = base.requests - closed_gaps;
            let load = |requests| Load { requests, ranges: requests, bytes, ..Load::default() };
            let as_they_are = costs.seconds(load(requests), streams);
            as_they_are.min(costs.seconds(load(requests.max(u64::from(streams))), streams))
        };
        let mut best = (seconds(0, base.bytes), 0);
        let mut bytes = base.bytes;
        for (index, &gap) in self.0.iter().enumerate() {
            bytes += gap;
            // Equal gaps are closed together.
            if self.0.get(index + 1) != Some(&gap) {
                let seconds = seconds(index as u64 + 1, bytes);
                if seconds < best.0 {
                    best = (seconds, gap);
                }
            }
        }
        best.1
    }
}

impl Load {
    /// The load of one request for this many bytes.
    pub fn single(bytes: u64) -> Load {
        Load { requests: 1, ranges: 1, bytes, largest: bytes, multiplexed: false }
    }

    /// What ranges come to, with a request for each.
    pub fn of(ranges: &[Range<u64>]) -> Load {
        ranges.iter().fold(Load::default(), |load, range| load.and(1, range.end - range.start))
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
