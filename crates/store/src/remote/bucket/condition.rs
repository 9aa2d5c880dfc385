//! A condition on a request that changes a bucket: that its key is free, or has a version.
//!
//! The client of the requests adds it. A server that knows no such condition refuses it, and is asked
//! without it: a write after another look at the key, a removal by the look that the condition is of.

use super::Cloud;
use crate::redact::percent_decode;
use object_store::client::{HttpRequest, HttpResponse};
use object_store::path::Path as Key;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use reqwest::header::{HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use reqwest::{Method, StatusCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The number of a version of an object of Google; 0: there is none.
const GENERATION_MATCH: HeaderName = HeaderName::from_static("x-goog-if-generation-match");

tokio::task_local! {
    static CONDITION: Arc<Condition>;
}

/// A condition on the key of a request, and what became of it.
pub(super) struct Condition {
    objects: Arc<dyn ObjectStore>,
    key: Key,
    header: (HeaderName, HeaderValue),
    is_for_new: bool,
    is_refused: AtomicBool,
    sends: AtomicU32,
}

impl Condition {
    /// That the key is free. Azure signs its conditions: a client cannot add them.
    pub(super) fn free(
        cloud: Cloud,
        objects: &Arc<dyn ObjectStore>,
        key: &Key,
    ) -> Option<Arc<Condition>> {
        let header = match cloud {
            Cloud::S3 => (IF_NONE_MATCH, HeaderValue::from_static("*")),
            Cloud::Google => (GENERATION_MATCH, HeaderValue::from_static("0")),
            Cloud::Azure => return None,
        };
        Some(Condition::new(objects, key, header, true))
    }

    /// That the object is the one that was seen.
    pub(super) fn same(
        cloud: Cloud,
        objects: &Arc<dyn ObjectStore>,
        metadata: &ObjectMeta,
    ) -> Option<Arc<Condition>> {
        let (name, value) = match cloud {
            Cloud::S3 => (IF_MATCH, metadata.e_tag.as_ref()?),
            Cloud::Google => (GENERATION_MATCH, metadata.version.as_ref()?),
            Cloud::Azure => return None,
        };
        let value = HeaderValue::from_str(value).ok()?;
        Some(Condition::new(objects, &metadata.location, (name, value), false))
    }

    fn new(
        objects: &Arc<dyn ObjectStore>,
        key: &Key,
        header: (HeaderName, HeaderValue),
        is_for_new: bool,
    ) -> Arc<Condition> {
        Arc::new(Condition {
            objects: objects.clone(),
            key: key.clone(),
            header,
            is_for_new,
            is_refused: AtomicBool::new(false),
            sends: AtomicU32::new(0),
        })
    }

    /// Do work whose requests have it.
    pub(super) async fn during<F: Future>(self: &Arc<Condition>, work: F) -> F::Output {
        CONDITION.scope(self.clone(), work).await
    }

    /// That of a request. Only those have it that change the key.
    pub(super) fn of(request: &HttpRequest) -> Option<Arc<Condition>> {
        let condition = CONDITION.try_with(Arc::clone).ok()?;
        let (uri, method) = (request.uri(), request.method());
        let is_of_key = percent_decode(uri.path()).ends_with(condition.key.as_ref().as_bytes());
        let query = uri.query().unwrap_or_default();
        let changes = match condition.is_for_new {
            // The end of an object of parts, but not a part.
            true if *method == Method::POST => query.contains("uploadId="),
            true => *method == Method::PUT && !query.contains("uploadId="),
            false => *method == Method::DELETE,
        };
        (is_of_key && changes).then_some(condition)
    }

    /// Add it to a request.
    pub(super) fn add(&self, request: &mut HttpRequest) {
        self.sends.fetch_add(1, Ordering::Relaxed);
        let (name, value) = &self.header;
        request.headers_mut().insert(name, value.clone());
    }

    /// Judge an answer; whether the request is to be sent without the condition.
    pub(super) async fn judge(&self, answer: &mut HttpResponse) -> bool {
        let status = answer.status();
        if status == StatusCode::BAD_REQUEST || status == StatusCode::NOT_IMPLEMENTED {
            if !self.is_for_new {
                return true;
            }
            match self.objects.head(&self.key).await {
                Err(object_store::Error::NotFound { .. }) => return true,
                Ok(_) => *answer.status_mut() = StatusCode::PRECONDITION_FAILED,
                // Whether the key is free is not known: the answer stays.
                Err(_) => {}
            }
        }
        let is_refused = matches!(
            answer.status(),
            StatusCode::PRECONDITION_FAILED | StatusCode::CONFLICT | StatusCode::NOT_MODIFIED
        );
        self.is_refused.fetch_or(is_refused, Ordering::Relaxed);
        false
    }

    /// Whether it was not true of a key.
    pub(super) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }

    /// Whether the request was sent more than once: an earlier one may have made the object.
    pub(super) fn is_repeated(&self) -> bool {
        self.sends.load(Ordering::Relaxed) > 1
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BucketStore, Cloud};
    use crate::remote::stall_timeout::StallLimits;
    use bytes::Bytes;
    use std::collections::BTreeMap;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    use swathe_store_api::{ObjectName, PartSums, Sink, Store, StoreError, StoreSettings};

    const OBJECT: ObjectName<'static> = ObjectName { url: "s3://bucket/key", qualified_name: None };

    /// A bucket with one key, as S3 answers for it.
    #[derive(Default)]
    struct OneKey {
        /// The version of the object, if there is one.
        version: Option<u32>,
        /// The status for a request with a condition; 0: it knows conditions.
        refusal: u16,
        /// Whether another writes the object after each look.
        is_busy: bool,
        /// Whether the connection breaks after the next change.
        breaks: bool,
        lines: Vec<String>,
    }

    impl OneKey {
        /// The status and the body; `None` if the connection breaks.
        fn answer(&mut self, head: &str) -> Option<(u16, &'static str)> {
            let line = head.lines().next().unwrap_or_default();
            self.lines.push(line.split(" HTTP").next().unwrap_or_default().to_string());
            let condition = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.to_lowercase().starts_with("if-").then(|| value.to_string())
            });
            if condition.is_some() && self.refusal > 0 {
                return Some((self.refusal, ""));
            }
            let is_true = match (condition.as_deref(), self.version) {
                (Some("*"), version) => version.is_none(),
                (Some(tag), version) => {
                    Some(tag.trim_matches('"'))
                        == version.map(|version| version.to_string()).as_deref()
                }
                (None, _) => true,
            };
            let method = line.split(' ').next().unwrap_or_default();
            match method {
                "HEAD" if self.version.is_none() => return Some((404, "")),
                "HEAD" => return Some((200, "")),
                "POST" if line.contains("?uploads") => {
                    return Some((
                        200,
                        "<InitiateMultipartUploadResult><UploadId>u</UploadId>\
                        </InitiateMultipartUploadResult>",
                    ));
                }
                "PUT" | "DELETE" if line.contains("uploadId") => return Some((200, "")),
                _ if !is_true => return Some((412, "")),
                "DELETE" => self.version = None,
                _ => self.version = Some(self.version.unwrap_or_default() + 1),
            }
            if std::mem::take(&mut self.breaks) {
                return None;
            }
            Some((
                200,
                "<CompleteMultipartUploadResult><ETag>\"e\"</ETag>\
                </CompleteMultipartUploadResult>",
            ))
        }

        fn serve(self) -> (Arc<Mutex<OneKey>>, BucketStore) {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let address = listener.local_addr().expect("its address");
            let shared = Arc::new(Mutex::new(self));
            let key = shared.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let key = key.clone();
                    std::thread::spawn(move || exchange(stream, &key));
                }
            });
            (shared, store(address))
        }
    }

    fn store(address: SocketAddr) -> BucketStore {
        let options = [("endpoint", format!("http://{address}")), ("anonymous", "true".into())];
        let options: BTreeMap<String, String> =
            options.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        let settings = StoreSettings::new("lake".into(), "s3://bucket".into(), options);
        let seconds = Duration::from_secs(5);
        BucketStore::new(settings, Cloud::S3, StallLimits { first: seconds, most: seconds })
    }

    fn exchange(mut stream: TcpStream, key: &Mutex<OneKey>) {
        let (mut request, mut piece) = (Vec::new(), [0; 4096]);
        let head = loop {
            match stream.read(&mut piece) {
                Ok(0) | Err(_) => return,
                Ok(count) => request.extend_from_slice(&piece[..count]),
            }
            let text = String::from_utf8_lossy(&request);
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| {
                line.to_lowercase().strip_prefix("content-length: ").map(str::to_string)
            });
            if body.len() >= length.map_or(0, |length| length.parse().expect("a number")) {
                break head.to_string();
            }
        };
        let mut key = key.lock().expect("no panic");
        let Some((status, body)) = key.answer(&head) else { return };
        // What "object" has, after one write.
        let tag = if head.starts_with("HEAD") {
            key.version.map_or_else(String::new, |version| version.to_string())
        } else {
            "e".into()
        };
        if head.starts_with("HEAD") && key.is_busy {
            key.version = key.version.map(|version| version + 1);
        }
        let date = "Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT";
        let _ = write!(
            stream,
            "HTTP/1.1 {status} -\r\nETag: \"{tag}\"\r\n{date}\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
    }

    fn put(store: &BucketStore, in_parts: bool, replaces: bool) -> Result<(), StoreError> {
        let mut sink = store.create(OBJECT, 6, in_parts)?;
        let mut sums = PartSums::default();
        sums.add(b"object");
        sink.write(Bytes::from_static(b"object")).map_err(|failure| failure.error)?;
        let sink: Box<dyn Sink> = sink;
        sink.finish(&sums, 6, replaces).map(drop).map_err(|failure| failure.error)
    }

    #[test]
    fn an_object_that_appeared_meanwhile_is_not_replaced() {
        for in_parts in [false, true] {
            let (key, store) = OneKey::default().serve();
            put(&store, in_parts, false).expect("the key is free");
            let error = put(&store, in_parts, false).expect_err("the key is taken");
            assert!(matches!(error, StoreError::Exists { .. }), "{error}");
            assert_eq!(key.lock().unwrap().version, Some(1));
            put(&store, in_parts, true).expect("it may be replaced");
            assert_eq!(key.lock().unwrap().version, Some(2));
        }
    }

    #[test]
    fn a_server_without_conditions_is_written_to() {
        for (in_parts, refusal) in [(false, 501), (true, 501), (false, 400), (true, 400)] {
            let (key, store) = OneKey { refusal, ..OneKey::default() }.serve();
            put(&store, in_parts, false).expect("written without one");
            let error = put(&store, in_parts, false).expect_err("it is seen");
            assert!(matches!(error, StoreError::Exists { .. }), "{error}");
            assert_eq!(key.lock().unwrap().version, Some(1));
            store.remove(OBJECT).expect("removed without one");
            assert_eq!(key.lock().unwrap().version, None);
        }
    }

    #[test]
    fn what_was_seen_is_removed_and_nothing_else() {
        let (key, store) = OneKey { version: Some(7), ..OneKey::default() }.serve();
        store.remove(OBJECT).expect("removed");
        assert_eq!(key.lock().unwrap().version, None);
        let error = store.remove(OBJECT).expect_err("it is gone");
        assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
        *key.lock().unwrap() = OneKey { version: Some(7), is_busy: true, ..OneKey::default() };
        let error = store.remove(OBJECT).expect_err("another wrote it");
        assert!(matches!(error, StoreError::Changed { .. }), "{error}");
        assert_eq!(key.lock().unwrap().version, Some(8));
    }
}
