//! Reading a striped object: its parts side by side, each as its own server is best read.
//!
//! A read is cut into windows, and two of them are on their way at a time, or more where an answer takes
//! long to begin. The first windows of a long read are shorter, each by another part of a window. Else
//! all would come to their end at the same time, as they share the line of each server, and the lines
//! would be idle until the answers to the next begin.

use crate::object::Object;
use crate::read_events::{StageEvents, in_stripe};
use crate::window::Window;
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use swathe_plan::Costs;
use swathe_store_api::StoreError;

/// Object bytes of a window: more only if a single request is longer.
const WINDOW_BYTES: u64 = 16 << 20;
/// Windows on their way: at least,
const LEAST_WINDOWS: usize = 2;
/// and at most.
const MOST_WINDOWS: usize = 6;

/// Requests that are being read, in their order.
pub(crate) struct StripedRead {
    object: Arc<Object>,
    requests: VecDeque<Range<u64>>,
    /// As many as may be in flight.
    most_streams: u32,
    /// Windows on their way.
    most_windows: usize,
    /// Whether its first windows are shorter.
    is_long: bool,
    windows: VecDeque<(Window, StageEvents)>,
    /// Windows so far.
    count: u64,
    ready: VecDeque<Bytes>,
}

impl StripedRead {
    pub(crate) fn new(
        object: Arc<Object>,
        requests: Vec<Range<u64>>,
        most_streams: u32,
    ) -> StripedRead {
        let (windows, ready) = Default::default();
        let most_windows = window_count(&object.costs);
        let bytes: u64 = requests.iter().map(|range| range.end - range.start).sum();
        let is_long = bytes > 2 * most_windows as u64 * WINDOW_BYTES;
        let requests = requests.into();
        StripedRead {
            object,
            requests,
            most_streams,
            most_windows,
            is_long,
            windows,
            count: 0,
            ready,
        }
    }

    /// The bytes of the next window, while others are on their way; `None` at the end.
    fn next_answers(&mut self) -> Option<Result<Vec<Bytes>, StoreError>> {
        while self.windows.len() < self.most_windows && !self.requests.is_empty() {
            self.count += 1;
            let requests = self.next_requests();
            let number = self.count;
            let stage = StageEvents::start("STRIPE", &self.object, |about| {
                about.push("WINDOW", &number.to_string());
            });
            let window = Window::start(self.object.clone(), requests, self.most_streams);
            self.windows.push_back((window, stage));
        }
        let (window, stage) = self.windows.pop_front()?;
        let result = window.answers();
        let bytes = |pieces: &Vec<Bytes>| pieces.iter().map(|piece| piece.len() as u64).sum();
        stage.end(result.as_ref().map(bytes));
        Some(result)
    }

    /// Bytes of the window that is begun now.
    fn window_bytes(&self) -> u64 {
        let windows = self.most_windows as u64;
        match self.is_long && self.count < windows {
            true => WINDOW_BYTES * self.count / windows,
            false => WINDOW_BYTES,
        }
    }

    /// The requests of the next window.
    fn next_requests(&mut self) -> Vec<Range<u64>> {
        let (mut bytes, mut requests) = (0, Vec::new());
        let most_bytes = self.window_bytes();
        while let Some(range) = self.requests.front() {
            bytes += range.end - range.start;
            if bytes > most_bytes && !requests.is_empty() {
                break;
            }
            requests.extend(self.requests.pop_front());
        }
        requests
    }
}

impl Iterator for StripedRead {
    type Item = Result<Bytes, StoreError>;

    fn next(&mut self) -> Option<Result<Bytes, StoreError>> {
        if let Some(bytes) = self.ready.pop_front() {
            return Some(Ok(bytes));
        }
        let object = self.object.clone();
        let answers = in_stripe(&object.stripe, || self.next_answers())?;
        match answers {
            Ok(pieces) => {
                self.ready = pieces.into();
                self.ready.pop_front().map(Ok)
            }
            Err(error) => {
                // An error is the last.
                self.requests.clear();
                self.windows.clear();
                Some(Err(error))
            }
        }
    }
}

/// Windows that are on their way at a time: one of them may have ended, and the others have twice the
/// bytes that come until the answers to the next begin.
fn window_count(costs: &Costs) -> usize {
    let bytes = 2.0 * costs.total_bytes_per_s * costs.latency_s();
    let more = (bytes / WINDOW_BYTES as f64) as usize;
    LEAST_WINDOWS.saturating_add(more).min(MOST_WINDOWS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestStripe, bytes_of};
    use swathe_plan::Curve;

    /// The bytes of the windows of a read in requests of 1 MiB.
    fn windows(object: &Arc<Object>, bytes: u64) -> Vec<u64> {
        let requests = (0..bytes >> 20).map(|at| at << 20..(at + 1) << 20).collect();
        let mut read = StripedRead::new(object.clone(), requests, u32::MAX);
        let mut all = Vec::new();
        while !read.requests.is_empty() {
            read.count += 1;
            all.push(read.next_requests().len() as u64);
        }
        all
    }

    #[test]
    fn the_first_windows_of_a_long_read_end_at_different_times() {
        let stripe = TestStripe::new(3, 1, true);
        stripe.put("a", &bytes_of(1000, 1), false).expect("written");
        let mut object = stripe.store.open_object(&TestStripe::url("a")).expect("open");
        object.costs = Costs { total_bytes_per_s: 1e8, ..object.costs.clone() };
        object.costs.request = Curve::affine(0.001, 1e8);
        let near = Arc::new(object);
        assert_eq!(windows(&near, 40 << 20), [16, 16, 8]);
        assert_eq!(windows(&near, 80 << 20), [8, 16, 16, 16, 16, 8]);
        let mut object = stripe.store.open_object(&TestStripe::url("a")).expect("open");
        object.costs = Costs { total_bytes_per_s: 4e8, ..object.costs.clone() };
        object.costs.request = Curve::affine(0.045, 4e8);
        assert_eq!(window_count(&object.costs), 4);
        assert_eq!(windows(&Arc::new(object), 140 << 20)[..5], [4, 8, 12, 16, 16]);
        assert_eq!(window_count(&Costs { total_bytes_per_s: f64::INFINITY, ..Costs::remote() }), 6);
        assert_eq!(window_count(&Costs::local()), 2);
    }
}
