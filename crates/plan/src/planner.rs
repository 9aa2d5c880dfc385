//! The cheapest requests for a set of segments.

use crate::costs::{Costs, Load};
use crate::windows::{Break, Reach, windows};
use std::ops::Range;

/// Plans whose times differ by less than this are as good as each other, for profiles are not known
/// any better (`docs/design/007-cost-model.md`): of them the one that is the least work for the
/// store is taken.
pub const TIE: f64 = 1.04;
/// Into at most this many requests of the same size the whole is tried to be split.
const MOST_PIECES: u64 = 1 << 14;
/// Looking at so many segments takes less than a millisecond.
const FEW_SEGMENTS: u64 = 1 << 17;
/// Nor are more counts of pieces tried one by one.
const FEW_PIECES: u64 = 64;
/// Requests are even enough when none could be smaller by more than one part in this many.
const EVEN: u64 = 64;
/// So many gaps are each tried, and requests made even; of more gaps, those are tried that the
/// number of requests points at.
const FEW_GAPS: usize = 8;

/// What memory allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// One request.
    pub request_bytes: u64,
    /// All requests in flight.
    pub in_flight_bytes: u64,
}

/// Requests that cover a set of segments, and what they are expected to cost.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Plan {
    /// Disjoint ranges, ascending.
    pub requests: Vec<Range<u64>>,
    /// How many of them are asked for at the same time.
    pub streams: u32,
    /// What they come to.
    pub load: Load,
    /// Expected seconds, with those of opening connections that are not open yet.
    pub seconds: f64,
    /// Gaps up to this are read through, and requests that would grow larger are split.
    pub reach: Reach,
}

/// Plan the reading of segments, sorted by their start; they may overlap. `connected`:
/// connections that are open; for more streams than that, others have to be opened first. Takes
/// n log n of the number of segments.
///
/// For any number of requests, the fewest bytes are read by closing the smallest gaps. So what is
/// to be tried is how many gaps to close, how large requests may grow, and how many to have in
/// flight (`docs/design/007-cost-model.md`).
pub fn plan(given: &[Range<u64>], costs: &Costs, caps: Caps, at: Break, connected: u32) -> Plan {
    if let Some(gap_bytes) = costs.single_gap() {
        let reach = Reach { gap_bytes, cap_bytes: caps.request_bytes };
        let requests = windows(given, reach, at);
        let load = Load::of(&requests);
        return Plan { seconds: costs.seconds(load, 1), requests, streams: 1, load, reach };
    }
    let apart = windows(given, Reach { gap_bytes: 0, cap_bytes: u64::MAX }, at);
    if apart.is_empty() {
        return Plan::default();
    }
    let (base, gaps) = (Load::of(&apart), Gaps::of(&apart));
    // Segments that touch are read together, but may be read apart.
    let segments = match at {
        Break::Anywhere => &apart,
        Break::BetweenSegments => given,
    };
    let streams: Vec<u32> = stream_counts(costs.streams, connected).collect();

    let mut tried: Vec<Tried> = Vec::new();
    let mut try_all = |reach, at| {
        let load = Load::of(&windows(given, reach, at));
        tried.extend(streams.iter().map(|&streams| {
            let seconds = seconds_on(load, streams, costs, connected);
            Tried { seconds, load, streams, reach, at }
        }));
        load
    };
    for gap_bytes in gaps.worth_trying(base, costs, &streams) {
        let merged = Load::of(&windows(segments, Reach { gap_bytes, cap_bytes: u64::MAX }, at));
        for pieces in piece_counts(costs.streams, apart.len()) {
            let cap_bytes = merged.bytes.div_ceil(pieces).min(caps.request_bytes);
            let reach = evened(segments, Reach { gap_bytes, cap_bytes }, at);
            let load = try_all(reach, at);
            // Smaller ones split what needs no splitting.
            if load.largest <= base.largest.div_ceil(4 * u64::from(costs.streams)) {
                break;
            }
        }
    }
    let whole = Load::of(&[apart[0].start..apart[apart.len() - 1].end]);
    if apart.len() <= FEW_GAPS + 1 {
        // Other gaps than the smallest, where that makes the largest request smaller; of few
        // segments also none, and any number of those that touch together.
        let largest = gaps.largest();
        let (parts, most, reached): (_, _, &[u64]) = if given.len() <= FEW_GAPS + 1 {
            (given, given.len(), &[0, largest])
        } else {
            (segments, apart.len().min(costs.streams as usize), &[largest])
        };
        let cap_bytes = whole.bytes.min(caps.request_bytes);
        for &gap_bytes in reached {
            for pieces in 1..=most {
                let far = Reach { gap_bytes, cap_bytes };
                let reach = smallest_cap(parts, far, Break::BetweenSegments, pieces);
                try_all(reach, Break::BetweenSegments);
            }
        }
    }
    // Where segments touch, the borders between them may divide the whole better than even pieces.
    let alone = Reach { gap_bytes: 0, cap_bytes: 1 };
    let each = try_all(alone, Break::BetweenSegments);
    tried.retain(|Tried { load, streams, .. }| {
        let fits = load.largest <= caps.request_bytes || at == Break::BetweenSegments;
        fits && (*streams == 1 || load.largest <= caps.in_flight_bytes / u64::from(*streams))
    });
    let plainest = [base, whole, each]
        .map(|load| soonest(load, costs, connected))
        .into_iter()
        .fold(f64::INFINITY, f64::min);
    let Tried { seconds, load, streams, reach, at } = choose(&tried, plainest, costs);
    Plan { requests: windows(given, reach, at), streams, load, seconds, reach }
}

/// The least seconds in which requests that come to this are answered, on any number of streams.
/// `connected` is as for [`plan`].
pub fn soonest(load: Load, costs: &Costs, connected: u32) -> f64 {
    stream_counts(costs.streams, connected)
        .map(|streams| seconds_on(load, streams, costs, connected))
        .fold(f64::INFINITY, f64::min)
}

fn seconds_on(load: Load, streams: u32, costs: &Costs, connected: u32) -> f64 {
    let connect_s = if streams > connected { costs.connect_s } else { 0.0 };
    costs.seconds(load, streams) + connect_s
}

/// A way to read, and what it comes to.
#[derive(Clone, Copy)]
struct Tried {
    seconds: f64,
    load: Load,
    streams: u32,
    reach: Reach,
    at: Break,
}

/// Of those that are as quick as the quickest, and not slower than the `plainest` ways, the one
/// that leaves the store the most time for others, with the fewest requests and streams.
fn choose(tried: &[Tried], plainest: f64, costs: &Costs) -> Tried {
    let quickest = tried.iter().map(|tried| tried.seconds).fold(f64::INFINITY, f64::min);
    let enough = (quickest * TIE).min(plainest).max(quickest);
    let good = tried.iter().filter(|tried| tried.seconds <= enough);
    let modest = good.min_by(|one, other| {
        let work = |tried: &Tried| costs.work_s(tried.load);
        let few = |tried: &Tried| (tried.load.requests, tried.streams);
        work(one).total_cmp(&work(other)).then_with(|| few(one).cmp(&few(other)))
    });
    *modest.unwrap_or(&tried[0])
}

/// 1, 2, 4, ... and the most there may be, with and without opening connections.
fn stream_counts(most: u32, connected: u32) -> impl Iterator<Item = u32> {
    let doubled = std::iter::successors(Some(1u32), |streams| streams.checked_mul(2));
    let open = (1..most).contains(&connected) && !connected.is_power_of_two();
    doubled
        .take_while(move |&streams| streams < most)
        .chain(open.then_some(connected))
        .chain([most])
}

/// The smallest cap that needs no more requests, so that none comes much later than the others.
fn evened(segments: &[Range<u64>], reach: Reach, at: Break) -> Reach {
    if segments.len() > FEW_GAPS + 1 {
        return reach;
    }
    smallest_cap(segments, reach, at, windows(segments, reach, at).len())
}

/// About the smallest cap, up to that of `reach`, with which there are `most` windows or fewer.
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

/// Pieces that the whole is split into: all counts up to four for each stream where the segments
/// are few, then 1, 2, 3, 4, 6, 8, 12 and so on.
fn piece_counts(streams: u32, segments: usize) -> impl Iterator<Item = u64> {
    let few = (4 * u64::from(streams)).min(FEW_PIECES).min(FEW_SEGMENTS / segments as u64);
    let rounds = [1, 2, 4].map(|rounds| rounds * u64::from(streams));
    let powers = (0..14).flat_map(|power| [1 << power, 3 << power]);
    let mut counts: Vec<u64> = (1..=few).chain(rounds).chain(powers).collect();
    counts.sort_unstable();
    counts.dedup();
    counts.into_iter().take_while(|&pieces| pieces <= MOST_PIECES)
}

/// The gaps between segments, smallest first.
struct Gaps(Vec<u64>);

impl Gaps {
    fn of(apart: &[Range<u64>]) -> Gaps {
        let mut gaps: Vec<u64> = apart.windows(2).map(|pair| pair[1].start - pair[0].end).collect();
        gaps.sort_unstable();
        Gaps(gaps)
    }

    fn largest(&self) -> u64 {
        self.0.last().copied().unwrap_or(0)
    }

    /// Lengths up to which gaps may be worth closing; all there are, if they are few.
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

    /// Up to which length gaps are best closed, on so many streams. That large requests hold up
    /// the others is left out: they can be split.
    fn cheapest(&self, base: Load, costs: &Costs, streams: u32) -> u64 {
        let seconds = |closed: u64, bytes: u64| {
            let apart = base.requests - closed;
            let load = |requests| Load { requests, bytes, largest: 0 };
            let as_they_are = costs.seconds(load(apart), streams);
            as_they_are.min(costs.seconds(load(apart.max(u64::from(streams))), streams))
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
    /// What requests come to.
    pub fn of(requests: &[Range<u64>]) -> Load {
        requests.iter().fold(Load::default(), |load, request| {
            let bytes = request.end - request.start;
            Load {
                requests: load.requests + 1,
                bytes: load.bytes + bytes,
                largest: load.largest.max(bytes),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::Curve;
    use proptest::prelude::*;

    const CAPS: Caps = Caps { request_bytes: 1 << 30, in_flight_bytes: 1 << 36 };

    /// All connections that may be wanted are open.
    const OPEN: u32 = u32::MAX;

    fn costs(latency_s: f64, stream: f64, total: f64, streams: u32) -> Costs {
        Costs {
            request: Curve::affine(latency_s, stream),
            total_bytes_per_s: total,
            requests_per_s: 1e6,
            streams,
            ..Costs::remote()
        }
    }

    fn rows(count: u64, bytes: u64, stride: u64) -> Vec<Range<u64>> {
        (0..count).map(|row| row * stride..row * stride + bytes).collect()
    }

    #[test]
    fn one_stream_reads_through_gaps_cheaper_than_a_request() {
        let costs = costs(0.01, 1e6, 1e6, 1); // a request is worth 10 kB
        let plan =
            plan(&[0..10, 9_000..9_010, 25_000..25_010], &costs, CAPS, Break::Anywhere, OPEN);
        assert_eq!(plan.requests, [0..9_010, 25_000..25_010]);
        assert_eq!((plan.streams, plan.reach.gap_bytes), (1, 10_000));
    }

    #[test]
    fn idle_streams_make_merging_dear() {
        // 1 MiB gaps on Azure (VirtualiZarr #1033): separate requests in flight together win.
        let plan = plan(
            &rows(25, 100_000, 600_000),
            &costs(0.03, 50e6, 400e6, 32),
            CAPS,
            Break::Anywhere,
            OPEN,
        );
        assert!(plan.requests.len() >= 25 && plan.load.bytes == 2_500_000, "{plan:?}");
        assert!(plan.streams >= 25);
    }

    #[test]
    fn a_shared_limit_makes_splitting_useless() {
        // 235 ms, 3.5 MB/s however many streams (PERFLAB): one request is as good as any, and
        // the one to choose, for it asks the server least.
        let plan =
            plan(&[0..6_000_000], &costs(0.235, 3.5e6, 3.5e6, 32), CAPS, Break::Anywhere, OPEN);
        assert_eq!((plan.requests.len(), plan.streams), (1, 1));
    }

    #[test]
    fn large_range_is_split_where_each_stream_is_slow() {
        // Trans-Atlantic read (arrow #36441): many streams, small requests.
        let costs = costs(0.09, 5e6, 500e6, 64);
        let plan = plan(&[0..64_000_000], &costs, CAPS, Break::Anywhere, OPEN);
        let whole = costs.seconds(Load::of(&[0..64_000_000]), 1);
        assert!(plan.seconds * 6.0 < whole, "{} {whole}", plan.seconds);
    }

    #[test]
    fn a_sparse_file_is_read_whole_where_skipping_is_dear() {
        // mountpoint #795: skipping 99 MB every 399 MB was slower than reading everything, when
        // a new request costs a window of its own. With measured costs it never is.
        let segments = rows(3, 300_000_000, 399_000_000);
        let costs = costs(0.05, 90e6, 90e6, 1);
        let caps = Caps { request_bytes: u64::MAX, in_flight_bytes: u64::MAX };
        let plan = plan(&segments, &costs, caps, Break::Anywhere, OPEN);
        assert_eq!(plan.load.bytes, 900_000_000);
    }

    #[test]
    fn opening_connections_is_weighed() {
        let costs = Costs { connect_s: 0.02, ..costs(0.02, 100e6, 100e6, 8) };
        let segments = rows(10, 20, 4096);
        let connected = |connected| plan(&segments, &costs, CAPS, Break::Anywhere, connected);
        assert_eq!((connected(1).streams, connected(1).requests.len()), (1, 1));
        assert!(connected(8).load.bytes < connected(1).load.bytes);
        assert!(connected(0).seconds > connected(1).seconds + 0.019);
    }

    #[test]
    fn caps_hold_whatever_is_cheapest() {
        let caps = Caps { request_bytes: 1 << 20, in_flight_bytes: 2 << 20 };
        let plan = plan(&[0..100 << 20], &costs(0.1, 1e6, 1e9, 64), caps, Break::Anywhere, OPEN);
        assert!(plan.load.largest <= 1 << 20);
        assert!(plan.load.largest * u64::from(plan.streams) <= 2 << 20, "{plan:?}");
    }

    #[test]
    fn nothing_costs_nothing() {
        assert_eq!(plan(&[], &Costs::remote(), CAPS, Break::Anywhere, OPEN), Plan::default());
        let empty = plan(&[5..5], &Costs::local(), CAPS, Break::Anywhere, OPEN);
        assert_eq!((empty.requests.len(), empty.seconds), (0, 0.0));
    }

    #[test]
    fn a_million_segments_are_planned() {
        let segments: Vec<_> = (0..1_000_000u64)
            .map(|n| n * 5_000 + n * 7_919 % 3_000..n * 5_000 + n * 7_919 % 3_000 + 200)
            .collect();
        let plan = plan(&segments, &Costs::remote(), CAPS, Break::Anywhere, OPEN);
        assert!(plan.load.requests > 0);
    }

    /// The least time over all ways to close gaps, to split evenly (where segments may be broken),
    /// and all numbers of streams.
    fn brute_force(segments: &[Range<u64>], costs: &Costs, at: Break, connected: u32) -> f64 {
        let gaps = segments.len() - 1;
        let mut best = f64::INFINITY;
        for closed in 0..1u32 << gaps {
            let mut merged = vec![segments[0].clone()];
            for (gap, segment) in segments[1..].iter().enumerate() {
                match merged.last_mut() {
                    Some(last) if closed >> gap & 1 == 1 => last.end = segment.end,
                    _ => merged.push(segment.clone()),
                }
            }
            let load = Load::of(&merged);
            let most = if at == Break::Anywhere { 2 * u64::from(costs.streams) } else { 1 };
            for pieces in 1..=most {
                let cap = load.bytes.div_ceil(pieces);
                let split =
                    windows(&merged, Reach { gap_bytes: 0, cap_bytes: cap }, Break::Anywhere);
                let split = if pieces == 1 { load } else { Load::of(&split) };
                for streams in 1..=costs.streams {
                    best = best.min(seconds_on(split, streams, costs, connected));
                }
            }
        }
        best
    }

    prop_compose! {
        fn any_costs()(
            latency_s in prop::sample::select(vec![1e-4, 1e-3, 0.02, 0.15]),
            stream in prop::sample::select(vec![1e6, 1e7, 1e8]),
            more in 1.0f64..20.0, streams in 1u32..9, requests_per_s in 50.0f64..1e5,
            served_bytes_per_s in prop::option::of(prop::sample::select(vec![1e6, 1e7, 1e8, 1e9])),
        ) -> Costs {
            let known = costs(latency_s, stream, stream * more, streams);
            Costs { requests_per_s, served_bytes_per_s, ..known }
        }
    }

    prop_compose! {
        fn any_segments(most: usize)(
            steps in prop::collection::vec((1u64..2_000_000, 1u64..300_000), 1..most),
            touch: bool,
        ) -> Vec<Range<u64>> {
            let mut at = 0;
            steps.into_iter().map(|(gap, bytes)| {
                let start = if touch && gap % 2 == 0 { at } else { at + gap };
                at = start + bytes;
                start..at
            }).collect()
        }
    }

    proptest! {
        #[test]
        fn small_cases_are_near_the_optimum(costs in any_costs(), segments in any_segments(7)) {
            let found = plan(&segments, &costs, CAPS, Break::Anywhere, OPEN).seconds;
            let best = brute_force(&segments, &costs, Break::Anywhere, OPEN);
            prop_assert!(found <= best * 1.05, "{found} {best}");
        }

        #[test]
        fn small_cases_of_tiles_are_near_the_optimum(
            costs in any_costs(), segments in any_segments(7), connected in 1u32..9,
        ) {
            let found = plan(&segments, &costs, CAPS, Break::BetweenSegments, connected).seconds;
            let best = brute_force(&segments, &costs, Break::BetweenSegments, connected);
            prop_assert!(found <= best * 1.05, "{found} {best}");
        }

        #[test]
        fn requests_cover_every_segment_once_and_keep_the_caps(
            costs in any_costs(), segments in any_segments(60),
            request_kib in 1u64..4096, flights in 1u64..20, anywhere: bool,
        ) {
            let caps = Caps { request_bytes: request_kib << 10, in_flight_bytes: (flights * request_kib) << 10 };
            let at = if anywhere { Break::Anywhere } else { Break::BetweenSegments };
            let plan = plan(&segments, &costs, caps, at, OPEN);
            for pair in plan.requests.windows(2) {
                prop_assert!(pair[0].end <= pair[1].start);
            }
            for segment in &segments {
                let covered: u64 = plan.requests.iter()
                    .map(|r| r.end.min(segment.end).saturating_sub(r.start.max(segment.start)))
                    .sum();
                prop_assert_eq!(covered, segment.end - segment.start);
                prop_assert!(anywhere || plan.requests.iter().any(|r| r.start <= segment.start && segment.end <= r.end));
            }
            prop_assert_eq!(plan.load, Load::of(&plan.requests));
            prop_assert!(plan.streams >= 1 && plan.streams <= costs.streams);
            let unbroken = segments.iter().map(|s| s.end - s.start).max().unwrap_or(0);
            let most = if anywhere { caps.request_bytes } else { caps.request_bytes.max(unbroken) };
            prop_assert!(plan.load.largest <= most);
            prop_assert!(plan.streams == 1 || plan.load.largest * u64::from(plan.streams) <= caps.in_flight_bytes);
        }

        #[test]
        fn never_dearer_than_a_request_each_or_one_for_all(
            costs in any_costs(), segments in any_segments(60),
        ) {
            let found = plan(&segments, &costs, CAPS, Break::Anywhere, OPEN).seconds;
            let span = segments[0].start..segments[segments.len() - 1].end;
            let whole = costs.seconds(Load::of(&[span]), 1);
            let each = (1..=costs.streams).map(|k| costs.seconds(Load::of(&segments), k)).fold(f64::INFINITY, f64::min);
            prop_assert!(found <= whole && found <= each, "{found} {whole} {each}");
        }
    }
}
