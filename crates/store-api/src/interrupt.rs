//! A request to stop, which also ends a wait for a server.

use std::cell::RefCell;
use tokio_util::sync::CancellationToken;

thread_local! {
    static CURRENT: RefCell<Interrupt> = RefCell::default();
}

/// A request to stop some work. A thread that enters it waits for no server once it is set.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(CancellationToken);

impl Interrupt {
    /// Ask all work that holds this to stop.
    pub fn set(&self) {
        self.0.cancel();
    }

    /// Whether the work is to stop.
    pub fn is_set(&self) -> bool {
        self.0.is_cancelled()
    }

    /// One that is set with this one, or alone.
    #[must_use]
    pub fn child(&self) -> Interrupt {
        Interrupt(self.0.child_token())
    }

    /// Make it that of this thread, until another is entered.
    pub fn enter(&self) {
        CURRENT.with(|current| current.replace(self.clone()));
    }

    /// The interrupt of this thread; one that nobody sets, if none was entered.
    pub fn current() -> Interrupt {
        CURRENT.with(|current| current.borrow().clone())
    }

    /// The result of some work, or `None` if this is set before it ends: then it is dropped.
    pub async fn unless_set<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.0.run_until_cancelled(work).await
    }
}
