//! Where a folder is, and its members by their names.

use super::table::Member;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use swathe_store_api::{Interrupt, ObjectName, Source, Store, StoreError, Stores, Version};

/// Sizes that are asked for at the same time.
const ASKERS: usize = 16;

/// Where a folder is.
#[derive(Clone)]
pub(super) struct Place {
    /// As it was opened.
    pub(super) name: String,
    /// As users may see it.
    pub(super) url: String,
    pub(super) store: Arc<dyn Store>,
    pub(super) key: String,
    /// Name of its store, if it was opened by that.
    store_name: Option<String>,
    /// Folders that its path in the store names.
    depth: usize,
}

impl Place {
    pub(super) fn new(name: &str, stores: &Stores) -> Place {
        let name = name.trim_end_matches('/');
        let (store, url) = stores.locate(name);
        let store_name = stores.is_named(name).then(|| store.settings().name.clone());
        let root = store.settings().root.clone();
        let depth = match stores.file_of(name) {
            Some(path) => {
                let path = std::path::absolute(&path).unwrap_or(path);
                let root = root.strip_prefix("file://").unwrap_or_default();
                let root = if root.is_empty() { "/" } else { root };
                path.strip_prefix(root).unwrap_or(&path).components().count()
            }
            None => {
                let below = url.strip_prefix(&root).unwrap_or_default();
                below.split('/').filter(|part| !part.is_empty()).count()
            }
        };
        let (key, url) = (store.object_key(&url), store.display_url(&url));
        Place { name: name.to_string(), url, store, key, store_name, depth }
    }

    /// The path of the folder in its store, and that of a member in the folder.
    pub(super) fn split<'a>(&self, path: &'a str) -> Option<(&'a str, &'a str)> {
        match self.depth.checked_sub(1) {
            None => Some(("", path)),
            Some(last) => {
                let (at, _) = path.match_indices('/').nth(last)?;
                Some((&path[..at], &path[at + 1..]))
            }
        }
    }

    /// The URL of a member, and its name in the store.
    pub(super) fn locate(&self, start: &str, member: &str) -> (String, Option<String>) {
        let path = if start.is_empty() { member.to_string() } else { format!("{start}/{member}") };
        let qualified_name = self.store_name.as_ref().map(|name| format!("{name}:{path}"));
        (self.store.url_of(&path), qualified_name)
    }

    fn open(&self, start: &str, member: &str) -> Result<Arc<dyn Source>, StoreError> {
        let (url, qualified_name) = self.locate(start, member);
        self.store.open(ObjectName { url: &url, qualified_name: qualified_name.as_deref() })
    }

    /// Ask for the sizes of members that a listing did not tell.
    pub(super) fn ask_sizes(
        &self,
        start: &str,
        members: &mut [Member],
        unknown: &[usize],
    ) -> Result<(), StoreError> {
        let names: Vec<String> = unknown.iter().map(|&at| members[at].name.clone()).collect();
        for (&at, member) in unknown.iter().zip(self.ask(start, names, false)?) {
            members[at] = member;
        }
        Ok(())
    }

    /// Ask for members by their names; with `may_lack` those that are not there are left out.
    pub(super) fn ask(
        &self,
        start: &str,
        names: Vec<String>,
        may_lack: bool,
    ) -> Result<Vec<Member>, StoreError> {
        let (next, interrupt) = (AtomicUsize::new(0), Interrupt::current());
        let answers = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..ASKERS.min(names.len()) {
                scope.spawn(|| {
                    interrupt.enter();
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(name) = names.get(at) else { break };
                        let answer = match self.open(start, name) {
                            Ok(source) => Ok(Some(member(name, source.version()))),
                            Err(StoreError::NotFound { .. } | StoreError::Forbidden { .. })
                                if may_lack =>
                            {
                                Ok(None)
                            }
                            Err(error) => Err(error),
                        };
                        if answer.is_err() {
                            next.store(names.len(), Ordering::Relaxed);
                        }
                        answers.lock().unwrap_or_else(PoisonError::into_inner).push((at, answer));
                    }
                });
            }
        });
        let mut answers = answers.into_inner().unwrap_or_else(PoisonError::into_inner);
        answers.sort_unstable_by_key(|(at, _)| *at);
        answers.into_iter().filter_map(|(_, answer)| answer.transpose()).collect()
    }
}

/// A member as its server has it.
fn member(name: &str, version: &Version) -> Member {
    let is_told = !version.tag.starts_with("unversioned");
    let stamp = if is_told { version.tag.clone() } else { String::new() };
    Member { name: name.to_string(), size: version.size, stamp }
}
