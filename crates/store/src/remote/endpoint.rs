//! The URL, and the permission, to request an object of a server.

use crate::redact;
use async_trait::async_trait;
use reqwest::header::HeaderMap;
use reqwest::{Client, RequestBuilder, Url};

/// The position of an object of a server, and the permission to read it.
#[async_trait]
pub(super) trait Endpoint: Send + Sync {
    /// A GET with these headers.
    async fn request(&self, client: &Client, headers: HeaderMap) -> Result<Request, String>;

    /// Its URL, if requests are not signed.
    fn url(&self) -> Option<&Url> {
        None
    }

    /// The token that may be sent to a URL: to the server of the object, and no other.
    fn token_for(&self, _url: &Url) -> Option<&str> {
        None
    }

    /// Whether credentials are sent.
    fn is_authorised(&self) -> bool;

    /// The permission it was requested with, with a separator; empty if the URL contains it.
    fn authorization(&self) -> String {
        String::new()
    }

    /// The message for an object that is missing, for this reason of the server.
    fn missing_reason(&self, _reason: &str) -> String {
        String::new()
    }
}

/// One request.
pub(super) struct Request {
    pub(super) url: Url,
    pub(super) builder: RequestBuilder,
    /// Its secrets.
    pub(super) secrets: Vec<String>,
}

/// An object that has a URL.
pub(super) struct HttpEndpoint {
    pub(super) url: Url,
    pub(super) bearer: Option<String>,
    /// Whether something in it is to be hidden.
    pub(super) is_secret: bool,
}

impl HttpEndpoint {
    /// An object, and its secrets.
    pub(super) fn new(url: Url, bearer: Option<String>) -> (HttpEndpoint, Vec<String>) {
        let mut secrets = redact::secrets(&url);
        secrets.extend(bearer.clone());
        (HttpEndpoint { url, bearer, is_secret: !secrets.is_empty() }, secrets)
    }
}

#[async_trait]
impl Endpoint for HttpEndpoint {
    async fn request(&self, client: &Client, headers: HeaderMap) -> Result<Request, String> {
        let builder = client.get(self.url.clone()).headers(headers);
        let builder = match &self.bearer {
            Some(token) => builder.bearer_auth(token),
            None => builder,
        };
        Ok(Request { url: self.url.clone(), builder, secrets: Vec::new() })
    }

    fn url(&self) -> Option<&Url> {
        Some(&self.url)
    }

    fn token_for(&self, url: &Url) -> Option<&str> {
        self.bearer.as_deref().filter(|_| self.url.origin() == url.origin())
    }

    fn is_authorised(&self) -> bool {
        self.is_secret
    }
}
