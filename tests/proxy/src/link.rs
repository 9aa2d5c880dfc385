//! A link of a bandwidth: whoever sends takes a slot of time and waits for its end.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// A sender that comes back within this time never stopped.
const PAUSE: Duration = Duration::from_millis(2);
/// What a sender may catch up after it was woken late.
const LATE: Duration = Duration::from_millis(20);

/// Senders each hold one slot at most, so slots go round between them.
pub(crate) struct Link(Mutex<Slots>);

struct Slots {
    free: Instant,
    last_send: Instant,
}

impl Link {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self(Mutex::new(Slots { free: now, last_send: now }))
    }

    /// How many bytes to send at once: those of so much time.
    pub(crate) fn turn(bytes_per_s: u64, time: Duration) -> usize {
        let bytes = (bytes_per_s as f64 * time.as_secs_f64()) as usize;
        if bytes_per_s == 0 { usize::MAX } else { bytes.clamp(256, 65536) }
    }

    /// Waits until so many bytes are sent, and gives the time sending took; 0: no limit.
    pub(crate) fn send(&self, bytes: usize, bytes_per_s: u64) -> Duration {
        if bytes_per_s == 0 {
            return Duration::ZERO;
        }
        let time = Duration::from_secs_f64(bytes as f64 / bytes_per_s as f64);
        let end = {
            let mut slots = self.0.lock().unwrap();
            let now = Instant::now();
            let went_on = now.saturating_duration_since(slots.last_send) < PAUSE;
            let earliest = if went_on { now.checked_sub(LATE).unwrap_or(now) } else { now };
            slots.free = slots.free.max(earliest) + time;
            slots.free
        };
        sleep_until(end);
        self.0.lock().unwrap().last_send = Instant::now();
        time
    }
}

/// Sleeps, to within some 10 µs.
pub(crate) fn sleep_until(due: Instant) {
    let rest = due.saturating_duration_since(Instant::now());
    if !rest.is_zero() {
        thread::sleep(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_share_a_link_evenly_and_never_exceed_it() {
        const RATE: u64 = 4_000_000;
        let turn = Link::turn(RATE, Duration::from_micros(250));
        let (link, start) = (Link::new(), Instant::now());
        let bytes: Vec<usize> = thread::scope(|scope| {
            let sender = || {
                let mut bytes = 0;
                while start.elapsed() < Duration::from_secs(2) {
                    link.send(turn, RATE);
                    bytes += turn;
                }
                bytes
            };
            let senders: Vec<_> = (0..4).map(|_| scope.spawn(sender)).collect();
            senders.into_iter().map(|sender| sender.join().unwrap()).collect()
        });
        let total: usize = bytes.iter().sum();
        assert!(total as f64 <= RATE as f64 * start.elapsed().as_secs_f64());
        let (least, most) = (bytes.iter().min().unwrap(), bytes.iter().max().unwrap());
        assert!(most < &(2 * least), "{bytes:?}");
    }

    #[test]
    fn idle_time_is_not_saved_up() {
        let link = Link::new();
        thread::sleep(Duration::from_millis(60));
        let start = Instant::now();
        link.send(50_000, 1_000_000);
        assert!(start.elapsed() >= Duration::from_millis(50));
    }
}
