//! A tree of folders, listed folder by folder.

use std::collections::HashSet;
use std::time::{Duration, Instant};
use std::vec::IntoIter;
use swathe_store_api::{
    Entry, HIDDEN_PREFIX, LONGEST_PATH_BYTES, ListItem, ListOptions, Listing, StoreError,
};

/// Entries of a page.
const PAGE: usize = 4096;
/// Folders that wait to be listed. A tree with more is an error: a server may make up folders.
const MOST_FOLDERS: usize = 1_000_000;

/// After this time a page is returned even if it is not full, so that a walk can be stopped.
const PAGE_TIME: Duration = Duration::from_millis(100);

/// Lists one folder.
pub(crate) trait FolderReader: Send {
    /// List the folder at a path in the store. A start may be an object: that is an entry without
    /// a name.
    ///
    /// # Errors
    /// As [`Listing::next_page`].
    fn read(&mut self, folder: &str) -> Result<Vec<FolderEntry>, StoreError>;

    /// Why a folder below the start is not listed.
    fn reason(&self, error: &StoreError) -> String {
        error.to_string()
    }
}

/// An entry of a folder.
#[derive(Debug, PartialEq)]
pub(crate) struct FolderEntry {
    pub(crate) name: String,
    pub(crate) kind: EntryKind,
}

/// The kind of an entry.
#[derive(Debug, PartialEq)]
pub(crate) enum EntryKind {
    Folder,
    Object {
        size: Option<u64>,
        modified: Option<String>,
        etag: Option<String>,
    },
    /// Not listed, for this reason.
    Unlisted(String),
}

/// A walk through all folders at and below a path: those that wait, and what is left of one.
pub(crate) struct FolderWalk<R> {
    reader: R,
    options: ListOptions,
    start: String,
    waiting: Vec<String>,
    folder: String,
    entries: IntoIter<FolderEntry>,
    names: HashSet<String>,
}

impl<R: FolderReader> FolderWalk<R> {
    pub(crate) fn new(reader: R, start: &str, options: ListOptions) -> FolderWalk<R> {
        let start = start.trim_matches('/').to_string();
        FolderWalk {
            reader,
            options,
            waiting: vec![start.clone()],
            start,
            folder: String::new(),
            entries: Vec::new().into_iter(),
            names: HashSet::new(),
        }
    }

    /// Read the next folder; `false` when there is none.
    fn read_folder(&mut self, page: &mut Vec<ListItem>) -> Result<bool, StoreError> {
        let Some(folder) = self.waiting.pop() else { return Ok(false) };
        match self.reader.read(&folder) {
            Ok(entries) => self.entries = entries.into_iter(),
            Err(StoreError::NotFound { .. }) if folder == self.start && self.options.may_lack => {}
            Err(error) if folder == self.start => return Err(error),
            Err(error) => {
                let why = self.reader.reason(&error);
                page.push(ListItem::Unlisted { path: folder.clone(), why });
            }
        }
        self.folder = folder;
        self.names.clear();
        Ok(true)
    }

    fn take(
        &mut self,
        FolderEntry { name, kind }: FolderEntry,
    ) -> Result<Option<ListItem>, StoreError> {
        if name.starts_with(HIDDEN_PREFIX) && !self.options.with_hidden {
            return Ok(None);
        }
        let path = match (self.folder.is_empty(), name.is_empty()) {
            (true, _) => name.clone(),
            (false, true) => self.folder.clone(),
            (false, false) => format!("{}/{name}", self.folder),
        };
        Ok(match kind {
            EntryKind::Object { size, modified, etag } => {
                Some(ListItem::Object(Entry { path, size, modified, etag }))
            }
            EntryKind::Unlisted(why) => Some(ListItem::Unlisted { path, why }),
            // A server may name a folder twice.
            EntryKind::Folder if !self.names.insert(name) => None,
            EntryKind::Folder if path.len() > LONGEST_PATH_BYTES => {
                let length = path.len();
                let why = format!("its path has {length} bytes, more than {LONGEST_PATH_BYTES}");
                Some(ListItem::Unlisted { path, why })
            }
            EntryKind::Folder => {
                self.waiting.push(path);
                if self.waiting.len() > MOST_FOLDERS {
                    let why = format!("expected at most {MOST_FOLDERS} folders, found more");
                    return Err(StoreError::Network { url: self.start.clone(), why });
                }
                None
            }
        })
    }
}

impl<R: FolderReader> Listing for FolderWalk<R> {
    fn next_page(&mut self) -> Result<Option<Vec<ListItem>>, StoreError> {
        let mut page = Vec::new();
        let start = Instant::now();
        while page.len() < PAGE && start.elapsed() < PAGE_TIME {
            match self.entries.next() {
                Some(entry) => page.extend(self.take(entry)?),
                None if !page.is_empty() && self.waiting.is_empty() => break,
                None if self.read_folder(&mut page)? => {}
                None if page.is_empty() => return Ok(None),
                None => break,
            }
        }
        Ok(Some(page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each folder has these names; those that end in a slash are folders.
    struct Same(&'static [&'static str]);

    impl FolderReader for Same {
        fn read(&mut self, folder: &str) -> Result<Vec<FolderEntry>, StoreError> {
            if folder.ends_with("broken") {
                return Err(StoreError::Network { url: "u".into(), why: "down".into() });
            }
            let entry = |name: &&str| match name.strip_suffix('/') {
                Some(name) => FolderEntry { name: name.into(), kind: EntryKind::Folder },
                None => {
                    let kind = EntryKind::Object { size: Some(1), modified: None, etag: None };
                    FolderEntry { name: (*name).into(), kind }
                }
            };
            Ok(self.0.iter().map(entry).collect())
        }
    }

    fn all(mut listing: impl Listing) -> Vec<ListItem> {
        let mut all = Vec::new();
        while let Some(page) = listing.next_page().unwrap() {
            assert!(page.len() <= PAGE + 1);
            all.extend(page);
        }
        all
    }

    #[test]
    fn folders_without_end_are_left_at_the_longest_path() {
        let walk = FolderWalk::new(Same(&["a", "deeper/", "deeper/"]), "", ListOptions::default());
        let entries = all(walk);
        let (last, objects) = entries.split_last().unwrap();
        assert_eq!(objects.len(), LONGEST_PATH_BYTES.div_ceil("/deeper".len()) + 1);
        assert!(
            matches!(last, ListItem::Unlisted { why, .. } if why.contains("bytes, more than 1000"))
        );
    }

    #[test]
    fn what_is_below_the_start_does_not_stop_the_listing() {
        let names = &[".hidden/", ".x", "broken/", "a"];
        let walk = |start: &str| FolderWalk::new(Same(names), start, ListOptions::default());
        let object = Entry { path: "s/a".into(), size: Some(1), modified: None, etag: None };
        let item = ListItem::Unlisted { path: "s/broken".into(), why: "u: down".into() };
        assert_eq!(all(walk("s/")), [ListItem::Object(object), item]);
        assert!(walk("broken").next_page().is_err());
    }
}
