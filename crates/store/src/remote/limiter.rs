//! How many requests a server is sent at the same time: fewer when it says it is overloaded, one
//! more for every round that goes well (additive increase, multiplicative decrease).

use super::line_turns::LineTurns;
use super::link_meter::LinkMeter;
use super::stall_timeout::StallHistory;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use swathe_plan::{Connections, Ledger, Others, ReaderGroup};
use swathe_store_api::Retry;
use tokio::sync::Notify;

/// Requests in flight to one server, of all readers.
const MOST: f64 = 256.0;
/// The factor for the limit when a server is overloaded.
const DECREASE: f64 = 0.7;
/// Answers to requests sent before the last decrease do not decrease it again.
const SETTLE: Duration = Duration::from_millis(200);
/// Servers and clients keep an idle connection for at least this time.
const KEPT_OPEN: Duration = Duration::from_secs(30);

/// Lets requests to one server pass.
pub(super) struct Limiter {
    state: Mutex<State>,
    room: Notify,
    /// Requests in flight, and their readers.
    pub(super) ledger: Arc<Ledger>,
    /// Longest waits for its answers, so far.
    pub(super) silence: StallHistory,
    /// How its link differs from its profile now.
    pub(super) link: LinkMeter,
    /// The order of long answers on it.
    pub(super) line: LineTurns,
    /// Whether the server sends the date of an object only with PROPFIND.
    pub(super) is_dating: AtomicBool,
    /// Whether requests for many ranges were not answered as the profile says.
    pub(super) refuses_vectors: AtomicBool,
    /// Whether requests on one connection of HTTP/2 were not.
    pub(super) refuses_http2: AtomicBool,
    /// Whether its last answer to an opening said that it was verified.
    pub(super) is_verifying: AtomicBool,
    /// Whether a verified answer had no checksum.
    pub(super) lacks_digests: AtomicBool,
    /// Whether the last connection could not be opened.
    pub(super) is_unreachable: AtomicBool,
    /// What it said of COPY, if it takes none.
    pub(super) copy_refusal: Mutex<Option<String>>,
}

struct State {
    limit: f64,
    in_flight: u32,
    /// Requests among them that share a connection.
    multiplexed_count: u32,
    /// When one of those was sent last.
    multiplexed_at: Option<Instant>,
    decrease_at: Option<Instant>,
    /// Most of the others in flight, and when that was.
    peak: (u32, Instant),
}

/// A request that is on its way.
pub(super) struct Permit<'a> {
    limiter: &'a Limiter,
    in_flight: u32,
    connects: bool,
    is_multiplexed: bool,
}

/// The limiter of a store, by its key: one per process.
pub(super) fn of(store: &str) -> Arc<Limiter> {
    static LIMITERS: Mutex<Option<HashMap<String, Arc<Limiter>>>> = Mutex::new(None);
    let mut limiters = LIMITERS.lock().unwrap_or_else(PoisonError::into_inner);
    limiters.get_or_insert_default().entry(store.to_string()).or_default().clone()
}

impl Default for Limiter {
    fn default() -> Limiter {
        let peak = (0, Instant::now());
        let (multiplexed_at, decrease_at) = Default::default();
        let state = State {
            limit: MOST,
            in_flight: 0,
            multiplexed_count: 0,
            multiplexed_at,
            decrease_at,
            peak,
        };
        let (silence, room, ledger, link, line) = Default::default();
        let (is_verifying, lacks_digests) = Default::default();
        let (is_dating, refuses_vectors, refuses_http2, is_unreachable) = Default::default();
        let state = Mutex::new(state);
        Limiter {
            state,
            room,
            ledger,
            silence,
            link,
            line,
            is_dating,
            refuses_vectors,
            refuses_http2,
            is_verifying,
            lacks_digests,
            is_unreachable,
            copy_refusal: Mutex::default(),
        }
    }
}

impl Limiter {
    /// Whether the server verifies what it sends, and tells a checksum of that.
    pub(super) fn is_proving(&self) -> bool {
        self.is_verifying.load(Ordering::Relaxed) && !self.lacks_digests.load(Ordering::Relaxed)
    }

    /// Wait until another request may be sent. `is_multiplexed`: on the connection that requests share.
    pub(super) async fn permit(&self, is_multiplexed: bool) -> Permit<'_> {
        loop {
            let notification = self.room.notified();
            if let Some(permit) = self.try_permit(is_multiplexed) {
                return permit;
            }
            notification.await;
        }
    }

    fn try_permit(&self, is_multiplexed: bool) -> Option<Permit<'_>> {
        let mut state = self.state();
        if f64::from(state.in_flight) >= state.limit.floor() {
            return None;
        }
        state.in_flight += 1;
        let connects = if is_multiplexed {
            state.multiplexed_count += 1;
            let last = state.multiplexed_at.replace(Instant::now());
            last.is_none_or(|last| last.elapsed() > KEPT_OPEN)
        } else {
            let singles = state.in_flight - state.multiplexed_count;
            let (most, at) = state.peak;
            let is_closed = at.elapsed() > KEPT_OPEN;
            if singles >= most || is_closed {
                state.peak = (singles, Instant::now());
            }
            singles > most || is_closed
        };
        Some(Permit { limiter: self, in_flight: state.in_flight, connects, is_multiplexed })
    }

    /// Connections that are open: as many as were in use at the same time, not long ago.
    pub(super) fn connections(&self) -> Connections {
        let state = self.state();
        let (most, at) = state.peak;
        let streams = if at.elapsed() > KEPT_OPEN { 0 } else { most };
        let is_multiplexed = state.multiplexed_at.is_some_and(|at| at.elapsed() <= KEPT_OPEN)
            && !self.refuses_http2.load(Ordering::Relaxed);
        Connections { streams, multiplexed: is_multiplexed }
    }

    /// The requests in flight of others than this group.
    pub(super) fn others(&self, group: ReaderGroup) -> Others {
        let in_flight = self.ledger.others(group);
        Others { in_flight, most_requests: self.state().limit as u32 }
    }

    /// Report how a request ended, also one that was sent without a permit; `None`: well.
    pub(super) fn tell(&self, failure: Option<&Retry>) {
        let mut state = self.state();
        match failure {
            None => state.limit = (state.limit + 1.0 / state.limit).min(MOST),
            Some(Retry::Overloaded { .. }) => {
                let now = Instant::now();
                if state.decrease_at.is_none_or(|last| now - last > SETTLE) {
                    // Only what was really in flight has been too much.
                    let in_flight = state.limit.min(f64::from(state.in_flight));
                    state.limit = (in_flight * DECREASE).max(1.0);
                    state.decrease_at = Some(now);
                }
            }
            Some(_) => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit<'_> {
    /// Requests in flight when this one was sent, with itself.
    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Whether a connection is opened for this one, as far as is known.
    pub(super) fn connects(&self) -> bool {
        self.connects
    }

    /// Report how the request ended; `None`: well.
    pub(super) fn tell(self, failure: Option<&Retry>) {
        self.limiter.tell(failure);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.limiter.state();
        state.in_flight -= 1;
        state.multiplexed_count -= u32::from(self.is_multiplexed);
        drop(state);
        self.limiter.room.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overload_lowers_the_limit_and_success_raises_it() {
        let limiter = Limiter::default();
        let mut permits: Vec<Permit> = (0..10).filter_map(|_| limiter.try_permit(false)).collect();
        assert_eq!(permits.len(), 10);
        assert_eq!(permits.last().map(Permit::in_flight), Some(10));
        for _ in 0..3 {
            // Of the same burst: counts once.
            permits.pop().unwrap().tell(Some(&Retry::Overloaded { after: None }));
        }
        assert_eq!(limiter.state().limit, 7.0);
        assert!(limiter.try_permit(false).is_none(), "seven are in flight");
        drop(permits);
        for _ in 0..100 {
            limiter.try_permit(false).unwrap().tell(None);
        }
        assert!(limiter.state().limit > 14.0, "about the root of twice the successes");
        limiter.try_permit(false).unwrap().tell(Some(&Retry::Passing));
        assert_eq!(limiter.state().in_flight, 0);
    }
}
