//! A cache of numbers, for simulated pools.

use super::eviction::{EvictionLevel, MARK_EVERY, Rank, eviction_order, gain};
use super::{YOUNG, on_disk};
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A simulated cache: it stores and evicts as one on disk does, at simulated times.
///
/// Objects are in blocks of equal size, and are evicted block by block.
#[derive(Debug)]
pub struct SimulatedCache {
    limit: u64,
    bytes: u64,
    level: EvictionLevel,
    objects: HashMap<String, SimulatedValues>,
    victims: VecDeque<(String, Rank)>,
}

#[derive(Clone, Copy, Debug)]
struct SimulatedValues {
    blocks: u64,
    /// Size of each on disk.
    block_bytes: u64,
    priority: SystemTime,
    marked_at: SystemTime,
}

impl SimulatedValues {
    fn rank(&self) -> Rank {
        Rank {
            bytes: self.blocks * self.block_bytes,
            priority: self.priority,
            marked_at: self.marked_at,
        }
    }
}

/// Bytes of an object in one file.
const FILE_BYTES: u64 = 1 << 18;

impl SimulatedCache {
    /// A cache of `limit` bytes.
    pub fn new(limit: u64) -> SimulatedCache {
        let level = EvictionLevel::new(UNIX_EPOCH);
        let (objects, victims) = (HashMap::new(), VecDeque::new());
        SimulatedCache { limit, bytes: 0, level, objects, victims }
    }

    /// Bytes in use.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that stay until they are read, whatever their priority: no more are fetched from peers
    /// for one read.
    pub fn young_bytes(&self) -> u64 {
        self.limit / YOUNG
    }

    /// Record the use of an object at `now_s`. It has `blocks` cached blocks now, some perhaps new;
    /// each takes `seconds` to fetch again. Returns the objects to evict, with their blocks.
    pub fn note(
        &mut self,
        name: &str,
        blocks: u64,
        block_bytes: u64,
        seconds: f64,
        now_s: f64,
    ) -> Vec<(String, u64)> {
        let now = UNIX_EPOCH + Duration::try_from_secs_f64(now_s).unwrap_or_default();
        // Files have heads, and take whole blocks of the disk.
        let block_bytes = block_bytes + on_disk(1) * block_bytes.max(1) / FILE_BYTES;
        let gain = gain(seconds, block_bytes);
        let before = self.objects.get(name).copied();
        let (mut priority, mut marked_at) =
            (self.level.put(before.map(|values| values.priority), gain), now);
        if let Some(before) = before.filter(|before| before.blocks >= blocks) {
            (priority, marked_at) = (before.priority, before.marked_at);
            if now.duration_since(marked_at).is_ok_and(|age| age > MARK_EVERY) {
                (priority, marked_at) = (self.level.after_use(priority, gain), now);
            }
        }
        let values = SimulatedValues { blocks, block_bytes, priority, marked_at };
        self.bytes += values.rank().bytes;
        self.bytes -= before.map_or(0, |before| before.rank().bytes);
        self.objects.insert(name.to_string(), values);
        let evictions = self.make_room();
        if let Some(values) = self.objects.get_mut(name).filter(|_| !evictions.is_empty()) {
            values.priority = self.level.put(Some(values.priority), gain); // the level may have risen
        }
        evictions
    }

    /// Remove an object.
    pub fn drop(&mut self, name: &str) {
        if let Some(values) = self.objects.remove(name) {
            self.bytes -= values.rank().bytes;
        }
    }

    fn make_room(&mut self) -> Vec<(String, u64)> {
        let mut evictions = Vec::new();
        while self.bytes > self.limit {
            let Some((name, rank)) = self.victims.pop_front() else {
                let mut all: Vec<_> = self
                    .objects
                    .iter()
                    .map(|(name, values)| (name.clone(), values.rank()))
                    .collect();
                all.sort_unstable_by(|one, other| one.0.cmp(&other.0)); // maps have none
                let excess = self.bytes - self.limit;
                self.victims = eviction_order(all, |(_, rank)| *rank, self.limit, 0, excess);
                continue;
            };
            let Some(values) = self.objects.get_mut(&name) else { continue };
            if (values.priority, values.marked_at) != (rank.priority, rank.marked_at) {
                continue; // it was used in the meantime
            }
            let excess = self.bytes - self.limit;
            let blocks = excess.div_ceil(values.block_bytes.max(1)).min(values.blocks);
            let bytes = blocks * values.block_bytes;
            values.blocks -= blocks;
            self.bytes -= bytes;
            self.level.note_eviction(bytes, values.priority, self.limit);
            if values.blocks == 0 {
                self.objects.remove(&name);
            } else {
                self.victims.push_front((name.clone(), rank));
            }
            evictions.push((name, blocks));
        }
        evictions
    }
}
