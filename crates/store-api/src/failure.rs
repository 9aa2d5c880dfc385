//! An attempt that failed, and whether another is of use.

use crate::error::StoreError;
use std::time::Duration;

/// A failed attempt.
#[derive(Debug)]
pub struct Failure {
    /// What went wrong.
    pub error: StoreError,
    /// Whether another attempt may succeed.
    pub retry: Retry,
}

/// Whether another attempt may succeed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Retry {
    /// It will not.
    Never,
    /// It may: a connection broke, or a server had a fault.
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
