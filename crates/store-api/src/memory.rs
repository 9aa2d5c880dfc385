//! A store in memory: for tests, and for fuzzing.

use crate::error::StoreError;
use crate::settings::StoreSettings;
use crate::source::{Pieces, Source, Version};
use crate::store::{ObjectName, Store};
use crate::timing::RequestTiming;
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use swathe_plan::{Costs, Way};

/// Objects in memory, read as files are.
#[derive(Debug)]
pub struct MemoryStore {
    settings: StoreSettings,
    objects: Mutex<HashMap<String, (u64, Bytes)>>,
}

impl MemoryStore {
    /// An empty store of this name.
    pub fn new(name: &str) -> MemoryStore {
        let settings =
            StoreSettings::new(name.to_string(), "memory://".to_string(), BTreeMap::new());
        let settings = StoreSettings { costs: Costs::local(), ..settings };
        MemoryStore { settings, objects: Mutex::default() }
    }

    /// Put an object at a path, in place of the existing one, as another version.
    pub fn put(&self, path: &str, bytes: impl Into<Bytes>) {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = objects.entry(self.url_of(path)).or_default();
        *entry = (entry.0 + 1, bytes.into());
    }
}

impl Store for MemoryStore {
    fn settings(&self) -> &StoreSettings {
        &self.settings
    }

    fn object_key(&self, url: &str) -> String {
        url.to_string()
    }

    fn url_of(&self, path: &str) -> String {
        format!("{}/{}", self.settings.root, path.trim_start_matches('/'))
    }

    fn display_url(&self, url: &str) -> String {
        url.to_string()
    }

    fn is_local(&self) -> bool {
        true
    }

    fn open(&self, object: ObjectName<'_>) -> Result<Arc<dyn Source>, StoreError> {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let url = object.url.to_string();
        let Some((number, bytes)) = objects.get(&url) else {
            return Err(StoreError::NotFound { url, why: String::new() });
        };
        let version = Version { size: bytes.len() as u64, tag: format!("number:{number}") };
        let costs = self.settings.costs.clone();
        Ok(Arc::new(InMemory(Arc::new(Object { url, version, bytes: bytes.clone(), costs }))))
    }
}

struct InMemory(Arc<Object>);

struct Object {
    url: String,
    version: Version,
    bytes: Bytes,
    costs: Costs,
}

impl Object {
    fn read(&self, range: &Range<u64>) -> Result<Bytes, StoreError> {
        let size = self.version.size;
        if range.end > size || range.start > range.end {
            return Err(StoreError::ShortRead {
                url: self.url.clone(),
                start: range.start,
                expected: range.end.saturating_sub(range.start),
                found: size.saturating_sub(range.start),
            });
        }
        Ok(self.bytes.slice(range.start as usize..range.end as usize))
    }
}

impl Source for InMemory {
    fn url(&self) -> &str {
        &self.0.url
    }

    fn version(&self) -> &Version {
        &self.0.version
    }

    fn is_local(&self) -> bool {
        true
    }

    fn costs(&self) -> &Costs {
        &self.0.costs
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        let range = offset..offset.saturating_add(buffer.len() as u64);
        buffer.copy_from_slice(&self.0.read(&range)?);
        Ok(())
    }

    fn fetch_by(&self, requests: Vec<Range<u64>>, _: Way) -> Pieces {
        let object = self.0.clone();
        Box::new(requests.into_iter().map(move |range| object.read(&range)))
    }

    fn measure(
        &self,
        requests: &[Range<u64>],
        _streams: u32,
        _fresh: bool,
    ) -> Result<Vec<RequestTiming>, StoreError> {
        let began = Instant::now();
        let timings = requests.iter().map(|range| {
            let start_s = began.elapsed().as_secs_f64();
            let bytes = self.0.read(range)?.len() as u64;
            let end_s = began.elapsed().as_secs_f64();
            Ok(RequestTiming { bytes, start_s, first_byte_s: end_s, end_s })
        });
        timings.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::Stores;

    fn nowhere(settings: StoreSettings) -> Arc<dyn Store> {
        Arc::new(MemoryStore { settings, objects: Mutex::default() })
    }

    fn stores(store: &Arc<MemoryStore>) -> Stores {
        Stores::new(Vec::new(), nowhere).with(store.clone())
    }

    #[test]
    fn an_object_is_read_by_ranges_and_not_past_its_end() {
        let store = Arc::new(MemoryStore::new("m"));
        store.put("a", &b"0123456789"[..]);
        let source = stores(&store).open("m:a").unwrap();
        let read: Result<Vec<Bytes>, _> = source.fetch(vec![2..4, 0..0, 9..10], 1).collect();
        assert_eq!(read.unwrap(), [&b"23"[..], b"", b"9"]);
        let error = source.fetch(vec![8..11], 1).next().unwrap().unwrap_err();
        assert!(matches!(error, StoreError::ShortRead { start: 8, expected: 3, found: 2, .. }));
        assert!(matches!(stores(&store).open("m:b"), Err(StoreError::NotFound { .. })));
    }

    #[test]
    fn what_is_put_anew_is_another_version() {
        let store = Arc::new(MemoryStore::new("m"));
        let version = |bytes: &'static [u8]| {
            store.put("a", bytes);
            stores(&store).open("m:a").unwrap().version().clone()
        };
        assert_ne!(version(b"x"), version(b"y"));
    }

    #[test]
    fn what_is_in_no_store_is_asked_of_its_server() {
        let store = Arc::new(MemoryStore::new("m"));
        let stores = stores(&store);
        let root = |object: &str| stores.locate(object).0.settings().root.clone();
        assert_eq!(root("memory:///a"), "memory://");
        assert_eq!(root("https://user@host:1/a?b"), "https://host:1");
        assert_eq!(root("a.fits"), "file://");
        assert!(stores.is_named("m:a") && !stores.is_named("n:a") && !stores.is_named("m://a"));
    }
}
