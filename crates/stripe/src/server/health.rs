//! What this process knows of the state of a server.

use super::{ANSWER_LIMIT, HANG, NO_ANSWER, Server};
use crate::liveness::Living;
use crate::names::bare_name;
use crate::record_format::Generation;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use swathe_store_api::StoreError;

/// A server that failed is left out where others are enough, and asked again after this time.
const PAUSE: Duration = Duration::from_secs(5);
/// How long one that failed before may take to answer while it is written to.
const FAILED_WRITE_LIMIT: Duration = Duration::from_millis(500);

/// How many failures of its parts are remembered.
const MOST_PART_FAILURES: usize = 256;
/// After a search in vain, parts that a server does not have are only looked for on others after this
/// time, or where they are needed.
const SEARCH_MEMORY: Duration = Duration::from_secs(60);
/// For how long a server that refused a record is not given one by a reader.
const REFUSAL_MEMORY: Duration = Duration::from_secs(600);

/// Whether a server failed.
#[derive(Debug, Default)]
pub(crate) struct Health {
    pub(crate) failed_at: Option<Instant>,
    /// Why, if it said so.
    why: Option<String>,
    /// The versions whose parts it could not take, and why: the last of them.
    part_failures: VecDeque<(Generation, String)>,
    /// When parts that it does not have were last looked for on others, and whether they were found.
    last_search: Option<(Instant, bool)>,
    /// Whether all that is known is that a reader did not wait for it.
    pub(crate) is_late: bool,
    /// Whether it said nothing for seconds.
    pub(crate) is_hanging: bool,
    /// Whether it is being asked again.
    pub(crate) is_asked: bool,
    /// A file that it was asked for.
    pub(crate) path: String,
    /// When its folder was there.
    pub(crate) folder_seen_at: Option<Instant>,
    /// When it refused a record of a reader, unless it took one since.
    refused_at: Option<Instant>,
}

impl Health {
    /// That of a server, by its name and URL: one per process.
    pub(crate) fn of(key: &str) -> Arc<Mutex<Health>> {
        static ALL: Mutex<BTreeMap<String, Arc<Mutex<Health>>>> = Mutex::new(BTreeMap::new());
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(key.to_string()).or_default().clone()
    }
}

impl Server {
    pub(super) fn lock(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it failed, and did not answer since. After a while it is asked again, beside the work.
    pub(crate) fn is_silent(self: &Arc<Server>) -> bool {
        let mut health = self.lock();
        let Some(failed_at) = health.failed_at else { return false };
        if failed_at.elapsed() > PAUSE && !health.is_asked {
            let (server, path) = (self.clone(), health.path.clone());
            let again = std::thread::Builder::new().name("swathe-server".into()).spawn(move || {
                drop(catch_unwind(AssertUnwindSafe(|| server.ask_again(&path))));
                server.lock().is_asked = false;
            });
            health.is_asked = again.is_ok();
        }
        true
    }

    fn ask_again(&self, path: &str) {
        let open = || self.at(path, |name| self.store.open(name));
        let result = self.within(ANSWER_LIMIT, |_| open());
        self.learn(path, &result);
    }

    /// Whether it said nothing for seconds, and did not answer since; as [`Server::is_silent`]. To ask
    /// one that refuses costs no time.
    pub(crate) fn is_away(self: &Arc<Server>) -> bool {
        self.is_watched() && self.is_silent() && self.lock().is_hanging
    }

    /// Remember that it said nothing for seconds.
    pub(crate) fn note_hang(&self) {
        self.note_failure();
        let mut health = self.lock();
        (health.is_hanging, health.why) = (true, None);
    }

    /// Remember that it failed after some time.
    pub(crate) fn note_failure_after(&self, time: Duration) {
        if time < HANG { self.note_failure() } else { self.note_hang() }
    }

    /// Whether it failed when it was last asked, or was late.
    pub(crate) fn has_failed(&self) -> bool {
        self.lock().failed_at.is_some()
    }

    /// Whether it failed when it was last asked.
    pub(crate) fn is_known_to_fail(&self) -> bool {
        let health = self.lock();
        health.failed_at.is_some() && !health.is_late
    }

    /// The error that it failed a moment ago, and is not asked now.
    pub(crate) fn absence(&self) -> StoreError {
        StoreError::Network { url: self.url(), why: self.last_failure() }
    }

    /// Why it failed when it was last asked: that it gave no answer, if it did not say.
    pub(crate) fn last_failure(&self) -> String {
        self.lock().why.clone().unwrap_or_else(|| NO_ANSWER.into())
    }

    /// Remember why it could not take its part of a version.
    pub(crate) fn note_part_failure(&self, generation: &Generation, why: String) {
        let failures = &mut self.lock().part_failures;
        failures.truncate(MOST_PART_FAILURES - 1);
        failures.push_front((generation.clone(), why));
    }

    /// Why it could not take its part of a version, if that was of late, and is known here.
    pub(crate) fn part_failure(&self, generation: &Generation) -> Option<String> {
        let health = self.lock();
        let mut failures = health.part_failures.iter();
        failures.find(|(other, _)| other == generation).map(|(_, why)| why.clone())
    }

    /// Whether its disk may be on another server: parts of it were found there, or not looked for of
    /// late.
    pub(crate) fn may_be_in_another_place(&self) -> bool {
        self.lock().last_search.is_none_or(|(at, found)| found || at.elapsed() > SEARCH_MEMORY)
    }

    /// Remember whether a part that it does not have was found on another server.
    pub(crate) fn note_search(&self, found: bool) {
        self.lock().last_search = Some((Instant::now(), found));
    }

    /// Why its part of some work was not done, with its name; `None` if it was. `result`: what it
    /// said, if anything.
    pub(crate) fn failure<T>(&self, result: Option<&Result<T, StoreError>>) -> Option<String> {
        match result {
            Some(Ok(_)) => None,
            Some(Err(error)) => Some(self.message(error)),
            None => Some(self.message(self.last_failure())),
        }
    }

    /// `why`, with its name: `disk1: connection refused`.
    pub(crate) fn message(&self, why: impl Display) -> String {
        format!("{}: {why}", bare_name(&self.name))
    }

    /// Whether it refused a record of a reader a while ago.
    pub(crate) fn refuses_records(&self) -> bool {
        self.lock().refused_at.is_some_and(|at| at.elapsed() < REFUSAL_MEMORY)
    }

    /// Remember whether it took or refused a record of a reader.
    pub(crate) fn learn_refusal(&self, result: &Result<(), StoreError>) {
        match result {
            Ok(()) => self.lock().refused_at = None,
            Err(StoreError::Forbidden { .. } | StoreError::Unsupported { .. }) => {
                self.lock().refused_at = Some(Instant::now());
            }
            Err(_) => {}
        }
    }

    /// Remember that it failed.
    pub(crate) fn note_failure(&self) {
        let mut health = self.lock();
        (health.failed_at, health.is_late) = (Some(Instant::now()), false);
    }

    /// Remember that it was later than a reader waits.
    pub(crate) fn note_late(&self) {
        let mut health = self.lock();
        health.is_late |= health.failed_at.is_none();
        health.failed_at = Some(Instant::now());
    }

    pub(super) fn learn<T>(&self, path: &str, result: &Result<T, StoreError>) {
        let mut health = self.lock();
        match result {
            Err(StoreError::Network { why, .. }) => {
                (health.failed_at, health.is_late) = (Some(Instant::now()), false);
                health.why = Some(why.clone());
                health.is_hanging = why.starts_with(NO_ANSWER);
                health.path = path.to_string();
            }
            Err(StoreError::Interrupted { .. }) => {}
            _ => {
                (health.failed_at, health.is_late, health.is_hanging) = (None, false, false);
                health.why = None;
            }
        }
    }
}

impl Living for Server {
    /// A machine knows what its disks do, and what a bucket is asked has limits of its own.
    fn is_watched(&self) -> bool {
        !self.store.is_local() && !self.store.is_bucket()
    }

    fn has_failed(&self) -> bool {
        self.is_known_to_fail()
    }

    fn is_alive(&self) -> bool {
        let limit = if Living::has_failed(self) { FAILED_WRITE_LIMIT } else { ANSWER_LIMIT };
        !matches!(self.has_folder_within(limit), Err(StoreError::Network { .. }))
    }

    fn silence_error(&self) -> StoreError {
        self.note_hang();
        self.absence()
    }
}
