//! Ranges of an object whatever it holds, read with the requests that cost least.

use crate::error::EngineError;
use crate::requests::{ReadRequests, local_cap_bytes, local_plan, remote_requests};
use std::ops::Range;
use swathe_plan::{Break, Sharing};
use swathe_store_api::{Source, StoreError};

/// Fill a buffer for each range, in any order; they may overlap. Each buffer has the length of its
/// range, which ends within the object.
///
/// # Errors
/// As reading has it; then the buffers hold parts of the data.
pub fn read_ranges(
    source: &dyn Source,
    ranges: &[Range<u64>],
    buffers: &mut [Vec<u8>],
) -> Result<(), EngineError> {
    let mut order: Vec<usize> = (0..ranges.len()).filter(|&at| !ranges[at].is_empty()).collect();
    order.sort_by_key(|&at| (ranges[at].start, ranges[at].end));
    let segments: Vec<Range<u64>> = order.iter().map(|&at| ranges[at].clone()).collect();
    if segments.is_empty() {
        return Ok(());
    }
    let requests = if source.is_local() {
        let request_bytes = local_cap_bytes(source);
        ReadRequests::from(local_plan(source, &segments, request_bytes, Break::Anywhere))
    } else {
        remote_requests(source, &segments, Sharing::default(), Break::Anywhere, 0.0)
    };
    let (parts, url) = (requests.ranges.clone(), source.url().to_string());
    let mut pieces = requests.fetch(source);
    // Segments that begin before the present part ends, and are not complete.
    let mut first = 0;
    for part in parts {
        let bytes = pieces.next().transpose()?.unwrap_or_default();
        if bytes.len() as u64 != part.end - part.start {
            let expected = format!("{} bytes from {}", part.end - part.start, part.start);
            let found = bytes.len().to_string();
            return Err(StoreError::Differs { url, expected, found }.into());
        }
        for &at in &order[first..] {
            let range = &ranges[at];
            if range.start >= part.end {
                break;
            }
            let (start, end) = (range.start.max(part.start), range.end.min(part.end));
            if start < end {
                let from = (start - part.start) as usize..(end - part.start) as usize;
                let to = (start - range.start) as usize..(end - range.start) as usize;
                buffers[at][to].copy_from_slice(&bytes[from]);
            }
        }
        while first < order.len() && ranges[order[first]].end <= part.end {
            first += 1;
        }
    }
    Ok(())
}
