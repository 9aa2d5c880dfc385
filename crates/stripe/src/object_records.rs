//! Which version of an object counts: what its records on all servers say.
//!
//! A record is written to all servers, and a write counts when a majority has it. So a newer version
//! cannot hide on servers that are not heard: fewer than a majority.

use crate::foreign_records::leave_out_strangers;
use crate::layout::Layout;
use crate::liveness::while_alive;
use crate::marks::{DISPUTE_MEMORY, WORK_MEMORY, compare_marks};
use crate::question::{Grace, Question, Standing, ask_enough, majority, present, with_numbers};
use crate::record_format::{GROUP_BYTES, Generation};
use crate::server::{Server, known_stripe};
use crate::server_places::{is_new, without_folders};
use crate::server_record::{Answer, EMPTY, Record, header_bytes, read_record, records_of};
use std::sync::Arc;
use std::time::Duration;
use swathe_store_api::StoreError;

/// A reader does not wait for a late server.
const READ_GRACE: Duration = Duration::from_millis(50);
const READ: Grace =
    Grace { least: READ_GRACE, least_after_failure: READ_GRACE, most: LONGEST, ends: false };
/// No server is waited for longer, also where it is needed.
const LONGEST: Duration = Duration::from_secs(20);
/// A server is late by its costs after this multiple of them.
const LATE_FACTOR: f64 = 3.0;
/// No server is waited for longer before others are asked.
const LONGEST_LATE_S: f64 = 5.0;
/// Others are preferred to a server that takes this much longer than the quickest to open a record.
const SLOW: f64 = 2.0;
/// Whoever asks all servers does, but not for one that hangs.
const ALL: Grace = Grace {
    least: Duration::from_secs(5),
    least_after_failure: Duration::from_millis(500),
    most: LONGEST,
    ends: true,
};

/// What servers say of an object; `None` of those that were not waited for.
pub(crate) struct Records {
    pub(crate) answers: Vec<Option<Answer>>,
}

/// Whether `count` servers have records, all of one version, that are a majority; so the other servers
/// are too few to hide a newer version.
fn agree(answers: &[Option<Answer>], count: usize) -> bool {
    let mut headers = records_of(answers).map(|record| &record.header);
    let Some(first) = headers.next() else { return false };
    let same = 1 + headers.filter(|other| other.generation == first.generation).count();
    let minimum = majority(first.layout.parts() as usize);
    same == count && count >= minimum && answers.len() - count < minimum
}

/// Servers in the order in which they are asked for the record of a path: first those that answer,
/// and do so soon. Which of them depends on the path, so that each server has its part of the work.
fn in_turn(mut servers: Vec<(usize, Arc<Server>)>, path: &str) -> Vec<(usize, Arc<Server>)> {
    let quickest =
        servers.iter().map(|(_, server)| opening_s(server)).fold(f64::INFINITY, f64::min);
    let shift = crc32fast::hash(path.as_bytes()) as usize % servers.len().max(1);
    servers.rotate_left(shift);
    servers.sort_by_cached_key(|(_, server)| {
        (server.has_failed(), opening_s(server) > SLOW * quickest)
    });
    servers
}

/// Seconds to open a record, by what is known of its server.
fn opening_s(server: &Server) -> f64 {
    let costs = &server.store().settings().costs;
    costs.open_s + costs.request.seconds(GROUP_BYTES as f64)
}

/// When servers that were asked for a record are late.
fn late_after(servers: &[(usize, Arc<Server>)]) -> Duration {
    let seconds = servers
        .iter()
        .map(|(_, server)| server.store().settings().costs.connect_s + opening_s(server));
    let slowest = LATE_FACTOR * seconds.fold(0.0, f64::max);
    READ_GRACE.max(Duration::from_secs_f64(slowest.min(LONGEST_LATE_S)))
}

impl Records {
    /// What servers say of an object, as [`Records::ask`]. Where they differ, or say another stripe than
    /// the remembered one, what is of another stripe is left out, and where they have none, what empty
    /// servers say that may not be mounted.
    pub(crate) fn read(servers: &[Arc<Server>], path: &str, all: bool) -> Records {
        let mut records = Records::ask(servers, path, all);
        records.excuse_new_servers(servers);
        let is_agreed = records.are_alike() && records.are_of(known_stripe(servers));
        let memory = if is_agreed { WORK_MEMORY } else { DISPUTE_MEMORY };
        if !is_agreed || records.newest().is_none() {
            let others: Vec<_> =
                servers.iter().filter(|each| each.check_stripe().is_err()).collect();
            compare_marks(servers, memory);
            if others.iter().any(|server| server.check_stripe().is_ok()) {
                // Its disk was mounted since it was left out.
                records = Records::ask(servers, path, all);
                records.excuse_new_servers(servers);
            }
            leave_out_strangers(servers, &mut records.answers);
        }
        records
    }

    /// Take servers whose folders do not exist as ones without record, where the store is new.
    fn excuse_new_servers(&mut self, servers: &[Arc<Server>]) {
        let lacks_folder = |answer: &Option<Answer>| {
            matches!(answer, Some(Answer::Failed(StoreError::NotFound { .. })))
        };
        let is_excused = self.newest().is_none()
            && self.answers.iter().any(lacks_folder)
            && self.silent(servers).len() >= majority(servers.len())
            && is_new(servers);
        if is_excused {
            let missing = self.answers.iter_mut().filter(|answer| lacks_folder(answer));
            missing.for_each(|answer| *answer = Some(Answer::Absent));
        }
    }

    /// Whether all records name a stripe, if there is one.
    fn are_of(&self, stripe: Option<String>) -> bool {
        stripe.is_none() || self.records().all(|record| record.header.stripe == stripe)
    }

    /// Whether the servers that were heard have one version, or none.
    fn are_alike(&self) -> bool {
        let mut answers = self.answers.iter().flatten();
        let first = answers.next();
        answers.all(|answer| match (first, answer) {
            (Some(Answer::Record(one)), Answer::Record(other)) => one.header == other.header,
            (Some(Answer::Absent), Answer::Absent) => true,
            _ => false,
        })
    }

    /// Ask servers for the record of an object: all with `all`, else as many as are needed to know
    /// its version, without waiting for a late one; the others are asked only if these do not agree.
    /// With `all`, one that says nothing for seconds, or failed a moment ago, is left out, if a
    /// majority of the others can say what they have.
    fn ask(servers: &[Arc<Server>], path: &str, all: bool) -> Records {
        let (count, object) = (servers.len(), path.to_string());
        let spare = majority(count) - 1;
        let least = header_bytes(count);
        if all {
            let standing = |answers: &[Option<Answer>]| {
                let replies = answers.iter().flatten();
                let good = replies.clone().filter(|answer| answer.says_what_it_has()).count();
                Standing::of(good, replies.count() - good, majority(count), count)
            };
            let work = move |_, server: &Server| {
                let answer = while_alive(server, |_| read_record(server, &object, least));
                answer.unwrap_or_else(Answer::Failed)
            };
            let answers =
                ask_enough(&present(servers, majority(count)), count, ALL, standing, work);
            return Records { answers };
        }
        let (silent, others): (Vec<_>, Vec<_>) =
            with_numbers(servers).into_iter().partition(|(_, server)| server.is_silent());
        let (useful, silent_servers) = match silent.len() > spare {
            true => (with_numbers(servers), Vec::new()),
            false => (others, silent),
        };
        let useful = in_turn(useful, path);
        let (first, rest) = useful.split_at(majority(count).min(useful.len()));
        // The checksums of one of them are enough, or none where all prove what they send.
        let are_proving = servers.iter().all(|server| server.store().is_proving());
        let with_sums = first.first().filter(|_| !are_proving).map(|(number, _)| *number);
        let work = move |number, server: &Server| {
            let more = if Some(number) == with_sums { GROUP_BYTES } else { 0 };
            read_record(server, &object, least + more)
        };
        let mut question = Question::new(count, work);
        question.ask(first);
        question.wait_for(late_after(first), |answers| {
            !answers.iter().flatten().all(|answer| matches!(answer, Answer::Record(_)))
        });
        let mut grace = READ;
        if !agree(&question.answers, first.len()) {
            question.ask(rest);
            // They were asked only now.
            grace.least = late_after(&useful);
        }
        let standing = |answers: &[Option<Answer>]| {
            let replies = answers.iter().flatten();
            let good = replies.clone().filter(|answer| answer.says_what_it_has()).count();
            // So many that the others are too few for a newer version.
            let newest = records_of(answers).max_by_key(|record| &record.header.generation);
            let width = newest.map_or(count, |record| record.header.layout.parts() as usize);
            let minimum = (count + 1).saturating_sub(majority(width)).max(1);
            Standing::of(good, replies.count() - good, minimum, count)
        };
        question.wait(grace, standing);
        if !matches!(standing(&question.answers), Standing::Enough) {
            // Without those that failed a moment ago the others are not enough.
            question.ask(&silent_servers);
            question.wait(READ, standing);
        }
        Records { answers: question.answers }
    }

    /// The records that can be read.
    pub(crate) fn records(&self) -> impl Iterator<Item = &Record> {
        records_of(&self.answers)
    }

    /// The newest version that a record is of.
    pub(crate) fn newest(&self) -> Option<&Record> {
        self.records().max_by(|one, other| one.header.generation.cmp(&other.header.generation))
    }

    /// Whether a minority has the newest version, and a server lacks it: its write failed, or goes on.
    pub(crate) fn is_disputed(&self) -> bool {
        let Some(newest) = self.newest().map(|record| &record.header) else { return false };
        let count = self.records().filter(|record| record.header == *newest).count();
        count < majority(newest.layout.parts() as usize)
            && self.answers.iter().flatten().any(|answer| answer.lacks(&newest.generation))
    }

    /// How many servers said what they have.
    pub(crate) fn count_statements(&self) -> usize {
        self.answers.iter().flatten().filter(|answer| answer.says_what_it_has()).count()
    }

    /// The newest version, if it is the one that counts, and is not that the object was removed.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; [`StoreError::Network`] if too few servers could be heard;
    /// [`StoreError::Differs`] if all records are damaged.
    pub(crate) fn current(
        &self,
        servers: &[Arc<Server>],
        url: &str,
    ) -> Result<&Record, StoreError> {
        for answer in self.answers.iter().flatten() {
            if let Answer::Failed(StoreError::Interrupted { .. }) = answer {
                return Err(StoreError::Interrupted { url: url.to_string() });
            }
        }
        let newest = self.newest();
        let width = newest.map_or(servers.len(), |record| record.header.layout.parts() as usize);
        let silent = self.silent(servers);
        if silent.len() >= majority(width) {
            let all = silent.len() == servers.len();
            if let (true, Some(Some(Answer::Failed(error)))) = (all, self.answers.first())
                && let StoreError::Forbidden { why, .. } = error
            {
                return Err(StoreError::Forbidden { url: url.to_string(), why: why.clone() });
            }
            let minimum = servers.len() - majority(width) + 1;
            return Err(too_few_servers(url, "answers of", minimum, servers.len(), &silent));
        }
        match newest {
            Some(record) if !record.header.is_removed => Ok(record),
            Some(_) => Err(StoreError::NotFound { url: url.to_string(), why: String::new() }),
            None => Err(self.without_records(servers, url)),
        }
    }

    fn without_records(&self, servers: &[Arc<Server>], url: &str) -> StoreError {
        let url = url.to_string();
        let damage = self.answers.iter().zip(servers).find_map(|(answer, server)| match answer {
            Some(Answer::Damaged(why) | Answer::Foreign(_, why)) => Some(server.message(why)),
            Some(Answer::Empty) => Some(server.message(EMPTY)),
            _ => None,
        });
        match damage {
            Some(found) => {
                StoreError::Differs { url, expected: "a record that can be read".into(), found }
            }
            None => StoreError::NotFound { url, why: without_folders(servers).unwrap_or_default() },
        }
    }

    /// The servers whose version is not known, and why. A server with a damaged record is one: the
    /// record may have been of any version.
    pub(crate) fn silent(&self, servers: &[Arc<Server>]) -> Vec<String> {
        let each = self.answers.iter().zip(servers);
        each.filter_map(|(answer, server)| match answer {
            Some(Answer::Failed(error)) => Some(server.message(error)),
            Some(Answer::Damaged(why) | Answer::Foreign(_, why)) => Some(server.message(why)),
            None => Some(server.message(server.last_failure())),
            _ => None,
        })
        .collect()
    }

    /// Check before a change that a majority of servers answers.
    ///
    /// # Errors
    /// [`StoreError::Network`] if no majority answered.
    pub(crate) fn check_majority(
        &self,
        servers: &[Arc<Server>],
        url: &str,
    ) -> Result<(), StoreError> {
        let each = self.answers.iter().zip(servers);
        let absences = each.filter_map(|(answer, server)| match answer {
            Some(Answer::Failed(error)) => Some(server.message(error)),
            None => Some(server.message(server.last_failure())),
            _ => None,
        });
        let (absences, count) = (absences.collect::<Vec<_>>(), servers.len());
        match count - absences.len() >= majority(count) {
            true => Ok(()),
            false => Err(too_few_servers(url, "answers of", majority(count), count, &absences)),
        }
    }

    /// Whether a server has a record of 0 bytes.
    pub(crate) fn has_empty(&self) -> bool {
        self.answers.iter().flatten().any(|answer| matches!(answer, Answer::Empty))
    }

    /// The newest record, if a majority has it and all servers say what they have.
    pub(crate) fn certain(&self, servers: &[Arc<Server>]) -> Option<&Record> {
        let newest = self.newest()?;
        let count = self.records().filter(|record| record.header == newest.header).count();
        (count >= majority(servers.len()) && self.silent(servers).is_empty()).then_some(newest)
    }

    /// Whether a majority has the record that the object was removed, and all servers answer. Some
    /// records may be damaged: they are too few for a newer version.
    pub(crate) fn is_removal_certain(&self, servers: &[Arc<Server>]) -> bool {
        let Some(newest) = self.newest().filter(|record| record.header.is_removed) else {
            return false;
        };
        let count = self.records().filter(|record| record.header == newest.header).count();
        let all_answer = self.answers.iter().all(|answer| {
            matches!(answer, Some(answer) if answer.says_what_it_has() || answer.is_damaged())
        });
        count >= majority(servers.len()) && all_answer
    }

    /// The layout and version of the newest record, for the next.
    pub(crate) fn newest_version(&self) -> Option<(Generation, Layout)> {
        self.newest().map(|record| (record.header.generation.clone(), record.header.layout))
    }
}

/// The error that fewer servers than `minimum` of `count` did what was expected; `failures` says why
/// each of the others did not.
pub(crate) fn too_few_servers(
    url: &str,
    expected: &str,
    minimum: usize,
    count: usize,
    failures: &[String],
) -> StoreError {
    let found = count - failures.len();
    let why = format!(
        "expected {expected} {minimum} of {count} servers, found {found}; {}",
        failures.join("; ")
    );
    StoreError::Network { url: url.to_string(), why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestStripe, bytes_of, flip};
    use std::fs;
    use std::sync::atomic::Ordering;

    /// The servers that are the first to be asked for a path.
    fn first_servers(stripe: &TestStripe, path: &str) -> Vec<usize> {
        let order = in_turn(with_numbers(&stripe.store.servers), path);
        order.iter().take(3).map(|(number, _)| *number).collect()
    }

    #[test]
    fn a_reader_asks_as_few_servers_as_are_enough_and_all_in_turn() {
        let stripe = TestStripe::new(5, 1, true);
        for number in 0..12 {
            let path = format!("frame-{number}");
            stripe.put(&path, &bytes_of(100, number), false).expect("written");
            let mut first = first_servers(&stripe, &path);
            first.sort_unstable();
            // On a machine with other work, one may be late.
            let is_seen = (0..10).any(|_| {
                let each = stripe.behaviours.iter();
                each.for_each(|server| server.opens.store(0, Ordering::Relaxed));
                let records = Records::read(&stripe.store.servers, &path, false);
                let answers = records.answers.iter().enumerate();
                let numbers =
                    answers.filter_map(|(number, answer)| answer.as_ref().map(|_| number));
                numbers.collect::<Vec<_>>() == first && stripe.opens() == 3
            });
            assert!(is_seen, "{path}");
        }
        let leaders = (0..12).map(|number| first_servers(&stripe, &format!("frame-{number}"))[0]);
        assert_eq!(leaders.collect::<std::collections::HashSet<_>>().len(), 5);
    }

    #[test]
    fn a_version_that_a_majority_has_is_never_missed() {
        let stripe = TestStripe::new(5, 1, true);
        stripe.put("a", &bytes_of(100, 1), false).expect("written");
        let old = fs::read(stripe.record(0)).expect("read");
        stripe.put("a", &bytes_of(200, 2), true).expect("written");
        let new = fs::read(stripe.record(0)).expect("read");
        for (one, other) in (0..5).flat_map(|one| (0..one).map(move |other| (one, other))) {
            for without in [Some(&old), None] {
                for server in [one, other] {
                    let path = stripe.record(server);
                    without
                        .map_or_else(|| fs::remove_file(&path), |old| fs::write(&path, old))
                        .expect("changed");
                    let source = stripe.open("a").expect("open");
                    assert_eq!(source.len(), 200, "without {one} {other}");
                }
                for server in [one, other] {
                    let path = stripe.folder.path().join(format!("s{server}/a.stripe"));
                    fs::write(path, &new).expect("written");
                }
            }
        }
    }

    #[test]
    fn a_server_that_hangs_does_not_keep_others_from_being_asked() {
        let stripe = TestStripe::new(5, 1, true);
        let bytes = bytes_of(10_000, 1);
        stripe.put("a", &bytes, false).expect("written");
        let number = first_servers(&stripe, "a")[0];
        let hanging = &stripe.behaviours[number].is_hanging;
        hanging.store(true, Ordering::Relaxed);
        assert_eq!(stripe.open("a").expect("open").len(), 10_000);
        // From now on it is the last.
        assert!(!first_servers(&stripe, "a").contains(&number));
        assert_eq!(stripe.open("a").expect("open").len(), 10_000);
        hanging.store(false, Ordering::Relaxed);
    }

    #[test]
    fn a_damaged_record_leaves_time_for_those_who_are_asked_then() {
        let stripe = TestStripe::new(5, 1, true);
        stripe.put("a", &bytes_of(100_000, 1), false).expect("written");
        let first = first_servers(&stripe, "a");
        flip(&stripe.record(first[0]), 30);
        // One of the last two is needed, and takes longer than a late server is waited for.
        for server in 0..5 {
            let delay = if first.contains(&server) { 0 } else { 3 * READ_GRACE.as_millis() as u64 };
            stripe.behaviours[server].open_delay_ms.store(delay, Ordering::Relaxed);
        }
        assert_eq!(stripe.open("a").expect("open").len(), 100_000);
    }

    #[test]
    fn checksums_that_are_damaged_are_read_from_others() {
        let stripe = TestStripe::new(5, 1, true);
        let bytes = bytes_of(100_000, 1);
        stripe.put("a", &bytes, false).expect("written");
        let first = first_servers(&stripe, "a");
        for server in &first {
            let path = stripe.record(*server);
            let length = fs::metadata(&path).expect("there").len() as usize;
            flip(&path, length - 9);
            assert!(stripe.get("a").expect("read") == bytes, "{server} of {first:?}");
        }
    }
}
