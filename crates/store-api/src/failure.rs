//! An attempt that failed, and whether another try may help.

use crate::error::StoreError;
use std::time::Duration;

/// A failed attempt.
#[derive(Debug)]
pub struct Failure {
    /// The error.
    pub error: StoreError,
    /// Whether another attempt may succeed.
    pub retry: Retry,
}

/// Whether another attempt may succeed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Retry {
    /// Another try is of no use.
    Never,
    /// Another try may help: a connection broke, or a server had a fault.
    Passing,
    /// The server has too much to do, and may say when to come back.
    Overloaded {
        /// After this time.
        after: Option<Duration>,
    },
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure { error, retry: Retry::Never }
    }
}

impl Failure {
    /// A failure that may pass.
    pub fn passing(error: StoreError) -> Failure {
        Failure { error, retry: Retry::Passing }
    }
}
