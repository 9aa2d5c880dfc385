//! Whether and when a failed request is tried again.

use rand::Rng;
use std::time::{Duration, Instant, SystemTime};
use swathe_store_api::{Failure, Retry, StoreError};
use tokio::time::sleep;

/// Tries without progress before the failure is the answer.
const TRIES: u32 = 6;
/// The first pause; each is twice the last, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A server that asks for a longer pause is not waited for.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// How long a server may take to answer a request of a few bytes,
const ANSWER: Duration = Duration::from_secs(30);
/// and how fast it must at least take more.
const SLOWEST_BYTES_PER_S: f64 = 64e3;
/// How fast a server must copy or read what it has itself, while it says nothing.
const SLOWEST_COPY_BYTES_PER_S: f64 = 5e6;

/// How long it may take until this many bytes were sent and an answer has arrived.
pub(super) fn sending(bytes: u64) -> Duration {
    ANSWER + Duration::from_secs_f64(bytes as f64 / SLOWEST_BYTES_PER_S)
}

/// How long it may take until a server has copied or read this many bytes of its own.
pub(super) fn copying(bytes: u64) -> Duration {
    ANSWER + Duration::from_secs_f64(bytes as f64 / SLOWEST_COPY_BYTES_PER_S)
}

/// Counts the tries of one request.
pub(crate) struct RetryState {
    failures: u32,
    /// When no other try begins, unless the server says that it is overloaded.
    until: Option<Instant>,
}

impl RetryState {
    pub(crate) fn new() -> RetryState {
        RetryState { failures: 0, until: None }
    }

    /// Tries that begin within a time.
    pub(super) fn within(limit: Duration) -> RetryState {
        RetryState { failures: 0, until: Some(Instant::now() + limit) }
    }

    /// Failed tries since the last progress.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// Wait before the next try; `progress`: the last one brought more than a trickle.
    ///
    /// # Errors
    /// The failure, if another try is of no use.
    pub(super) async fn wait(
        &mut self,
        failure: Failure,
        progress: bool,
    ) -> Result<(), StoreError> {
        sleep(self.pause(failure, progress)?).await;
        Ok(())
    }

    /// How long to wait before the next try.
    ///
    /// # Errors
    /// As [`RetryState::wait`].
    pub(crate) fn pause(
        &mut self,
        failure: Failure,
        progress: bool,
    ) -> Result<Duration, StoreError> {
        self.failures = if progress { 1 } else { self.failures + 1 };
        let delay = match failure.retry {
            Retry::Never => return Err(failure.error),
            Retry::Passing if self.until.is_some_and(|until| until <= Instant::now()) => {
                return Err(failure.error);
            }
            Retry::Passing => None,
            Retry::Overloaded { after } => after,
        };
        if self.failures >= TRIES || delay.is_some_and(|delay| delay > LONGEST_DELAY) {
            return Err(failure.error);
        }
        let longest = FIRST_PAUSE.saturating_mul(1 << (self.failures - 1)).min(LONGEST_PAUSE);
        // Spread out, so that requests that failed together do not come back together.
        let pause = longest.mul_f64(rand::rng().random_range(0.5..1.0));
        Ok(pause.max(delay.unwrap_or_default()))
    }
}

/// How long a `Retry-After` asks to wait: seconds, or a date (RFC 9110, 10.2.3).
pub(super) fn retry_after(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(text.trim()).ok()?;
    Some(until.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(retry_after("7"), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
        let delay = retry_after(&date).unwrap_or_default();
        assert!((90..=100).contains(&delay.as_secs()), "{delay:?}");
        assert_eq!(retry_after("soon"), None);
    }

    #[test]
    fn no_try_begins_after_the_limit_unless_the_server_is_overloaded() {
        let failure = |retry| {
            let error = StoreError::Network { url: "u".into(), why: "silent".into() };
            Failure { error, retry }
        };
        let mut state = RetryState::within(Duration::from_secs(3600));
        assert!(state.pause(failure(Retry::Passing), false).is_ok());
        let mut state = RetryState::within(Duration::ZERO);
        assert!(state.pause(failure(Retry::Overloaded { after: None }), false).is_ok());
        assert!(state.pause(failure(Retry::Passing), true).is_err());
    }

    #[test]
    fn a_server_cannot_shorten_a_pause() {
        let mut state = RetryState::new();
        let error = || StoreError::Network { url: "u".into(), why: "busy".into() };
        let mut pause = |after| {
            let retry = Retry::Overloaded { after: Some(Duration::from_secs(after)) };
            state.pause(Failure { error: error(), retry }, false).expect("another try")
        };
        for longest_ms in [100, 200, 400] {
            let pause = pause(0);
            assert!(pause >= Duration::from_millis(longest_ms / 2), "{pause:?}");
        }
        assert_eq!(pause(7), Duration::from_secs(7));
    }
}
