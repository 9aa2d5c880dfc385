//! Buckets as stores.

use super::condition::Condition;
use super::copy::{BucketOrder, check_reader, copy};
use super::list::BucketListing;
use super::upload::Upload;
use super::{Bucket, BucketObject, Cloud, Settings};
use crate::redact;
use crate::remote::limiter;
use crate::remote::multiplexed_read::restrict;
use crate::remote::remote_object::RemoteObject;
use crate::remote::request_target::{NewTarget, RequestTarget};
use crate::remote::server_key::with_server;
use crate::remote::stall_timeout::StallLimits;
use object_store::ObjectStoreExt;
use object_store::path::Path as Key;
use reqwest::Url;
use std::sync::Arc;
use swathe_net::{is_here, net};
use swathe_plan::Connections;
use swathe_store_api::{
    CopyRefusal, CopySource, ListOptions, Listing, ObjectName, ServerCopy, Sink, Source, Store,
    StoreError, StoreSettings, Version,
};

/// A bucket, or what has one prefix in it.
#[derive(Debug)]
pub(crate) struct BucketStore {
    settings: Arc<StoreSettings>,
    cloud: Cloud,
    stall: StallLimits,
}

impl BucketStore {
    pub(crate) fn new(settings: StoreSettings, cloud: Cloud, stall: StallLimits) -> BucketStore {
        BucketStore { settings: Arc::new(restrict(settings)), cloud, stall }
    }

    fn bucket_settings(&self) -> Settings {
        let option = |name: &str| self.settings.option(name);
        Settings {
            endpoint: option("endpoint"),
            region: option("region"),
            profile: option("profile"),
            account: option("account"),
            anonymous: self.settings.is_anonymous(),
        }
    }

    /// The server of its objects, if options or the environment set it: their URLs do not.
    fn server(&self) -> Option<Url> {
        Url::parse(&self.cloud.server(&self.bucket_settings())?).ok()
    }

    /// The bucket and the key of a URL, to list or to write.
    fn bucket(&self, url: &str) -> Result<(Bucket, Key), StoreError> {
        let bucket = Bucket::new(self.cloud, name_in(url), &self.bucket_settings());
        bucket.map_err(|why| StoreError::Unsupported { url: url.to_string(), why })
    }

    fn target(&self, object: ObjectName<'_>) -> Result<RequestTarget, StoreError> {
        let url = object.url.to_string();
        let result = BucketObject::new(self.cloud, name_in(&url), &self.bucket_settings());
        let unsupported_error =
            |why| StoreError::Unsupported { url: redact::redact_url(&url), why };
        let endpoint = result.map_err(unsupported_error)?;
        Ok(RequestTarget::new(NewTarget {
            settings: self.settings.clone(),
            store_key: self.key(),
            key: self.object_key(&url),
            url,
            qualified_name: object.qualified_name,
            secrets: endpoint.secrets.clone(),
            endpoint: Box::new(endpoint),
            is_dav: false,
            is_xrootd: false,
            stall: self.stall,
        }))
    }
}

impl Store for BucketStore {
    fn settings(&self) -> &StoreSettings {
        &self.settings
    }

    fn measured_key(&self, url: &str) -> String {
        match (self.server(), url.split_once("://")) {
            (Some(server), Some((scheme, name))) => {
                with_server(scheme, &server, &format!("/{name}"))
            }
            _ => url.to_string(),
        }
    }

    fn object_key(&self, url: &str) -> String {
        self.measured_key(url)
    }

    /// Keys are taken as they are.
    fn url_of(&self, path: &str) -> String {
        format!("{}/{}", self.settings.root, path.trim_start_matches('/'))
    }

    fn display_url(&self, url: &str) -> String {
        url.to_string()
    }

    fn is_bucket(&self) -> bool {
        true
    }

    fn takes_any_size(&self) -> bool {
        true
    }

    fn is_writable(&self) -> bool {
        true
    }

    fn is_served_here(&self, _url: &str) -> bool {
        self.server().is_some_and(|server| is_here(&server))
    }

    fn connections(&self) -> Connections {
        limiter::of(&self.key()).connections()
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

    fn list(
        &self,
        object: ObjectName<'_>,
        options: ListOptions,
    ) -> Result<Box<dyn Listing>, StoreError> {
        let is_folder = object.url.ends_with('/');
        let url = object.url.trim_end_matches('/').to_string();
        let (bucket, prefix) = self.bucket(&url)?;
        // The scheme is followed by the bucket, and then the prefix of the store.
        let root = self.settings.root.splitn(4, '/').nth(3).unwrap_or_default();
        Ok(Box::new(BucketListing::new(bucket, url, root, prefix, is_folder, options)))
    }

    fn create(
        &self,
        object: ObjectName<'_>,
        _size: u64,
        in_parts: bool,
    ) -> Result<Box<dyn Sink>, StoreError> {
        let (bucket, key) = self.bucket(object.url)?;
        Ok(Box::new(Upload::create(bucket, key, object.url.to_string(), in_parts)?))
    }

    fn copy_from(
        &self,
        object: ObjectName<'_>,
        source: &CopySource<'_>,
    ) -> Result<Box<dyn ServerCopy>, CopyRefusal> {
        check_reader(&self.settings, source.store.settings())?;
        let split = |name| self.cloud.split(name).map_err(CopyRefusal::Unable);
        let (from_name, from_key) = split(name_in(source.object.url))?;
        let (bucket, key) = self.bucket(object.url)?;
        let order = BucketOrder {
            cloud: self.cloud,
            settings: self.bucket_settings(),
            bucket,
            bucket_name: split(name_in(object.url))?.0,
            key,
            target: self.target(object)?,
            url: object.url,
            from_name,
            from_key,
            source,
        };
        copy(order).map_err(|failure| {
            match failure.is_taken && !source.replaces && self.open(object).is_ok() {
                true => CopyRefusal::Failed(StoreError::Exists { url: object.url.to_string() }),
                false => failure.refusal,
            }
        })
    }

    /// What is removed is what was seen just before, if the server can tell.
    fn remove(&self, object: ObjectName<'_>) -> Result<(), StoreError> {
        let url = object.url;
        let (bucket, key) = self.bucket(url)?;
        let net = net().map_err(|why| StoreError::Network { url: url.to_string(), why })?;
        let metadata = net.runtime.block_on(bucket.objects.head(&key));
        let metadata = match metadata.map_err(|error| bucket.error(url, error)) {
            Ok(metadata) => Some(metadata),
            Err(error @ StoreError::NotFound { .. }) => return Err(error),
            // Who may remove objects may perhaps not look at them.
            Err(_) => None,
        };
        let condition = metadata
            .as_ref()
            .and_then(|metadata| Condition::same(self.cloud, &bucket.objects, metadata));
        let delete = bucket.objects.delete(&key);
        let result = match &condition {
            Some(condition) => net.runtime.block_on(condition.during(delete)),
            None => net.runtime.block_on(delete),
        };
        let Some(condition) = condition.filter(|_| result.is_err()) else {
            return result.map_err(|error| bucket.error(url, error));
        };
        let is_gone = || {
            let look = net.runtime.block_on(bucket.objects.head(&key));
            matches!(look, Err(object_store::Error::NotFound { .. }))
        };
        if condition.is_repeated() && is_gone() {
            // The answer to an earlier request was lost.
            return Ok(());
        }
        match condition.is_refused() {
            true => Err(StoreError::Changed {
                url: url.to_string(),
                version: metadata.and_then(|metadata| metadata.e_tag).unwrap_or_default(),
            }),
            false => result.map_err(|error| bucket.error(url, error)),
        }
    }
}

/// "bucket/key" of a URL.
fn name_in(url: &str) -> &str {
    url.split_once("://").map_or("", |(_, name)| name)
}
