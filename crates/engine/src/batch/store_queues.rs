//! The order in which units are read, and the store of each. It reads no clock: callers say the time.
//!
//! Each store has a queue with the units that the division gave it. A store without units takes some
//! that nobody has begun from a store that is behind its prediction, if it is expected to be done
//! with them sooner. A unit whose store fails goes to the next store with a copy.

use super::pace::Pace;
use super::units::{Move, Reason, Unit};
use std::collections::VecDeque;

/// A store is behind another whose pace is better by this factor: less is noise.
const BEHIND: f64 = 1.4;
/// A unit is moved only if it is expected to end sooner by this factor.
const GAIN: f64 = 1.1;
/// And by these seconds: a thread may wait as long for a processor.
const GAIN_S: f64 = 0.02;
/// A store that failed this many times in a row gets no more units.
const MOST_FAILURES: u32 = 3;

/// A store of the run.
#[derive(Clone, Debug)]
pub(super) struct StoreLimits {
    /// Predicted seconds of a target if all were read from this store.
    pub target_s: f64,
    /// Units that are read from it at the same time, while it has only its own.
    pub limit: usize,
    /// The same, once it takes units of other stores.
    pub most: usize,
}

/// The next task of a thread.
pub(super) enum Next {
    /// Read this unit. The number is how many units share the store.
    Unit(Unit, u32),
    /// Ask again when a unit has ended, or soon.
    Wait,
    /// Nothing is left.
    End,
}

/// How the reading of a unit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// All its targets have a result or an error of their own.
    Done,
    /// The object could not be read.
    Failed {
        /// Whether the store may fail with its other objects, too.
        is_store: bool,
    },
}

/// The queues of all stores.
pub(super) struct StoreQueues {
    stores: Vec<StoreQueue>,
    /// The store of each copy of each object; empty if all units are of one queue.
    copies: Vec<Vec<usize>>,
}

/// The queue of a store. Seconds are those of this store, all its streams together.
struct StoreQueue {
    /// Units that no other store can read, and the others.
    own: VecDeque<Unit>,
    movable: VecDeque<Unit>,
    waiting_s: f64,
    in_flight: Vec<UnitInFlight>,
    /// The time that a unit had the store for itself, if it was read from the start of the run to
    /// `at_s`: each moment is shared by the units that are read then.
    share_s: f64,
    at_s: f64,
    limits: StoreLimits,
    pace: Pace,
    /// Failures since the last unit that was read.
    failures: u32,
}

struct UnitInFlight {
    number: usize,
    /// [`StoreQueue::share_s`] when it was begun.
    share_s: f64,
    seconds: f64,
}

impl StoreQueue {
    fn is_down(&self) -> bool {
        self.failures >= MOST_FAILURES
    }

    fn has_place(&self) -> bool {
        self.in_flight.len() < self.limits.limit
    }

    fn waiting(&self) -> usize {
        self.own.len() + self.movable.len()
    }

    fn share_s(&self, now_s: f64) -> f64 {
        self.share_s + (now_s - self.at_s) / self.in_flight.len().max(1) as f64
    }

    /// Before the number of units that are read changes.
    fn advance(&mut self, now_s: f64) {
        self.share_s = self.share_s(now_s);
        self.at_s = now_s;
    }

    /// Actual seconds for each predicted one.
    fn ratio(&self, now_s: f64) -> f64 {
        let share_s = self.share_s(now_s);
        let slowest = self.in_flight.iter().fold(self.pace, |pace, unit| {
            let beside = self.pace.beside(share_s - unit.share_s, unit.seconds);
            if beside.ratio() > pace.ratio() { beside } else { pace }
        });
        slowest.ratio()
    }

    /// Expected seconds for a unit beside others.
    fn unit_s(&self, seconds: f64, now_s: f64) -> f64 {
        seconds * self.limits.limit as f64 * self.ratio(now_s)
    }

    /// Expected seconds until all waiting units and `more_s` are read; the last unit takes `unit_s`.
    fn finish_s(&self, more_s: f64, unit_s: f64, now_s: f64) -> f64 {
        let in_flight_s: f64 = self.in_flight.iter().map(|unit| unit.seconds / 2.0).sum();
        let last = 1.0 - 1.0 / self.limits.limit.max(1) as f64;
        self.ratio(now_s) * (self.waiting_s + in_flight_s + more_s)
            + last * self.unit_s(unit_s, now_s)
    }
}

/// Whether a unit that ends after `moved_s` gains by it, if it would end after `unmoved_s` otherwise.
fn gains(moved_s: f64, unmoved_s: f64) -> bool {
    GAIN * moved_s + GAIN_S <= unmoved_s
}

impl StoreQueues {
    /// A single queue, from which up to `limit` units are read at the same time.
    pub fn of_one(units: Vec<Unit>, limit: usize) -> StoreQueues {
        let limits = StoreLimits { target_s: 1.0, limit, most: limit };
        StoreQueues::new(units, vec![limits], Vec::new())
    }

    /// A queue for each store. `copies`: the store of each copy of each object, first that which
    /// the division gave it.
    pub fn new(units: Vec<Unit>, limits: Vec<StoreLimits>, copies: Vec<Vec<usize>>) -> StoreQueues {
        let targets: usize = units.iter().map(|unit| unit.targets.len()).sum();
        let per_unit = targets as f64 / units.len().max(1) as f64;
        let queue = |limits: StoreLimits| StoreQueue {
            own: VecDeque::new(),
            movable: VecDeque::new(),
            waiting_s: 0.0,
            in_flight: Vec::new(),
            share_s: 0.0,
            at_s: 0.0,
            pace: Pace::from_prediction(limits.target_s * per_unit),
            limits,
            failures: 0,
        };
        let mut queues = StoreQueues { stores: limits.into_iter().map(queue).collect(), copies };
        for unit in units {
            let store = queues.store_of(&unit);
            queues.push(store, unit, false);
        }
        for store in &mut queues.stores {
            if store.waiting() > 0 {
                store.pace = Pace::from_prediction(store.waiting_s / store.waiting() as f64);
            }
        }
        queues
    }

    /// The store that a unit is read from.
    pub fn store_of(&self, unit: &Unit) -> usize {
        self.copies.get(unit.file).map_or(0, |copies| copies[unit.copy])
    }

    /// The number of the copy in a store, unless it failed.
    fn copy_in(&self, unit: &Unit, store: usize) -> Option<usize> {
        let copies = self.copies.get(unit.file)?;
        let copy = copies.iter().position(|&each| each == store)?;
        (!unit.failed_copies.contains(&copy)).then_some(copy)
    }

    /// Predicted seconds of a unit in a store, all streams together.
    fn seconds_in(&self, unit: &Unit, store: usize) -> f64 {
        let target_s = |store: usize| self.stores[store].limits.target_s.max(1e-12);
        unit.seconds * target_s(store) / target_s(self.store_of(unit))
    }

    fn push(&mut self, store: usize, unit: Unit, is_first: bool) {
        let others = (0..self.stores.len()).filter(|&other| other != store);
        let is_movable = others.into_iter().any(|other| self.copy_in(&unit, other).is_some());
        let queue = &mut self.stores[store];
        queue.waiting_s += unit.seconds;
        let units = if is_movable { &mut queue.movable } else { &mut queue.own };
        if is_first { units.push_front(unit) } else { units.push_back(unit) }
    }

    /// The unit that a thread reads next. If it was moved, it says so.
    pub fn next(&mut self, now_s: f64) -> Next {
        let mut free: Vec<usize> =
            (0..self.stores.len()).filter(|&store| self.stores[store].has_place()).collect();
        let load = |store: usize| {
            let queue = &self.stores[store];
            queue.in_flight.len() as f64 / queue.limits.limit as f64
        };
        free.sort_by(|&a, &b| load(a).total_cmp(&load(b)));
        for &store in &free {
            if let Some(unit) = self.take_own(store, now_s) {
                return self.begin(store, unit, now_s);
            }
        }
        for &store in &free {
            if let Some(unit) = self.take_from_others(store, now_s) {
                return self.begin(store, unit, now_s);
            }
        }
        if self.stores.iter().any(|store| !store.in_flight.is_empty()) {
            // With copies it may come back; else there will be no more.
            return if self.copies.is_empty() { Next::End } else { Next::Wait };
        }
        let mut all = 0..self.stores.len();
        match all.find_map(|store| self.pop(store, false).map(|unit| (store, unit))) {
            Some((store, unit)) => self.begin(store, unit, now_s),
            None => Next::End,
        }
    }

    fn begin(&mut self, store: usize, unit: Unit, now_s: f64) -> Next {
        let is_moved = unit.last_move.is_some();
        let behind: usize = match unit.last_move {
            Some(Move { from, .. }) => self.stores[from].movable.len(),
            None => 0,
        };
        let queue = &mut self.stores[store];
        queue.advance(now_s);
        let (number, seconds) = (unit.number, unit.seconds);
        queue.in_flight.push(UnitInFlight { number, share_s: queue.share_s, seconds });
        if is_moved {
            // It has more to do than was planned.
            queue.limits.limit = queue.limits.limit.max(queue.limits.most);
        }
        let parts = (queue.in_flight.len() + queue.waiting() + behind).min(queue.limits.limit);
        Next::Unit(unit, parts.max(1) as u32)
    }

    fn pop(&mut self, store: usize, own_first: bool) -> Option<Unit> {
        let queue = &mut self.stores[store];
        let number = |units: &VecDeque<Unit>| units.front().map(|unit| unit.number);
        let is_own = match (number(&queue.own), number(&queue.movable)) {
            (Some(own), Some(movable)) => own_first || own < movable,
            (own, _) => own.is_some(),
        };
        let units = if is_own { &mut queue.own } else { &mut queue.movable };
        let unit = units.pop_front()?;
        queue.waiting_s = (queue.waiting_s - unit.seconds).max(0.0);
        Some(unit)
    }

    /// The next unit of a store's own queue, unless another store is done with it sooner.
    fn take_own(&mut self, store: usize, now_s: f64) -> Option<Unit> {
        let queue = &self.stores[store];
        let ratio = queue.ratio(now_s);
        let is_ahead = |other: &usize| {
            let queue = &self.stores[*other];
            *other != store && !queue.is_down() && ratio >= BEHIND * queue.ratio(now_s)
        };
        let ahead: Vec<usize> = (0..self.stores.len()).filter(is_ahead).collect();
        if queue.own.is_empty()
            && let Some(unit) = queue.movable.front()
        {
            let own_s = queue.unit_s(unit.seconds, now_s);
            let is_sooner = |&other: &usize| {
                let to_other = self.seconds_in(unit, other);
                let scale = to_other / unit.seconds.max(1e-12);
                let more_s = queue.waiting_s * scale;
                self.copy_in(unit, other).is_some()
                    && gains(self.stores[other].finish_s(more_s, to_other, now_s), own_s)
            };
            if ahead.iter().any(is_sooner) {
                return None;
            }
        }
        self.pop(store, !ahead.is_empty())
    }

    /// The last unit of the store that would take longest, if this one is done with it sooner.
    fn take_from_others(&mut self, store: usize, now_s: f64) -> Option<Unit> {
        let queue = &self.stores[store];
        if queue.is_down() {
            return None;
        }
        let own_ratio = queue.ratio(now_s);
        let gain = |from: usize| {
            let other = &self.stores[from];
            if from == store || other.ratio(now_s) < BEHIND * own_ratio {
                return None;
            }
            let at = other.movable.iter().rposition(|unit| self.copy_in(unit, store).is_some())?;
            let unit = &other.movable[at];
            let here_s = queue.unit_s(self.seconds_in(unit, store), now_s);
            let there_s = other.finish_s(0.0, unit.seconds, now_s);
            gains(here_s, there_s).then_some((there_s, from, at))
        };
        let (_, from, at) =
            (0..self.stores.len()).filter_map(gain).max_by(|a, b| a.0.total_cmp(&b.0))?;
        let percent = (100.0 * self.stores[from].ratio(now_s)) as u64;
        let unit = self.stores[from].movable.remove(at)?;
        let waiting_s = &mut self.stores[from].waiting_s;
        *waiting_s = (*waiting_s - unit.seconds).max(0.0);
        Some(self.move_unit(unit, store, Reason::Behind { percent }))
    }

    fn move_unit(&self, mut unit: Unit, to: usize, reason: Reason) -> Unit {
        let from = self.store_of(&unit);
        unit.seconds = self.seconds_in(&unit, to);
        if let Some(copy) = self.copy_in(&unit, to) {
            unit.copy = copy;
        }
        unit.last_move = Some(Move { from, to, reason });
        unit
    }

    /// A unit that was begun has ended.
    pub fn end(&mut self, unit: &Unit, ending: Ending, now_s: f64) {
        let store = self.store_of(unit);
        let queue = &mut self.stores[store];
        let Some(at) = queue.in_flight.iter().position(|other| other.number == unit.number) else {
            return;
        };
        queue.advance(now_s);
        let read_unit = queue.in_flight.swap_remove(at);
        let actual_s = queue.share_s - read_unit.share_s;
        match ending {
            Ending::Done => {
                queue.pace = queue.pace.after(actual_s, read_unit.seconds);
                queue.failures = 0;
            }
            Ending::Failed { is_store: true } => {
                queue.failures += 1;
                if queue.failures == MOST_FAILURES {
                    self.give_away(store, now_s);
                }
            }
            Ending::Failed { is_store: false } => {}
        }
    }

    /// Whether a copy is left that did not fail.
    pub fn has_other(&self, unit: &Unit) -> bool {
        self.copies.get(unit.file).is_some_and(|copies| {
            (0..copies.len()).any(|copy| copy != unit.copy && !unit.failed_copies.contains(&copy))
        })
    }

    /// Let another store read what is left of a unit whose store failed; false if there is none.
    pub fn retry(&mut self, mut unit: Unit, now_s: f64) -> bool {
        unit.failed_copies.push(unit.copy);
        let Some(to) = self.soonest(&unit, now_s) else { return false };
        let unit = self.move_unit(unit, to, Reason::Failed);
        self.push(to, unit, true);
        true
    }

    /// The store that is done soonest with all it has and this unit; one that is down comes last.
    fn soonest(&self, unit: &Unit, now_s: f64) -> Option<usize> {
        let finish = |store: usize| {
            self.copy_in(unit, store)?;
            let (queue, seconds) = (&self.stores[store], self.seconds_in(unit, store));
            Some((queue.is_down(), queue.finish_s(seconds, seconds, now_s), store))
        };
        let all = (0..self.stores.len()).filter_map(finish);
        let best = all.min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))?;
        Some(best.2)
    }

    /// Give what waits for a store that is down to the others.
    fn give_away(&mut self, store: usize, now_s: f64) {
        for unit in std::mem::take(&mut self.stores[store].movable) {
            let waiting_s = &mut self.stores[store].waiting_s;
            *waiting_s = (*waiting_s - unit.seconds).max(0.0);
            let to = self.soonest(&unit, now_s).filter(|&to| !self.stores[to].is_down());
            match to {
                Some(to) => {
                    let unit = self.move_unit(unit, to, Reason::Failed);
                    self.push(to, unit, false);
                }
                // No other is better.
                None => {
                    self.stores[store].waiting_s += unit.seconds;
                    self.stores[store].own.push_back(unit);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
