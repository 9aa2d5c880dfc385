//! The objects of a store, as it lists them.

use crate::error::StoreError;

/// The longest path of an object, in bytes of UTF-8. Folders with a longer one are not entered.
pub const LONGEST_PATH_BYTES: usize = 1_000;
/// Names that begin so are hidden, but for those of [`ZARR_NAMES`].
pub const HIDDEN_PREFIX: char = '.';
/// Files with the metadata of Zarr, version 2.
pub const ZARR_NAMES: [&str; 4] = [".zarray", ".zattrs", ".zgroup", ".zmetadata"];

/// An object that a listing names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path in the store.
    pub path: String,
    /// Bytes; `None` if the listing does not give them exactly.
    pub size: Option<u64>,
    /// When it was written, as the listing has it: a date, or nanoseconds since 1970 for files.
    pub modified: Option<String>,
    /// Its strong ETag, without quotes.
    pub etag: Option<String>,
}

/// One name in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListItem {
    /// An object.
    Object(Entry),
    /// An object or a folder that could not be listed.
    Unlisted {
        /// Its path in the store.
        path: String,
        /// Why not.
        why: String,
    },
}

/// Options of a listing.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListOptions {
    /// Also hidden names, and the empty objects by which some programs mark folders.
    pub with_hidden: bool,
    /// Whether a folder that does not exist counts as an empty one.
    pub may_lack: bool,
    /// Whether links to folders, and links that lead out of the listed folder, are reported as
    /// [`ListItem::Unlisted`].
    pub tells_links: bool,
}

/// A listing on its way: one page at a time is in memory.
pub trait Listing: Send {
    /// The next page, perhaps an empty one; `None` when all were given.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where there is nothing to list; [`StoreError::Forbidden`];
    /// [`StoreError::NoIndex`] where the server answers with something else than an index;
    /// [`StoreError::Network`] where the server fails, or goes in circles.
    fn next_page(&mut self) -> Result<Option<Vec<ListItem>>, StoreError>;

    /// The warnings for the user since the last call.
    fn take_notes(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// Whether the name of a file or folder is hidden.
pub fn is_hidden_name(name: &[u8]) -> bool {
    let is_zarr = || ZARR_NAMES.iter().any(|each| each.as_bytes() == name);
    name.first() == Some(&(HIDDEN_PREFIX as u8)) && !is_zarr()
}

/// Whether a path below a listed folder has a hidden part.
pub fn is_hidden(below: &str) -> bool {
    below.split('/').any(|part| is_hidden_name(part.as_bytes()))
}
