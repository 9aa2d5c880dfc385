//! When a part is late, and how much may be read twice in order not to wait for it.
//!
//! A part is late beside what it was predicted to take, and beside what parts take at this time: where
//! the processors of a machine are busy, all take longer, and others would be no quicker.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that may be read in addition: this share of all bytes that were read,
const EXTRA_SHARE: f64 = 0.05;
/// and these, so that small reads may hedge too.
const FIRST_BYTES: u64 = 1 << 20;
/// Parts that were read last, whose median says what they take at this time,
const RECENT: usize = 32;
/// if there are as many as this.
const FEW: usize = 16;
/// A part is late after this multiple of that.
const MARGIN: f64 = 2.0;

/// What hedges of a store cost, and how often they helped.
#[derive(Debug, Default)]
pub(crate) struct Hedges {
    read_bytes: AtomicU64,
    extra_bytes: AtomicU64,
    tries: AtomicU64,
    wins: AtomicU64,
    /// Of parts that were read last: their time as a multiple of that after which they would be late by
    /// their prediction alone.
    recent: Mutex<VecDeque<f64>>,
}

impl Hedges {
    /// Those of a store, for all of this process.
    pub(crate) fn of(store: &str) -> Arc<Hedges> {
        static STORES: Mutex<BTreeMap<String, Arc<Hedges>>> = Mutex::new(BTreeMap::new());
        let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
        stores.entry(store.to_string()).or_default().clone()
    }

    /// Count bytes that were read because they were needed.
    pub(crate) fn add_read(&self, bytes: u64) {
        self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Take bytes from the budget; whether there were as many.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let read = self.read_bytes.load(Ordering::Relaxed) as f64;
        let most = FIRST_BYTES + (read * EXTRA_SHARE) as u64;
        let add = |extra: u64| extra.checked_add(bytes).filter(|&extra| extra <= most);
        let order = Ordering::Relaxed;
        let is_taken = self.extra_bytes.fetch_update(order, order, add).is_ok();
        if is_taken {
            self.tries.fetch_add(1, Ordering::Relaxed);
        }
        is_taken
    }

    /// Count a part that was read: its time as a multiple of that after which it is late by its
    /// prediction alone.
    pub(crate) fn add_time(&self, multiple: f64) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() == RECENT {
            recent.pop_front();
        }
        recent.push_back(multiple);
    }

    /// By how much a part may be later at this time than its prediction alone says, at least 1.
    pub(crate) fn patience(&self) -> f64 {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() < FEW {
            return 1.0;
        }
        let mut multiples: Vec<f64> = recent.iter().copied().collect();
        let (_, median, _) = multiples.select_nth_unstable_by(recent.len() / 2, f64::total_cmp);
        (MARGIN * *median).max(1.0)
    }

    /// Count a hedge that ended before the late part.
    pub(crate) fn add_win(&self) {
        self.wins.fetch_add(1, Ordering::Relaxed);
    }

    /// Hedges issued, hedges won, bytes read twice, bytes read.
    pub(crate) fn counts(&self) -> [u64; 4] {
        [&self.tries, &self.wins, &self.extra_bytes, &self.read_bytes]
            .map(|count| count.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_twentieth_may_be_read_twice() {
        let hedges = Hedges::default();
        assert!(hedges.take(FIRST_BYTES) && !hedges.take(1));
        hedges.add_read(100 << 20);
        assert!(hedges.take(5 << 20) && !hedges.take(1));
        hedges.add_win();
        assert_eq!(hedges.counts(), [2, 1, 6 << 20, 100 << 20]);
    }

    #[test]
    fn parts_are_late_beside_what_others_take() {
        let hedges = Hedges::default();
        let add = |multiple, count| (0..count).for_each(|_| hedges.add_time(multiple));
        add(3.0, FEW - 1);
        assert_eq!(hedges.patience(), 1.0);
        add(3.0, 1);
        assert_eq!(hedges.patience(), 6.0);
        // One slow server of five is late beside the others.
        add(0.2, RECENT * 4 / 5);
        assert_eq!(hedges.patience(), 1.0);
    }
}
