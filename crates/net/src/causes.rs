//! Why a request failed, in a few words.

use std::error::Error;

/// The first cause of an error.
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// The first cause of an error; unlike the error itself it does not name the URL.
pub fn why(error: &reqwest::Error) -> String {
    match error.source() {
        Some(source) => root_cause(source),
        None if error.is_timeout() => "timed out".into(),
        None => "request failed".into(),
    }
}
