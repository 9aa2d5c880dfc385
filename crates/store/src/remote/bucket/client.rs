//! Our HTTP client as object_store takes it: it would read all root certificates again for each
//! object, wait for ever, take in whatever a server sends, and repeat it.

use super::super::response::{REASON_CHARS, hide, reason_in};
use super::super::retry::sending;
use super::condition::Condition;
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use hyper::Uri;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use std::io;
use swathe_net::{connect_events, net, staying};
use tokio::time::timeout;

/// A page of a listing has about half a megabyte.
const LARGEST_ANSWER_BYTES: usize = 64 << 20;

/// A client for object_store.
pub(super) fn connector() -> Result<impl HttpConnector, String> {
    Ok(ProcessClient(net()?.client.clone()))
}

#[derive(Clone, Debug)]
struct ProcessClient(reqwest::Client);

impl HttpConnector for ProcessClient {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for ProcessClient {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let Some(condition) = Condition::of(&request) else { return self.send(request).await };
        let plain = request.clone();
        condition.add(&mut request);
        let mut answer = self.send(request).await?;
        match condition.judge(&mut answer).await {
            true => self.send(plain).await,
            false => Ok(answer),
        }
    }
}

impl ProcessClient {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let limit = sending(request.body().content_length() as u64);
        let secrets = secrets(&request);
        let exchange = async {
            let answer = async {
                connect_events::set_server(|| server(request.uri()));
                // No other server is sent it: that it is secret is not known to the client.
                match request.headers().contains_key("x-amz-security-token") {
                    true => staying(self.0.call(request)).await,
                    false => self.0.call(request).await,
                }
            };
            let answer = connect_events::trace_current(answer).await?;
            let (mut head, body) = answer.into_parts();
            let mut content = read_all(body).await?;
            if !head.status.is_success() && !head.status.is_redirection() {
                let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
                let plain = kind.is_some_and(|kind| kind.starts_with("text/plain"));
                let reason = reason_in(&String::from_utf8_lossy(&content), plain);
                let reason = hide(&secrets, reason);
                content = reason.chars().take(REASON_CHARS).collect::<String>().into();
                head.headers.remove(reqwest::header::CONTENT_LENGTH);
            }
            Ok(HttpResponse::from_parts(head, HttpResponseBody::from(content)))
        };
        timeout(limit, exchange).await.unwrap_or_else(|_| {
            let why = format!("the server did not answer within {} s", limit.as_secs());
            Err(http_error(HttpErrorKind::Timeout, io::ErrorKind::TimedOut, why))
        })
    }
}

/// Without the user and password that an endpoint may hold.
fn server(uri: &Uri) -> String {
    let host = uri.host().unwrap_or_default();
    uri.port_u16().map_or_else(|| host.to_string(), |port| format!("{host}:{port}"))
}

/// All of an answer, which is short.
async fn read_all(body: HttpResponseBody) -> Result<Bytes, HttpError> {
    let mut content = Vec::new();
    let mut chunks = body.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk?;
        if content.len() + chunk.len() > LARGEST_ANSWER_BYTES {
            let why = format!("the server sent more than {LARGEST_ANSWER_BYTES} bytes");
            return Err(http_error(HttpErrorKind::Decode, io::ErrorKind::InvalidData, why));
        }
        content.extend_from_slice(&chunk);
    }
    Ok(content.into())
}

/// The secrets of a request.
fn secrets(request: &HttpRequest) -> Vec<String> {
    let authorization = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let url = reqwest::Url::parse(&request.uri().to_string()).ok();
    let mut secrets = url.map(|url| super::query_secrets(&url)).unwrap_or_default();
    // "Bearer TOKEN", "SharedKey ACCOUNT:SIGNATURE" or "AWS4-HMAC-SHA256 ... Signature=SIGNATURE".
    let last =
        authorization.and_then(|text| text.rsplit([' ', ':', '=']).find(|part| !part.is_empty()));
    secrets.extend(last.map(str::to_string));
    secrets
}

fn http_error(kind: HttpErrorKind, io_kind: io::ErrorKind, why: String) -> HttpError {
    HttpError::new(kind, io::Error::new(io_kind, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_of_an_endpoint_is_told_without_its_password() {
        for (endpoint, expected) in [
            ("http://user:hush-hush@127.0.0.1:9000/bucket", "127.0.0.1:9000"),
            ("https://user@node7/bucket", "node7"),
            ("https://[::1]:9000/", "[::1]:9000"),
        ] {
            assert_eq!(server(&endpoint.parse().expect("a URL")), expected);
        }
    }
}
