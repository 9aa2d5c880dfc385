//! Which thread of a caller with one lock for all, as the GIL of Python, has it, as far as is known.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The turn of a thread to run the caller's code, which has a lock: the GIL of Python. Who comes back
/// from work while another thread has it sleeps, and is woken: that takes longer than what is done in
/// Python for a small cut, after which the other gives the lock away. Threads that cut
/// windows of 100 x 100 slept at every fifth to ninth window, and sleep at every fiftieth with this.
///
/// It is a guess, and no lock: a thread may keep the GIL for long, or have given it to others.
#[derive(Debug, Default)]
pub struct Turn {
    /// Nanoseconds from the start to when the last thread took it; 0 if that left.
    since: AtomicU64,
}

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

impl Turn {
    /// That of no thread.
    #[must_use]
    pub const fn new() -> Turn {
        Turn { since: AtomicU64::new(0) }
    }

    /// Give it away, once the lock was given away.
    pub fn leave(&self) {
        self.since.store(0, Ordering::Release);
    }

    /// Take it, as soon as the thread that has it leaves, or has had it for so long that it may as
    /// well have left. The thread stays awake meanwhile; others that are ready run.
    pub fn take(&self, longest: Duration) {
        loop {
            let since = self.since.load(Ordering::Acquire);
            let now = START.elapsed().as_nanos() as u64 + 1;
            let is_free = since == 0 || u128::from(now.saturating_sub(since)) >= longest.as_nanos();
            let order = (Ordering::AcqRel, Ordering::Relaxed);
            if is_free && self.since.compare_exchange(since, now, order.0, order.1).is_ok() {
                return;
            }
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn a_thread_has_its_turn_once_the_other_left() {
        static TURN: Turn = Turn::new();
        static LEFT: AtomicBool = AtomicBool::new(false);
        TURN.take(LONG);
        let other = std::thread::spawn(|| {
            TURN.take(LONG);
            LEFT.load(Ordering::SeqCst)
        });
        std::thread::sleep(Duration::from_millis(5));
        LEFT.store(true, Ordering::SeqCst);
        TURN.leave();
        assert!(other.join().unwrap());
    }

    #[test]
    fn a_thread_that_never_leaves_delays_others_for_a_moment_only() {
        let turn = Turn::new();
        for _ in 0..3 {
            turn.take(Duration::from_micros(100));
        }
        turn.take(Duration::ZERO);
    }
}
