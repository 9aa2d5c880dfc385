//! What a folder of this machine holds.

use crate::folder_walk::{EntryKind, FolderEntry, FolderReader};
use crate::store_folders::{Refusal, StoreFolders};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat, fstat, statat};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use swathe_store_api::StoreError;

/// Lists folders below the root of a store, and nothing that links lead to outside of it.
pub(crate) struct LocalFolders {
    pub(crate) root: PathBuf,
    pub(crate) folders: StoreFolders,
    /// With [`swathe_store_api::ListOptions::tells_links`], the folder that links must stay in.
    pub(crate) inside: Option<PathBuf>,
    /// Device and inode of the root when the first folder was read.
    root_id: Option<(u64, u64)>,
    /// Devices of the folders that were read and are on another device than the folder above.
    devices: HashMap<PathBuf, u64>,
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl FolderReader for LocalFolders {
    fn read(&mut self, folder: &str) -> Result<Vec<FolderEntry>, StoreError> {
        let path = Path::new(folder);
        match self.folders.open(path, OFlags::PATH) {
            Ok(start) => match fstat(&start) {
                Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                    return Ok(vec![FolderEntry { name: String::new(), kind: object(&stat) }]);
                }
                _ => {}
            },
            Err(refusal) => return Err(self.error(path, refusal)),
        }
        let descriptor =
            self.folders.open(path, FOLDER).map_err(|refusal| self.error(path, refusal))?;
        self.note_device(&descriptor, path);
        self.entries(&descriptor, path).map_err(|error| self.error(path, Refusal::Io(error.into())))
    }

    fn is_finite(&self) -> bool {
        true
    }

    fn is_removed(&self, folder: &str, error: &StoreError) -> bool {
        // A folder whose file system cannot be mounted has still its entry.
        let is_gone = |path: &Path| {
            let entry = self.root.join(path).symlink_metadata();
            entry.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
        };
        let folder = Path::new(folder);
        matches!(error, StoreError::NotFound { .. })
            && is_gone(folder)
            && folder
                .ancestors()
                .find(|path| !is_gone(path))
                .is_some_and(|path| self.is_mounted(path))
    }

    fn reason(&self, error: &StoreError) -> String {
        match error {
            StoreError::Io { source, .. } => {
                format!("its folder cannot be listed: {}", plain(source))
            }
            StoreError::NotFound { .. } => {
                "its folder cannot be listed: it cannot be opened".into()
            }
            StoreError::Forbidden { .. } => "its folder may not be listed".into(),
            error => error.to_string(),
        }
    }
}

impl LocalFolders {
    pub(crate) fn new(
        root: PathBuf,
        folders: StoreFolders,
        inside: Option<PathBuf>,
    ) -> LocalFolders {
        LocalFolders { root, folders, inside, root_id: None, devices: HashMap::new() }
    }

    fn note_device(&mut self, descriptor: &OwnedFd, path: &Path) {
        let root_id = self.root_id.or_else(|| id_of(&self.root));
        self.root_id = root_id;
        if let (Some((root_device, _)), Ok(stat)) = (root_id, fstat(descriptor))
            && stat.st_dev != self.device_of(path, root_device)
        {
            self.devices.insert(path.to_path_buf(), stat.st_dev);
        }
    }

    /// The device of a folder that was read, or of the next one above it.
    fn device_of(&self, path: &Path, root_device: u64) -> u64 {
        let device = path.ancestors().find_map(|path| self.devices.get(path));
        device.copied().unwrap_or(root_device)
    }

    /// Whether a folder that was read is on the file system that it was on.
    fn is_mounted(&self, path: &Path) -> bool {
        let Some(root_id) = self.root_id else { return false };
        let device = self.device_of(path, root_id.0);
        id_of(&self.root) == Some(root_id)
            && id_of(&self.root.join(path)).is_some_and(|(found, _)| found == device)
    }

    fn entries(&self, descriptor: &OwnedFd, folder: &Path) -> rustix::io::Result<Vec<FolderEntry>> {
        let mut names: Vec<(CString, FileType)> = Vec::new();
        for entry in Dir::read_from(descriptor)? {
            let entry = entry?;
            let name = entry.file_name();
            if name != c"." && name != c".." {
                names.push((name.to_owned(), entry.file_type()));
            }
        }
        names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let entry = |(name, kind): (CString, FileType)| self.entry(descriptor, folder, &name, kind);
        Ok(names.into_iter().filter_map(entry).collect())
    }

    /// One entry; `None` if it is neither a file nor a folder, or was removed meanwhile.
    fn entry(
        &self,
        descriptor: &OwnedFd,
        folder: &Path,
        name: &CStr,
        kind: FileType,
    ) -> Option<FolderEntry> {
        let text = match name.to_str() {
            Ok(text) => text.to_string(),
            Err(_) => {
                let kind = EntryKind::Unlisted("its name is not UTF-8 text".into());
                return Some(FolderEntry { name: escape_name(name.to_bytes()), kind });
            }
        };
        let kind = match kind {
            FileType::Directory => Some(EntryKind::Folder),
            FileType::Symlink => self.behind_link(&folder.join(&text)),
            FileType::RegularFile | FileType::Unknown => {
                match statat(descriptor, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => None,
                    Err(error) => Some(EntryKind::Unlisted(plain(&error.into()))),
                    Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                        FileType::Symlink => self.behind_link(&folder.join(&text)),
                        FileType::Directory => Some(EntryKind::Folder),
                        FileType::RegularFile => Some(object(&stat)),
                        _ => self.other_kind(),
                    },
                }
            }
            _ => self.other_kind(),
        };
        kind.map(|kind| FolderEntry { name: text, kind })
    }

    /// A pipe, socket or device: no entry, but in a folder that is one object it is no missing file.
    fn other_kind(&self) -> Option<EntryKind> {
        let is_object = self.inside.is_some();
        is_object.then(|| EntryKind::Unlisted("neither a file nor a folder".into()))
    }

    /// The file that a link leads to. Links to folders could form loops.
    fn behind_link(&self, path: &Path) -> Option<EntryKind> {
        match self.folders.open(path, OFlags::PATH).map(|file| fstat(&file)) {
            Ok(Ok(stat)) => match (FileType::from_raw_mode(stat.st_mode), &self.inside) {
                (FileType::RegularFile, Some(inside)) if !self.leads_into(path, inside) => {
                    Some(EntryKind::Unlisted("a link that leads out of the folder".into()))
                }
                (FileType::RegularFile, _) => Some(object(&stat)),
                (_, Some(_)) => Some(EntryKind::Unlisted("a link to a folder".into())),
                (_, None) => None,
            },
            Ok(Err(error)) => Some(EntryKind::Unlisted(plain(&error.into()))),
            Err(Refusal::LeadsOut) => Some(leads_out()),
            Err(Refusal::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                let nowhere = || EntryKind::Unlisted("a link to a file that does not exist".into());
                (!self.folders.leads_inside(path))
                    .then(leads_out)
                    .or_else(|| self.inside.is_some().then(nowhere))
            }
            Err(Refusal::Io(error)) => Some(EntryKind::Unlisted(plain(&error))),
        }
    }

    fn leads_into(&self, path: &Path, folder: &Path) -> bool {
        self.root.join(path).canonicalize().is_ok_and(|real| real.starts_with(folder))
    }

    fn error(&self, path: &Path, refusal: Refusal) -> StoreError {
        let (at, is_start) = (self.root.join(path), |why: &str| format!(": {why}"));
        let url = at.display().to_string();
        match refusal {
            Refusal::LeadsOut => {
                StoreError::Forbidden { url, why: is_start("leads out of its store") }
            }
            Refusal::Io(error) => match StoreError::from_io(&url, error) {
                // What a link leads to may only be away for a while.
                StoreError::NotFound { url, .. } if at.is_symlink() => {
                    StoreError::Unsupported { url, why: "a link that leads to nothing".into() }
                }
                StoreError::NotFound { url, .. } => {
                    StoreError::NotFound { url, why: is_start("no such folder") }
                }
                StoreError::Forbidden { url, .. } => {
                    StoreError::Forbidden { url, why: is_start("the folder may not be listed") }
                }
                error => error,
            },
        }
    }
}

/// Device and inode of a folder.
fn id_of(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

fn leads_out() -> EntryKind {
    EntryKind::Unlisted("a link that leads out of its store".into())
}

fn object(stat: &Stat) -> EntryKind {
    let ns = i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec);
    let size = u64::try_from(stat.st_size).ok();
    EntryKind::Object { size, modified: Some(ns.to_string()), etag: None }
}

/// The message of the operating system, without its number.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}

/// A name that is not text, as Python writes it.
fn escape_name(name: &[u8]) -> String {
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\udc{byte:02x}")));
    }
    text
}

/// The folder that a listing stays in, and the path below it where it begins.
pub(crate) fn start_of(root: &str, path: &Path) -> (PathBuf, String) {
    let root = Path::new(if root.is_empty() { "/" } else { root });
    let below = path.strip_prefix(root).unwrap_or(path);
    (root.to_path_buf(), below.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_mounted_disk_is_noted_once_however_many_folders_it_has() {
        let disk = tempfile::tempdir_in("/dev/shm").unwrap();
        for number in 0..3 {
            fs::create_dir(disk.path().join(number.to_string())).unwrap();
        }
        let root = PathBuf::from("/dev");
        let mut folders =
            LocalFolders::new(root.clone(), StoreFolders::new(root, Vec::new()), None);
        let name = disk.path().strip_prefix("/dev").unwrap().to_str().unwrap();
        let below: Vec<_> = (0..3).map(|number| format!("{name}/{number}")).collect();
        for path in ["", "shm", name].into_iter().chain(below.iter().map(String::as_str)) {
            folders.read(path).unwrap();
        }
        let device = |path| id_of(Path::new(path)).unwrap().0;
        let is_apart = device("/dev") != device("/dev/shm");
        assert_eq!(folders.devices.len(), usize::from(is_apart));
        assert!(below.iter().all(|path| folders.is_mounted(Path::new(path))));
    }
}
