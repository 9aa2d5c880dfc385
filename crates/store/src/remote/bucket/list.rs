//! What a bucket holds below a prefix, page by page.

use super::Bucket;
use object_store::ObjectStoreExt;
use object_store::list::PaginatedListOptions;
use object_store::path::Path;
use swathe_net::net;
use swathe_store_api::{Entry, Listing, StoreError};

/// A listing on its way: one page at a time is in memory.
pub(super) struct BucketListing {
    bucket: Bucket,
    /// As users may see it.
    url: String,
    /// Of the store: the keys of its objects begin with it.
    root: String,
    prefix: Path,
    /// Whether the prefix may be an object itself.
    may_be_object: bool,
    next: Next,
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
    ) -> BucketListing {
        let may_be_object = !is_folder && !prefix.is_root();
        let root = if root.is_empty() { String::new() } else { format!("{root}/") };
        BucketListing { bucket, url, root, prefix, may_be_object, next: Next::First }
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
        if page.page_token.is_some() && page.page_token == token {
            let why = "the server gives the same page of its listing again".into();
            return Err(StoreError::Network { url: self.url.clone(), why });
        }
        self.next = page.page_token.map_or(Next::End, Next::Page);
        let entry = |object: object_store::ObjectMeta| {
            let path = object.location.as_ref().strip_prefix(&self.root)?.to_string();
            let modified = object.last_modified.to_rfc3339();
            Some(Entry { path, size: object.size, modified, etag: object.e_tag })
        };
        Ok(objects.into_iter().filter_map(entry).collect())
    }
}

impl Listing for BucketListing {
    fn next_page(&mut self) -> Result<Option<Vec<Entry>>, StoreError> {
        if self.next == Next::End {
            return Ok(None);
        }
        let net = net().map_err(|why| StoreError::Network { url: self.url.clone(), why })?;
        net.runtime.block_on(self.page()).map(Some)
    }
}
