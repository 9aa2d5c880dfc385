//! The storages that are known, and which of them an object is in.

use crate::error::StoreError;
use crate::listing::{ListOptions, Listing};
use crate::settings::StoreSettings;
use crate::source::{Source, Version};
use crate::store::{ObjectName, Room, Sink, Store};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use swathe_plan::{Compute, Connections, Costs};

/// Root of the files of this machine that lie in no named store.
const FILES: &str = "file://";

/// Creates a store from its settings.
pub type Connect = fn(StoreSettings) -> Arc<dyn Store>;

/// Wraps each store in another.
pub trait Layer: Debug + Send + Sync {
    /// The wrapper of a store.
    fn wrap(&self, store: Arc<dyn Store>) -> Arc<dyn Store>;
}

/// The storages that are known.
#[derive(Clone, Debug)]
pub struct Stores {
    stores: Vec<Arc<dyn Store>>,
    connect: Connect,
    layer: Option<Arc<dyn Layer>>,
    /// Measured costs, also of storages without a name, by [`Store::key`].
    costs: Arc<BTreeMap<String, Costs>>,
    compute: Arc<Compute>,
}

impl Stores {
    /// These and no others, created by `connect`, as are those of all other objects: those are read
    /// with default costs.
    pub fn new(settings: Vec<StoreSettings>, connect: Connect) -> Stores {
        let stores = settings.into_iter().map(connect).collect();
        let (costs, compute) = Default::default();
        Stores { stores, connect, layer: None, costs, compute }
    }

    /// The same, with a store that was created already.
    #[must_use]
    pub fn with(mut self, store: Arc<dyn Store>) -> Stores {
        self.stores.push(self.wrap(store));
        self
    }

    /// The same, with costs that were measured, by [`Store::key`].
    #[must_use]
    pub fn with_costs(self, costs: BTreeMap<String, Costs>) -> Stores {
        let costs_of = |store: &StoreSettings| costs.get(&(self.connect)(store.clone()).key());
        let stores = self.stores.iter().map(|store| {
            let mut settings = store.settings().clone();
            let own = costs.get(&store.key());
            if own.is_none() && settings.over.is_empty() {
                return store.clone();
            }
            for place in &mut settings.over {
                if let Some(costs) = costs_of(&place.store) {
                    place.store = place.store.clone().with_costs(costs);
                }
            }
            self.make(match own {
                Some(costs) => settings.with_costs(costs),
                None => settings,
            })
        });
        Stores { stores: stores.collect(), costs: Arc::new(costs), ..self }
    }

    /// The same, read by a host that computes at these costs.
    #[must_use]
    pub fn computing(self, compute: Compute) -> Stores {
        Stores { compute: Arc::new(compute), ..self }
    }

    /// The same, each wrapped by a layer.
    #[must_use]
    pub fn wrap_with(self, layer: Arc<dyn Layer>) -> Stores {
        let stores = self.stores.iter().map(|store| layer.wrap(store.clone())).collect();
        Stores { stores, layer: Some(layer), ..self }
    }

    /// The costs of computing on this host.
    pub fn compute(&self) -> &Compute {
        &self.compute
    }

    /// The costs of files of this machine.
    pub fn file_costs(&self) -> Costs {
        self.costs.get(FILES).cloned().unwrap_or_else(Costs::local)
    }

    fn make(&self, settings: StoreSettings) -> Arc<dyn Store> {
        self.wrap((self.connect)(settings))
    }

    fn wrap(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        match &self.layer {
            Some(layer) => layer.wrap(store),
            None => store,
        }
    }

    /// The storage of an object and its URL or path: `NAME:path` of a named store, any URL below
    /// the root of one, or any other URL or path.
    pub fn locate(&self, object: &str) -> (Arc<dyn Store>, String) {
        let by_name = object.split_once(':').and_then(|(name, path)| {
            let is_called = |store: &&Arc<dyn Store>| {
                let own = &store.settings().name;
                !own.is_empty() && own == name
            };
            let store = self.stores.iter().find(is_called)?;
            (!path.starts_with("//")).then(|| (store.clone(), store.url_of(path)))
        });
        if let Some(object) = by_name {
            return object;
        }
        let root = |store: &Arc<dyn Store>| store.settings().root.clone();
        let below = |store: &&Arc<dyn Store>| {
            let root = &store.settings().root;
            object == root || is_below(object, root)
        };
        let best = self.stores.iter().filter(below).max_by_key(|store| root(store).len());
        let store = best.cloned().unwrap_or_else(|| self.fallback_store(object));
        (store, object.to_string())
    }

    /// As [`Stores::locate`], and run `work` on the object.
    fn at<T>(&self, object: &str, work: impl FnOnce(&dyn Store, ObjectName<'_>) -> T) -> T {
        let (store, url) = self.locate(object);
        let qualified_name = (url != object).then_some(object);
        work(&*store, ObjectName { url: &url, qualified_name })
    }

    /// The key of an object, as [`Source::key`], and the costs of its storage, if that is a server.
    pub fn server_of(&self, object: &str) -> Option<(String, Costs)> {
        let (store, url) = self.locate(object);
        (!store.is_local()).then(|| (store.object_key(&url), store.settings().costs.clone()))
    }

    /// The path of an object that is a file of this machine.
    pub fn file_of(&self, object: &str) -> Option<PathBuf> {
        self.at(object, |store, name| store.local_path(name.url).ok().flatten())
    }

    /// Whether an object is called `NAME:path`, by a named store.
    pub fn is_named(&self, object: &str) -> bool {
        self.at(object, |_, name| name.qualified_name.is_some())
    }

    /// The name of an object in events: `NAME:path`, its absolute path, or its URL as users may see
    /// it.
    pub fn display_name(&self, object: &str) -> String {
        self.at(object, |store, name| {
            name.qualified_name.map_or_else(|| store.display_url(name.url), str::to_string)
        })
    }

    /// As [`Store::is_served_here`].
    pub fn is_served_here(&self, object: &str) -> bool {
        self.at(object, |store, name| store.is_served_here(name.url))
    }

    /// Connections that are open to the storage of an object.
    pub fn connections(&self, object: &str) -> Connections {
        self.locate(object).0.connections()
    }

    /// As [`Store::bearer`].
    ///
    /// # Errors
    /// As [`Store::bearer`].
    pub fn bearer(&self, object: &str) -> Result<Option<String>, StoreError> {
        self.at(object, |store, name| store.bearer(name.url))
    }

    /// As [`Store::http_url`].
    ///
    /// # Errors
    /// As [`Store::bearer`].
    pub fn http_url(&self, object: &str) -> Result<Option<String>, StoreError> {
        self.at(object, |store, name| store.http_url(name.url))
    }

    /// Open an object; see [`Store::open`].
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open(&self, object: &str) -> Result<Arc<dyn Source>, StoreError> {
        self.at(object, |store, name| {
            store.open(name).map_err(|error| match name.qualified_name {
                Some(_) => error,
                None => no_store(error, object),
            })
        })
    }

    /// As [`Store::assume`].
    ///
    /// # Errors
    /// As [`Store::assume`].
    pub fn assume(
        &self,
        object: &str,
        version: Version,
    ) -> Result<Option<Arc<dyn Source>>, StoreError> {
        self.at(object, |store, name| store.assume(name, version))
    }

    /// List the objects at or below `NAME:prefix`; see [`Store::list`].
    ///
    /// # Errors
    /// As [`Store::list`].
    pub fn list(&self, prefix: &str, options: ListOptions) -> Result<Box<dyn Listing>, StoreError> {
        self.at(prefix, |store, name| store.list(name, options))
    }

    /// Begin to write an object; see [`Store::create`].
    ///
    /// # Errors
    /// As [`Store::create`].
    pub fn create(
        &self,
        object: &str,
        size: u64,
        in_parts: bool,
    ) -> Result<Box<dyn Sink>, StoreError> {
        self.at(object, |store, name| store.create(name, size, in_parts))
    }

    /// Reserve room for an object; see [`Store::reserve`].
    ///
    /// # Errors
    /// As [`Store::reserve`].
    pub fn reserve(&self, object: &str, bytes: u64) -> Result<Box<dyn Room>, StoreError> {
        self.at(object, |store, name| store.reserve(name, bytes))
    }

    /// Begin to write an object in room that was reserved; see [`Room::fill`].
    ///
    /// # Errors
    /// As [`Room::fill`].
    pub fn fill(
        &self,
        object: &str,
        room: Box<dyn Room>,
        size: u64,
        in_parts: bool,
    ) -> Result<Box<dyn Sink>, StoreError> {
        self.at(object, |_, name| room.fill(name, size, in_parts))
    }

    /// Remove an object, if it exists.
    ///
    /// # Errors
    /// As [`Store::remove`], but for [`StoreError::NotFound`].
    pub fn remove(&self, object: &str) -> Result<(), StoreError> {
        match self.at(object, |store, name| store.remove(name)) {
            Err(StoreError::NotFound { .. }) => Ok(()),
            other => other,
        }
    }

    /// The storage of an object that lies in no known one: its server, or this machine.
    fn fallback_store(&self, object: &str) -> Arc<dyn Store> {
        let settings_of =
            |root: &str| StoreSettings::new(String::new(), root.to_string(), BTreeMap::new());
        let settings = match object.split_once("://") {
            None | Some(("file", _)) => settings_of(FILES),
            Some((scheme, rest)) => {
                let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
                let host = authority.rsplit('@').next().unwrap_or_default();
                settings_of(&format!("{scheme}://{host}"))
            }
        };
        let store = self.make(settings);
        if self.costs.is_empty() {
            return store;
        }
        // Also what was measured of a part of it, when that had a name.
        let (all, part) = (store.key(), store.measured_key(object));
        let matches = self
            .costs
            .iter()
            .filter(|(key, _)| **key == all || is_below(key, &all) && is_below(&part, key));
        match matches.max_by_key(|(key, _)| key.len()) {
            Some((key, costs)) => {
                let settings = store.settings().clone().with_costs(costs);
                let root = format!("{}{}", settings.root, &key[all.len()..]);
                self.make(StoreSettings { root, ..settings })
            }
            None => store,
        }
    }
}

/// For a missing file that may be meant as an object of a store: that the store is not declared.
fn no_store(error: StoreError, object: &str) -> StoreError {
    let is_name = |name: &str| {
        name.len() > 1 && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    match (error, object.split_once(':')) {
        (StoreError::NotFound { url, why }, Some((name, rest)))
            if why.is_empty() && is_name(name) && !rest.starts_with("//") =>
        {
            let why = format!("; nor is there a store '{name}', see: swathe store list");
            StoreError::NotFound { url, why }
        }
        (error, _) => error,
    }
}

/// Whether a URL is that of something below another.
fn is_below(url: &str, root: &str) -> bool {
    url.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'))
}
