//! What a bucket holds below a prefix, page by page.

use crate::remote::Bucket;
use crate::stores::{Address, Stores};
use object_store::ObjectStoreExt;
use object_store::list::PaginatedListOptions;
use object_store::path::Path;
use swathe_net::net;
use swathe_store_api::StoreError;

/// An object that a listing names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path in the store.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// When it was written (RFC 3339).
    pub modified: String,
    /// Its ETag, as the listing has it: some leave out the quotes.
    pub etag: Option<String>,
}

/// A listing on its way: one page at a time is in memory.
pub struct Listing {
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

impl Stores {
    /// List the objects of a bucket at or below `NAME:prefix`, with a slash at its end only those
    /// below. Nothing is asked yet.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] where the store is none of buckets, or the prefix no part of a
    /// key.
    pub fn list(&self, place: &str) -> Result<Listing, StoreError> {
        let (store, url) = self.locate(place);
        let is_folder = url.ends_with('/');
        let url = url.trim_end_matches('/').to_string();
        let unsupported = |why: String| StoreError::Unsupported { url: url.clone(), why };
        let Address::Bucket { cloud, name, settings } = store.address(&url)? else {
            return Err(unsupported("only buckets can be listed so".into()));
        };
        let (bucket, prefix) = Bucket::new(cloud, &name, &settings).map_err(unsupported)?;
        let may_be_object = !is_folder && !prefix.is_root();
        // Behind the scheme there is the bucket, and then the prefix of the store.
        let root = store.root.splitn(4, '/').nth(3).unwrap_or_default();
        let root = if root.is_empty() { String::new() } else { format!("{root}/") };
        Ok(Listing { bucket, url, root, prefix, may_be_object, next: Next::First })
    }
}

impl Listing {
    /// The next page, perhaps an empty one; `None` when all were given.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where there is no such bucket; [`StoreError::Forbidden`];
    /// [`StoreError::Network`] where the server fails, or goes in circles.
    pub fn next_page(&mut self) -> Result<Option<Vec<Entry>>, StoreError> {
        if self.next == Next::End {
            return Ok(None);
        }
        let net = net().map_err(|why| StoreError::Network { url: self.url.clone(), why })?;
        net.runtime.block_on(self.page()).map(Some)
    }

    async fn page(&mut self) -> Result<Vec<Entry>, StoreError> {
        let token = match &self.next {
            Next::Page(token) => Some(token.clone()),
            _ => None,
        };
        let below = (!self.prefix.is_root()).then(|| format!("{}/", self.prefix));
        let options = PaginatedListOptions { page_token: token.clone(), ..Default::default() };
        let found = self.bucket.pages.list_paginated(below.as_deref(), options).await;
        let found = found.map_err(|error| self.bucket.error(&self.url, error))?;
        let mut objects = found.result.objects;
        let is_empty = token.is_none() && objects.is_empty() && found.page_token.is_none();
        if is_empty && self.may_be_object {
            match self.bucket.objects.head(&self.prefix).await {
                Ok(object) => objects.push(object),
                Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(self.bucket.error(&self.url, error)),
            }
        }
        if found.page_token.is_some() && found.page_token == token {
            let why = "the server gives the same page of its listing again".into();
            return Err(StoreError::Network { url: self.url.clone(), why });
        }
        self.next = found.page_token.map_or(Next::End, Next::Page);
        let entry = |object: object_store::ObjectMeta| {
            let path = object.location.as_ref().strip_prefix(&self.root)?.to_string();
            let modified = object.last_modified.to_rfc3339();
            Some(Entry { path, size: object.size, modified, etag: object.e_tag })
        };
        Ok(objects.into_iter().filter_map(entry).collect())
    }
}
