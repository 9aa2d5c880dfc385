//! One request to a server, and the layers around it: events, a limit, and
//! further tries. Each of these is an attempt itself.

use super::limiter::Limiter;
use super::request_events::RequestEvents;
use super::retry::RetryState;
use super::stall_timeout::TRICKLE_BYTES;
use std::time::Duration;
use swathe_net::connect_events;
use swathe_plan::{InFlight, ReaderGroup};
use swathe_store_api::{Failure, Retry, StoreError};
use swathe_trace::{Ids, Scope};

/// A request that may be sent again.
pub(super) trait Attempt {
    /// The result.
    type Answer;

    /// Send it, and wait for all of the answer.
    async fn run(&mut self, numbers: Try) -> Result<Self::Answer, Failure>;

    /// Bytes that have come, with those of tries that broke off.
    fn bytes(&self) -> usize {
        0
    }

    /// The load of the next try.
    fn next_request(&self) -> InFlight {
        InFlight::request(1, 0)
    }
}

/// The numbers of a try.
#[derive(Clone, Copy, Default)]
pub(super) struct Try {
    /// Failed tries since the last progress.
    pub(super) failures: u32,
    /// Requests in flight to the server when this one was sent, with itself.
    pub(super) in_flight: u32,
    /// Whether a connection is opened for it, as far as is known.
    pub(super) connects: bool,
}

/// An attempt that is recorded as events.
pub(super) struct TracedAttempt<'a, A> {
    pub(super) about: &'a Ids,
    pub(super) scope: &'a Scope,
    pub(super) inner: A,
}

impl<A: Attempt> Attempt for TracedAttempt<'_, A> {
    type Answer = A::Answer;

    async fn run(&mut self, numbers: Try) -> Result<A::Answer, Failure> {
        let bytes_before = self.inner.bytes();
        let asked_bytes = self.inner.next_request().bytes;
        let events = RequestEvents::start(self.about, self.scope, asked_bytes);
        let answer = events.during(self.inner.run(numbers)).await;
        let error = answer.as_ref().err().map(|failure| &failure.error);
        events.end(self.inner.bytes() - bytes_before, error);
        answer
    }

    fn bytes(&self) -> usize {
        self.inner.bytes()
    }

    fn next_request(&self) -> InFlight {
        self.inner.next_request()
    }
}

/// An attempt with events for its connections, and nothing else.
pub(super) struct ConnectTracedAttempt<'a, A> {
    pub(super) about: &'a Ids,
    pub(super) scope: &'a Scope,
    pub(super) inner: A,
}

impl<A: Attempt> Attempt for ConnectTracedAttempt<'_, A> {
    type Answer = A::Answer;

    async fn run(&mut self, numbers: Try) -> Result<A::Answer, Failure> {
        connect_events::trace(self.about, self.scope, 0, self.inner.run(numbers)).await
    }

    fn bytes(&self) -> usize {
        self.inner.bytes()
    }

    fn next_request(&self) -> InFlight {
        self.inner.next_request()
    }
}

/// An attempt that waits until its server may be sent another request.
pub(super) struct LimitedAttempt<'a, A> {
    pub(super) limiter: &'a Limiter,
    /// Whether it shares a connection with others.
    pub(super) is_multiplexed: bool,
    /// Who reads, to the ledger.
    pub(super) group: ReaderGroup,
    pub(super) inner: A,
}

impl<A: Attempt> Attempt for LimitedAttempt<'_, A> {
    type Answer = A::Answer;

    async fn run(&mut self, numbers: Try) -> Result<A::Answer, Failure> {
        // Those who wait to be sent need the line, too.
        let _entry = self.limiter.ledger.enter(self.group, self.inner.next_request());
        let permit = self.limiter.permit(self.is_multiplexed).await;
        let (in_flight, connects) = (permit.in_flight(), permit.connects());
        let answer = self.inner.run(Try { in_flight, connects, ..numbers }).await;
        let retry: Option<&Retry> = answer.as_ref().err().map(|failure| &failure.retry);
        permit.tell(retry);
        answer
    }

    fn bytes(&self) -> usize {
        self.inner.bytes()
    }
}

/// An attempt that is repeated until it succeeds, or another is of no use.
pub(super) struct RetriedAttempt<A> {
    pub(super) inner: A,
    /// How long after the first try another may begin; `None`: as often as any.
    pub(super) limit: Option<Duration>,
}

impl<A: Attempt> Attempt for RetriedAttempt<A> {
    type Answer = A::Answer;

    async fn run(&mut self, _numbers: Try) -> Result<A::Answer, Failure> {
        Ok(self.result().await?)
    }

    fn bytes(&self) -> usize {
        self.inner.bytes()
    }
}

impl<A: Attempt> RetriedAttempt<A> {
    /// The result of the last try.
    pub(super) async fn result(&mut self) -> Result<A::Answer, StoreError> {
        let mut patience = self.limit.map_or_else(RetryState::new, RetryState::within);
        loop {
            let bytes_before = self.inner.bytes();
            let numbers = Try { failures: patience.failures(), ..Try::default() };
            match self.inner.run(numbers).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => {
                    let count = self.inner.bytes().saturating_sub(bytes_before);
                    patience.wait(failure, count >= TRICKLE_BYTES).await?;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails so often, and makes progress each time.
    struct FailingAttempt {
        left: u32,
        bytes: usize,
        calls: Vec<(u32, u32)>,
        retry: Retry,
    }

    impl Attempt for FailingAttempt {
        type Answer = ();

        async fn run(&mut self, Try { failures, in_flight, .. }: Try) -> Result<(), Failure> {
            self.calls.push((failures, in_flight));
            if self.left == 0 {
                return Ok(());
            }
            self.left -= 1;
            self.bytes += TRICKLE_BYTES;
            let error = StoreError::Network { url: "u".into(), why: "down".into() };
            Err(Failure { error, retry: self.retry })
        }

        fn bytes(&self) -> usize {
            self.bytes
        }
    }

    fn run(retry: Retry, left: u32) -> (Result<(), StoreError>, Vec<(u32, u32)>) {
        let (limiter, ids, scope) = (Limiter::default(), Ids::default(), Scope::default());
        let inner = FailingAttempt { left, bytes: 0, calls: Vec::new(), retry };
        let attempt = TracedAttempt { about: &ids, scope: &scope, inner };
        let group = ReaderGroup::default();
        let attempt =
            LimitedAttempt { limiter: &limiter, is_multiplexed: false, group, inner: attempt };
        let mut attempt = RetriedAttempt { inner: attempt, limit: None };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let result = runtime.block_on(attempt.result());
        assert_eq!(limiter.connections().streams, 1, "each try waits for the last");
        (result, attempt.inner.inner.inner.calls)
    }

    #[test]
    fn what_passes_is_tried_again_and_each_try_is_limited() {
        let (result, calls) = run(Retry::Passing, 2);
        assert!(result.is_ok());
        // Enough arrived each time: that is progress.
        assert_eq!(calls, [(0, 1), (1, 1), (1, 1)]);
    }

    #[test]
    fn what_does_not_pass_is_tried_once() {
        let (result, calls) = run(Retry::Never, 2);
        assert!(matches!(result, Err(StoreError::Network { .. })));
        assert_eq!(calls, [(0, 1)]);
    }
}
