//! How long a server may send nothing before a request is given up: learnt from its answers,
//! longer with every try. How little it may send. And whether one that takes no connections is worth
//! another try.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use swathe_store_api::StoreSettings;

/// Number of answers that show what is usual.
const ENOUGH: u32 = 8;
/// The limit is the longest silence so far times this,
const TIMES: f64 = 20.0;
/// and this long in any case: a server may have to look for a file.
const LEAST: Duration = Duration::from_secs(2);
/// The longest silence is forgotten by this much with each answer.
const FORGET: f64 = 0.99;

/// An answer is checked for its rate after each such time.
const TRICKLE_WINDOW: Duration = Duration::from_secs(30);
/// Fewest bytes of an answer in that time; with fewer it is given up. A try that brought fewer has
/// made no progress.
pub(super) const TRICKLE_BYTES: usize = 480;

/// A server that answered so lately and now takes no connections is being started anew.
const RESTART: Duration = Duration::from_secs(30);

/// How long to wait for the next byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StallLimits {
    /// In a first try, while nothing is known of the server.
    pub(crate) first: Duration,
    /// In any try.
    pub(crate) most: Duration,
}

/// How long a server without measured costs may send nothing.
const STALL: StallLimits =
    StallLimits { first: Duration::from_secs(5), most: Duration::from_secs(30) };
/// The limit of a store that was probed, in multiples of the time of a 1 MB request.
const STALL_REQUESTS: f64 = 30.0;
/// Lowest and highest limit of a store that was probed, seconds.
const STALL_BOUNDS_S: (f64, f64) = (3.0, 60.0);

impl StallLimits {
    /// How long the server of a store may send nothing.
    pub(crate) fn of(store: &StoreSettings) -> StallLimits {
        if !store.is_measured {
            return STALL;
        }
        let (least, most) = STALL_BOUNDS_S;
        let expected = store.costs.request.seconds(1e6);
        let first = (STALL_REQUESTS * expected).clamp(least, most);
        StallLimits { first: Duration::from_secs_f64(first), most: Duration::from_secs_f64(most) }
    }
}

/// The bytes of an answer in the present window of time.
pub(super) struct Trickle {
    start: Instant,
    bytes: usize,
}

impl Trickle {
    pub(super) fn start() -> Trickle {
        Trickle { start: Instant::now(), bytes: 0 }
    }

    /// Count bytes that arrived; why the answer is to be given up, if it is.
    pub(super) fn count(&mut self, bytes: usize, now: Instant) -> Option<String> {
        self.bytes += bytes;
        let elapsed = now.saturating_duration_since(self.start);
        if elapsed < TRICKLE_WINDOW {
            return None;
        }
        let bytes = std::mem::take(&mut self.bytes);
        self.start = now;
        let why = || format!("sent only {bytes} bytes in {:.0} s", elapsed.as_secs_f64());
        (bytes < TRICKLE_BYTES).then(why)
    }
}

/// The silences in the answers of one server.
#[derive(Default)]
pub(super) struct StallHistory(Mutex<State>);

#[derive(Default)]
struct State {
    answers: u32,
    longest_s: f64,
    last: Option<Instant>,
}

impl StallHistory {
    /// Report the longest silence of a whole answer.
    pub(super) fn tell(&self, silence: Duration) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.answers = state.answers.saturating_add(1);
        state.longest_s = (state.longest_s * FORGET).max(silence.as_secs_f64());
        state.last = Some(Instant::now());
    }

    /// Whether it answered lately: then a connection that is refused may be taken soon.
    pub(super) fn answered_lately(&self) -> bool {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.last.is_some_and(|last| last.elapsed() < RESTART)
    }

    /// How long to wait after a number of failed tries: twice as long after each, for the
    /// server may have become slow.
    pub(super) fn stall_limit(&self, stall: StallLimits, failures: u32) -> Duration {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let usual = if state.answers < ENOUGH {
            stall.first
        } else {
            let longest = Duration::try_from_secs_f64(TIMES * state.longest_s);
            longest.unwrap_or(stall.first).max(LEAST).min(stall.first)
        };
        usual.saturating_mul(1 << failures.min(16)).min(stall.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_trickles_is_given_up() {
        let mut trickle = Trickle::start();
        let after = |seconds| trickle.start + Duration::from_secs(seconds);
        let times = [10, 29, 31, 40, 62].map(after);
        let found = [100, 100, 300, 100, 100].into_iter().zip(times);
        let found: Vec<_> = found.map(|(bytes, now)| trickle.count(bytes, now)).collect();
        assert_eq!(found[..4], [None, None, None, None]);
        assert_eq!(found[4].as_deref(), Some("sent only 200 bytes in 31 s"));
    }

    #[test]
    fn what_is_usual_is_learnt_and_each_try_waits_longer() {
        let seconds = Duration::from_secs;
        let stall = StallLimits { first: seconds(5), most: seconds(30) };
        let silence = StallHistory::default();
        assert!(!silence.answered_lately());
        let tries = |silence: &StallHistory| [0, 1, 2, 3, 9].map(|n| silence.stall_limit(stall, n));
        assert_eq!(tries(&silence), [5, 10, 20, 30, 30].map(seconds));
        (0..ENOUGH).for_each(|_| silence.tell(Duration::from_millis(3)));
        assert_eq!(tries(&silence), [2, 4, 8, 16, 30].map(seconds));
        silence.tell(Duration::from_millis(150));
        assert_eq!(silence.stall_limit(stall, 0), seconds(3));
        silence.tell(seconds(29));
        assert_eq!(silence.stall_limit(stall, 0), seconds(5));
        (0..1000).for_each(|_| silence.tell(Duration::from_millis(3)));
        assert_eq!(silence.stall_limit(stall, 0), seconds(2));
        assert!(silence.answered_lately());
    }
}
