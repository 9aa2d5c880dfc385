//! A shelf of numbers, for simulated pools.

use super::eviction::{Level, MARK_EVERY, Rank, gain, going};
use super::{YOUNG, on_disk};
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What a shelf would hold: it keeps and evicts as one on disk does, at times that it is told.
///
/// Objects are in blocks of equal size, and go block by block.
#[derive(Debug)]
pub struct SimulatedCache {
    limit: u64,
    bytes: u64,
    level: Level,
    held: HashMap<String, SimulatedValues>,
    doomed: VecDeque<(String, Rank)>,
}

#[derive(Clone, Copy, Debug)]
struct SimulatedValues {
    blocks: u64,
    /// That each takes on disk.
    block_bytes: u64,
    stands: SystemTime,
    said: SystemTime,
}

impl SimulatedValues {
    fn place(&self) -> Rank {
        Rank { bytes: self.blocks * self.block_bytes, stands: self.stands, said: self.said }
    }
}

/// What lies in one file.
const FILE_BYTES: u64 = 1 << 18;

impl SimulatedCache {
    /// One with room for so many bytes.
    pub fn new(limit: u64) -> SimulatedCache {
        let level = Level::new(UNIX_EPOCH);
        let (held, doomed) = (HashMap::new(), VecDeque::new());
        SimulatedCache { limit, bytes: 0, level, held, doomed }
    }

    /// Bytes that are taken.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that stay until they are read, whatever they are worth: no more is asked of peers for
    /// one read.
    pub fn young_bytes(&self) -> u64 {
        self.limit / YOUNG
    }

    /// Note that at `now_s` an object was used of which so many blocks are here now, some of which
    /// may be new; each takes `seconds` to fetch again. Gives how many blocks of what must go.
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
        let before = self.held.get(name).copied();
        let (mut stands, mut said) = (self.level.put(before.map(|held| held.stands), gain), now);
        if let Some(before) = before.filter(|before| before.blocks >= blocks) {
            (stands, said) = (before.stands, before.said);
            if now.duration_since(said).is_ok_and(|age| age > MARK_EVERY) {
                (stands, said) = (self.level.used(stands, gain), now);
            }
        }
        let held = SimulatedValues { blocks, block_bytes, stands, said };
        self.bytes += held.place().bytes;
        self.bytes -= before.map_or(0, |before| before.place().bytes);
        self.held.insert(name.to_string(), held);
        let gone = self.make_room();
        if let Some(held) = self.held.get_mut(name).filter(|_| !gone.is_empty()) {
            held.stands = self.level.put(Some(held.stands), gain); // the level may have risen
        }
        gone
    }

    /// Note that an object is not here any more.
    pub fn drop(&mut self, name: &str) {
        if let Some(held) = self.held.remove(name) {
            self.bytes -= held.place().bytes;
        }
    }

    fn make_room(&mut self) -> Vec<(String, u64)> {
        let mut gone = Vec::new();
        while self.bytes > self.limit {
            let Some((name, place)) = self.doomed.pop_front() else {
                let mut all: Vec<_> =
                    self.held.iter().map(|(name, held)| (name.clone(), held.place())).collect();
                all.sort_unstable_by(|one, other| one.0.cmp(&other.0)); // maps have none
                let too_many = self.bytes - self.limit;
                self.doomed = going(all, |(_, place)| *place, self.limit, 0, too_many);
                continue;
            };
            let Some(held) = self.held.get_mut(&name) else { continue };
            if (held.stands, held.said) != (place.stands, place.said) {
                continue; // it was used in the meantime
            }
            let too_many = self.bytes - self.limit;
            let blocks = too_many.div_ceil(held.block_bytes.max(1)).min(held.blocks);
            let bytes = blocks * held.block_bytes;
            held.blocks -= blocks;
            self.bytes -= bytes;
            self.level.went(bytes, held.stands, self.limit);
            if held.blocks == 0 {
                self.held.remove(&name);
            } else {
                self.doomed.push_front((name.clone(), place));
            }
            gone.push((name, blocks));
        }
        gone
    }
}
