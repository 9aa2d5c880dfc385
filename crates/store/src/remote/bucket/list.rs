//! What a bucket holds below a prefix, page by page.

use super::Bucket;
use object_store::ObjectStoreExt;
use object_store::list::PaginatedListOptions;
use object_store::path::Path;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use swathe_net::net;
use swathe_store_api::{Entry, ListItem, ListOptions, Listing, StoreError, is_hidden};

/// A listing on its way: one page at a time is in memory.
pub(super) struct BucketListing {
    bucket: Bucket,
    /// As users may see it.
    url: String,
    /// Prefix of the store: the keys of its objects begin with it.
    root: String,
    prefix: Path,
    /// Whether the prefix may be an object itself.
    may_be_object: bool,
    options: ListOptions,
    /// Whether nothing was listed yet of a folder that must exist.
    may_be_missing: bool,
    /// An empty object that may mark a folder: then those in it follow.
    mark: Option<Entry>,
    next: Next,
    /// Hashes of the tokens of all pages until now: the server may send them in circles.
    tokens: HashSet<u64>,
}

#[derive(PartialEq)]
enum Next {
    First,
    Page(String),
    End,
}

impl BucketListing {
    /// Objects at or below a prefix; `is_folder`: only those below. `root`: prefix of the store.
    pub(super) fn new(
        bucket: Bucket,
        url: String,
        root: &str,
        prefix: Path,
        is_folder: bool,
        options: ListOptions,
    ) -> BucketListing {
        let may_be_object = !is_folder && !prefix.is_root();
        let root = if root.is_empty() { String::new() } else { format!("{root}/") };
        BucketListing {
            bucket,
            url,
            root,
            may_be_object,
            may_be_missing: !options.may_lack && !prefix.is_root(),
            prefix,
            options,
            mark: None,
            next: Next::First,
            tokens: HashSet::new(),
        }
    }

    async fn page(&mut self) -> Result<Vec<Entry>, StoreError> {
        let token = match &self.next {
            Next::Page(token) => Some(token.clone()),
            _ => None,
        };
        let below = (!self.prefix.is_root()).then(|| format!("{}/", self.prefix));
        let options = PaginatedListOptions { page_token: token.clone(), ..Default::default() };
        let page = self.bucket.pages.list_paginated(below.as_deref(), options).await;
        let page = page.map_err(|error| self.bucket.error(&self.url, error))?;
        let mut objects = page.result.objects;
        let is_empty = token.is_none() && objects.is_empty() && page.page_token.is_none();
        if is_empty && self.may_be_object {
            match self.bucket.objects.head(&self.prefix).await {
                Ok(object) => objects.push(object),
                Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(self.bucket.error(&self.url, error)),
            }
        }
        if page.page_token.as_ref().is_some_and(|token| !self.is_new(token)) {
            let why = "the server gives the same page of its listing again".into();
            return Err(StoreError::Network { url: self.url.clone(), why });
        }
        self.next = page.page_token.map_or(Next::End, Next::Page);
        let entry = |object: object_store::ObjectMeta| {
            let path = object.location.as_ref().strip_prefix(&self.root)?.to_string();
            let modified = Some(object.last_modified.to_rfc3339());
            let etag = object.e_tag.map(|tag| tag.trim_matches('"').to_string());
            Some(Entry { path, size: Some(object.size), modified, etag })
        };
        Ok(objects.into_iter().filter_map(entry).collect())
    }

    /// Whether no page before had this token.
    fn is_new(&mut self, token: &str) -> bool {
        // 64 bits of each: a token may take kilobytes, and a bucket may have millions of pages.
        let mut hasher = DefaultHasher::new();
        token.hash(&mut hasher);
        self.tokens.insert(hasher.finish())
    }

    /// The entries of a page that are listed. Some programs mark a folder by an empty object before
    /// those in it.
    fn filter_entries(&mut self, entries: Vec<Entry>) -> Vec<ListItem> {
        let mut output = Vec::with_capacity(entries.len());
        if self.options.with_hidden {
            output.extend(entries.into_iter().map(ListItem::Object));
            return output;
        }
        let start = self.prefix.as_ref().strip_prefix(&self.root).unwrap_or_default().to_string();
        for entry in entries {
            let mark = self.mark.take();
            let is_inside = |mark: &Entry| {
                entry.path.strip_prefix(&mark.path).is_some_and(|rest| rest.starts_with('/'))
            };
            output.extend(mark.filter(|mark| !is_inside(mark)).map(ListItem::Object));
            let below = entry.path.strip_prefix(&start).unwrap_or(&entry.path);
            match entry.size {
                _ if is_hidden(below) => {}
                Some(0) => self.mark = Some(entry),
                _ => output.push(ListItem::Object(entry)),
            }
        }
        output
    }
}

impl Listing for BucketListing {
    fn next_page(&mut self) -> Result<Option<Vec<ListItem>>, StoreError> {
        if self.next == Next::End {
            return Ok(None);
        }
        let net = net().map_err(|why| StoreError::Network { url: self.url.clone(), why })?;
        let entries = net.runtime.block_on(self.page())?;
        self.may_be_missing &= entries.is_empty();
        if self.may_be_missing && self.next == Next::End {
            let (url, why) = (self.url.clone(), ": no such folder".to_string());
            return Err(StoreError::NotFound { url, why });
        }
        let mut output = self.filter_entries(entries);
        if self.next == Next::End {
            output.extend(self.mark.take().map(ListItem::Object));
        }
        Ok(Some(output))
    }
}
