//! The order of long answers on the line of a server.
//!
//! Long ranges that are asked for at the same time share the line evenly, so they end at the same
//! time, and the line is idle until the answers to the next requests begin. So a long request waits
//! until little is left of those before it: what comes until its own answer begins. Then one
//! answer follows the other, and most of them end earlier.
//!
//! On a short line that would be a few kilobytes: less than comes while a busy machine lets this process
//! wait for a processor. There requests are sent at once, as an idle round trip costs little.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use swathe_plan::{Costs, Factors};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// A request for at least this many bytes waits for its turn.
const LONG_BYTES: u64 = 256 << 10;
/// What may be left of those before it, as a multiple of what comes until its answer begins.
const AHEAD: f64 = 1.5;
/// Where less than this comes until an answer begins, no request waits.
const LEAST_AHEAD_BYTES: u64 = 128 << 10;
/// A request waits this much longer than expected at most: a line that is slower than its profile is
/// shared, as more streams may help.
const PATIENCE: f64 = 1.5;
/// and not longer than this.
const LONGEST_S: f64 = 60.0;

/// Long requests of this process to one server.
#[derive(Default)]
pub(super) struct LineTurns {
    line: Mutex<Line>,
    change: Notify,
}

#[derive(Default)]
struct Line {
    /// The process whose requests these are: a fork takes none along.
    process: u32,
    /// Those that were sent and have not ended,
    requests: u32,
    /// and what is still to come of them.
    bytes: u64,
    /// Numbers of those that wait, in the order in which they came.
    waiting: VecDeque<u64>,
    next_number: u64,
    /// Bytes at which the first of them is sent.
    goal: Option<u64>,
}

/// A request that had its turn; dropped, nothing of it is expected any more.
pub(super) struct LineTurn<'a> {
    turns: &'a LineTurns,
    rest: AtomicU64,
}

/// The place of one that waits.
struct Ticket<'a> {
    turns: &'a LineTurns,
    number: u64,
}

impl LineTurns {
    fn line(&self) -> MutexGuard<'_, Line> {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        if line.process != process {
            *line = Line { process, ..Line::default() };
        }
        line
    }

    fn ticket(&self) -> Ticket<'_> {
        let mut line = self.line();
        let number = line.next_number;
        line.next_number += 1;
        line.waiting.push_back(number);
        Ticket { turns: self, number }
    }

    /// Wait until a request for some bytes may be sent; `None` if it, or the line, is short. `factors`: how
    /// the link differs from these costs now.
    pub(super) async fn wait(
        &self,
        costs: &Costs,
        factors: Factors,
        bytes: u64,
    ) -> Option<LineTurn<'_>> {
        let latency_s = costs.latency_s() * factors.latency;
        let bytes_per_s = costs.total_bytes_per_s / factors.line;
        let goal = (AHEAD * latency_s * bytes_per_s) as u64;
        if bytes < LONG_BYTES || goal < LEAST_AHEAD_BYTES {
            return None;
        }
        let ticket = self.ticket();
        let mut until = None;
        loop {
            let change = self.change.notified();
            {
                let mut line = self.line();
                if line.waiting.front().is_none_or(|first| *first == ticket.number) {
                    if line.requests < costs.filling_streams() || line.bytes <= goal {
                        break;
                    }
                    line.goal = Some(goal);
                    let expected_s = latency_s + (line.bytes - goal) as f64 / bytes_per_s;
                    let patience = Duration::from_secs_f64((PATIENCE * expected_s).min(LONGEST_S));
                    until.get_or_insert_with(|| Instant::now() + patience);
                }
            }
            match until {
                // The one before it has a limit.
                None => change.await,
                Some(until) if timeout_at(until, change).await.is_err() => break,
                Some(_) => {}
            }
        }
        let mut line = self.line();
        (line.requests, line.bytes, line.goal) = (line.requests + 1, line.bytes + bytes, None);
        drop(line);
        Some(LineTurn { turns: self, rest: AtomicU64::new(bytes) })
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.turns.line().waiting.retain(|number| *number != self.number);
        self.turns.change.notify_waiters();
    }
}

impl LineTurn<'_> {
    /// Some bytes came.
    pub(super) fn take(&self, bytes: u64) {
        let before = self.rest.load(Ordering::Relaxed);
        let bytes = bytes.min(before);
        self.rest.store(before - bytes, Ordering::Relaxed);
        let mut line = self.turns.line();
        line.bytes = line.bytes.saturating_sub(bytes);
        if line.goal.is_some_and(|goal| line.bytes <= goal) {
            line.goal = None;
            self.turns.change.notify_waiters();
        }
    }
}

impl Drop for LineTurn<'_> {
    fn drop(&mut self) {
        let mut line = self.turns.line();
        line.requests = line.requests.saturating_sub(1);
        line.bytes = line.bytes.saturating_sub(self.rest.load(Ordering::Relaxed));
        drop(line);
        self.turns.change.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use futures_util::future::poll_immediate;
    use swathe_plan::Curve;

    /// A line of 10 MB/s that one stream fills, and an answer begins after 40 ms.
    fn costs() -> Costs {
        let request = Curve::affine(0.040, 10e6);
        Costs { request, total_bytes_per_s: 10e6, streams: 16, ..Costs::remote() }
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(work)
    }

    #[test]
    fn a_long_request_is_sent_when_little_is_left_of_those_before_it() {
        run(async {
            let (turns, costs, factors) = (LineTurns::default(), costs(), Factors::default());
            let wait = || Box::pin(turns.wait(&costs, factors, 4 << 20));
            let first = wait().await.expect("long");
            let (mut second, mut third) = (wait(), wait());
            assert!(poll_immediate(&mut second).await.is_none());
            assert!(poll_immediate(&mut third).await.is_none());
            assert!(turns.wait(&costs, factors, 1000).now_or_never().expect("sent").is_none());
            first.take((4 << 20) - 600_001);
            assert!(poll_immediate(&mut second).await.is_none(), "what comes in 60 ms is left");
            first.take(1);
            let second = poll_immediate(&mut second).await.flatten().expect("its turn");
            assert!(poll_immediate(&mut third).await.is_none());
            // One that is given up leaves the line to the next.
            drop((first, second));
            assert!(poll_immediate(&mut third).await.flatten().is_some());
            let line = turns.line();
            assert_eq!((line.requests, line.bytes, line.waiting.len()), (0, 0, 0));
        });
    }

    #[test]
    fn on_a_short_line_no_request_waits() {
        let near = Costs { request: Curve::affine(0.001, 10e6), ..costs() };
        let turns = LineTurns::default();
        for _ in 0..20 {
            let turn = turns.wait(&near, Factors::default(), 4 << 20).now_or_never();
            assert!(turn.expect("sent").is_none());
        }
    }

    #[test]
    fn a_line_that_is_slower_than_its_profile_is_shared() {
        run(async {
            let costs = Costs { request: Curve::affine(0.001, 1e9), ..costs() };
            let costs = Costs { total_bytes_per_s: 1e9, ..costs };
            let turns = LineTurns::default();
            let _first = turns.wait(&costs, Factors::default(), 4 << 20).await.expect("long");
            // Nothing comes of the first.
            assert!(turns.wait(&costs, Factors::default(), 4 << 20).await.is_some());
        });
    }
}
