//! Copies that servers make, compared with their source before they are accepted.
//!
//! What a server says of its copy is not believed. Size, and checksums if both ends have one of the
//! same kind, must be equal; without these, source and copy are read and compared. That moves as many
//! bytes to us as a copy through us does with its check, but none from us. What differs, and what a
//! server cannot or does not copy, passes through us, and the reason is reported.

use crate::object_writer::{PART_BYTES, VerifiedObject, parts};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;
use swathe_store_api::{
    Checksum, CopyRefusal, CopySource, Failure, Interrupt, ObjectName, Retry, ServerCopy, Source,
    Store, StoreError, Stores, Version, compare_checksums,
};
use swathe_trace::Scope;

/// Requests to each end while it is read.
const STREAMS: u32 = 2;
/// How often to look whether to go on.
const STEP: Duration = Duration::from_millis(200);

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

/// Why a copy is not accepted.
enum Rejection {
    /// This version of it is proved to have other bytes.
    Other { version: Version, why: String },
    /// Nothing is proved.
    Unproved(ServerFailure),
}

impl From<ServerFailure> for Rejection {
    fn from(failure: ServerFailure) -> Rejection {
        Rejection::Unproved(failure)
    }
}

impl From<CopyRefusal> for Rejection {
    fn from(refusal: CopyRefusal) -> Rejection {
        Rejection::Unproved(refusal.into())
    }
}

impl From<StoreError> for Rejection {
    fn from(error: StoreError) -> Rejection {
        Rejection::Unproved(error.into())
    }
}

impl From<Rejection> for ServerFailure {
    fn from(rejection: Rejection) -> ServerFailure {
        match rejection {
            Rejection::Other { why, .. } => ServerFailure::Unable(why),
            Rejection::Unproved(failure) => failure,
        }
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
    let (checked_version, read_back) =
        match check(stores, names.from, &*copy, &*to_store, &order, source) {
            Ok(result) => result,
            Err(rejection) => return Err(reject(stores, names, &*copy, source, rejection)),
        };
    let has_name = copy.has_name();
    let is_sure = copy.finish().map_err(ServerFailure::Failed)?;
    let copy = stores.open(names.to)?;
    let read_back = if is_sure { read_back } else { compare(source, &*copy, true, progress)? };
    let version = copy.version().clone();
    if version.size != source.len() || has_name && version != checked_version {
        // Another writer has replaced it, or its server loses what it has.
        let (expected, found) = (checked_version.to_string(), version.to_string());
        let url = copy.url().to_string();
        return Err(StoreError::Differs { url, expected, found }.into());
    }
    Ok(VerifiedObject { version, read_back, notes: copy.take_notes() })
}

/// Have a server copy an object that is open to a name of its own, which is free, and compare the
/// copy. `names`: of the object and of its copy.
///
/// # Errors
/// As [`Store::copy_from`].
pub fn copy_within_server(
    stores: &Stores,
    names: [&str; 2],
    source: &dyn Source,
    progress: &(dyn Fn(u64) -> bool + Sync),
) -> Result<VerifiedObject, CopyRefusal> {
    let [from, to] = names;
    let result = copy_by_servers(stores, CopyNames { from, to, replaces: true }, source, progress);
    result.map_err(|failure| match failure {
        ServerFailure::NoServers => CopyRefusal::Unable("a folder of this machine".into()),
        ServerFailure::Unable(why) => CopyRefusal::Unable(why),
        ServerFailure::Failed(failure) => CopyRefusal::Failed(failure.error),
    })
}

fn object_name<'a>(object: &'a str, url: &'a str) -> ObjectName<'a> {
    ObjectName { url, qualified_name: (url != object).then_some(object) }
}

fn open_copy(store: &dyn Store, url: &str) -> Result<Arc<dyn Source>, ServerFailure> {
    let copy = store.open(ObjectName { url, qualified_name: None });
    copy.map_err(|error| CopyRefusal::from(error).into())
}

/// Compare a copy with its source, and see that this is still what it was; the version of the copy,
/// and whether both were read.
fn check(
    stores: &Stores,
    from: &str,
    copy: &dyn ServerCopy,
    store: &dyn Store,
    order: &CopySource<'_>,
    source: &dyn Source,
) -> Result<(Version, bool), Rejection> {
    let object = open_copy(store, copy.url())?;
    let read_back = compare(source, &*object, copy.has_checksums(), order.progress)?;
    let now = stores.open(from)?.version().clone();
    if now != *source.version() {
        let (url, version) = (source.url().to_string(), source.version().to_string());
        return Err(StoreError::Changed { url, version }.into());
    }
    Ok((object.version().clone(), read_back))
}

/// Why a copy is not accepted, with what becomes of one that has its name already: it is removed only
/// if it is proved to be another than its source, and to be there still. It may be the source itself
/// under another name, or of another writer by now.
fn reject(
    stores: &Stores,
    names: CopyNames<'_>,
    copy: &dyn ServerCopy,
    source: &dyn Source,
    rejection: Rejection,
) -> ServerFailure {
    if !copy.has_name() {
        return rejection.into();
    }
    let version = |name| stores.open(name).map(|object| object.version().clone());
    if let Rejection::Other { version: other, .. } = &rejection
        && copy.is_version(other)
        && other != source.version()
        && version(names.from).is_ok_and(|version| version != *other)
        && version(names.to).is_ok_and(|version| version == *other)
        && stores.remove(names.to).is_ok()
    {
        return rejection.into();
    }
    let note =
        format!("; the copy of the servers, not proved to be whole, was left at {}", names.to);
    match rejection.into() {
        // The copy that follows replaces it.
        ServerFailure::Unable(why) if names.replaces => ServerFailure::Unable(why + &note),
        ServerFailure::Unable(why) => {
            let url = names.to.to_string();
            ServerFailure::Failed(StoreError::Network { url, why: why + &note }.into())
        }
        ServerFailure::Failed(Failure { error, retry }) => {
            // What stays would be an object of this name to the next try.
            let retry = if names.replaces { retry } else { Retry::Never };
            ServerFailure::Failed(Failure { error: with_note(error, &note), retry })
        }
        failure @ ServerFailure::NoServers => failure,
    }
}

/// An error that says more, if its kind has words.
fn with_note(mut error: StoreError, note: &str) -> StoreError {
    match &mut error {
        StoreError::NotFound { why: text, .. }
        | StoreError::Forbidden { why: text, .. }
        | StoreError::Network { why: text, .. }
        | StoreError::Unsupported { why: text, .. }
        | StoreError::Differs { found: text, .. }
        | StoreError::Changed { version: text, .. } => text.push_str(note),
        _ => {}
    }
    error
}

/// The checksums of an object, unless the copy is to end first.
fn checksums(
    object: &dyn Source,
    progress: &(dyn Fn(u64) -> bool + Sync),
) -> Result<Vec<Checksum>, StoreError> {
    let (interrupt, scope) = (Interrupt::current().child(), Scope::current());
    thread::scope(|threads| {
        let (sender, receiver) = channel();
        let ours = interrupt.clone();
        let work = move || {
            ours.enter();
            scope.enter();
            let _ = sender.send(object.checksums());
        };
        let result =
            thread::Builder::new().name("swathe-checksums".into()).spawn_scoped(threads, work);
        result.map_err(|source| StoreError::Io { url: "a thread".into(), source })?;
        loop {
            match receiver.recv_timeout(STEP) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Timeout) if progress(object.len()) => {}
                Err(RecvTimeoutError::Timeout) => interrupt.set(),
                Err(RecvTimeoutError::Disconnected) => return Ok(Vec::new()),
            }
        }
    })
}

/// Check that a copy has the bytes of its source; whether both were read for it.
fn compare(
    source: &dyn Source,
    copy: &dyn Source,
    has_checksums: bool,
    progress: &(dyn Fn(u64) -> bool + Sync),
) -> Result<bool, Rejection> {
    let (size, found) = (source.len(), copy.len());
    let other = |why: String| Rejection::Other { version: copy.version().clone(), why };
    let other_bytes = || other("the copy of the servers has other bytes".into());
    if found != size {
        let why = format!("the servers said they copied {size} bytes, and the copy has {found}");
        return Err(other(why));
    }
    let ours = match has_checksums {
        true => checksums(source, progress).map_err(CopyRefusal::from)?,
        false => Vec::new(),
    };
    if !ours.is_empty() {
        let theirs = checksums(copy, progress).map_err(CopyRefusal::from)?;
        match compare_checksums(&ours, &theirs) {
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
