//! What a server lists.

use super::{ANSWER_LIMIT, Server};
use crate::liveness::while_alive;
use crate::names::{FileKind, kind_of};
use swathe_store_api::{Entry, ListItem, ListOptions, Listing, StoreError};

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

impl Server {
    /// Ask for the first page of a listing: whether it answers.
    pub(crate) fn answers(&self) -> Result<(), StoreError> {
        let result = self.within(ANSWER_LIMIT, |_| self.listing("")?.next_page().map(drop));
        self.learn("", &result);
        result
    }

    /// Whether it has a part or a record.
    pub(crate) fn has_files(&self) -> Result<bool, StoreError> {
        Ok(!self.first_files(1, |kind| !matches!(kind, FileKind::Other))?.is_empty())
    }

    /// Whether it has a record: parts alone may be of a write that failed.
    pub(crate) fn has_records(&self) -> Result<bool, StoreError> {
        Ok(!self.first_records(1)?.is_empty())
    }

    /// The paths of the first records that it lists.
    pub(crate) fn first_records(&self, most: usize) -> Result<Vec<String>, StoreError> {
        self.first_files(most, |kind| matches!(kind, FileKind::Record { .. }))
    }

    fn first_files(
        &self,
        most: usize,
        is_wanted: impl Fn(&FileKind) -> bool,
    ) -> Result<Vec<String>, StoreError> {
        self.within(ANSWER_LIMIT, |tell_page| {
            let (mut listing, mut paths) = (self.listing("")?, Vec::new());
            while let Some(page) = listing.next_page()? {
                tell_page();
                let path_of = |item: &ListItem| match item {
                    ListItem::Object(entry) => {
                        entry.path.strip_prefix(&self.prefix).map(String::from)
                    }
                    ListItem::Unlisted { .. } => None,
                };
                paths.extend(
                    page.iter().filter_map(path_of).filter(|path| is_wanted(&kind_of(path))),
                );
                if paths.len() >= most {
                    paths.truncate(most);
                    break;
                }
            }
            Ok(paths)
        })
    }

    fn listing(&self, path: &str) -> Result<Box<dyn Listing>, StoreError> {
        let options = ListOptions { with_hidden: true, may_lack: true, ..ListOptions::default() };
        self.at(path, |name| self.store.list(name, options))
    }

    /// The bytes of a file as a listing says them, also of one that cannot be opened; `None` if it is
    /// not listed.
    pub(crate) fn listed_size(&self, path: &str) -> Result<Option<u64>, StoreError> {
        let full_path = format!("{}{path}", self.prefix);
        self.within(ANSWER_LIMIT, |tell_page| {
            // To list a file alone some servers open it.
            let folder = path.rfind('/').map_or("", |at| &path[..=at]);
            let mut listing = self.listing(folder)?;
            while let Some(page) = listing.next_page()? {
                tell_page();
                for item in page {
                    match item {
                        ListItem::Object(entry) if entry.path == full_path => return Ok(entry.size),
                        _ => {}
                    }
                }
            }
            Ok(None)
        })
    }

    /// The files at or below a path, in pages; paths as of this folder. It is an error if no page
    /// comes for a while.
    pub(crate) fn list(
        &self,
        path: &str,
        take: &mut dyn FnMut(ServerItem) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let result = self.within(ANSWER_LIMIT, |tell_page| self.list_pages(path, tell_page, take));
        self.learn(path, &result);
        result
    }

    /// The same with all the time that its store takes, while it is alive.
    pub(crate) fn list_patiently(
        &self,
        path: &str,
        take: &mut dyn FnMut(ServerItem) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let result = while_alive(self, |tell| self.list_pages(path, tell, take)).flatten();
        self.learn(path, &result);
        result
    }

    fn list_pages(
        &self,
        path: &str,
        tell_page: &dyn Fn(),
        take: &mut dyn FnMut(ServerItem) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.check_stripe()?;
        let mut listing = self.listing(path)?;
        while let Some(page) = listing.next_page()? {
            tell_page();
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
}
