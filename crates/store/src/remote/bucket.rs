//! Objects in buckets of S3, Google Cloud Storage and Azure: the server of a request, and the
//! credentials to read it.
//!
//! object_store finds credentials, renews tokens and signs; the requests that read are ours. It
//! lists and writes, over a client of ours.

mod az;
mod client;
mod condition;
mod copy;
mod gs;
mod list;
mod s3;
mod store;
mod upload;

pub(crate) use store::BucketStore;

use super::endpoint::{Endpoint, Request};
use crate::redact;
use async_trait::async_trait;
use client::connector;
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::{ObjectStore, RetryConfig};
use reqwest::header::{AUTHORIZATION, HeaderMap};
use reqwest::{Client, Url};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use swathe_net::root_cause;
use swathe_store_api::StoreError;

/// Tries, and their time, to get credentials.
const CREDENTIAL_RETRIES: usize = 2;
const CREDENTIAL_TIME: Duration = Duration::from_secs(20);
/// Tries, and their time, to list or write.
const RETRIES: usize = 5;
const RETRY_TIME: Duration = Duration::from_secs(120);
/// Sets of credentials a process keeps.
const CACHED_PROVIDERS: usize = 16;
/// A shorter value in a query is not a secret, but a date or a version.
const SECRET_BYTES: usize = 16;

/// The provider of the buckets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cloud {
    S3,
    Google,
    Azure,
}

/// The settings of a store for the server of its buckets; the rest is from the environment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub endpoint: Option<String>,
    pub region: Option<String>,
    pub profile: Option<String>,
    pub account: Option<String>,
    pub anonymous: bool,
}

/// A bucket, to list and to write to.
pub(crate) struct Bucket {
    cloud: Cloud,
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) pages: Arc<dyn PaginatedListStore>,
    authorization: Authorization,
    secrets: Vec<String>,
}

/// An object of a bucket, to read.
pub(super) struct BucketObject {
    place: Location,
    pub(super) authorization: Authorization,
    /// Secrets, which are never printed.
    pub(super) secrets: Vec<String>,
}

enum Location {
    S3(s3::Location),
    Google(gs::Location),
    Azure(az::Location),
}

/// By what right an object is read, as those should know who are refused.
pub(super) enum Authorization {
    /// Credentials, and their source.
    Credentials(String),
    /// None, as the user wants.
    Anonymous,
    /// None, as these sources have none.
    NoneIn(&'static str),
}

impl Cloud {
    /// The provider of the buckets of a URL scheme.
    pub(crate) fn of(scheme: &str) -> Option<Cloud> {
        match scheme {
            "s3" => Some(Cloud::S3),
            "gs" => Some(Cloud::Google),
            "az" => Some(Cloud::Azure),
            _ => None,
        }
    }

    /// The server of its buckets, if it is set: their URLs do not name it.
    pub(crate) fn server(self, settings: &Settings) -> Option<String> {
        match self {
            Cloud::S3 => s3::server(settings),
            Cloud::Google => gs::server(settings),
            Cloud::Azure => az::server(settings),
        }
    }

    /// The bucket and the key, which may be empty, of "bucket/key".
    fn split(self, name: &str) -> Result<(&str, Path), String> {
        let (bucket, key) = name.split_once('/').unwrap_or((name, ""));
        // Containers of Azure may be called $web, $root or $logs.
        let more: &[u8] = if self == Cloud::Azure { b"-_$" } else { b".-_" };
        let bucket_char = |byte: u8| byte.is_ascii_alphanumeric() || more.contains(&byte);
        if bucket.is_empty() || !bucket.bytes().all(bucket_char) {
            return Err(self.no_object());
        }
        let path = Path::parse(key).ok().filter(|path| path.as_ref() == key);
        Ok((bucket, path.ok_or("there are no keys with empty parts, '.' or '..' here")?))
    }

    fn no_object(self) -> String {
        let scheme = self.scheme();
        format!("a URL of {scheme}:// holds a bucket and a key: {scheme}://bucket/path/image.fits")
    }

    fn scheme(self) -> &'static str {
        match self {
            Cloud::S3 => "s3",
            Cloud::Google => "gs",
            Cloud::Azure => "az",
        }
    }
}

impl Bucket {
    /// The bucket of `name`, "bucket/key", and the key, which may be empty.
    pub(crate) fn new(
        cloud: Cloud,
        name: &str,
        settings: &Settings,
    ) -> Result<(Bucket, Path), String> {
        let (bucket, path) = cloud.split(name)?;
        let bucket = match cloud {
            Cloud::S3 => s3::bucket(bucket, settings),
            Cloud::Google => gs::bucket(bucket, settings),
            Cloud::Azure => az::bucket(bucket, settings),
        }?;
        Ok((bucket, path))
    }

    fn of<T>(cloud: Cloud, store: T, authorization: Authorization, secrets: Vec<String>) -> Bucket
    where
        T: ObjectStore + PaginatedListStore,
    {
        let store = Arc::new(store);
        Bucket { cloud, objects: store.clone(), pages: store, authorization, secrets }
    }

    /// The error of an object, in our words.
    pub(crate) fn error(&self, url: &str, error: object_store::Error) -> StoreError {
        let message = super::response::hide(&self.secrets, root_cause(&error));
        let message = message.trim_start_matches("Server returned non-2xx status code: ");
        let message = message.trim_end_matches([':', ' ']);
        let (url, why) = (url.to_string(), format!(": {message}; {}", self.authorization));
        // Azure deletes many at a time, and says of each what became of it.
        let error_code = message.rsplit_once("(code: ").map(|(_, code)| code.trim_end_matches(')'));
        match error_code.or(message.split(' ').next()) {
            Some("404") => StoreError::NotFound { url, why },
            Some("401" | "403") => StoreError::Forbidden { url, why },
            _ => StoreError::Network { url, why: message.to_string() },
        }
    }
}

impl BucketObject {
    /// The object `name`, "bucket/key". Without credentials it is read anonymously.
    pub(super) fn new(
        cloud: Cloud,
        name: &str,
        settings: &Settings,
    ) -> Result<BucketObject, String> {
        let (bucket, path) = cloud.split(name)?;
        if path.is_root() {
            return Err(cloud.no_object());
        }
        match cloud {
            Cloud::S3 => s3::object(bucket, path, settings),
            Cloud::Google => gs::object(bucket, &path, settings),
            Cloud::Azure => az::object(bucket, &path, settings),
        }
    }
}

#[async_trait]
impl Endpoint for BucketObject {
    async fn request(&self, client: &Client, headers: HeaderMap) -> Result<Request, String> {
        let (url, headers) = match &self.place {
            Location::S3(place) => (place.url().await?, headers),
            Location::Google(place) => place.request(headers).await?,
            Location::Azure(place) => place.request(headers).await?,
        };
        let mut secrets = query_secrets(&url);
        // "Bearer TOKEN" or "SharedKey ACCOUNT:SIGNATURE".
        let authorization = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        secrets.extend(
            authorization.and_then(|text| text.rsplit([' ', ':']).next()).map(str::to_string),
        );
        let builder = client.get(url.clone()).headers(headers);
        Ok(Request { url, builder, secrets })
    }

    fn is_authorised(&self) -> bool {
        matches!(self.authorization, Authorization::Credentials(_))
    }

    fn authorization(&self) -> String {
        format!("; {}", self.authorization)
    }

    /// The reason of a server of buckets: whether the bucket or the key is missing. If a request has
    /// no credentials, some servers answer for private objects that they do not exist.
    fn missing_reason(&self, reason: &str) -> String {
        let separator = if reason.is_empty() { "" } else { ": " };
        match self.authorization {
            Authorization::NoneIn(_) => format!("{separator}{reason}; {}", self.authorization),
            _ => format!("{separator}{reason}"),
        }
    }
}

impl fmt::Display for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Authorization::Credentials(what) => write!(f, "asked with {what}"),
            Authorization::Anonymous => write!(f, "asked anonymously, as set"),
            Authorization::NoneIn(places) => {
                write!(f, "asked anonymously: no credentials in {places}")
            }
        }
    }
}

fn query_secrets(url: &Url) -> Vec<String> {
    let mut secrets = redact::secrets(url);
    secrets.retain(|secret| secret.len() >= SECRET_BYTES);
    secrets
}

/// The URL of an object that lies below its bucket on a server.
fn url_in(server: &str, bucket: &str, path: &Path) -> Result<Url, String> {
    let (server, key) = (server.trim_end_matches('/'), path.as_ref());
    let url = format!("{server}/{bucket}/{}", redact::percent_encode(key, b"-._~/"));
    let url = Url::parse(&url).map_err(|error| format!("the endpoint {server}: {error}"))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        _ => Err(format!("the endpoint {server} is no http:// or https:// URL")),
    }
}

fn retry() -> RetryConfig {
    RetryConfig {
        max_retries: CREDENTIAL_RETRIES,
        retry_timeout: CREDENTIAL_TIME,
        ..RetryConfig::default()
    }
}

/// For requests that list or write.
fn longer_retry() -> RetryConfig {
    RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_TIME, ..RetryConfig::default() }
}

/// Credential providers by their settings: a process requests a token once, not once for
/// each object. A process forked since creates its own, as it has its own connections.
struct CredentialCache<T: ?Sized>(Mutex<Vec<CachedCredentials<T>>>);

struct CachedCredentials<T: ?Sized> {
    process: u32,
    made_of: Vec<String>,
    provider: Arc<T>,
}

impl<T: ?Sized> CredentialCache<T> {
    const fn new() -> CredentialCache<T> {
        CredentialCache(Mutex::new(Vec::new()))
    }

    fn get(
        &self,
        made_of: Vec<String>,
        make: impl FnOnce() -> Result<Arc<T>, String>,
    ) -> Result<Arc<T>, String> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        let same =
            |giver: &&CachedCredentials<T>| giver.process == process && giver.made_of == made_of;
        if let Some(entry) = entries.iter().find(same) {
            return Ok(entry.provider.clone());
        }
        let provider = make()?;
        if entries.len() == CACHED_PROVIDERS {
            entries.clear();
        }
        entries.push(CachedCredentials { process, made_of, provider: provider.clone() });
        Ok(provider)
    }
}

/// A variable of the environment that says something.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_encoded_and_stay_below_their_bucket() {
        let path = |key: &str| Path::parse(key).unwrap();
        let url = url_in("http://host/account/", "b", &path("a b/+%2f?#[é]")).unwrap();
        assert_eq!(url.as_str(), "http://host/account/b/a%20b/%2B%252f%3F%23%5B%C3%A9%5D");
        assert!(url_in("file:///etc", "b", &path("c")).is_err());
        assert!(url_in("host", "b", &path("c")).is_err());
    }
}
