//! The times of single requests, as evidence of how the link of their store differs from its
//! profile now.

use super::line_turns::LineTurn;
use crate::timing::add_received_bytes;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use swathe_plan::{Correction, Costs, Factors, Transfer, Wait};

/// A long transfer is reported in parts that take at least this time.
const PART: Duration = Duration::from_millis(500);

/// The bytes and answers of all requests of this process to one store, and what they show of its
/// link.
pub(super) struct LinkMeter {
    began: Instant,
    bytes: AtomicU64,
    answers: AtomicU64,
    correction: Mutex<Correction>,
}

impl Default for LinkMeter {
    fn default() -> LinkMeter {
        let (bytes, answers, correction) = Default::default();
        LinkMeter { began: Instant::now(), bytes, answers, correction }
    }
}

impl LinkMeter {
    /// How the link differs from its profile, which has these costs.
    pub(super) fn factors(&self, costs: &Costs) -> Factors {
        self.correction().factors(costs, self.began.elapsed().as_secs_f64())
    }

    fn correction(&self) -> MutexGuard<'_, Correction> {
        self.correction.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The kind of a request: all but its times.
#[derive(Clone, Copy, Default)]
pub(super) struct RequestKind {
    /// Its ranges.
    pub(super) ranges: u64,
    /// Bytes of the answer.
    pub(super) bytes: u64,
    /// Whether a connection is opened for it, as far as is known.
    pub(super) connects: bool,
    /// Whether it shares a connection of HTTP/2.
    pub(super) is_multiplexed: bool,
}

/// The clock of one request: it waits for an answer, then the answer is transferred. What fails is
/// no evidence.
pub(super) struct RequestClock<'a> {
    meter: &'a LinkMeter,
    costs: &'a Costs,
    kind: RequestKind,
    /// The part of the request that goes on, and what had happened when it began.
    since: Mark,
    is_answered: bool,
    /// Bytes of this part, and how long they were awaited.
    bytes: u64,
    wait: Duration,
    /// The turn of a long request.
    turn: Option<&'a LineTurn<'a>>,
}

/// A moment: what had come until then, and how long the threads of the network had been ready to
/// run, but no core free.
struct Mark {
    at: Instant,
    bytes: u64,
    answers: u64,
    core_wait: Duration,
}

impl Mark {
    fn now(meter: &LinkMeter) -> Mark {
        Mark {
            at: Instant::now(),
            bytes: meter.bytes.load(Ordering::Relaxed),
            answers: meter.answers.load(Ordering::Relaxed),
            core_wait: swathe_net::core_wait(),
        }
    }
}

impl<'a> RequestClock<'a> {
    /// Start when the request is sent.
    pub(super) fn start(
        meter: &'a LinkMeter,
        costs: &'a Costs,
        kind: RequestKind,
    ) -> RequestClock<'a> {
        let (bytes, wait) = Default::default();
        RequestClock {
            meter,
            costs,
            kind,
            since: Mark::now(meter),
            is_answered: false,
            bytes,
            wait,
            turn: None,
        }
    }

    /// The same of a request that had its turn.
    pub(super) fn in_turn(self, turn: Option<&'a LineTurn<'a>>) -> RequestClock<'a> {
        RequestClock { turn, ..self }
    }

    /// Report that the answer begins, and is of use.
    pub(super) fn start_answer(&mut self) {
        let now = Mark::now(self.meter);
        let wait = Wait {
            seconds: (now.at - self.since.at).as_secs_f64(),
            own_s: now.core_wait.saturating_sub(self.since.core_wait).as_secs_f64(),
            bytes: now.bytes - self.since.bytes,
            answers: now.answers - self.since.answers,
            ranges: self.kind.ranges,
            connects: self.kind.connects,
            is_multiplexed: self.kind.is_multiplexed,
        };
        let at_s = (now.at - self.meter.began).as_secs_f64();
        self.meter.correction().add_wait(self.costs, at_s, &wait);
        self.since = now;
    }

    /// Report that some bytes of it came, after a wait.
    pub(super) fn add_bytes(&mut self, bytes: usize, wait: Duration) {
        self.meter.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        add_received_bytes(bytes);
        if let Some(turn) = self.turn {
            turn.take(bytes as u64);
        }
        if !self.is_answered {
            // They came with the head of the answer.
            self.is_answered = true;
            self.since = Mark::now(self.meter);
            return;
        }
        self.bytes += bytes as u64;
        self.wait += wait;
        if self.since.at.elapsed() >= PART {
            self.report();
        }
    }

    /// Report that all of it came.
    pub(super) fn finish(mut self) {
        self.meter.answers.fetch_add(1, Ordering::Relaxed);
        if self.bytes > 0 {
            self.report();
        }
    }

    fn report(&mut self) {
        let now = Mark::now(self.meter);
        let elapsed = now.at - self.since.at;
        let own =
            elapsed.saturating_sub(self.wait) + now.core_wait.saturating_sub(self.since.core_wait);
        let transfer = Transfer {
            seconds: elapsed.as_secs_f64(),
            own_s: own.as_secs_f64(),
            bytes: self.bytes,
            store_bytes: now.bytes - self.since.bytes,
            answer_bytes: self.kind.bytes,
            is_multiplexed: self.kind.is_multiplexed,
        };
        let at_s = (now.at - self.meter.began).as_secs_f64();
        self.meter.correction().add_transfer(self.costs, at_s, &transfer);
        (self.since, self.bytes, self.wait) = (now, 0, Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    const KIND: RequestKind =
        RequestKind { ranges: 1, bytes: 300_000, connects: false, is_multiplexed: false };

    /// Requests whose answers come in three pieces, with a pause before each.
    fn factors_of(requests: u32, pause: Duration, is_awaited: bool) -> Factors {
        let costs = Costs::remote();
        let (meter, wait) = (LinkMeter::default(), if is_awaited { pause } else { Duration::ZERO });
        for _ in 0..requests {
            let mut clock = RequestClock::start(&meter, &costs, KIND);
            clock.start_answer();
            for _ in 0..3 {
                sleep(pause);
                clock.add_bytes(100_000, wait);
            }
            clock.finish();
        }
        meter.factors(&costs)
    }

    #[test]
    fn a_transfer_that_is_awaited_longer_is_that_of_a_slower_line() {
        // 200 kB after the first bytes are predicted to take 16 ms.
        let factors = factors_of(4, Duration::from_millis(100), true);
        assert!(factors.line > 8.0, "{factors:?}");
    }

    #[test]
    fn the_time_that_a_process_takes_for_the_bytes_is_not_the_lines() {
        let factors = factors_of(4, Duration::from_millis(100), false);
        assert_eq!(factors.line, 1.0);
    }

    #[test]
    fn an_answer_that_begins_later_is_that_of_a_longer_way() {
        let (meter, costs) = (LinkMeter::default(), Costs::remote());
        for _ in 0..4 {
            let mut clock = RequestClock::start(&meter, &costs, KIND);
            sleep(Duration::from_millis(100));
            clock.start_answer();
            // What is broken off later is no evidence of the line.
            clock.add_bytes(100_000, Duration::ZERO);
            sleep(Duration::from_millis(10));
            clock.add_bytes(100_000, Duration::from_millis(10));
        }
        let factors = meter.factors(&costs);
        assert!(factors.latency > 4.0 && factors.line == 1.0, "{factors:?}");
        assert_eq!(meter.factors(&Costs::local()), Factors::default(), "of other costs");
    }
}
