//! Folders of this machine as stores.

use crate::folder_walk::FolderWalk;
use crate::local::LocalFile;
use crate::local_listing::{LocalFolders, start_of};
use crate::local_room::LocalRoom;
use crate::place::Place;
use crate::redact::percent_decode;
use crate::store_folders::StoreFolders;
use crate::write::NewFile;
use rustix::fs::statvfs;
use rustix::io::Errno;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use swathe_store_api::{
    ListOptions, Listing, ObjectName, Room, Sink, Source, Space, Store, StoreError, StoreSettings,
};

/// A folder of this machine; without a name, all files.
#[derive(Clone, Debug)]
pub(crate) struct LocalStore {
    settings: StoreSettings,
}

impl LocalStore {
    pub(crate) fn new(settings: StoreSettings) -> LocalStore {
        LocalStore { settings }
    }

    fn folder(&self) -> Option<&str> {
        self.settings.root.strip_prefix("file://")
    }

    /// The place of a file. By the name of the store it must lie below its root, or in a folder
    /// that the store allows its links to lead to.
    fn place(&self, object: ObjectName<'_>) -> Result<Place, StoreError> {
        let name_and_path =
            object.qualified_name.and_then(|qualified_name| qualified_name.split_once(':'));
        match (name_and_path, self.folder()) {
            (Some((name, path)), Some(folder)) => {
                Place::in_store(name, folder, self.other_roots(), path)
            }
            _ => Place::free(path_of(object.url)?),
        }
    }

    /// Folders besides the root that links may lead to: the option `roots`.
    fn other_roots(&self) -> Vec<PathBuf> {
        let roots = self.settings.options.get("roots").map_or("", String::as_str);
        roots.split(':').filter(|root| !root.is_empty()).map(PathBuf::from).collect()
    }
}

impl Store for LocalStore {
    fn settings(&self) -> &StoreSettings {
        &self.settings
    }

    fn object_key(&self, url: &str) -> String {
        self.display_url(url)
    }

    /// Names of files are taken as they are.
    fn url_of(&self, path: &str) -> String {
        format!("{}/{}", self.folder().unwrap_or_default(), path.trim_start_matches('/'))
    }

    fn display_url(&self, url: &str) -> String {
        match path_of(url) {
            Ok(path) => std::path::absolute(&path).unwrap_or(path).display().to_string(),
            Err(_) => url.to_string(),
        }
    }

    fn is_local(&self) -> bool {
        true
    }

    fn is_writable(&self) -> bool {
        true
    }

    fn takes_any_size(&self) -> bool {
        true
    }

    fn local_path(&self, url: &str) -> Result<Option<PathBuf>, StoreError> {
        path_of(url).map(Some)
    }

    fn open(&self, object: ObjectName<'_>) -> Result<Arc<dyn Source>, StoreError> {
        Ok(Arc::new(LocalFile::open(&self.place(object)?, self.settings.costs.clone())?))
    }

    fn list(
        &self,
        object: ObjectName<'_>,
        options: ListOptions,
    ) -> Result<Box<dyn Listing>, StoreError> {
        let path = path_of(object.url)?;
        let path = std::path::absolute(&path).unwrap_or(path);
        let (root, start) = start_of(self.folder().unwrap_or_default(), &path);
        let folders = StoreFolders::new(root.clone(), self.other_roots());
        // A folder that is not there says so when it is listed.
        let inside = options.tells_links.then(|| path.canonicalize().unwrap_or(path));
        Ok(Box::new(FolderWalk::new(LocalFolders::new(root, folders, inside), &start, options)))
    }

    /// A folder that is not there yet is made with its first object: the folders above it, up to the
    /// root, say what room it has.
    fn space(&self, folder: ObjectName<'_>) -> Result<Option<Space>, StoreError> {
        let path = path_of(folder.url)?;
        let root = self.folder().unwrap_or_default();
        for path in path.ancestors().take_while(|path| path.starts_with(root)) {
            match free_and_total(path) {
                Ok((free_bytes, total)) => {
                    let (total_bytes, disks) = (Some(total), Vec::new());
                    return Ok(Some(Space { free_bytes, total_bytes, disks }));
                }
                Err(Errno::NOENT) => {}
                Err(error) => {
                    let url = path.display().to_string();
                    return Err(StoreError::Io { url, source: error.into() });
                }
            }
        }
        Ok(None)
    }

    fn has_folder(&self, folder: ObjectName<'_>) -> Result<bool, StoreError> {
        let path = path_of(folder.url)?;
        match std::fs::metadata(&path) {
            Ok(status) => Ok(status.is_dir()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(source) => Err(StoreError::from_io(&path.display().to_string(), source)),
        }
    }

    fn create(
        &self,
        object: ObjectName<'_>,
        _size: u64,
        _in_parts: bool,
    ) -> Result<Box<dyn Sink>, StoreError> {
        Ok(Box::new(NewFile::create(&self.place(object)?)?))
    }

    fn reserve(&self, object: ObjectName<'_>, bytes: u64) -> Result<Box<dyn Room>, StoreError> {
        let store = self.clone();
        let place_of = Box::new(move |object: ObjectName<'_>| store.place(object));
        Ok(Box::new(LocalRoom::create(&self.place(object)?, bytes, place_of)?))
    }

    fn remove(&self, object: ObjectName<'_>) -> Result<(), StoreError> {
        self.place(object)?.remove()
    }
}

/// Bytes that are free on the file system of a folder, and all that it has.
///
/// # Errors
/// As `statvfs(3)`.
pub fn free_and_total(folder: &Path) -> rustix::io::Result<(u64, u64)> {
    let space = statvfs(folder)?;
    let bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
    Ok((bytes(space.f_bavail), bytes(space.f_blocks)))
}

/// The path of a file, from a path or a URL.
fn path_of(url: &str) -> Result<PathBuf, StoreError> {
    match url.split_once("://") {
        Some(("file", path)) => file_path(url, path),
        _ => Ok(PathBuf::from(url)),
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
    Ok(std::ffi::OsString::from_vec(percent_decode(path)).into())
}
