//! Objects of Google Cloud Storage, read through its XML API.

use super::{
    Authorization, Bucket, BucketObject, CredentialCache, Settings, connector, longer_retry, retry,
    url_in, variable,
};
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder, GoogleConfigKey as Key};
use object_store::path::Path;
use object_store::{CredentialProvider, StaticCredentialProvider};
use reqwest::Url;
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderValue};
use std::path::PathBuf;
use std::sync::Arc;
use swathe_net::check_private;

const SERVER: &str = "https://storage.googleapis.com";
const PLACES: &str = "GOOGLE_APPLICATION_CREDENTIALS, GOOGLE_SERVICE_ACCOUNT, \
                      GOOGLE_SERVICE_ACCOUNT_KEY, GOOGLE_BEARER_TOKEN or gcloud's default";
/// A machine of Google's says so, and its metadata server then has a token.
const MACHINE: &str = "/sys/class/dmi/id/product_name";

static CACHED_CREDENTIALS: CredentialCache<dyn CredentialProvider<Credential = GcpCredential>> =
    CredentialCache::new();

type Tokens = Arc<dyn CredentialProvider<Credential = GcpCredential>>;

/// The position of an object, and the source of tokens to read it.
pub(super) struct Location {
    url: Url,
    tokens: Option<Tokens>,
}

/// The credentials of the environment.
struct EnvironmentCredentials {
    what: String,
    /// The token, or the text of the file.
    text: String,
    builder: GoogleCloudStorageBuilder,
}

impl Location {
    pub(super) async fn request(&self, mut headers: HeaderMap) -> Result<(Url, HeaderMap), String> {
        // What was stored with Content-Encoding: gzip would be unpacked, and served without ranges.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        if let Some(tokens) = &self.tokens {
            check_private(&self.url, "endpoint")?;
            let token = tokens.get_credential().await;
            let token = token.map_err(|error| format!("cannot get a token: {error}"))?;
            let bearer = HeaderValue::from_str(&format!("Bearer {}", token.bearer));
            let mut bearer = bearer.map_err(|_| "the token holds characters that no token has")?;
            bearer.set_sensitive(true);
            headers.insert(AUTHORIZATION, bearer);
        }
        Ok((self.url.clone(), headers))
    }
}

pub(super) fn server(settings: &Settings) -> Option<String> {
    settings.endpoint.clone().or_else(|| variable("GOOGLE_BASE_URL"))
}

pub(super) fn object(
    bucket: &str,
    path: &Path,
    settings: &Settings,
) -> Result<BucketObject, String> {
    let server = server(settings).unwrap_or_else(|| SERVER.into());
    let url = url_in(&server, bucket, path)?;
    let (tokens, authorization, secrets) = right(bucket, settings)?;
    Ok(BucketObject {
        place: super::Location::Google(Location { url, tokens }),
        authorization,
        secrets,
    })
}

pub(super) fn bucket(bucket: &str, settings: &Settings) -> Result<Bucket, String> {
    let server = server(settings).unwrap_or_else(|| SERVER.into());
    let url = url_in(&server, bucket, &Path::ROOT)?;
    let (tokens, authorization, secrets) = right(bucket, settings)?;
    let builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(bucket)
        .with_base_url(server.trim_end_matches('/'))
        .with_retry(longer_retry())
        .with_http_connector(connector()?);
    let builder = match tokens {
        Some(tokens) => {
            check_private(&url, "endpoint")?;
            builder.with_credentials(tokens)
        }
        // Without any it would look for those of this machine.
        None => {
            let nothing = StaticCredentialProvider::new(GcpCredential { bearer: String::new() });
            builder.with_credentials(Arc::new(nothing)).with_skip_signature(true)
        }
    };
    Ok(Bucket::of(
        super::Cloud::Google,
        builder.build().map_err(|error| error.to_string())?,
        authorization,
        secrets,
    ))
}

/// The source of tokens for a bucket, by what right, and their secrets.
fn right(
    bucket: &str,
    settings: &Settings,
) -> Result<(Option<Tokens>, Authorization, Vec<String>), String> {
    let environment = GoogleCloudStorageBuilder::from_env();
    let skip = environment.get_config_value(&Key::SkipSignature).as_deref() == Some("true");
    if settings.anonymous || skip {
        return Ok((None, Authorization::Anonymous, Vec::new()));
    }
    let Some(EnvironmentCredentials { what, text, builder }) = find_credentials(&environment)?
    else {
        return Ok((None, Authorization::NoneIn(PLACES), Vec::new()));
    };
    let tokens = CACHED_CREDENTIALS.get(vec![what.clone(), text.clone()], || {
        let builder = builder.with_bucket_name(bucket).with_retry(retry());
        let store = builder.with_http_connector(connector()?).build().map_err(|error| {
            let error = error.to_string();
            // What a parser says may repeat what it read.
            let why = if error.contains("decode") {
                "is neither that of a service account nor that of an authorized user"
            } else {
                &error
            };
            format!("{what}: {why}")
        })?;
        Ok(store.credentials().clone())
    })?;
    Ok((Some(tokens), Authorization::Credentials(what), vec![text]))
}

/// The first credentials of the environment, in the order of object_store.
fn find_credentials(
    environment: &GoogleCloudStorageBuilder,
) -> Result<Option<EnvironmentCredentials>, String> {
    let set = |key| environment.get_config_value(&key).filter(|value| !value.is_empty());
    let new = GoogleCloudStorageBuilder::new;
    let read = |path: &str| {
        std::fs::read_to_string(path)
            .map_err(|error| format!("the credentials file {path}: {error}"))
    };
    let (what, text, builder) = if let Some(token) = set(Key::BearerToken) {
        let token = token.trim().to_string();
        ("GOOGLE_BEARER_TOKEN".into(), token.clone(), new().with_bearer_token(token))
    } else if let Some(path) = set(Key::ServiceAccount) {
        let text = read(&path)?;
        (format!("the credentials file {path}"), text.clone(), new().with_service_account_key(text))
    } else if let Some(text) = set(Key::ServiceAccountKey) {
        ("GOOGLE_SERVICE_ACCOUNT_KEY".into(), text.clone(), new().with_service_account_key(text))
    } else if let Some(path) = set(Key::ApplicationCredentials).or_else(of_gcloud) {
        let text = read(&path)?;
        (format!("the credentials file {path}"), text, new().with_application_credentials(path))
    } else if is_googles() {
        ("the service account of this machine".into(), String::new(), new())
    } else {
        return Ok(None);
    };
    Ok(Some(EnvironmentCredentials { what, text, builder }))
}

/// The file that `gcloud auth application-default login` wrote, if it was called.
fn of_gcloud() -> Option<String> {
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".config/gcloud"));
    let folder = variable("CLOUDSDK_CONFIG").map(PathBuf::from).or_else(home)?;
    let file = folder.join("application_default_credentials.json");
    file.exists().then(|| file.to_string_lossy().into_owned())
}

/// As Google's own clients detect it; `NO_GCE_CHECK` disables that for them, too.
fn is_googles() -> bool {
    let text = || std::fs::read_to_string(MACHINE).unwrap_or_default();
    let look = variable("NO_GCE_CHECK").is_none();
    variable("GCE_METADATA_HOST").is_some() || (look && text().starts_with("Google"))
}
