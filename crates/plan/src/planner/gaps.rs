//! The gaps that are worth closing: bytes between segments are read, and a request is saved.

use super::FEW_GAPS;
use crate::costs::{Costs, Load};
use crate::many_ranges::{MultiRange, MultiplexCosts};
use std::ops::Range;

/// The gaps between segments, smallest first.
pub(super) struct Gaps(Vec<u64>);

impl Gaps {
    pub fn of(spans: &[Range<u64>]) -> Gaps {
        let mut gaps: Vec<u64> = spans.windows(2).map(|pair| pair[1].start - pair[0].end).collect();
        gaps.sort_unstable();
        Gaps(gaps)
    }

    pub fn largest(&self) -> u64 {
        self.0.last().copied().unwrap_or(0)
    }

    /// Lengths up to which gaps may be worth closing; all of them, if they are few.
    pub fn worth_trying(&self, base: Load, costs: &Costs, streams: &[u32]) -> Vec<u64> {
        let mut lengths = if self.0.len() <= FEW_GAPS {
            self.0.clone()
        } else {
            streams.iter().map(|&streams| self.cheapest(base, costs, streams)).collect()
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
            let excess = (self.0.len() as u64 + 1).saturating_sub(most * u64::from(streams));
            self.0.get(excess.checked_sub(1)? as usize).copied()
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
            self.0.get((self.0.len() + 1).saturating_sub(most).checked_sub(1)?).copied()
        }));
        lengths.iter_mut().for_each(|length| *length = (*length).max(header_bytes));
        lengths.retain(|&length| length < self.largest());
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// Up to which length gaps are best closed, on this many streams. That large requests hold up
    /// the others is left out: they can be split.
    fn cheapest(&self, base: Load, costs: &Costs, streams: u32) -> u64 {
        let seconds = |closed_gaps: u64, bytes: u64| {
            let requests = base.requests - closed_gaps;
            let load = |requests| Load { requests, ranges: requests, bytes, ..Load::default() };
            let as_they_are = costs.seconds(load(requests), streams);
            as_they_are.min(costs.seconds(load(requests.max(u64::from(streams))), streams))
        };
        let mut best = (seconds(0, base.bytes), 0);
        let mut bytes = base.bytes;
        for (index, &gap) in self.0.iter().enumerate() {
            bytes += gap;
            // Equal gaps are closed together.
            if self.0.get(index + 1) != Some(&gap) {
                let seconds = seconds(index as u64 + 1, bytes);
                if seconds < best.0 {
                    best = (seconds, gap);
                }
            }
        }
        best.1
    }
}
