//! Files that are written: seen under their names when they are whole, not before.

use crate::place::Place;
use crate::store_folders;
use bytes::Bytes;
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, Mode, OFlags, RenameFlags, fallocate, linkat, open, openat,
    renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use swathe_store_api::{Comparison, Failure, PartSums, Sink, StoreError, part_name};

/// Rename files, in order, up to the first that cannot be; how many were. Each folder is looked up
/// once: for two long paths that takes a quarter of a rename.
pub fn rename_each(moves: &[(String, String)]) -> usize {
    let mut folders = HashMap::new();
    moves.iter().take_while(|(from, to)| rename(&mut folders, from, to).is_ok()).count()
}

/// Folders that stay open while files are renamed.
const FOLDERS: usize = 256;

fn rename<'a>(
    folders: &mut HashMap<&'a str, OwnedFd>,
    from: &'a str,
    to: &'a str,
) -> rustix::io::Result<()> {
    let (Some((from_folder, from)), Some((to_folder, to))) =
        (from.rsplit_once('/'), to.rsplit_once('/'))
    else {
        return rustix::fs::rename(from, to);
    };
    if folders.len() + 2 > FOLDERS {
        folders.clear();
    }
    for folder in [from_folder, to_folder] {
        if let Entry::Vacant(free) = folders.entry(folder) {
            // One that cannot be listed is no worse.
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            free.insert(open(format!("{folder}/"), flags, Mode::empty())?);
        }
    }
    renameat(&folders[from_folder], from, &folders[to_folder], to)
}

/// A file under a hidden name, locked by its writer. A file left behind by a process
/// that was killed is written anew.
pub(crate) struct NewFile {
    file: File,
    folder: OwnedFd,
    name: OsString,
    part_name: String,
    url: String,
    bytes: u64,
    /// Bytes that are reserved: the file may be longer than what was written.
    room: u64,
    is_finished: bool,
}

impl NewFile {
    pub(crate) fn create(place: &Place) -> Result<NewFile, StoreError> {
        let url = place.url.clone();
        let (folder, name) = place.make_folder()?;
        let part_name = part_name(&name.to_string_lossy());
        let file = loop {
            let file = open_part(&folder, &part_name);
            let file = file.map_err(|error| StoreError::from_io(&url, error))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let why = "another process is writing it";
                    let source = io::Error::new(io::ErrorKind::ResourceBusy, why);
                    return Err(StoreError::Io { url, source });
                }
                Err(TryLockError::Error(error)) => return Err(StoreError::from_io(&url, error)),
            }
            // Another may have finished it, so that this is now the object itself.
            let is_ours = store_folders::holds(&folder, &part_name, &file);
            if !is_ours.map_err(|error| StoreError::from_io(&url, error))? {
                continue;
            }
            // With a second name it may be an object: one whose writer was killed between its two
            // names, or one of somebody else. Its content stays as it is.
            let status = file.metadata().map_err(|error| StoreError::from_io(&url, error))?;
            if status.nlink() == 1 {
                break file;
            }
            unlinkat(&folder, &part_name, AtFlags::empty())
                .map_err(|error| StoreError::from_io(&url, error.into()))?;
        };
        file.set_len(0).map_err(|error| StoreError::from_io(&url, error))?;
        Ok(NewFile { file, folder, name, part_name, url, bytes: 0, room: 0, is_finished: false })
    }

    /// A file in room that was reserved: one without a name, of `room` bytes.
    pub(crate) fn in_room(place: &Place, file: File, room: u64) -> Result<NewFile, StoreError> {
        let url = place.url.clone();
        let fail = |error: io::Error| StoreError::from_io(&url, error);
        let (folder, name) = place.make_folder()?;
        let part_name = part_name(&name.to_string_lossy());
        file.lock().map_err(fail)?;
        let link = || {
            let from = format!("/proc/self/fd/{}", file.as_raw_fd());
            linkat(CWD, from, &folder, &part_name, AtFlags::SYMLINK_FOLLOW)
        };
        match link() {
            Err(Errno::EXIST) => {
                // One that was left behind, unless another process is writing it.
                drop(NewFile::create(place)?);
                link().map_err(|error| fail(error.into()))?;
            }
            result => result.map_err(|error| fail(error.into()))?,
        }
        Ok(NewFile { file, folder, name, part_name, url, bytes: 0, room, is_finished: false })
    }

    fn name(&mut self, sums: &PartSums, part_bytes: u64, replaces: bool) -> Result<(), StoreError> {
        let fail = |error| StoreError::from_io(&self.url, error);
        if self.room > self.bytes {
            self.file.set_len(self.bytes).map_err(fail)?;
        }
        self.file.sync_all().map_err(fail)?;
        let mut file_sums = sums.anew();
        let mut part = Vec::new();
        let mut at = 0;
        while at < self.bytes {
            part.resize((self.bytes - at).min(part_bytes) as usize, 0);
            self.file.read_exact_at(&mut part, at).map_err(fail)?;
            file_sums.add(&part);
            at += part.len() as u64;
        }
        sums.check(&self.url, &file_sums, part_bytes)?;
        match self.rename(replaces) {
            Err(Errno::EXIST) if !replaces => {
                return Err(StoreError::Exists { url: self.url.clone() });
            }
            result => result.map_err(|error| fail(error.into()))?,
        }
        self.is_finished = true;
        let result = store_folders::sync_folder(&self.folder);
        result.map_err(|error| StoreError::from_io(&self.url, error))
    }
}

impl NewFile {
    fn rename(&self, replaces: bool) -> rustix::io::Result<()> {
        let (folder, from, to) = (&self.folder, &self.part_name, &self.name);
        if replaces {
            return renameat(folder, from, folder, to);
        }
        match renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE) {
            // File systems that cannot, as NFS, have hard links.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                linkat(folder, from, folder, to, AtFlags::empty())?;
                unlinkat(folder, from, AtFlags::empty())
            }
            result => result,
        }
    }
}

impl Sink for NewFile {
    fn write(&mut self, part: Bytes) -> Result<(), Failure> {
        self.file.write_all(&part).map_err(|error| StoreError::from_io(&self.url, error))?;
        self.bytes += part.len() as u64;
        Ok(())
    }

    fn reserve(&mut self, bytes: u64) -> Result<bool, StoreError> {
        let fail = |error| StoreError::from_io(&self.url, error);
        if bytes <= self.bytes.max(self.room) {
            return Ok(true);
        }
        // The file grows: shortening it at the end frees what is left on every file system.
        match fallocate(&self.file, FallocateFlags::empty(), 0, bytes) {
            Ok(()) => {
                self.room = bytes;
                Ok(true)
            }
            Err(error) => {
                // Some file systems keep what they could reserve.
                self.file.set_len(self.bytes.max(self.room)).map_err(fail)?;
                match error {
                    Errno::OPNOTSUPP | Errno::NOSYS => Ok(false),
                    error => Err(fail(error.into())),
                }
            }
        }
    }

    fn finish(
        mut self: Box<Self>,
        sums: &PartSums,
        part_bytes: u64,
        replaces: bool,
    ) -> Result<Comparison, Failure> {
        self.name(sums, part_bytes, replaces)?;
        Ok(Comparison::ReadBack)
    }
}

/// Open the unfinished file of a folder, a new one if none exists.
fn open_part(folder: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(folder, name, flags, Mode::from_raw_mode(0o666))?))
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_finished {
            // Hidden, and written anew the next time, if it cannot be removed.
            let _ = unlinkat(&self.folder, &self.part_name, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_unfinished_file_with_a_second_name_is_left_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("object");
        fs::write(&path, "of before").expect("written");
        fs::hard_link(&path, folder.path().join(part_name("object"))).expect("linked");
        let place = Place::free(path.clone()).expect("a place");
        let file = NewFile::create(&place).expect("begun");
        assert_eq!(fs::read_to_string(&path).expect("read"), "of before");
        let sink: Box<dyn Sink> = Box::new(file);
        sink.finish(&PartSums::default(), 1, true).map_err(|failure| failure.error).expect("named");
        assert_eq!(fs::read_to_string(&path).expect("read"), "");
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 1);
    }

    fn new_file(folder: &tempfile::TempDir) -> Box<dyn Sink> {
        let place = Place::free(folder.path().join("object")).expect("a place");
        Box::new(NewFile::create(&place).expect("begun"))
    }

    #[test]
    fn room_is_not_a_part_of_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut sink = new_file(&folder);
        if !sink.reserve(1 << 20).expect("room") {
            return; // this file system cannot
        }
        let (part, mut sums) = (Bytes::from_static(b"part"), PartSums::default());
        sums.add(&part);
        sink.write(part).map_err(|failure| failure.error).expect("written");
        assert!(sink.reserve(2).expect("it is there"));
        sink.finish(&sums, 4, false).map_err(|failure| failure.error).expect("named");
        let file = fs::metadata(folder.path().join("object")).expect("a file");
        assert_eq!(file.len(), 4);
        assert!(file.blocks() * 512 < 1 << 20, "{} blocks", file.blocks());
    }

    #[test]
    fn room_that_no_disk_has_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut sink = new_file(&folder);
        let result = sink.reserve(1 << 62);
        assert!(matches!(result, Ok(false) | Err(StoreError::Io { .. })), "{result:?}");
        sink.finish(&PartSums::default(), 1, false)
            .map_err(|failure| failure.error)
            .expect("named");
        assert_eq!(fs::metadata(folder.path().join("object")).expect("a file").len(), 0);
    }

    #[test]
    fn files_are_renamed_up_to_the_first_that_cannot_be() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: String| folder.path().join(name).display().to_string();
        // More folders than stay open.
        let count = 2 * FOLDERS;
        let moves: Vec<(String, String)> = (0..count)
            .map(|number| (path(format!("{number}.new")), path(format!("to-{number}/file"))))
            .collect();
        for (number, (from, _)) in moves.iter().enumerate() {
            fs::write(from, number.to_string()).expect("written");
        }
        for number in (0..count).filter(|&number| number != 400) {
            fs::create_dir(path(format!("to-{number}"))).expect("made");
        }
        fs::write(&moves[7].1, "of before").expect("written");
        assert_eq!(rename_each(&moves), 400);
        fs::create_dir(path("to-400".into())).expect("made");
        assert_eq!(rename_each(&moves[400..]), count - 400);
        for (number, (from, to)) in moves.iter().enumerate() {
            assert!(!fs::exists(from).expect("looked"));
            assert_eq!(fs::read_to_string(to).expect("read"), number.to_string());
        }
        assert_eq!(rename_each(&moves), 0);
        assert_eq!(rename_each(&[("no-such-file".into(), "nor-this".into())]), 0);
        assert_eq!(rename_each(&[]), 0);
    }
}
