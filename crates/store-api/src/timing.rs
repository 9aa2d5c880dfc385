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

/// How one request for many ranges was answered.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorTiming {
    /// Why that is of no use; `None` if all ranges came.
    pub refusal: Option<String>,
    /// Parts of the answer: fewer than ranges, if the server merged some.
    pub parts: u32,
    /// Whether they came in the order of the request.
    pub is_ordered: bool,
    /// Bytes of the answer, with what parts have beside their data.
    pub bytes: u64,
    /// Seconds until the answer began,
    pub first_byte_s: f64,
    /// and until its last byte.
    pub seconds: f64,
}
