//! A TCP window: how much of what was sent may be unacknowledged.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::link::sleep_until;

/// What a connection sent and has no acknowledgement of yet: that comes a round trip later.
pub(crate) struct Window(Mutex<Flight>);

#[derive(Default)]
struct Flight {
    /// When each is acknowledged, and its bytes.
    pieces: VecDeque<(Instant, usize)>,
    bytes: usize,
}

impl Flight {
    /// Forgets what is acknowledged; the time at which the next is, if there is any.
    fn next(&mut self, now: Instant) -> Option<Instant> {
        while let Some(&(due, bytes)) = self.pieces.front() {
            if due > now {
                return Some(due);
            }
            self.pieces.pop_front();
            self.bytes -= bytes;
        }
        None
    }
}

impl Window {
    pub(crate) fn new() -> Self {
        Self(Mutex::default())
    }

    /// How many bytes to send at once: an eighth of the window, as acknowledgements come for some
    /// of it at a time; 0: no window.
    pub(crate) fn turn(window_bytes: u64) -> usize {
        if window_bytes == 0 { usize::MAX } else { (window_bytes as usize / 8).clamp(256, 65536) }
    }

    /// Waits until so many bytes fit into the window beside what is under way.
    pub(crate) fn wait_for_room(&self, bytes: usize, window_bytes: u64) {
        if window_bytes == 0 {
            return;
        }
        loop {
            let due = {
                let mut flight = self.0.lock().unwrap();
                let due = flight.next(Instant::now());
                if flight.bytes + bytes <= window_bytes as usize {
                    return;
                }
                due
            };
            // Without anything under way it is sent, however small the window.
            let Some(due) = due else { return };
            sleep_until(due);
        }
    }

    /// Counts bytes as sent now.
    pub(crate) fn count(&self, bytes: usize, rtt: Duration) {
        let mut flight = self.0.lock().unwrap();
        flight.pieces.push_back((Instant::now() + rtt, bytes));
        flight.bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_sent_in_each_round_trip_and_no_more() {
        const WINDOW: u64 = 8_000;
        let rtt = Duration::from_millis(20);
        let (window, start) = (Window::new(), Instant::now());
        for _ in 0..50 {
            window.wait_for_room(1_000, WINDOW);
            window.count(1_000, rtt);
        }
        // Six windows and a quarter: the first without waiting.
        assert!(start.elapsed() >= 6 * rtt);
    }

    #[test]
    fn without_a_window_nothing_waits() {
        let (window, start) = (Window::new(), Instant::now());
        for _ in 0..1000 {
            window.wait_for_room(1 << 20, 0);
        }
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}
