//! One of the places that a striped store keeps its parts in.

mod health;
mod identity;
mod listing;

use crate::liveness::while_alive;
use crate::record_format::Header;
use bytes::Bytes;
use health::Health;
use identity::Identity;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use swathe_store::ObjectWriter;
use swathe_store_api::{
    Failure, Interrupt, ObjectName, Retry, Room, Source, Space, Store, StoreError, Stores, Version,
};

pub(crate) use identity::{MARK_PATH, Strangeness, known_stripe};
pub(crate) use listing::ServerItem;

/// How long a server may say nothing before it counts as one that gives no answer,
const ANSWER_LIMIT: Duration = Duration::from_secs(8);
/// and one that failed when it was last asked.
const FAILED_ANSWER_LIMIT: Duration = Duration::from_secs(1);
/// A server that fails after this time hangs.
const HANG: Duration = Duration::from_secs(2);
/// For how long a folder of a server is there once it was seen.
const FOLDER_MEMORY: Duration = Duration::from_secs(5);
/// What the error of a server begins with that said nothing in time.
pub(crate) const NO_ANSWER: &str = "no answer";
/// Attempts to write a small object.
const ATTEMPTS: u32 = 4;

/// A store, or a folder of one.
#[derive(Debug)]
pub(crate) struct Server {
    store: Arc<dyn Store>,
    /// Only this store.
    stores: Stores,
    prefix: String,
    /// What users and records call it: `NAME:prefix`.
    pub(crate) name: String,
    health: Arc<Mutex<Health>>,
    identity: Mutex<Identity>,
    /// Whether its folder may be made: no server of the store has an object yet.
    is_new: AtomicBool,
    /// Parts that are read from it at this moment.
    readers: AtomicU32,
}

/// One who reads a part from a server.
pub(crate) struct ServerReader<'a> {
    server: &'a Server,
    /// How many read from the server when this one began, with it.
    pub(crate) number: u32,
}

impl Drop for ServerReader<'_> {
    fn drop(&mut self) {
        self.server.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Server {
    /// A folder of a store that has a name; an empty prefix is its root.
    pub(crate) fn new(store: Arc<dyn Store>, prefix: &str) -> Server {
        let prefix = match prefix.trim_matches('/') {
            "" => String::new(),
            prefix => format!("{prefix}/"),
        };
        let name = format!("{}:{prefix}", store.settings().name);
        let stores = Stores::new(Vec::new(), swathe_store::connect).with(store.clone());
        let health = Health::of(&format!("{name} {}", store.display_url(&store.url_of(&prefix))));
        let (identity, is_new) = (Mutex::default(), AtomicBool::new(false));
        let readers = AtomicU32::new(0);
        Server { store, stores, prefix, name, health, identity, is_new, readers }
    }

    /// Count one more who reads from it.
    pub(crate) fn enter_reader(&self) -> ServerReader<'_> {
        let number = self.readers.fetch_add(1, Ordering::Relaxed) + 1;
        ServerReader { server: self, number }
    }

    /// What is known of its stripe.
    pub(crate) fn identity(&self) -> MutexGuard<'_, Identity> {
        self.identity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store that it is a folder of.
    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Only this store, for objects by their names.
    pub(crate) fn stores(&self) -> &Stores {
        &self.stores
    }

    /// As users may see it.
    pub(crate) fn url(&self) -> String {
        self.store.display_url(&self.store.url_of(&self.prefix))
    }

    /// Its path on its server or machine, with a slash at the end.
    pub(crate) fn path(&self) -> String {
        let url = self.store.url_of(&self.prefix);
        let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
        let path = rest.find('/').map_or("", |at| &rest[at..]);
        format!("{}/", path.trim_end_matches('/'))
    }

    fn at<T>(&self, path: &str, work: impl FnOnce(ObjectName<'_>) -> T) -> T {
        let path = format!("{}{path}", self.prefix);
        let full_name = format!("{}:{path}", self.store.settings().name);
        work(ObjectName { url: &self.store.url_of(&path), qualified_name: Some(&full_name) })
    }

    /// Open a file of it.
    pub(crate) fn open(&self, path: &str) -> Result<Arc<dyn Source>, StoreError> {
        self.check_stripe()?;
        self.open_any(path)
    }

    /// Open a file of it, also if it is of another stripe.
    pub(crate) fn open_any(&self, path: &str) -> Result<Arc<dyn Source>, StoreError> {
        let result = self.at(path, |name| self.store.open(name));
        self.learn(path, &result);
        result
    }

    /// Open a file whose first `first_bytes` bytes are needed.
    pub(crate) fn open_for(
        &self,
        path: &str,
        first_bytes: u64,
    ) -> Result<Arc<dyn Source>, StoreError> {
        self.check_stripe()?;
        let result = self.at(path, |name| self.store.open_for(name, first_bytes));
        self.learn(path, &result);
        result
    }

    /// A file assumed to be at a version, as [`Store::assume`].
    pub(crate) fn assume(
        &self,
        path: &str,
        version: Version,
    ) -> Result<Option<Arc<dyn Source>>, StoreError> {
        self.at(path, |name| self.store.assume(name, version))
    }

    /// A file of a size, as [`Store::assume_size`].
    pub(crate) fn assume_size(
        &self,
        path: &str,
        size: u64,
    ) -> Result<Option<Arc<dyn Source>>, StoreError> {
        self.at(path, |name| self.store.assume_size(name, size))
    }

    /// A file at a version whose server proves what it sends, as [`Store::assume_with_proof`].
    pub(crate) fn assume_with_proof(
        &self,
        path: &str,
        version: Version,
    ) -> Result<Option<Arc<dyn Source>>, StoreError> {
        self.at(path, |name| self.store.assume_with_proof(name, version))
    }

    /// The room on it; `None` if it does not tell.
    pub(crate) fn space(&self) -> Result<Option<Space>, StoreError> {
        let limit = if self.has_failed() { FAILED_ANSWER_LIMIT } else { ANSWER_LIMIT };
        let result = self.within(limit, |_| self.at("", |name| self.store.space(name)));
        self.learn("", &result);
        result
    }

    /// Whether its folder exists.
    pub(crate) fn has_folder(&self) -> Result<bool, StoreError> {
        self.has_folder_within(ANSWER_LIMIT)
    }

    fn has_folder_within(&self, limit: Duration) -> Result<bool, StoreError> {
        let result = self.within(limit, |_| self.at("", |name| self.store.has_folder(name)));
        self.learn("", &result);
        if !self.store.is_local() {
            self.lock().folder_seen_at = matches!(result, Ok(true)).then(Instant::now);
        }
        result
    }

    /// Whether its folder is there, or was a moment ago.
    pub(crate) fn had_folder(&self) -> Result<bool, StoreError> {
        let seen_at = self.lock().folder_seen_at;
        if seen_at.is_some_and(|at| at.elapsed() < FOLDER_MEMORY) {
            return Ok(true);
        }
        let limit = if self.has_failed() { FAILED_ANSWER_LIMIT } else { ANSWER_LIMIT };
        self.has_folder_within(limit)
    }

    /// Let its folder be made with the first file in it.
    pub(crate) fn allow_new_folder(&self) {
        self.is_new.store(true, Ordering::Relaxed);
    }

    /// Refuse to write to a server of another stripe, and to make its folder again: its disk may only
    /// not be mounted.
    fn check_folder(&self) -> Result<(), StoreError> {
        self.check_stripe()?;
        if self.is_new.load(Ordering::Relaxed) {
            return Ok(());
        }
        match self.had_folder()? {
            true => Ok(()),
            false => Err(self.missing_folder()),
        }
    }

    /// Refuse to take what a folder of this machine lacks as absent, if the folder itself does not
    /// exist. Other servers say that without a further request, or cannot say it.
    pub(crate) fn check_presence(&self) -> Result<(), StoreError> {
        match !self.store.is_local() || self.has_folder()? {
            true => Ok(()),
            false => Err(self.missing_folder()),
        }
    }

    /// The error that its folder does not exist. If there is one again, it is asked for its mark.
    pub(crate) fn missing_folder(&self) -> StoreError {
        self.identity().compared_at = None;
        let why = ": expected the folder of a server, found none; mount its disk, or, if it is lost, \
                   make its folder and repair the whole store";
        StoreError::NotFound { url: self.url(), why: why.into() }
    }

    /// Begin to write a file, in pieces of `part_bytes`.
    pub(crate) fn write(
        &self,
        path: &str,
        size: u64,
        part_bytes: u64,
    ) -> Result<ObjectWriter, StoreError> {
        if path != MARK_PATH {
            self.check_mark()?;
        }
        self.check_folder()?;
        let name = format!("{}{path}", self.name);
        ObjectWriter::create(&self.stores, &name, size, size > part_bytes, part_bytes)
    }

    /// Reserve room for a file of some bytes, in the folder of a path.
    pub(crate) fn reserve(&self, path: &str, bytes: u64) -> Result<Box<dyn Room>, StoreError> {
        self.check_mark()?;
        self.check_folder()?;
        self.at(path, |name| self.store.reserve(name, bytes))
    }

    /// Begin to write a file in room that was reserved, in pieces of `part_bytes`.
    pub(crate) fn fill(
        &self,
        room: Box<dyn Room>,
        path: &str,
        size: u64,
        part_bytes: u64,
    ) -> Result<ObjectWriter, StoreError> {
        self.check_mark()?;
        self.check_folder()?;
        let name = format!("{}{path}", self.name);
        ObjectWriter::fill(&self.stores, &name, room, size, part_bytes)
    }

    /// Write a record, in place of the one there is. What is read back may be the record of another
    /// writer: that is left to the caller, and nothing is removed.
    pub(crate) fn put(&self, path: &str, bytes: &Bytes) -> Result<(), StoreError> {
        let (mut attempt, began) = (0, Instant::now());
        loop {
            attempt += 1;
            let result = while_alive(self, |_| self.put_once(path, bytes));
            match result.map_err(Failure::from).flatten() {
                Err(Failure { error, retry })
                    if attempt == ATTEMPTS
                        || began.elapsed() > HANG
                            && matches!(error, StoreError::Network { .. })
                        || retry == Retry::Never && !is_busy(&error) =>
                {
                    if matches!(error, StoreError::Network { .. }) {
                        self.note_failure_after(began.elapsed());
                    }
                    return Err(error);
                }
                Err(_) => std::thread::sleep(Duration::from_millis(20 << attempt)),
                Ok(()) => return Ok(()),
            }
        }
    }

    fn put_once(&self, path: &str, bytes: &Bytes) -> Result<(), Failure> {
        let mut writer = self.write(path, bytes.len() as u64, u64::MAX)?;
        writer.write(bytes.clone())?;
        drop(writer.finish(true)?);
        let source = self.open(path)?;
        let mut copy = vec![0; source.len().min(bytes.len() as u64) as usize];
        source.read_exact_at(0, &mut copy)?;
        if copy == bytes[..] {
            return Ok(());
        }
        let generation_of = |bytes: &[u8]| match Header::decode(bytes) {
            Ok(Ok((header, _))) => Some(header.generation),
            _ => None,
        };
        let (ours, theirs) = (generation_of(bytes), generation_of(&copy));
        // Another writer was here since. If it was late, its record does not count.
        let retry = match theirs.cmp(&ours) {
            std::cmp::Ordering::Greater => return Ok(()),
            std::cmp::Ordering::Less if theirs.is_some() => Retry::Passing,
            _ => Retry::Never,
        };
        let url = source.url().to_string();
        let (expected, found) = ("the record that was written".into(), "other bytes".into());
        Err(Failure { error: StoreError::Differs { url, expected, found }, retry })
    }

    /// Remove a file, if it exists.
    pub(crate) fn remove(&self, path: &str) -> Result<(), StoreError> {
        self.check_mark()?;
        let remove = || self.at(path, |name| self.store.remove(name));
        match while_alive(self, |_| remove()).flatten() {
            Err(StoreError::NotFound { .. }) => Ok(()),
            other => other,
        }
    }

    /// Do work that waits for the server, and end its wait when it tells nothing for a time.
    fn within<T>(
        &self,
        limit: Duration,
        work: impl FnOnce(&dyn Fn()) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if self.store.is_local() {
            return work(&|| {});
        }
        let outer = Interrupt::current();
        let inner = outer.child();
        let sender = set_after(limit, inner.clone());
        inner.enter();
        let tell_page = || {
            // If nobody waits for it, the interrupt is set already.
            let _ = sender.send(());
        };
        let result = work(&tell_page);
        outer.enter();
        match result {
            Err(StoreError::Interrupted { url }) if !outer.is_set() => {
                let why = format!("{NO_ANSWER} for {} s", limit.as_secs());
                Err(StoreError::Network { url, why })
            }
            result => result,
        }
    }
}

/// Whether another writes the same file at this moment.
fn is_busy(error: &StoreError) -> bool {
    match error {
        StoreError::Io { source, .. } => source.kind() == ErrorKind::ResourceBusy,
        // It took the place of what is read back.
        StoreError::Changed { .. } => true,
        _ => false,
    }
}

/// Set an interrupt when nothing was sent for a time; until the sender is dropped.
fn set_after(limit: Duration, interrupt: Interrupt) -> Sender<()> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        loop {
            match receiver.recv_timeout(limit) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => break interrupt.set(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    });
    sender
}
