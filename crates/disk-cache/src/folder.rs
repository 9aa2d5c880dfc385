//! The files of values in the folder of a cache: their names, ranks and removal.

use super::eviction::Rank;
use super::value_file::{is_ours, on_disk};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use swathe_store_api::StoreError;

/// Folders the files are spread over.
const FAN_OUT: u64 = 256;
/// Hexadecimal digits of the names of those folders, and of the files.
const FOLDER_DIGITS: usize = 2;
const FILE_DIGITS: usize = 32;
/// The extension of a value that is being written.
pub(super) const PART_SUFFIX: &str = "new";

/// A value that may be evicted.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    pub(super) rank: Rank,
}

impl Candidate {
    pub(super) fn is_unfinished(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == PART_SUFFIX)
    }
}

/// The file of a value in a folder, by the digest of its key.
pub(super) fn path_in(folder: &Path, digest: u128) -> PathBuf {
    let part = format!("{:0FOLDER_DIGITS$x}", digest as u64 % FAN_OUT);
    folder.join(part).join(format!("{digest:0FILE_DIGITS$x}"))
}

/// All files of values, finished or not. Files of other names are not the cache's: its folder may
/// have been one that holds images.
pub(super) fn list(folder: &Path) -> Result<Vec<Candidate>, StoreError> {
    let mut values = Vec::new();
    for folder in entries(folder)? {
        // A link may lead to a folder of others.
        let is_folder = fs::symlink_metadata(&folder).is_ok_and(|stat| stat.is_dir());
        if !is_hex(folder.file_name(), FOLDER_DIGITS) || !is_folder {
            continue;
        }
        for path in entries(&folder)? {
            if !is_value(&path) {
                continue;
            }
            // Another process may have removed it in the meantime.
            let Ok(stat) = fs::metadata(&path) else { continue };
            values.push(Candidate { path, rank: rank(&stat) });
        }
    }
    Ok(values)
}

/// Whether a file has the name of a value, finished or not.
fn is_value(path: &Path) -> bool {
    let is_ours = path.extension().is_none_or(|extension| extension == PART_SUFFIX);
    is_ours && is_hex(path.file_stem(), FILE_DIGITS)
}

fn is_hex(name: Option<&OsStr>, digits: usize) -> bool {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let bytes = name.map(OsStr::as_encoded_bytes).unwrap_or_default();
    bytes.len() == digits && bytes.iter().all(is_digit)
}

/// The rank of a file.
pub(super) fn rank(stat: &Metadata) -> Rank {
    let priority = stat.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Rank { bytes: on_disk(stat.len()), priority, marked_at: change_time(stat) }
}

/// When a file was stored, or marked.
pub(super) fn change_time(stat: &Metadata) -> SystemTime {
    let seconds = Duration::from_secs(stat.ctime().try_into().unwrap_or(0));
    SystemTime::UNIX_EPOCH
        + seconds
        + Duration::from_nanos(stat.ctime_nsec().try_into().unwrap_or(0))
}

/// The paths in a folder; none if it does not exist.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let fail = |source| StoreError::Io { url: folder.display().to_string(), source };
    match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(fail(error)),
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path()).map_err(fail)).collect(),
    }
}

/// Remove a file that has the name of a value.
///
/// # Errors
/// [`StoreError::Unsupported`] if it is a file of others; [`StoreError::Io`].
pub(super) fn remove_ours(path: &Path) -> Result<(), StoreError> {
    if is_ours(path)? {
        return remove(path);
    }
    let why = "expected a file of the cache, found another; choose a folder of its own";
    Err(StoreError::Unsupported { url: path.display().to_string(), why: why.into() })
}

pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(StoreError::Io { url: path.display().to_string(), source: error })
        }
        _ => Ok(()),
    }
}
