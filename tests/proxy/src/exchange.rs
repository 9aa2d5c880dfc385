//! The request of a connection that waits for its answer: one at a time.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::settings::Fate;

/// A request that was sent on.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) head_only: bool,
    pub(crate) fate: Fate,
}

/// Between the thread that reads requests and the one that reads answers.
pub(crate) struct Exchange {
    state: Mutex<State>,
    change: Condvar,
}

#[derive(Default)]
struct State {
    request: Option<Request>,
    is_client_gone: bool,
    over: bool,
}

impl Exchange {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::default(), change: Condvar::new() }
    }

    /// Waits for the end of the last answer; false when the connection is over.
    pub(crate) fn wait_for_turn(&self) -> bool {
        let busy = |state: &mut State| state.request.is_some() && !state.over;
        !self.change.wait_while(self.state(), busy).unwrap().over
    }

    /// A request is about to be sent on.
    pub(crate) fn begin(&self, request: Request) {
        self.state().request = Some(request);
    }

    /// What the answer that comes now belongs to.
    pub(crate) fn request(&self) -> Option<Request> {
        self.state().request
    }

    /// The answer is complete.
    pub(crate) fn finish(&self) {
        self.state().request = None;
        self.change.notify_all();
    }

    /// The client sends no more.
    pub(crate) fn end_client(&self) {
        self.state().is_client_gone = true;
        self.change.notify_all();
    }

    /// The connection is over.
    pub(crate) fn end(&self) {
        self.state().over = true;
        self.change.notify_all();
    }

    /// Waits for a time, or less when nobody waits any more.
    pub(crate) fn sleep(&self, time: Duration) {
        let waiting = |state: &mut State| !state.over && !state.is_client_gone;
        drop(self.change.wait_timeout_while(self.state(), time, waiting).unwrap());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}
