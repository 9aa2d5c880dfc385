//! What a folder of an HTTP or WebDAV server holds: asked by PROPFIND, or read from its index.

use super::index_page::{self, no_index};
use super::request_target::RequestTarget;
use super::response::header;
use super::retry::sending;
use super::stall_timeout::Trickle;
use super::webdav::{DEPTH, is_xrootd, method};
use super::webdav_listing::{self, QUESTION};
use crate::folder_walk::{EntryKind, FolderEntry, FolderReader};
use crate::redact;
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, SERVER};
use reqwest::{Client, Method, Response, Url};
use std::time::{Duration, Instant};
use swathe_net::host;
use swathe_store_api::{Failure, Retry, StoreError};
use tokio::time::timeout;

/// Limit of an index.
const LARGEST_PAGE_BYTES: usize = 256 << 20;
/// Limit of a WebDAV answer: about 100,000 objects in one folder. XML takes more memory.
const LARGEST_XML_BYTES: usize = 64 << 20;
/// A second request that fails after so long is the last: a server that hangs is not waited for long.
const LONG_TRY: Duration = Duration::from_secs(20);
/// Statuses of servers that write by WebDAV but list only by index; nginx sends 403.
const NO_WEBDAV: [u16; 3] = [403, 405, 501];

/// Lists folders of a server.
pub(super) struct HttpFolders<F> {
    /// Makes the target of a folder.
    target: F,
    /// Whether the server lists by WebDAV; `None`: not known before the first folder.
    by_webdav: Option<bool>,
    is_xrootd: bool,
}

impl<F> HttpFolders<F> {
    /// `speaks_webdav`: whether the URL says so.
    pub(super) fn new(target: F, speaks_webdav: bool, is_xrootd: bool) -> HttpFolders<F> {
        HttpFolders { target, by_webdav: (!speaks_webdav).then_some(false), is_xrootd }
    }

    async fn list(
        &mut self,
        target: &RequestTarget,
        client: &Client,
        url: &Url,
    ) -> Result<Vec<FolderEntry>, StoreError> {
        if self.by_webdav != Some(false) {
            let entries = self.by_propfind(target, client, url).await?;
            self.by_webdav = Some(entries.is_some());
            if let Some(entries) = entries {
                return Ok(entries);
            }
        }
        let (response, content) = target.index(client, url).await?;
        let kind = header(&response, CONTENT_TYPE).unwrap_or("text/plain");
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        index_page::entries(&target.url, response.url(), &kind, &content)
    }

    /// The entries of a folder on a WebDAV server; `None` if an index must be read instead.
    async fn by_propfind(
        &mut self,
        target: &RequestTarget,
        client: &Client,
        url: &Url,
    ) -> Result<Option<Vec<FolderEntry>>, StoreError> {
        let may_be_none = self.by_webdav.is_none();
        let Some((response, content)) = target.propfind(client, url, may_be_none).await? else {
            return Ok(None);
        };
        // dCache also serves root://, but encodes names; a proxy may be in front of either.
        let is_dcache = header(&response, SERVER).is_some_and(|name| name.starts_with("dCache"));
        self.is_xrootd = is_xrootd(&response) || (self.is_xrootd && !is_dcache);
        // After a redirect, names are those of the server redirected to.
        let entries = webdav_listing::entries(response.url(), &content, !self.is_xrootd);
        let mut entries = entries.map_err(|why| target.network(why))?;
        for FolderEntry { name, kind } in &mut entries {
            if let EntryKind::Unlisted(why) = kind {
                *why = format!("{}{}: {why}", target.url, redact::percent_encode(name, b"-._~"));
            } else if self.is_xrootd && name.contains('?') {
                let why = "XRootD cuts names at a ?, also an encoded one, and would return another \
                           object";
                *kind = EntryKind::Unlisted(format!("{}{name}: {why}", target.url));
            }
        }
        Ok(Some(entries))
    }
}

impl<F> FolderReader for HttpFolders<F>
where
    F: Fn(&str) -> Result<RequestTarget, StoreError> + Send,
{
    fn read(&mut self, folder: &str) -> Result<Vec<FolderEntry>, StoreError> {
        let target = (self.target)(folder)?;
        let Some(url) = target.endpoint.url().cloned() else {
            return Err(target.unsupported_error("has no URL of its own"));
        };
        target.block_on(async |client| self.list(&target, client, &url).await)
    }
}

impl RequestTarget {
    /// The index of a folder.
    async fn index(&self, client: &Client, url: &Url) -> Result<(Response, Vec<u8>), StoreError> {
        self.with_retries(async |failures| {
            let attempt = ListingTry::begin(failures);
            let request = self.writing(client, Method::GET, url);
            let request = request.header(ACCEPT, "application/json, text/html");
            let response = self.answer(request, url, Some(sending(0)));
            let response = response.await.map_err(|failure| attempt.failure(failure))?;
            if !response.status().is_success() {
                return Err(self.index_error(response).await);
            }
            if !response.url().as_str().ends_with('/') {
                let found =
                    format!("a redirect to {}", redact::redact_url(response.url().as_str()));
                return Err(no_index(&self.url, "its index", found).into());
            }
            self.content(response, LARGEST_PAGE_BYTES, attempt).await
        })
        .await
    }

    /// The answer to PROPFIND of a folder; `None` if it is refused as by servers that list by index,
    /// where that may be.
    async fn propfind(
        &self,
        client: &Client,
        url: &Url,
        may_be_none: bool,
    ) -> Result<Option<(Response, Vec<u8>)>, StoreError> {
        self.with_retries(async |failures| {
            let attempt = ListingTry::begin(failures);
            let request = self.writing(client, method("PROPFIND"), url).header(DEPTH, "1");
            let request = request.header(CONTENT_TYPE, "application/xml; charset=\"utf-8\"");
            let answer = self.answer(request.body(QUESTION), url, Some(sending(0)));
            let response = answer.await.map_err(|failure| attempt.failure(failure))?;
            if may_be_none && NO_WEBDAV.contains(&response.status().as_u16()) {
                return Ok(None);
            }
            if !response.status().is_success() {
                return Err(self.index_error(response).await);
            }
            self.content(response, LARGEST_XML_BYTES, attempt).await.map(Some)
        })
        .await
    }

    /// The error for a status other than success.
    async fn index_error(&self, response: Response) -> Failure {
        let status = response.status().as_u16();
        let failure = self.status_error(response, self.stall.most).await;
        let url = self.url.clone();
        let error = match status {
            401 | 403 => {
                let why = format!(": its index may not be read: status {status}");
                StoreError::Forbidden { url, why }
            }
            404 | 410 => {
                StoreError::NotFound { url, why: format!(": no such folder: status {status}") }
            }
            _ => self.network(format!("its index cannot be read: status {status}")),
        };
        Failure { error, ..failure }
    }

    /// All of an answer: a truncated index would make the missing objects look deleted.
    async fn content(
        &self,
        mut response: Response,
        most: usize,
        attempt: ListingTry,
    ) -> Result<(Response, Vec<u8>), Failure> {
        let content_length = header(&response, CONTENT_LENGTH).map(str::to_string);
        let (mut content, host) = (Vec::new(), host(response.url()));
        let mut trickle = Trickle::start();
        loop {
            match timeout(self.stall.most, response.chunk()).await {
                Err(_) => {
                    let error = self.stall_error(&host, self.stall.most);
                    return Err(attempt.failure(Failure::passing(error)));
                }
                Ok(Err(error)) => {
                    let why = format!(
                        "its index cannot be read: the answer of {host} broke off after {} bytes: {}",
                        content.len(),
                        swathe_net::why(&error)
                    );
                    return Err(Failure::passing(self.network(why)));
                }
                Ok(Ok(None)) => return Ok((response, content)),
                Ok(Ok(Some(chunk))) => {
                    content.extend_from_slice(&chunk);
                    if let Some(why) = trickle.count(chunk.len(), Instant::now()) {
                        let error = self.network(format!("{host} {why}"));
                        return Err(attempt.failure(Failure::passing(error)));
                    }
                }
            }
            if content.len() > most {
                let expected = content_length.as_deref().unwrap_or("some");
                let why = format!(
                    "expected an index of {expected} bytes, at most {most}; found {} and more",
                    content.len()
                );
                return Err(self.network(why).into());
            }
        }
    }
}

/// A request for an index.
#[derive(Clone, Copy)]
struct ListingTry {
    /// Those that failed before.
    failures: u32,
    begin: Instant,
}

impl ListingTry {
    fn begin(failures: u32) -> ListingTry {
        ListingTry { failures, begin: Instant::now() }
    }

    /// Its failure, with a message that says what was asked for.
    fn failure(self, failure: Failure) -> Failure {
        let is_last = self.failures > 0 && self.begin.elapsed() >= LONG_TRY;
        let retry = if is_last { Retry::Never } else { failure.retry };
        let error = match failure.error {
            StoreError::Network { url, why } => {
                StoreError::Network { url, why: format!("its index cannot be read: {why}") }
            }
            error => error,
        };
        Failure { error, retry }
    }
}
