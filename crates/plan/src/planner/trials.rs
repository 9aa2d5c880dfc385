//! The ways to read that are tried, and the choice between them.

use super::gaps::Gaps;
use super::{Caps, FEW_GAPS, TIE, seconds_on, soonest, stream_counts};
use crate::costs::{Costs, Load};
use crate::many_ranges::{Connections, MultiRange, MultiplexCosts};
use crate::windows::{Break, Reach, windows};
use std::ops::Range;

/// Into at most this many requests of the same size the whole is tried to be split.
const MOST_PIECES: u64 = 1 << 14;
/// Looking at this many segments takes less than a millisecond.
const FEW_SEGMENTS: u64 = 1 << 17;
/// Streams for which counts of pieces are tried if these are what counts.
const MOST_STREAMS: u32 = 16;
/// Up to this many pieces, each count is tried.
const FEW_PIECES: u64 = 64;
/// Requests are even enough when none could be smaller by more than one part in this many.
const EVEN: u64 = 64;
/// What is in flight on a connection that requests share arrives in this time: else one that waits
/// for the others looks like one that the server forgot.
pub(super) const FLIGHT_S: f64 = 1.0;

/// A way to read, and what it comes to.
#[derive(Clone, Copy)]
pub(super) struct TrialPlan {
    pub seconds: f64,
    pub load: Load,
    pub streams: u32,
    pub windows: WindowTrial,
}

/// How segments are merged, and their windows put into requests.
#[derive(Clone, Copy)]
pub(super) struct WindowTrial {
    pub reach: Reach,
    pub at: Break,
    pub ranges_per_request: u32,
}

/// The plans that were tried for some segments.
pub(super) struct Trials<'a> {
    ranges: &'a [Range<u64>],
    /// The segments, those that touch as one.
    spans: &'a [Range<u64>],
    costs: &'a Costs,
    caps: Caps,
    at: Break,
    connections: Connections,
    /// Numbers of streams to try.
    pub streams: Vec<u32>,
    plans: Vec<TrialPlan>,
    /// Seconds of the quickest of those that memory allows.
    quickest_s: f64,
}

impl<'a> Trials<'a> {
    pub fn new(
        ranges: &'a [Range<u64>],
        spans: &'a [Range<u64>],
        costs: &'a Costs,
        caps: Caps,
        at: Break,
        connections: Connections,
    ) -> Trials<'a> {
        let streams = stream_counts(costs.streams, connections.streams).collect();
        let (plans, quickest_s) = (Vec::new(), f64::INFINITY);
        Trials { ranges, spans, costs, caps, at, connections, streams, plans, quickest_s }
    }

    /// The segments as they may be divided: those that touch are read together, but may be read
    /// apart.
    fn segments(&self) -> &'a [Range<u64>] {
        match self.at {
            Break::Anywhere => self.spans,
            Break::BetweenSegments => self.ranges,
        }
    }

    /// Try these windows, a request for each, on each number of streams. Returns their load.
    pub fn add(&mut self, reach: Reach, at: Break) -> Load {
        let load = Load::of_windows(self.ranges, reach, at);
        self.add_load(load, WindowTrial { reach, at, ranges_per_request: 1 });
        load
    }

    fn add_load(&mut self, load: Load, windows: WindowTrial) {
        for &streams in &self.streams {
            let plan = self.trial(load, streams, windows);
            if self.is_allowed(&plan) {
                self.quickest_s = self.quickest_s.min(plan.seconds);
            }
            self.plans.push(plan);
        }
    }

    fn trial(&self, load: Load, streams: u32, windows: WindowTrial) -> TrialPlan {
        let seconds = seconds_on(load, streams, self.costs, self.connections);
        TrialPlan { seconds, load, streams, windows }
    }

    /// Try to close gaps up to each of these lengths, with the whole in several numbers of pieces.
    /// `base`: the load without closed gaps.
    pub fn try_gaps(&mut self, lengths: &[u64], base: Load) {
        let (segments, at) = (self.segments(), self.at);
        // Beside others the number of requests matters more than their rounds.
        let most_streams =
            if self.costs.busy.is_idle() { self.costs.streams } else { MOST_STREAMS };
        for &gap_bytes in lengths {
            let whole = Load::of_windows(segments, Reach { gap_bytes, cap_bytes: u64::MAX }, at);
            let mut largest = u64::MAX;
            for pieces in piece_counts(most_streams, self.spans.len()) {
                let cap_bytes = whole.bytes.div_ceil(pieces).min(self.caps.request_bytes);
                // A cap that no window reaches changes nothing.
                if segments.len() > FEW_GAPS + 1 && largest <= cap_bytes {
                    continue;
                }
                let reach = even_out(segments, Reach { gap_bytes, cap_bytes }, at);
                let load = self.add(reach, at);
                largest = load.largest;
                // Smaller ones split what needs no splitting.
                if load.largest <= base.largest.div_ceil(4 * u64::from(self.costs.streams)) {
                    break;
                }
                // Nor do more requests help where these alone take too long.
                let least = Load { bytes: 0, largest: 0, ..load };
                let least = soonest(least, self.costs, self.connections);
                if least > TIE * self.quickest_s {
                    break;
                }
            }
        }
    }

    /// Try other gaps than the smallest, if that makes the largest request smaller; for few
    /// segments also none, and any number of those that touch together.
    pub fn try_small_requests(&mut self, largest_gap: u64, whole_bytes: u64) {
        let (ranges, spans) = (self.ranges, self.spans);
        let (parts, most, gap_choices): (_, _, &[u64]) = if ranges.len() <= FEW_GAPS + 1 {
            (ranges, ranges.len(), &[0, largest_gap])
        } else {
            (self.segments(), spans.len().min(self.costs.streams as usize), &[largest_gap])
        };
        let cap_bytes = whole_bytes.min(self.caps.request_bytes);
        for &gap_bytes in gap_choices {
            for pieces in 1..=most {
                let widest = Reach { gap_bytes, cap_bytes };
                let reach = smallest_cap(parts, widest, Break::BetweenSegments, pieces);
                self.add(reach, Break::BetweenSegments);
            }
        }
    }

    /// Try requests for many ranges.
    pub fn try_vectors(&mut self, gaps: &Gaps, lengths: &[u64], multi_range: &MultiRange) {
        let (caps, at) = (self.caps, self.at);
        let end = self.spans.last().map_or(0, |last| last.end);
        let lengths =
            gaps.worth_vectors(lengths.to_vec(), self.costs, multi_range, &self.streams, end);
        for gap_bytes in lengths {
            let reach = Reach { gap_bytes, cap_bytes: caps.request_bytes };
            let ranges = windows(self.ranges, reach, at);
            for ranges_per_request in vector_sizes(&ranges, multi_range, caps, &self.streams) {
                let load = Load::of_vectors(&ranges, ranges_per_request, multi_range);
                self.add_load(load, WindowTrial { reach, at, ranges_per_request });
            }
        }
    }

    /// Try requests that share a connection.
    pub fn try_multiplex(&mut self, gaps: &Gaps, lengths: &[u64], multiplex: &MultiplexCosts) {
        let at = self.at;
        let flights: Vec<u32> = stream_counts(multiplex.requests, multiplex.requests).collect();
        let most = (multiplex.bytes_per_s * FLIGHT_S) as u64;
        for gap_bytes in gaps.worth_multiplexing(lengths.to_vec(), self.costs, multiplex) {
            let reach = Reach { gap_bytes, cap_bytes: self.caps.request_bytes };
            let load = Load { multiplexed: true, ..Load::of_windows(self.ranges, reach, at) };
            let windows = WindowTrial { reach, at, ranges_per_request: 1 };
            for &streams in &flights {
                if load.largest <= most / u64::from(streams) {
                    self.plans.push(self.trial(load, streams, windows));
                }
            }
        }
    }

    /// The best of those that memory allows. `plainest`: seconds of the plainest ways to read.
    pub fn best(mut self, plainest: f64) -> TrialPlan {
        let mut plans = std::mem::take(&mut self.plans);
        plans.retain(|plan| self.is_allowed(plan));
        choose(&plans, plainest, self.costs)
    }

    /// Whether memory allows a plan.
    fn is_allowed(&self, TrialPlan { load, streams, windows, .. }: &TrialPlan) -> bool {
        let is_segment = self.at == Break::BetweenSegments && windows.ranges_per_request == 1;
        let fits = load.largest <= self.caps.request_bytes || is_segment;
        let share_bytes = self.caps.in_flight_bytes / u64::from(*streams);
        fits && (*streams == 1 || load.largest <= share_bytes)
    }
}

/// Numbers of ranges in a request: as many as are allowed, as fit, and as keep all streams busy
/// for a round or a few.
fn vector_sizes(
    ranges: &[Range<u64>],
    multi_range: &MultiRange,
    caps: Caps,
    streams: &[u32],
) -> Vec<u32> {
    let count = ranges.len() as u64;
    let most = u64::from(multi_range.most_ranges(ranges.last().map_or(0, |last| last.end)));
    let largest = ranges.iter().map(|range| range.end - range.start).max().unwrap_or(1);
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
        if Load::of_windows(segments, with(middle), at).requests > most as u64 {
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
