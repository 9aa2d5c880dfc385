//! From the settings of a store to the store, and from a path or URL to a source.

use crate::local_store::LocalStore;
use crate::redact;
use crate::remote::{BucketStore, Cloud, HttpStore, StallLimits};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use swathe_store_api::{Connect, ObjectName, Source, Store, StoreError, StoreSettings, Stores};

/// What creates the stores of schemes that are not built in.
static OTHERS: OnceLock<Connect> = OnceLock::new();

/// The stores that are described, and those of all other objects.
pub fn stores(settings: Vec<StoreSettings>) -> Stores {
    Stores::new(settings, connect)
}

/// The store with these settings, of the kind that its root implies. Nothing is read yet: an
/// unknown kind is reported when an object is opened.
pub fn connect(store: StoreSettings) -> Arc<dyn Store> {
    let stall = StallLimits::of(&store);
    connect_with_limits(store, stall)
}

/// [`connect`] with another time for a server to send nothing. For tests.
#[doc(hidden)]
pub fn connect_with_stall(store: StoreSettings, stall: Duration) -> Arc<dyn Store> {
    connect_with_limits(store, StallLimits { first: stall, most: stall })
}

/// Have `connect` create the stores of schemes that are not built in, in all of this process. The
/// first call decides.
pub fn connect_others_by(connect: Connect) {
    OTHERS.get_or_init(|| connect);
}

fn connect_with_limits(store: StoreSettings, stall: StallLimits) -> Arc<dyn Store> {
    match (store.scheme(), Cloud::of(store.scheme())) {
        ("" | "file", _) => Arc::new(LocalStore::new(store)),
        (_, Some(cloud)) => Arc::new(BucketStore::new(store, cloud, stall)),
        (scheme, None) => match OTHERS.get() {
            Some(connect) if !HttpStore::SCHEMES.contains(&scheme) => connect(store),
            _ => Arc::new(HttpStore::new(store, stall)),
        },
    }
}

/// The error for an object of a scheme that no kind of store has.
pub fn no_such_scheme(url: &str) -> StoreError {
    HttpStore::no_such_scheme(url)
}

/// Open an object: a path, `file://`, `http(s)://`, `s3://bucket/key`, `gs://bucket/key`,
/// `az://container/key`, `dav(s)://`, or `root://` (XRootD through its HTTP door).
///
/// A server must serve ranges. Its object is that version which has the size and the strong ETag
/// (else `Last-Modified`) seen now; every read checks them, so that a changed object is an error.
/// If a server sends neither, but speaks WebDAV or is XRootD, its date is requested separately
/// (PROPFIND), now and after each read. An object without any of these is "unversioned", and only
/// its size is checked. User and password of a URL are sent as basic authentication; they and the values of parameters that
/// look secret are never printed.
///
/// S3 follows the environment: `AWS_ACCESS_KEY_ID` and its kin, else the profile `AWS_PROFILE`
/// of `~/.aws/credentials`; `AWS_REGION` (us-east-1), `AWS_ENDPOINT_URL`. Objects are read
/// anonymously with `AWS_SKIP_SIGNATURE=true`, or without credentials. So does Google
/// Cloud Storage: `GOOGLE_APPLICATION_CREDENTIALS` and its kin, else files of `gcloud`, else the
/// service account of a machine of Google's. And so does Azure: `AZURE_STORAGE_ACCOUNT_NAME` with
/// `AZURE_STORAGE_ACCOUNT_KEY`, `AZURE_STORAGE_SAS_TOKEN`, or `AZURE_CLIENT_ID` and its kin.
/// `root://` and `davs://` send the bearer token of the environment, if any.
///
/// A remote object may be read from any thread that does not itself drive an async runtime.
///
/// # Errors
/// [`StoreError::NotFound`], [`StoreError::Forbidden`]; [`StoreError::Unsupported`] for anything
/// but a file or a readable URL, or compressed by its server; [`StoreError::Network`] if the
/// server cannot be reached, fails, or sends nothing, try after try.
pub fn open(url: &str) -> Result<Arc<dyn Source>, StoreError> {
    stores(Vec::new()).open(url)
}

/// A path or URL as users may see it, whether or not the object exists: a URL without user
/// and password, and with "..." for the values of parameters that look secret.
pub fn redact_url(url: &str) -> String {
    match url.split_once("://") {
        None | Some(("file", _)) => url.to_string(),
        Some((scheme, _)) if Cloud::of(scheme).is_some() => url.to_string(),
        Some(_) => redact::redact_url(url),
    }
}

/// [`open`] with another time for a server to send nothing. For tests.
#[doc(hidden)]
pub fn open_with_stall(url: &str, stall: Duration) -> Result<Arc<dyn Source>, StoreError> {
    let (store, url) = stores(Vec::new()).locate(url);
    let store = connect_with_stall(store.settings().clone(), stall);
    store.open(ObjectName { url: &url, qualified_name: None })
}
