//! `swathe-store` as the fuzz targets have it: its files, and no server.

#[allow(dead_code)] // of named stores, and of writing
#[path = "../../crates/store/src/beneath.rs"]
mod beneath;
#[path = "../../crates/store/src/error.rs"]
mod error;
#[path = "../../crates/store/src/local.rs"]
mod local;
#[allow(dead_code)] // of named stores, and of writing
#[path = "../../crates/store/src/place.rs"]
mod place;
#[allow(dead_code)] // of a cache of servers
#[path = "../../crates/store/src/shelf/mod.rs"]
mod shelf;
#[path = "../../crates/store/src/source.rs"]
mod source;

#[allow(dead_code)]
#[path = "../../crates/store/src/timing.rs"]
mod timing;

pub use error::StoreError;
pub use shelf::{Shelf, SimulatedShelf, Usage, limit_of};
pub use source::{Fetched, Source, TRUSTED, Traffic, Version};
pub use timing::Measured;

use std::path::PathBuf;
use std::sync::Arc;
use swathe_plan::{Compute, Costs};

/// No storage but this machine.
#[derive(Clone, Default)]
pub struct Stores {
    compute: Arc<Compute>,
}

/// This machine.
pub struct Store {
    /// Of reading them.
    pub costs: Costs,
    /// They are not.
    pub measured: bool,
}

impl Store {
    /// That of its files.
    pub fn key(&self) -> String {
        "file://".to_string()
    }
}

impl Stores {
    /// The one there is.
    pub fn locate(&self, object: &str) -> (Arc<Store>, String) {
        (Arc::new(Store { costs: Costs::local(), measured: false }), object.to_string())
    }

    /// What computing costs on this host.
    pub fn compute(&self) -> &Compute {
        &self.compute
    }

    /// Open a file.
    pub fn open(&self, path: &str) -> Result<Arc<dyn Source>, StoreError> {
        Ok(Arc::new(local::Local::open(&place::Place::free(path.into())?, Costs::local())?))
    }

    /// There are no servers.
    pub fn server_of(&self, _object: &str) -> Option<(String, Costs)> {
        None
    }

    /// The path of an object, which is one.
    pub fn file_of(&self, object: &str) -> Option<PathBuf> {
        Some(object.into())
    }

    /// What events call an object.
    pub fn called(&self, object: &str) -> String {
        object.to_string()
    }

    /// No storage has a name.
    pub fn is_named(&self, _object: &str) -> bool {
        false
    }

    /// There are no servers.
    pub fn is_served_here(&self, _object: &str) -> bool {
        false
    }

    /// There are no servers.
    pub fn connections(&self, _object: &str) -> u32 {
        0
    }

    /// There are no servers.
    pub fn assume(
        &self,
        _object: &str,
        _version: Version,
    ) -> Result<Option<Arc<dyn Source>>, StoreError> {
        Ok(None)
    }
}
