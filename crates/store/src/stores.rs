//! Named storages: where their objects are, who may read them, what reading costs.

use crate::bearer::bearer;
use crate::local::Local;
use crate::place::Place;
use crate::remote::{self, BucketSettings, Cloud, Remote, Stall};
use reqwest::Url;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use swathe_cache::{Blocks, Cached};
use swathe_plan::{Compute, Costs};
use swathe_store_api::{Source, StoreError, Version};

/// Schemes of XRootD's own protocol: its HTTP door may be elsewhere.
const DOORED: [&str; 4] = ["root", "roots", "xroot", "xroots"];
/// Root of the files of this machine that lie in no named store.
const FILES: &str = "file://";
/// How long a server whose costs were never measured may send nothing.
const STALL: Stall = Stall { first: Duration::from_secs(5), most: Duration::from_secs(30) };
/// One whose costs were: so many times as long as a request of 1 MB takes,
const STALL_REQUESTS: f64 = 30.0;
/// but at least and at most this.
const STALL_BOUNDS_S: (f64, f64) = (3.0, 60.0);

/// A storage: a root URL below which its objects lie.
#[derive(Clone, Debug)]
pub struct Store {
    /// By which objects are called, `NAME:path`; empty for a root that has no name.
    pub name: String,
    /// URL without a final slash, of files not percent-encoded: `file:///data`, `https://host/path`, `s3://bucket/prefix`.
    pub root: String,
    /// `endpoint`, `region`, `profile`, `account`, `anonymous`, `door`, `token_file`, `roots`: no
    /// credentials.
    pub options: BTreeMap<String, String>,
    /// What reading from it costs.
    pub costs: Costs,
    /// Whether the costs were measured.
    pub measured: bool,
}

/// Where an object of a server is.
pub(crate) enum Address {
    Http { url: Url, bearer: Option<String> },
    Bucket { cloud: Cloud, name: String, settings: BucketSettings },
}

/// The storages that are known.
#[derive(Clone, Debug, Default)]
pub struct Stores {
    stores: Vec<Arc<Store>>,
    /// What was measured, also of storages that have no name, by [`Store::key`].
    measured: Arc<BTreeMap<String, Costs>>,
    compute: Arc<Compute>,
    blocks: Option<Arc<Blocks>>,
}

impl Stores {
    /// These and no others; everything else is read with costs taken for granted.
    pub fn new(stores: Vec<Store>) -> Stores {
        let stores = stores.into_iter().map(Arc::new).collect();
        Stores { stores, ..Stores::default() }
    }

    /// The same, with costs that were measured, by [`Store::key`].
    pub fn costing(self, measured: BTreeMap<String, Costs>) -> Stores {
        let stores = self.stores.iter().map(|store| match measured.get(&store.key()) {
            Some(costs) => Arc::new(Store::clone(store).costing(costs)),
            None => store.clone(),
        });
        Stores { stores: stores.collect(), measured: Arc::new(measured), ..self }
    }

    /// The same, read by a host that computes at these costs.
    pub fn computing(self, compute: Compute) -> Stores {
        Stores { compute: Arc::new(compute), ..self }
    }

    /// What computing costs on this host.
    pub fn compute(&self) -> &Compute {
        &self.compute
    }

    /// The same, with what servers send kept in blocks, and taken from there.
    pub fn cached(self, blocks: Option<Arc<Blocks>>) -> Stores {
        Stores { blocks, ..self }
    }

    /// The storage of an object and its URL or path: `NAME:path` of a named store, any URL below
    /// the root of one, or any other URL or path.
    pub fn locate(&self, object: &str) -> (Arc<Store>, String) {
        let named = object.split_once(':').and_then(|(name, path)| {
            let store =
                self.stores.iter().find(|store| !store.name.is_empty() && store.name == name)?;
            (!path.starts_with("//")).then(|| (store.clone(), store.url_of(path)))
        });
        if let Some(found) = named {
            return found;
        }
        let below = |store: &&Arc<Store>| object == store.root || is_below(object, &store.root);
        let known = self.stores.iter().filter(below).max_by_key(|store| store.root.len());
        let store = known.cloned().unwrap_or_else(|| Arc::new(self.unknown(object)));
        (store, object.to_string())
    }

    /// The key of an object, as [`Source::key`], and the costs of its storage, if that is a server.
    pub fn server_of(&self, object: &str) -> Option<(String, Costs)> {
        let (store, url) = self.locate(object);
        let is_file = url.split_once("://").is_none_or(|(scheme, _)| scheme == "file");
        (!is_file).then(|| (store.key_of(&url), store.costs.clone()))
    }

    /// The path of an object that is a file of this machine.
    pub fn file_of(&self, object: &str) -> Option<PathBuf> {
        path_of(&self.locate(object).1).ok().flatten()
    }

    /// Whether an object is called `NAME:path`, by a named store.
    pub fn is_named(&self, object: &str) -> bool {
        self.locate(object).1 != object
    }

    /// What events call an object: `NAME:path`, its absolute path, or its URL as users may see it.
    pub fn called(&self, object: &str) -> String {
        if self.is_named(object) {
            return object.to_string();
        }
        match path_of(object) {
            Ok(Some(path)) => std::path::absolute(&path).unwrap_or(path).display().to_string(),
            _ => crate::shown(object),
        }
    }

    /// Whether an object is on a server of this machine, which then shares its cores with us.
    pub fn is_served_here(&self, object: &str) -> bool {
        let (store, url) = self.locate(object);
        let url = match store.address(&url) {
            Ok(Address::Http { url, .. }) => Some(url),
            Ok(Address::Bucket { .. }) => store.server(),
            Err(_) => None,
        };
        url.as_ref().is_some_and(swathe_net::is_here)
    }

    /// Connections that are open to the storage of an object.
    pub fn connections(&self, object: &str) -> u32 {
        remote::connections(&self.locate(object).0.key())
    }

    /// The bearer token that the server of an object is sent.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] where its file cannot be read, the URL is none, or the token would
    /// go over http:// to another machine.
    pub fn bearer(&self, object: &str) -> Result<Option<String>, StoreError> {
        let (store, url) = self.locate(object);
        match store.address(&url)? {
            Address::Http { bearer, .. } => Ok(bearer),
            Address::Bucket { .. } => Ok(None),
        }
    }

    /// The URL by which the server of an object is asked for it, with plain HTTP; `None` of buckets,
    /// whose requests are signed.
    ///
    /// # Errors
    /// As [`Stores::bearer`].
    pub fn asked_by_http(&self, object: &str) -> Result<Option<String>, StoreError> {
        let (store, url) = self.locate(object);
        match store.address(&url)? {
            Address::Http { url, .. } => Ok(Some(url.into())),
            Address::Bucket { .. } => Ok(None),
        }
    }

    /// Open an object; see [`crate::open`].
    ///
    /// # Errors
    /// As [`crate::open`].
    pub fn open(&self, object: &str) -> Result<Arc<dyn Source>, StoreError> {
        let (store, url) = self.locate(object);
        let stall = store.stall();
        let is_named = url != object;
        let opened = store.open(&url, is_named.then_some(object), stall);
        let source =
            opened.map_err(|error| if is_named { error } else { no_store(error, object) })?;
        Ok(self.wrap(source, object, true))
    }

    /// An object of a server, taken to be at a version seen before: nothing is asked, and reading
    /// is [`StoreError::Changed`] if it is no longer true. `None` where reading could not tell, where
    /// hidden words of the URL may say which object is meant and who may read it, and for files.
    ///
    /// # Errors
    /// As [`crate::open`], but for what only the server knows.
    pub fn assume(
        &self,
        object: &str,
        version: Version,
    ) -> Result<Option<Arc<dyn Source>>, StoreError> {
        let (store, url) = self.locate(object);
        if path_of(&url)?.is_some() {
            return Ok(None);
        }
        let stall = store.stall();
        let named = (url != object).then_some(object);
        let assumed = Remote::assume(store, &url, named, stall, version)?;
        Ok(assumed.map(|remote| self.wrap(Arc::new(remote), object, false)))
    }

    /// `asked`: whether the server was just asked for the version.
    fn wrap(&self, source: Arc<dyn Source>, called: &str, asked: bool) -> Arc<dyn Source> {
        match &self.blocks {
            Some(blocks) if !source.is_local() && source.version().is_told_apart() => {
                let files = self.measured.get(FILES).cloned().unwrap_or_else(Costs::local);
                Arc::new(Cached::new(source, called, blocks.clone(), asked).on(files))
            }
            _ => source,
        }
    }

    /// The storage of an object that lies in none that is known: its server, or this machine.
    fn unknown(&self, object: &str) -> Store {
        let unnamed = |root: &str| Store::new(String::new(), root.to_string(), BTreeMap::new());
        let store = match object.split_once("://") {
            None | Some(("file", _)) => unnamed(FILES),
            Some((scheme, rest)) => {
                let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
                let host = authority.rsplit('@').next().unwrap_or_default();
                unnamed(&format!("{scheme}://{host}"))
            }
        };
        if self.measured.is_empty() {
            return store;
        }
        // Also what was measured of a part of it, when that had a name.
        let (whole, place) = (store.key(), store.at_server(object));
        let known = self
            .measured
            .iter()
            .filter(|(key, _)| **key == whole || is_below(key, &whole) && is_below(&place, key));
        match known.max_by_key(|(key, _)| key.len()) {
            Some((key, costs)) => {
                let root = format!("{}{}", store.root, &key[whole.len()..]);
                Store { root, ..store.costing(costs) }
            }
            None => store,
        }
    }
}

/// Of a file that is not there, and may be meant for an object of a store: that there is no such store.
fn no_store(error: StoreError, object: &str) -> StoreError {
    let is_name = |name: &str| {
        name.len() > 1 && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    match (error, object.split_once(':')) {
        (StoreError::NotFound { url, why }, Some((name, rest)))
            if why.is_empty() && is_name(name) && !rest.starts_with("//") =>
        {
            let why = format!("; nor is there a store '{name}', see: swathe store list");
            StoreError::NotFound { url, why }
        }
        (error, _) => error,
    }
}

/// Whether a URL is that of something below another.
fn is_below(url: &str, root: &str) -> bool {
    url.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'))
}

impl Store {
    /// One with costs taken for granted.
    pub fn new(name: String, root: String, options: BTreeMap<String, String>) -> Store {
        let is_local = root.starts_with("file://");
        let costs = if is_local { Costs::local() } else { Costs::remote() };
        Store { name, root, options, costs, measured: false }
    }

    /// The same, with costs that were measured.
    fn costing(self, costs: &Costs) -> Store {
        Store { costs: costs.clone(), measured: true, ..self }
    }

    /// What is measured of it is filed under this: its root, with the server if something else
    /// says which that is.
    pub fn key(&self) -> String {
        self.at_server(&self.root)
    }

    /// What is kept of an object of it is kept under this: its URL as users may see it, of a
    /// bucket with the server.
    pub(crate) fn key_of(&self, url: &str) -> String {
        match Cloud::of_url(url) {
            Some(_) => self.at_server(url),
            None => remote::shown(url),
        }
    }

    /// A URL with the server before the path, where something else says which that is:
    /// `s3://127.0.0.1:9000/bucket/a.fits`. No bucket has a colon in its name.
    fn at_server(&self, url: &str) -> String {
        let (Some(server), Some((scheme, rest))) = (self.server(), url.split_once("://")) else {
            return url.to_string();
        };
        let host = server.host_str().unwrap_or_default();
        let port = server.port_or_known_default().unwrap_or_default();
        let folder = server.path().trim_end_matches('/');
        // The server of a door is not that of the URL.
        let path = match Cloud::of(scheme) {
            Some(_) => format!("/{rest}"),
            None => rest.find('/').map_or_else(String::new, |at| rest[at..].to_string()),
        };
        format!("{scheme}://{host}:{port}{folder}{path}")
    }

    /// `named`: `NAME:path`, if it was asked for so.
    pub(crate) fn open(
        self: Arc<Store>,
        url: &str,
        named: Option<&str>,
        stall: Stall,
    ) -> Result<Arc<dyn Source>, StoreError> {
        if let Some(place) = self.place(url, named)? {
            return Ok(Arc::new(Local::open(&place, self.costs.clone())?));
        }
        Ok(Arc::new(Remote::open(self, url, named, stall)?))
    }

    /// Where a file is; `None` for the object of a server. By the name of the store it is meant to
    /// lie below its root, or where the store lets its links lead.
    pub(crate) fn place(
        &self,
        url: &str,
        named: Option<&str>,
    ) -> Result<Option<Place>, StoreError> {
        let confined = named.and_then(|named| named.split_once(':'));
        match (confined, self.root.strip_prefix("file://")) {
            (Some((name, path)), Some(folder)) => {
                Place::in_store(name, folder, self.other_roots(), path).map(Some)
            }
            _ => path_of(url)?.map(Place::free).transpose(),
        }
    }

    /// Folders besides the root that links may lead to: the option `roots`.
    fn other_roots(&self) -> Vec<PathBuf> {
        let roots = self.options.get("roots").map_or("", String::as_str);
        roots.split(':').filter(|root| !root.is_empty()).map(PathBuf::from).collect()
    }

    /// The URL or file path of the object at `path` in this store.
    fn url_of(&self, path: &str) -> String {
        let path = path.trim_start_matches('/');
        // Names of files and keys are taken as they are.
        if let Some(folder) = self.root.strip_prefix("file://") {
            return format!("{folder}/{path}");
        }
        if Cloud::of_url(&self.root).is_some() {
            return format!("{}/{path}", self.root);
        }
        format!("{}/{}", self.root, remote::percent_encode(path, b"-._~/+=,:@"))
    }

    /// Where an object of a server is.
    pub(crate) fn address(&self, url: &str) -> Result<Address, StoreError> {
        let unsupported = |why: String| StoreError::Unsupported { url: remote::shown(url), why };
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let option = |name: &str| self.options.get(name).cloned();
        if let Some(cloud) = Cloud::of(scheme) {
            let (name, settings) = (rest.to_string(), self.bucket_settings());
            return Ok(Address::Bucket { cloud, name, settings });
        }
        let plain = match scheme {
            "http" | "https" | "dav" | "davs" => by_http(url),
            scheme if DOORED.contains(&scheme) => self.behind_door(rest),
            _ => {
                return Err(unsupported(format!(
                    "cannot read {scheme}:// URLs; known are file, http, https, s3, gs, az, root, \
                     dav and davs"
                )));
            }
        };
        let mut url =
            Url::parse(&plain).map_err(|error| unsupported(format!("no URL: {error}")))?;
        url.set_fragment(None);
        // Never to a server that is neither a store nor one that expects tokens.
        let expects = scheme != "http" && scheme != "https";
        let sends = (expects || self.options.contains_key("token_file")) && !self.is_anonymous();
        let bearer = if sends { bearer(option("token_file")).map_err(unsupported)? } else { None };
        if bearer.is_some() {
            let what = if DOORED.contains(&scheme) { "door" } else { "URL" };
            swathe_net::check_private(&url, what).map_err(unsupported)?;
        }
        Ok(Address::Http { url, bearer })
    }

    /// The URL behind the HTTP door of an XRootD server: the option `door`, else TLS on its own
    /// port, where XRootD serves both.
    fn behind_door(&self, rest: &str) -> String {
        let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
        let path = path.trim_start_matches('/');
        match self.door() {
            Some(door) => format!("{}/{path}", door.trim_end_matches('/')),
            None if server.contains(':') => format!("https://{server}/{path}"),
            None => format!("https://{server}:1094/{path}"),
        }
    }

    fn door(&self) -> Option<String> {
        self.options.get("door").map(|door| by_http(door))
    }

    /// Whether its objects are those of an XRootD server.
    pub(crate) fn is_doored(&self) -> bool {
        self.root.split_once("://").is_some_and(|(scheme, _)| DOORED.contains(&scheme))
    }

    /// The server of its objects, where options or the environment set it and not their URLs.
    fn server(&self) -> Option<Url> {
        let (scheme, _) = self.root.split_once("://")?;
        let server = match Cloud::of(scheme) {
            Some(cloud) => cloud.server(&self.bucket_settings()),
            None if DOORED.contains(&scheme) => self.door(),
            None => None,
        };
        Url::parse(&server?).ok()
    }

    fn bucket_settings(&self) -> BucketSettings {
        let option = |name: &str| self.options.get(name).cloned();
        BucketSettings {
            endpoint: option("endpoint"),
            region: option("region"),
            profile: option("profile"),
            account: option("account"),
            anonymous: self.is_anonymous(),
        }
    }

    /// Whether it is to be read without credentials.
    fn is_anonymous(&self) -> bool {
        self.options.get("anonymous").is_some_and(|value| value == "true")
    }

    /// How long the server may send nothing.
    pub(crate) fn stall(&self) -> Stall {
        if !self.measured {
            return STALL;
        }
        let (least, most) = STALL_BOUNDS_S;
        let expected = self.costs.request.seconds(1e6);
        let first = (STALL_REQUESTS * expected).clamp(least, most);
        Stall { first: Duration::from_secs_f64(first), most: Duration::from_secs_f64(most) }
    }
}

/// A URL of WebDAV as one of HTTP, and any other as it is.
fn by_http(url: &str) -> String {
    match url.split_once("://") {
        Some(("dav", rest)) => format!("http://{rest}"),
        Some(("davs", rest)) => format!("https://{rest}"),
        _ => url.to_string(),
    }
}

/// Whether an object of a server without buckets may be written to: the URL says WebDAV, or
/// XRootD. Of HTTP alone it is not known what a PUT does.
pub(crate) fn is_writable(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    matches!(scheme, "dav" | "davs") || DOORED.contains(&scheme)
}

/// The path of a file, given as such or as a URL; `None` for the object of a server.
pub(crate) fn path_of(url: &str) -> Result<Option<PathBuf>, StoreError> {
    match url.split_once("://") {
        None => Ok(Some(PathBuf::from(url))),
        Some(("file", path)) => file_path(url, path).map(Some),
        Some(_) => Ok(None),
    }
}

/// The path of a `file://` URL (RFC 8089): no host or `localhost`, percent-encoding undone.
fn file_path(url: &str, rest: &str) -> Result<PathBuf, StoreError> {
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return Err(StoreError::Unsupported {
            url: url.to_string(),
            why: "a file URL holds an absolute path and no host: file:///data/image.fits".into(),
        });
    }
    use std::os::unix::ffi::OsStringExt;
    Ok(std::ffi::OsString::from_vec(remote::percent_decode(path)).into())
}
