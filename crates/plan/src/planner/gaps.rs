//! The gaps that are worth closing: bytes between segments are read, and a request is saved.

use super::FEW_GAPS;
use crate::costs::{Costs, Load};
use crate::many_ranges::{MultiRange, MultiplexCosts};
use std::ops::Range;

/// The gaps between segments, smallest first.
pub(super) struct Gaps {
    lengths: Vec<u64>,
    /// Bytes of the largest request once this many of them are closed.
    largest_requests: Vec<u64>,
}

impl Gaps {
    pub fn of(spans: &[Range<u64>]) -> Gaps {
        let mut gaps: Vec<(u64, usize)> = spans
            .windows(2)
            .enumerate()
            .map(|(index, pair)| (pair[1].start - pair[0].end, index))
            .collect();
        gaps.sort_unstable();
        let lengths = gaps.iter().map(|(length, _)| *length).collect();
        Gaps { lengths, largest_requests: largest_requests(spans, &gaps) }
    }

    /// The length of the longest gap.
    pub fn largest(&self) -> u64 {
        self.lengths.last().copied().unwrap_or(0)
    }

    /// Lengths up to which gaps may be worth closing; all of them, if they are few.
    pub fn worth_trying(&self, base: Load, costs: &Costs, streams: &[u32]) -> Vec<u64> {
        let mut lengths = if self.lengths.len() <= FEW_GAPS {
            self.lengths.clone()
        } else {
            streams.iter().flat_map(|&streams| self.cheapest(base, costs, streams)).collect()
        };
        lengths.extend([0, self.largest()]);
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// Lengths up to which gaps may be worth closing if requests have many ranges: of those as
    /// above, what costs as much as another range, and what makes the ranges fit into one request,
    /// or one on each stream. Closing a gap that is not longer than a part's headers costs nothing.
    pub fn worth_vectors(
        &self,
        mut lengths: Vec<u64>,
        costs: &Costs,
        multi_range: &MultiRange,
        streams: &[u32],
        end: u64,
    ) -> Vec<u64> {
        let part_bytes = u64::from(multi_range.part_bytes);
        let free = part_bytes.max(u64::from(multi_range.gap_bytes));
        let speeds = [costs.stream_bytes_per_s(), costs.total_bytes_per_s];
        lengths.extend(speeds.map(|per_s| part_bytes + (multi_range.range_s * per_s) as u64));
        let most = u64::from(multi_range.most_ranges(end));
        lengths.extend(streams.iter().filter_map(|&streams| {
            let excess = (self.lengths.len() as u64 + 1).saturating_sub(most * u64::from(streams));
            self.lengths.get(excess.checked_sub(1)? as usize).copied()
        }));
        lengths.iter_mut().for_each(|length| *length = (*length).max(free));
        lengths.retain(|&length| length < self.largest());
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// Lengths up to which gaps may be worth closing if requests share a connection: of those as
    /// above, what costs as much as another request.
    pub fn worth_multiplexing(
        &self,
        mut lengths: Vec<u64>,
        costs: &Costs,
        multiplex: &MultiplexCosts,
    ) -> Vec<u64> {
        let header_bytes = u64::from(multiplex.header_bytes);
        let bytes_per_s = multiplex.bytes_per_s.min(costs.total_bytes_per_s);
        let request_s = [multiplex.request_s, multiplex.latency_s];
        lengths.extend(request_s.map(|seconds| header_bytes + (seconds * bytes_per_s) as u64));
        // So that all go in one round, or a few.
        lengths.extend([1, 2, 4].iter().filter_map(|rounds| {
            let most = rounds * multiplex.requests as usize;
            self.lengths.get((self.lengths.len() + 1).saturating_sub(most).checked_sub(1)?).copied()
        }));
        lengths.iter_mut().for_each(|length| *length = (*length).max(header_bytes));
        lengths.retain(|&length| length < self.largest());
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// Up to which length gaps are best closed, on this many streams: if requests stay as they are,
    /// and if they are split so that each stream has one. The second is an estimate, for it leaves
    /// out that some cannot be split evenly.
    fn cheapest(&self, base: Load, costs: &Costs, streams: u32) -> [u64; 2] {
        let seconds = |closed_gaps: usize, bytes: u64| {
            let requests = base.requests - closed_gaps as u64;
            let whole = (requests, self.largest_requests[closed_gaps]);
            let split = (requests.max(u64::from(streams)), 0);
            [whole, split].map(|(requests, largest)| {
                let load = Load { requests, ranges: requests, bytes, largest, multiplexed: false };
                costs.seconds(load, streams)
            })
        };
        let mut best = seconds(0, base.bytes).map(|seconds| (seconds, 0));
        let mut bytes = base.bytes;
        for (index, &gap) in self.lengths.iter().enumerate() {
            bytes += gap;
            // Equal gaps are closed together.
            if self.lengths.get(index + 1) != Some(&gap) {
                for (best, seconds) in best.iter_mut().zip(seconds(index + 1, bytes)) {
                    if seconds < best.0 {
                        *best = (seconds, gap);
                    }
                }
            }
        }
        best.map(|(_, gap)| gap)
    }
}

/// Bytes of the largest request once none of `gaps` is closed, the first, the first two, and so
/// on. A gap is a length and the index of the span before it.
fn largest_requests(spans: &[Range<u64>], gaps: &[(u64, usize)]) -> Vec<u64> {
    let mut largest = spans.iter().map(|span| span.end - span.start).max().unwrap_or(0);
    let mut by_closed_gaps = vec![largest];
    // Of each request, its last span by its first, and its first span by its last.
    let mut lasts: Vec<usize> = (0..spans.len()).collect();
    let mut firsts = lasts.clone();
    for &(_, before) in gaps {
        let (first, last) = (firsts[before], lasts[before + 1]);
        (lasts[first], firsts[last]) = (last, first);
        largest = largest.max(spans[last].end - spans[first].start);
        by_closed_gaps.push(largest);
    }
    by_closed_gaps
}
