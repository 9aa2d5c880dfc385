//! Signed URLs of S3 objects.

use super::{
    Authorization, Bucket, BucketObject, Request, Settings, connector, longer_retry, retry,
    variable,
};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey as Key, AwsAuthorizer};
use object_store::client::{HttpRequest, HttpRequestBody};
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::signer::Signer;
use reqwest::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};
use reqwest::{Client, Method, Url};
use std::path::PathBuf;
use std::time::Duration;

const DEFAULT_REGION: &str = "us-east-1";
const PLACES: &str = "AWS_ACCESS_KEY_ID or ~/.aws/credentials";
/// Settings of the environment that lead to credentials object_store finds by itself.
const PROVIDERS: [Key; 4] = [
    Key::WebIdentityTokenFile,
    Key::ContainerCredentialsRelativeUri,
    Key::ContainerCredentialsFullUri,
    Key::MetadataEndpoint,
];
/// Variables that set the server; the first one set counts.
const ENDPOINTS: [&str; 3] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
/// For how long a signature is valid; each request has its own.
const SIGNED_FOR: Duration = Duration::from_secs(900);

/// The position of an object, and the signer of requests for it.
pub(super) struct Location {
    store: AmazonS3,
    path: Path,
    anonymous: bool,
}

impl Location {
    /// The URL of one request.
    pub(super) async fn url(&self) -> Result<Url, String> {
        let result = self.store.signed_url(Method::GET, &self.path, SIGNED_FOR).await;
        let mut url = result.map_err(|error| format!("cannot sign a request: {error}"))?;
        if self.anonymous {
            url.set_query(None);
        }
        Ok(url)
    }
}

pub(super) fn server(settings: &Settings) -> Option<String> {
    settings.endpoint.clone().or_else(|| ENDPOINTS.into_iter().find_map(variable))
}

pub(super) fn object(
    bucket: &str,
    path: Path,
    settings: &Settings,
) -> Result<BucketObject, String> {
    let (mut builder, authorization, secrets) = builder(bucket, settings)?;
    let anonymous = !matches!(authorization, Authorization::Credentials(_));
    if anonymous {
        builder = sign_with_anything(builder);
    }
    let store = builder.with_retry(retry()).with_http_connector(connector()?).build();
    let store = store.map_err(|error| error.to_string())?;
    let place = super::Location::S3(Location { store, path, anonymous });
    Ok(BucketObject { place, authorization, secrets })
}

pub(super) fn bucket(bucket: &str, settings: &Settings) -> Result<Bucket, String> {
    let (builder, authorization, secrets) = builder(bucket, settings)?;
    let builder =
        builder.with_skip_signature(!matches!(authorization, Authorization::Credentials(_)));
    // Not every server knows how to delete many objects at once, and one is all we delete.
    let builder = builder.with_disable_bulk_delete(true);
    let store = builder.with_retry(longer_retry()).with_http_connector(connector()?).build();
    Ok(Bucket::of(
        super::Cloud::S3,
        store.map_err(|error| error.to_string())?,
        authorization,
        secrets,
    ))
}

/// For requests whose signature is dropped: the same code makes their URLs.
fn sign_with_anything(builder: AmazonS3Builder) -> AmazonS3Builder {
    builder.with_access_key_id("anonymous").with_secret_access_key("anonymous")
}

/// What a request says.
#[derive(Clone)]
pub(super) struct S3Order {
    pub(super) method: Method,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

/// Requests to S3 that copy.
pub(super) struct S3Copier {
    store: AmazonS3,
    /// Makes URLs.
    signer: AmazonS3,
    region: String,
    is_anonymous: bool,
}

impl S3Copier {
    pub(super) fn new(bucket: &str, settings: &Settings) -> Result<S3Copier, String> {
        let (builder, authorization, _) = builder(bucket, settings)?;
        let is_anonymous = !matches!(authorization, Authorization::Credentials(_));
        let region = builder.get_config_value(&Key::Region);
        let region = region.unwrap_or_else(|| DEFAULT_REGION.into());
        let build = |builder: AmazonS3Builder| {
            let builder = builder.with_retry(longer_retry()).with_http_connector(connector()?);
            builder.build().map_err(|error| error.to_string())
        };
        let signer = build(if is_anonymous {
            sign_with_anything(builder.clone())
        } else {
            builder.clone()
        })?;
        let store = build(builder.with_skip_signature(is_anonymous))?;
        Ok(S3Copier { store, signer, region, is_anonymous })
    }

    /// A request that is signed with its query, headers and body.
    pub(super) async fn request(
        &self,
        client: &Client,
        key: &Path,
        order: &S3Order,
    ) -> Result<Request, String> {
        let S3Order { method, query, headers, body } = order;
        let sign_error = |error: &dyn std::fmt::Display| format!("cannot sign a request: {error}");
        let url = self.signer.signed_url(Method::PUT, key, SIGNED_FOR).await;
        let mut url = url.map_err(|error| sign_error(&error))?;
        url.set_query(None);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = HttpRequest::new(HttpRequestBody::from(body.clone()));
        *request.method_mut() = method.clone();
        *request.uri_mut() = url.as_str().parse().map_err(|_| "no URL that can be signed")?;
        *request.headers_mut() = headers.clone();
        let mut secrets = Vec::new();
        if !self.is_anonymous {
            let credential = self.store.credentials().get_credential().await;
            let credential =
                credential.map_err(|error| format!("cannot get credentials: {error}"))?;
            let authorizer = AwsAuthorizer::new(&credential, "s3", &self.region);
            authorizer.try_authorize(&mut request, None).map_err(|error| sign_error(&error))?;
            secrets = [&credential.secret_key, &credential.key_id].map(String::clone).into();
            secrets.extend(credential.token.clone());
        }
        let mut headers = std::mem::take(request.headers_mut());
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        let builder = client.request(method.clone(), url.clone());
        let builder = builder.headers(headers).body(body.clone());
        Ok(Request { url, builder, secrets })
    }

    /// Begin an object of parts; the name of the upload.
    pub(super) async fn begin(&self, key: &Path) -> object_store::Result<String> {
        self.store.create_multipart(key).await
    }

    /// Give up an object of parts.
    pub(super) async fn abort(&self, key: &Path, upload: &String) {
        // What stays is seen by nobody.
        let _ = self.store.abort_multipart(key, upload).await;
    }
}

/// The client of a bucket, its credentials, and the secrets in them.
fn builder(
    bucket: &str,
    settings: &Settings,
) -> Result<(AmazonS3Builder, Authorization, Vec<String>), String> {
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    if let Some(endpoint) = server(settings) {
        // Else a variable of the environment would go before the option.
        builder = builder.with_config(Key::S3Endpoint, endpoint);
    }
    if let Some(endpoint) = &settings.endpoint {
        builder = builder.with_allow_http(endpoint.starts_with("http://"));
    }
    if let Some(region) = &settings.region {
        builder = builder.with_region(region);
    }
    let set = |builder: &AmazonS3Builder, key| {
        builder.get_config_value(&key).is_some_and(|value| !value.is_empty())
    };
    let skip = builder.get_config_value(&Key::SkipSignature).as_deref() == Some("true");
    let mut authorization = match settings.anonymous || skip {
        true => Authorization::Anonymous,
        false => Authorization::Credentials("AWS_ACCESS_KEY_ID".into()),
    };
    let has_keys = set(&builder, Key::AccessKeyId) || set(&builder, Key::SecretAccessKey);
    if matches!(authorization, Authorization::Credentials(_))
        && (settings.profile.is_some() || !has_keys)
    {
        match keys_of_profile(settings.profile.clone())? {
            Some(keys) => {
                builder = builder.with_access_key_id(keys.id).with_secret_access_key(keys.secret);
                if let Some(token) = keys.token {
                    builder = builder.with_token(token);
                }
                authorization = Authorization::Credentials("the keys of a profile".into());
            }
            None if PROVIDERS.into_iter().any(|key| set(&builder, key)) => {
                authorization = Authorization::Credentials("the role of this machine".into());
            }
            None => authorization = Authorization::NoneIn(PLACES),
        }
    }
    let secrets = match authorization {
        Authorization::Credentials(_) => vec![Key::SecretAccessKey, Key::Token, Key::AccessKeyId],
        _ => Vec::new(),
    };
    let secrets = secrets.iter().filter_map(|key| builder.get_config_value(key)).collect();
    Ok((builder, authorization, secrets))
}

#[derive(Debug, Default, PartialEq)]
struct Keys {
    id: String,
    secret: String,
    token: Option<String>,
}

/// The access keys of a profile, by default `$AWS_PROFILE`, else of the default profile if it
/// has any.
fn keys_of_profile(profile: Option<String>) -> Result<Option<Keys>, String> {
    let profile = profile.or_else(|| variable("AWS_PROFILE"));
    let path = variable("AWS_SHARED_CREDENTIALS_FILE").map(PathBuf::from);
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".aws/credentials"));
    let path = path.or_else(home).unwrap_or_default();
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let keys = keys_in(&text, profile.as_deref().unwrap_or("default"));
    match (keys, profile) {
        (None, Some(profile)) => {
            Err(format!("no access keys of profile {profile} in {}", path.display()))
        }
        (keys, _) => Ok(keys),
    }
}

/// The access keys of a profile in the text of a credentials file.
fn keys_in(text: &str, profile: &str) -> Option<Keys> {
    let mut keys = Keys::default();
    let mut is_profile = false;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            is_profile = name.trim() == profile;
        } else if is_profile && let Some((name, value)) = line.split_once('=') {
            let value = value.trim().to_string();
            match name.trim().to_ascii_lowercase().as_str() {
                "aws_access_key_id" => keys.id = value,
                "aws_secret_access_key" => keys.secret = value,
                "aws_session_token" => keys.token = Some(value),
                _ => {}
            }
        }
    }
    (!keys.id.is_empty() && !keys.secret.is_empty()).then_some(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_profile() {
        let text = "# comment\n[default]\naws_access_key_id = A\naws_secret_access_key=B=/+\n\
                    [ other ]\naws_access_key_id=C\naws_secret_access_key=D\nregion = x\n\
                    aws_session_token = E\n[half]\naws_access_key_id=F\n";
        let keys = |id: &str, secret: &str, token: Option<&str>| {
            let token = token.map(str::to_string);
            Some(Keys { id: id.into(), secret: secret.into(), token })
        };
        assert_eq!(keys_in(text, "default"), keys("A", "B=/+", None));
        assert_eq!(keys_in(text, "other"), keys("C", "D", Some("E")));
        assert_eq!(keys_in(text, "half"), None);
        assert_eq!(keys_in(text, "absent"), None);
    }
}
