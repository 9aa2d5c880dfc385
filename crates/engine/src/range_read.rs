//! Ranges of an object whatever it holds, read with the requests that cost least.

use crate::error::EngineError;
use crate::requests::{local_cap_bytes, local_plan, remote_requests};
use std::ops::Range;
use swathe_plan::{Break, Sharing};
use swathe_store_api::{Source, StoreError};

/// Fill a buffer for each range, in any order; they may overlap. Each buffer has the length of its
/// range, which ends within the object. What one range alone needs of a file is read straight into
/// its buffer.
///
/// # Errors
/// As reading has it; then the buffers hold parts of the data.
pub fn read_ranges(
    source: &dyn Source,
    ranges: &[Range<u64>],
    buffers: &mut [impl AsMut<[u8]>],
) -> Result<(), EngineError> {
    let mut order: Vec<usize> = (0..ranges.len()).filter(|&at| !ranges[at].is_empty()).collect();
    order.sort_by_key(|&at| (ranges[at].start, ranges[at].end));
    let segments: Vec<Range<u64>> = order.iter().map(|&at| ranges[at].clone()).collect();
    if segments.is_empty() {
        return Ok(());
    }
    let mut targets = Targets { ranges, order: &order, buffers };
    if source.is_local() {
        let plan = local_plan(source, &segments, local_cap_bytes(source), Break::Anywhere);
        let mut scratch = Vec::new();
        for part in plan.ranges {
            if let Some(buffer) = targets.only_buffer(&part) {
                source.read_exact_at(part.start, buffer)?;
            } else {
                scratch.resize((part.end - part.start) as usize, 0);
                source.read_exact_at(part.start, &mut scratch)?;
                targets.fill(&part, &scratch);
            }
            targets.pass(part.end);
        }
        return Ok(());
    }
    let requests = remote_requests(source, &segments, Sharing::default(), Break::Anywhere, 0.0);
    let parts = requests.ranges.clone();
    let mut pieces = requests.fetch(source);
    for part in parts {
        let bytes = pieces.next().transpose()?.unwrap_or_default();
        if bytes.len() as u64 != part.end - part.start {
            let expected = format!("{} bytes from {}", part.end - part.start, part.start);
            let (url, found) = (source.url().to_string(), bytes.len().to_string());
            return Err(StoreError::Differs { url, expected, found }.into());
        }
        targets.fill(&part, &bytes);
        targets.pass(part.end);
    }
    Ok(())
}

/// The buffers of ranges that are not complete.
struct Targets<'a, B> {
    ranges: &'a [Range<u64>],
    /// Numbers of these ranges, by their start.
    order: &'a [usize],
    buffers: &'a mut [B],
}

impl<B: AsMut<[u8]>> Targets<'_, B> {
    /// The place of a part in the buffer of the one range that needs it, and needs all of it.
    fn only_buffer(&mut self, part: &Range<u64>) -> Option<&mut [u8]> {
        let needs = |at: &&usize| self.ranges[**at].end > part.start;
        let mut users = self.order.iter().take_while(|at| self.ranges[**at].start < part.end);
        let at = *users.by_ref().find(needs)?;
        let range = &self.ranges[at];
        if range.start > part.start || range.end < part.end || users.any(|at| needs(&at)) {
            return None;
        }
        let to = (part.start - range.start) as usize..(part.end - range.start) as usize;
        Some(&mut self.buffers[at].as_mut()[to])
    }

    /// Copy the bytes of a part to all ranges that need some of them.
    fn fill(&mut self, part: &Range<u64>, bytes: &[u8]) {
        for &at in self.order.iter().take_while(|at| self.ranges[**at].start < part.end) {
            let range = &self.ranges[at];
            let (start, end) = (range.start.max(part.start), range.end.min(part.end));
            if start < end {
                let from = (start - part.start) as usize..(end - part.start) as usize;
                let to = (start - range.start) as usize..(end - range.start) as usize;
                self.buffers[at].as_mut()[to].copy_from_slice(&bytes[from]);
            }
        }
    }

    /// Leave out the first ranges that end before `end`.
    fn pass(&mut self, end: u64) {
        let complete = self.order.iter().take_while(|at| self.ranges[**at].end <= end).count();
        self.order = &self.order[complete..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;
    use swathe_store_api::{MemoryStore, ObjectName, Store};

    const SIZE: u64 = 1_500_000;

    fn object() -> (Arc<dyn Source>, Vec<u8>) {
        let content: Vec<u8> = (0..SIZE).map(|at| (at * 31 % 251) as u8).collect();
        let store = MemoryStore::new("m");
        store.put("object", content.clone());
        let url = store.url_of("object");
        let source = store.open(ObjectName { url: &url, qualified_name: None }).expect("opened");
        (source, content)
    }

    proptest! {
        #[test]
        fn each_range_gets_its_bytes(
            pairs in prop::collection::vec((0..SIZE, prop_oneof![0..100u64, 0..700_000u64]), 0..12)
        ) {
            let (source, content) = object();
            let range = |(start, length): (u64, u64)| start..(start + length).min(SIZE);
            let ranges: Vec<Range<u64>> = pairs.into_iter().map(range).collect();
            let mut buffers: Vec<Vec<u8>> =
                ranges.iter().map(|range| vec![0; (range.end - range.start) as usize]).collect();
            read_ranges(&*source, &ranges, &mut buffers).expect("read");
            for (range, buffer) in ranges.iter().zip(&buffers) {
                prop_assert!(buffer[..] == content[range.start as usize..range.end as usize]);
            }
        }
    }
}
