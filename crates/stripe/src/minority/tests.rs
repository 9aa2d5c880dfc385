use crate::repair_progress::RepairProgress;
use crate::server::MARK_PATH;
use crate::striped_sink::TAKEN_BACK;
use crate::testing::{TestStripe, bytes_of};
use crate::upkeep::Upkeep;
use proptest::prelude::*;
use std::fs;
use std::sync::atomic::Ordering;
use std::time::Duration;
use swathe_store_api::{Interrupt, StoreError};
use swathe_trace::testing::record_trace;

/// A step of a history; `u8`: servers, by their bits.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Write, while some servers take no record, and some die when they have it.
    Put(u8, u8),
    /// From now on only these servers are away.
    Away(u8),
    Read,
    Repair,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (any::<u8>(), any::<u8>()).prop_map(|(full, deadly)| {
            // Most of those that get the record live.
            Step::Put(full, deadly & deadly.rotate_left(3))
        }),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(one, other)| Step::Away(one & other)),
        4 => Just(Step::Read),
        1 => Just(Step::Repair),
    ]
}

/// Let a server be away, or back; nobody waits before it is asked again.
fn set_away(stripe: &TestStripe, number: usize, is_away: bool) {
    stripe.kill(number, is_away);
    drop(stripe.store.servers[number].open("nothing"));
}

/// What may be read of an object: the last version that was written or read, and what failed since.
struct Model {
    stripe: TestStripe,
    writes: u64,
    /// By the number of the write.
    current: Option<u64>,
    failures: Vec<u64>,
}

impl Model {
    fn new(servers: usize, parity: u32) -> Model {
        let stripe = TestStripe::new(servers, parity, false);
        Model { stripe, writes: 0, current: None, failures: Vec::new() }
    }

    fn bytes(number: u64) -> Vec<u8> {
        bytes_of(500 + number as usize, number)
    }

    fn take(&mut self, step: Step) {
        let bit = |mask: u8, number: usize| mask >> number & 1 == 1;
        match step {
            Step::Put(full, deadly) => {
                for (number, server) in self.stripe.behaviours.iter().enumerate() {
                    server.is_full_of_records.store(bit(full, number), Ordering::Relaxed);
                    server.dies_of_record.store(bit(deadly, number), Ordering::Relaxed);
                }
                self.put();
                for server in &self.stripe.behaviours {
                    server.is_full_of_records.store(false, Ordering::Relaxed);
                    server.dies_of_record.store(false, Ordering::Relaxed);
                }
            }
            Step::Away(mask) => {
                for number in 0..self.stripe.behaviours.len() {
                    set_away(&self.stripe, number, bit(mask, number));
                }
            }
            Step::Read => drop(self.read()),
            Step::Repair => {
                let upkeep = Upkeep(self.stripe.store.clone());
                let (url, progress) = (TestStripe::url("a"), RepairProgress::default());
                // Servers may be away: what it did shows in what is read. One that was so at the first
                // write has no mark.
                if upkeep.admit_empty_servers().is_err() {
                    self.copy_mark();
                }
                drop(upkeep.repair(&url, false, &progress));
            }
        }
    }

    /// Give the mark to servers that have none, as the error says where they are many.
    fn copy_mark(&self) {
        let servers = &self.stripe.store.servers;
        let path = |number: usize| self.stripe.folder.path().join(format!("s{number}/{MARK_PATH}"));
        let marks = (0..servers.len()).filter_map(|number| fs::read(path(number)).ok());
        let Some(mark) = marks.into_iter().next() else { return };
        for (number, server) in servers.iter().enumerate() {
            if !path(number).exists() {
                fs::write(path(number), &mark).expect("copied");
                server.identity().compared_at = None;
            }
        }
    }

    fn put(&mut self) {
        self.writes += 1;
        match self.stripe.put("a", &Model::bytes(self.writes), true) {
            Ok(()) => {
                self.current = Some(self.writes);
                self.failures.clear();
            }
            Err(error) if error.to_string().contains(TAKEN_BACK) => {}
            Err(_) => self.failures.push(self.writes),
        }
    }

    /// Read the object: whether that was possible.
    fn read(&mut self) -> bool {
        let number = match self.stripe.get("a") {
            Ok(bytes) => {
                let number = bytes.len() as u64 - 500;
                assert!(bytes == Model::bytes(number), "one version, whole");
                Some(number)
            }
            Err(StoreError::NotFound { .. }) => None,
            Err(_) => return false,
        };
        if number != self.current {
            let at = self.failures.iter().position(|&failure| Some(failure) == number);
            let at = at.unwrap_or_else(|| {
                panic!("{number:?} after {:?}, of {:?}", self.current, self.failures)
            });
            // Older failures can no longer count.
            self.failures.drain(..=at);
            self.current = number;
        }
        true
    }

    /// When all servers are back, the object can be read, and repaired; then one that is away
    /// changes nothing.
    fn end(&mut self) {
        self.take(Step::Away(0));
        assert!(self.read(), "all servers are there");
        self.take(Step::Repair);
        for number in 0..self.stripe.behaviours.len() {
            self.take(Step::Away(1 << number));
            assert!(self.read(), "all but {number} are there");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn what_was_read_or_written_stays_until_something_newer_counts(
        (servers, parity) in prop_oneof![Just((3, 1)), Just((4, 1)), Just((5, 1)), Just((5, 2))],
        steps in prop::collection::vec(step(), 4..14),
    ) {
        let mut model = Model::new(servers, parity);
        steps.into_iter().for_each(|step| model.take(step));
        model.end();
    }
}

/// Write `a` again, so that only some servers have its record, and the writer cannot take it back.
fn leave_minority(stripe: &TestStripe, with: &[usize]) -> String {
    for (number, server) in stripe.behaviours.iter().enumerate() {
        let has_it = with.contains(&number);
        server.is_full_of_records.store(!has_it, Ordering::Relaxed);
        server.dies_of_record.store(has_it, Ordering::Relaxed);
    }
    let error = stripe.put("a", &bytes_of(600, 2), true).expect_err("a minority");
    for (number, server) in stripe.behaviours.iter().enumerate() {
        server.is_full_of_records.store(false, Ordering::Relaxed);
        set_away(stripe, number, false);
    }
    error.to_string()
}

#[test]
fn a_version_of_a_minority_that_was_read_counts_from_then_on() {
    let stripe = TestStripe::new(5, 2, false);
    stripe.put("a", &bytes_of(500, 1), false).expect("written");
    let text = leave_minority(&stripe, &[0, 1]);
    assert!(text.contains("may count later") && text.contains("s0:"), "{text}");
    // Without those that have it, it does not count yet.
    set_away(&stripe, 0, true);
    set_away(&stripe, 1, true);
    assert_eq!(stripe.get("a").expect("read").len(), 500);
    // Where too few servers take its record, a reader says so.
    set_away(&stripe, 0, false);
    for number in 2..5 {
        stripe.behaviours[number].is_full_of_records.store(true, Ordering::Relaxed);
    }
    set_away(&stripe, 4, true);
    let text = stripe.get("a").expect_err("no majority gets it").to_string();
    assert!(text.contains("expected its newest record on 3 of 5 servers"), "{text}");
    for number in 2..5 {
        stripe.behaviours[number].is_full_of_records.store(false, Ordering::Relaxed);
    }
    assert_eq!(stripe.get("a").expect("read").len(), 600);
    set_away(&stripe, 4, false);
    set_away(&stripe, 0, true);
    assert_eq!(stripe.get("a").expect("read").len(), 600);
}

#[test]
fn a_write_that_fails_takes_its_records_back() {
    let stripe = TestStripe::new(5, 1, false);
    for size in [None, Some(500), Some(3_000_000)] {
        if let Some(size) = size {
            stripe.put("a", &bytes_of(size, 1), true).expect("written");
        }
        for number in 2..5 {
            stripe.behaviours[number].is_full_of_records.store(true, Ordering::Relaxed);
        }
        let text = stripe.put("a", &bytes_of(600, 2), true).expect_err("three").to_string();
        assert!(text.contains(TAKEN_BACK), "{text}");
        if size.is_some() {
            let text = stripe.remove("a").expect_err("three").to_string();
            assert!(text.contains(TAKEN_BACK), "{text}");
        }
        for number in 2..5 {
            stripe.behaviours[number].is_full_of_records.store(false, Ordering::Relaxed);
        }
        for number in 0..5 {
            set_away(&stripe, number, true);
            assert_eq!(stripe.get("a").ok().map(|bytes| bytes.len()), size);
            set_away(&stripe, number, false);
        }
    }
}

#[test]
fn a_repair_does_not_hide_the_older_version_behind_one_that_is_lost() {
    let stripe = TestStripe::new(5, 2, false);
    stripe.put("a", &bytes_of(500, 1), false).expect("written");
    leave_minority(&stripe, &[0]);
    for number in 0..5 {
        for part in stripe.files(number, false) {
            if part.to_string_lossy().contains(".600.") {
                std::fs::remove_file(part).expect("removed");
            }
        }
    }
    // It is heard only where others are away.
    set_away(&stripe, 3, true);
    set_away(&stripe, 4, true);
    let text = stripe.get("a").expect_err("its parts are lost").to_string();
    set_away(&stripe, 3, false);
    set_away(&stripe, 4, false);
    assert!(text.contains("expected 3 parts of its newest version"), "{text}");
    let upkeep = Upkeep(stripe.store.clone());
    let (url, progress) = (TestStripe::url("a"), RepairProgress::default());
    let report = upkeep.repair(&url, false, &progress).expect("looked at");
    assert_eq!(report.rebuilt_records.len(), 0);
    set_away(&stripe, 0, true);
    assert_eq!(stripe.get("a").expect("the older one").len(), 500);
}

#[test]
fn a_record_that_may_still_arrive_is_not_said_to_be_taken_back() {
    let stripe = TestStripe::new(5, 1, false);
    stripe.put("a", &bytes_of(500, 1), false).expect("written");
    for number in 2..4 {
        stripe.behaviours[number].is_full_of_records.store(true, Ordering::Relaxed);
    }
    stripe.behaviours[4].loses_answers.store(true, Ordering::Relaxed);
    let text = stripe.put("a", &bytes_of(600, 2), true).expect_err("three").to_string();
    assert!(!text.contains(TAKEN_BACK) && text.contains("may be left on s4:"), "{text}");
}

#[test]
fn servers_that_refuse_records_are_not_given_them_at_each_reading() {
    let stripe = TestStripe::new(5, 2, false);
    stripe.put("a", &bytes_of(500, 1), false).expect("written");
    leave_minority(&stripe, &[0, 1]);
    for server in &stripe.behaviours {
        server.refuses_records.store(true, Ordering::Relaxed);
        server.record_puts.store(0, Ordering::Relaxed);
    }
    // The version of the minority is seen where others are away.
    set_away(&stripe, 4, true);
    let puts = || {
        let each = stripe.behaviours.iter();
        each.map(|server| server.record_puts.load(Ordering::Relaxed)).sum::<u64>()
    };
    let events = record_trace(stripe.folder.path(), || {
        assert_eq!(stripe.get("a").expect("read").len(), 600);
        assert_eq!(puts(), 2);
        assert_eq!(stripe.get("a").expect("read").len(), 600);
        assert_eq!(puts(), 2);
    });
    assert!(events.contains("PART") && !events.contains("STRIPE_ROLLED_FORWARD"), "{events}");
}

#[test]
fn a_reader_that_is_interrupted_while_it_gives_a_record_says_so() {
    let stripe = TestStripe::new(3, 1, true);
    leave_minority(&stripe, &[0]);
    for server in &stripe.behaviours {
        server.record_puts.store(0, Ordering::Relaxed);
        server.is_deaf.store(true, Ordering::Relaxed);
    }
    let interrupt = Interrupt::current().child();
    let result = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            interrupt.enter();
            stripe.open("a").map(drop)
        });
        let is_asked = || {
            let each = stripe.behaviours.iter();
            each.map(|server| server.record_puts.load(Ordering::Relaxed)).sum::<u64>() > 0
        };
        while !is_asked() && !reader.is_finished() {
            std::thread::sleep(Duration::from_millis(2));
        }
        interrupt.set();
        reader.join().expect("no panic")
    });
    assert!(matches!(result, Err(StoreError::Interrupted { .. })), "{result:?}");
}
