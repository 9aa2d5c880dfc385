//! Where what is kept stands, and what goes first. Knows no files: simulated pools go by the same.
//!
//! See `docs/design/016-what-goes-first.md`.

use super::YOUNG;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Uses of a value within this time count once.
pub(super) const MARK_EVERY: Duration = Duration::from_secs(10);
/// What goes is looked for once for this part of the limit.
const SWEPT: u64 = 20;
/// What stands above the level for one use: seconds for each second of fetching a GiB of it again.
const WEIGHED_BYTES: f64 = (1 << 30) as f64;
/// Nothing counts for more: that is 10 kB in a second.
pub(super) const MOST_GAIN_S: f64 = 1e5;
/// Gains that differ by less than this are the same: costs are not known better.
const ALIKE: f64 = std::f64::consts::SQRT_2;
/// The level rises when so many times as much went as there is room for.
const RISES: u64 = 2;
/// Uses that count, at most: what was used often long ago must go some time.
const MOST_USES: u32 = 8;

/// What a value takes, where it stands, and when that was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rank {
    pub(super) bytes: u64,
    pub(super) stands: SystemTime,
    pub(super) said: SystemTime,
}

/// Where what comes stands, if it costs nothing to fetch again. It rises to what went, each time
/// that [`RISES`] times as much went as there is room for: so who goes round and round through more
/// than that finds a part of it, which is used again before it stands lower than what comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    pub(super) at: SystemTime,
    /// Bytes that went since it rose,
    pub(super) gone: u64,
    /// and where they stood, in the mean.
    pub(super) stood: SystemTime,
}

impl Level {
    pub(super) fn new(at: SystemTime) -> Level {
        Level { at, gone: 0, stood: at }
    }

    /// Where a value stands that comes, or comes again.
    pub(super) fn put(&self, stood: Option<SystemTime>, gain: Duration) -> SystemTime {
        let least = self.at + gain;
        stood.map_or(least, |stood| stood.max(least))
    }

    /// Where one stands that is used.
    pub(super) fn used(&self, stood: SystemTime, gain: Duration) -> SystemTime {
        stood.clamp(self.at, self.at + gain * (MOST_USES - 1)) + gain
    }

    /// Note that bytes went that stood there, of a shelf of this limit.
    pub(super) fn went(&mut self, bytes: u64, stood: SystemTime, limit: u64) {
        let nanos = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let all = self.gone + bytes;
        let sum = nanos(self.stood) * u128::from(self.gone) + nanos(stood) * u128::from(bytes);
        self.stood = UNIX_EPOCH + Duration::from_nanos((sum / u128::from(all.max(1))) as u64);
        self.gone = all;
        if self.gone >= limit.saturating_mul(RISES) {
            (self.at, self.gone) = (self.at.max(self.stood), 0);
        }
    }
}

/// What one use counts for a value that takes so many bytes, and so many seconds to fetch again.
pub(super) fn gain(seconds: f64, bytes: u64) -> Duration {
    let gain_s = seconds / bytes.max(1) as f64 * WEIGHED_BYTES;
    if gain_s.is_nan() || gain_s <= 0.0 {
        return Duration::ZERO;
    }
    let step = (gain_s.min(MOST_GAIN_S).ln() / ALIKE.ln()).round();
    Duration::from_secs_f64(ALIKE.powf(step).min(MOST_GAIN_S))
}

/// What goes next of all there is, at least so many bytes, the first first: what stands lowest,
/// and of equals what came last, but for what is young. So is what `comes` now, besides.
pub(super) fn going<T>(
    mut kept: Vec<T>,
    place: impl Fn(&T) -> Rank,
    limit: u64,
    comes: u64,
    bytes: u64,
) -> VecDeque<T> {
    // Those of all that make up so many bytes, or one more.
    let first = |all: &[T], bytes: u64| {
        let mut sum = 0;
        let of = all.iter().take_while(|each| {
            let is_one = sum < bytes;
            sum += place(each).bytes;
            is_one
        });
        of.count()
    };
    kept.sort_unstable_by_key(|each| Reverse(place(each).said));
    let young = first(&kept, (limit / YOUNG).saturating_sub(comes));
    let mut order = kept.split_off(young);
    order.sort_by_key(|each| place(each).stands);
    kept.sort_by_key(|each| (place(each).stands, place(each).said));
    order.append(&mut kept);
    order.truncate(first(&order, bytes.max(limit / SWEPT)));
    order.into()
}
