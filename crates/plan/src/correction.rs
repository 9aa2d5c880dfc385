//! By how much a link differs from its profile now, as the requests of this process show it
//! (`docs/design/024-time-left.md`).

use crate::costs::{Costs, Load};
use crate::many_ranges::MultiplexCosts;
use std::collections::VecDeque;

/// Evidence counts half after this time.
const HALF_LIFE_S: f64 = 2.5;
/// Evidence older than this is forgotten.
const FORGOTTEN_S: f64 = 15.0;
/// A time without evidence ages what there is by its length, up to this.
const SEEN_S: f64 = 1.0;
/// Of the rest only this part counts: that a link is not seen is no sign that it is as it was.
const UNSEEN_PART: f64 = 0.1;
/// Evidence weighs as many seconds as have passed since the last of its kind, up to this: of many
/// requests at the same time each shows the same.
const MOST_WEIGHT_S: f64 = 0.5;
/// Sooner after the last it is left out.
const APART_S: f64 = 0.02;
/// Factors are computed this often.
const REFRESH_S: f64 = 0.05;
/// The profile counts as one piece of evidence: one outlier changes nothing.
const PROFILE: f64 = MOST_WEIGHT_S;
/// The profile also counts as this part of all evidence: a few outliers among many change nothing.
const PROFILE_PART: f64 = 0.2;
/// A link is this many times as slow as its profile at most, or as fast.
const MOST: f64 = 16.0;
/// Seconds of a wait that may be this computer's: it sends the request, and takes the answer.
const OWN_S: f64 = 0.5e-3;
/// Predicted seconds of a transfer below which it shows the clock rather than the line.
const LEAST_TRANSFER_S: f64 = 2e-3;
/// The part of the largest difference that is reckoned with if both stream and line may limit a
/// transfer: with it reads as the profile says give factors below 1.08.
const BOTH: f64 = 1.0 / 3.0;
/// If answers share a line evenly, others hold up the beginning of one by this part of their time at
/// least: they fill the buffers on the way.
const LEAST_HELD_UP: f64 = 0.1;
/// The weight of the last transfer in the mean of their parts.
const NEWEST: f64 = 0.1;

/// Times of a link, in multiples of its profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factors {
    /// Factor of the seconds for each byte.
    pub line: f64,
    /// Factor of the seconds until an answer or a connection begins.
    pub latency: f64,
}

impl Default for Factors {
    /// As the profile says.
    fn default() -> Factors {
        Factors { line: 1.0, latency: 1.0 }
    }
}

/// How long a request waited for its answer, and what else happened meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wait {
    /// Seconds until the answer began.
    pub seconds: f64,
    /// Seconds among them in which this process may not have noticed it.
    pub own_s: f64,
    /// Bytes that came from the store to other requests of this process.
    pub bytes: u64,
    /// Answers to others that ended.
    pub answers: u64,
    /// Ranges of the request.
    pub ranges: u64,
    /// Whether a connection was opened for it, as far as is known.
    pub connects: bool,
    /// Whether it shares a connection of HTTP/2.
    pub is_multiplexed: bool,
}

/// How long a part of an answer took, from its first bytes on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transfer {
    /// Seconds until its last byte.
    pub seconds: f64,
    /// Seconds among them in which this process did not wait for bytes, or may not have noticed
    /// them.
    pub own_s: f64,
    /// Bytes of the part.
    pub bytes: u64,
    /// Bytes that came from the store meanwhile, to any request of this process.
    pub store_bytes: u64,
    /// Bytes of the whole answer.
    pub answer_bytes: u64,
    /// Whether it shares a connection of HTTP/2.
    pub is_multiplexed: bool,
}

/// The factors of one store, from the requests of this process. Times are seconds since any
/// moment.
#[derive(Clone, Debug)]
pub struct Correction {
    /// The profile that the evidence is compared with.
    profile: Option<Costs>,
    waits: Series<WaitEvidence>,
    /// The interval of the factor of the line, each.
    transfers: Series<(f64, f64)>,
    /// Mean part of a transfer in the bytes that came meanwhile: 1 if answers come one after another.
    part: f64,
    /// The last factors, and when they were computed.
    factors: Option<(Factors, f64)>,
}

/// A wait lasted `seconds`. For the latency remain at least `beside_s`, without what the line took
/// for others: `line_s` by the profile, which says `latency_s`.
#[derive(Clone, Copy, Debug)]
struct WaitEvidence {
    seconds: f64,
    beside_s: f64,
    line_s: f64,
    /// Without a new connection, and with one if that may have been opened.
    latency_s: (f64, f64),
}

impl Default for Correction {
    /// As the profile says.
    fn default() -> Correction {
        let (profile, waits, transfers, factors) = Default::default();
        Correction { profile, waits, transfers, part: 1.0, factors }
    }
}

impl Correction {
    /// Take the wait of a request that was answered at `at_s`, of a store with these costs.
    pub fn add_wait(&mut self, costs: &Costs, at_s: f64, wait: &Wait) {
        self.compare_with(costs);
        if !is_usable(wait.seconds, wait.own_s) {
            return;
        }
        let multiplex = costs.multiplexed.filter(|_| wait.is_multiplexed);
        let latency_s = multiplex.map_or(costs.latency_s(), |of| of.latency_s);
        let connect_s = if wait.connects { costs.connect_s } else { 0.0 };
        // What the server did for others meanwhile, and for the ranges of this request.
        let load = Load {
            requests: wait.answers,
            ranges: wait.answers.saturating_add(wait.ranges.saturating_sub(1)),
            bytes: wait.bytes,
            multiplexed: wait.is_multiplexed,
            ..Load::default()
        };
        let evidence = WaitEvidence {
            seconds: wait.seconds,
            beside_s: wait.seconds - wait.own_s - OWN_S - costs.served_s(load),
            line_s: wait.bytes as f64 / line_bytes_per_s(costs, multiplex),
            latency_s: (latency_s, latency_s + connect_s),
        };
        self.waits.add(at_s, evidence);
    }

    /// Take a part of an answer that came until `at_s`, of a store with these costs.
    pub fn add_transfer(&mut self, costs: &Costs, at_s: f64, transfer: &Transfer) {
        self.compare_with(costs);
        let (least_s, most_s) = transfer_s(costs, transfer);
        if !is_usable(transfer.seconds, transfer.own_s) || transfer.bytes == 0 {
            return;
        }
        let part = transfer.bytes as f64 / transfer.store_bytes.max(transfer.bytes) as f64;
        self.part += NEWEST * (part - self.part);
        if least_s < LEAST_TRANSFER_S {
            return;
        }
        let interval = ((transfer.seconds - transfer.own_s) / most_s, transfer.seconds / least_s);
        self.transfers.add(at_s, interval);
    }

    /// The factors at a time, of a store with these costs.
    pub fn factors(&mut self, costs: &Costs, at_s: f64) -> Factors {
        if self.profile.as_ref() != Some(costs) {
            return Factors::default();
        }
        if let Some((factors, computed_at_s)) = self.factors
            && (0.0..REFRESH_S).contains(&(at_s - computed_at_s))
        {
            return factors;
        }
        let transfers = self.transfers.weights(at_s);
        let line = weighted_median(transfers.map(|(weight, interval)| (weight, *interval)));
        // If answers come one after another, one waits for all that the line carries before it.
        let held_up = self.part.max(LEAST_HELD_UP);
        let latency = weighted_median(self.waits.weights(at_s).map(|(weight, wait)| {
            let (latency_s, with_connect_s) = wait.latency_s;
            let least = (wait.beside_s - held_up * line * wait.line_s) / with_connect_s;
            (weight, (least, wait.seconds / latency_s))
        }));
        let factors = Factors { line, latency };
        self.factors = Some((factors, at_s));
        factors
    }

    /// Forget what was compared with other costs.
    fn compare_with(&mut self, costs: &Costs) {
        if self.profile.as_ref() != Some(costs) {
            *self = Correction { profile: Some(costs.clone()), ..Correction::default() };
        }
    }
}

/// Evidence of one kind, the oldest first: each with its time and weight.
#[derive(Clone, Debug)]
struct Series<T> {
    evidence: VecDeque<(f64, f64, T)>,
    /// When the last came, and the time that had passed for the evidence until then.
    last: Option<(f64, f64)>,
}

impl<T> Default for Series<T> {
    fn default() -> Series<T> {
        Series { evidence: VecDeque::new(), last: None }
    }
}

impl<T> Series<T> {
    /// The time that has passed for the evidence.
    fn passed_s(&self, at_s: f64) -> f64 {
        let Some((last_s, passed_s)) = self.last else { return 0.0 };
        let since_s = (at_s - last_s).max(0.0);
        passed_s + since_s.min(SEEN_S) + UNSEEN_PART * (since_s - SEEN_S).max(0.0)
    }

    /// Add evidence, unless it comes too soon after the last, or before it.
    fn add(&mut self, at_s: f64, evidence: T) {
        let apart_s = self.last.map_or(MOST_WEIGHT_S, |(last_s, _)| at_s - last_s);
        if !at_s.is_finite() || apart_s < APART_S {
            return;
        }
        let passed_s = self.passed_s(at_s);
        self.last = Some((at_s, passed_s));
        self.evidence.push_back((passed_s, apart_s.min(MOST_WEIGHT_S), evidence));
        while self.evidence.front().is_some_and(|(of_s, ..)| passed_s - of_s > FORGOTTEN_S) {
            self.evidence.pop_front();
        }
    }

    /// The evidence that is not forgotten, with the rest of its weight.
    fn weights(&self, at_s: f64) -> impl Iterator<Item = (f64, &T)> {
        let passed_s = self.passed_s(at_s);
        self.evidence.iter().filter_map(move |(of_s, weight_s, evidence)| {
            let age_s = passed_s - of_s;
            (age_s <= FORGOTTEN_S).then(|| (weight_s * (-age_s / HALF_LIFE_S).exp2(), evidence))
        })
    }
}

impl Costs {
    /// The costs of a link that differs from them by `factors`. What the server does for a request
    /// stays.
    #[must_use]
    pub fn with_factors(&self, factors: Factors) -> Costs {
        let Factors { line, latency } = factors;
        Costs {
            connect_s: self.connect_s * latency,
            request: self.request.stretch(latency, line),
            total_bytes_per_s: self.total_bytes_per_s / line,
            served_bytes_per_s: self.served_bytes_per_s.map(|per_s| per_s / line),
            multiplexed: self.multiplexed.map(|of| MultiplexCosts {
                latency_s: of.latency_s * latency,
                bytes_per_s: of.bytes_per_s / line,
                ..of
            }),
            ..self.clone()
        }
    }
}

/// Bytes in a second of all requests, or of those on one connection of HTTP/2.
fn line_bytes_per_s(costs: &Costs, multiplex: Option<MultiplexCosts>) -> f64 {
    let connection = multiplex.map_or(f64::INFINITY, |of| of.bytes_per_s);
    costs.total_bytes_per_s.min(connection)
}

/// Least and most seconds of a part of an answer by the profile: as long as its own stream takes, or
/// all that share the line, and the server. It takes longer than both if at times the stream is the
/// limit, and at times the line: as their sum without its own bytes at most. A part of that is
/// reckoned with.
fn transfer_s(costs: &Costs, transfer: &Transfer) -> (f64, f64) {
    let multiplex = costs.multiplexed.filter(|_| transfer.is_multiplexed);
    let per_s = line_bytes_per_s(costs, multiplex);
    let per_s = per_s.min(costs.served_bytes_per_s.unwrap_or(f64::INFINITY));
    let shared_s = transfer.store_bytes.max(transfer.bytes) as f64 / per_s;
    if multiplex.is_some() {
        return (shared_s, shared_s);
    }
    let answer = transfer.answer_bytes.max(transfer.bytes).max(1) as f64;
    let answer_s = costs.request.seconds(answer) - costs.latency_s();
    let stream_s = answer_s * transfer.bytes as f64 / answer;
    let least_s = shared_s.max(stream_s);
    let both_s = shared_s + stream_s - transfer.bytes as f64 / per_s;
    (least_s, least_s + BOTH * (both_s - least_s).max(0.0))
}

/// Whether these are seconds of a measurement.
fn is_usable(seconds: f64, own_s: f64) -> bool {
    seconds.is_finite() && seconds > 0.0 && own_s.is_finite() && own_s >= 0.0
}

/// The factor that is in most of the intervals, each with its weight: their distances from it, as
/// logarithms, are least together. The profile, 1, counts as one of them and as a part of all. That
/// factor is the weighted median of the ends of the intervals.
fn weighted_median(intervals: impl Iterator<Item = (f64, (f64, f64))>) -> f64 {
    let within = |factor: f64| factor.clamp(1.0 / MOST, MOST).ln();
    let (mut ends, mut all) = (Vec::new(), 0.0);
    for (weight, (low, high)) in intervals {
        ends.push((within(low), weight / 2.0));
        ends.push((within(high), weight / 2.0));
        all += weight;
    }
    let profile = PROFILE + PROFILE_PART * all;
    ends.push((0.0, profile));
    ends.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let mut below = 0.0;
    let median = ends.iter().find(|(_, weight)| {
        below += weight;
        2.0 * below >= all + profile
    });
    median.map_or(1.0, |(factor, _)| factor.exp())
}

#[cfg(test)]
mod tests;
