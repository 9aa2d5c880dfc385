//! Versions of objects whose server sends neither ETag nor date with their bytes: XRootD, which
//! sends the date only in answer to PROPFIND.
//!
//! The date is requested before the first bytes, and again after bytes arrived: bytes between two
//! equal dates are of one version, within a second. One question serves all bytes before
//! it: in a read with many requests it is sent after each round of them, and at the end.

use super::attempt::{Attempt, Try};
use super::range_request::Validators;
use super::request_target::RequestTarget;
use super::webdav::{QUESTION, property};
use bytes::Bytes;
use reqwest::Client;
use std::sync::atomic::Ordering;
use std::time::Duration;
use swathe_store_api::{Failure, StoreError};
use swathe_trace::Scope;

/// If few requests are in flight, this many pieces wait for one question.
const LEAST_ROUND: u32 = 4;

/// Pieces that arrive before the date is requested again. All of them wait for it, and no other: a
/// question that is still unanswered when the last piece comes would not serve that.
pub(super) fn round(streams: u32) -> u32 {
    streams.max(LEAST_ROUND)
}

/// The properties in the answer of a server.
#[derive(Debug, PartialEq)]
pub(super) struct PropfindVersion {
    size: Option<u64>,
    pub(super) date: String,
}

impl PropfindVersion {
    fn of(text: &str) -> Option<PropfindVersion> {
        let date = property(text, "getlastmodified").filter(|date| !date.is_empty())?.to_string();
        Some(PropfindVersion {
            size: property(text, "getcontentlength").and_then(|n| n.parse().ok()),
            date,
        })
    }
}

/// An object as it was opened.
#[derive(Clone)]
pub(super) struct OpenedRemote {
    pub(super) size: u64,
    pub(super) validators: Validators,
    pub(super) first: Bytes,
    /// Whether the date was requested separately.
    pub(super) is_dated: bool,
}

impl RequestTarget {
    /// Whether the server is known to send the date of an object only with PROPFIND.
    pub(super) fn is_dating(&self) -> bool {
        self.is_xrootd || self.limiter.is_dating.load(Ordering::Relaxed)
    }

    /// Size, validators and first bytes: with one request if all goes well, and one for the date
    /// if the server is known to send it only so.
    pub(super) async fn begin(&self, client: &Client) -> Result<OpenedRemote, StoreError> {
        let scope = Scope::current();
        let mut is_date_requested = self.is_dating();
        let mut propfind =
            if is_date_requested { self.request_date(client, &scope, false).await? } else { None };
        loop {
            let size = propfind.as_ref().and_then(|propfind| propfind.size);
            let (size, mut validators, first) = self.begin_with(client, size).await?;
            if validators.tag().is_none()
                && !is_date_requested
                && (validators.is_xrootd || self.is_dav)
            {
                // The bytes must be the younger ones: these may be of a version before.
                is_date_requested = true;
                propfind = self.request_date(client, &scope, false).await?;
                if propfind.is_some() {
                    self.limiter.is_dating.store(true, Ordering::Relaxed);
                    continue;
                }
            }
            let is_dated = validators.tag().is_none() && propfind.is_some();
            if is_dated {
                validators.last_modified = propfind.map(|propfind| propfind.date);
            }
            return Ok(OpenedRemote { size, validators, first, is_dated });
        }
    }

    /// Request the date; `None` if the server does not send it. `must`: it did before, so that
    /// is an error.
    async fn request_date(
        &self,
        client: &Client,
        scope: &Scope,
        must: bool,
    ) -> Result<Option<PropfindVersion>, StoreError> {
        self.read(scope, DateAttempt { target: self, client, must }).await.0
    }

    async fn ask_date(
        &self,
        client: &Client,
        stall: Duration,
        must: bool,
    ) -> Result<Option<PropfindVersion>, Failure> {
        let Some(url) = self.endpoint.url() else { return Ok(None) };
        match self.properties(client, url, QUESTION, stall).await? {
            (_, Some(text)) => Ok(PropfindVersion::of(&text)),
            (response, None) if must => Err(self.status_error(response, self.stall.most).await),
            (_, None) => Ok(None),
        }
    }

    /// Learn whether all that has come by now is of the version that was opened.
    ///
    /// # Errors
    /// `change_error`, if the object has another date by now; as the request has it.
    pub(super) async fn vouch(
        &self,
        client: &Client,
        scope: &Scope,
        is_same: impl FnOnce(&str) -> bool,
        change_error: impl FnOnce() -> StoreError,
    ) -> Result<(), StoreError> {
        match self.request_date(client, scope, true).await? {
            Some(current) if is_same(&current.date) => Ok(()),
            _ => Err(change_error()),
        }
    }
}

/// A request for the date.
struct DateAttempt<'a> {
    target: &'a RequestTarget,
    client: &'a Client,
    must: bool,
}

impl Attempt for DateAttempt<'_> {
    type Answer = Option<PropfindVersion>;

    async fn run(&mut self, numbers: Try) -> Result<Option<PropfindVersion>, Failure> {
        let stall = self.target.stall_limit(numbers.failures);
        self.target.ask_date(self.client, stall, self.must).await
    }
}
