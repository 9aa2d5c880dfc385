//! An object of a WebDAV server that has a hidden name beside its own until it is whole: XRootD
//! shows unfinished files.

use super::request_target::RequestTarget;
use super::retry::sending;
use super::webdav::{DEPTH, UploadLabel, method};
use crate::redact::percent_decode;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use std::sync::Arc;
use std::time::Duration;
use swathe_store_api::{StoreError, part_name};

/// How long to wait for the removal of an abandoned file.
pub(super) const TIDYING: Duration = Duration::from_secs(5);

pub(super) const DESTINATION: HeaderName = HeaderName::from_static("destination");
pub(super) const OVERWRITE: HeaderName = HeaderName::from_static("overwrite");

/// An object under a hidden name. Dropped before it has its own, it is removed.
pub(super) struct HiddenObject {
    pub(super) target: Arc<RequestTarget>,
    pub(super) name: Url,
    pub(super) part_url: Url,
    pub(super) is_xrootd: bool,
    has_name: bool,
}

impl HiddenObject {
    /// The object that a target stands for; nothing is written yet.
    pub(super) fn new(target: RequestTarget, is_xrootd: bool) -> Result<HiddenObject, StoreError> {
        let name = target.name()?;
        target.check_uncut(&name, is_xrootd)?;
        let part_url = part_url_of(&name);
        Ok(HiddenObject { target: Arc::new(target), name, part_url, is_xrootd, has_name: false })
    }

    /// The same, with another hidden name.
    pub(super) fn new_at(
        target: RequestTarget,
        is_xrootd: bool,
        part_url: Url,
    ) -> Result<HiddenObject, StoreError> {
        let mut object = HiddenObject::new(target, is_xrootd)?;
        object.part_url = part_url;
        Ok(object)
    }

    /// A URL that a server redirects to, with user and password if it is of this server: these are
    /// not in the request of the object, but a header beside it.
    pub(super) fn with_user(&self, mut url: Url) -> Url {
        if url.origin() == self.part_url.origin() {
            let _ = url.set_username(self.part_url.username());
            let _ = url.set_password(self.part_url.password());
        }
        url
    }

    /// Give the object its name; returns whether it surely was this object that got it. Nothing
    /// replaces a folder: the server would remove all that is in it (RFC 4918, 9.9.3).
    pub(super) fn rename(&mut self, replaces: bool) -> Result<bool, StoreError> {
        let target = &self.target;
        if replaces {
            let look = target.block_on(async |client| {
                let look = async |_| target.look(client, &self.name).await;
                target.with_retries_within(sending(0), look).await
            });
            self.check_no_folder(look?.is_folder)?;
        }
        let overwrite = if replaces { "T" } else { "F" };
        let to = self.destination(&self.name)?;
        let is_sure = target.block_on(async |client| {
            let result = target.with_retries_within(sending(0), async |failures| {
                let request = target.writing(client, method("MOVE"), &self.part_url);
                let request = request.header(DESTINATION, &to).header(OVERWRITE, overwrite);
                let (limit, label) = (Some(sending(0)), UploadLabel::new("MOVE", 0));
                let response = target.upload_answer(request, &self.part_url, limit, label).await?;
                // An earlier one may have succeeded: the caller checks the target.
                if failures > 0 && response.status() == StatusCode::NOT_FOUND {
                    return Ok(false);
                }
                if !replaces && response.status() == StatusCode::PRECONDITION_FAILED {
                    return Err(StoreError::Exists { url: target.url.clone() }.into());
                }
                target.check_success(response, "MOVE").await.map(|_| true)
            });
            result.await
        })?;
        self.has_name = true;
        Ok(is_sure)
    }

    /// Refuse to replace a folder.
    pub(super) fn check_no_folder(&self, is_folder: bool) -> Result<(), StoreError> {
        match is_folder {
            true => Err(self.target.unsupported_error("is a folder, and not replaced")),
            false => Ok(()),
        }
    }

    /// A URL as MOVE and COPY take it. XRootD (5.5) decodes no `%20` there, and drops non-ASCII
    /// characters at the end of a header.
    pub(super) fn destination(&self, url: &Url) -> Result<HeaderValue, StoreError> {
        self.target.check_uncut(&self.name, self.is_xrootd)?;
        let mut url = url.clone();
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        let text = match self.is_xrootd {
            false => url.to_string().into_bytes(),
            true => {
                [url.origin().ascii_serialization().into(), percent_decode(url.path())].concat()
            }
        };
        let is_cut = self.is_xrootd && !text.last().is_some_and(u8::is_ascii_graphic);
        match HeaderValue::from_bytes(&text) {
            Ok(name) if !is_cut => Ok(name),
            _ => Err(self
                .target
                .unsupported_error("the server cannot be told to give it such a name")),
        }
    }
}

impl Drop for HiddenObject {
    fn drop(&mut self) {
        if self.has_name {
            return;
        }
        // Hidden, and written anew the next time, if it cannot be removed.
        let _ = self.target.block_on(async |client| {
            let request = self.target.writing(client, Method::DELETE, &self.part_url);
            let request = request.header(DEPTH, "0");
            Ok(self.target.answer(request, &self.part_url, Some(TIDYING)).await.is_ok())
        });
    }
}

/// The hidden name of an object while it comes.
pub(super) fn part_url_of(name: &Url) -> Url {
    let mut url = name.clone();
    let last = name.path().rsplit('/').next().unwrap_or_default();
    let last = String::from_utf8_lossy(&percent_decode(last)).into_owned();
    if let Ok(mut parts) = url.path_segments_mut() {
        parts.pop().push(&part_name(&last));
    }
    url
}
