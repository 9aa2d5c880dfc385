//! Why a program is not run.

use std::io;

/// Why a program is not run, or not to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request is invalid; what asks has to change it.
    #[error("{0}")]
    Request(String),
    /// This machine, or this user, cannot confine programs.
    #[error("{0}")]
    Unavailable(String),
    /// All user ids are in use; later one may be free.
    #[error("{0}")]
    Busy(String),
    /// A call of the system failed.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, or the path.
        what: String,
        /// The cause.
        source: io::Error,
    },
}

/// Says what was being done when a call of the system failed.
pub(crate) trait Context<T> {
    /// Return the value, or the error with that text.
    fn context(self, what: impl Into<String>) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn context(self, what: impl Into<String>) -> Result<T, Error> {
        self.map_err(|source| Error::Io { what: what.into(), source: source.into() })
    }
}
