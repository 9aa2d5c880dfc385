//! How much may be read twice, in order not to wait for a late part.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that may be read in addition: this part of all bytes that were read,
const PART: f64 = 0.05;
/// and these, so that small reads may hedge too.
const FIRST_BYTES: u64 = 1 << 20;

/// What hedges of a store cost, and how often they helped.
#[derive(Debug, Default)]
pub(crate) struct Hedges {
    read_bytes: AtomicU64,
    extra_bytes: AtomicU64,
    tries: AtomicU64,
    wins: AtomicU64,
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
        let most = FIRST_BYTES + (read * PART) as u64;
        let add = |extra: u64| extra.checked_add(bytes).filter(|&extra| extra <= most);
        let order = Ordering::Relaxed;
        let is_taken = self.extra_bytes.fetch_update(order, order, add).is_ok();
        if is_taken {
            self.tries.fetch_add(1, Ordering::Relaxed);
        }
        is_taken
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
}
