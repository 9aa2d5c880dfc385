//! The path of a file: on this machine, or below the root of a named store.

use crate::store_folders::{self, Refusal, StoreFolders};
use rustix::fs::{AtFlags, Mode, OFlags, open, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use swathe_store_api::StoreError;

/// The place of a file, whether or not it exists.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Its absolute path, as users may see it.
    pub(crate) url: String,
    path: PathBuf,
    confines: Option<Confines>,
}

/// The folders in which a file of a named store must lie.
#[derive(Clone, Debug)]
struct Confines {
    store: String,
    folders: StoreFolders,
    /// The path of the file from the root of the store on.
    path: PathBuf,
}

impl Place {
    /// A path, which leads wherever it leads.
    pub(crate) fn free(path: PathBuf) -> Result<Place, StoreError> {
        // Absolute, so that the index and the manifest know it from any working directory.
        let path = std::path::absolute(&path)
            .map_err(|source| StoreError::from_io(&path.display().to_string(), source))?;
        let url = path.to_string_lossy().into_owned();
        Ok(Place { url, path, confines: None })
    }

    /// The file at `path` below the root of a store.
    pub(crate) fn in_store(
        store: &str,
        root: &str,
        others: Vec<PathBuf>,
        path: &str,
    ) -> Result<Place, StoreError> {
        let path = PathBuf::from(path.trim_start_matches('/'));
        let root = PathBuf::from(if root.is_empty() { "/" } else { root });
        let free = Place::free(root.join(&path))?;
        let folders = StoreFolders::new(root, others);
        Ok(Place { confines: Some(Confines { store: store.to_string(), folders, path }), ..free })
    }

    /// Open the file to read it. A pipe nobody writes to does not hang.
    pub(crate) fn open(&self) -> Result<File, StoreError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match &self.confines {
            None => open(&self.path, flags, Mode::empty()).map_err(Refusal::from),
            Some(confines) => confines.folders.open(&confines.path, flags),
        };
        file.map(File::from).map_err(|refusal| self.error(refusal))
    }

    /// The folder to write it in, created if missing, and its name there.
    pub(crate) fn make_folder(&self) -> Result<(OwnedFd, OsString), StoreError> {
        let folder = match &self.confines {
            None => store_folders::make_folder(parent(&self.path)),
            Some(confines) => confines.folders.make_folder(parent(&confines.path)),
        };
        let folder = folder.map_err(|refusal| match refusal {
            // Nothing is missing: a file is where a folder should be.
            Refusal::Io(source) if source.kind() == ErrorKind::NotADirectory => {
                StoreError::Io { url: self.url.clone(), source }
            }
            refusal => self.error(refusal),
        })?;
        Ok((folder, self.name()?))
    }

    /// Remove the file, or the link.
    pub(crate) fn remove(&self) -> Result<(), StoreError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = match &self.confines {
            None => open(parent(&self.path), flags, Mode::empty()).map_err(Refusal::from),
            Some(confines) => confines.folders.open(parent(&confines.path), flags),
        };
        let folder = folder.map_err(|refusal| self.error(refusal))?;
        let result = unlinkat(&folder, self.name()?, AtFlags::empty());
        result.map_err(|error| self.error(error.into()))
    }

    fn name(&self) -> Result<OsString, StoreError> {
        let name = self.path.file_name().map(OsStr::to_os_string);
        name.ok_or_else(|| {
            let (url, why) = (self.url.clone(), "no path of a file".to_string());
            StoreError::Unsupported { url, why }
        })
    }

    fn error(&self, refusal: Refusal) -> StoreError {
        let url = self.url.clone();
        match (refusal, &self.confines) {
            (Refusal::LeadsOut, Some(Confines { store, .. })) => {
                let why = format!(
                    "; it leads out of the store {store}: further folders that links of a store may \
                     lead to are named by its option roots"
                );
                StoreError::Forbidden { url, why }
            }
            (Refusal::LeadsOut, None) => StoreError::Forbidden { url, why: String::new() },
            (Refusal::Io(error), _) => StoreError::from_io(&url, error),
        }
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}
