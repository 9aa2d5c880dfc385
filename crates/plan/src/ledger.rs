//! What readers of a store have in flight, and what plans beside it reckon with
//! (`docs/design/023-bytes-in-flight.md`).

use crate::costs::{Busy, Costs, Load};
use crate::many_ranges::part_of;
use std::cell::Cell;
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Readers that [`Objective::Throughput`] assumes at least: as many as a server is sent requests at
/// a time, so that what the store does for a read is all that counts.
const MANY_READERS: u32 = 256;

/// The objective of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Objective {
    /// The best for this store, by the requests that others have in flight.
    #[default]
    Auto,
    /// The time of this read, as if nobody else read.
    Latency,
    /// The time that the read takes of the line and of the server, as if both were busy.
    Throughput,
}

impl Objective {
    /// All, by their names.
    pub const ALL: [(&str, Objective); 3] = [
        ("auto", Objective::Auto),
        ("latency", Objective::Latency),
        ("throughput", Objective::Throughput),
    ];
}

impl FromStr for Objective {
    type Err = String;

    fn from_str(name: &str) -> Result<Objective, String> {
        let entry = Objective::ALL.iter().find(|(text, _)| *text == name);
        entry.map(|(_, objective)| *objective).ok_or_else(|| {
            format!("objective: expected 'auto', 'latency' or 'throughput', found {name:?}")
        })
    }
}

/// Requests that wait to be sent, or whose answer is not complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InFlight {
    /// Requests.
    pub requests: u64,
    /// Their ranges.
    pub ranges: u64,
    /// Their bytes. A request counts with all of them until it ends.
    pub bytes: u64,
    /// Reads that these belong to.
    pub readers: u32,
}

impl InFlight {
    /// A read that begins.
    pub const READER: InFlight = InFlight { requests: 0, ranges: 0, bytes: 0, readers: 1 };

    /// One request.
    pub fn request(ranges: u64, bytes: u64) -> InFlight {
        InFlight { requests: 1, ranges, bytes, readers: 0 }
    }

    fn and(self, other: InFlight) -> InFlight {
        InFlight {
            requests: self.requests + other.requests,
            ranges: self.ranges + other.ranges,
            bytes: self.bytes.saturating_add(other.bytes),
            readers: self.readers + other.readers,
        }
    }

    fn minus(self, other: InFlight) -> InFlight {
        InFlight {
            requests: self.requests.saturating_sub(other.requests),
            ranges: self.ranges.saturating_sub(other.ranges),
            bytes: self.bytes.saturating_sub(other.bytes),
            readers: self.readers.saturating_sub(other.readers),
        }
    }
}

/// Readers that share a plan of their own, as the threads of a batch do: to each other they are no
/// others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ReaderGroup(u64);

thread_local! {
    static GROUP: Cell<ReaderGroup> = const { Cell::new(ReaderGroup(0)) };
}

impl ReaderGroup {
    /// A group that no other thread is in.
    pub fn new_group() -> ReaderGroup {
        static GROUPS: AtomicU64 = AtomicU64::new(1);
        ReaderGroup(GROUPS.fetch_add(1, Ordering::Relaxed))
    }

    /// From now on, this thread opens objects for the group.
    pub fn enter(self) {
        GROUP.set(self);
    }

    /// The group of this thread; by default none, which stands for single reads.
    pub fn current() -> ReaderGroup {
        GROUP.get()
    }
}

/// The requests in flight from one store to this process.
#[derive(Debug, Default)]
pub struct Ledger {
    /// All of it, and that of each group.
    state: Mutex<(InFlight, HashMap<ReaderGroup, InFlight>)>,
}

/// An entry of a ledger; it is removed when this is dropped.
#[derive(Debug)]
pub struct LedgerEntry {
    ledger: Arc<Ledger>,
    group: ReaderGroup,
    in_flight: InFlight,
}

impl Ledger {
    /// Enter a read, or a request.
    pub fn enter(self: &Arc<Self>, group: ReaderGroup, in_flight: InFlight) -> LedgerEntry {
        let (all, groups) = &mut *self.lock();
        *all = all.and(in_flight);
        if group != ReaderGroup::default() {
            let own = groups.entry(group).or_default();
            *own = own.and(in_flight);
        }
        LedgerEntry { ledger: self.clone(), group, in_flight }
    }

    /// What all but this group have in flight. Of single reads all is that of others: they plan
    /// before they request.
    pub fn others(&self, group: ReaderGroup) -> InFlight {
        let (all, groups) = &*self.lock();
        all.minus(groups.get(&group).copied().unwrap_or_default())
    }

    fn lock(&self) -> MutexGuard<'_, (InFlight, HashMap<ReaderGroup, InFlight>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LedgerEntry {
    fn drop(&mut self) {
        let (all, groups) = &mut *self.ledger.lock();
        *all = all.minus(self.in_flight);
        if let Some(own) = groups.get_mut(&self.group) {
            *own = own.minus(self.in_flight);
            if *own == InFlight::default() {
                groups.remove(&self.group);
            }
        }
    }
}

/// The requests that others have in flight from a store, and the most that are sent at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Others {
    /// Requests of others than the one who plans.
    pub in_flight: InFlight,
    /// Most requests at a time, of all readers.
    pub most_requests: u32,
}

impl Default for Others {
    /// Nobody else.
    fn default() -> Others {
        Others { in_flight: InFlight::default(), most_requests: u32::MAX }
    }
}

/// How a reader of a store is to plan: with how many readers like it, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Readers that share the plan, this one included: threads of a batch.
    pub parts: u32,
    /// The objective.
    pub objective: Objective,
}

impl Default for Sharing {
    fn default() -> Sharing {
        Sharing { parts: 1, objective: Objective::Auto }
    }
}

impl Costs {
    /// The parts of the time in which what others have in flight fills the line, and the server:
    /// what they would take in a second, if nothing limited them but the time of a request, of what
    /// there is.
    fn busy_with(&self, InFlight { requests, ranges, bytes, .. }: InFlight) -> Busy {
        if requests == 0 {
            return Busy::default();
        }
        let load = Load { requests, ranges, bytes, ..Load::default() };
        let each_s = self.seconds(self.average(load), 1);
        let line = bytes as f64 / self.total_bytes_per_s / each_s;
        let server = self.served_s(load) / each_s;
        Busy { line: line.min(1.0), server: server.min(1.0) }
    }

    fn average(&self, load: Load) -> Load {
        let each = |of: u64| of.div_ceil(load.requests.max(1));
        Load { requests: 1, ranges: each(load.ranges), bytes: each(load.bytes), ..Load::default() }
    }

    /// The costs for one of `sharing.parts` readers if others read too. If nobody else reads, as
    /// [`Costs::share`]. Else the others leave a part of the line and of the server: what they do not
    /// fill, but no less than an even part for each reader. And a wait for an answer costs the line
    /// nothing while it carries bytes of others (`docs/design/023-bytes-in-flight.md`).
    pub fn share_with(&self, sharing: Sharing, others: Others) -> Costs {
        let Others { in_flight, most_requests } = others;
        let own = sharing.parts.max(1);
        let (busy, readers) = match sharing.objective {
            Objective::Latency => return self.share(own),
            Objective::Auto => {
                let Busy { line, server } = self.busy_with(in_flight);
                let server_part = in_flight.requests as f64 / f64::from(most_requests.max(1));
                (Busy { line, server: server.max(server_part.min(1.0)) }, in_flight.readers)
            }
            Objective::Throughput => {
                (Busy { line: 1.0, server: 1.0 }, in_flight.readers.max(MANY_READERS))
            }
        };
        if readers == 0 {
            return self.share(own);
        }
        let even = f64::from(own) + f64::from(readers);
        let parts = |busy: f64| (f64::from(own) / (1.0 - busy).max(1e-9)).min(even);
        let free = u64::from(most_requests).saturating_sub(in_flight.requests);
        let fair = part_of(most_requests, own.saturating_add(readers));
        let streams = part_of(self.streams, own).min(fair.max(free as u32));
        // A request takes up one of those that the server is sent at a time, too.
        let requests_per_s = self.requests_per_s.min(f64::from(most_requests) / self.latency_s());
        let all = Costs { requests_per_s, busy, ..self.clone() };
        all.divide(parts(busy.line), parts(busy.server), streams.max(1))
    }
}

#[cfg(test)]
mod tests;
