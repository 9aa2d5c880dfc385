//! Requests of WebDAV (RFC 4918): the state of a target before it is written or removed,
//! new folders, removed objects.

use super::attempt::{Attempt, ConnectTracedAttempt, LimitedAttempt, RetriedAttempt, Try};
use super::request_events::{IdleClock, RequestEvents};
use super::request_target::RequestTarget;
use super::response::{REASON_BYTES, RequestSecrets, header};
use super::retry::sending;
use reqwest::header::{CONTENT_TYPE, HeaderName, SERVER};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use std::time::{Duration, Instant};
use swathe_net::{host, keeping_method};
use swathe_store_api::{DiskSpace, Failure, Retry, Space, StoreError};
use swathe_trace::Scope;
use tokio::time::timeout;

pub(super) const DEPTH: HeaderName = HeaderName::from_static("depth");
/// The number of room that a block server keeps for us.
pub(super) const ROOM: HeaderName = HeaderName::from_static("swathe-room");

/// Room where a folder lies (RFC 4331), and the disks of a block server.
const SPACE_QUESTION: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
    <propfind xmlns=\"DAV:\"><prop><quota-available-bytes/><quota-used-bytes/>\
    <disks xmlns=\"urn:swathe:block-server\"/></prop></propfind>";
/// Bytes that are read of an answer about one object.
const LOOKED_BYTES: usize = 64 << 10;
/// The properties requested (RFC 4918, 9.1).
pub(super) const QUESTION: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
    <propfind xmlns=\"DAV:\"><prop>\
    <resourcetype/><getlastmodified/><getcontentlength/></prop></propfind>";

/// What the events of a request that writes say of it.
pub(super) struct UploadLabel {
    pub(super) method: &'static str,
    pub(super) bytes: u64,
    pub(super) scope: Scope,
    /// How long it waits for its bytes, if it does.
    pub(super) idle: Option<IdleClock>,
}

impl UploadLabel {
    /// Of a request of this thread, whose bytes are all there.
    pub(super) fn new(method: &'static str, bytes: u64) -> UploadLabel {
        UploadLabel { method, bytes, scope: Scope::current(), idle: None }
    }
}

/// The state of an object at a URL.
pub(super) struct ObjectStatus {
    pub(super) is_folder: bool,
    pub(super) is_xrootd: bool,
}

/// Remove an object.
pub(super) fn remove(target: RequestTarget) -> Result<(), StoreError> {
    let name = target.name()?;
    let result = target.block_on(async |client| target.delete(client, &name).await);
    target.forget_opening();
    result
}

/// The room where a folder lies, if the server tells.
pub(super) fn space(target: RequestTarget) -> Result<Option<Space>, StoreError> {
    let Some(url) = target.endpoint.url().cloned() else { return Ok(None) };
    target.block_on(async |client| {
        let (_, text) = target.folder_properties(client, &url, SPACE_QUESTION).await?;
        text.map_or(Ok(None), |text| {
            space_of(&text).map_err(|why| target.network(format!("{}: {why}", host(&url))))
        })
    })
}

/// Whether a folder exists, if the server tells; else true.
pub(super) fn has_folder(target: RequestTarget) -> Result<bool, StoreError> {
    let Some(url) = target.endpoint.url().cloned() else { return Ok(true) };
    target.block_on(async |client| {
        let (response, _) = target.folder_properties(client, &url, QUESTION).await?;
        Ok(!matches!(response.status(), StatusCode::NOT_FOUND | StatusCode::GONE))
    })
}

/// The room in the answer to `SPACE_QUESTION`.
fn space_of(text: &str) -> Result<Option<Space>, String> {
    if let Some(disks) = property(text, "disks").filter(|disks| !disks.is_empty()) {
        let json = quick_xml::escape::unescape(disks).map_err(|error| error.to_string())?;
        let disks: Vec<DiskSpace> =
            serde_json::from_str(&json).map_err(|error| format!("its disks: {error}"))?;
        return Ok(Some(Space::of_disks(disks)));
    }
    let number = |name: &str| property(text, name).and_then(|number| number.parse::<u64>().ok());
    Ok(number("quota-available-bytes").map(|free_bytes| {
        let total_bytes = number("quota-used-bytes").map(|bytes| free_bytes.saturating_add(bytes));
        Space { free_bytes, total_bytes, disks: Vec::new() }
    }))
}

/// A few requests that are tried together.
struct Steps<F>(F);

impl<T, F: AsyncFnMut(u32) -> Result<T, Failure>> Attempt for Steps<F> {
    type Answer = T;

    async fn run(&mut self, numbers: Try) -> Result<T, Failure> {
        self.0(numbers.failures).await
    }
}

impl RequestTarget {
    /// The URL of an object to write or remove.
    pub(super) fn name(&self) -> Result<Url, StoreError> {
        match self.endpoint.url() {
            Some(url) if !url.path().ends_with('/') => Ok(url.clone()),
            _ => Err(self.unsupported_error("is no name of an object to write")),
        }
    }

    /// A request, with the token if it goes to the server that this is for.
    pub(super) fn writing(&self, client: &Client, method: Method, url: &Url) -> RequestBuilder {
        let request = client.request(method, url.clone());
        match self.endpoint.token_for(url) {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// The answer to it, with any status.
    pub(super) async fn answer(
        &self,
        request: RequestBuilder,
        url: &Url,
        limit: Option<Duration>,
    ) -> Result<Response, Failure> {
        keeping_method(self.exchange(request, &host(url), RequestSecrets::default(), limit)).await
    }

    /// The same to a request that writes, with events.
    pub(super) async fn upload_answer(
        &self,
        request: RequestBuilder,
        url: &Url,
        limit: Option<Duration>,
        upload: UploadLabel,
    ) -> Result<Response, Failure> {
        self.record_upload(upload, self.answer(request, url, limit)).await
    }

    /// Record the wait for the answer to a request that writes.
    pub(super) async fn record_upload(
        &self,
        upload: UploadLabel,
        answer: impl Future<Output = Result<Response, Failure>>,
    ) -> Result<Response, Failure> {
        let UploadLabel { method, bytes, scope, idle } = upload;
        let events = RequestEvents::start_upload(&self.about, &scope, method, bytes);
        let result = events.during(answer).await;
        let answer = match &result {
            Ok(response) => Ok(response.status().as_u16()),
            Err(failure) => Err(&failure.error),
        };
        events.end_upload(bytes, answer, idle.map(|idle| idle.elapsed()));
        result
    }

    /// An answer that says yes, or the error.
    pub(super) async fn check_success(
        &self,
        mut response: Response,
        method: &str,
    ) -> Result<Response, Failure> {
        match response.status() {
            status @ (StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED) => {
                let host = host(response.url());
                Err(self
                    .unsupported_error(&format!("{host} takes no {method} here: {status}"))
                    .into())
            }
            // In several states of several objects, one may be a failure.
            status if status.is_success() && status != StatusCode::MULTI_STATUS => {
                // To its end, so that the connection can be used again.
                let read = async {
                    let mut bytes = 0;
                    while bytes < REASON_BYTES
                        && let Ok(Some(chunk)) = response.chunk().await
                    {
                        bytes += chunk.len();
                    }
                };
                // What is late does not matter: the answer was yes.
                let _ = timeout(self.stall.most, read).await;
                Ok(response)
            }
            _ => Err(self.status_error(response, self.stall.most).await),
        }
    }

    /// Try until it succeeds, or another try is of no use; a try gets the number of failed ones.
    pub(super) async fn with_retries<T>(
        &self,
        attempt: impl AsyncFnMut(u32) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.retry(None, attempt).await
    }

    /// The same of short requests: no other try begins after `limit`, so that a server that says
    /// nothing is given up.
    pub(super) async fn with_retries_within<T>(
        &self,
        limit: Duration,
        attempt: impl AsyncFnMut(u32) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.retry(Some(limit), attempt).await
    }

    async fn retry<T>(
        &self,
        limit: Option<Duration>,
        attempt: impl AsyncFnMut(u32) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let scope = &Scope::current();
        let attempt = ConnectTracedAttempt { about: &self.about, scope, inner: Steps(attempt) };
        let group = self.group;
        let attempt =
            LimitedAttempt { limiter: &self.limiter, is_multiplexed: false, group, inner: attempt };
        RetriedAttempt { inner: attempt, limit }.result().await
    }

    /// Request the state of a URL.
    pub(super) async fn look(&self, client: &Client, url: &Url) -> Result<ObjectStatus, Failure> {
        let (response, text) = self.properties(client, url, QUESTION, sending(0)).await?;
        // Some servers lead from the name of a folder to the same with a slash.
        let is_folder = text.is_some_and(|text| is_collection(&text))
            || response.url().path().strip_suffix('/') == Some(url.path());
        Ok(ObjectStatus { is_folder, is_xrootd: is_xrootd(&response) })
    }

    /// Properties of a folder, as [`RequestTarget::properties`], with further tries.
    async fn folder_properties(
        &self,
        client: &Client,
        url: &Url,
        question: &'static str,
    ) -> Result<(Response, Option<String>), StoreError> {
        self.with_retries_within(sending(0), async |failures| {
            self.properties(client, url, question, self.stall_limit(failures)).await
        })
        .await
    }

    /// Properties of a URL, if the server sends them; `limit`: how long until it begins to.
    pub(super) async fn properties(
        &self,
        client: &Client,
        url: &Url,
        question: &'static str,
        limit: Duration,
    ) -> Result<(Response, Option<String>), Failure> {
        let request = self.writing(client, method("PROPFIND"), url).header(DEPTH, "0");
        let request = request.header(CONTENT_TYPE, "application/xml").body(question);
        let mut response = self.answer(request, url, Some(limit)).await?;
        match response.status() {
            StatusCode::MULTI_STATUS => {}
            status
                if status == StatusCode::TOO_MANY_REQUESTS
                    || (status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED) =>
            {
                return Err(self.status_error(response, self.stall.most).await);
            }
            // Not all servers answer, or not everybody.
            _ => return Ok((response, None)),
        }
        let (mut text, host) = (Vec::new(), host(url));
        // So few bytes are here at once, or the server lets them drip.
        let begin = Instant::now();
        loop {
            let rest = self.stall.most.saturating_sub(begin.elapsed());
            match timeout(rest, response.chunk()).await {
                Err(_) => {
                    let (bytes, seconds) = (text.len(), self.stall.most.as_secs_f32());
                    let why = format!("{host} sent only {bytes} bytes of an answer in {seconds} s");
                    return Err(Failure::passing(self.network(why)));
                }
                Ok(Err(_)) => {
                    let why = format!("the answer of {host} to PROPFIND broke off");
                    return Err(Failure::passing(self.network(why)));
                }
                Ok(Ok(None)) => break,
                Ok(Ok(Some(chunk))) => text.extend_from_slice(&chunk),
            }
            if text.len() > LOOKED_BYTES {
                let why =
                    format!("{host} answers PROPFIND of one object with {LOOKED_BYTES} bytes");
                return Err(self.network(why + " and more").into());
            }
        }
        Ok((response, Some(String::from_utf8_lossy(&text).into_owned())))
    }

    /// Whether a WebDAV server led from the name of a folder to the same with a slash, which is an
    /// index. Other servers may lead so to an object.
    pub(super) fn leads_to_folder(&self, response: &Response) -> bool {
        let is_dav = self.is_dav || header(response, SERVER).is_some_and(is_block_server);
        let path = self.endpoint.url().map(Url::path);
        is_dav && path.is_some() && response.url().path().strip_suffix('/') == path
    }

    async fn delete(&self, client: &Client, url: &Url) -> Result<(), StoreError> {
        let result = self.with_retries_within(sending(0), async |_| {
            let target = self.look(client, url).await?;
            self.check_uncut(url, target.is_xrootd)?;
            // That may remove all that is in it, if the server minds no depth (RFC 4918, 9.6.1).
            if target.is_folder {
                return Err(self.unsupported_error("is a folder, and not removed").into());
            }
            let request = self.writing(client, Method::DELETE, url).header(DEPTH, "0");
            self.check_success(self.answer(request, url, Some(sending(0))).await?, "DELETE").await
        });
        result.await.map(|_| ())
    }

    /// Create the missing folders above an object; returns whether they may exist now. If no answer
    /// arrives the request may be repeated: a folder that was created after all exists then.
    pub(super) async fn make_folders(
        &self,
        client: &Client,
        object: &Url,
    ) -> Result<bool, Failure> {
        let make = async |folder: &Url| {
            let request = self.writing(client, method("MKCOL"), folder);
            match self.answer(request, folder, Some(sending(0))).await {
                Ok(response) => Ok(response.status().as_u16()),
                // The reported error is that of the first try.
                Err(failure) if failure.retry == Retry::Never => Ok(0),
                Err(failure) => Err(failure),
            }
        };
        let (mut lacking, mut folder, mut exists) = (Vec::new(), above(object), false);
        while let Some(url) = folder {
            match make(&url).await? {
                // It exists (405); another may just have created it.
                200..300 | 405 => {
                    exists = true;
                    break;
                }
                404 | 409 | 500 => {
                    folder = above(&url);
                    lacking.push(url);
                }
                _ => break,
            }
        }
        for folder in lacking.iter().rev() {
            // Another may have created it (405).
            match make(folder).await? {
                200..300 | 405 => exists = true,
                _ => break,
            }
        }
        Ok(exists)
    }
}

pub(super) fn is_xrootd(response: &Response) -> bool {
    header(response, SERVER).is_some_and(|name| name.starts_with("XrootD"))
}

/// Whether a server of this name is one of ours.
fn is_block_server(name: &str) -> bool {
    name.starts_with("swathe/")
}

/// Whether the answer to `QUESTION` has a `collection` in it.
fn is_collection(text: &str) -> bool {
    property(text, "collection").is_some()
}

/// The text of a property in the answer to `QUESTION`, if present; servers choose any prefix
/// for its name.
pub(super) fn property<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut tags = text.split('<');
    let tag = tags.find(|tag| {
        let name_part = tag.split(|end: char| end.is_whitespace() || "/>".contains(end)).next();
        name_part.and_then(|name_part| name_part.rsplit(':').next()) == Some(name)
    })?;
    Some(tag.split_once('>').map_or("", |(_, text)| text.trim()))
}

/// The folder that an object or a folder is in, if it has a name.
fn above(url: &Url) -> Option<Url> {
    let mut folder = url.clone();
    folder.path_segments_mut().ok()?.pop_if_empty().pop().push("");
    (folder.path() != "/").then_some(folder)
}

pub(super) fn method(name: &str) -> Method {
    Method::from_bytes(name.as_bytes()).expect("letters only")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_collections_by_any_prefix() {
        for (expected, text) in [
            (true, "<D:resourcetype><D:collection/></D:resourcetype>"),
            (true, "<lp1:resourcetype><D:collection xmlns:D=\"DAV:\"></D:collection>"),
            (true, "<resourcetype>\n<collection\n/></resourcetype>"),
            (false, "<D:href>/collection</D:href><D:resourcetype/>"),
            (false, "<D:resourcetype/><lp1:iscollection>0</lp1:iscollection>"),
            (false, ""),
        ] {
            assert_eq!(is_collection(text), expected, "{text}");
        }
    }

    #[test]
    fn room_is_that_of_rfc_4331_or_of_disks() {
        let space = |free_bytes, total_bytes, disks| Space { free_bytes, total_bytes, disks };
        let quota = |inner: &str| format!("<D:propstat><D:prop>{inner}</D:prop></D:propstat>");
        let free = "<D:quota-available-bytes>70</D:quota-available-bytes>";
        let used_bytes = "<D:quota-used-bytes>30</D:quota-used-bytes>";
        assert_eq!(space_of(&quota(free)), Ok(Some(space(70, None, Vec::new()))));
        let both = format!("{used_bytes}{free}");
        assert_eq!(space_of(&quota(&both)), Ok(Some(space(70, Some(100), Vec::new()))));
        assert_eq!(space_of(&quota("<D:quota-available-bytes/>")), Ok(None));
        assert_eq!(
            space_of(&quota("<D:quota-available-bytes>-3</D:quota-available-bytes>")),
            Ok(None)
        );
        let (id, name) = ("1f".to_string(), "a<b".to_string());
        let disk = DiskSpace { id, name, is_up: true, free_bytes: 7, total_bytes: 9 };
        let json = serde_json::to_string(&[&disk]).unwrap();
        let text = format!("<S:disks>{}</S:disks>", quick_xml::escape::escape(&json));
        assert_eq!(space_of(&quota(&text)), Ok(Some(space(7, Some(9), vec![disk]))));
        assert!(space_of(&quota("<S:disks>no JSON</S:disks>")).unwrap_err().contains("its disks"));
    }

    #[test]
    fn properties_have_any_prefix() {
        for (expected, text) in [
            (Some("Mon"), "<lp1:getlastmodified>Mon</lp1:getlastmodified>"),
            (Some("Mon"), "<getlastmodified xmlns=\"DAV:\">\n Mon\n</getlastmodified>"),
            (Some(""), "<D:getlastmodified/>"),
            (None, "<D:href>/getlastmodified</D:href>"),
        ] {
            assert_eq!(property(text, "getlastmodified"), expected, "{text}");
        }
    }
}
