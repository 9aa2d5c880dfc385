//! Reading a striped object: its parts side by side, each as its own server is best read.
//!
//! A read is cut into windows, and two of them are on their way at a time.

use crate::object::Object;
use crate::read_events::{StageEvents, in_stripe};
use crate::window::Window;
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use swathe_store_api::StoreError;

/// Object bytes of a window: more only if a single request is longer.
const WINDOW_BYTES: u64 = 16 << 20;
/// Windows on their way.
const WINDOWS: usize = 2;

/// Requests that are being read, in their order.
pub(crate) struct StripedRead {
    object: Arc<Object>,
    requests: VecDeque<Range<u64>>,
    /// As many as may be in flight.
    most_streams: u32,
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
        StripedRead { object, requests: requests.into(), most_streams, windows, count: 0, ready }
    }

    /// The bytes of the next window, while others are on their way; `None` at the end.
    fn next_answers(&mut self) -> Option<Result<Vec<Bytes>, StoreError>> {
        while self.windows.len() < WINDOWS && !self.requests.is_empty() {
            let requests = self.next_requests();
            self.count += 1;
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

    /// The requests of the next window.
    fn next_requests(&mut self) -> Vec<Range<u64>> {
        let mut bytes = 0;
        let mut requests = Vec::new();
        while let Some(range) = self.requests.front() {
            bytes += range.end - range.start;
            if bytes > WINDOW_BYTES && !requests.is_empty() {
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
