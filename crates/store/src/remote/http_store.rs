//! HTTP(S) and WebDAV servers, and XRootD's behind their HTTP doors, as stores.

use super::endpoint::HttpEndpoint;
use super::http_listing::HttpFolders;
use super::limiter;
use super::multiplexed_read::restrict;
use super::remote_object::RemoteObject;
use super::request_target::{NewTarget, RequestTarget};
use super::server_key::with_server;
use super::stall_timeout::StallLimits;
use super::webdav;
use super::webdav_copy::{CopyOrigin, HiddenName, WebdavCopy};
use super::webdav_put::WebdavPut;
use super::webdav_room::WebdavRoom;
use crate::bearer::bearer;
use crate::folder_walk::FolderWalk;
use crate::redact;
use reqwest::Url;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use swathe_net::{check_private, is_here};
use swathe_plan::Connections;
use swathe_store_api::{
    CopyRefusal, CopySource, ListOptions, Listing, ObjectName, Room, ServerCopy, Sink, Source,
    Space, Store, StoreError, StoreSettings, Version, cannot_remove, cannot_write, own_part_name,
};

/// Schemes of XRootD's own protocol: its HTTP door may be elsewhere.
const DOOR_SCHEMES: [&str; 4] = ["root", "roots", "xroot", "xroots"];

/// What is not encoded in paths and names.
const PATH_BYTES: &[u8] = b"-._~/+=,:@";
const NAME_BYTES: &[u8] = b"-._~+=,:@";

/// A folder of a server.
#[derive(Clone, Debug)]
pub(crate) struct HttpStore {
    settings: Arc<StoreSettings>,
    stall: StallLimits,
}

impl HttpStore {
    /// The schemes of such stores.
    pub(crate) const SCHEMES: [&str; 8] =
        ["http", "https", "dav", "davs", "root", "roots", "xroot", "xroots"];

    pub(crate) fn no_such_scheme(url: &str) -> StoreError {
        let scheme = url.split_once("://").unwrap_or_default().0;
        let why = format!(
            "cannot read {scheme}:// URLs; known are file, http, https, s3, gs, az, root, dav and \
             davs"
        );
        StoreError::Unsupported { url: redact::redact_url(url), why }
    }

    pub(crate) fn new(settings: StoreSettings, stall: StallLimits) -> HttpStore {
        HttpStore { settings: Arc::new(restrict(settings)), stall }
    }

    /// The URL to request an object, and the token to send.
    fn address(&self, url: &str) -> Result<(Url, Option<String>), StoreError> {
        let unsupported_error =
            |why: String| StoreError::Unsupported { url: redact::redact_url(url), why };
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let plain = match scheme {
            "http" | "https" | "dav" | "davs" => by_http(url),
            scheme if DOOR_SCHEMES.contains(&scheme) => self.behind_door(rest),
            _ => return Err(HttpStore::no_such_scheme(url)),
        };
        let mut url =
            Url::parse(&plain).map_err(|error| unsupported_error(format!("no URL: {error}")))?;
        url.set_fragment(None);
        // Never to a server that is neither a store nor one that expects tokens.
        let expects = scheme != "http" && scheme != "https";
        let sends = (expects || self.settings.options.contains_key("token_file"))
            && !self.settings.is_anonymous();
        let token_file = self.settings.option("token_file");
        let bearer = if sends { bearer(token_file).map_err(unsupported_error)? } else { None };
        if bearer.is_some() {
            let what = if DOOR_SCHEMES.contains(&scheme) { "door" } else { "URL" };
            check_private(&url, what).map_err(unsupported_error)?;
        }
        Ok((url, bearer))
    }

    /// The URL of the HTTP door of an XRootD server: the option `door`, else TLS on its own
    /// port, as XRootD serves both.
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
        self.settings.options.get("door").map(|door| by_http(door))
    }

    /// Whether its objects are those of an XRootD server.
    fn is_doored(&self) -> bool {
        DOOR_SCHEMES.contains(&self.settings.scheme())
    }

    fn target(&self, object: ObjectName<'_>) -> Result<RequestTarget, StoreError> {
        let (url, bearer) = self.address(object.url)?;
        let visible_url = redact::redact_url(url.as_str());
        let (endpoint, secrets) = HttpEndpoint::new(url.clone(), bearer);
        let target = RequestTarget::new(NewTarget {
            settings: self.settings.clone(),
            store_key: self.key(),
            key: self.object_key(&visible_url),
            url: visible_url,
            qualified_name: object.qualified_name,
            endpoint: Box::new(endpoint),
            secrets,
            is_dav: self.is_webdav(),
            is_xrootd: self.is_doored(),
            stall: self.stall,
        });
        target.check_uncut(&url, target.is_xrootd)?;
        Ok(target)
    }
}

impl Store for HttpStore {
    fn settings(&self) -> &StoreSettings {
        &self.settings
    }

    fn measured_key(&self, url: &str) -> String {
        let door = self.door().filter(|_| self.is_doored());
        let door = door.and_then(|door| Url::parse(&door).ok());
        let (Some(door), Some((scheme, rest))) = (door, url.split_once("://")) else {
            return url.to_string();
        };
        // The server of a door is not that of the URL.
        let path = rest.find('/').map_or("", |at| &rest[at..]);
        with_server(scheme, &door, path)
    }

    fn object_key(&self, url: &str) -> String {
        redact::redact_url(url)
    }

    fn url_of(&self, path: &str) -> String {
        let path = path.trim_start_matches('/');
        format!("{}/{}", self.settings.root, redact::percent_encode(path, PATH_BYTES))
    }

    fn display_url(&self, url: &str) -> String {
        redact::redact_url(url)
    }

    fn is_webdav(&self) -> bool {
        matches!(self.settings.scheme(), "dav" | "davs") || self.is_doored()
    }

    /// HTTP alone does not say what a PUT does.
    fn is_writable(&self) -> bool {
        self.is_webdav()
    }

    fn is_served_here(&self, url: &str) -> bool {
        self.address(url).is_ok_and(|(url, _)| is_here(&url))
    }

    fn is_unreachable(&self) -> bool {
        limiter::of(&self.key()).is_unreachable.load(Ordering::Relaxed)
    }

    fn is_proving(&self) -> bool {
        limiter::of(&self.key()).is_proving()
    }

    fn connections(&self) -> Connections {
        limiter::of(&self.key()).connections()
    }

    fn http_url(&self, url: &str) -> Result<Option<String>, StoreError> {
        self.address(url).map(|(url, _)| Some(url.into()))
    }

    fn bearer(&self, url: &str) -> Result<Option<String>, StoreError> {
        self.address(url).map(|(_, bearer)| bearer)
    }

    fn open(&self, object: ObjectName<'_>) -> Result<Arc<dyn Source>, StoreError> {
        Ok(Arc::new(RemoteObject::open(self.target(object)?)?))
    }

    fn open_for(
        &self,
        object: ObjectName<'_>,
        first_bytes: u64,
    ) -> Result<Arc<dyn Source>, StoreError> {
        let mut target = self.target(object)?;
        target.first_bytes = first_bytes;
        Ok(Arc::new(RemoteObject::open(target)?))
    }

    fn assume(
        &self,
        object: ObjectName<'_>,
        version: Version,
    ) -> Result<Option<Arc<dyn Source>>, StoreError> {
        let result = RemoteObject::assume(self.target(object)?, version);
        Ok(result.map(|remote| Arc::new(remote) as Arc<dyn Source>))
    }

    fn assume_size(
        &self,
        object: ObjectName<'_>,
        size: u64,
    ) -> Result<Option<Arc<dyn Source>>, StoreError> {
        let result = RemoteObject::assume_size(self.target(object)?, size);
        Ok(result.map(|remote| Arc::new(remote) as Arc<dyn Source>))
    }

    fn assume_with_proof(
        &self,
        object: ObjectName<'_>,
        version: Version,
    ) -> Result<Option<Arc<dyn Source>>, StoreError> {
        if !self.is_proving() {
            return Ok(None);
        }
        let result = RemoteObject::assume_with_proof(self.target(object)?, version);
        Ok(result.map(|remote| Arc::new(remote) as Arc<dyn Source>))
    }

    fn list(
        &self,
        object: ObjectName<'_>,
        options: ListOptions,
    ) -> Result<Box<dyn Listing>, StoreError> {
        // That the URL cannot be asked is an error now.
        self.address(object.url)?;
        let below = object.url.strip_prefix(&self.settings.root).unwrap_or_default();
        let start =
            match object.qualified_name.and_then(|qualified_name| qualified_name.split_once(':')) {
                Some((_, path)) => path.to_string(),
                None => String::from_utf8_lossy(&redact::percent_decode(below)).into_owned(),
            };
        let (store, is_named) = (self.clone(), object.qualified_name.is_some());
        let target = move |folder: &str| {
            let qualified_name = is_named.then(|| format!("{}:{folder}", store.settings.name));
            let url = store.url_of(folder);
            let url = format!("{}/", url.trim_end_matches('/'));
            store.target(ObjectName { url: &url, qualified_name: qualified_name.as_deref() })
        };
        let folders = HttpFolders::new(target, self.is_webdav(), self.is_doored());
        Ok(Box::new(FolderWalk::new(folders, &start, options)))
    }

    /// A folder that is not there yet is made with its first object: the folders above it say what
    /// room it has.
    fn space(&self, folder: ObjectName<'_>) -> Result<Option<Space>, StoreError> {
        if !self.is_webdav() {
            return Ok(None);
        }
        let mut space = webdav::space(self.target(folder)?)?;
        let mut url = folder.url.trim_end_matches('/');
        while space.is_none()
            && !webdav::has_folder(self.target(ObjectName { url, qualified_name: None })?)?
            && let Some((above, _)) = url.rsplit_once('/')
            && !above.ends_with('/')
        {
            url = above;
            let above = format!("{above}/");
            let above = ObjectName { url: &above, qualified_name: None };
            space = webdav::space(self.target(above)?)?;
        }
        Ok(space)
    }

    fn has_folder(&self, folder: ObjectName<'_>) -> Result<bool, StoreError> {
        if !self.is_webdav() {
            return Ok(true);
        }
        webdav::has_folder(self.target(folder)?)
    }

    fn create(
        &self,
        object: ObjectName<'_>,
        size: u64,
        in_parts: bool,
    ) -> Result<Box<dyn Sink>, StoreError> {
        if !self.is_writable() {
            self.address(object.url)?;
            return Err(cannot_write(&redact::redact_url(object.url)));
        }
        Ok(Box::new(WebdavPut::create(self.target(object)?, size, in_parts, None)?))
    }

    fn reserve(&self, object: ObjectName<'_>, bytes: u64) -> Result<Box<dyn Room>, StoreError> {
        if !self.is_writable() {
            self.address(object.url)?;
            return Err(cannot_write(&redact::redact_url(object.url)));
        }
        let store = self.clone();
        let target_of = Box::new(move |object: ObjectName<'_>| store.target(object));
        Ok(Box::new(WebdavRoom::create(self.target(object)?, bytes, target_of)?))
    }

    fn copy_from(
        &self,
        object: ObjectName<'_>,
        source: &CopySource<'_>,
    ) -> Result<Box<dyn ServerCopy>, CopyRefusal> {
        if !self.is_writable() {
            let error = cannot_write(&redact::redact_url(object.url));
            return Err(CopyRefusal::Failed(error));
        }
        let origin = CopyOrigin::of(source)?;
        let target = self.target(object)?;
        let url = hidden_url(object.url, rand::random());
        let (part_url, _) = self.address(&url)?;
        let hidden = HiddenName { url, part_url };
        Ok(Box::new(WebdavCopy::make(target, hidden, &origin, source)?))
    }

    fn remove(&self, object: ObjectName<'_>) -> Result<(), StoreError> {
        if !self.is_writable() {
            self.address(object.url)?;
            return Err(cannot_remove(&redact::redact_url(object.url)));
        }
        webdav::remove(self.target(object)?)
    }
}

/// The URL of a hidden name of an object, as its store has it; `mark` is a random number.
fn hidden_url(url: &str, mark: u32) -> String {
    let (path, query) = url.split_at(url.find('?').unwrap_or(url.len()));
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let name = String::from_utf8_lossy(&redact::percent_decode(name)).into_owned();
    let name = redact::percent_encode(&own_part_name(&name, mark), NAME_BYTES);
    format!("{folder}/{name}{query}")
}

/// A URL of WebDAV as one of HTTP, and any other as it is.
fn by_http(url: &str) -> String {
    match url.split_once("://") {
        Some(("dav", rest)) => format!("http://{rest}"),
        Some(("davs", rest)) => format!("https://{rest}"),
        _ => url.to_string(),
    }
}
