//! A folder that is one object: a store's files below a path, which a format such as Zarr spreads an
//! array over. It is listed once, and then read as a space of bytes (`table`).

mod dot_names;
mod listings;
mod place;
mod source;
mod table;

use bytes::Bytes;
use place::Place;
use source::FolderSource;
use std::sync::Arc;
use std::time::Instant;
use swathe_store_api::{Interrupt, ListItem, ListOptions, Source, StoreError, Stores, Version};
use table::{FolderTable, MOST_MEMBERS, MOST_TEXT_BYTES, Member};

/// Names of objects that may be folders end so.
const SUFFIX: &str = ".zarr";

/// Whether a name is that of a folder: of a folder of this machine, or one that ends in a slash or in
/// `.zarr`.
fn is_folder(name: &str, stores: &Stores) -> bool {
    match stores.file_of(name) {
        Some(path) => path.is_dir(),
        None => name.ends_with('/') || name.to_ascii_lowercase().ends_with(SUFFIX),
    }
}

/// Open an object, or a folder as one; and whether no request was sent for that. A folder of a server
/// that was listed a moment ago is not listed again, unless `fresh`, or a chunk is read that it lacked.
///
/// # Errors
/// As [`Stores::open`]; of a folder, those of listing it, and [`StoreError::Unsupported`] if something
/// in it cannot be listed.
pub(crate) fn open(
    name: &str,
    stores: &Stores,
    fresh: bool,
) -> Result<(Arc<dyn Source>, bool), StoreError> {
    if !is_folder(name, stores) {
        return Ok((stores.open(name)?, false));
    }
    let place = Place::new(name, stores);
    let may_recall = !fresh && !place.store.is_local();
    if let Some(table) = may_recall.then(|| listings::recall(&place.key)).flatten() {
        return Ok((Arc::new(FolderSource::new(place, table, true)), true));
    }
    let began = Instant::now();
    let source = match list(&place, stores) {
        Ok(table) => {
            let table = Arc::new(table);
            if !place.store.is_local() {
                listings::keep(&place.key, began, &table);
            }
            Ok(Arc::new(FolderSource::new(place, table, false)) as Arc<dyn Source>)
        }
        // The reason why there is none, as for any other name.
        Err(StoreError::NotFound { .. }) if place.store.is_local() => stores.open(name),
        // An object may have such a name.
        Err(error) if place.store.is_local() || name.ends_with('/') => Err(error),
        Err(error) => stores.open(name).map_err(|_| error),
    };
    Ok((source?, false))
}

/// Whether a version is that of a folder.
pub(crate) fn is_version(version: &Version) -> bool {
    version.tag.starts_with(source::TAG)
}

/// The names in a table of members that begin with a prefix.
pub(crate) fn member_names(table: Bytes, prefix: &str) -> Vec<String> {
    let Some(table) = FolderTable::parse(table) else { return Vec::new() };
    let names = (0..table.count()).map(|number| table.name(number));
    names.filter(|name| name.starts_with(prefix)).map(String::from).collect()
}

/// A folder of a server as it was seen before, without a request. `None` if reading could not check
/// each of its members.
pub(crate) fn assume(
    name: &str,
    stores: &Stores,
    version: &Version,
    members: Bytes,
) -> Option<Arc<dyn Source>> {
    let table = Arc::new(FolderTable::parse(members)?);
    let source = FolderSource::new(Place::new(name, stores), table, true);
    let is_known = source.can_be_assumed() && source.version() == version;
    is_known.then(|| Arc::new(source) as Arc<dyn Source>)
}

/// List the members of a folder.
fn list(place: &Place, stores: &Stores) -> Result<FolderTable, StoreError> {
    let refuse = |why: String| StoreError::Unsupported { url: place.url.clone(), why };
    let options = ListOptions { with_hidden: true, tells_links: true, ..ListOptions::default() };
    let folder = format!("{}/", place.name.trim_end_matches('/'));
    let mut listing = stores.list(&folder, options).map_err(needs_listing)?;
    let (mut members, mut text_bytes, mut unknown) = (Vec::new(), 0, Vec::new());
    let mut start = String::new();
    let interrupt = Interrupt::current();
    while let Some(page) = listing.next_page().map_err(needs_listing)? {
        if interrupt.is_set() {
            return Err(StoreError::Interrupted { url: place.url.clone() });
        }
        for item in page {
            let entry = match item {
                ListItem::Object(entry) => entry,
                ListItem::Unlisted { path, why } => {
                    return Err(refuse(format!("{path} cannot be listed: {why}")));
                }
            };
            let Some((path, below)) = place.split(&entry.path) else { continue };
            if start.is_empty() {
                start = path.to_string();
            }
            if below.contains('\0') || below.split('/').any(|part| matches!(part, "" | "." | ".."))
            {
                return Err(refuse(format!("expected the name of a member, found {below:?}")));
            }
            let stamp = match (entry.etag, entry.modified) {
                (Some(etag), _) => format!("\"{etag}\""),
                (None, modified) => modified.unwrap_or_default(),
            };
            text_bytes += below.len() + stamp.len() + 2;
            if members.len() == MOST_MEMBERS || text_bytes > MOST_TEXT_BYTES {
                return Err(refuse(format!(
                    "expected at most {MOST_MEMBERS} members, with names of {MOST_TEXT_BYTES} bytes"
                )));
            }
            if entry.size.is_none() {
                unknown.push(members.len());
            }
            let (name, size) = (below.to_string(), entry.size.unwrap_or_default());
            members.push(Member { name, size, stamp: stamp.replace('\0', "") });
        }
    }
    if members.is_empty() {
        return Err(refuse("expected files, found an empty folder".into()));
    }
    place.ask_sizes(&start, &mut members, &unknown)?;
    dot_names::add(place, &start, &mut members)?;
    let table = FolderTable::new(&start, members);
    table.ok_or_else(|| refuse("expected members of less than 2^62 bytes in all".into()))
}

/// The error where a server does not list a folder, with what is needed.
fn needs_listing(error: StoreError) -> StoreError {
    const NEED: &str = "a folder is read by its listing: expected a bucket, WebDAV, XRootD, or a \
                        server that shows an index of its folders";
    match error {
        StoreError::NoIndex { url, expected, found } => {
            let why = format!("{NEED}; found {found}, no {expected}");
            StoreError::Unsupported { url, why }
        }
        StoreError::Forbidden { url, why } => {
            StoreError::Forbidden { url, why: format!("{why}; {NEED}") }
        }
        error => error,
    }
}
