//! Copies that a server of buckets makes: of S3 from any of its buckets that the same credentials
//! read, of others within a bucket.
//!
//! object_store copies within a bucket only, whatever the object has become. So the requests to
//! S3 are ours, and it signs them: CopyObject, and UploadPartCopy for what is larger, or came in
//! parts. Parts as the object has them give its ETag again, which then shows that the copy is whole.

use super::s3::S3Copier;
use super::{Bucket, Cloud, Settings};
use crate::object_writer::{PART_BYTES, part_bytes, parts};
use crate::redact::percent_encode;
use crate::remote::request_target::RequestTarget;
use crate::remote::response::RequestSecrets;
use crate::remote::retry::copying;
use futures_util::stream::{StreamExt, TryStreamExt, iter};
use object_store::path::Path as Key;
use object_store::{CopyMode, CopyOptions, ObjectStore, ObjectStoreExt};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH};
use reqwest::{Client, StatusCode};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use swathe_net::{host, net};
use swathe_store_api::{
    CopyRefusal, CopySource, Failure, ServerCopy, StoreError, StoreSettings, Version,
};
use tokio::time::{sleep, timeout};

/// The largest object, or part, that S3 copies with a request.
const LARGEST_COPY_BYTES: u64 = 5 << 30;
/// Parts of a larger object.
const LARGE_PART_BYTES: u64 = 1 << 30;
/// The smallest part but the last.
const SMALLEST_PART_BYTES: u64 = 5 << 20;
/// Parts that are copied at the same time.
const PART_COPIES: usize = 8;
/// Longest answer to a copy.
const ANSWER_BYTES: usize = 64 << 10;
/// How often to look whether to go on.
const STEP: Duration = Duration::from_millis(200);

const COPY_SOURCE: HeaderName = HeaderName::from_static("x-amz-copy-source");
const SOURCE_RANGE: HeaderName = HeaderName::from_static("x-amz-copy-source-range");
const SOURCE_IF_MATCH: HeaderName = HeaderName::from_static("x-amz-copy-source-if-match");

/// A copy in a bucket. It has its name already.
struct BucketCopy {
    bucket: Bucket,
    key: Key,
    url: String,
    is_finished: bool,
}

impl ServerCopy for BucketCopy {
    fn url(&self) -> &str {
        &self.url
    }

    fn finish(mut self: Box<Self>) -> Result<bool, Failure> {
        self.is_finished = true;
        Ok(true)
    }
}

impl Drop for BucketCopy {
    fn drop(&mut self) {
        if !self.is_finished
            && let Ok(net) = net()
        {
            // One that stays is replaced by the copy that follows.
            let _ = net.runtime.block_on(self.bucket.objects.delete(&self.key));
        }
    }
}

/// A copy to make.
pub(super) struct BucketOrder<'a> {
    pub(super) cloud: Cloud,
    pub(super) settings: Settings,
    /// The bucket of the copy, and its key.
    pub(super) bucket: Bucket,
    pub(super) bucket_name: &'a str,
    pub(super) key: Key,
    /// The copy, as requests and messages name it.
    pub(super) target: RequestTarget,
    pub(super) url: &'a str,
    /// The bucket of the source, and its key.
    pub(super) from_name: &'a str,
    pub(super) from_key: Key,
    pub(super) source: &'a CopySource<'a>,
}

/// Have the server of a bucket copy an object to it.
pub(super) fn copy(order: BucketOrder<'_>) -> Result<Box<dyn ServerCopy>, CopyFailure> {
    let count = AtomicU64::new(0);
    let result = order.target.block_on(async |client| {
        let work = async {
            match order.cloud {
                Cloud::S3 => S3Copy::new(&order, client)?.run(&count).await,
                _ => copy_within(&order).await,
            }
        };
        Ok(tokio::select! {
            result = work => result,
            () = stop(order.source, &count) => {
                Err(StoreError::Interrupted { url: order.url.to_string() }.into())
            }
        })
    });
    result??;
    (order.source.progress)(order.source.version.size);
    let BucketOrder { bucket, key, url, .. } = order;
    Ok(Box::new(BucketCopy { bucket, key, url: url.to_string(), is_finished: false }))
}

/// Why there is no copy, and whether that may be because an object has its name.
pub(super) struct CopyFailure {
    pub(super) refusal: CopyRefusal,
    pub(super) is_taken: bool,
}

impl From<StoreError> for CopyFailure {
    fn from(error: StoreError) -> CopyFailure {
        CopyFailure { refusal: error.into(), is_taken: false }
    }
}

impl CopyFailure {
    fn unable(why: impl Into<String>) -> CopyFailure {
        CopyFailure { refusal: CopyRefusal::Unable(why.into()), is_taken: false }
    }
}

/// Refuse a source that the credentials of the copy may not be for.
pub(super) fn check_reader(
    ours: &StoreSettings,
    theirs: &StoreSettings,
) -> Result<(), CopyRefusal> {
    let options = ["endpoint", "account", "profile", "anonymous"];
    let reader = |settings: &StoreSettings| options.map(|name| settings.option(name));
    let why = match ours.scheme() == theirs.scheme() {
        false => "a bucket takes no copies from another kind of server",
        true if reader(ours) != reader(theirs) => "the buckets have other servers or credentials",
        true => return Ok(()),
    };
    Err(CopyRefusal::Unable(why.into()))
}

async fn stop(source: &CopySource<'_>, count: &AtomicU64) {
    while (source.progress)(count.load(Ordering::Relaxed)) {
        sleep(STEP).await;
    }
}

/// A copy within a bucket of Google or Azure.
async fn copy_within(order: &BucketOrder<'_>) -> Result<(), CopyFailure> {
    let BucketOrder { bucket, key, url, source, .. } = order;
    if order.from_name != order.bucket_name {
        return Err(CopyFailure::unable("objects of this kind are copied within one bucket only"));
    }
    let mode = if source.replaces { CopyMode::Overwrite } else { CopyMode::Create };
    let options = CopyOptions::new().with_mode(mode);
    bucket.objects.copy_opts(&order.from_key, key, options).await.map_err(|error| {
        let is_taken = matches!(
            error,
            object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }
        );
        CopyFailure { refusal: bucket.error(url, error).into(), is_taken }
    })
}

/// A copy by S3.
struct S3Copy<'a> {
    target: &'a RequestTarget,
    client: &'a Client,
    copier: S3Copier,
    key: &'a Key,
    /// What all its requests say of the source.
    headers: HeaderMap,
    version: &'a Version,
    replaces: bool,
}

impl<'a> S3Copy<'a> {
    fn new(order: &'a BucketOrder<'a>, client: &'a Client) -> Result<S3Copy<'a>, CopyFailure> {
        let BucketOrder { target, key, source, .. } = order;
        let copier = S3Copier::new(order.bucket_name, &order.settings);
        let copier = copier.map_err(CopyFailure::unable)?;
        let from_key = percent_encode(order.from_key.as_ref(), b"-._~/");
        let from = format!("{}/{from_key}", order.from_name);
        let tag = source.version.tag.as_str();
        let mut headers = HeaderMap::new();
        let fields = [
            (COPY_SOURCE, Some(from.as_str())),
            (SOURCE_IF_MATCH, Some(tag).filter(|tag| tag.starts_with('"'))),
        ];
        for (name, value) in fields {
            let Some(value) = value else { continue };
            let value = HeaderValue::from_str(value);
            let value =
                value.map_err(|_| CopyFailure::unable(format!("{name}: no such header")))?;
            headers.insert(name, value);
        }
        let (version, replaces) = (source.version, source.replaces);
        Ok(S3Copy { target, client, copier, key, headers, version, replaces })
    }

    async fn run(&self, count: &AtomicU64) -> Result<(), CopyFailure> {
        match copy_part_bytes(self.version) {
            Some(bytes) => self.copy_parts(parts(self.version.size, bytes), count).await,
            None => {
                let mut headers = self.headers.clone();
                if !self.replaces {
                    headers.insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
                }
                self.send(&[], headers, self.version.size).await.map(|_| ())
            }
        }
    }

    async fn copy_parts(
        &self,
        ranges: Vec<Range<u64>>,
        count: &AtomicU64,
    ) -> Result<(), CopyFailure> {
        let upload = self.copier.begin(self.key).await.map_err(CopyFailure::unable)?;
        let copies = (1..).zip(ranges).map(|(number, range)| {
            let upload = &upload;
            async move {
                let (bytes, mut headers) = (range.end - range.start, self.headers.clone());
                let text = format!("bytes={}-{}", range.start, range.end - 1);
                headers.insert(SOURCE_RANGE, HeaderValue::from_str(&text).expect("digits"));
                let query = [("partNumber", u32::to_string(&number)), ("uploadId", upload.clone())];
                let etag = self.send(&query, headers, bytes).await?;
                count.fetch_add(bytes, Ordering::Relaxed);
                Ok::<_, CopyFailure>(etag)
            }
        });
        let etags = iter(copies).buffered(PART_COPIES).try_collect().await;
        let result = match etags {
            Ok(etags) => {
                let result = self.copier.complete(self.key, &upload, etags).await;
                result.map_err(CopyFailure::unable)
            }
            Err(failure) => Err(failure),
        };
        if result.is_err() {
            // Parts that stay are seen by nobody, but some stores charge for them.
            self.copier.abort(self.key, &upload).await;
        }
        result
    }

    /// Send a request that copies, until it succeeds; the ETag of what it made.
    async fn send(
        &self,
        query: &[(&str, String)],
        headers: HeaderMap,
        bytes: u64,
    ) -> Result<String, CopyFailure> {
        let (target, mut is_taken) = (self.target, false);
        let result = target.with_retries(async |_| {
            let request = self.copier.request(self.client, self.key, query, headers.clone());
            let request = request.await.map_err(|why| target.network(why))?;
            let (host, secrets) = (host(&request.url), RequestSecrets(request.secrets));
            let limit = copying(bytes);
            let exchange = async {
                let response = target.exchange(request.builder, &host, secrets, None).await?;
                is_taken = response.status() == StatusCode::PRECONDITION_FAILED;
                if !response.status().is_success() {
                    return Err(target.status_error(response, target.stall.most).await);
                }
                let break_error =
                    || target.network(format!("the answer of {host} to a copy broke off"));
                let (mut response, mut text) = (response, Vec::new());
                while let Some(chunk) =
                    response.chunk().await.map_err(|_| Failure::passing(break_error()))?
                {
                    text.extend_from_slice(&chunk);
                    if text.len() > ANSWER_BYTES {
                        let why = format!("{host} answers a copy with {ANSWER_BYTES} bytes");
                        return Err(target.network(why + " and more").into());
                    }
                }
                // It begins to answer before it has copied: a success may be none.
                let text = String::from_utf8_lossy(&text).into_owned();
                match element(&text, "ETag") {
                    Some(etag) => Ok(etag),
                    None => {
                        let code = element(&text, "Code").unwrap_or("no ETag".into());
                        let why = format!("{host} answered a copy with {code}");
                        Err(Failure::passing(target.network(why)))
                    }
                }
            };
            // Silence is not repeated: the server may still copy.
            timeout(limit, exchange)
                .await
                .unwrap_or_else(|_| Err(target.stall_error(&host, limit).into()))
        });
        result.await.map_err(|error| CopyFailure { refusal: error.into(), is_taken })
    }
}

/// The text of an element of an answer.
fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (value, _) = rest.split_once(&format!("</{name}>"))?;
    Some(value.replace("&quot;", "\"").replace("&#34;", "\"").chars().take(200).collect())
}

/// The length of the parts by which an object is copied; `None` if it is copied at once. An object
/// that came in parts gets as many: of ours of the length that we write, of others of the next MiB.
fn copy_part_bytes(version: &Version) -> Option<u64> {
    let size = version.size;
    let count = version.tag.trim_matches('"').split_once('-').and_then(|(_, n)| n.parse().ok());
    let fits = |bytes: &u64| {
        let is_one = size <= *bytes && size <= LARGEST_COPY_BYTES;
        let is_part = (SMALLEST_PART_BYTES..=LARGEST_COPY_BYTES).contains(bytes);
        size > 0 && Some(size.div_ceil(*bytes)) == count && (is_one || is_part)
    };
    let even = count
        .filter(|&count| count > 0)
        .map(|count: u64| size.div_ceil(count).next_multiple_of(1 << 20));
    let candidates = [Some(part_bytes(size)), Some(PART_BYTES), even];
    let like = candidates.into_iter().flatten().find(fits);
    like.or((size > LARGEST_COPY_BYTES).then_some(LARGE_PART_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_copied_in_the_parts_that_they_came_in() {
        let of = |size, tag: &str| copy_part_bytes(&Version { size, tag: tag.into() });
        let etag = "\"d41d8cd98f00b204e9800998ecf8427e";
        assert_eq!(of(20_000_000, &format!("{etag}\"")), None);
        assert_eq!(of(20_000_000, &format!("{etag}-3\"")), Some(8 << 20));
        assert_eq!(of(5, &format!("{etag}-1\"")), Some(8 << 20));
        assert_eq!(of(20_000_000, &format!("{etag}-2\"")), Some(10 << 20));
        // Parts of which a server takes none are no parts.
        assert_eq!(of(20_000_000, &format!("{etag}-19\"")), None);
        assert_eq!(of(20_000_000, &format!("{etag}-0\"")), None);
        assert_eq!(of(0, &format!("{etag}-1\"")), None);
        let large = 200 << 30;
        assert_eq!(of(large, "\"0x1\""), Some(1 << 30));
        assert_eq!(of(large, &format!("{etag}-9753\"")), Some(part_bytes(large)));
    }

    #[test]
    fn answers_are_read_to_their_etag() {
        let text = "\n <CopyObjectResult><ETag>&quot;abc&quot;</ETag></CopyObjectResult>";
        assert_eq!(element(text, "ETag").as_deref(), Some("\"abc\""));
        assert_eq!(element("<Error><Code>SlowDown</Code></Error>", "ETag"), None);
        assert_eq!(element("<ETag>", "ETag"), None);
    }

    #[test]
    fn another_server_or_reader_is_refused() {
        let store = |root: &str, options: &[(&str, &str)]| {
            let options = options.iter().map(|&(a, b)| (a.to_string(), b.to_string())).collect();
            StoreSettings::new("a".into(), root.into(), options)
        };
        let ours = store("s3://a", &[("endpoint", "http://a"), ("region", "x")]);
        assert!(check_reader(&ours, &store("s3://b", &[("endpoint", "http://a")])).is_ok());
        for theirs in [
            store("s3://b", &[]),
            store("s3://b", &[("endpoint", "http://b")]),
            store("s3://b", &[("endpoint", "http://a"), ("profile", "x")]),
            store("gs://b", &[("endpoint", "http://a")]),
        ] {
            assert!(check_reader(&ours, &theirs).is_err(), "{theirs:?}");
        }
    }
}
