//! Blobs of Azure.

use super::{
    Authorization, Bucket, BucketObject, CredentialCache, Settings, connector, longer_retry, retry,
    url_in, variable,
};
use object_store::azure::{
    AzureAccessKey, AzureAuthorizer, AzureConfigKey as Key, AzureCredential, MicrosoftAzureBuilder,
};
use object_store::client::{HttpRequest, HttpRequestBody};
use object_store::path::Path;
use object_store::{CredentialProvider, StaticCredentialProvider};
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use std::sync::Arc;
use swathe_net::check_private;

/// Without it requests that are not signed are answered as in 2009: with ETags that lack quotes.
const VERSION: (&str, &str) = ("x-ms-version", "2023-11-03");
const PLACES: &str = "AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN, AZURE_STORAGE_TOKEN or \
                      AZURE_CLIENT_ID";
/// Variables that set the server, and the account; the first one set counts.
const ENDPOINTS: [&str; 2] = ["AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"];
const ACCOUNTS: [&str; 2] = ["AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"];
const ACCESS_KEY: &str = "AZURE_STORAGE_ACCOUNT_KEY";
/// The settings that credentials are created from.
const KEYS: [Key; 12] = [
    Key::CredentialType,
    Key::Token,
    Key::AccessKey,
    Key::SasKey,
    Key::ClientId,
    Key::ClientSecret,
    Key::AuthorityId,
    Key::AuthorityHost,
    Key::FederatedTokenFile,
    Key::MsiEndpoint,
    Key::ObjectId,
    Key::MsiResourceId,
];
/// Which of them nobody may see.
const SECRETS: [Key; 4] = [Key::Token, Key::AccessKey, Key::SasKey, Key::ClientSecret];

static CACHED_CREDENTIALS: CredentialCache<dyn CredentialProvider<Credential = AzureCredential>> =
    CredentialCache::new();

type Credentials = Arc<dyn CredentialProvider<Credential = AzureCredential>>;

/// The position of a blob, and the source of credentials to read it.
pub(super) struct Location {
    url: Url,
    account: String,
    credentials: Option<Credentials>,
}

impl Location {
    pub(super) async fn request(&self, mut headers: HeaderMap) -> Result<(Url, HeaderMap), String> {
        headers.insert(VERSION.0, HeaderValue::from_static(VERSION.1));
        let Some(credentials) = &self.credentials else {
            return Ok((self.url.clone(), headers));
        };
        let credential = credentials.get_credential().await;
        let credential = credential.map_err(|error| format!("cannot get credentials: {error}"))?;
        if !matches!(*credential, AzureCredential::AccessKey(_)) {
            check_private(&self.url, "endpoint")?;
        }
        let sign_error = |error: &dyn std::error::Error| format!("cannot sign a request: {error}");
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.uri_mut() = self.url.as_str().parse().map_err(|_| "no URL that can be signed")?;
        *request.headers_mut() = headers;
        let authorizer = AzureAuthorizer::new(&credential, &self.account);
        authorizer.try_authorize(&mut request).map_err(|error| sign_error(&error))?;
        let url = Url::parse(&request.uri().to_string()).map_err(|error| sign_error(&error))?;
        if let Some(value) = request.headers_mut().get_mut(AUTHORIZATION) {
            value.set_sensitive(true);
        }
        Ok((url, std::mem::take(request.headers_mut())))
    }
}

/// An account is always set, or nothing can be read.
pub(super) fn server(settings: &Settings) -> Option<String> {
    of_account(settings).ok().map(|(_, server)| server)
}

pub(super) fn object(
    container: &str,
    path: &Path,
    settings: &Settings,
) -> Result<BucketObject, String> {
    let (account, server) = of_account(settings)?;
    let url = url_in(&server, container, path)?;
    let (credentials, authorization, secrets) = right(container, &account, settings)?;
    let place = super::Location::Azure(Location { url, account, credentials });
    Ok(BucketObject { place, authorization, secrets })
}

pub(super) fn bucket(container: &str, settings: &Settings) -> Result<Bucket, String> {
    let (account, server) = of_account(settings)?;
    let url = url_in(&server, container, &Path::ROOT)?;
    let (credentials, authorization, secrets) = right(container, &account, settings)?;
    let builder = MicrosoftAzureBuilder::new()
        .with_account(account)
        .with_container_name(container)
        .with_endpoint(server)
        .with_retry(longer_retry())
        .with_http_connector(connector()?);
    let builder = match credentials {
        Some(credentials) => {
            if !matches!(&authorization, Authorization::Credentials(what) if what == ACCESS_KEY) {
                check_private(&url, "endpoint")?;
            }
            builder.with_credentials(credentials)
        }
        // Without any it would look for those of this machine.
        None => {
            let nothing =
                StaticCredentialProvider::new(AzureCredential::BearerToken(String::new()));
            builder.with_credentials(Arc::new(nothing)).with_skip_signature(true)
        }
    };
    Ok(Bucket::of(
        super::Cloud::Azure,
        builder.build().map_err(|error| error.to_string())?,
        authorization,
        secrets,
    ))
}

/// Credentials for a container, by what right, and their secrets.
fn right(
    container: &str,
    account: &str,
    settings: &Settings,
) -> Result<(Option<Credentials>, Authorization, Vec<String>), String> {
    let environment = MicrosoftAzureBuilder::from_env();
    let skip = environment.get_config_value(&Key::SkipSignature).as_deref() == Some("true");
    let made_of: Vec<(Key, String)> = KEYS
        .into_iter()
        .filter_map(|key| {
            let value = environment.get_config_value(&key).filter(|value| !value.is_empty());
            // As Microsoft's own command line calls it.
            let other = || (key == Key::AccessKey).then(|| variable("AZURE_STORAGE_KEY")).flatten();
            Some((key, value.or_else(other)?))
        })
        .collect();
    let by_command = environment.get_config_value(&Key::UseAzureCli).as_deref() == Some("true");
    let authorization = match source(&made_of, by_command) {
        _ if settings.anonymous || skip => Authorization::Anonymous,
        Some(what) => Authorization::Credentials(what.into()),
        None => Authorization::NoneIn(PLACES),
    };
    let Authorization::Credentials(what) = &authorization else {
        return Ok((None, authorization, Vec::new()));
    };
    let is_key = |(key, value): &(Key, String)| {
        *key != Key::AccessKey || AzureAccessKey::try_new(value).is_ok()
    };
    if !made_of.iter().all(is_key) {
        // What a parser says may repeat what it read.
        return Err("AZURE_STORAGE_ACCOUNT_KEY holds no access key: those are in base 64".into());
    }
    let texts = made_of.iter().map(|(key, value)| format!("{key:?}={value}"));
    let credentials =
        CACHED_CREDENTIALS.get(texts.chain([by_command.to_string()]).collect(), || {
            let builder = MicrosoftAzureBuilder::new()
                .with_account(account)
                .with_container_name(container)
                .with_use_azure_cli(by_command)
                .with_retry(retry())
                .with_http_connector(connector()?);
            let with = |builder: MicrosoftAzureBuilder, (key, value): &(Key, String)| {
                builder.with_config(*key, value)
            };
            let store = made_of.iter().fold(builder, with).build();
            let store = store.map_err(|error| format!("{what}: {error}"))?;
            Ok(store.credentials().clone())
        })?;
    let secrets = made_of.into_iter().filter(|(key, _)| SECRETS.contains(key));
    let secrets = secrets.map(|(_, value)| value).collect();
    Ok((Some(credentials), authorization, secrets))
}

/// The credentials that object_store will take, first come, first served.
fn source(made_of: &[(Key, String)], by_command: bool) -> Option<&'static str> {
    let set = |name: Key| made_of.iter().any(|(key, _)| *key == name);
    Some(match () {
        () if set(Key::CredentialType) => "the credentials of AZURE_CREDENTIAL_TYPE",
        () if set(Key::Token) => "AZURE_STORAGE_TOKEN",
        () if set(Key::AccessKey) => ACCESS_KEY,
        () if set(Key::FederatedTokenFile) => "AZURE_FEDERATED_TOKEN_FILE",
        () if set(Key::ClientSecret) => "AZURE_CLIENT_SECRET",
        () if set(Key::SasKey) => "AZURE_STORAGE_SAS_TOKEN",
        () if by_command => "the token of the command az",
        () if set(Key::MsiEndpoint) || set(Key::ClientId) => "the identity of this machine",
        () => return None,
    })
}

/// The account, and the URL its containers are below. An endpoint may say both: the account is
/// its path with emulators, and the first part of its host with Azure.
fn of_account(settings: &Settings) -> Result<(String, String), String> {
    let set = |option: &Option<String>, names: [&str; 2]| {
        option.clone().or_else(|| names.into_iter().find_map(variable))
    };
    let endpoint = set(&settings.endpoint, ENDPOINTS);
    let account = set(&settings.account, ACCOUNTS);
    let account = account.or_else(|| {
        let url = Url::parse(endpoint.as_deref()?).ok()?;
        let path = url.path().trim_matches('/');
        let name = if path.is_empty() { url.host_str()?.split('.').next()? } else { path };
        Some(name.to_string())
    });
    let account = account.ok_or(
        "which account? Say it in the store's option account, or in AZURE_STORAGE_ACCOUNT_NAME",
    )?;
    if account.is_empty() || !account.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err("the name of an Azure account is of small letters and digits".into());
    }
    let usual = || format!("https://{account}.blob.core.windows.net");
    let server = endpoint.unwrap_or_else(usual);
    Ok((account, server))
}
