//! Copies that a server of buckets makes: of S3 from any of its buckets that the same credentials
//! read, of others within a bucket.
//!
//! object_store copies within a bucket only, whatever the object has become. So the requests to
//! S3 are ours, and it signs them: CopyObject, and UploadPartCopy for what is larger, or came in
//! parts. Parts as the object has them give its ETag again, which then shows that the copy is whole.

use super::s3::{S3Copier, S3Order};
use super::{Bucket, Cloud, Settings};
use crate::object_writer::{PART_BYTES, part_bytes, parts};
use crate::redact::percent_encode;
use crate::remote::copy_progress::report_progress;
use crate::remote::hidden_object::TIDYING;
use crate::remote::request_target::RequestTarget;
use crate::remote::response::RequestSecrets;
use crate::remote::retry::copying;
use futures_util::stream::{StreamExt, TryStreamExt, iter};
use object_store::path::Path as Key;
use object_store::{CopyMode, CopyOptions, ObjectStore};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH};
use reqwest::{Client, Method};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use swathe_net::{host, net, staying};
use swathe_store_api::{
    CopyRefusal, CopySource, Failure, ServerCopy, StoreError, StoreSettings, Version,
};
use tokio::time::timeout;

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

const COPY_SOURCE: HeaderName = HeaderName::from_static("x-amz-copy-source");
const SOURCE_RANGE: HeaderName = HeaderName::from_static("x-amz-copy-source-range");
const SOURCE_IF_MATCH: HeaderName = HeaderName::from_static("x-amz-copy-source-if-match");

/// A copy in a bucket. It has its name already, so it is not removed when it is dropped: what has the
/// name may be of another writer by then, or the source under another name.
struct BucketCopy {
    url: String,
    /// The ETag that the server said it got.
    etag: Option<String>,
    has_checksums: bool,
}

impl ServerCopy for BucketCopy {
    fn url(&self) -> &str {
        &self.url
    }

    fn has_name(&self) -> bool {
        true
    }

    fn is_version(&self, version: &Version) -> bool {
        let bare = |tag: &str| tag.trim_matches('"').to_string();
        self.etag.as_deref().is_some_and(|etag| bare(etag) == bare(&version.tag))
    }

    fn has_checksums(&self) -> bool {
        self.has_checksums
    }

    fn finish(self: Box<Self>) -> Result<bool, Failure> {
        Ok(true)
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
    let s3 = match order.cloud {
        Cloud::S3 => Some(S3Copy::new(&order)?),
        _ => None,
    };
    let result = order.target.block_on(async |client| {
        let work = async {
            match &s3 {
                Some(s3) => s3.run(client, &count).await.map(Some),
                None => copy_within(&order).await.map(|()| None),
            }
        };
        Ok(tokio::select! {
            result = work => result,
            () = report_progress(order.source, &count) => {
                Err(StoreError::Interrupted { url: order.url.to_string() }.into())
            }
        })
    });
    if let Some(s3) = &s3 {
        s3.tidy();
    }
    let etag = result??;
    let version = order.source.version;
    (order.source.progress)(version.size);
    // Of an object that came in parts, and is copied at once, the server has not made the ETag anew.
    let has_checksums = !version.tag.contains('-') || copy_part_bytes(version).is_some();
    Ok(Box::new(BucketCopy { url: order.url.to_string(), etag, has_checksums }))
}

/// Why there is no copy, and whether that may be because an object has its name.
pub(super) struct CopyFailure {
    pub(super) refusal: CopyRefusal,
    pub(super) is_taken: bool,
    /// The last status, if a server answered.
    status: u16,
}

impl From<StoreError> for CopyFailure {
    fn from(error: StoreError) -> CopyFailure {
        CopyFailure { refusal: error.into(), is_taken: false, status: 0 }
    }
}

impl CopyFailure {
    fn unable(why: impl Into<String>) -> CopyFailure {
        CopyFailure { refusal: CopyRefusal::Unable(why.into()), is_taken: false, status: 0 }
    }
}

/// Refuse a source that has another server or other credentials than the copy.
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
        CopyFailure { refusal: bucket.error(url, error).into(), is_taken, status: 0 }
    })
}

/// A copy by S3.
struct S3Copy<'a> {
    order: &'a BucketOrder<'a>,
    copier: S3Copier,
    /// What all its requests say of the source.
    headers: HeaderMap,
    /// The name of an object of parts until it is whole.
    upload: Mutex<Option<String>>,
}

impl<'a> S3Copy<'a> {
    fn new(order: &'a BucketOrder<'a>) -> Result<S3Copy<'a>, CopyFailure> {
        let source = order.source;
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
        Ok(S3Copy { order, copier, headers, upload: Mutex::default() })
    }

    /// Copy the object; the ETag of the copy.
    async fn run(&self, client: &Client, count: &AtomicU64) -> Result<String, CopyFailure> {
        let CopySource { version, replaces, .. } = self.order.source;
        match copy_part_bytes(version) {
            Some(bytes) => self.copy_parts(client, parts(version.size, bytes), count).await,
            None => {
                let mut copy = self.part_copy(Vec::new());
                if !replaces {
                    copy.headers.insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
                }
                self.send(client, &copy, version.size).await
            }
        }
    }

    /// A request that copies the source, or a part of it.
    fn part_copy(&self, query: Vec<(&'static str, String)>) -> S3Order {
        let (method, headers) = (Method::PUT, self.headers.clone());
        S3Order { method, query, headers, body: String::new() }
    }

    fn upload(&self) -> MutexGuard<'_, Option<String>> {
        self.upload.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Give up the parts of an object that is not whole: they are seen by nobody, but some stores
    /// charge for them.
    fn tidy(&self) {
        let upload = self.upload().take();
        if let (Some(upload), Ok(net)) = (upload, net()) {
            let abort = self.copier.abort(&self.order.key, &upload);
            let _ = net.runtime.block_on(async { timeout(TIDYING, abort).await });
        }
    }

    async fn copy_parts(
        &self,
        client: &Client,
        ranges: Vec<Range<u64>>,
        count: &AtomicU64,
    ) -> Result<String, CopyFailure> {
        let BucketOrder { bucket, key, url, .. } = self.order;
        let upload = self.copier.begin(key).await.map_err(|error| bucket.error(url, error))?;
        *self.upload() = Some(upload.clone());
        let copies = (1..).zip(ranges).map(|(number, range)| {
            let upload = &upload;
            async move {
                let bytes = range.end - range.start;
                let query =
                    vec![("partNumber", u32::to_string(&number)), ("uploadId", upload.clone())];
                let mut copy = self.part_copy(query);
                let text = format!("bytes={}-{}", range.start, range.end - 1);
                copy.headers.insert(SOURCE_RANGE, HeaderValue::from_str(&text).expect("digits"));
                let etag = self.send(client, &copy, bytes).await?;
                count.fetch_add(bytes, Ordering::Relaxed);
                Ok::<_, CopyFailure>(etag)
            }
        });
        let etags: Vec<String> = iter(copies).buffered(PART_COPIES).try_collect().await?;
        let etag = self.complete(client, upload, &etags).await?;
        *self.upload() = None;
        Ok(etag)
    }

    /// End an object of parts with these ETags; the ETag of the whole.
    async fn complete(
        &self,
        client: &Client,
        upload: String,
        etags: &[String],
    ) -> Result<String, CopyFailure> {
        let CopySource { version, replaces, .. } = self.order.source;
        let (method, query) = (Method::POST, vec![("uploadId", upload)]);
        let mut end = S3Order { method, query, headers: HeaderMap::new(), body: part_list(etags) };
        if *replaces {
            return self.send(client, &end, version.size).await;
        }
        end.headers.insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
        match self.send(client, &end, version.size).await {
            // Not every server knows this condition here.
            Err(failure) if matches!(failure.status, 400 | 501) => {
                end.headers.clear();
                self.send(client, &end, version.size).await
            }
            result => result,
        }
    }

    /// Send a request that copies, until it succeeds; the ETag of what it made.
    async fn send(
        &self,
        client: &Client,
        order: &S3Order,
        bytes: u64,
    ) -> Result<String, CopyFailure> {
        let BucketOrder { target, key, source, .. } = self.order;
        let mut status = 0;
        let result = target.with_retries(async |_| {
            let request = self.copier.request(client, key, order).await;
            let request = request.map_err(|why| target.network(why))?;
            let (host, secrets) = (host(&request.url), RequestSecrets(request.secrets));
            let limit = copying(bytes);
            let exchange = async {
                // A redirect is a failure: no other server is sent the session token.
                let answer = staying(target.exchange(request.builder, &host, secrets, None));
                let response = answer.await?;
                status = response.status().as_u16();
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
        result.await.map_err(|error| {
            // Another writes an object of this name now.
            let refusal = match status == 409 && !source.replaces {
                true => CopyRefusal::Failed(error),
                false => error.into(),
            };
            CopyFailure { refusal, is_taken: matches!(status, 409 | 412), status }
        })
    }
}

/// The parts of an object, as the request that ends it has them.
fn part_list(etags: &[String]) -> String {
    let parts = (1..).zip(etags).map(|(number, etag): (u32, _)| {
        let etag = quick_xml::escape::escape(etag.as_str());
        format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>")
    });
    let parts: String = parts.collect();
    let space = "http://s3.amazonaws.com/doc/2006-03-01/";
    format!("<CompleteMultipartUpload xmlns=\"{space}\">{parts}</CompleteMultipartUpload>")
}

/// The text of an element of an answer.
fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (value, _) = rest.split_once(&format!("</{name}>"))?;
    Some(value.replace("&quot;", "\"").replace("&#34;", "\"").chars().take(200).collect())
}

/// The length of the parts that an object is copied in; `None` if it is copied with one request.
///
/// An object that came in parts is copied in as many. They are as long as those that we write, if that
/// gives this number. Else all are equally long, rounded up to a MiB.
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
        // Parts of about 1 MiB are smaller than S3 takes: the object cannot have come in them.
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
