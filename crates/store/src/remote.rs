//! Objects on HTTP(S) and WebDAV servers, in buckets, and on XRootD's through their HTTP door.
//!
//! All are read with plain HTTP requests. object_store's HTTP store speaks WebDAV, has no room
//! for a query and does not keep the server's words; its stores of buckets are used for what is
//! hard, to find credentials and sign. So every answer passes the same checks, which are here.

mod bucket;
pub(crate) mod connecting;
mod limiter;
mod net;
mod patience;
mod putting;
mod shown;
mod silence;
mod told;

use crate::error::StoreError;
use crate::source::{Fetched, Source, Traffic, Version};
use crate::stores::{Address, Store};
use crate::timing::{Measured, Timing, record};
use bucket::Leave;
pub(crate) use bucket::{Bucket, Cloud, Settings as BucketSettings};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use limiter::Limiter;
pub use net::confine;
pub(crate) use net::{check_private, is_here, net};
use patience::{Failure, Patience, Retry};
pub(crate) use putting::{Putting, remove};
use reqwest::header::{
    ACCEPT_ENCODING, AsHeaderName, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap,
    HeaderValue, IF_MATCH, LAST_MODIFIED, RANGE, RETRY_AFTER,
};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
pub(crate) use shown::{percent_decode, percent_encode, shown};
pub(crate) use silence::Stall;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use swathe_plan::Costs;
use swathe_trace::{Ids, Scope};
use tokio::sync::mpsc;
use tokio::time::timeout;
use told::Told;

/// Of the answer to a refused request, this much is searched for the reason.
const REASON_BYTES: usize = 4096;
/// Of the reason, this much is shown.
const REASON_CHARS: usize = 200;
/// Memory reserved before bytes have come.
const RESERVE_BYTES: u64 = 8 << 20;

/// An object on a server, at the version it had when it was opened.
pub(crate) struct Remote {
    inner: Arc<Inner>,
}

struct Inner {
    target: Target,
    version: Version,
    seen: Validators,
    /// The first bytes, if they came with opening.
    first: Bytes,
}

/// What to ask for, and what to say of it.
struct Target {
    store: Arc<Store>,
    /// Under which what is measured of the store is filed.
    store_key: String,
    url: String,
    key: String,
    /// What events of it are about.
    about: Ids,
    /// Never to be shown, whoever says it.
    secrets: Vec<String>,
    place: Place,
    limiter: Arc<Limiter>,
    stall: Stall,
    /// Since that was asked last.
    bytes: AtomicU64,
    requests: AtomicU64,
}

enum Place {
    Http { url: Url, bearer: Option<String> },
    Bucket(Box<bucket::Object>),
}

/// The secrets a request held, kept with its answer.
#[derive(Clone, Default)]
struct Said(Vec<String>);

/// What a server says of the version it sends.
#[derive(Default)]
struct Validators {
    etag: Option<String>,
    modified: Option<String>,
}

impl Validators {
    fn of(response: &Response) -> Validators {
        Validators {
            etag: header(response, ETAG).map(str::to_string),
            modified: header(response, LAST_MODIFIED).map(str::to_string),
        }
    }

    /// The ETag if it stands for every byte: RFC 9110, 8.8.3.
    fn strong(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| etag.starts_with('"'))
    }

    /// Whether `other` is surely of another version.
    fn differ(&self, other: &Validators) -> bool {
        let differ = |a: &Option<String>, b: &Option<String>| a.is_some() && b.is_some() && a != b;
        differ(&self.etag, &other.etag)
            || (self.strong().is_none() && differ(&self.modified, &other.modified))
    }

    fn tag(&self) -> Option<&str> {
        self.strong().or(self.modified.as_deref()).or(self.etag.as_deref())
    }
}

impl Remote {
    /// Open an object: ask for its first bytes, and learn its size and version with them.
    pub(crate) fn open(
        store: Arc<Store>,
        object: &str,
        named: Option<&str>,
        stall: Stall,
    ) -> Result<Remote, StoreError> {
        let target = Target::new(store, object, named, stall)?;
        let (size, seen, first) = target.block_on(async |client| target.begin(client).await)?;
        let tag = match (seen.tag(), &target.place) {
            (Some(tag), _) if seen.strong().is_some() => tag.to_string(),
            // Hidden words may be what tells two objects apart, and these tags do not.
            (tag, Place::Http { url, .. }) => {
                format!("{}{}", tag.unwrap_or("unversioned"), shown::mark_of_hidden(url))
            }
            (tag, Place::Bucket(_)) => tag.unwrap_or("unversioned").to_string(),
        };
        let version = Version { size, tag };
        Ok(Remote { inner: Arc::new(Inner { target, version, seen, first }) })
    }

    /// An object taken to be at a version seen before, without asking: the first read tells.
    /// `None` where a read could not tell.
    pub(crate) fn assume(
        store: Arc<Store>,
        object: &str,
        named: Option<&str>,
        stall: Stall,
        version: Version,
    ) -> Result<Option<Remote>, StoreError> {
        if !version.tag.starts_with('"') {
            return Ok(None);
        }
        let target = Target::new(store, object, named, stall)?;
        let seen = Validators { etag: Some(version.tag.clone()), modified: None };
        let inner = Inner { target, version, seen, first: Bytes::new() };
        Ok(Some(Remote { inner: Arc::new(inner) }))
    }
}

impl Inner {
    fn len(&self) -> u64 {
        self.version.size
    }

    /// The bytes of a range, going on where an answer broke off.
    async fn fetch(
        &self,
        client: &Client,
        range: Range<u64>,
        scope: &Scope,
    ) -> Result<Bytes, StoreError> {
        let target = &self.target;
        if range.end > self.len() || range.start > range.end {
            return Err(target.short(&range, self.len().saturating_sub(range.start)));
        }
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        if range.end <= self.first.len() as u64 {
            return Ok(self.first.slice(range.start as usize..range.end as usize));
        }
        let mut bytes = Vec::with_capacity((range.end - range.start).min(RESERVE_BYTES) as usize);
        let mut patience = Patience::new();
        loop {
            let had = bytes.len();
            let permit = target.limiter.permit().await;
            let in_flight = permit.in_flight();
            let began = Instant::now();
            let stall = target.allowed(&patience);
            let told = Told::start(&target.about, scope);
            let attempt = told.during(self.attempt(client, &range, stall, &mut bytes)).await;
            told.end(bytes.len() - had, attempt.as_ref().err().map(|failure| &failure.error));
            permit.tell(attempt.as_ref().err().map(|failure| &failure.retry));
            match attempt {
                Ok(first_byte) => {
                    record(Timing {
                        root: target.store_key.clone(),
                        bytes: (bytes.len() - had) as u64,
                        in_flight,
                        first_byte_s: first_byte.as_secs_f64(),
                        seconds: began.elapsed().as_secs_f64(),
                    });
                    return Ok(bytes.into());
                }
                Err(failure) => patience.wait(failure, bytes.len() > had).await?,
            }
        }
    }

    /// One request for what is missing of a range; gives how long the answer took to begin.
    async fn attempt(
        &self,
        client: &Client,
        range: &Range<u64>,
        stall: Duration,
        bytes: &mut Vec<u8>,
    ) -> Result<Duration, Failure> {
        let target = &self.target;
        let rest = range.start + bytes.len() as u64..range.end;
        let began = Instant::now();
        let response = target.send(client, &rest, self.seen.strong(), stall).await?;
        let first_byte = began.elapsed();
        let changed =
            || StoreError::Changed { url: target.url.clone(), version: self.version.to_string() };
        let status = response.status();
        if status.is_success() && self.seen.differ(&Validators::of(&response)) {
            return Err(changed().into());
        }
        match status {
            StatusCode::PARTIAL_CONTENT => {}
            StatusCode::OK => return Err(target.no_ranges().into()),
            // Every range asked for was inside the object.
            StatusCode::PRECONDITION_FAILED | StatusCode::RANGE_NOT_SATISFIABLE => {
                return Err(changed().into());
            }
            _ => return Err(target.refused(response, stall).await),
        }
        match target.content_range(&response)? {
            (_, Some(total)) if total != self.len() => return Err(changed().into()),
            (found, _) if found != rest => return Err(target.wrong_range(&response, &rest)),
            _ => target.body(response, &rest, first_byte, stall, bytes).await?,
        }
        Ok(first_byte)
    }
}

impl Source for Remote {
    fn url(&self) -> &str {
        &self.inner.target.url
    }

    fn key(&self) -> &str {
        &self.inner.target.key
    }

    fn version(&self) -> &Version {
        &self.inner.version
    }

    fn is_local(&self) -> bool {
        false
    }

    fn costs(&self) -> &Costs {
        &self.inner.target.store.costs
    }

    fn connections(&self) -> u32 {
        self.inner.target.limiter.connections()
    }

    fn first(&self) -> Bytes {
        self.inner.first.clone()
    }

    fn take_traffic(&self) -> Traffic {
        let Target { bytes, requests, .. } = &self.inner.target;
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Traffic { bytes: take(bytes), requests: take(requests), ..Traffic::default() }
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        let range = offset..offset.saturating_add(buffer.len() as u64);
        let inner = &self.inner;
        let scope = Scope::current();
        let bytes =
            inner.target.block_on(async |client| inner.fetch(client, range, &scope).await)?;
        buffer.copy_from_slice(&bytes);
        Ok(())
    }

    fn fetch(&self, requests: Vec<Range<u64>>, streams: u32) -> Fetched {
        let net = match net() {
            Ok(net) => net,
            Err(why) => return Box::new(std::iter::once(Err(self.inner.target.network(why)))),
        };
        let (sender, mut receiver) = mpsc::channel(1);
        let inner = self.inner.clone();
        let scope = Scope::current();
        net.runtime.spawn(async move {
            let fetch = |range| inner.fetch(&net.client, range, &scope);
            let fetches = requests.into_iter().map(fetch);
            let mut pieces = stream::iter(fetches).buffered(streams.max(1) as usize);
            // Whoever asked may have enough: what is in flight then ends with this task.
            while let Some(piece) = pieces.next().await {
                if sender.send(piece).await.is_err() {
                    break;
                }
            }
        });
        Box::new(std::iter::from_fn(move || receiver.blocking_recv()))
    }

    fn measure(
        &self,
        requests: &[Range<u64>],
        streams: u32,
        fresh: bool,
    ) -> Result<Vec<Measured>, StoreError> {
        let inner = &self.inner;
        let began = Instant::now();
        inner.target.block_on(async |client| {
            let one = async |range: &Range<u64>| {
                // The connections of a client that is thrown away are open for nobody.
                let (client, _permit) = if fresh {
                    (net::client().map_err(|why| inner.target.network(why))?, None)
                } else {
                    (client.clone(), Some(inner.target.limiter.permit().await))
                };
                let start_s = began.elapsed().as_secs_f64();
                let mut bytes = Vec::new();
                let stall = inner.target.stall.most;
                let answered = inner.attempt(&client, range, stall, &mut bytes).await;
                let first_byte = answered.map_err(|failure| failure.error)?;
                Ok(Measured {
                    bytes: bytes.len() as u64,
                    start_s,
                    first_byte_s: start_s + first_byte.as_secs_f64(),
                    end_s: began.elapsed().as_secs_f64(),
                })
            };
            let attempts = requests.iter().map(one);
            stream::iter(attempts).buffered(streams.max(1) as usize).try_collect().await
        })
    }
}

impl Target {
    fn new(
        store: Arc<Store>,
        object: &str,
        named: Option<&str>,
        stall: Stall,
    ) -> Result<Target, StoreError> {
        let (place, url, secrets) = match store.address(object)? {
            Address::Bucket { cloud, name, settings } => {
                let url = object.to_string();
                match bucket::Object::new(cloud, &name, &settings) {
                    Ok(object) => {
                        let secrets = object.secrets.clone();
                        (Place::Bucket(Box::new(object)), url, secrets)
                    }
                    Err(why) => return Err(StoreError::Unsupported { url: shown(&url), why }),
                }
            }
            Address::Http { url, bearer } => {
                let mut secrets = shown::secrets(&url);
                secrets.extend(bearer.clone());
                let seen = shown(url.as_str());
                (Place::Http { url, bearer }, seen, secrets)
            }
        };
        let (store_key, key) = (store.key(), store.key_of(&url));
        let limiter = limiter::of(&store_key);
        let (bytes, requests) = (AtomicU64::new(0), AtomicU64::new(0));
        let called = if store.name.is_empty() { &store_key } else { &store.name };
        let about = told::about(named.unwrap_or(&url), called);
        Ok(Target {
            store,
            store_key,
            url,
            key,
            about,
            secrets,
            place,
            limiter,
            stall,
            bytes,
            requests,
        })
    }

    /// Run `work` on the shared runtime.
    fn block_on<T>(
        &self,
        work: impl AsyncFnOnce(&Client) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let net = net().map_err(|why| StoreError::Network { url: self.url.clone(), why })?;
        net.runtime.block_on(work(&net.client))
    }

    /// Size, validators and first bytes, with one request if all goes well.
    async fn begin(&self, client: &Client) -> Result<(u64, Validators, Bytes), StoreError> {
        let mut patience = Patience::new();
        let scope = Scope::current();
        loop {
            let permit = self.limiter.permit().await;
            let stall = self.allowed(&patience);
            let most = self.store.costs.first_bytes();
            let told = Told::start(&self.about, &scope);
            let attempt = told.during(self.first_bytes(client, most, stall)).await;
            let came = attempt.as_ref().map_or(0, |(_, _, first)| first.len());
            told.end(came, attempt.as_ref().err().map(|failure| &failure.error));
            permit.tell(attempt.as_ref().err().map(|failure| &failure.retry));
            match attempt {
                Ok(found) => return Ok(found),
                Err(failure) => patience.wait(failure, false).await?,
            }
        }
    }

    async fn first_bytes(
        &self,
        client: &Client,
        most: u64,
        stall: Duration,
    ) -> Result<(u64, Validators, Bytes), Failure> {
        let asked = 0..most;
        let began = Instant::now();
        let response = self.send(client, &asked, None, stall).await?;
        let first_byte = began.elapsed();
        let seen = Validators::of(&response);
        let size = match response.status() {
            StatusCode::PARTIAL_CONTENT => match self.content_range(&response)? {
                (_, None) => {
                    return Err(self.unsupported("the server does not tell the size").into());
                }
                (_, Some(0)) => return Ok((0, seen, Bytes::new())),
                // XRootD promises all that was asked for, and then sends less.
                (found, Some(total)) if found == asked && total < most => {
                    return Box::pin(self.first_bytes(client, total, stall)).await;
                }
                (found, Some(total)) if found != (0..total.min(asked.end)) => {
                    return Err(self.wrong_range(&response, &asked));
                }
                (_, Some(total)) => total,
            },
            // All there is, which is not more than was asked for.
            StatusCode::OK => match response.content_length() {
                Some(size) if size <= asked.end => size,
                _ => return Err(self.no_ranges().into()),
            },
            // Only of an empty object no first byte can be had; not every server says its size.
            StatusCode::RANGE_NOT_SATISFIABLE
                if matches!(header(&response, CONTENT_RANGE), None | Some("bytes */0")) =>
            {
                return Ok((0, seen, Bytes::new()));
            }
            _ => return Err(self.refused(response, stall).await),
        };
        let mut first = Vec::new();
        let range = 0..size.min(asked.end);
        self.body(response, &range, first_byte, stall, &mut first).await?;
        Ok((size, seen, first.into()))
    }

    /// The answer to a request, whatever its status, that is not compressed.
    async fn send(
        &self,
        client: &Client,
        range: &Range<u64>,
        etag: Option<&str>,
        stall: Duration,
    ) -> Result<Response, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let bytes = format!("bytes={}-{}", range.start, range.end - 1);
        let asked = [(RANGE, Some(bytes.as_str())), (IF_MATCH, etag)];
        for (name, value) in asked {
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
                headers.insert(name, value);
            }
        }
        let mut said = Said::default();
        let (host, request) = match &self.place {
            Place::Http { url, bearer } => {
                let request = client.get(url.clone()).headers(headers);
                let request =
                    bearer.iter().fold(request, |request, token| request.bearer_auth(token));
                (host(url), request)
            }
            Place::Bucket(object) => {
                let asked = object.request(headers).await.map_err(|why| self.network(why))?;
                said.0 = asked.secrets;
                (host(&asked.url), client.get(asked.url).headers(asked.headers))
            }
        };
        let response = self.exchange(request, &host, said, Some(stall)).await?;
        match header(&response, CONTENT_ENCODING) {
            None | Some("" | "identity") => Ok(response),
            // What a refusal says is taken as it is.
            Some(_) if !response.status().is_success() => Ok(response),
            // Archives label the compressed files they hold so (Apache's AddEncoding): the bytes
            // of the file are what is meant, not something made for the journey.
            Some(_) if is_named_compressed(response.url()) => Ok(response),
            Some(encoding) => {
                let why = format!("the server sends it with Content-Encoding {encoding}");
                Err(self.unsupported(&why).into())
            }
        }
    }

    /// The answer to a request, whatever it is, if it begins in time.
    async fn exchange(
        &self,
        request: RequestBuilder,
        host: &str,
        said: Said,
        limit: Option<Duration>,
    ) -> Result<Response, Failure> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        connecting::to(|| host.to_string());
        let sent = match limit {
            None => request.send().await,
            Some(limit) => match timeout(limit, request.send()).await {
                Err(_) => return Err(Failure::passing(self.stalled(host, limit))),
                Ok(sent) => sent,
            },
        };
        match sent {
            Err(error) => {
                if let Some(away) = net::leads_away(&error) {
                    let url = self.url.clone();
                    return Err(StoreError::Forbidden { url, why: format!(": {away}") }.into());
                }
                let may_pass = !error.is_connect() || self.limiter.silence.answered_lately();
                let transient = error.is_request() && may_pass && !error.is_timeout();
                let doing = if error.is_connect() { "cannot connect to" } else { "no answer from" };
                let error = self.network(format!("{doing} {host}: {}", net::why(&error)));
                Err(if transient { Failure::passing(error) } else { error.into() })
            }
            Ok(mut response) => {
                response.extensions_mut().insert(said);
                Ok(response)
            }
        }
    }

    /// Append the body, which must be as long as the range; what came stays, whatever fails.
    async fn body(
        &self,
        mut response: Response,
        range: &Range<u64>,
        first_byte: Duration,
        stall: Duration,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let wanted = range.end - range.start;
        if let Some(announced) = response.content_length().filter(|length| *length != wanted) {
            return Err(self.short(range, announced).into());
        }
        let before = bytes.len();
        let mut silence = first_byte;
        loop {
            let found = (bytes.len() - before) as u64;
            let began = Instant::now();
            let chunk = timeout(stall, response.chunk()).await;
            silence = silence.max(began.elapsed());
            match chunk {
                Err(_) => return Err(Failure::passing(self.stalled(&host(response.url()), stall))),
                Ok(Err(_)) => return Err(Failure::passing(self.short(range, found))),
                Ok(Ok(Some(chunk))) if found + chunk.len() as u64 > wanted => {
                    return Err(self.short(range, found + chunk.len() as u64).into());
                }
                Ok(Ok(Some(chunk))) => {
                    self.bytes.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                    bytes.extend_from_slice(&chunk);
                }
                Ok(Ok(None)) if found == wanted => {
                    self.limiter.silence.tell(silence);
                    return Ok(());
                }
                Ok(Ok(None)) => return Err(Failure::passing(self.short(range, found))),
            }
        }
    }

    /// Range and total size of a partial answer.
    fn content_range(&self, response: &Response) -> Result<(Range<u64>, Option<u64>), StoreError> {
        let parse = |text: &str| {
            let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
            let (first, last) = range.split_once('-')?;
            let range = first.parse().ok()?..last.parse::<u64>().ok()?.checked_add(1)?;
            let total = if total == "*" { None } else { Some(total.parse().ok()?) };
            Some((range, total))
        };
        header(response, CONTENT_RANGE).and_then(parse).ok_or_else(|| {
            let host = host(response.url());
            self.network(format!("{host} sent part of it without saying which"))
        })
    }

    /// The error for a status that is no success.
    async fn refused(&self, response: Response, stall: Duration) -> Failure {
        let (status, host) = (response.status(), host(response.url()));
        let after = header(&response, RETRY_AFTER).and_then(patience::retry_after);
        let region = match header(&response, "x-amz-bucket-region") {
            Some(region) if status == 301 || status == 400 => {
                format!("; the bucket is in region {region}: set AWS_REGION")
            }
            _ => String::new(),
        };
        let denied = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => true,
            // So Azure answers those who say not who they are.
            _ => header(&response, "x-ms-error-code") == Some("PublicAccessNotPermitted"),
        };
        let sent = response.extensions().get::<Said>().cloned().unwrap_or_default();
        let reason = timeout(stall, reason(response)).await.unwrap_or_default();
        // Before it is cut: of a long secret a part may be left.
        let reason = self.hide(hide(&sent.0, reason));
        let reason: String = reason.chars().take(REASON_CHARS).collect();
        let separator = if reason.is_empty() { "" } else { ", " };
        let said = format!("{status}{separator}{reason}{region}");
        let url = self.url.clone();
        let error = match status {
            _ if denied => {
                StoreError::Forbidden { url, why: format!(": {said}{}", self.place.leave()) }
            }
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                StoreError::NotFound { url, why: self.place.why_not_found(&reason) }
            }
            _ => self.network(format!("{host} answered {said}")),
        };
        let overloaded =
            status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE;
        let retry = match after {
            _ if overloaded => Retry::Overloaded { after },
            _ if status.is_server_error() => Retry::Passing,
            _ => Retry::Never,
        };
        Failure { error, retry }
    }

    fn wrong_range(&self, response: &Response, range: &Range<u64>) -> Failure {
        let found = header(response, CONTENT_RANGE).unwrap_or_default();
        let Range { start, end } = range;
        let host = host(response.url());
        let last = end - 1;
        self.network(format!("{host} sent {found}, asked for bytes {start}-{last}")).into()
    }

    /// How long the server may send nothing in the next try.
    fn allowed(&self, patience: &Patience) -> Duration {
        self.limiter.silence.allowed(self.stall, patience.failed())
    }

    fn stalled(&self, host: &str, stall: Duration) -> StoreError {
        let seconds = stall.as_secs_f32();
        self.network(format!("{host} sent nothing for {seconds} s"))
    }

    fn no_ranges(&self) -> StoreError {
        self.unsupported("the server does not serve ranges")
    }

    fn unsupported(&self, why: &str) -> StoreError {
        StoreError::Unsupported { url: self.url.clone(), why: self.hide(why.to_string()) }
    }

    fn network(&self, why: String) -> StoreError {
        StoreError::Network { url: self.url.clone(), why: self.hide(why) }
    }

    fn short(&self, range: &Range<u64>, found: u64) -> StoreError {
        StoreError::ShortRead {
            url: self.url.clone(),
            start: range.start,
            wanted: range.end.saturating_sub(range.start),
            found,
        }
    }

    fn hide(&self, text: String) -> String {
        hide(&self.secrets, text)
    }
}

impl Place {
    /// By what right it was asked for, with a separator; nothing where the URL says all.
    fn leave(&self) -> String {
        match self {
            Place::Http { .. } => String::new(),
            Place::Bucket(object) => format!("; {}", object.leave),
        }
    }

    /// What a server of buckets says: whether it is the bucket or the key. To those who say not
    /// who they are, some say of what they hide that it does not exist.
    fn why_not_found(&self, reason: &str) -> String {
        let separator = if reason.is_empty() { "" } else { ": " };
        match self {
            Place::Bucket(object) if matches!(object.leave, Leave::NotIn(_)) => {
                format!("{separator}{reason}{}", self.leave())
            }
            Place::Bucket(_) => format!("{separator}{reason}"),
            Place::Http { .. } => String::new(),
        }
    }
}

fn hide(secrets: &[String], text: String) -> String {
    let secrets = secrets.iter().filter(|secret| !secret.is_empty());
    secrets.fold(text, |text, secret| text.replace(secret, "..."))
}

/// Connections that are open to the store of this key.
pub(crate) fn connections(store: &str) -> u32 {
    limiter::of(store).connections()
}

/// Why a request was refused: the message of a server of buckets, or the first line of plain text.
async fn reason(mut response: Response) -> String {
    let plain = header(&response, CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/plain"));
    let mut body = Vec::new();
    while body.len() < REASON_BYTES
        && let Ok(Some(chunk)) = response.chunk().await
    {
        body.extend_from_slice(&chunk[..chunk.len().min(REASON_BYTES - body.len())]);
    }
    reason_in(&String::from_utf8_lossy(&body), plain)
}

/// The reason in the text of an answer.
fn reason_in(body: &str, plain: bool) -> String {
    let message = ["Message", "Details"].map(|name| {
        let (_, rest) = body.split_once(&format!("<{name}>"))?;
        // Azure adds lines with an id and the time.
        rest.split_once(&format!("</{name}>"))?.0.lines().next()
    });
    let line = match message {
        [None, None] => body.lines().next().filter(|_| plain).unwrap_or_default().to_string(),
        found => found.into_iter().flatten().collect::<Vec<_>>().join(" "),
    };
    line.trim_end_matches('.').chars().filter(|char| !char.is_control()).collect()
}

fn header(response: &Response, name: impl AsHeaderName) -> Option<&str> {
    response.headers().get(name)?.to_str().ok()
}

/// Whether the file itself is compressed, by its name.
fn is_named_compressed(url: &Url) -> bool {
    let path = url.path().to_ascii_lowercase();
    [".gz", ".bz2", ".z"].iter().any(|suffix| path.ends_with(suffix))
}

/// The server of a URL.
pub(crate) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_string(), |port| format!("{host}:{port}"))
}
