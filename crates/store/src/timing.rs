//! What real reads took, to correct the profiles with.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Most timings stored until they are taken; the oldest are dropped.
const CAPACITY: usize = 4096;

/// One request that succeeded at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// Key of the store.
    pub root: String,
    /// Bytes received.
    pub bytes: u64,
    /// Requests in flight to the store when it was sent, with itself.
    pub in_flight: u32,
    /// Seconds until the answer began.
    pub first_byte_s: f64,
    /// Seconds until its last byte.
    pub seconds: f64,
}

static RECEIVED_BYTES: AtomicU64 = AtomicU64::new(0);
static TIMINGS: Mutex<VecDeque<Timing>> = Mutex::new(VecDeque::new());

pub(crate) fn record(timing: Timing) {
    let mut timings = TIMINGS.lock().unwrap_or_else(PoisonError::into_inner);
    if timings.len() == CAPACITY {
        timings.pop_front();
    }
    timings.push_back(timing);
}

/// The timings of this process since the last call, oldest first.
pub fn take_timings() -> Vec<Timing> {
    TIMINGS.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
}

pub(crate) fn add_received_bytes(bytes: usize) {
    RECEIVED_BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// Bytes that servers have sent to this process, however they were requested.
pub fn received_bytes() -> u64 {
    RECEIVED_BYTES.load(Ordering::Relaxed)
}
