//! The objects of a striped store: what its servers list, taken together.
//!
//! The names of parts have the sizes of their objects. So records are read only of objects that
//! servers disagree about.

use crate::marks::{WORK_MEMORY, compare_marks};
use crate::names::{FileKind, kind_of};
use crate::object_records::{Records, too_few_servers};
use crate::question::{Grace, Standing, ask_enough, majority, present};
use crate::record_format::{Generation, is_odd};
use crate::server::{Server, ServerItem};
use crate::server_places::{is_new, without_folders};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use swathe_store_api::{Entry, ListItem, ListOptions, Listing, StoreError, is_hidden};

/// Names of a page.
const PAGE: usize = 1000;
/// All names are in memory; a listing with more bytes of them is an error.
const MOST_NAME_BYTES: usize = 256 << 20;
/// A server that is later than the others by more is left out, where the others are enough.
const GRACE: Grace = Grace {
    least: Duration::from_secs(5),
    least_after_failure: Duration::from_secs(1),
    // A long listing is no failure; one that hangs is noticed.
    most: Duration::from_secs(24 * 3600),
    ends: true,
};

/// What servers have of an object.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerFiles {
    /// Servers with a record.
    pub(crate) records: usize,
    /// Servers whose record may say that the object was removed, or is empty.
    odd_records: usize,
    /// Parts of each version, with the size of the object.
    pub(crate) parts: BTreeMap<(Generation, u64), usize>,
    modified: Option<String>,
}

/// What all servers have.
#[derive(Debug, Default)]
pub(crate) struct ListedObjects {
    pub(crate) objects: BTreeMap<String, ServerFiles>,
    /// Servers that listed all they have.
    servers: usize,
    /// The others, and why.
    absences: Vec<String>,
    refusals: BTreeMap<String, String>,
    name_bytes: usize,
}

impl ListedObjects {
    /// List servers at and below a path.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if all servers are folders of this machine that do not exist;
    /// [`StoreError::Network`] if too few servers listed what they have.
    pub(crate) fn list(
        servers: &[Arc<Server>],
        path: &str,
        url: &str,
    ) -> Result<ListedObjects, StoreError> {
        compare_marks(servers, WORK_MEMORY);
        let files = Arc::new(Mutex::new(ListedObjects::default()));
        let (all, folder, name) = (files.clone(), path.to_string(), url.to_string());
        let work = move |_, server: &Server| {
            server.list_patiently(&folder, &mut |item| {
                all.lock().unwrap_or_else(PoisonError::into_inner).add(item, &name)
            })?;
            server.check_presence()
        };
        let count = servers.len();
        let standing = |results: &[Option<Result<(), StoreError>>]| {
            let good = results.iter().flatten().filter(|result| result.is_ok()).count();
            let bad = results.iter().flatten().filter(|result| result.is_err()).count();
            Standing::of(good, bad, majority(count), count)
        };
        let results = ask_enough(&present(servers, majority(count)), count, GRACE, standing, work);
        let mut absences = Vec::new();
        for (server, result) in servers.iter().zip(&results) {
            if let Some(Err(StoreError::Interrupted { .. })) = result {
                return Err(StoreError::Interrupted { url: url.to_string() });
            }
            absences.extend(server.failure(result.as_ref()));
        }
        if absences.len() >= majority(count) {
            if let Some(why) = without_folders(servers) {
                return Err(StoreError::NotFound { url: url.to_string(), why });
            }
            if is_new(servers) {
                return Ok(ListedObjects::default());
            }
            let minimum = count + 1 - majority(count);
            return Err(too_few_servers(url, "listings of", minimum, count, &absences));
        }
        let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
        files.servers = count - absences.len();
        files.absences = absences;
        Ok(std::mem::take(&mut *files))
    }

    fn add(&mut self, item: ServerItem, url: &str) -> Result<(), StoreError> {
        let entry = match item {
            ServerItem::File(entry) => entry,
            ServerItem::Unlisted { path, why } => {
                self.refusals.insert(path, why);
                return Ok(());
            }
        };
        let (path, part) = match kind_of(&entry.path) {
            FileKind::Record { path } => (path, None),
            FileKind::Part { path, generation, size, .. } => (path, Some((generation, size))),
            FileKind::Other => return Ok(()),
        };
        if !self.objects.contains_key(&path) {
            self.name_bytes += path.len() + 100;
            if self.name_bytes > MOST_NAME_BYTES {
                let (url, why) =
                    (url.to_string(), "it has too many objects for one listing".into());
                return Err(StoreError::Unsupported { url, why });
            }
        }
        let files = self.objects.entry(path).or_default();
        match part {
            None => {
                files.records += 1;
                files.odd_records +=
                    usize::from(entry.size.is_none_or(|size| size == 0 || is_odd(size)));
                files.modified = files.modified.take().max(entry.modified);
            }
            Some(version) => *files.parts.entry(version).or_default() += 1,
        }
        Ok(())
    }
}

/// A listing of objects at or below a path; with a slash at its end, or none, only those below.
pub(crate) fn list_objects(
    servers: Vec<Arc<Server>>,
    path: String,
    url: String,
    options: ListOptions,
) -> Box<dyn Listing> {
    Box::new(StripedListing { servers, path, url, options, items: None, notes: Vec::new() })
}

struct StripedListing {
    servers: Vec<Arc<Server>>,
    path: String,
    url: String,
    options: ListOptions,
    items: Option<std::vec::IntoIter<ListItem>>,
    notes: Vec<String>,
}

impl StripedListing {
    fn read(&mut self) -> Result<Vec<ListItem>, StoreError> {
        let folder = match self.path.trim_end_matches('/') {
            "" => String::new(),
            folder => format!("{folder}/"),
        };
        let mut files = match ListedObjects::list(&self.servers, &folder, &self.url) {
            Err(StoreError::NotFound { .. }) if self.options.may_lack => ListedObjects::default(),
            result => result?,
        };
        let note = |absence| format!("{}: listed without {absence}", self.url);
        self.notes = std::mem::take(&mut files.absences).into_iter().map(note).collect();
        let mut items = Vec::new();
        if !self.path.is_empty() && !self.path.ends_with('/') {
            items.extend(self.by_record(&self.path));
        }
        let servers = files.servers;
        let is_listed = |path: &str| {
            path.strip_prefix(&folder)
                .is_some_and(|below| self.options.with_hidden || !is_hidden(below))
        };
        for (path, files) in files.objects.iter().filter(|(path, _)| is_listed(path)) {
            items.extend(self.item(path, files, servers));
        }
        let refusals = files.refusals.into_iter().filter(|(path, _)| is_listed(path));
        items.extend(refusals.map(|(path, why)| ListItem::Unlisted { path, why }));
        if items.is_empty() && !self.path.is_empty() && !self.options.may_lack {
            return Err(StoreError::NotFound { url: self.url.clone(), why: String::new() });
        }
        Ok(items)
    }

    /// What servers agree about needs no record: a newer version has parts, or a record of a removal,
    /// on most servers, so that one of those that answered has it.
    fn item(&self, path: &str, files: &ServerFiles, servers: usize) -> Option<ListItem> {
        if files.records == 0 {
            // Parts alone: of a write that did not end, or that ends now.
            return None;
        }
        let mut versions = files.parts.iter();
        if let (Some(((generation, size), &parts)), None) = (versions.next(), versions.next())
            && (files.records, files.odd_records, parts) == (servers, 0, servers)
        {
            return Some(ListItem::Object(Entry {
                path: path.to_string(),
                size: Some(*size),
                modified: files.modified.clone(),
                etag: Some(generation.to_string()),
            }));
        }
        self.by_record(path)
    }

    /// An object as its records say.
    fn by_record(&self, path: &str) -> Option<ListItem> {
        let records = Records::read(&self.servers, path, false);
        match records.current(&self.servers, &self.url) {
            Ok(record) => Some(ListItem::Object(Entry {
                path: path.to_string(),
                size: Some(record.header.layout.size),
                modified: None,
                etag: Some(record.header.generation.to_string()),
            })),
            Err(StoreError::NotFound { .. }) => None,
            Err(error) => {
                Some(ListItem::Unlisted { path: path.to_string(), why: error.to_string() })
            }
        }
    }
}

impl Listing for StripedListing {
    fn next_page(&mut self) -> Result<Option<Vec<ListItem>>, StoreError> {
        if self.items.is_none() {
            self.items = Some(self.read()?.into_iter());
        }
        let Some(items) = &mut self.items else { return Ok(None) };
        let page: Vec<ListItem> = items.by_ref().take(PAGE).collect();
        Ok((!page.is_empty()).then_some(page))
    }

    fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{TestStripe, bytes_of};
    use std::fs;

    fn named(names: &[(&str, u64)]) -> Vec<(String, Option<u64>)> {
        names.iter().map(|&(name, size)| (name.to_string(), Some(size))).collect()
    }

    #[test]
    fn objects_are_listed_with_their_sizes() {
        let stripe = TestStripe::new(4, 1, false);
        for (path, size) in [("a", 10), ("d/b", 20), ("d/e/c", 0), (".hidden", 5), ("d.x", 7)] {
            stripe.put(path, &bytes_of(size, 1), false).expect("written");
        }
        let list = |path: &str| stripe.list(path).expect("listed");
        let all = named(&[("a", 10), ("d.x", 7), ("d/b", 20), ("d/e/c", 0)]);
        assert_eq!(list(""), all);
        assert_eq!(list("d"), named(&[("d/b", 20), ("d/e/c", 0)]));
        assert_eq!(list("d/b"), named(&[("d/b", 20)]));
        assert_eq!(list("e"), []);
        // Also without a server, where no record is read; and with one that has lost its files.
        stripe.kill(0, true);
        let before = stripe.opens();
        assert_eq!((list(""), stripe.opens()), (all, before));
        fs::remove_file(&stripe.files(1, true)[1]).expect("the record of a, after .hidden");
        assert_eq!(list("").len(), 4);
        assert!(stripe.opens() > before);
        (1..3).for_each(|server| stripe.kill(server, true));
        let error = stripe.list("").expect_err("too few").to_string();
        assert!(error.contains("s0:") && error.contains("found 1"), "{error}");
    }

    #[test]
    fn an_object_whose_removal_did_not_end_is_not_listed() {
        let stripe = TestStripe::new(4, 1, false);
        stripe.put("a", &bytes_of(1000, 1), false).expect("written");
        let parts: Vec<_> = (0..4).map(|server| stripe.part(server)).collect();
        let bytes: Vec<_> = parts.iter().map(|path| fs::read(path).expect("a part")).collect();
        stripe.remove("a").expect("removed");
        // As if it had been killed before the parts were removed.
        parts.iter().zip(bytes).for_each(|(path, bytes)| fs::write(path, bytes).expect("a part"));
        assert_eq!(stripe.list("").expect("listed"), []);
    }
}
