use super::*;
use crate::costs::Curve;
use crate::planner::{Caps, plan};
use crate::windows::Break;
use proptest::prelude::*;

/// 56 ms, 160 Mb/s, streams of 40 Mb/s, 5,000 requests/s.
fn wan() -> Costs {
    Costs {
        connect_s: 0.0,
        request: Curve::affine(0.056, 5e6),
        total_bytes_per_s: 20e6,
        requests_per_s: 5000.0,
        streams: 16,
        ..Costs::remote()
    }
}

fn others(requests: u64, bytes: u64, readers: u32) -> Others {
    let in_flight = InFlight { requests, ranges: requests, bytes, readers };
    Others { in_flight, most_requests: 256 }
}

#[test]
fn an_entry_counts_until_it_is_dropped() {
    let ledger = Arc::new(Ledger::default());
    let (group, single) = (ReaderGroup::new_group(), ReaderGroup::default());
    let reader = ledger.enter(group, InFlight::READER);
    let request = ledger.enter(group, InFlight::request(3, 1000));
    let other = ledger.enter(single, InFlight::request(1, 10));
    let counts = |group| {
        let InFlight { requests, ranges, bytes, readers } = ledger.others(group);
        (requests, ranges, bytes, readers)
    };
    assert_eq!((counts(group), counts(single)), ((1, 1, 10, 0), (2, 4, 1010, 1)));
    drop(other);
    drop(request);
    assert_eq!((counts(group), counts(single)), ((0, 0, 0, 0), (0, 0, 0, 1)));
    drop(reader);
    assert_eq!(ledger.others(single), InFlight::default());
    assert!(ledger.lock().1.is_empty());
}

#[test]
fn threads_leave_nothing_behind() {
    let ledger = Arc::new(Ledger::default());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let group = ReaderGroup::new_group();
                for bytes in 0..1000 {
                    let _entry = ledger.enter(group, InFlight::request(1, bytes));
                    ledger.others(group);
                }
            });
        }
    });
    assert_eq!(ledger.others(ReaderGroup::default()), InFlight::default());
}

#[test]
fn alone_costs_are_those_of_a_share() {
    for parts in [1, 2, 7, 64] {
        for (_, objective) in Objective::ALL.into_iter().take(2) {
            let sharing = Sharing { parts, objective };
            assert_eq!(wan().share_with(sharing, Others::default()), wan().share(parts));
            let idle = others(0, 0, 0);
            assert_eq!(wan().share_with(sharing, idle), wan().share(parts));
        }
        let latency = Sharing { parts, objective: Objective::Latency };
        assert_eq!(wan().share_with(latency, others(256, 1 << 30, 99)), wan().share(parts));
    }
}

#[test]
fn a_full_line_is_divided_evenly_and_a_light_load_leaves_the_rest() {
    let auto = Sharing::default();
    let full = wan().share_with(auto, others(100, 100 << 20, 9));
    assert!((full.total_bytes_per_s - 2e6).abs() < 1.0, "{full:?}");
    assert_eq!(full.busy.line, 1.0);
    // 100 kB in 56 ms and the time of the line are a twelfth of what it carries.
    let light = wan().share_with(auto, others(1, 100_000, 9));
    let part = light.total_bytes_per_s / wan().total_bytes_per_s;
    assert!((0.8..0.95).contains(&part), "{light:?}");
    assert!((light.busy.line - (1.0 - part)).abs() < 1e-9, "{light:?}");
}

/// A hundred rows of 200 bytes in a frame of 2048 columns of 16 bits.
fn rows() -> Vec<std::ops::Range<u64>> {
    (0..100u64).map(|row| row * 4096..row * 4096 + 200).collect()
}

#[test]
fn plans_read_fewer_gaps_while_others_fill_the_line() {
    let caps = Caps { request_bytes: 4 << 20, in_flight_bytes: 32 << 20 };
    let bytes = |costs: &Costs| plan(&rows(), costs, caps, Break::Anywhere, u32::MAX).load.bytes;
    let alone = bytes(&wan());
    let crowd_bytes = bytes(&wan().share_with(Sharing::default(), others(200, 20 << 20, 50)));
    assert!(crowd_bytes * 10 < alone * 9, "{crowd_bytes} of {alone}");
    let throughput = Sharing { objective: Objective::Throughput, ..Sharing::default() };
    let sparing = bytes(&wan().share_with(throughput, Others::default()));
    assert!(sparing * 10 < alone * 9, "{sparing} of {alone}");
    // With few bytes of others, as alone.
    assert_eq!(bytes(&wan().share_with(Sharing::default(), others(1, 100, 1))), alone);
}

#[test]
fn an_unknown_objective_is_named() {
    assert_eq!("throughput".parse(), Ok(Objective::Throughput));
    let error = "fast".parse::<Objective>().expect_err("it is none");
    assert!(
        error.starts_with("objective: expected") && error.ends_with("found \"fast\""),
        "{error}"
    );
}

proptest! {
    #[test]
    fn others_leave_at_least_an_even_part(
        requests in 0u64..1000, bytes in 0u64..1 << 40, readers in 0u32..1000, parts in 1u32..100,
    ) {
        let costs = wan().share_with(
            Sharing { parts, objective: Objective::Auto },
            others(requests, bytes, readers),
        );
        let most = wan().total_bytes_per_s / f64::from(parts);
        let even = wan().total_bytes_per_s / (f64::from(parts) + f64::from(readers));
        prop_assert!(costs.total_bytes_per_s <= most * 1.000001);
        prop_assert!(costs.total_bytes_per_s >= even * 0.999999);
        prop_assert!(costs.streams >= 1);
        prop_assert_eq!(costs.check(), Ok(()));
    }
}
