//! Stores whose objects are read through the block cache.

use crate::{BlockCache, CachedSource};
use std::path::PathBuf;
use std::sync::Arc;
use swathe_plan::{Connections, Costs};
use swathe_store_api::{
    CopyRefusal, CopySource, Layer, ListOptions, Listing, ObjectName, Room, ServerCopy, Sink,
    Source, Space, Store, StoreError, StoreSettings, Stores, Version,
};

/// The same stores, with a cache of blocks for the bytes of servers.
pub fn cached_stores(stores: Stores, blocks: Option<Arc<BlockCache>>) -> Stores {
    let Some(blocks) = blocks else { return stores };
    let files = stores.file_costs();
    stores.wrap_with(Arc::new(CacheLayer { blocks, files }))
}

#[derive(Debug)]
struct CacheLayer {
    blocks: Arc<BlockCache>,
    /// The costs of files: blocks are files.
    files: Costs,
}

impl Layer for CacheLayer {
    fn wrap(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        if store.is_local() {
            return store;
        }
        let (blocks, files) = (self.blocks.clone(), self.files.clone());
        Arc::new(CachedStore { inner: store, blocks, files })
    }
}

#[derive(Debug)]
struct CachedStore {
    inner: Arc<dyn Store>,
    blocks: Arc<BlockCache>,
    files: Costs,
}

impl CachedStore {
    /// `is_confirmed`: whether the server just confirmed the version.
    fn wrap(&self, source: Arc<dyn Source>, name: &str, is_confirmed: bool) -> Arc<dyn Source> {
        if source.is_local() || !source.version().is_told_apart() {
            return source;
        }
        let source = CachedSource::new(source, name, self.blocks.clone(), is_confirmed);
        Arc::new(source.on(self.files.clone()))
    }
}

impl Store for CachedStore {
    fn settings(&self) -> &StoreSettings {
        self.inner.settings()
    }

    fn measured_key(&self, url: &str) -> String {
        self.inner.measured_key(url)
    }

    fn key(&self) -> String {
        self.inner.key()
    }

    fn object_key(&self, url: &str) -> String {
        self.inner.object_key(url)
    }

    fn url_of(&self, path: &str) -> String {
        self.inner.url_of(path)
    }

    fn display_url(&self, url: &str) -> String {
        self.inner.display_url(url)
    }

    fn is_local(&self) -> bool {
        self.inner.is_local()
    }

    fn is_bucket(&self) -> bool {
        self.inner.is_bucket()
    }

    fn is_webdav(&self) -> bool {
        self.inner.is_webdav()
    }

    fn is_writable(&self) -> bool {
        self.inner.is_writable()
    }

    fn takes_any_size(&self) -> bool {
        self.inner.takes_any_size()
    }

    fn local_path(&self, url: &str) -> Result<Option<PathBuf>, StoreError> {
        self.inner.local_path(url)
    }

    fn is_served_here(&self, url: &str) -> bool {
        self.inner.is_served_here(url)
    }

    fn connections(&self) -> Connections {
        self.inner.connections()
    }

    fn http_url(&self, url: &str) -> Result<Option<String>, StoreError> {
        self.inner.http_url(url)
    }

    fn bearer(&self, url: &str) -> Result<Option<String>, StoreError> {
        self.inner.bearer(url)
    }

    fn space(&self, folder: ObjectName<'_>) -> Result<Option<Space>, StoreError> {
        self.inner.space(folder)
    }

    fn open(&self, object: ObjectName<'_>) -> Result<Arc<dyn Source>, StoreError> {
        Ok(self.wrap(self.inner.open(object)?, object.name(), true))
    }

    fn assume(
        &self,
        object: ObjectName<'_>,
        version: Version,
    ) -> Result<Option<Arc<dyn Source>>, StoreError> {
        let result = self.inner.assume(object, version)?;
        Ok(result.map(|source| self.wrap(source, object.name(), false)))
    }

    fn list(
        &self,
        object: ObjectName<'_>,
        options: ListOptions,
    ) -> Result<Box<dyn Listing>, StoreError> {
        self.inner.list(object, options)
    }

    fn create(
        &self,
        object: ObjectName<'_>,
        size: u64,
        in_parts: bool,
    ) -> Result<Box<dyn Sink>, StoreError> {
        self.inner.create(object, size, in_parts)
    }

    fn reserve(&self, object: ObjectName<'_>, bytes: u64) -> Result<Box<dyn Room>, StoreError> {
        self.inner.reserve(object, bytes)
    }

    fn copy_from(
        &self,
        object: ObjectName<'_>,
        source: &CopySource<'_>,
    ) -> Result<Box<dyn ServerCopy>, CopyRefusal> {
        self.inner.copy_from(object, source)
    }

    fn remove(&self, object: ObjectName<'_>) -> Result<(), StoreError> {
        self.inner.remove(object)
    }
}
