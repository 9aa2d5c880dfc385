//! Bytes of an object on their way from a server, requested before they are needed.

use crate::requests::remote_requests;
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;
use swathe_plan::{Break, Sharing};
use swathe_store_api::{Pieces, Source, StoreError};

/// Requested ranges, taken in ascending order.
pub(crate) struct Prefetch {
    answers: Pieces,
    ranges: VecDeque<Range<u64>>,
    /// The last answer: its offset, and the bytes not yet taken.
    piece: (u64, Bytes),
}

impl Prefetch {
    /// Request windows that cover `ranges`, whose starts ascend. Decoding takes `decode_byte_s` for
    /// each byte.
    pub(crate) fn start(
        source: &dyn Source,
        ranges: &[Range<u64>],
        sharing: Sharing,
        decode_byte_s: f64,
    ) -> Prefetch {
        let requests = remote_requests(source, ranges, sharing, Break::Anywhere, decode_byte_s);
        let ranges = requests.ranges.clone().into();
        Prefetch { answers: requests.fetch(source), ranges, piece: (0, Bytes::new()) }
    }

    /// The bytes from `at` on, as far as they arrived together; earlier bytes are freed. `None`
    /// if they were not requested.
    pub(crate) fn take(&mut self, at: u64) -> Option<Result<Bytes, StoreError>> {
        loop {
            let (start, bytes) = &mut self.piece;
            let end = *start + bytes.len() as u64;
            if *start <= at && at < end {
                let rest = bytes.split_off((at - *start) as usize);
                self.piece = (end, Bytes::new());
                return Some(Ok(rest));
            }
            if self.ranges.front().is_none_or(|range| at < range.start) {
                return None;
            }
            let range = self.ranges.pop_front()?;
            match self.answers.next()? {
                Ok(bytes) => self.piece = (range.start, bytes),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
