//! Counts of what went through.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Counts since the start, or since they were cleared. Bytes to a client count before it can see
/// them.
pub struct Stats {
    start: Instant,
    /// Connections accepted.
    pub connections: AtomicU64,
    /// Requests recognised.
    pub requests: AtomicU64,
    /// Bytes from the clients.
    pub bytes_up: AtomicU64,
    /// Bytes to the clients.
    pub bytes_down: AtomicU64,
    /// Connections reset in a body.
    pub resets: AtomicU64,
    /// Connections closed in a body.
    pub truncations: AtomicU64,
    /// Bodies that stopped.
    pub stalls: AtomicU64,
    /// Requests never answered.
    pub hangs: AtomicU64,
    /// Answers 503.
    pub unavailable: AtomicU64,
    /// Answers 429.
    pub slow_downs: AtomicU64,
    busy_ns: AtomicU64,
    first_ns: AtomicU64,
    last_ns: AtomicU64,
}

impl Stats {
    pub(crate) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            start: Instant::now(),
            connections: zero(),
            requests: zero(),
            bytes_up: zero(),
            bytes_down: zero(),
            resets: zero(),
            truncations: zero(),
            stalls: zero(),
            hangs: zero(),
            unavailable: zero(),
            slow_downs: zero(),
            busy_ns: zero(),
            first_ns: zero(),
            last_ns: zero(),
        }
    }

    /// Sets all to zero.
    pub fn clear(&self) {
        for (_, count) in self.counts() {
            count.store(0, Relaxed);
        }
        for time in [&self.busy_ns, &self.first_ns, &self.last_ns] {
            time.store(0, Relaxed);
        }
    }

    /// One line of JSON: the counts; `busy_s`, how long the shared link was sending (0 without
    /// `shared-bytes-per-s`); `first_s` and `last_s`, seconds from the start of the proxy to the
    /// first byte from a client and to the last to one (0: none yet); `now_s`.
    pub fn json(&self) -> String {
        let counts = self.counts().map(|(name, count)| format!("\"{name}\": {}", one(count)));
        let times =
            [("busy_s", &self.busy_ns), ("first_s", &self.first_ns), ("last_s", &self.last_ns)]
                .map(|(name, time)| format!("\"{name}\": {:.6}", one(time) as f64 / 1e9));
        let now = self.start.elapsed().as_secs_f64();
        format!("{{{}, {}, \"now_s\": {now:.6}}}", counts.join(", "), times.join(", "))
    }

    pub(crate) fn up(&self, bytes: usize) {
        self.bytes_up.fetch_add(bytes as u64, Relaxed);
        let _ = self.first_ns.compare_exchange(0, self.now_ns(), Relaxed, Relaxed);
    }

    pub(crate) fn down(&self, bytes: usize) {
        self.bytes_down.fetch_add(bytes as u64, Relaxed);
        self.last_ns.fetch_max(self.now_ns(), Relaxed);
    }

    pub(crate) fn busy(&self, time: Duration) {
        self.busy_ns.fetch_add(time.as_nanos() as u64, Relaxed);
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn counts(&self) -> [(&'static str, &AtomicU64); 10] {
        [
            ("connections", &self.connections),
            ("requests", &self.requests),
            ("bytes_up", &self.bytes_up),
            ("bytes_down", &self.bytes_down),
            ("resets", &self.resets),
            ("truncations", &self.truncations),
            ("stalls", &self.stalls),
            ("hangs", &self.hangs),
            ("unavailable", &self.unavailable),
            ("slow_downs", &self.slow_downs),
        ]
    }
}

fn one(count: &AtomicU64) -> u64 {
    count.load(Relaxed)
}
