//! Copies that servers make, compared with their source before they are accepted.
//!
//! What a server says of its copy is not believed. Size, and checksums if both ends have one of the
//! same kind, must be equal; without these, source and copy are read and compared. That moves as many
//! bytes to us as a copy through us does with its check, but none from us. What differs, and what a
//! server cannot or does not copy, passes through us, and the reason is reported.

use crate::object_writer::{PART_BYTES, VerifiedObject, parts};
use std::sync::Arc;
use swathe_store_api::{
    CopyRefusal, CopySource, Failure, ObjectName, Source, Store, StoreError, Stores,
    compare_checksums,
};

/// Requests to each end while it is read.
const STREAMS: u32 = 2;

/// An object, the name of its copy, and whether an object of this name may be replaced.
#[derive(Clone, Copy)]
pub(crate) struct CopyNames<'a> {
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    pub(crate) replaces: bool,
}

/// Why servers made no copy.
pub(crate) enum ServerFailure {
    /// One end is of this machine.
    NoServers,
    /// They cannot, or their copy is another: the reason.
    Unable(String),
    /// There can be no copy.
    Failed(Failure),
}

impl From<CopyRefusal> for ServerFailure {
    fn from(refusal: CopyRefusal) -> ServerFailure {
        match refusal {
            CopyRefusal::Unable(why) => ServerFailure::Unable(why),
            CopyRefusal::Failed(error) => ServerFailure::Failed(error.into()),
        }
    }
}

impl From<StoreError> for ServerFailure {
    fn from(error: StoreError) -> ServerFailure {
        ServerFailure::Failed(error.into())
    }
}

/// Let servers copy an object that is open at the version to copy. `progress` is told the bytes that
/// are copied, and returns whether to go on.
pub(crate) fn copy_by_servers(
    stores: &Stores,
    names: CopyNames<'_>,
    source: &dyn Source,
    progress: &(dyn Fn(u64) -> bool + Sync),
) -> Result<VerifiedObject, ServerFailure> {
    let (from_store, from_url) = stores.locate(names.from);
    let (to_store, to_url) = stores.locate(names.to);
    if from_store.is_local() || to_store.is_local() {
        return Err(ServerFailure::NoServers);
    }
    let order = CopySource {
        store: &*from_store,
        object: object_name(names.from, &from_url),
        version: source.version(),
        replaces: names.replaces,
        progress,
    };
    let copy = to_store.copy_from(object_name(names.to, &to_url), &order)?;
    let read_back = compare(source, &*open_copy(&*to_store, copy.url())?, progress)?;
    let version = stores.open(names.from)?.version().clone();
    if version != *source.version() {
        let (url, version) = (source.url().to_string(), source.version().to_string());
        return Err(StoreError::Changed { url, version }.into());
    }
    let is_sure = copy.finish().map_err(ServerFailure::Failed)?;
    let copy = stores.open(names.to)?;
    let read_back = if is_sure { read_back } else { compare(source, &*copy, progress)? };
    let version = copy.version().clone();
    if version.size != source.len() {
        // Another writer has replaced it, or its server loses what it has.
        let (expected, found) = (format!("{} bytes", source.len()), version.size.to_string());
        let url = copy.url().to_string();
        return Err(StoreError::Differs { url, expected, found }.into());
    }
    Ok(VerifiedObject { version, read_back, notes: copy.take_notes() })
}

fn object_name<'a>(object: &'a str, url: &'a str) -> ObjectName<'a> {
    ObjectName { url, qualified_name: (url != object).then_some(object) }
}

fn open_copy(store: &dyn Store, url: &str) -> Result<Arc<dyn Source>, ServerFailure> {
    let copy = store.open(ObjectName { url, qualified_name: None });
    copy.map_err(|error| CopyRefusal::from(error).into())
}

/// Check that a copy has the bytes of its source; whether both were read for it.
fn compare(
    source: &dyn Source,
    copy: &dyn Source,
    progress: &(dyn Fn(u64) -> bool + Sync),
) -> Result<bool, ServerFailure> {
    let (size, found) = (source.len(), copy.len());
    if found != size {
        let why = format!("the servers said they copied {size} bytes, and the copy has {found}");
        return Err(ServerFailure::Unable(why));
    }
    let checksums = source.checksums().map_err(CopyRefusal::from)?;
    if !checksums.is_empty() {
        let others = copy.checksums().map_err(CopyRefusal::from)?;
        match compare_checksums(&checksums, &others) {
            Some(true) => return Ok(false),
            Some(false) => return Err(other_bytes()),
            None => {}
        }
    }
    let parts = parts(size, PART_BYTES);
    let others = copy.fetch(parts.clone(), STREAMS);
    for (part, other) in source.fetch(parts, STREAMS).zip(others) {
        if part? != other.map_err(CopyRefusal::from)? {
            return Err(other_bytes());
        }
        if !progress(size) {
            let url = source.url().to_string();
            return Err(StoreError::Interrupted { url }.into());
        }
    }
    Ok(true)
}

fn other_bytes() -> ServerFailure {
    ServerFailure::Unable("the copy of the servers has other bytes".into())
}
