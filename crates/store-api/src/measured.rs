//! The results of measuring single requests.

/// When a request of a measurement began, was first answered, and ended: seconds since the
/// measurement began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestTiming {
    /// Bytes received.
    pub bytes: u64,
    /// When it was sent.
    pub start_s: f64,
    /// When its answer began; of a file, when it ended.
    pub first_byte_s: f64,
    /// When its last byte arrived.
    pub end_s: f64,
}
