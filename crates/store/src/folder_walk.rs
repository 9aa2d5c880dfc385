//! A tree of folders, listed folder by folder.

use std::collections::HashSet;
use std::time::{Duration, Instant};
use std::vec::IntoIter;
use swathe_store_api::{
    Entry, LONGEST_PATH_BYTES, ListItem, ListOptions, Listing, StoreError, is_hidden_name,
};

/// Entries of a page.
const PAGE: usize = 4096;
/// Folders of a listing. A tree with more is an error: a server may make up folders.
const MOST_FOLDERS: usize = 1_000_000;
/// Folders whose path is too long, of a server that may make them up.
const MOST_LONG_PATHS: usize = 100;
/// Folders one after the other without an object in them, of a server that may make them up.
const MOST_BARE_FOLDERS: usize = 10_000;

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

    /// Whether there are as many folders as there is room for, and no more.
    fn is_finite(&self) -> bool {
        false
    }

    /// Whether a folder below the start was removed since the one above it was read.
    fn is_removed(&self, _folder: &str, _error: &StoreError) -> bool {
        false
    }

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
    /// Folders that were listed, and are to be.
    folders: usize,
    /// Folders that were listed since the last object.
    bare_folders: usize,
    /// Folders whose path is too long.
    long_paths: usize,
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
            folders: 1,
            bare_folders: 0,
            long_paths: 0,
        }
    }

    /// Read the next folder; `false` when there is none.
    fn read_folder(&mut self, page: &mut Vec<ListItem>) -> Result<bool, StoreError> {
        let Some(folder) = self.waiting.pop() else { return Ok(false) };
        if self.bare_folders >= MOST_BARE_FOLDERS && !self.reader.is_finite() {
            let expected = format!("an object in one of {MOST_BARE_FOLDERS} folders");
            return Err(self.too_many(&folder, expected, "folders only".into()));
        }
        self.bare_folders += 1;
        match self.reader.read(&folder) {
            Ok(entries) => self.entries = entries.into_iter(),
            Err(StoreError::NotFound { .. }) if folder == self.start && self.options.may_lack => {}
            Err(error) if folder == self.start => return Err(error),
            Err(error) if self.reader.is_removed(&folder, &error) => {}
            Err(error) => {
                let why = self.reader.reason(&error);
                page.push(ListItem::Unlisted { path: folder.clone(), why });
            }
        }
        self.folder = folder;
        self.names.clear();
        Ok(true)
    }

    /// The error of a tree that may have no end; `folder`: where the listing was.
    fn too_many(&self, folder: &str, expected: String, found: String) -> StoreError {
        let start = if self.start.is_empty() { "its root" } else { &self.start };
        let why = format!("expected {expected}, found {found}, as far as the folder {folder}");
        StoreError::Network { url: format!("the listing of {start}"), why }
    }

    fn take(
        &mut self,
        FolderEntry { name, kind }: FolderEntry,
    ) -> Result<Option<ListItem>, StoreError> {
        if is_hidden_name(name.as_bytes()) && !self.options.with_hidden {
            return Ok(None);
        }
        let path = match (self.folder.is_empty(), name.is_empty()) {
            (true, _) => name.clone(),
            (false, true) => self.folder.clone(),
            (false, false) => format!("{}/{name}", self.folder),
        };
        Ok(match kind {
            EntryKind::Object { size, modified, etag } => {
                self.bare_folders = 0;
                Some(ListItem::Object(Entry { path, size, modified, etag }))
            }
            EntryKind::Unlisted(why) => Some(ListItem::Unlisted { path, why }),
            // A server may name a folder twice.
            EntryKind::Folder if !self.names.insert(name) => None,
            EntryKind::Folder if path.len() > LONGEST_PATH_BYTES => {
                self.long_paths += 1;
                if self.long_paths > MOST_LONG_PATHS && !self.reader.is_finite() {
                    let expected = format!("paths of at most {LONGEST_PATH_BYTES} bytes");
                    let found = format!("{MOST_LONG_PATHS} folders with longer ones");
                    return Err(self.too_many(&path, expected, found));
                }
                let length = path.len();
                let why = format!("its path has {length} bytes, more than {LONGEST_PATH_BYTES}");
                Some(ListItem::Unlisted { path, why })
            }
            EntryKind::Folder => {
                self.folders += 1;
                let count = if self.reader.is_finite() { self.waiting.len() } else { self.folders };
                if count > MOST_FOLDERS {
                    let expected = format!("at most {MOST_FOLDERS} folders");
                    return Err(self.too_many(&path, expected, "more".into()));
                }
                self.waiting.push(path);
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

    /// Each folder down to a depth has eight others; some have an object.
    struct Tree {
        depth: usize,
        reads_per_object: usize,
        is_finite: bool,
        reads: usize,
    }

    impl FolderReader for Tree {
        fn read(&mut self, folder: &str) -> Result<Vec<FolderEntry>, StoreError> {
            self.reads += 1;
            let names = if folder.split('/').count() > self.depth { 0 } else { 8 };
            let entry =
                |number| FolderEntry { name: format!("f{number}"), kind: EntryKind::Folder };
            let mut entries: Vec<_> = (0..names).map(entry).collect();
            if self.reads.is_multiple_of(self.reads_per_object) {
                let kind = EntryKind::Object { size: Some(1), modified: None, etag: None };
                entries.push(FolderEntry { name: "a".into(), kind });
            }
            Ok(entries)
        }

        fn is_finite(&self) -> bool {
            self.is_finite
        }
    }

    /// Folders listed, and the error at the end.
    fn walk_tree(
        depth: usize,
        reads_per_object: usize,
        is_finite: bool,
    ) -> (usize, Option<String>) {
        let reader = Tree { depth, reads_per_object, is_finite, reads: 0 };
        let mut walk = FolderWalk::new(reader, "s", ListOptions::default());
        let error = loop {
            match walk.next_page() {
                Ok(Some(_)) => {}
                Ok(None) => break None,
                Err(error) => break Some(error.to_string()),
            }
        };
        (walk.reader.reads, error)
    }

    #[test]
    fn a_tree_that_a_server_makes_up_is_an_error() {
        let (reads, error) = walk_tree(usize::MAX, 1, false);
        let text = error.unwrap();
        let why = "the listing of s: expected paths of at most 1000 bytes, found 100 folders with longer \
                   ones, as far as the folder s/f7/";
        assert!(reads < 500 && text.starts_with(why), "{text}");
        let (reads, error) = walk_tree(6, usize::MAX, false);
        let text = error.unwrap();
        let why =
            "expected an object in one of 10000 folders, found folders only, as far as the folder";
        assert!(reads == MOST_BARE_FOLDERS && text.contains(why), "{text}");
        let (_, error) = walk_tree(7, 9_000, false);
        let text = error.unwrap();
        assert!(text.contains("expected at most 1000000 folders, found more"), "{text}");
        let all = (0..=6).map(|level| 8_usize.pow(level)).sum();
        assert_eq!(walk_tree(6, usize::MAX, true), (all, None));
        assert_eq!(walk_tree(6, 9_000, false), (all, None));
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
