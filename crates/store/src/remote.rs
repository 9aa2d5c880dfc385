//! Objects on HTTP(S) and S3 servers.
//!
//! Both are read with plain HTTP requests. object_store's HTTP store speaks WebDAV, has no room
//! for a query and does not keep the server's words; its S3 store is used for what is hard, to
//! find credentials and sign URLs. So every answer passes the same checks, which are here.

mod net;
mod s3;
mod shown;

use crate::error::StoreError;
use crate::source::{Source, Version};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use net::{Failure, net, retry};
use reqwest::header::{
    ACCEPT_ENCODING, AsHeaderName, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
    ETAG, IF_MATCH, LAST_MODIFIED, RANGE,
};
use reqwest::{Client, Method, Response, StatusCode, Url};
pub(crate) use shown::{percent_decode, shown};
use std::ops::Range;
use std::time::Duration;
use tokio::time::timeout;

/// A server that sends no byte for this time has failed.
pub(crate) const STALL: Duration = Duration::from_secs(30);
/// Ranges of one object requested at the same time.
const IN_FLIGHT: usize = 8;
/// Of the answer to a refused request, this much is searched for the reason.
const REASON_BYTES: usize = 4096;
/// Of the reason, this much is shown.
const REASON_CHARS: usize = 200;
/// Memory reserved before bytes have come.
const RESERVE_BYTES: u64 = 8 << 20;

/// An object on a server, at the version it had when it was opened.
pub(crate) struct Remote {
    target: Target,
    version: Version,
    seen: Validators,
}

/// What to ask for, and what to say of it.
struct Target {
    url: String,
    /// Never to be shown, whoever says it.
    secrets: Vec<String>,
    address: Address,
    stall: Duration,
}

enum Address {
    Http(Url),
    S3(s3::Object),
}

/// What a server says of the version it sends.
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
    /// Open the object of an `http`, `https` or `s3` URL; no byte for `stall` is an error.
    pub(crate) fn open(url: &str, stall: Duration) -> Result<Remote, StoreError> {
        let target = Target::new(url, stall)?;
        let (size, seen) = target.block_on(async |client| {
            match retry(async || target.head(client).await).await? {
                Some(found) => Ok(found),
                None => retry(async || target.first_byte(client).await).await,
            }
        })?;
        let tag = match (seen.tag(), &target.address) {
            (Some(tag), _) if seen.strong().is_some() => tag.to_string(),
            // Hidden words may be what tells two objects apart, and these tags do not.
            (tag, Address::Http(url)) => {
                format!("{}{}", tag.unwrap_or("unversioned"), shown::mark_of_hidden(url))
            }
            (tag, Address::S3(_)) => tag.unwrap_or("unversioned").to_string(),
        };
        Ok(Remote { target, version: Version { size, tag }, seen })
    }

    async fn fetch(&self, client: &Client, range: Range<u64>) -> Result<Bytes, StoreError> {
        if range.end > self.len() || range.start > range.end {
            return Err(self.target.short(&range, self.len().saturating_sub(range.start)));
        }
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        retry(async || self.fetch_once(client, &range).await).await
    }

    async fn fetch_once(&self, client: &Client, range: &Range<u64>) -> Result<Bytes, Failure> {
        let target = &self.target;
        let response = target.send(client, Method::GET, Some(range), self.seen.strong()).await?;
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
            _ => return Err(target.refused(response).await),
        }
        match target.content_range(&response)? {
            (_, Some(total)) if total != self.len() => Err(changed().into()),
            (found, _) if found != *range => Err(target.wrong_range(&response, range)),
            _ => target.body(response, range).await,
        }
    }
}

impl Source for Remote {
    fn url(&self) -> &str {
        &self.target.url
    }

    fn version(&self) -> &Version {
        &self.version
    }

    fn is_local(&self) -> bool {
        false
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        let range = offset..offset.saturating_add(buffer.len() as u64);
        let bytes = self.target.block_on(async |client| self.fetch(client, range).await)?;
        buffer.copy_from_slice(&bytes);
        Ok(())
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, StoreError> {
        self.target.block_on(async |client| {
            let fetches = ranges.iter().map(|range| self.fetch(client, range.clone()));
            stream::iter(fetches).buffered(IN_FLIGHT).try_collect().await
        })
    }
}

impl Target {
    fn new(url: &str, stall: Duration) -> Result<Target, StoreError> {
        let unsupported = |why| Err(StoreError::Unsupported { url: shown(url), why });
        if let Some(name) = url.strip_prefix("s3://") {
            return match s3::object(name) {
                Ok((object, secrets)) => {
                    let address = Address::S3(object);
                    Ok(Target { url: url.to_string(), secrets, address, stall })
                }
                Err(why) => unsupported(why),
            };
        }
        match Url::parse(url) {
            Ok(mut parsed) => {
                parsed.set_fragment(None);
                let secrets = shown::secrets(&parsed);
                Ok(Target { url: shown(url), secrets, address: Address::Http(parsed), stall })
            }
            Err(error) => unsupported(format!("no URL: {error}")),
        }
    }

    /// Run `work` on the shared runtime.
    fn block_on<T>(
        &self,
        work: impl AsyncFnOnce(&Client) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let net = net().map_err(|why| StoreError::Network { url: self.url.clone(), why })?;
        net.runtime.block_on(work(&net.client))
    }

    /// Size and validators by HEAD; `None` where the server does not tell them that way.
    async fn head(&self, client: &Client) -> Result<Option<(u64, Validators)>, Failure> {
        let response = self.send(client, Method::HEAD, None, None).await?;
        match response.status() {
            StatusCode::OK => {
                // Programs that make answers often announce 0 bytes, or none.
                let size = header(&response, CONTENT_LENGTH).and_then(|size| size.parse().ok());
                Ok(size.filter(|size| *size > 0).map(|size| (size, Validators::of(&response))))
            }
            StatusCode::FORBIDDEN
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::NOT_IMPLEMENTED => Ok(None),
            _ => Err(self.refused(response).await),
        }
    }

    /// Size and validators by asking for the first byte.
    async fn first_byte(&self, client: &Client) -> Result<(u64, Validators), Failure> {
        let first = 0..1;
        let response = self.send(client, Method::GET, Some(&first), None).await?;
        let seen = Validators::of(&response);
        match response.status() {
            StatusCode::PARTIAL_CONTENT => {}
            StatusCode::OK if response.content_length() == Some(0) => return Ok((0, seen)),
            StatusCode::OK => return Err(self.no_ranges().into()),
            StatusCode::RANGE_NOT_SATISFIABLE
                if header(&response, CONTENT_RANGE) == Some("bytes */0") =>
            {
                return Ok((0, seen));
            }
            _ => return Err(self.refused(response).await),
        }
        match self.content_range(&response)? {
            (_, None) => Err(self.unsupported("the server does not tell the size").into()),
            (found, _) if found != first => Err(self.wrong_range(&response, &first)),
            (_, Some(total)) => self.body(response, &first).await.map(|_| (total, seen)),
        }
    }

    /// The answer to a request, whatever its status, that is not compressed.
    async fn send(
        &self,
        client: &Client,
        method: Method,
        range: Option<&Range<u64>>,
        etag: Option<&str>,
    ) -> Result<Response, Failure> {
        let url = match &self.address {
            Address::Http(url) => url.clone(),
            Address::S3(object) => {
                object.url(method.clone()).await.map_err(|why| self.network(why))?
            }
        };
        let host = host(&url);
        let mut request = client.request(method, url).header(ACCEPT_ENCODING, "identity");
        if let Some(range) = range {
            request = request.header(RANGE, format!("bytes={}-{}", range.start, range.end - 1));
        }
        if let Some(etag) = etag {
            request = request.header(IF_MATCH, etag);
        }
        let response = match timeout(self.stall, request.send()).await {
            Err(_) => return Err(self.stalled(&host).into()),
            Ok(Err(error)) => {
                let transient = error.is_request() && !error.is_connect() && !error.is_timeout();
                let doing = if error.is_connect() { "cannot connect to" } else { "no answer from" };
                let error = self.network(format!("{doing} {host}: {}", net::cause(&error)));
                return Err(Failure { error, transient });
            }
            Ok(Ok(response)) => response,
        };
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

    /// The body, which must be as long as the range.
    async fn body(&self, mut response: Response, range: &Range<u64>) -> Result<Bytes, Failure> {
        let wanted = range.end - range.start;
        if let Some(announced) = response.content_length().filter(|length| *length != wanted) {
            return Err(self.short(range, announced).into());
        }
        let mut bytes = Vec::with_capacity(wanted.min(RESERVE_BYTES) as usize);
        loop {
            match timeout(self.stall, response.chunk()).await {
                Err(_) => return Err(self.stalled(&host(response.url())).into()),
                Ok(Err(_)) => {
                    let error = self.short(range, bytes.len() as u64);
                    return Err(Failure { error, transient: true });
                }
                Ok(Ok(Some(chunk))) => {
                    let found = bytes.len() as u64 + chunk.len() as u64;
                    if found > wanted {
                        return Err(self.short(range, found).into());
                    }
                    bytes.extend_from_slice(&chunk);
                }
                Ok(Ok(None)) if bytes.len() as u64 == wanted => return Ok(bytes.into()),
                Ok(Ok(None)) => return Err(self.short(range, bytes.len() as u64).into()),
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
    async fn refused(&self, response: Response) -> Failure {
        let (status, host) = (response.status(), host(response.url()));
        let region = match header(&response, "x-amz-bucket-region") {
            Some(region) if status == 301 || status == 400 => {
                format!("; the bucket is in region {region}: set AWS_REGION")
            }
            _ => String::new(),
        };
        let reason = timeout(self.stall, reason(response)).await.unwrap_or_default();
        let separator = if reason.is_empty() { "" } else { ", " };
        let said = self.hide(format!("{status}{separator}{reason}{region}"));
        let url = self.url.clone();
        let error = match status {
            StatusCode::NOT_FOUND | StatusCode::GONE => StoreError::NotFound { url },
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                StoreError::Forbidden { url, why: format!(": {said}") }
            }
            _ => self.network(format!("{host} answered {said}")),
        };
        let transient = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
        Failure { error, transient }
    }

    fn wrong_range(&self, response: &Response, range: &Range<u64>) -> Failure {
        let found = header(response, CONTENT_RANGE).unwrap_or_default();
        let Range { start, end } = range;
        let host = host(response.url());
        let last = end - 1;
        self.network(format!("{host} sent {found}, asked for bytes {start}-{last}")).into()
    }

    fn stalled(&self, host: &str) -> StoreError {
        let seconds = self.stall.as_secs_f32();
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
        self.secrets.iter().fold(text, |text, secret| text.replace(secret, "..."))
    }
}

/// Why a request was refused: the message of an S3 error, or the first line of plain text.
async fn reason(mut response: Response) -> String {
    let plain = header(&response, CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/plain"));
    let mut body = Vec::new();
    while body.len() < REASON_BYTES
        && let Ok(Some(chunk)) = response.chunk().await
    {
        body.extend_from_slice(&chunk[..chunk.len().min(REASON_BYTES - body.len())]);
    }
    let body = String::from_utf8_lossy(&body);
    let message = body
        .split_once("<Message>")
        .and_then(|(_, rest)| rest.split_once("</Message>"))
        .map(|(message, _)| message);
    let line = message.or(body.lines().next().filter(|_| plain)).unwrap_or_default();
    line.chars().filter(|char| !char.is_control()).take(REASON_CHARS).collect()
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
fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_string(), |port| format!("{host}:{port}"))
}
