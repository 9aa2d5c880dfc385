//! A part of an open object: opened when it is first read.

use crate::ask::{Ask, PartCosts};
use crate::record::PartEntry;
use crate::server::Server;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use swathe_store_api::{Source, StoreError, Traffic, Version};

/// A part, and what is known of it.
pub(crate) struct Part {
    path: String,
    size: u64,
    version: Option<Version>,
    /// The server that it was written to, else those that it may have been moved to.
    servers: Vec<Arc<Server>>,
    state: Mutex<State>,
}

enum State {
    /// Not opened yet.
    Closed,
    /// Open; `is_assumed`: without asking.
    Open { source: Arc<dyn Source>, is_assumed: bool },
    /// Its server failed, and why: it may be read again when that answers.
    Failed(String),
    /// It cannot be read, and why.
    Lost(String),
}

impl Part {
    /// A part of `size` bytes, by its entry in the record.
    pub(crate) fn new(path: String, size: u64, entry: &PartEntry, servers: &[Arc<Server>]) -> Part {
        let own: Vec<_> =
            servers.iter().filter(|server| server.name == entry.server).cloned().collect();
        let servers = if own.is_empty() { servers.to_vec() } else { own };
        let version = entry.version.as_deref().and_then(|version| {
            let (size, tag) = version.split_once(' ')?;
            Some(Version { size: size.parse().ok()?, tag: tag.to_string() })
        });
        Part { path, size, version, servers, state: Mutex::new(State::Closed) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it may be read: it is not lost, and its server did not just fail.
    pub(crate) fn is_usable(&self) -> bool {
        match &*self.lock() {
            State::Lost(_) => false,
            _ => !self.is_silent(),
        }
    }

    fn is_silent(&self) -> bool {
        self.servers.iter().all(|server| server.is_silent())
    }

    /// Why it is lost.
    pub(crate) fn loss(&self) -> Option<String> {
        match &*self.lock() {
            State::Lost(why) | State::Failed(why) => {
                Some(format!("{} on {}: {why}", self.path, self.server_names()))
            }
            _ => None,
        }
    }

    /// Whether it is not lost.
    pub(crate) fn is_there(&self) -> bool {
        match &*self.lock() {
            State::Lost(_) => false,
            State::Failed(_) => !self.is_silent(),
            _ => true,
        }
    }

    /// The names of the servers it may be on.
    pub(crate) fn server_names(&self) -> String {
        let names: Vec<&str> = self.servers.iter().map(|server| server.name.as_str()).collect();
        names.join(" ")
    }

    /// Its path on its server.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Whether it is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.servers.iter().all(|server| server.store().is_local())
    }

    /// Seconds to read some of its bytes, roughly, by what is known of its server now.
    pub(crate) fn estimate_s(&self, asks: &[Ask]) -> f64 {
        if let State::Open { source, .. } = &*self.lock() {
            return PartCosts::of_source(&**source).estimate_s(asks);
        }
        let store = self.servers.first().map(|server| server.store());
        store.map_or(0.0, |store| PartCosts::of_store(&**store).estimate_s(asks))
    }

    /// Remember that its server failed a moment ago.
    pub(crate) fn note_failure(&self) {
        self.servers.iter().for_each(|server| server.note_failure());
    }

    /// From now on it is not read.
    pub(crate) fn lose(&self, why: &StoreError) {
        let text = why.to_string();
        *self.lock() = match why {
            StoreError::Network { .. } => {
                self.note_failure();
                State::Failed(text)
            }
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
            && let Some(source) = server.assume(&self.path, version.clone())?
        {
            *self.lock() = State::Open { source: source.clone(), is_assumed: true };
            return Ok(source);
        }
        self.open_anew()
    }

    /// Open it by asking its server. Also if that finds it with another version, as when it was
    /// copied to a new server: each read is checked.
    pub(crate) fn open_anew(&self) -> Result<Arc<dyn Source>, StoreError> {
        let mut last = None;
        for server in &self.servers {
            match server.open(&self.path) {
                Ok(source) if source.len() == self.size => {
                    *self.lock() = State::Open { source: source.clone(), is_assumed: false };
                    return Ok(source);
                }
                Ok(source) => {
                    let (url, found) = (source.url().to_string(), source.len().to_string());
                    let expected = format!("{} bytes", self.size);
                    last = Some(StoreError::Differs { url, expected, found });
                }
                Err(error) => last = last.or(Some(error)),
            }
        }
        Err(last
            .unwrap_or_else(|| StoreError::NotFound { url: self.path.clone(), why: String::new() }))
    }

    /// Whether it was opened without asking: then its first read may find it changed.
    pub(crate) fn is_assumed(&self) -> bool {
        matches!(&*self.lock(), State::Open { is_assumed: true, .. })
    }

    /// Traffic since the last call.
    pub(crate) fn take_traffic(&self) -> Traffic {
        match &*self.lock() {
            State::Open { source, .. } => source.take_traffic(),
            _ => Traffic::default(),
        }
    }

    /// The source, if it is open.
    pub(crate) fn source(&self) -> Option<Arc<dyn Source>> {
        match &*self.lock() {
            State::Open { source, .. } => Some(source.clone()),
            _ => None,
        }
    }
}
