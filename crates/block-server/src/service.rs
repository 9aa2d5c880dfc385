//! Requests and their answers.

use crate::access::{Scope, Tokens};
use crate::copy_object::copy_object;
use crate::disks::{Disks, REQUESTS};
use crate::error::RequestError;
use crate::folder::propfind;
use crate::get::get;
use crate::metrics::metrics;
use crate::names::{delete, make_folder, rename_object};
use crate::object_path::{METRICS, ObjectPath};
use crate::put::put;
use crate::request_record::{RecordedBody, RequestCounts, RequestRecord};
use crate::reserve::reserve;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use hyper::header::{
    ALLOW, CONTENT_TYPE, EXPECT, HOST, HeaderMap, HeaderValue, RETRY_AFTER, SERVER,
    WWW_AUTHENTICATE,
};
use hyper::{Method, Request, Response, StatusCode};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use swathe_net::server::{Body, Service, plain_answer};
use swathe_store_api::DAMAGE_HEADER;
use swathe_trace::{LIFELINE_HEADER, Lifeline};
use tokio::time::timeout;

/// Longest headers: 1024 ranges of large objects take half of it.
const HEADER_BYTES: usize = 64 << 10;
/// Longest body of requests but PUT.
const BODY_BYTES: usize = 64 << 10;
/// Bytes of a body that are thrown away after a refusal, so that its client sees why.
const REST_BYTES: usize = 64 << 20;
/// How long that may take.
const REST: Duration = Duration::from_secs(10);
const METHODS: &str = "OPTIONS, GET, HEAD, PUT, DELETE, MKCOL, MOVE, COPY, PROPFIND, RESERVE";

/// Answers requests for what lies on disks.
pub(crate) struct BlockService {
    pub(crate) disks: Arc<Disks>,
    tokens: Tokens,
    pub(crate) counts: Arc<RequestCounts>,
}

impl BlockService {
    pub(crate) fn new(disks: Arc<Disks>, tokens: Tokens) -> BlockService {
        BlockService { disks, tokens, counts: Arc::default() }
    }

    /// Check what needs no disk.
    fn check(&self, method: &Method, headers: &HeaderMap) -> Result<(), RequestError> {
        let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
            || method.as_str() == "PROPFIND";
        match self.tokens.scope(headers) {
            Scope::Nothing => {
                let text = "a token is needed: Authorization: Bearer TOKEN";
                return Err(RequestError::refuse(StatusCode::UNAUTHORIZED, text));
            }
            Scope::Read if !reads => {
                let text = format!("{method}: expected a token for writing, found one for reading");
                return Err(RequestError::refuse(StatusCode::FORBIDDEN, text));
            }
            Scope::Read | Scope::Write => {}
        }
        // A page of a browser here may call this server by a name of its own (DNS rebinding).
        if self.tokens.is_open() && headers.get(HOST).is_some_and(|host| !is_here(host.as_bytes()))
        {
            let text = "without a token, expected Host: localhost or a numeric address";
            return Err(RequestError::refuse(StatusCode::MISDIRECTED_REQUEST, text));
        }
        let bytes: usize =
            headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if bytes > HEADER_BYTES {
            let text = format!("expected headers of at most {HEADER_BYTES} bytes, found {bytes}");
            return Err(RequestError::refuse(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, text));
        }
        Ok(())
    }

    async fn respond(
        &self,
        method: &Method,
        url_path: &str,
        headers: &HeaderMap,
        body: &mut Incoming,
        record: &Arc<RequestRecord>,
    ) -> Result<Response<Body>, RequestError> {
        self.check(method, headers)?;
        let disks = &self.disks;
        if method == Method::OPTIONS {
            return Ok(options());
        }
        let is_head = method == Method::HEAD;
        if url_path == METRICS && (is_head || method == Method::GET) {
            let page = metrics(disks, &self.counts, record).await;
            let mut response = plain_answer(StatusCode::OK, page);
            let kind = HeaderValue::from_static("text/plain; version=0.0.4");
            response.headers_mut().insert(CONTENT_TYPE, kind);
            return Ok(response);
        }
        if url_path == METRICS {
            let text = format!("{method}: {METRICS} is no object: expected GET or HEAD");
            return Err(RequestError::refuse(StatusCode::METHOD_NOT_ALLOWED, text));
        }
        let path = ObjectPath::parse(url_path)?;
        let headers = headers.clone();
        if method == Method::PUT {
            return put(disks, headers, path, body, record).await;
        }
        if is_head || method == Method::GET {
            return get(disks, headers, path, is_head, record).await;
        }
        read_body(method, body).await?;
        if method.as_str() == "PROPFIND" {
            return propfind(disks, &headers, &path, record).await;
        }
        if method.as_str() == "COPY" {
            return copy_object(disks, &headers, &path, record).await;
        }
        // What changes names goes to its end, also if the client goes away.
        let (disks, record, method) = (disks.clone(), record.clone(), method.clone());
        let change = async move {
            match method.as_str() {
                "DELETE" => delete(&disks, &headers, &path, &record).await,
                "MKCOL" => make_folder(&disks, &path, &record).await,
                "MOVE" => rename_object(&disks, &headers, &path, &record).await,
                "RESERVE" => reserve(&disks, &headers, &path, &record).await,
                name => Err(no_method(name)),
            }
        };
        tokio::spawn(change).await.unwrap_or_else(|error| {
            Err(RequestError::refuse(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
        })
    }
}

impl Service for BlockService {
    fn knows(&self, headers: &HeaderMap) -> bool {
        self.tokens.scope(headers) > Scope::Nothing
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, mut body) = request.into_parts();
        let room = self.disks.requests.clone().try_acquire_owned().ok();
        let is_busy = room.is_none();
        let lifeline = head.headers.get(LIFELINE_HEADER).and_then(|value| value.to_str().ok());
        let lifeline = lifeline.and_then(Lifeline::parse);
        let (method, path) = (&head.method, head.uri.path());
        let record = RequestRecord::start(&self.counts, method, path, lifeline, room);
        let result = if is_busy {
            let text = format!("{REQUESTS} requests are being answered; come again");
            Err(RequestError::refuse(StatusCode::SERVICE_UNAVAILABLE, text))
        } else {
            self.respond(method, path, &head.headers, &mut body, &record).await
        };
        let is_refusal = result.is_err();
        let mut response = result.unwrap_or_else(|error| {
            record.set_error(error.to_string());
            refusal(&error)
        });
        response.headers_mut().insert(SERVER, HeaderValue::from_static(NAME));
        record.begin_answer(response.status());
        // Whose body is awaited before it is sent need not send it.
        if is_refusal && !body.is_end_stream() && !head.headers.contains_key(EXPECT) {
            tokio::spawn(timeout(REST, discard(body)));
        }
        response.map(|body| RecordedBody::new(body, record).boxed_unsync())
    }
}

const NAME: &str = concat!("swathe/", env!("CARGO_PKG_VERSION"));

fn refusal(error: &RequestError) -> Response<Body> {
    let status = error.status();
    let mut response = plain_answer(status, format!("{error}\n"));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if let Some(byte) = error.damage() {
        headers.insert(DAMAGE_HEADER, HeaderValue::from(byte));
    }
    match status {
        StatusCode::UNAUTHORIZED => {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        StatusCode::METHOD_NOT_ALLOWED => {
            headers.insert(ALLOW, HeaderValue::from_static(METHODS));
        }
        StatusCode::SERVICE_UNAVAILABLE => {
            // A disk that is missing does not come back by itself.
            let is_missing = matches!(error, RequestError::DiskMissing { .. });
            let after = if is_missing { "3600" } else { "1" };
            headers.insert(RETRY_AFTER, HeaderValue::from_static(after));
        }
        _ => {}
    }
    response
}

/// The answer to OPTIONS: class 1 of WebDAV.
fn options() -> Response<Body> {
    let mut response = plain_answer(StatusCode::NO_CONTENT, Bytes::new());
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(METHODS));
    response.headers_mut().insert("dav", HeaderValue::from_static("1"));
    response
}

fn no_method(name: &str) -> RequestError {
    let is_of_webdav = ["LOCK", "UNLOCK", "PROPPATCH"].contains(&name);
    let status =
        if is_of_webdav { StatusCode::NOT_IMPLEMENTED } else { StatusCode::METHOD_NOT_ALLOWED };
    RequestError::refuse(status, format!("{name}: expected one of {METHODS}"))
}

/// Whether a host is `localhost` or a number, perhaps with a port.
fn is_here(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    };
    let number = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || number.parse::<IpAddr>().is_ok()
}

/// Read the short body of a request that needs none: what is asked for is sent in any case.
async fn read_body(method: &Method, body: &mut Incoming) -> Result<(), RequestError> {
    let too_slow =
        |_| RequestError::refuse(StatusCode::REQUEST_TIMEOUT, "the body comes too slowly");
    let read = async {
        let mut bytes = 0;
        while let Some(frame) = body.frame().await {
            let bad = |error: hyper::Error| {
                RequestError::refuse(StatusCode::BAD_REQUEST, error.to_string())
            };
            bytes += frame.map_err(bad)?.data_ref().map_or(0, Bytes::len);
            if bytes > BODY_BYTES {
                let text = format!("{method}: expected a body of at most {BODY_BYTES} bytes");
                return Err(RequestError::refuse(StatusCode::PAYLOAD_TOO_LARGE, text));
            }
        }
        Ok(bytes)
    };
    let bytes = timeout(REST, read).await.map_err(too_slow)??;
    if bytes > 0 && method.as_str() == "MKCOL" {
        let text = "MKCOL: expected no body";
        return Err(RequestError::refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    Ok(())
}

/// Throw away the rest of a body.
async fn discard(mut body: Incoming) {
    let mut bytes = 0;
    while bytes < REST_BYTES
        && let Some(Ok(frame)) = body.frame().await
    {
        bytes += frame.data_ref().map_or(0, Bytes::len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_this_machine_are_numbers_or_localhost() {
        for (host, expected) in [
            ("localhost", true),
            ("LocalHost:8430", true),
            ("127.0.0.1:8430", true),
            ("[::1]:8430", true),
            ("[::1]", true),
            ("evil.example:8430", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("", false),
        ] {
            assert_eq!(is_here(host.as_bytes()), expected, "{host}");
        }
    }
}
