use super::*;
use proptest::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()
}

fn ranges(parts: &[Part]) -> Vec<(bool, Range<u64>)> {
    let range = |part: &Part| match part {
        Part::Awaited(range, ..) => (true, range.clone()),
        Part::Requested(range, _) => (false, range.clone()),
    };
    parts.iter().map(range).collect()
}

#[test]
fn a_range_in_flight_is_awaited_in_whole_or_in_part() {
    let flights = Arc::new(RangeFlights::default());
    let first = flights.divide(&(100..200), 0);
    assert_eq!(ranges(&first), [(false, 100..200)]);
    assert_eq!(ranges(&flights.divide(&(100..200), 0)), [(true, 100..200)]);
    assert_eq!(ranges(&flights.divide(&(120..180), 0)), [(true, 120..180)]);
    let ahead = flights.divide(&(50..150), 0);
    assert_eq!(ranges(&ahead), [(false, 50..100), (true, 100..150)]);
    assert_eq!(ranges(&flights.divide(&(150..250), 0)), [(true, 150..200), (false, 200..250)]);
    drop((first, ahead));
    assert!(flights.lock().is_empty(), "flights end with their readers");
}

#[test]
fn a_short_part_between_requested_ones_is_requested_with_them() {
    let flights = Arc::new(RangeFlights::default());
    let _first = flights.divide(&(100..200), 0);
    let long = ranges(&flights.divide(&(0..300), 99));
    assert_eq!(long, [(false, 0..100), (true, 100..200), (false, 200..300)]);
    assert_eq!(ranges(&flights.divide(&(0..300), 100)), [(false, 0..300)]);
}

#[test]
fn those_who_wait_get_what_arrives_and_learn_of_failures() {
    let flights: Arc<Flights<u32, u32>> = Arc::default();
    for landing in [Landing::Arrived(7), Landing::Failed, Landing::Abandoned] {
        let expected = format!("{landing:?}");
        let lead = flights.join(1).expect_err("the first");
        let waiting: Vec<_> = (0..5).map(|_| flights.join(1).expect("a flight")).collect();
        let results = runtime().block_on(async {
            let results = waiting.into_iter().map(|flight| tokio::spawn(flight.receive()));
            let results: Vec<_> = results.collect();
            match landing {
                Landing::Abandoned => drop(lead),
                landing => lead.land(landing),
            }
            futures_util::future::join_all(results).await
        });
        assert!(results.into_iter().all(|result| format!("{:?}", result.unwrap()) == expected));
        assert!(flights.lock().is_empty());
    }
}

#[test]
fn a_forgotten_flight_is_joined_by_nobody_and_leaves_the_next_alone() {
    let flights: Arc<Flights<u32, u32>> = Arc::default();
    let old = flights.join(1).expect_err("the first");
    let waiting = flights.join(1).expect("a flight");
    flights.forget(&1);
    let new = flights.join(1).expect_err("the old one is out of date");
    old.land(Landing::Arrived(1));
    assert!(matches!(runtime().block_on(waiting.receive()), Landing::Arrived(1)));
    assert!(flights.join(1).is_ok(), "the new one is still there");
    drop(new);
    assert!(flights.join(1).is_err());
}

/// Readers join, lead, fail and give up at random: each gets the value, by a request of its own if
/// need be, and nothing is left.
#[test]
fn every_reader_gets_its_value_whatever_others_do() {
    let flights: Arc<Flights<u32, u32>> = Arc::default();
    let (runtime, requests) = (runtime(), Arc::new(AtomicU32::new(0)));
    let read = |number: u32| {
        let (flights, requests) = (flights.clone(), requests.clone());
        async move {
            let key = number % 3;
            loop {
                match flights.join(key) {
                    Err(lead) => {
                        requests.fetch_add(1, Ordering::Relaxed);
                        tokio::time::sleep(std::time::Duration::from_micros(200)).await;
                        match number % 7 {
                            // Its reader gives up; then this reader starts anew.
                            1 => drop(lead),
                            2 => lead.land(Landing::Failed),
                            _ => lead.land(Landing::Arrived(key)),
                        }
                        return key;
                    }
                    Ok(flight) => match flight.receive().await {
                        Landing::Arrived(value) => return value,
                        Landing::Failed => return key,
                        Landing::Abandoned => {}
                    },
                }
            }
        }
    };
    let all: Vec<_> = (0..2000).map(|number| (number, runtime.spawn(read(number)))).collect();
    runtime.block_on(async {
        for (number, reader) in all {
            let value = tokio::time::timeout(std::time::Duration::from_secs(20), reader).await;
            assert_eq!(value.expect("no reader hangs").unwrap(), number % 3);
        }
    });
    assert!(flights.lock().is_empty());
    assert!(requests.load(Ordering::Relaxed) < 2000, "some were shared");
}

#[test]
fn flights_of_an_object_are_those_of_its_version_and_reader() {
    let version = |tag: &str| Version { size: 9, tag: tag.to_string() };
    let one = of_object("flights-test", &version("a"), None);
    assert!(Arc::ptr_eq(&one, &of_object("flights-test", &version("a"), None)));
    assert!(!Arc::ptr_eq(&one, &of_object("flights-test", &version("b"), None)));
    assert!(!Arc::ptr_eq(&one, &of_object("flights-test", &version("a"), Some(1))));
}

proptest! {
    /// Whatever is in flight, the parts of a range are the range.
    #[test]
    fn parts_cover_a_range_in_order(
        spans in prop::collection::vec((0u64..1000, 1u64..300), 0..12),
        start in 0u64..1000, length in 1u64..400, gap_bytes in 0u64..200,
    ) {
        let flights = Arc::new(RangeFlights::default());
        let _others: Vec<_> =
            spans.iter().map(|(at, length)| flights.divide(&(*at..at + length), 0)).collect();
        let parts = flights.divide(&(start..start + length), gap_bytes);
        let mut at = start;
        for part in &parts {
            let range = match part {
                Part::Requested(range, _) => range,
                Part::Awaited(range, from, _) => {
                    prop_assert!(*from <= range.start);
                    range
                }
            };
            prop_assert_eq!(range.start, at);
            prop_assert!(range.start < range.end);
            at = range.end;
        }
        prop_assert_eq!(at, start + length);
    }
}
