use super::*;
use crate::costs::Curve;
use crate::planner::{Caps, plan};
use crate::windows::Break;
use proptest::prelude::*;
use std::ops::Range;

/// Seconds of a step of the simulation.
const STEP_S: f64 = 0.5e-3;
/// A long transfer is reported in parts of this time.
const PART_S: f64 = 0.5;

fn costs(latency_s: f64, stream: f64, total: f64) -> Costs {
    Costs {
        connect_s: latency_s,
        request: Curve::affine(latency_s, stream),
        total_bytes_per_s: total,
        ..Costs::remote()
    }
}

fn factors(line: f64, latency: f64) -> Factors {
    Factors { line, latency }
}

/// Readers that each send one request after the other over a link.
#[derive(Clone, Debug)]
struct SimulatedLink {
    profile: Costs,
    now: Factors,
    request_bytes: f64,
    streams: Vec<Stream>,
    at_s: f64,
    store_bytes: f64,
    answers: u64,
    correction: Correction,
}

/// What a reader does: since when, and what the store had sent then.
#[derive(Clone, Copy, Debug)]
struct Stream {
    since_s: f64,
    store_bytes: f64,
    answers: u64,
    /// Bytes of this part; `None` while it waits for an answer.
    part: Option<f64>,
    rest_bytes: f64,
    /// Seconds of the last step in which nothing was left to come.
    idle_s: f64,
}

impl SimulatedLink {
    fn new(profile: Costs, request_bytes: f64, streams: usize) -> SimulatedLink {
        let begin = |number| Stream {
            since_s: number as f64 * 7.0 * STEP_S,
            store_bytes: 0.0,
            answers: 0,
            part: None,
            rest_bytes: request_bytes,
            idle_s: 0.0,
        };
        SimulatedLink {
            profile,
            now: Factors::default(),
            request_bytes,
            streams: (0..streams).map(begin).collect(),
            at_s: 0.0,
            store_bytes: 0.0,
            answers: 0,
            correction: Correction::default(),
        }
    }

    fn run(&mut self, seconds: f64) -> Factors {
        let until_s = self.at_s + seconds;
        while self.at_s < until_s {
            self.step();
        }
        self.correction.factors(&self.profile, self.at_s)
    }

    fn step(&mut self) {
        let truth = self.profile.with_factors(self.now);
        self.at_s += STEP_S;
        let readers = self.streams.iter().filter(|stream| stream.part.is_some()).count();
        let line_share = truth.total_bytes_per_s / readers.max(1) as f64;
        let most = STEP_S * line_share.min(truth.stream_bytes_per_s());
        for stream in &mut self.streams {
            if stream.part.is_some() {
                let bytes = most.min(stream.rest_bytes);
                stream.rest_bytes -= bytes;
                stream.idle_s = STEP_S * (1.0 - bytes / most);
                stream.part = stream.part.map(|part| part + bytes);
                self.store_bytes += bytes;
            }
        }
        for stream in &mut self.streams {
            let seconds = self.at_s - stream.since_s;
            let begins = Stream {
                since_s: self.at_s,
                store_bytes: self.store_bytes,
                answers: self.answers,
                ..*stream
            };
            let bytes = (self.store_bytes - stream.store_bytes) as u64;
            let Some(part) = stream.part else {
                if seconds >= truth.latency_s() {
                    let answers = self.answers - stream.answers;
                    let wait = Wait { seconds, bytes, answers, ranges: 1, ..Wait::default() };
                    self.correction.add_wait(&self.profile, self.at_s, &wait);
                    *stream = Stream { part: Some(0.0), ..begins };
                }
                continue;
            };
            let has_ended = stream.rest_bytes <= 0.0;
            if has_ended || seconds >= PART_S {
                let transfer = Transfer {
                    seconds: seconds - stream.idle_s,
                    bytes: part as u64,
                    store_bytes: bytes,
                    answer_bytes: self.request_bytes as u64,
                    ..Transfer::default()
                };
                self.correction.add_transfer(&self.profile, self.at_s, &transfer);
                *stream = Stream { part: Some(0.0), ..begins };
                if has_ended {
                    self.answers += 1;
                    (stream.part, stream.rest_bytes) = (None, self.request_bytes);
                }
            }
        }
    }
}

fn close(value: f64, expected: f64, part: f64) -> bool {
    (value / expected).ln().abs() <= (1.0 + part).ln()
}

#[test]
fn costs_are_corrected_but_for_the_server() {
    let of = MultiplexCosts {
        requests: 9,
        latency_s: 0.03,
        request_s: 1e-4,
        bytes_per_s: 2e6,
        header_bytes: 80,
    };
    let profile = Costs { multiplexed: Some(of), ..costs(0.02, 1e6, 4e6) };
    let slow = profile.with_factors(factors(2.0, 10.0));
    let expected = Costs {
        connect_s: 0.2,
        multiplexed: Some(MultiplexCosts { latency_s: 0.3, bytes_per_s: 1e6, ..of }),
        ..costs(0.2, 0.5e6, 2e6)
    };
    assert_eq!((slow.connect_s, slow.multiplexed), (0.2, expected.multiplexed));
    assert_eq!(slow.requests_per_s, profile.requests_per_s);
    for bytes in [0.0, 1e3, 1e6, 1e7] {
        assert!(close(slow.request.seconds(bytes), expected.request.seconds(bytes), 1e-9));
    }
    assert_eq!(profile.with_factors(Factors::default()), profile);
    for factor in [1.0 / MOST, MOST] {
        assert_eq!(profile.with_factors(factors(factor, factor)).check(), Ok(()));
    }
}

#[test]
fn the_factor_is_in_most_intervals_and_a_few_outliers_change_nothing() {
    let median = |intervals: &[(f64, f64)]| {
        weighted_median(intervals.iter().map(|&interval| (MOST_WEIGHT_S, interval)))
    };
    assert_eq!(median(&[]), 1.0);
    assert_eq!(median(&[(0.2, 5.0); 40]), 1.0);
    assert_eq!(median(&[(4.0, 4.0)]), 1.0, "one may be an outlier");
    assert!(close(median(&[(4.0, 4.0); 2]), 4.0, 1e-9));
    assert!(close(median(&[(2.0, 9.0); 20]), 2.0, 1e-9), "the nearest to the profile");
    assert!(close(median(&[(0.1, 0.5); 20]), 0.5, 1e-9));
    let mut some = vec![(0.0, 3.0); 20];
    some.extend([(9.0, 9.0); 4]);
    assert_eq!(median(&some), 1.0);
    // Bounded, whatever is said.
    assert!(close(median(&[(1e9, 1e12); 20]), MOST, 1e-9));
    assert!(close(median(&[(-1.0, 0.0); 20]), 1.0 / MOST, 1e-9));
}

#[test]
fn what_is_no_measurement_is_no_evidence() {
    let (profile, mut correction) = (costs(0.02, 1e6, 4e6), Correction::default());
    let seconds = [f64::NAN, f64::INFINITY, -1.0, 0.0];
    for (at, &wrong) in seconds.iter().enumerate() {
        let at_s = at as f64;
        let wait = Wait { seconds: wrong, ..Wait::default() };
        correction.add_wait(&profile, at_s, &wait);
        let transfer = Transfer { seconds: wrong, bytes: 1 << 20, ..Transfer::default() };
        correction.add_transfer(&profile, at_s, &transfer);
    }
    let late = Wait { seconds: 9.0, own_s: f64::NAN, ..Wait::default() };
    correction.add_wait(&profile, 9.0, &late);
    let huge = Wait { seconds: 9.0, bytes: u64::MAX, answers: u64::MAX / 2, ..Wait::default() };
    correction.add_wait(&profile, 10.0, &huge);
    let small = Transfer { seconds: 9.0, bytes: 100, ..Transfer::default() };
    correction.add_transfer(&profile, 10.0, &small);
    assert_eq!(correction.factors(&profile, 11.0), Factors::default());
    // Evidence does not come from the past, nor all at once.
    for _ in 0..100 {
        correction.add_wait(&profile, 12.0, &Wait { seconds: 9.0, ..Wait::default() });
        correction.add_wait(&profile, 3.0, &Wait { seconds: 9.0, ..Wait::default() });
    }
    assert_eq!(correction.factors(&profile, 12.0), Factors::default());
}

#[test]
fn what_this_process_takes_is_not_the_links() {
    let (profile, mut correction) = (costs(0.02, 10e6, 10e6), Correction::default());
    for at in 0..200 {
        let at_s = f64::from(at) * 0.05;
        // Nine tenths of the time no thread took what had come.
        let wait = Wait { seconds: 0.2, own_s: 0.18, ..Wait::default() };
        correction.add_wait(&profile, at_s, &wait);
        let bytes = 1_000_000;
        let transfer = Transfer {
            seconds: 1.0,
            own_s: 0.9,
            bytes,
            store_bytes: bytes,
            answer_bytes: bytes,
            ..Transfer::default()
        };
        correction.add_transfer(&profile, at_s, &transfer);
    }
    assert_eq!(correction.factors(&profile, 10.0), Factors::default());
}

#[test]
fn what_others_of_this_process_receive_is_not_the_links() {
    // The line is full: each request waits for the bytes of nine others.
    let (profile, mut correction) = (costs(0.02, 10e6, 10e6), Correction::default());
    for at in 0..200 {
        let wait = Wait { seconds: 0.1, bytes: 900_000, answers: 9, ..Wait::default() };
        correction.add_wait(&profile, f64::from(at) * 0.05, &wait);
    }
    assert_eq!(correction.factors(&profile, 10.0), Factors::default());
}

#[test]
fn a_connection_may_have_been_opened() {
    let (profile, mut correction) = (costs(0.02, 10e6, 10e6), Correction::default());
    for at in 0..200 {
        let wait = Wait { seconds: 0.04, connects: true, ..Wait::default() };
        correction.add_wait(&profile, f64::from(at) * 0.05, &wait);
    }
    assert_eq!(correction.factors(&profile, 10.0), Factors::default());
}

#[test]
fn evidence_of_other_costs_and_of_long_ago_is_forgotten() {
    let (profile, other) = (costs(0.02, 10e6, 10e6), costs(0.03, 10e6, 10e6));
    let mut correction = Correction::default();
    let slow = Wait { seconds: 0.2, ..Wait::default() };
    for at in 0..100 {
        correction.add_wait(&profile, f64::from(at) * 0.05, &slow);
    }
    assert!(close(correction.factors(&profile, 5.0).latency, 10.0, 0.05));
    assert_eq!(correction.factors(&other, 5.1), Factors::default());
    assert!(correction.factors(&profile, 15.0).latency > 5.0, "nothing new was seen");
    let late_s = 5.0 + FORGOTTEN_S / UNSEEN_PART + 1.0;
    assert_eq!(correction.factors(&profile, late_s), Factors::default());
    correction.add_wait(&other, 5.2, &slow);
    assert_eq!(correction.factors(&profile, 5.3), Factors::default());
}

prop_compose! {
    fn any_link()(
        latency_s in 5e-3f64..0.15, total in 5e6f64..50e6, more in 1.0f64..8.0,
        request_bytes in 5e4f64..1e6, streams in 1usize..9,
    ) -> SimulatedLink {
        SimulatedLink::new(costs(latency_s, total / more, total), request_bytes, streams)
    }
}

fn any_segments() -> impl Strategy<Value = Vec<Range<u64>>> {
    prop::collection::vec((1u64..500_000, 1u64..100_000), 1..60).prop_map(|steps| {
        let mut at = 0;
        let next = |(gap, bytes): (u64, u64)| {
            at += gap + bytes;
            at - bytes..at
        };
        steps.into_iter().map(next).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn exact_reads_change_nothing(mut link in any_link()) {
        for _ in 0..5 {
            let factors = link.run(2.0);
            prop_assert!(close(factors.line, 1.0, 0.08) && close(factors.latency, 1.0, 0.03), "{factors:?}");
        }
    }

    #[test]
    fn a_link_that_changes_is_known_within_ten_seconds(
        mut link in any_link(), line in 0.5f64..4.0, latency in 0.5f64..10.0,
    ) {
        link.run(5.0);
        link.now = factors(line, latency);
        let factors = link.run(10.0);
        // Requests that take long are few, or their transfers too short to be seen.
        let truth = link.profile.with_factors(link.now);
        let alone_s = truth.request.seconds(link.request_bytes);
        let bytes_s = link.request_bytes / link.profile.stream_bytes_per_s();
        let is_seen = bytes_s > 3.0 * LEAST_TRANSFER_S && truth.latency_s() < 1.0;
        // Where the streams can fill the line about once, either may be the limit.
        let load = link.streams.len() as f64 * link.profile.stream_bytes_per_s()
            / link.profile.total_bytes_per_s;
        let part = if (0.5..2.0).contains(&load) { 0.35 } else { 0.2 };
        prop_assert!(!is_seen || close(factors.line, line, part), "{factors:?} {:?}", link.now);
        // While the line is full, nobody knows how long an answer would take else.
        let requests_per_s = link.streams.len() as f64 / alone_s;
        let load = requests_per_s * link.request_bytes / truth.total_bytes_per_s;
        let is_idle = load < 0.15 && is_seen && alone_s < 1.5;
        prop_assert!(!is_idle || close(factors.latency, latency, 0.2), "{factors:?} {:?}", link.now);
        let (least, most) = (latency.min(1.0), latency.max(1.0));
        prop_assert!(factors.latency > 0.8 * least && factors.latency < 1.2 * most, "{factors:?} {:?}", link.now);
    }

    #[test]
    fn plans_by_corrected_costs_are_no_worse(
        mut link in any_link(), line in 0.5f64..4.0, latency in 0.5f64..10.0,
        segments in any_segments(),
    ) {
        link.run(5.0);
        link.now = factors(line, latency);
        let factors = link.run(10.0);
        let truth = link.profile.with_factors(link.now);
        prop_assume!(truth.request.seconds(link.request_bytes) < 1.0);
        let caps = Caps { request_bytes: 4 << 20, in_flight_bytes: 32 << 20 };
        let seconds = |costs: &Costs| {
            plan(&segments, costs, caps, Break::Anywhere, 8).seconds_at(&truth, 8.into())
        };
        let (by_profile, by_factors) = (seconds(&link.profile), seconds(&link.profile.with_factors(factors)));
        prop_assert!(by_factors <= 1.15 * by_profile, "{by_factors} {by_profile} {factors:?}");
    }
}
