//! Versions whose records a minority of servers has: of writes that failed, or of writers that died.
//!
//! Nobody can tell such a version from one that counts, once servers are away that may have its
//! record. So a reader gives its record to a majority before its bytes count, and a writer that fails
//! takes its records back.

use crate::names::record_path;
use crate::object::Object;
use crate::question::{Grace, Standing, ask_enough, present};
use crate::record::Generation;
use crate::records::{Records, majority, too_few_servers};
use crate::server::{NO_ANSWER, Server};
use crate::server_record::{Answer, Record, header_bytes, read_record, sound_bytes};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use swathe_store_api::StoreError;
use swathe_trace::{Ids, Level, event};

/// No server is waited for longer than this, where the others are enough.
const SHORT: Grace = Grace {
    least: Duration::from_secs(5),
    least_after_failure: Duration::from_secs(1),
    most: Duration::from_secs(20),
    ends: true,
};

/// Give the newest record of an object to the servers that lack it, until a majority has it, where a
/// minority has it now. It is read as it is where nobody heard contradicts it, or servers refuse to be
/// written to. `records`: what the servers say; `open`: the object that these are of.
///
/// # Errors
/// [`StoreError::Network`] if servers have an older version, and too little of the newest is left to
/// be read, or no majority gets its record.
pub(crate) fn roll_forward(
    servers: &[Arc<Server>],
    records: &Records,
    url: &str,
    open: impl FnOnce() -> Result<Object, StoreError>,
) -> Result<(), StoreError> {
    let Some(newest) = records.newest() else { return Ok(()) };
    let header = &newest.header;
    let same: Vec<&Record> = records.records().filter(|record| record.header == *header).collect();
    let each = servers.iter().zip(&records.answers).enumerate();
    let targets: Vec<_> = each
        .filter(|(_, (server, answer))| {
            server.store().is_writable()
                && answer.as_ref().is_some_and(|answer| answer.lacks(&header.generation))
        })
        .map(|(number, (server, _))| (number, server.clone()))
        .collect();
    let minimum = majority(header.layout.parts() as usize);
    if targets.is_empty() {
        return Ok(());
    }
    let is_contradicted = records.records().any(|record| record.header != *header);
    let put = || {
        if !header.is_removed {
            check_parts(&open()?)?;
        }
        put_forward(&targets, servers.len(), &header.generation, &header.path, &same)
    };
    let results = match put() {
        Ok(results) => results,
        Err(_) if !is_contradicted => return Ok(()),
        Err(error) => return Err(error),
    };
    event(Level::Usage, "STRIPE_ROLLED_FORWARD", &Ids::default(), |record| {
        record.text("OBJECT", url).text("VERSION", &header.generation.to_string());
    });
    let good = results.iter().flatten().filter(|result| result.is_ok()).count();
    if same.len() + good >= minimum || !is_contradicted {
        return Ok(());
    }
    let mut failures = records.silent(servers);
    for (number, server) in &targets {
        match &results[*number] {
            Some(Ok(())) => {}
            Some(Err(StoreError::Forbidden { .. } | StoreError::Unsupported { .. })) => {
                return Ok(());
            }
            Some(Err(error)) => failures.push(format!("{}: {error}", server.name)),
            None => failures.push(format!("{}: {NO_ANSWER}", server.name)),
        }
    }
    Err(too_few_servers(url, "its newest record on", minimum, servers.len(), &failures))
}

/// Put a record on servers, of `count` in all, where none is newer.
fn put_forward(
    targets: &[(usize, Arc<Server>)],
    count: usize,
    generation: &Generation,
    path: &str,
    same: &[&Record],
) -> Result<Vec<Option<Result<(), StoreError>>>, StoreError> {
    let (path, record) = (path.to_string(), Bytes::from(sound_bytes(same)?));
    let (generation, enough) = (generation.clone(), targets.len());
    let standing = |results: &[Option<Result<(), StoreError>>]| {
        Standing::of(results.iter().flatten().count(), 0, enough, enough)
    };
    let put = move |_, server: &Server| match read_record(server, &path, header_bytes(count)) {
        Answer::Record(record) if record.header.generation > generation => {
            let (url, version) = (server.url(), generation.to_string());
            Err(StoreError::Changed { url, version })
        }
        Answer::Failed(error) => Err(error),
        _ => server.put(&record_path(&path), &record),
    };
    Ok(ask_enough(targets, count, SHORT, standing, put))
}

/// Check that enough parts are there to read an object.
fn check_parts(object: &Object) -> Result<(), StoreError> {
    let (mut failures, enough) = (Vec::new(), object.layout().data as usize);
    let mut good = 0;
    for part in &object.parts {
        match part.open_anew() {
            Ok(_) => good += 1,
            Err(error) => failures.push(format!("{}: {error}", part.server_names())),
        }
        if good == enough {
            return Ok(());
        }
    }
    let why = format!(
        "expected {enough} parts of its newest version, whose record a minority of the servers \
         has, found {good}; {}",
        failures.join("; ")
    );
    Err(StoreError::Network { url: object.url.clone(), why })
}

/// Take the records of a write that failed back: servers get those of the version before it again, or
/// have none. The servers that may still have one of this write, and why.
pub(crate) fn take_back(
    servers: &[Arc<Server>],
    path: &str,
    generation: &Generation,
    last: &[&Record],
) -> Vec<String> {
    let count = servers.len();
    let before = match last {
        [] => None,
        last => match sound_bytes(last) {
            Ok(bytes) => Some(Bytes::from(bytes)),
            Err(error) => return vec![error.to_string()],
        },
    };
    let (path, ours) = (path.to_string(), generation.clone());
    let work = move |_, server: &Server| match read_record(server, &path, header_bytes(count)) {
        Answer::Record(record) if record.header.generation == ours => match &before {
            Some(bytes) => server.put(&record_path(&path), bytes),
            None => server.remove(&record_path(&path)),
        },
        Answer::Failed(error) => Err(error),
        _ => Ok(()),
    };
    let standing = |results: &[Option<Result<(), StoreError>>]| {
        Standing::of(results.iter().flatten().count(), 0, majority(count), count)
    };
    let results = ask_enough(&present(servers, 1), count, SHORT, standing, work);
    let each = servers.iter().zip(results);
    each.filter_map(|(server, result)| match result {
        Some(Ok(())) => None,
        Some(Err(error)) => Some(format!("{}: {error}", server.name)),
        None => Some(format!("{}: {NO_ANSWER}", server.name)),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use crate::repair_progress::RepairProgress;
    use crate::striped_sink::TAKEN_BACK;
    use crate::testing::{TestStripe, bytes_of};
    use crate::upkeep::Upkeep;
    use proptest::prelude::*;
    use std::sync::atomic::Ordering;

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
                    // Servers may be away: what it did shows in what is read.
                    drop(upkeep.repair(&url, false, &progress));
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
                Err(swathe_store_api::StoreError::NotFound { .. }) => None,
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
}
