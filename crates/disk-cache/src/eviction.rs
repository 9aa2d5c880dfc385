//! The priorities of cached values, and the order of eviction. Knows no files: simulated pools use
//! the same.
//!
//! See `docs/design/016-eviction.md`.

use super::YOUNG;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Uses of a value within this time count once.
pub(super) const MARK_EVERY: Duration = Duration::from_secs(10);
/// Values to evict are chosen once for this part of the limit.
const SWEEP_PARTS: u64 = 20;
/// The priority that one use adds: seconds for each second of fetching a GiB again.
const WEIGHED_BYTES: f64 = (1 << 30) as f64;
/// The highest gain: that of 10 kB in a second.
pub(super) const MOST_GAIN_S: f64 = 1e5;
/// Gains that differ by less than this are equal: costs are not known better.
const ALIKE: f64 = std::f64::consts::SQRT_2;
/// The level rises when this many times the limit was evicted.
const RISES: u64 = 2;
/// Uses that count, at most: a value that was used often long ago must be evicted some time.
const MOST_USES: u32 = 8;

/// The size of a value, its priority, and when that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rank {
    pub(super) bytes: u64,
    pub(super) priority: SystemTime,
    pub(super) marked_at: SystemTime,
}

/// The priority of a new value that costs nothing to fetch again. It rises to that of the evicted
/// values, each time that [`RISES`] times the limit was evicted. So a reader that cycles through
/// more than the limit finds a part of it, used again before its priority is below that of new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EvictionLevel {
    pub(super) at: SystemTime,
    /// Bytes evicted since it rose,
    pub(super) evicted_bytes: u64,
    /// and their mean priority.
    pub(super) evicted_priority: SystemTime,
}

impl EvictionLevel {
    pub(super) fn new(at: SystemTime) -> EvictionLevel {
        EvictionLevel { at, evicted_bytes: 0, evicted_priority: at }
    }

    /// The priority of a value that is stored, or stored again.
    pub(super) fn put(&self, priority: Option<SystemTime>, gain: Duration) -> SystemTime {
        let least = self.at + gain;
        priority.map_or(least, |priority| priority.max(least))
    }

    /// The priority of a value that is used.
    pub(super) fn after_use(&self, priority: SystemTime, gain: Duration) -> SystemTime {
        priority.clamp(self.at, self.at + gain * (MOST_USES - 1)) + gain
    }

    /// Record the eviction of bytes at a priority, from a cache of this limit.
    pub(super) fn note_eviction(&mut self, bytes: u64, priority: SystemTime, limit: u64) {
        let nanos = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let all = self.evicted_bytes + bytes;
        let sum = nanos(self.evicted_priority) * u128::from(self.evicted_bytes)
            + nanos(priority) * u128::from(bytes);
        self.evicted_priority =
            UNIX_EPOCH + Duration::from_nanos((sum / u128::from(all.max(1))) as u64);
        self.evicted_bytes = all;
        if self.evicted_bytes >= limit.saturating_mul(RISES) {
            (self.at, self.evicted_bytes) = (self.at.max(self.evicted_priority), 0);
        }
    }
}

/// The gain of one use of a value with this size and this time to fetch it again.
pub(super) fn gain(seconds: f64, bytes: u64) -> Duration {
    let gain_s = seconds / bytes.max(1) as f64 * WEIGHED_BYTES;
    if gain_s.is_nan() || gain_s <= 0.0 {
        return Duration::ZERO;
    }
    let step = (gain_s.min(MOST_GAIN_S).ln() / ALIKE.ln()).round();
    Duration::from_secs_f64(ALIKE.powf(step).min(MOST_GAIN_S))
}

/// The values to evict, in order, at least `bytes` of them: lowest priority first, of equals the
/// newest first. Young values go last. The `incoming` bytes count as young, too.
pub(super) fn eviction_order<T>(
    mut values: Vec<T>,
    rank: impl Fn(&T) -> Rank,
    limit: u64,
    incoming: u64,
    bytes: u64,
) -> VecDeque<T> {
    // The number of values that make up `bytes`, or one more.
    let first = |all: &[T], bytes: u64| {
        let mut sum = 0;
        let of = all.iter().take_while(|each| {
            let is_one = sum < bytes;
            sum += rank(each).bytes;
            is_one
        });
        of.count()
    };
    values.sort_unstable_by_key(|each| Reverse(rank(each).marked_at));
    let young = first(&values, (limit / YOUNG).saturating_sub(incoming));
    let mut order = values.split_off(young);
    order.sort_by_key(|each| rank(each).priority);
    values.sort_by_key(|each| (rank(each).priority, rank(each).marked_at));
    order.append(&mut values);
    order.truncate(first(&order, bytes.max(limit / SWEEP_PARTS)));
    order.into()
}
