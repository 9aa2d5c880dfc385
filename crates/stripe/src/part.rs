//! A part of an open object: opened when it is first read.

use crate::names::bare_name;
use crate::part_costs::{Ask, PartCosts};
use crate::question::ask_all;
use crate::record_format::PartEntry;
use crate::server::Server;
use std::fmt::Display;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use swathe_store_api::{Interrupt, Source, StoreError, Traffic, Version};

/// A part that was not found on other servers is not looked for there again before.
const SEARCH_PAUSE: Duration = Duration::from_secs(5);

/// A part is found on another server at most so often while its object is open.
const MOST_MOVES: u32 = 16;

/// A part is opened anew at most so often while its object is open, as after repairs.
const MOST_REOPENS: u32 = 100;

/// A part, and what is known of it.
pub(crate) struct Part {
    path: String,
    size: u64,
    version: Option<Version>,
    /// The server that it was written to, else those that it may have been moved to.
    servers: Vec<Arc<Server>>,
    /// The name of the server that it was written to.
    server_name: String,
    /// The others, where it may be if the disks of two servers were exchanged.
    others: Vec<Arc<Server>>,
    /// The server that had it when it was last opened.
    place: Mutex<Option<Arc<Server>>>,
    /// How often it was found on another server than it was opened on before.
    moves: AtomicU32,
    /// How often it was opened anew, since its file was another one.
    reopens: AtomicU32,
    /// When it was last looked for on the other servers, and not found.
    last_search: Mutex<Option<Instant>>,
    state: Mutex<State>,
    proof: Mutex<Proof>,
}

/// The part as a source whose answers are proven.
enum Proof {
    /// Not tried yet.
    Untried,
    /// Its server proves them.
    Given(Arc<dyn Source>),
    /// It did not.
    Lacking,
}

enum State {
    /// Not opened yet.
    Closed,
    /// Open; `is_assumed`: without asking.
    Open { source: Arc<dyn Source>, is_assumed: bool },
    /// Its server failed, and why: it may be read again when that answers.
    Failed(String),
    /// Its server does not have it, and why: it may be on another one.
    Missing(String),
    /// It cannot be read, and why.
    Lost(String),
}

impl Part {
    /// A part of `size` bytes, by its entry in the record.
    pub(crate) fn new(path: String, size: u64, entry: &PartEntry, servers: &[Arc<Server>]) -> Part {
        let (own, others): (Vec<_>, Vec<_>) =
            servers.iter().cloned().partition(|server| server.name == entry.server);
        let (servers, others) = if own.is_empty() { (others, own) } else { (own, others) };
        let version = entry.version.as_deref().and_then(|version| {
            let (size, tag) = version.split_once(' ')?;
            Some(Version { size: size.parse().ok()?, tag: tag.to_string() })
        });
        Part {
            path,
            size,
            version,
            servers,
            server_name: entry.server.clone(),
            others,
            place: Mutex::default(),
            moves: AtomicU32::new(0),
            reopens: AtomicU32::new(0),
            last_search: Mutex::default(),
            state: Mutex::new(State::Closed),
            proof: Mutex::new(Proof::Untried),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self) -> MutexGuard<'_, Option<Arc<Server>>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server that has it, once it was opened; before that those it may be on.
    pub(crate) fn places(&self) -> Vec<Arc<Server>> {
        match &*self.place() {
            Some(server) => vec![server.clone()],
            None => self.servers.clone(),
        }
    }

    /// Whether it may be read: it is not lost, and its server did not just fail.
    pub(crate) fn is_usable(&self) -> bool {
        match &*self.lock() {
            State::Lost(_) | State::Missing(_) => false,
            _ => !self.is_silent(),
        }
    }

    fn is_silent(&self) -> bool {
        self.are_places(Server::is_silent)
    }

    /// Whether to ask for it would only take time: it is lost, or its server said nothing for seconds.
    pub(crate) fn is_away(&self) -> bool {
        matches!(&*self.lock(), State::Lost(_)) || self.are_places(Server::is_away)
    }

    /// Whether that is so of all servers that it may be on.
    fn are_places(&self, is_so: impl Fn(&Arc<Server>) -> bool) -> bool {
        match &*self.place() {
            Some(server) => is_so(server),
            None => self.servers.iter().all(is_so),
        }
    }

    /// Why it is lost.
    pub(crate) fn loss(&self) -> Option<String> {
        match &*self.lock() {
            State::Lost(why) | State::Missing(why) | State::Failed(why) => Some(self.message(why)),
            _ => None,
        }
    }

    /// Whether it is not lost.
    pub(crate) fn is_there(&self) -> bool {
        match &*self.lock() {
            State::Lost(_) | State::Missing(_) => false,
            State::Failed(_) => !self.is_silent(),
            _ => true,
        }
    }

    /// The name of the server that has it, or that it was written to.
    pub(crate) fn server_name(&self) -> String {
        self.place().as_ref().map_or_else(|| self.server_name.clone(), |server| server.name.clone())
    }

    /// Why its server failed when it was last asked.
    pub(crate) fn server_failure(&self) -> String {
        let places = self.places();
        let mut failures: Vec<String> = places.iter().map(|server| server.last_failure()).collect();
        failures.dedup();
        failures.join("; ")
    }

    /// `why`, with its path and server.
    pub(crate) fn message(&self, why: impl Display) -> String {
        format!("{} on {}: {why}", self.path, bare_name(&self.server_name()))
    }

    /// Its path on its server.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Whether it is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.are_places(|server| server.store().is_local())
    }

    /// Seconds to read some of its bytes, roughly, by what is known of its server now.
    pub(crate) fn estimate_s(&self, asks: &[Ask]) -> f64 {
        if let Some(source) = self.source() {
            return PartCosts::of_source(&*source).estimate_s(asks);
        }
        let places = self.places();
        let store = places.first().map(|server| server.store());
        store.map_or(0.0, |store| PartCosts::of_store(&**store).estimate_s(asks))
    }

    /// Whether the last connection to its server failed; requests may be waiting to retry.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.are_places(|server| server.store().is_unreachable())
    }

    /// Remember that its server failed a moment ago.
    pub(crate) fn note_failure(&self) {
        self.places().iter().for_each(|server| server.note_failure());
    }

    /// From now on it is not read.
    pub(crate) fn lose(&self, why: &StoreError) {
        let text = why.to_string();
        *self.lock() = match why {
            StoreError::Network { .. } => {
                self.note_failure();
                State::Failed(text)
            }
            StoreError::NotFound { .. } => State::Missing(text),
            _ => State::Lost(text),
        };
    }

    /// Open it, if it is not yet.
    pub(crate) fn open(&self) -> Result<Arc<dyn Source>, StoreError> {
        if let State::Open { source, .. } = &*self.lock() {
            return Ok(source.clone());
        }
        if let (Some(version), [server]) = (&self.version, &self.servers[..])
            && version.size == self.size
        {
            // The version may be of another way to the file. Nobody writes over a part, and all that
            // is read is compared with checksums.
            let source = match server.assume(&self.path, version.clone())? {
                None => server.assume_size(&self.path, self.size)?,
                source => source,
            };
            if let Some(source) = source {
                *self.lock() = State::Open { source: source.clone(), is_assumed: true };
                return Ok(source);
            }
        }
        self.open_anew()
    }

    fn proof(&self) -> MutexGuard<'_, Proof> {
        self.proof.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The part at the version in the record, if its server verifies all that it sends and tells a
    /// checksum of it: then any bytes of it can be read, without those around them.
    pub(crate) fn proof_source(&self) -> Option<Arc<dyn Source>> {
        let mut proof = self.proof();
        match &*proof {
            Proof::Given(source) => return Some(source.clone()),
            Proof::Lacking => return None,
            Proof::Untried => {}
        }
        let (Some(version), [server]) = (&self.version, &self.servers[..]) else { return None };
        if version.size != self.size {
            return None;
        }
        // Why it cannot be is reported when it is opened.
        let source = server.assume_with_proof(&self.path, version.clone()).ok().flatten()?;
        *proof = Proof::Given(source.clone());
        Some(source)
    }

    /// From now on it is compared with checksums.
    pub(crate) fn distrust(&self) {
        *self.proof() = Proof::Lacking;
    }

    /// Open it by asking its server. Also if that finds it with another version, as when it was
    /// copied to a new server: each read is checked.
    pub(crate) fn open_anew(&self) -> Result<Arc<dyn Source>, StoreError> {
        let mut last = None;
        let elsewhere = self.place_elsewhere();
        for server in elsewhere.iter().chain(&self.servers) {
            match server.open(&self.path) {
                Ok(source) if source.len() == self.size => {
                    *self.place() = Some(server.clone());
                    *self.lock() = State::Open { source: source.clone(), is_assumed: false };
                    return Ok(source);
                }
                Ok(source) => {
                    let (url, found) = (source.url().to_string(), source.len().to_string());
                    let expected = format!("{} bytes", self.size);
                    last = Some(StoreError::Differs { url, expected, found });
                }
                // It may be on the server that does not answer.
                Err(error) => {
                    if let StoreError::Damaged { .. } = error {
                        *self.place() = Some(server.clone());
                    }
                    let is_absence = matches!(last, None | Some(StoreError::NotFound { .. }));
                    last = if is_absence { Some(error) } else { last };
                }
            }
        }
        let absence = |why: String| StoreError::NotFound { url: self.path.clone(), why };
        Err(match last {
            Some(StoreError::NotFound { .. }) if !self.is_server_known() => {
                let own = bare_name(&self.server_name);
                absence(format!(": its server {own} is not in this store, and no other has it"))
            }
            Some(error) => error,
            None => absence(String::new()),
        })
    }

    /// Whether it is worth looking for it on the other servers now: its own does not have it, and parts
    /// of that were found elsewhere, or not looked for a moment ago.
    pub(crate) fn may_be_elsewhere(&self) -> bool {
        let own = self.servers.first();
        matches!(&*self.lock(), State::Missing(_))
            && own.is_some_and(|own| own.may_be_in_another_place())
    }

    /// Open it without asking for its version, as its server refuses to open it with damaged bytes at its
    /// beginning: all that is read is compared with checksums.
    pub(crate) fn open_despite_damage(&self) -> Result<Arc<dyn Source>, StoreError> {
        for server in self.places() {
            if let Some(source) = server.assume_size(&self.path, self.size)? {
                *self.lock() = State::Open { source: source.clone(), is_assumed: false };
                return Ok(source);
            }
        }
        self.open()
    }

    /// Look for it on the other servers, unless that was in vain a moment ago; true if one has it. The
    /// server that had it does not have it any more, or does not say.
    pub(crate) fn find_elsewhere(&self) -> bool {
        let lock = || self.last_search.lock().unwrap_or_else(PoisonError::into_inner);
        let was_searched = lock().is_some_and(|at| at.elapsed() < SEARCH_PAUSE);
        if was_searched || self.others.is_empty() || self.move_count() >= MOST_MOVES {
            return false;
        }
        let before = self.holder().or_else(|| self.servers.first().cloned());
        // Also on its own, if it was found elsewhere: the disks may be back.
        let answering: Vec<_> = self
            .servers
            .iter()
            .chain(&self.others)
            .filter(|server| !before.as_ref().is_some_and(|before| Arc::ptr_eq(before, server)))
            .filter(|server| !server.is_away())
            .cloned()
            .collect();
        let (path, size) = (self.path.clone(), self.size);
        // A server that refuses it because of damage at its beginning has it.
        let sources = ask_all(&answering, move |_, server| match server.open(&path) {
            Err(StoreError::Damaged { .. }) => server.assume_size(&path, size),
            result => result.map(Some),
        });
        if Interrupt::current().is_set() {
            return false;
        }
        let is_it = |source: &Arc<dyn Source>| source.len() == self.size;
        let found = answering
            .into_iter()
            .zip(sources)
            .find_map(|(server, source)| Some((server, source.ok().flatten().filter(is_it)?)));
        if let Some(own) = self.servers.first() {
            own.note_search(found.is_some());
        }
        let Some((server, source)) = found else {
            *lock() = Some(Instant::now());
            return false;
        };
        self.distrust();
        *self.place() = Some(server);
        *self.lock() = State::Open { source, is_assumed: false };
        self.moves.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// How often it was found on another server.
    pub(crate) fn move_count(&self) -> u32 {
        self.moves.load(Ordering::Relaxed)
    }

    /// The server that has it, or had it when it was last opened, if it was.
    pub(crate) fn holder(&self) -> Option<Arc<Server>> {
        self.place().clone()
    }

    /// It was written to a server.
    pub(crate) fn set_holder(&self, server: &Arc<Server>) {
        *self.place() = Some(server.clone());
    }

    /// The server that it was found on, if that is another than the one it was written to.
    fn place_elsewhere(&self) -> Option<Arc<Server>> {
        self.holder().filter(|found| self.others.iter().any(|other| Arc::ptr_eq(other, found)))
    }

    /// That it is on another server than the one it was written to, if it was found there.
    pub(crate) fn move_message(&self) -> Option<String> {
        let (found, own) = (self.place_elsewhere()?, self.servers.first()?);
        let (own, found) = (bare_name(&own.name), bare_name(&found.name));
        Some(format!(
            "{} is on {found}, and was written to {own}; were their disks exchanged?",
            self.path
        ))
    }

    /// Whether the server that it was written to is one of the store.
    fn is_server_known(&self) -> bool {
        self.servers.iter().any(|server| server.name == self.server_name)
    }

    /// Whether it was opened without asking: then its first read may find it changed.
    pub(crate) fn is_assumed(&self) -> bool {
        matches!(&*self.lock(), State::Open { is_assumed: true, .. })
    }

    /// Open it anew after a read found another file than was opened, as one that was repaired. Nobody
    /// changes a part, so that all of it is compared with checksums.
    pub(crate) fn reopen(&self) -> bool {
        self.reopens.fetch_add(1, Ordering::Relaxed) < MOST_REOPENS
            && (self.open_anew().is_ok() || self.open_despite_damage().is_ok())
    }

    /// Whether it is open in another way than this one, which was not asked for its version.
    pub(crate) fn is_open_anew(&self, before: &Arc<dyn Source>) -> bool {
        matches!(&*self.lock(), State::Open { source, is_assumed: false }
            if !Arc::ptr_eq(source, before))
    }

    /// Traffic since the last call.
    pub(crate) fn take_traffic(&self) -> Traffic {
        let mut traffic = Traffic::default();
        self.sources().for_each(|source| traffic.add(source.take_traffic()));
        traffic
    }

    /// A source that is open.
    pub(crate) fn source(&self) -> Option<Arc<dyn Source>> {
        self.sources().next()
    }

    fn sources(&self) -> impl Iterator<Item = Arc<dyn Source>> {
        let open = match &*self.lock() {
            State::Open { source, .. } => Some(source.clone()),
            _ => None,
        };
        let other = match &*self.proof() {
            Proof::Given(source) => Some(source.clone()),
            _ => None,
        };
        open.into_iter().chain(other)
    }
}

#[cfg(test)]
mod tests {
    use crate::reports::PieceState;
    use crate::server::Server;
    use crate::striped_store::StripedStore;
    use crate::testing::{TestStripe, bytes_of, flip, with_settings};
    use crate::upkeep::Upkeep;
    use std::sync::Arc;
    use swathe_store_api::{Store, StoreSettings};
    use swathe_trace::testing::record_trace;

    /// The same folders as servers of other names.
    fn rename_servers(stripe: &mut TestStripe) {
        let rename = |(number, server): (usize, &Arc<Server>)| {
            let settings = server.store().settings().clone();
            let settings = StoreSettings { name: format!("ng{number}"), ..settings };
            Arc::new(Server::new(with_settings(stripe, number, settings), ""))
        };
        let servers = stripe.store.servers.iter().enumerate().map(rename).collect();
        stripe.store = StripedStore::of_servers(stripe.store.settings().clone(), servers);
    }

    #[test]
    fn damage_of_a_part_that_was_moved_names_the_server_that_has_it() {
        let mut stripe = TestStripe::new(3, 1, false);
        let bytes = bytes_of(100_000, 4);
        stripe.put("a", &bytes, false).expect("written");
        rename_servers(&mut stripe);
        flip(&stripe.part(1), 5000);
        let events = record_trace(stripe.folder.path(), || {
            assert!(stripe.get("a").expect("read") == bytes);
        });
        let damages: Vec<&str> =
            events.lines().filter(|line| line.contains("STRIPE_DAMAGE")).collect();
        assert!(!damages.is_empty(), "{events}");
        assert!(damages.iter().all(|line| line.contains(" SERVER=ng1: ")), "{damages:?}");
        let notes = {
            let source = stripe.open("a").expect("open");
            source.read_exact_at(0, &mut vec![0; bytes.len()]).expect("read");
            source.take_notes()
        };
        assert!(notes.iter().any(|note| note.contains(" on ng1:")), "{notes:?}");
        let report = Upkeep(stripe.store).check(&TestStripe::url("a"), true).expect("checked");
        let parts: Vec<_> =
            report.parts.iter().map(|part| (part.server.as_str(), part.state)).collect();
        let (whole, damaged) = (PieceState::Whole, PieceState::Damaged);
        assert_eq!(parts, [("ng0:", whole), ("ng1:", damaged), ("ng2:", whole)]);
    }

    #[test]
    fn a_lost_part_names_the_server_that_is_no_longer_in_the_store() {
        let mut stripe = TestStripe::new(3, 1, false);
        stripe.put("a", &bytes_of(100_000, 4), false).expect("written");
        let part = stripe.part(1);
        rename_servers(&mut stripe);
        std::fs::remove_file(part).expect("removed");
        let report = Upkeep(stripe.store).check(&TestStripe::url("a"), true).expect("checked");
        let lost = &report.parts[1];
        assert_eq!((lost.server.as_str(), lost.state), ("s1:", PieceState::Missing));
        let why = lost.why.as_deref().expect("a reason");
        assert!(why.contains("its server s1 is not in this store, and no other has it"), "{why}");
    }

    #[test]
    fn a_failure_of_a_part_that_was_moved_is_not_one_of_other_servers() {
        let mut stripe = TestStripe::new(3, 1, true);
        let bytes = bytes_of(100_000, 4);
        stripe.put("a", &bytes, false).expect("written");
        rename_servers(&mut stripe);
        let source = stripe.open("a").expect("open");
        let mut first = vec![0; bytes.len()];
        source.read_exact_at(0, &mut first).expect("read");
        stripe.kill(2, true);
        let mut again = vec![0; bytes.len()];
        source.read_exact_at(0, &mut again).expect("rebuilt");
        assert!(first == bytes && again == bytes);
        let servers = stripe.store.servers.iter();
        let silent: Vec<bool> = servers.map(|server| server.is_silent()).collect();
        assert_eq!(silent, [false, false, true]);
    }
}
