//! Requests that read: a range is requested, and the answer is checked to be that range.

use super::attempt::{Attempt, Try};
use super::link_meter::{RequestClock, RequestKind};
use super::request_target::RequestTarget;
use super::response::{RequestSecrets, header};
use super::stall_timeout::Trickle;
use super::webdav::is_xrootd;
use bytes::Bytes;
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, HeaderValue,
    IF_MATCH, LAST_MODIFIED, RANGE,
};
use reqwest::{Client, Response, StatusCode, Url};
use std::fmt::Write;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use swathe_net::host;
use swathe_plan::InFlight;
use swathe_store_api::{
    CONTENT_DIGEST, ContentDigest, Failure, JOINED_HEADER, StoreError, VERIFICATION_HEADER,
    WANT_CONTENT_DIGEST, parse_content_range,
};
use swathe_trace::Scope;
use tokio::time::timeout;

/// Where the bytes of an answer go, in their order.
pub(super) trait ByteTarget {
    /// Bytes that are there.
    fn count(&self) -> usize;

    /// Add the next bytes: never more than were requested.
    fn append(&mut self, bytes: &[u8]);

    /// Keep the first `count` bytes, and drop the others.
    fn truncate(&mut self, count: usize);
}

impl ByteTarget for Vec<u8> {
    fn count(&self) -> usize {
        self.len()
    }

    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn truncate(&mut self, count: usize) {
        Vec::truncate(self, count);
    }
}

/// The buffer of a reader: bytes are copied once, from what the connection received.
pub(super) struct ReaderBuffer<'a> {
    pub(super) buffer: &'a mut [u8],
    pub(super) count: usize,
}

impl ByteTarget for ReaderBuffer<'_> {
    fn count(&self) -> usize {
        self.count
    }

    fn append(&mut self, bytes: &[u8]) {
        let end = self.count + bytes.len();
        self.buffer[self.count..end].copy_from_slice(bytes);
        self.count = end;
    }

    fn truncate(&mut self, count: usize) {
        self.count = self.count.min(count);
    }
}

/// What a request for ranges says beside them.
#[derive(Clone, Copy, Default)]
pub(super) struct Conditions<'a> {
    /// The version that is meant.
    pub(super) etag: Option<&'a str>,
    /// Whether the checksum of the answer is asked for.
    pub(super) wants_digest: bool,
}

/// The checksum of an answer that must be proven; any other is taken as it is.
pub(super) type AnswerCheck = Option<(ContentDigest, ContentDigest)>;

/// The validators of a version, as a server sends them.
#[derive(Clone, Default)]
pub(super) struct Validators {
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    pub(super) is_xrootd: bool,
}

impl Validators {
    pub(super) fn of(response: &Response) -> Validators {
        Validators {
            etag: header(response, ETAG).map(str::to_string),
            last_modified: header(response, LAST_MODIFIED).map(str::to_string),
            is_xrootd: is_xrootd(response),
        }
    }

    /// The ETag if it stands for every byte: RFC 9110, 8.8.3.
    pub(super) fn strong(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| etag.starts_with('"'))
    }

    /// Whether `other` is surely of another version.
    pub(super) fn differ(&self, other: &Validators) -> bool {
        let differ = |a: Option<&str>, b: Option<&str>| a.is_some() && b.is_some() && a != b;
        let last_modified = (self.last_modified.as_deref(), other.last_modified.as_deref());
        differ(self.opaque(), other.opaque())
            || (self.strong().is_none() && differ(last_modified.0, last_modified.1))
    }

    /// The ETag, weak or not: Apache's is weak in the second after the object was written, and
    /// the same but for that later.
    fn opaque(&self) -> Option<&str> {
        self.etag.as_deref().map(|etag| etag.strip_prefix("W/").unwrap_or(etag))
    }

    pub(super) fn tag(&self) -> Option<&str> {
        self.strong().or(self.last_modified.as_deref()).or(self.etag.as_deref())
    }
}

impl RequestTarget {
    /// Size, validators and first bytes of an object; its size may be known.
    pub(super) async fn begin_with(
        &self,
        client: &Client,
        size: Option<u64>,
    ) -> Result<(u64, Validators, Bytes), StoreError> {
        let most = self.first_bytes.max(1);
        let most = size.map_or(most, |size| most.min(size.max(1)));
        let attempt = FirstAttempt { target: self, client, most, byte_count: 0 };
        self.read(&Scope::current(), attempt).await.0
    }

    async fn first_bytes(
        &self,
        client: &Client,
        most: u64,
        stall: Duration,
    ) -> Result<(u64, Validators, Bytes), Failure> {
        let range = 0..most;
        let began = Instant::now();
        let ranges = std::slice::from_ref(&range);
        let response = self.send(client, ranges, Conditions::default(), stall).await?;
        let first_byte = began.elapsed();
        if self.leads_to_folder(&response) {
            return Err(self.unsupported_error("is a folder, not an object").into());
        }
        let validators = Validators::of(&response);
        if let Some(is_verified) = header(&response, VERIFICATION_HEADER) {
            self.limiter.is_verifying.store(is_verified == "yes", Ordering::Relaxed);
        }
        let size = match response.status() {
            StatusCode::PARTIAL_CONTENT => match self.content_range(&response)? {
                (_, None) => {
                    return Err(self.unsupported_error("the server does not tell the size").into());
                }
                (_, Some(0)) => return Ok((0, validators, Bytes::new())),
                // XRootD promises the whole range, and then sends less.
                (found, Some(total)) if found == range && total < most => {
                    return Box::pin(self.first_bytes(client, total, stall)).await;
                }
                (found, Some(total)) if found != (0..total.min(range.end)) => {
                    return Err(self.wrong_range(&response, &range));
                }
                (_, Some(total)) => total,
            },
            // The whole object, which is not more than was requested.
            StatusCode::OK => match response.content_length() {
                Some(size) if size <= range.end => size,
                _ => return Err(self.no_ranges().into()),
            },
            // Only of an empty object no first byte can be had; not every server says its size.
            StatusCode::RANGE_NOT_SATISFIABLE
                if matches!(header(&response, CONTENT_RANGE), None | Some("bytes */0")) =>
            {
                return Ok((0, validators, Bytes::new()));
            }
            _ => return Err(self.status_error(response, stall).await),
        };
        let mut first = Vec::new();
        let range = 0..size.min(range.end);
        // The wait is no evidence: it is that of opening, too.
        let clock = self.clock(RequestKind { bytes: range.end, ..RequestKind::default() });
        self.body(response, &range, (first_byte, stall), &mut None, &mut first, clock).await?;
        Ok((size, validators, first.into()))
    }

    /// The answer to a request for ranges, with any status; a compressed one is an error.
    pub(super) async fn send(
        &self,
        client: &Client,
        ranges: &[Range<u64>],
        conditions: Conditions<'_>,
        stall: Duration,
    ) -> Result<Response, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let bytes = range_header(ranges);
        let Conditions { etag, wants_digest } = conditions;
        let question = wants_digest.then_some(ContentDigest::QUESTION);
        let joins = (ranges.len() > 1).then_some("yes");
        let fields = [
            (RANGE, Some(bytes.as_str())),
            (HeaderName::from_static(JOINED_HEADER), joins),
            (IF_MATCH, etag),
            (HeaderName::from_static(WANT_CONTENT_DIGEST), question),
        ];
        for (name, value) in fields {
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
                headers.insert(name, value);
            }
        }
        let request =
            self.endpoint.request(client, headers).await.map_err(|why| self.network(why))?;
        let (host, secrets) = (host(&request.url), RequestSecrets(request.secrets));
        let response = self.exchange(request.builder, &host, secrets, Some(stall)).await?;
        match header(&response, CONTENT_ENCODING) {
            None | Some("" | "identity") => Ok(response),
            // What a refusal says is taken as it is.
            Some(_) if !response.status().is_success() => Ok(response),
            // Archives label their compressed files so (Apache's AddEncoding): the bytes
            // of the file are meant, not an encoding for the transfer.
            Some(_) if is_named_compressed(response.url()) => Ok(response),
            Some(encoding) => {
                let why = format!("the server sends it with Content-Encoding {encoding}");
                Err(self.unsupported_error(&why).into())
            }
        }
    }

    /// How to check an answer, if it must be proven.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] if the answer does not say that, with its checksum.
    pub(super) fn check_of(
        &self,
        response: &Response,
        needs_proof: bool,
    ) -> Result<AnswerCheck, StoreError> {
        if !needs_proof {
            return Ok(None);
        }
        let is_verified = header(response, VERIFICATION_HEADER) == Some("yes");
        let digest = header(response, CONTENT_DIGEST).and_then(ContentDigest::parse);
        match digest.filter(|_| is_verified) {
            Some(digest) => Ok(Some((digest, ContentDigest::default()))),
            None => {
                if is_verified {
                    self.limiter.lacks_digests.store(true, Ordering::Relaxed);
                }
                let why = "expected a verified answer with its CRC-32C, found one without";
                Err(self.unsupported_error(why))
            }
        }
    }

    /// Compare what arrived with the checksum of its answer.
    pub(super) fn check_answer(&self, check: &AnswerCheck) -> Result<(), Failure> {
        match check {
            Some((expected, found)) if expected != found => {
                let why = format!("an answer: expected {expected}, found {found}");
                Err(Failure::passing(self.network(why)))
            }
            _ => Ok(()),
        }
    }

    /// Append the body, which must be as long as the range; after a failure the received bytes stay.
    pub(super) async fn body(
        &self,
        mut response: Response,
        range: &Range<u64>,
        (first_byte, stall): (Duration, Duration),
        check: &mut AnswerCheck,
        bytes: &mut impl ByteTarget,
        mut clock: RequestClock<'_>,
    ) -> Result<(), Failure> {
        let length = range.end - range.start;
        if let Some(content_length) =
            response.content_length().filter(|content_length| *content_length != length)
        {
            return Err(self.short(range, content_length).into());
        }
        let start_length = bytes.count();
        let mut silence = first_byte;
        let mut trickle = Trickle::start();
        loop {
            let count = (bytes.count() - start_length) as u64;
            let began = Instant::now();
            let chunk = timeout(stall, response.chunk()).await;
            let wait = began.elapsed();
            silence = silence.max(wait);
            match chunk {
                Err(_) => {
                    return Err(Failure::passing(self.stall_error(&host(response.url()), stall)));
                }
                Ok(Err(_)) => return Err(Failure::passing(self.short(range, count))),
                Ok(Ok(Some(chunk))) if count + chunk.len() as u64 > length => {
                    return Err(self.short(range, count + chunk.len() as u64).into());
                }
                Ok(Ok(Some(chunk))) => {
                    self.bytes.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                    clock.add_bytes(chunk.len(), wait);
                    bytes.append(&chunk);
                    if let Some((_, found)) = check {
                        found.add(&chunk);
                    }
                    let is_whole = count + chunk.len() as u64 == length;
                    if let Some(why) = trickle.count(chunk.len(), Instant::now())
                        && !is_whole
                    {
                        let why = format!("{} {why}", host(response.url()));
                        return Err(Failure::passing(self.network(why)));
                    }
                }
                Ok(Ok(None)) if count == length => {
                    self.check_answer(check)?;
                    self.limiter.silence.tell(silence);
                    clock.finish();
                    return Ok(());
                }
                Ok(Ok(None)) => return Err(Failure::passing(self.short(range, count))),
            }
        }
    }

    /// Range and total size of a partial answer.
    pub(super) fn content_range(
        &self,
        response: &Response,
    ) -> Result<(Range<u64>, Option<u64>), StoreError> {
        header(response, CONTENT_RANGE).and_then(parse_content_range).ok_or_else(|| {
            let host = host(response.url());
            self.network(format!("{host} sent part of it without saying which"))
        })
    }

    pub(super) fn wrong_range(&self, response: &Response, range: &Range<u64>) -> Failure {
        let range_text = header(response, CONTENT_RANGE).unwrap_or_default();
        let Range { start, end } = range;
        let host = host(response.url());
        let last = end - 1;
        self.network(format!("{host} sent {range_text}, asked for bytes {start}-{last}")).into()
    }

    pub(super) fn no_ranges(&self) -> StoreError {
        self.unsupported_error("the server does not serve ranges")
    }
}

/// The header for ranges, which are not empty.
fn range_header(ranges: &[Range<u64>]) -> String {
    let mut text = String::from("bytes=");
    for (number, Range { start, end }) in ranges.iter().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        write!(text, "{comma}{start}-{}", end - 1).expect("a string takes all");
    }
    text
}

/// A request for the first bytes.
struct FirstAttempt<'a> {
    target: &'a RequestTarget,
    client: &'a Client,
    most: u64,
    byte_count: usize,
}

impl Attempt for FirstAttempt<'_> {
    type Answer = (u64, Validators, Bytes);

    async fn run(&mut self, numbers: Try) -> Result<Self::Answer, Failure> {
        let stall = self.target.stall_limit(numbers.failures);
        let answer = self.target.first_bytes(self.client, self.most, stall).await?;
        self.byte_count = answer.2.len();
        Ok(answer)
    }

    fn bytes(&self) -> usize {
        self.byte_count
    }

    fn next_request(&self) -> InFlight {
        InFlight::request(1, self.most)
    }
}

/// Whether the file itself is compressed, by its name.
fn is_named_compressed(url: &Url) -> bool {
    let path = url.path().to_ascii_lowercase();
    [".gz", ".bz2", ".z"].iter().any(|suffix| path.ends_with(suffix))
}
