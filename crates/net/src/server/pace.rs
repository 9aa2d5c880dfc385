//! The least pace of a client: who is slower holds a place that others need.

use std::time::Duration;

/// Bytes that a client must move in each second that it is waited for.
const LEAST_BYTES_PER_S: f64 = 1024.0;
/// The wait for a client that moves nothing. What it moved lets it pause again, up to this time.
const LONGEST: Duration = Duration::from_secs(60);

/// How long a client may still be waited for. Only waits count: a client that is ready never
/// runs out of time.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    left: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { left: LONGEST }
    }
}

impl Pace {
    /// The longest that the next wait may last.
    pub fn limit(&self) -> Duration {
        self.left
    }

    /// Count a wait, and the bytes that were moved after it.
    pub fn add(&mut self, wait: Duration, bytes: usize) {
        let more = Duration::from_secs_f64(bytes as f64 / LEAST_BYTES_PER_S);
        self.left = self.left.saturating_sub(wait).saturating_add(more).min(LONGEST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn who_moves_a_byte_in_a_while_runs_out_of_time() {
        let mut pace = Pace::default();
        for _ in 0..59 {
            assert!(pace.limit() > SECOND);
            pace.add(SECOND, 1);
        }
        pace.add(SECOND, 1);
        pace.add(SECOND, 1);
        assert!(pace.limit() < SECOND);
    }

    #[test]
    fn who_is_fast_enough_never_does() {
        let mut pace = Pace::default();
        for _ in 0..1_000 {
            pace.add(30 * SECOND, 31 << 10);
        }
        assert_eq!(pace.limit(), LONGEST);
        pace.add(LONGEST * 2, 0);
        assert_eq!(pace.limit(), Duration::ZERO);
        pace.add(Duration::ZERO, usize::MAX);
        assert_eq!(pace.limit(), LONGEST);
    }
}
