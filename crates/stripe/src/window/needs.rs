//! Which bytes a window reads, and from which parts.

use super::Window;
use crate::part_costs::Ask;
use crate::shards::{ShardId, ShardRanges};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use swathe_store_api::Source;

/// A part is left out if a window then takes less than this share of its time.
const WORTH: f64 = 0.8;

impl Window {
    /// Leave out parts as long as the others are quicker without them.
    pub(super) fn leave_out_slow_parts(&mut self) {
        if self.object.layout().parity == 0 {
            return;
        }
        let Some(mut times) = self.part_times() else { return };
        while self.slow.len() < self.object.layout().parity as usize {
            let Some((slowest, seconds)) = times.pop() else { return };
            // Without it the others have more to do, not less.
            if times.last().is_none_or(|(_, next)| *next >= WORTH * seconds) {
                return;
            }
            self.slow.insert(slowest);
            match self.part_times() {
                Some(without)
                    if without.last().is_some_and(|(_, most)| *most < WORTH * seconds) =>
                {
                    times = without;
                }
                _ => {
                    self.slow.remove(&slowest);
                    return;
                }
            }
        }
    }

    /// The parts with their predicted seconds, the slowest last. `None` if too few can be read.
    fn part_times(&self) -> Option<Vec<(u32, f64)>> {
        let asks = self.asks_by_part(&self.needs(&HashSet::new())?);
        let mut times: Vec<(u32, f64)> = (0..)
            .zip(&asks)
            .map(|(part, asks)| (part, self.object.parts[part as usize].estimate_s(asks)))
            .collect();
        times.sort_by(|one, other| one.1.total_cmp(&other.1));
        Some(times)
    }

    /// Whether a shard is read without the bytes around what is wanted.
    pub(super) fn is_exact(&self, (row, shard): ShardId) -> bool {
        let part = self.object.layout().part_of(row, shard);
        self.proof(part).is_some()
    }

    /// A part whose server proves what it sends, where whole blocks would be many more bytes. It is
    /// asked for once: other readers may learn meanwhile that its server does not. One that was found
    /// on another server is compared with checksums.
    pub(super) fn proof(&self, part: u32) -> Option<&Arc<dyn Source>> {
        let part = part as usize;
        if self.object.parts[part].move_count() > 0 {
            return None;
        }
        let source = || self.object.parts[part].proof_source();
        self.is_short.then(|| self.proofs[part].get_or_init(source).as_ref())?
    }

    /// A range of a shard in whole blocks of checksums.
    pub(super) fn widen(&self, (row, shard): ShardId, range: &Range<u64>) -> Range<u64> {
        let layout = self.object.layout();
        layout.widen(range, layout.shard_bytes(row, shard))
    }

    /// Whether bytes of a shard are here, or follow from others.
    pub(super) fn can_give(&self, id: ShardId, range: &Range<u64>) -> bool {
        self.shards.get(id, range).is_some()
            || self.shards.can_rebuild(self.object.layout(), id, &self.widen(id, range))
    }

    /// Whether bytes of a shard are to be had from its part.
    fn is_usable(&self, id: ShardId, range: &Range<u64>, without: &HashSet<u32>) -> bool {
        let part = self.object.layout().part_of(id.0, id.1);
        !without.contains(&part)
            && !self.bad_shards.contains(&id)
            && !self.bad.overlaps(id, range)
            && self.object.parts[part as usize].is_there()
    }

    /// Whether it is better to leave them.
    fn is_avoided(&self, (row, shard): ShardId) -> bool {
        let part = self.object.layout().part_of(row, shard);
        self.slow.contains(&part) || !self.object.parts[part as usize].is_usable()
    }

    /// What is still to be read for what is wanted; `None` if it cannot be. `without`: parts that
    /// are not to be asked.
    pub(super) fn needs(&self, without: &HashSet<u32>) -> Option<ShardRanges> {
        let mut needs = ShardRanges::default();
        let mut losses = Vec::new();
        for (id, ranges) in self.targets.iter() {
            let is_preferred = !self.is_avoided(id);
            let is_exact = self.is_exact(id);
            let is_direct = |range: &_| is_preferred && self.is_usable(id, range, without);
            if self.shards.is_empty() && (is_exact || !self.is_short) && is_direct(&(0..u64::MAX)) {
                needs.add_all(id, ranges);
                continue;
            }
            let pieces = self.bad.cut(id, ranges);
            for range in pieces.iter().filter(|range| !self.can_give(id, range)) {
                match is_direct(range) {
                    true if is_exact => needs.add(id, range.clone()),
                    true => needs.add(id, self.widen(id, range)),
                    false => losses.push((id, self.widen(id, range))),
                }
            }
        }
        for (id, range) in losses {
            self.add_helpers(id, &range, without, &mut needs)?;
        }
        Some(needs)
    }

    /// What is needed to rebuild bytes of a shard; the shard itself, if others are too few.
    fn add_helpers(
        &self,
        id: ShardId,
        range: &Range<u64>,
        without: &HashSet<u32>,
        needs: &mut ShardRanges,
    ) -> Option<()> {
        let (layout, row) = (self.object.layout(), id.0);
        let there = |other: ShardId| {
            let length = layout.shard_bytes(row, other.1);
            range.start.min(length)..range.end.min(length)
        };
        // Also of a part that cannot be read any more.
        let is_here = |other| {
            let there = there(other);
            there.is_empty() || self.shards.get(other, &there).is_some()
        };
        let others = (0..layout.parts()).map(|shard| (row, shard)).filter(|&other| other != id);
        let mut others: Vec<ShardId> = others
            .filter(|&other| is_here(other) || self.is_usable(other, range, without))
            .collect();
        let own = self.is_usable(id, range, without);
        if (layout.parity == 0 || others.len() < layout.data as usize) && own {
            needs.add(id, range.clone());
            return Some(());
        }
        // First those that are there or asked for already, last those that are better left.
        others.sort_by_key(|&other| {
            let is_cheap = is_here(other) || needs.has(other);
            (self.is_avoided(other), !is_cheap)
        });
        let helpers = others.get(..layout.data as usize)?;
        if own && helpers.iter().any(|&other| self.is_avoided(other)) {
            needs.add(id, range.clone());
            return Some(());
        }
        for &other in helpers {
            let there = there(other);
            if !there.is_empty() && !is_here(other) {
                needs.add(other, layout.widen(&there, layout.shard_bytes(row, other.1)));
            }
        }
        Some(())
    }

    pub(super) fn asks_by_part(&self, needs: &ShardRanges) -> Vec<Vec<Ask>> {
        let layout = self.object.layout();
        let mut asks = vec![Vec::new(); layout.parts() as usize];
        for (id, ranges) in needs.iter() {
            let part = layout.part_of(id.0, id.1);
            asks[part as usize].extend(ranges.iter().map(|range| Ask {
                id,
                in_shard: range.clone(),
                in_part: layout.in_part(id.0, range),
            }));
        }
        asks
    }
}
