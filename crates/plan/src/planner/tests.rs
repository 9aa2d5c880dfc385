use super::trials::FLIGHT_S;
use super::*;
use crate::costs::Curve;
use crate::many_ranges::MultiplexCosts;
use proptest::prelude::*;

const CAPS: Caps = Caps { request_bytes: 1 << 30, in_flight_bytes: 1 << 36 };

/// All connections that may be needed are open.
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
    let plan = plan(&[0..10, 9_000..9_010, 25_000..25_010], &costs, CAPS, Break::Anywhere, OPEN);
    assert_eq!(plan.ranges, [0..9_010, 25_000..25_010]);
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
    assert!(plan.ranges.len() >= 25 && plan.load.bytes == 2_500_000, "{plan:?}");
    assert!(plan.streams >= 25);
}

#[test]
fn a_shared_limit_makes_splitting_useless() {
    // 235 ms, 3.5 MB/s however many streams (PERFLAB): one request is as good as any, and
    // the one to choose, for it asks the server least.
    let plan = plan(&[0..6_000_000], &costs(0.235, 3.5e6, 3.5e6, 32), CAPS, Break::Anywhere, OPEN);
    assert_eq!((plan.ranges.len(), plan.streams), (1, 1));
}

#[test]
fn large_range_is_split_where_each_stream_is_slow() {
    // Trans-Atlantic read (arrow #36441): many streams, small requests.
    let costs = costs(0.09, 5e6, 500e6, 64);
    let plan = plan(&[0..64_000_000], &costs, CAPS, Break::Anywhere, OPEN);
    let whole = costs.seconds(Load::of(&[0..64_000_000]), 1);
    assert!(plan.read_s * 6.0 < whole, "{} {whole}", plan.read_s);
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

/// nginx 1.22 (issue of vector reads): 5 us a range.
const NGINX: MultiRange =
    MultiRange { ranges: 500, header_bytes: 7000, range_s: 5e-6, part_bytes: 100, gap_bytes: 0 };

#[test]
fn rows_of_a_cut_are_one_request_over_a_line_with_latency() {
    let rows = rows(100, 200, 4096);
    let with = |multi_range| {
        let costs = Costs { multi_range, ..costs(0.02, 12.5e6, 125e6, 8) };
        plan(&rows, &costs, CAPS, Break::Anywhere, 1)
    };
    let (vector, plain) = (with(Some(NGINX)), with(None));
    assert_eq!((vector.load.requests, vector.ranges.len(), vector.streams), (1, 100, 1));
    assert_eq!((vector.ranges_per_request, vector.load.bytes), (100, 30_000));
    assert!(vector.read_s < plain.read_s);
    // If each range costs the server 1 ms, fewer ranges are requested.
    let slow = with(Some(MultiRange { range_s: 1e-3, ..NGINX }));
    assert!(slow.load.ranges < 25, "{:?}", slow.load);
}

#[test]
fn more_ranges_than_a_request_may_have_are_several_requests() {
    let costs = Costs { multi_range: Some(NGINX), ..costs(0.1, 1e6, 2e6, 8) };
    let plan = plan(&rows(1200, 200, 65_536), &costs, CAPS, Break::Anywhere, OPEN);
    assert!(plan.ranges_per_request <= 7000 / 18, "{}", plan.ranges_per_request);
    assert!((4..=8).contains(&plan.load.requests), "{:?}", plan.load);
    assert_eq!(plan.load.ranges, 1200);
}

/// nginx over TLS: each request takes 40 us of the server, and 60 bytes of headers.
const HTTP2: MultiplexCosts = MultiplexCosts {
    requests: 100,
    latency_s: 0.02,
    request_s: 4e-5,
    bytes_per_s: 12.5e6,
    header_bytes: 60,
};

#[test]
fn rows_share_a_connection_where_that_is_cheapest() {
    let rows = rows(100, 200, 4096);
    let open = Connections { streams: 8, multiplexed: true };
    let with = |multi_range, multiplex, connections| {
        let costs = Costs { multi_range, multiplexed: multiplex, ..costs(0.02, 12.5e6, 12.5e6, 8) };
        plan(&rows, &costs, CAPS, Break::Anywhere, connections)
    };
    let (plain, multiplex) = (with(None, None, open), with(None, Some(HTTP2), open));
    assert!(multiplex.load.multiplexed && !plain.load.multiplexed);
    assert_eq!(
        (multiplex.load.requests, multiplex.load.bytes, multiplex.streams),
        (100, 20_000, 100)
    );
    assert!(multiplex.read_s < plain.read_s);
    let way = Way { ranges_per_request: 1, streams: 100, multiplexed: true };
    assert_eq!(multiplex.way(), way);
    // Many ranges in one request cost less of the server, and 100 bytes each.
    assert!(with(Some(NGINX), Some(HTTP2), open).ranges_per_request > 10);
    let dear = MultiRange { range_s: 1e-3, ..NGINX };
    assert!(with(Some(dear), Some(HTTP2), open).load.multiplexed);
    // Opening the connection takes longer than reading on those that are open.
    let slow = Costs { connect_s: 0.2, multiplexed: Some(HTTP2), ..costs(0.02, 12.5e6, 12.5e6, 8) };
    assert!(!plan(&rows, &slow, CAPS, Break::Anywhere, 8).load.multiplexed);
}

#[test]
fn requests_on_one_connection_share_its_bandwidth_and_its_latency() {
    let multiplex = MultiplexCosts {
        requests: 100,
        latency_s: 0.1,
        request_s: 1e-3,
        bytes_per_s: 1e6,
        header_bytes: 100,
    };
    let costs = Costs {
        request: Curve::affine(0.1, 1e6),
        total_bytes_per_s: 8e6,
        requests_per_s: 1e14,
        multiplexed: Some(multiplex),
        ..Costs::remote()
    };
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    let load = |requests, bytes, largest| Load {
        requests,
        ranges: requests,
        bytes,
        largest,
        multiplexed: true,
    };
    close(costs.seconds(load(1, 0, 0), 1), 0.1 + 1e-4);
    // The server takes a millisecond for each, and the headers come beside that.
    close(costs.seconds(load(100, 10_000, 100), 100), 0.1 + 0.099);
    // Eight streams would carry this in an eighth of the time.
    close(costs.seconds(load(8, 8_000_000, 1_000_000), 8), 0.1 + 8.0008);
    let apart = Load { multiplexed: false, ..load(8, 8_000_000, 1_000_000) };
    close(costs.seconds(apart, 8), 1.1);
    // Two rounds, if no more than half of them may be in flight.
    close(costs.seconds(load(100, 0, 0), 50), 0.2 + 0.049);
    close(costs.served_s(load(3, 0, 0)), 3e-3);
    close(costs.share(2).served_s(load(3, 0, 0)), 6e-3);
    close(costs.share(2).seconds(load(1, 1_000_000, 1_000_000), 1), 0.1 + 2.0002);
    for bad in [
        MultiplexCosts { requests: 1, ..multiplex },
        MultiplexCosts { request_s: f64::NAN, ..multiplex },
        MultiplexCosts { bytes_per_s: 0.0, ..multiplex },
    ] {
        assert!(Costs { multiplexed: Some(bad), ..costs.clone() }.check().is_err(), "{bad:?}");
    }
}

#[test]
fn large_ranges_go_over_several_connections_where_each_is_slow() {
    let costs = Costs { multiplexed: Some(HTTP2), ..costs(0.02, 12.5e6, 125e6, 8) };
    let plan = plan(&[0..64 << 20], &costs, CAPS, Break::Anywhere, OPEN);
    assert!(!plan.load.multiplexed && plan.streams == 8, "{:?}", plan.load);
}

#[test]
fn opening_connections_is_weighed() {
    let costs = Costs { connect_s: 0.02, ..costs(0.02, 100e6, 100e6, 8) };
    let segments = rows(10, 20, 4096);
    let plan_with = |open: u32| plan(&segments, &costs, CAPS, Break::Anywhere, open);
    assert_eq!((plan_with(1).streams, plan_with(1).ranges.len()), (1, 1));
    assert!(plan_with(8).load.bytes < plan_with(1).load.bytes);
    assert!(plan_with(0).read_s > plan_with(1).read_s + 0.019);
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
    assert_eq!((empty.ranges.len(), empty.read_s), (0, 0.0));
}

#[test]
fn a_million_segments_are_planned() {
    let segments: Vec<_> = (0..1_000_000u64)
        .map(|n| n * 5_000 + n * 7_919 % 3_000..n * 5_000 + n * 7_919 % 3_000 + 200)
        .collect();
    for multi_range in [None, Some(NGINX)] {
        let costs = Costs { multi_range, ..Costs::remote() };
        let plan = plan(&segments, &costs, CAPS, Break::Anywhere, OPEN);
        assert!(plan.load.requests > 0);
    }
}

/// The least time over all ways to close gaps, to split evenly (if segments may be broken),
/// and all numbers of streams.
fn brute_force(segments: &[Range<u64>], costs: &Costs, at: Break, open_count: u32) -> f64 {
    let gaps = segments.len() - 1;
    let mut best = f64::INFINITY;
    for closed_gaps in 0..1u32 << gaps {
        let mut ranges = vec![segments[0].clone()];
        for (gap, segment) in segments[1..].iter().enumerate() {
            match ranges.last_mut() {
                Some(last) if closed_gaps >> gap & 1 == 1 => last.end = segment.end,
                _ => ranges.push(segment.clone()),
            }
        }
        let load = Load::of(&ranges);
        let most = if at == Break::Anywhere { 2 * u64::from(costs.streams) } else { 1 };
        for pieces in 1..=most {
            let cap = load.bytes.div_ceil(pieces);
            let split = windows(&ranges, Reach { gap_bytes: 0, cap_bytes: cap }, Break::Anywhere);
            let split = if pieces == 1 { load } else { Load::of(&split) };
            for streams in 1..=costs.streams {
                best = best.min(seconds_on(split, streams, costs, open_count.into()));
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
        let exact = costs(latency_s, stream, stream * more, streams);
        Costs { requests_per_s, served_bytes_per_s, ..exact }
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

prop_compose! {
    fn any_multi_range()(
        ranges in 2u32..700, header_bytes in 64u32..8000, range_s in 0.0f64..1e-3,
        part_bytes in 0u32..300, gap_bytes in prop::sample::select(vec![0u32, 80, 4096]),
    ) -> MultiRange {
        MultiRange { ranges, header_bytes, range_s, part_bytes, gap_bytes }
    }
}

prop_compose! {
    fn any_multiplex()(
        requests in 2u32..300, latency_s in prop::sample::select(vec![1e-4, 1e-3, 0.02, 0.15]),
        request_s in 0.0f64..1e-3, bytes_per_s in prop::sample::select(vec![1e6, 1e7, 1e8]),
        header_bytes in 0u32..400,
    ) -> MultiplexCosts {
        MultiplexCosts { requests, latency_s, request_s, bytes_per_s, header_bytes }
    }
}

/// The ranges of a plan ascend, do not overlap, and hold all segments.
fn check_cover(plan: &Plan, segments: &[Range<u64>]) -> Result<(), TestCaseError> {
    for pair in plan.ranges.windows(2) {
        prop_assert!(pair[0].end <= pair[1].start);
    }
    for segment in segments {
        let inside = |range: &Range<u64>| {
            range.end.min(segment.end).saturating_sub(range.start.max(segment.start))
        };
        let segment_bytes: u64 = plan.ranges.iter().map(inside).sum();
        prop_assert_eq!(segment_bytes, segment.end - segment.start);
    }
    Ok(())
}

proptest! {
    #[test]
    fn small_cases_are_near_the_optimum(costs in any_costs(), segments in any_segments(7)) {
        let read_s = plan(&segments, &costs, CAPS, Break::Anywhere, OPEN).read_s;
        let best = brute_force(&segments, &costs, Break::Anywhere, OPEN);
        prop_assert!(read_s <= best * 1.05, "{read_s} {best}");
    }

    #[test]
    fn small_cases_of_tiles_are_near_the_optimum(
        costs in any_costs(), segments in any_segments(7), streams in 1u32..9,
    ) {
        let read_s = plan(&segments, &costs, CAPS, Break::BetweenSegments, streams).read_s;
        let best = brute_force(&segments, &costs, Break::BetweenSegments, streams);
        prop_assert!(read_s <= best * 1.05, "{read_s} {best}");
    }

    #[test]
    fn no_gaps_are_better_closed_with_requests_as_they_are(
        costs in any_costs(), segments in any_segments(60),
    ) {
        let read_s = plan(&segments, &costs, CAPS, Break::Anywhere, OPEN).read_s;
        let gaps = segments.windows(2).map(|pair| pair[1].start - pair[0].end);
        for gap_bytes in gaps {
            let reach = Reach { gap_bytes, cap_bytes: u64::MAX };
            let load = Load::of(&windows(&segments, reach, Break::Anywhere));
            if load.largest <= CAPS.request_bytes {
                let whole_s = soonest(load, &costs, OPEN.into());
                prop_assert!(read_s <= TIE * whole_s, "{read_s} {whole_s} {gap_bytes}");
            }
        }
    }

    #[test]
    fn requests_cover_every_segment_once_and_keep_the_caps(
        costs in any_costs(), segments in any_segments(60),
        request_kib in 1u64..4096, flights in 1u64..20, anywhere: bool,
    ) {
        let caps = Caps { request_bytes: request_kib << 10, in_flight_bytes: (flights * request_kib) << 10 };
        let at = if anywhere { Break::Anywhere } else { Break::BetweenSegments };
        let plan = plan(&segments, &costs, caps, at, OPEN);
        check_cover(&plan, &segments)?;
        for segment in &segments {
            prop_assert!(anywhere || plan.ranges.iter().any(|r| r.start <= segment.start && segment.end <= r.end));
        }
        prop_assert_eq!(plan.load, Load::of(&plan.ranges));
        prop_assert!(plan.streams >= 1 && plan.streams <= costs.streams);
        let unbroken = segments.iter().map(|s| s.end - s.start).max().unwrap_or(0);
        let most = if anywhere { caps.request_bytes } else { caps.request_bytes.max(unbroken) };
        prop_assert!(plan.load.largest <= most);
        prop_assert!(plan.streams == 1 || plan.load.largest * u64::from(plan.streams) <= caps.in_flight_bytes);
    }

    #[test]
    fn many_ranges_in_a_request_are_never_dearer_and_keep_their_limits(
        costs in any_costs(), segments in any_segments(80), multi_range in any_multi_range(),
        request_kib in 256u64..4096, anywhere: bool,
    ) {
        let caps = Caps { request_bytes: request_kib << 10, in_flight_bytes: request_kib << 13 };
        let at = if anywhere { Break::Anywhere } else { Break::BetweenSegments };
        let plain = plan(&segments, &costs, caps, at, OPEN);
        prop_assert_eq!(plain.ranges_per_request, 1);
        let costs = Costs { multi_range: Some(multi_range), ..costs };
        let plan = plan(&segments, &costs, caps, at, OPEN);
        prop_assert!(plan.read_s <= plain.read_s * TIE, "{} {}", plan.read_s, plain.read_s);
        check_cover(&plan, &segments)?;
        let load = Load::of_vectors(&plan.ranges, plan.ranges_per_request, &multi_range);
        prop_assert_eq!(plan.load, load);
        if plan.ranges_per_request > 1 {
            prop_assert!(plan.load.largest <= caps.request_bytes);
            let flight = plan.load.largest * u64::from(plan.streams);
            prop_assert!(plan.streams == 1 || flight <= caps.in_flight_bytes);
        }
        for request in plan.ranges.chunks(plan.ranges_per_request as usize) {
            let header: usize = 6 + request.iter()
                .map(|range| format!("{}-{},", range.start, range.end - 1).len())
                .sum::<usize>();
            let is_single = request.len() == 1;
            prop_assert!(is_single || request.len() <= multi_range.ranges as usize);
            prop_assert!(is_single || header <= multi_range.header_bytes as usize, "{header}");
        }
    }

    #[test]
    fn requests_on_one_connection_are_never_dearer_and_keep_its_limits(
        costs in any_costs(), segments in any_segments(80), multiplex in any_multiplex(),
        multi_range in prop::option::of(any_multi_range()), request_kib in 256u64..4096,
        anywhere: bool, is_open: bool,
    ) {
        let caps = Caps { request_bytes: request_kib << 10, in_flight_bytes: request_kib << 13 };
        let at = if anywhere { Break::Anywhere } else { Break::BetweenSegments };
        let open = Connections { streams: 4, multiplexed: is_open };
        let costs = Costs { multi_range, ..costs };
        let plain = plan(&segments, &costs, caps, at, open);
        prop_assert!(!plain.load.multiplexed);
        let costs = Costs { multiplexed: Some(multiplex), ..costs };
        let plan = plan(&segments, &costs, caps, at, open);
        prop_assert!(plan.read_s <= plain.read_s * TIE, "{} {}", plan.read_s, plain.read_s);
        check_cover(&plan, &segments)?;
        if plan.load.multiplexed {
            prop_assert_eq!(plan.load, Load { multiplexed: true, ..Load::of(&plan.ranges) });
            prop_assert_eq!(plan.ranges_per_request, 1);
            prop_assert!(plan.streams <= multiplex.requests);
            let flight = plan.load.largest * u64::from(plan.streams);
            prop_assert!(plan.streams == 1 || flight <= caps.in_flight_bytes);
            prop_assert!(flight as f64 <= multiplex.bytes_per_s * FLIGHT_S);
        }
    }

    #[test]
    fn never_dearer_than_a_request_each_or_one_for_all(
        costs in any_costs(), segments in any_segments(60),
    ) {
        let read_s = plan(&segments, &costs, CAPS, Break::Anywhere, OPEN).read_s;
        let span = segments[0].start..segments[segments.len() - 1].end;
        let whole = costs.seconds(Load::of(&[span]), 1);
        let each = (1..=costs.streams).map(|k| costs.seconds(Load::of(&segments), k)).fold(f64::INFINITY, f64::min);
        prop_assert!(read_s <= whole && read_s <= each, "{read_s} {whole} {each}");
    }
}
