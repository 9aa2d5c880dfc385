use super::*;

#[test]
fn curve_is_straight_between_points_and_beyond() {
    let curve = Curve(vec![(100.0, 1.0), (200.0, 2.0), (400.0, 8.0)]);
    assert_eq!(
        [0.0, 100.0, 150.0, 300.0, 500.0].map(|b| curve.seconds(b)),
        [1.0, 1.0, 1.5, 5.0, 11.0]
    );
}

#[test]
fn time_is_the_tightest_bound() {
    let costs = Costs {
        request: Curve::affine(0.1, 1e6),
        total_bytes_per_s: 4e6,
        requests_per_s: 1000.0,
        ..Costs::remote()
    };
    let load = |requests, bytes, largest| Load {
        requests,
        ranges: requests,
        bytes,
        largest,
        ..Load::default()
    };
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    close(costs.seconds(load(1, 1_000_000, 1_000_000), 8), 1.1);
    close(costs.seconds(load(9, 9_000, 1_000), 8), 2.0 * 0.101);
    close(costs.seconds(load(16, 16_000_000, 1_000_000), 16), 4.1);
    close(costs.seconds(load(16, 16_000_000, 1_000_000), 8), 4.175);
    close(costs.seconds(load(2, 3_000_000, 2_900_000), 2), 3.0);
    close(costs.seconds(load(10_000, 10_000, 1), 100), 100.0 * 0.100_001 + 0.099);
    close(costs.seconds(load(500_000, 500_000, 1), 100_000), 0.100_001 + 499.999);
    assert_eq!(costs.seconds(Load::default(), 1), 0.0);
}

#[test]
fn busy_server_takes_time_for_bytes_and_is_idle_between_rounds() {
    let costs = Costs {
        request: Curve::affine(0.02, 50e6),
        total_bytes_per_s: 1e9,
        requests_per_s: 500.0,
        served_bytes_per_s: Some(1e6),
        ..Costs::remote()
    };
    let load = |requests| Load {
        requests,
        ranges: requests,
        bytes: requests * 10_000,
        largest: 10_000,
        ..Load::default()
    };
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    close(costs.seconds(load(8), 8), 0.03 + 7.0 * 0.012);
    close(costs.seconds(load(40), 20), 0.03 + 39.0 * 0.012);
    close(costs.seconds(load(4), 2), 2.0 * 0.03 + (1.0 + IDLE) * 0.012);
    close(costs.seconds(load(2), 1), 2.0 * 0.03);
    // It works on while the streams carry what it has served.
    let large =
        |requests| Load { bytes: requests * 1_000_000, largest: 1_000_000, ..load(requests) };
    let costs = Costs { request: Curve::affine(0.02, 0.2e6), ..costs };
    close(costs.seconds(large(2), 2), 5.02);
    close(costs.seconds(large(8), 8), 0.02 + 8.0 + 7.0 * 0.002);
    close(costs.seconds(large(2), 1), 2.0 * 5.02);
    close(costs.share(2).served_s(load(3)), 2.0 * 3.0 * 0.012);
}

/// A server of 2 ms for each range after the first.
fn vector_costs() -> Costs {
    let multi_range = MultiRange {
        ranges: 200,
        header_bytes: 7000,
        range_s: 2e-3,
        part_bytes: 100,
        gap_bytes: 0,
    };
    Costs { request: Curve::affine(0.1, 1e6), multi_range: Some(multi_range), ..Costs::remote() }
}

#[test]
fn further_ranges_of_a_request_take_the_server_time() {
    let costs = vector_costs();
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    let load = |requests, ranges| Load { requests, ranges, ..Load::default() };
    close(costs.seconds(load(1, 1), 1), 0.1);
    close(costs.seconds(load(1, 11), 1), 0.12);
    // One after the other, as the server works on one at a time.
    close(costs.seconds(load(8, 88), 8), 0.12 + 7.0 * (0.02 + 0.5e-3));
    close(costs.served_s(load(2, 22)), 1e-3 + 0.04);
    close(costs.share(2).served_s(load(2, 22)), 2.0 * (1e-3 + 0.04));
}

#[test]
fn impossible_costs_are_refused() {
    assert_eq!(Costs::local().check(), Ok(()));
    assert_eq!(Costs::remote().check(), Ok(()));
    let bad = [
        Costs { connect_s: f64::NAN, ..Costs::remote() },
        Costs { open_s: -1.0, ..Costs::remote() },
        Costs { total_bytes_per_s: 0.0, ..Costs::remote() },
        Costs { requests_per_s: f64::INFINITY, ..Costs::remote() },
        Costs { served_bytes_per_s: Some(0.0), ..Costs::remote() },
        Costs { streams: 0, ..Costs::remote() },
        Costs { buffer_bytes: Some(0), ..Costs::local() },
        Costs { buffer_bytes: Some(1 << 40), ..Costs::local() },
        Costs {
            multi_range: vector_costs().multi_range.map(|of| MultiRange { ranges: 1, ..of }),
            ..Costs::remote()
        },
        Costs {
            multi_range: vector_costs()
                .multi_range
                .map(|of| MultiRange { range_s: f64::NAN, ..of }),
            ..Costs::remote()
        },
        Costs { request: Curve(vec![(0.0, 1.0)]), ..Costs::remote() },
        Costs { request: Curve(vec![(0.0, 1.0), (0.0, 2.0)]), ..Costs::remote() },
        Costs { request: Curve(vec![(0.0, 1.0), (5.0, 0.5)]), ..Costs::remote() },
    ];
    for costs in bad {
        assert!(costs.check().is_err(), "{costs:?}");
    }
}
