//! Units that were read from another store than the division gave them: events, and notes.

use super::lock;
use super::units::{Move, Reason};
use crate::job::Replicas;
use std::collections::BTreeMap;
use std::sync::Mutex;
use swathe_trace::{Ids, Level};

/// All moves of a batch.
#[derive(Default)]
pub(super) struct Moves {
    stores: Vec<String>,
    /// By the stores from and to, and whether the first failed.
    counts: Mutex<BTreeMap<(usize, usize, bool), Count>>,
    /// The first failure of each store.
    failures: Mutex<BTreeMap<usize, String>>,
}

#[derive(Default)]
struct Count {
    targets: usize,
    /// Actual seconds for a hundred predicted, at most.
    percent: u64,
}

impl Moves {
    pub fn new(replicas: Option<&Replicas>) -> Moves {
        let stores = replicas.iter().flat_map(|replicas| &replicas.stores);
        Moves { stores: stores.map(|store| store.name.clone()).collect(), ..Moves::default() }
    }

    /// A store failed.
    pub fn fail(&self, store: usize, message: &str) {
        lock(&self.failures).entry(store).or_insert_with(|| message.to_string());
    }

    /// Record that these targets are read from another store.
    pub fn record(&self, Move { from, to, reason }: Move, targets: usize, about: &Ids) {
        let mut counts = lock(&self.counts);
        let count = counts.entry((from, to, reason == Reason::Failed)).or_default();
        count.targets += targets;
        let why = match reason {
            Reason::Behind { percent } => {
                count.percent = count.percent.max(percent);
                format!("behind: {percent} % of the predicted time")
            }
            Reason::Failed => format!("failed: {}", self.failure(from)),
        };
        drop(counts);
        swathe_trace::event(Level::Usage, "UNIT_MOVED", about, |record| {
            record.text("FROM_STORE", self.name(from)).text("TO_STORE", self.name(to));
            record.number("TARGETS", targets as u64).text("WHY", &why);
        });
    }

    fn name(&self, store: usize) -> &str {
        self.stores.get(store).map_or("", String::as_str)
    }

    fn failure(&self, store: usize) -> String {
        lock(&self.failures).get(&store).cloned().unwrap_or_default()
    }

    /// Notes for the user.
    pub fn notes(&self) -> Vec<String> {
        let note = |(&(from, to, has_failed), count): (&(usize, usize, bool), &Count)| {
            let (from_name, to_name, targets) = (self.name(from), self.name(to), count.targets);
            let why = if has_failed {
                format!("failed: {}", self.failure(from))
            } else {
                format!("took up to {:.1} times the predicted time", count.percent as f64 / 100.0)
            };
            format!(
                "{targets} targets of store {from_name} were read from {to_name}: {from_name} {why}"
            )
        };
        lock(&self.counts).iter().map(note).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::ReplicaStore;

    #[test]
    fn moves_are_counted_by_stores_and_reason() {
        let store = |name: &str| ReplicaStore { name: name.into(), target_s: 1.0 };
        let replicas = Replicas { stores: vec![store("a"), store("b")], copies: Vec::new() };
        let moves = Moves::new(Some(&replicas));
        let about = Ids::default();
        for percent in [150, 340, 200] {
            let reason = Reason::Behind { percent };
            moves.record(Move { from: 0, to: 1, reason }, 10, &about);
        }
        moves.fail(0, "a:x: connection refused");
        moves.fail(0, "a:y: another");
        moves.record(Move { from: 0, to: 1, reason: Reason::Failed }, 2, &about);
        let expected = [
            "30 targets of store a were read from b: a took up to 3.4 times the predicted time",
            "2 targets of store a were read from b: a failed: a:x: connection refused",
        ];
        assert_eq!(moves.notes(), expected);
        assert!(Moves::new(None).notes().is_empty());
    }
}
