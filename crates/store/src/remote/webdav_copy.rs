//! Copies that WebDAV servers make: of an object of theirs (COPY, RFC 4918, 9.8), or of another
//! server (third-party copy of XRootD and dCache: COPY with `Source`).
//!
//! A copy has a hidden name until we compared it. A server gets no credentials but its own, unless
//! the store that they are for says so. Redirects are followed as those of PUT; the credentials of the
//! source go along only where others on the way cannot read them.

use super::copy_markers::{CopyMarkers, CopyPace};
use super::copy_progress::report_progress;
use super::hidden_object::{DESTINATION, HiddenObject, OVERWRITE};
use super::request_target::RequestTarget;
use super::response::{RequestSecrets, header, hide};
use super::retry::copying;
use super::webdav::{UploadLabel, method};
use crate::redact;
use reqwest::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, IF_MATCH, LOCATION};
use reqwest::{Client, Response, StatusCode, Url};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use swathe_net::{REDIRECTS, check_private, host, is_here, staying};
use swathe_store_api::{CopyRefusal, CopySource, Failure, Retry, ServerCopy, StoreError};
use tokio::time::timeout;

/// A server that sends markers, and copies nothing for this many limits of silence, is given up.
const IDLE_LIMITS: u32 = 10;

const SOURCE: HeaderName = HeaderName::from_static("source");
const CREDENTIAL: HeaderName = HeaderName::from_static("credential");
const CHECKSUM: HeaderName = HeaderName::from_static("requirechecksumverification");
/// The headers that the server sends to the source. XRootD (5.5) reads the second, as it wants the
/// name of the first in capitals that our client does not send; dCache reads the first.
const TRANSFER_AUTHORIZATION: HeaderName = HeaderName::from_static("transferheaderauthorization");
const COPY_HEADER: HeaderName = HeaderName::from_static("copy-header");

/// Where the bytes of a copy come from.
pub(super) struct CopyOrigin {
    url: Url,
    bearer: Option<String>,
    /// Whether servers that copy may be sent its credentials.
    delegates: bool,
}

/// A copy that a server made, under its hidden name.
pub(super) struct WebdavCopy {
    object: HiddenObject,
    url: String,
    replaces: bool,
}

/// A hidden name that no other writer has.
pub(super) struct HiddenName {
    /// Its URL, as the store has it.
    pub(super) url: String,
    /// Its URL, as requests have it.
    pub(super) part_url: Url,
}

/// A request for a copy.
struct CopyRequest {
    at: Url,
    headers: HeaderMap,
    /// For the server of the source, by way of the one that copies.
    token: Option<String>,
    secrets: Vec<String>,
    /// Whether it says secrets of the source to the server that copies.
    is_secret: bool,
    /// Whether other servers than that of the copy may be told them.
    delegates: bool,
    bytes: u64,
    /// How long the server may take until it answers.
    limit: Duration,
    /// Whether the server reports its progress.
    has_markers: bool,
}

impl CopyOrigin {
    /// The position of an object, if it has one that other servers can read.
    pub(super) fn of(source: &CopySource<'_>) -> Result<CopyOrigin, CopyRefusal> {
        let unable = |why: &str| Err(CopyRefusal::Unable(why.into()));
        let settings = source.store.settings();
        let url = source.store.http_url(source.object.url)?;
        let Some(url) = url.and_then(|url| Url::parse(&url).ok()) else {
            return unable(match (source.store.is_bucket(), settings.over.is_empty()) {
                (true, _) => "requests of a bucket are signed, and signatures are not passed on",
                (_, false) => "the objects are striped",
                _ => "the objects have no URL",
            });
        };
        let bearer = source.store.bearer(source.object.url)?;
        let delegates = settings.option("delegation").is_some_and(|value| value == "true");
        Ok(CopyOrigin { url, bearer, delegates })
    }

    /// Refuse a copy by the server `to` if that cannot reach the source, or may not be sent its
    /// credentials.
    fn check(&self, to: &Url) -> Result<(), CopyRefusal> {
        let (host, unable) = (host(to), |why: String| Err(CopyRefusal::Unable(why)));
        if is_here(&self.url) && !is_here(to) {
            return unable(format!("{host} cannot reach a server of this machine"));
        }
        if !self.url.username().is_empty() || self.url.password().is_some() {
            return unable(format!("user and password of a URL are not sent to {host}"));
        }
        if self.bearer.is_none() && !redact::hides(&self.url) {
            return Ok(());
        }
        if !self.delegates {
            return unable(no_delegation(&host));
        }
        check_private(to, "server of the copy").map_err(CopyRefusal::Unable)
    }
}

impl WebdavCopy {
    /// Have the server of `target` copy an object to a hidden name.
    pub(super) fn make(
        target: RequestTarget,
        hidden: HiddenName,
        origin: &CopyOrigin,
        source: &CopySource<'_>,
    ) -> Result<WebdavCopy, CopyRefusal> {
        let refusal = target.limiter.copy_refusal.lock();
        if let Some(why) = refusal.unwrap_or_else(PoisonError::into_inner).clone() {
            return Err(CopyRefusal::Unable(why));
        }
        let name = target.name()?;
        let is_within = origin.url.origin() == name.origin();
        match is_within {
            true if !is_same_reader(&name, target.endpoint.token_for(&name), origin) => {
                let why = format!("the stores have different credentials for {}", host(&name));
                return Err(CopyRefusal::Unable(why));
            }
            true => {}
            false => origin.check(&name)?,
        }
        let look = target.block_on(async |client| {
            target.with_retries(async |_| target.look(client, &name).await).await
        });
        let status = look?;
        let is_xrootd = status.is_xrootd || target.is_xrootd;
        let object = HiddenObject::new_at(target, is_xrootd, hidden.part_url)?;
        object.check_no_folder(status.is_folder && source.replaces).map_err(CopyRefusal::Failed)?;
        let request = match is_within && !is_xrootd {
            true => copy_within(&object, origin, source)?,
            false => pull(&object, origin, source)?,
        };
        let (count, target) = (AtomicU64::new(0), &object.target);
        let result = target.block_on(async |client| {
            tokio::select! {
                result = object.copy(client, &request, &count) => result,
                () = report_progress(source, &count) => {
                    Err(StoreError::Interrupted { url: target.url.clone() })
                }
            }
        });
        // If it was refused, the file under the hidden name is removed all the same.
        result?;
        (source.progress)(source.version.size);
        Ok(WebdavCopy { object, url: hidden.url, replaces: source.replaces })
    }
}

impl ServerCopy for WebdavCopy {
    fn url(&self) -> &str {
        &self.url
    }

    fn finish(mut self: Box<Self>) -> Result<bool, Failure> {
        Ok(self.object.rename(self.replaces)?)
    }
}

/// Why a server is not sent the credentials of the source.
fn no_delegation(host: &str) -> String {
    format!("credentials are not sent to {host}: the option delegation of their store is not true")
}

/// Whether a server would be asked with the same user, password and token for an object of its own.
fn is_same_reader(name: &Url, token: Option<&str>, origin: &CopyOrigin) -> bool {
    let user = |url: &Url| (url.username().to_string(), url.password().map(str::to_string));
    user(name) == user(&origin.url) && token == origin.bearer.as_deref()
}

/// A copy of an object of the same server.
fn copy_within(
    object: &HiddenObject,
    origin: &CopyOrigin,
    source: &CopySource<'_>,
) -> Result<CopyRequest, CopyRefusal> {
    let bytes = source.version.size;
    let mut headers = HeaderMap::new();
    headers.insert(DESTINATION, object.destination(&object.part_url)?);
    headers.insert(OVERWRITE, HeaderValue::from_static("T"));
    if source.version.tag.starts_with('"')
        && let Ok(tag) = HeaderValue::from_str(&source.version.tag)
    {
        headers.insert(IF_MATCH, tag);
    }
    Ok(CopyRequest {
        at: origin.url.clone(),
        headers,
        token: None,
        secrets: redact::secrets(&origin.url),
        is_secret: false,
        delegates: origin.delegates,
        bytes,
        limit: copying(bytes),
        has_markers: false,
    })
}

/// A copy that the server reads from the URL of the source, which may be its own.
fn pull(
    object: &HiddenObject,
    origin: &CopyOrigin,
    source: &CopySource<'_>,
) -> Result<CopyRequest, CopyRefusal> {
    let mut headers = HeaderMap::new();
    let mut insert = |name, text: &str| {
        let value = HeaderValue::from_str(text);
        let value = value.map_err(|_| CopyRefusal::Unable(format!("{name}: no such header")))?;
        headers.insert(name, value);
        Ok::<_, CopyRefusal>(())
    };
    let mut url = origin.url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    insert(SOURCE, url.as_str())?;
    insert(OVERWRITE, "T")?;
    insert(CREDENTIAL, "none")?;
    // We compare the copy ourselves, and not every server has checksums.
    insert(CHECKSUM, "false")?;
    let mut secrets = redact::secrets(&origin.url);
    secrets.extend(origin.bearer.clone());
    Ok(CopyRequest {
        at: object.part_url.clone(),
        headers,
        token: origin.bearer.as_ref().map(|token| format!("Bearer {token}")),
        secrets,
        is_secret: origin.bearer.is_some() || redact::hides(&origin.url),
        delegates: origin.delegates,
        bytes: source.version.size,
        limit: object.target.stall.most,
        has_markers: true,
    })
}

impl HiddenObject {
    async fn copy(
        &self,
        client: &Client,
        request: &CopyRequest,
        count: &AtomicU64,
    ) -> Result<(), StoreError> {
        let target = &self.target;
        let mut has_created = false;
        let result = target.with_retries(async |_| {
            let mut response = self.send_copy(client, request).await?;
            // A folder may lack, as when an object is written; of XRootD that is a 400.
            let status = response.status().as_u16();
            let may_lack = matches!(status, 404 | 409 | 500) || status == 400 && self.is_xrootd;
            if may_lack && !has_created {
                has_created = true;
                if target.make_folders(client, &self.part_url).await? {
                    response = self.send_copy(client, request).await?;
                }
            }
            let is_refused = [StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_IMPLEMENTED]
                .contains(&response.status());
            let success = response.status().is_success();
            if success && response.status() != StatusCode::MULTI_STATUS {
                return self.follow(response, request, count).await;
            }
            let mut failure = match target.check_success(response, "COPY").await {
                Err(failure) => failure,
                Ok(response) => target.status_error(response, target.stall.most).await,
            };
            // The server of a gateway may still copy; one that is overloaded has not begun.
            if matches!(failure.retry, Retry::Passing) {
                failure.retry = Retry::Never;
            }
            if is_refused && let StoreError::Unsupported { why, .. } = &failure.error {
                let refusal = target.limiter.copy_refusal.lock();
                *refusal.unwrap_or_else(PoisonError::into_inner) = Some(why.clone());
            }
            Err(failure)
        });
        result.await
    }

    /// Send a request for a copy, and follow where servers lead it; the answer, with any status.
    async fn send_copy(&self, client: &Client, request: &CopyRequest) -> Result<Response, Failure> {
        let (target, mut at) = (&self.target, request.at.clone());
        let secrets = || RequestSecrets(request.secrets.clone());
        for _ in 0..=REDIRECTS {
            let mut headers = request.headers.clone();
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
            self.check_hop(request, &at)?;
            if let Some(token) = &request.token {
                self.add_token(&mut headers, token)?;
            }
            let host = host(&at);
            let copy = target.writing(client, method("COPY"), &at).headers(headers);
            let answer = staying(target.exchange(copy, &host, secrets(), None));
            // What is not answered is not repeated: the server may still copy.
            let answer = async {
                timeout(request.limit, answer)
                    .await
                    .map_err(|_| Failure::from(target.stall_error(&host, request.limit)))?
                    .map_err(|failure| Failure { retry: Retry::Never, ..failure })
            };
            let label = UploadLabel::new("COPY", request.bytes);
            let response = target.record_upload(label, answer).await?;
            let location = match response.status().as_u16() {
                301 | 302 | 307 | 308 => header(&response, LOCATION),
                _ => None,
            };
            let Some(location) = location else { return Ok(response) };
            let next = response.url().join(location);
            let next = next.map_err(|_| target.network(format!("{host} leads to no URL")))?;
            if !matches!(next.scheme(), "http" | "https") {
                return Err(target.network(format!("{host} leads to no server of HTTP")).into());
            }
            at = self.with_user(next);
        }
        Err(target.network(format!("{}: too many redirects", host(&at))).into())
    }

    /// Refuse to tell secrets of the source to a server that may not know them, or where others on
    /// the way can read them.
    fn check_hop(&self, request: &CopyRequest, at: &Url) -> Result<(), StoreError> {
        let target = &self.target;
        if !request.is_secret {
            return Ok(());
        }
        if !request.delegates && at.origin() != self.part_url.origin() {
            return Err(target.unsupported_error(&no_delegation(&host(at))));
        }
        check_private(at, "server of the copy").map_err(|why| target.unsupported_error(&why))
    }

    /// Add the credentials of the source.
    fn add_token(&self, headers: &mut HeaderMap, token: &str) -> Result<(), Failure> {
        let target = &self.target;
        let mut insert = |name, text: &str| {
            let value = HeaderValue::from_str(text);
            let mut value =
                value.map_err(|_| target.unsupported_error("the token is no header"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
            Ok::<_, StoreError>(())
        };
        // XRootD may be behind a server that does not say so.
        insert(COPY_HEADER, &format!("Authorization: {token}"))?;
        if !self.is_xrootd {
            insert(TRANSFER_AUTHORIZATION, token)?;
        }
        Ok(())
    }

    /// Follow a copy to its end.
    async fn follow(
        &self,
        mut response: Response,
        request: &CopyRequest,
        count: &AtomicU64,
    ) -> Result<(), Failure> {
        let (target, stall) = (&self.target, self.target.stall.most);
        let host = host(response.url());
        let fail = |why: String| {
            let why = hide(&request.secrets, why);
            Failure::from(target.network(format!("{host} {why}")))
        };
        let must = response.status() == StatusCode::ACCEPTED || request.has_markers;
        let mut markers = CopyMarkers::default();
        let mut pace = CopyPace::start(stall * IDLE_LIMITS);
        while !markers.is_over() {
            let chunk = match timeout(stall, response.chunk()).await {
                Err(_) => return Err(target.stall_error(&host, stall).into()),
                Ok(Err(_)) => return Err(fail("broke off its answer to COPY".into())),
                Ok(Ok(None)) => break,
                Ok(Ok(Some(chunk))) => chunk,
            };
            markers.read(&chunk).map_err(fail)?;
            let bytes = markers.bytes();
            if bytes > request.bytes {
                let expected = request.bytes;
                return Err(fail(format!("says it copied {bytes} of {expected} bytes")));
            }
            count.fetch_max(bytes, Ordering::Relaxed);
            pace.count(bytes, Instant::now()).map_err(fail)?;
        }
        markers.outcome(must).map_err(|why| fail(format!("answered COPY: {why}")))
    }
}
