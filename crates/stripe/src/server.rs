//! One of the places that a striped store keeps its parts in.

use crate::record::Header;
use bytes::Bytes;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use swathe_store::ObjectWriter;
use swathe_store_api::{
    Entry, Failure, Interrupt, ListItem, ListOptions, ObjectName, Retry, Room, Source, Space,
    Store, StoreError, Stores, Version,
};
use swathe_trace::Scope;

/// A server that failed is left out where others are enough, and asked again after this time.
const SILENCE: Duration = Duration::from_secs(5);
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
}

/// Whether a server failed.
#[derive(Debug, Default)]
struct Health {
    failed_at: Option<Instant>,
    /// Whether it is being asked again.
    is_asked: bool,
    /// A file that it was asked for.
    path: String,
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
        Server { store, stores, prefix, name, health: Arc::default() }
    }

    /// The store that it is a folder of.
    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// As users may see it.
    pub(crate) fn url(&self) -> String {
        self.store.display_url(&self.store.url_of(&self.prefix))
    }

    fn at<T>(&self, path: &str, work: impl FnOnce(ObjectName<'_>) -> T) -> T {
        let path = format!("{}{path}", self.prefix);
        let full_name = format!("{}:{path}", self.store.settings().name);
        work(ObjectName { url: &self.store.url_of(&path), qualified_name: Some(&full_name) })
    }

    /// Open a file of it.
    pub(crate) fn open(&self, path: &str) -> Result<Arc<dyn Source>, StoreError> {
        let result = self.at(path, |name| self.store.open(name));
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

    /// The room on it; `None` if it does not tell.
    pub(crate) fn space(&self) -> Result<Option<Space>, StoreError> {
        self.at("", |name| self.store.space(name))
    }

    /// Begin to write a file, in pieces of `part_bytes`.
    pub(crate) fn write(
        &self,
        path: &str,
        size: u64,
        part_bytes: u64,
    ) -> Result<ObjectWriter, StoreError> {
        let name = format!("{}{path}", self.name);
        ObjectWriter::create(&self.stores, &name, size, size > part_bytes, part_bytes)
    }

    /// Reserve room for a file of some bytes, in the folder of a path.
    pub(crate) fn reserve(&self, path: &str, bytes: u64) -> Result<Box<dyn Room>, StoreError> {
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
        let name = format!("{}{path}", self.name);
        ObjectWriter::fill(&self.stores, &name, room, size, part_bytes)
    }

    /// Write a record, in place of the one there is. What is read back may be the record of another
    /// writer: that is left to the caller, and nothing is removed.
    pub(crate) fn put(&self, path: &str, bytes: &Bytes) -> Result<(), StoreError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            match self.put_once(path, bytes) {
                Err(Failure { error, retry })
                    if attempt == ATTEMPTS || retry == Retry::Never && !is_busy(&error) =>
                {
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
        let is_other = || {
            matches!(Header::decode(&copy), Ok(Ok((header, _)))
            if !matches!(Header::decode(bytes), Ok(Ok((ours, _))) if ours.generation == header.generation))
        };
        if copy == bytes[..] || is_other() {
            return Ok(());
        }
        let url = source.url().to_string();
        let (expected, found) = ("the record that was written".into(), "other bytes".into());
        Err(StoreError::Differs { url, expected, found }.into())
    }

    /// Remove a file, if it exists.
    pub(crate) fn remove(&self, path: &str) -> Result<(), StoreError> {
        match self.at(path, |name| self.store.remove(name)) {
            Err(StoreError::NotFound { .. }) => Ok(()),
            other => other,
        }
    }

    /// Ask for the first page of a listing: whether it answers.
    pub(crate) fn answers(&self) -> Result<(), StoreError> {
        let options = ListOptions { with_hidden: true, may_lack: true };
        self.at("", |name| self.store.list(name, options))?.next_page().map(drop)
    }

    /// The files at or below a path, in pages; paths as of this folder.
    pub(crate) fn list(
        &self,
        path: &str,
        take: &mut dyn FnMut(ServerItem) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let options = ListOptions { with_hidden: true, may_lack: true };
        let mut listing = self.at(path, |name| self.store.list(name, options))?;
        while let Some(page) = listing.next_page()? {
            for item in page {
                let below = |path: String| path.strip_prefix(&self.prefix).map(str::to_string);
                match item {
                    ListItem::Object(entry) => {
                        if let Some(path) = below(entry.path.clone()) {
                            take(ServerItem::File(Entry { path, ..entry }))?;
                        }
                    }
                    ListItem::Unlisted { path, why } => {
                        let path = below(path.clone()).unwrap_or(path);
                        take(ServerItem::Unlisted { path, why })?;
                    }
                }
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it failed, and did not answer since. After a while it is asked again, beside the work.
    pub(crate) fn is_silent(self: &Arc<Server>) -> bool {
        let mut health = self.lock();
        let Some(failed_at) = health.failed_at else { return false };
        if failed_at.elapsed() > SILENCE && !health.is_asked {
            let (server, path) = (self.clone(), health.path.clone());
            let again = std::thread::Builder::new().name("swathe-server".into()).spawn(move || {
                drop(catch_unwind(AssertUnwindSafe(|| server.open(&path))));
                server.lock().is_asked = false;
            });
            health.is_asked = again.is_ok();
        }
        true
    }

    /// Remember that it failed, or was too late.
    pub(crate) fn note_failure(&self) {
        self.lock().failed_at = Some(Instant::now());
    }

    fn learn<T>(&self, path: &str, result: &Result<T, StoreError>) {
        let mut health = self.lock();
        match result {
            Err(StoreError::Network { .. }) => {
                health.failed_at = Some(Instant::now());
                health.path = path.to_string();
            }
            Err(StoreError::Interrupted { .. }) => {}
            _ => health.failed_at = None,
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

/// What a server lists.
pub(crate) enum ServerItem {
    /// A file.
    File(Entry),
    /// What could not be listed.
    Unlisted {
        /// Its path.
        path: String,
        /// Why not.
        why: String,
    },
}

/// Ask servers at the same time; the answers come with the number of each, as they arrive. Those of
/// this machine are asked one after the other: that takes less than a thread.
pub(crate) fn ask<T: Send + 'static>(
    servers: &[(usize, Arc<Server>)],
    work: impl Fn(usize, &Server) -> T + Send + Sync + 'static,
) -> Receiver<(usize, T)> {
    let (sender, receiver) = channel();
    let work = Arc::new(work);
    for (number, server) in servers {
        let (number, server, work, sender) =
            (*number, server.clone(), work.clone(), sender.clone());
        let is_local = server.store.is_local();
        // A thread that panics gives no answer.
        let ask = move || {
            let answer = catch_unwind(AssertUnwindSafe(|| work(number, &server)));
            drop(answer.map(|answer| sender.send((number, answer))));
        };
        if is_local {
            ask();
            continue;
        }
        let (scope, interrupt) = (Scope::current(), Interrupt::current());
        std::thread::spawn(move || {
            scope.enter();
            interrupt.enter();
            ask();
        });
    }
    receiver
}

/// Ask all servers, and wait for all answers.
pub(crate) fn ask_all<T: Send + 'static>(
    servers: &[Arc<Server>],
    work: impl Fn(usize, &Server) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let by_number: Vec<(usize, Arc<Server>)> = servers.iter().cloned().enumerate().collect();
    let answers = ask(&by_number, work);
    let mut answers: Vec<(usize, T)> = answers.into_iter().collect();
    assert!(answers.len() == servers.len(), "a thread that asked a server panicked");
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, answer)| answer).collect()
}
