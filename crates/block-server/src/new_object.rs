//! Objects that are written: a file under a name of ours, its checksums, then one rename.
//!
//! The checksums have their place before the object gets its name, and those of an object that is
//! replaced go after it. So each object that has a name has its own, whenever we are killed.

use crate::block_sums::SumsWriter;
use crate::disk::{Disk, ObjectStatus};
use crate::error::RequestError;
use crate::file_names::rename;
use crate::identity::random_number;
use crate::object_path::ObjectPath;
use crate::object_time::unique_times;
use crate::own_folder::{make_own_folder, remove};
use crate::request_record::WorkRecord;
use crate::space::Room;
use hyper::StatusCode;
use rustix::fs::{CWD, FallocateFlags, fallocate, futimens};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use swathe_store::free_and_total;

/// A file is synced each time this many bytes were written. So its seal has little to sync, however
/// long the object is.
const SYNC_BYTES: u64 = 64 << 20;

/// An object on its way to a disk. Dropped before it has a name, it leaves nothing behind: a thread
/// of the disk removes it.
#[derive(Debug)]
pub(crate) struct NewObject(Option<Draft>);

#[derive(Debug)]
struct Draft {
    disk: Arc<Disk>,
    path: ObjectPath,
    file: File,
    sums: SumsWriter,
    /// Of the file and of its checksums.
    paths: [PathBuf; 2],
    room: Room,
    /// Bytes that the file system keeps for it.
    room_bytes: u64,
    bytes: u64,
    /// Bytes that were written since the last sync.
    bytes_to_sync: u64,
    is_sealed: bool,
    /// CRC-32 of what was written.
    crc: crc32fast::Hasher,
}

impl NewObject {
    /// Begin an object; of a length, if that is known.
    pub(crate) fn create(
        disk: &Arc<Disk>,
        path: &ObjectPath,
        length: Option<u64>,
    ) -> Result<NewObject, RequestError> {
        disk.check_present()?;
        let mut room = disk.room();
        room.grow_to(length.unwrap_or(0))?;
        let fail = |error| disk.fail(path, error);
        let paths = disk.new_paths(random_number().map_err(fail)?);
        let file = File::create_new(&paths[0]).map_err(fail)?;
        let sums = File::create_new(&paths[1]).inspect_err(|_| drop(remove(&paths[0])));
        let sums = SumsWriter::new(sums.map_err(fail)?);
        let (disk, path) = (disk.clone(), path.clone());
        let draft = Draft {
            disk,
            path,
            file,
            sums,
            paths,
            room,
            room_bytes: 0,
            bytes: 0,
            bytes_to_sync: 0,
            is_sealed: false,
            crc: crc32fast::Hasher::new(),
        };
        let mut new = NewObject(Some(draft));
        // So that a disk without room says so before the bytes are sent.
        match new.reserve(length.unwrap_or(0)) {
            // File systems that cannot do it write all the same.
            Err(error @ RequestError::DiskFull { .. }) => Err(error),
            _ => Ok(new),
        }
    }

    fn draft(&mut self) -> &mut Draft {
        self.0.as_mut().expect("an object is named once")
    }

    /// The disk that it will be on.
    pub(crate) fn disk(&self) -> Option<&Arc<Disk>> {
        self.0.as_ref().map(|draft| &draft.disk)
    }

    /// Have the file system keep room for `bytes` bytes in all. If it cannot, what was kept before
    /// stays.
    ///
    /// # Errors
    /// [`RequestError::DiskFull`]; with status 501 if the file system cannot.
    pub(crate) fn reserve(&mut self, bytes: u64) -> Result<(), RequestError> {
        let draft = self.draft();
        if bytes <= draft.room_bytes {
            return Ok(());
        }
        let bytes_before = draft.room.bytes();
        draft.room.grow_to(bytes)?;
        draft.grow_file_room(bytes).inspect_err(|_| draft.room.shrink_to(bytes_before))
    }

    /// CRC-32 of what was written.
    pub(crate) fn crc32(&self) -> u32 {
        self.0.as_ref().map_or(0, |draft| draft.crc.clone().finalize())
    }

    /// Bytes that are reserved for it.
    pub(crate) fn room_bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |draft| draft.room_bytes)
    }

    /// Use room that was reserved for the object at a path.
    pub(crate) fn set_path(&mut self, path: &ObjectPath) {
        self.draft().path = path.clone();
    }

    /// Write the next bytes, for a request.
    pub(crate) fn write(&mut self, bytes: &[u8], work: &WorkRecord) -> Result<(), RequestError> {
        let (draft, length) = (self.draft(), bytes.len());
        draft.bytes += length as u64;
        draft.room.grow_to(draft.bytes)?;
        draft.try_write(bytes, work).map_err(|error| draft.fail(error))?;
        draft.disk.counts.write_bytes.fetch_add(length as u64, Ordering::Relaxed);
        draft.bytes_to_sync += length as u64;
        if draft.bytes_to_sync >= SYNC_BYTES {
            let sync = || draft.file.sync_data();
            let result = work.sync(&draft.disk.name, draft.bytes_to_sync as usize, sync);
            result.map_err(|error| draft.fail(error))?;
            draft.bytes_to_sync = 0;
        }
        Ok(())
    }

    /// Wait until all is on the disk, and put the checksums in their place.
    pub(crate) fn seal(&mut self, work: &WorkRecord) -> Result<(), RequestError> {
        let draft = self.draft();
        let (disk, bytes) = (draft.disk.clone(), draft.bytes_to_sync as usize);
        let result = work.sync(&disk.name, bytes, || draft.try_seal());
        result.map_err(|error| draft.fail(error))?;
        draft.is_sealed = true;
        Ok(())
    }

    /// Give the object its name, which must be locked, and the time of now. The object must be sealed.
    /// `replaces`: whether it may replace an object of that name.
    ///
    /// # Errors
    /// With status 412 if there is one that it may not replace.
    pub(crate) fn name(mut self, replaces: bool) -> Result<ObjectStatus, RequestError> {
        let draft = self.draft();
        if !draft.is_sealed {
            return Err(draft.fail(io::Error::other("it is not sealed")));
        }
        let status = draft.set_time().map_err(|error| draft.fail(error))?;
        let folder = draft.disk.make_folder(&draft.path, draft.path.folder())?;
        let from = draft.paths[0].as_path();
        let result = rename(&draft.disk, (CWD, from), (&folder, &draft.path), replaces);
        // It may have its name although that may not be on the disk yet.
        if (result.is_ok() || draft.has_name())
            && let Some(mut draft) = self.0.take()
        {
            let _ = remove(&draft.paths[0]); // the first of two names, if the second step failed
            draft.room.keep(draft.bytes);
        }
        result.map(|()| status)
    }
}

impl Draft {
    fn grow_file_room(&mut self, bytes: u64) -> Result<(), RequestError> {
        let start = self.room_bytes;
        let more = bytes - start;
        // Some file systems would fill themselves before they say that it is too much.
        let (free, _) = free_and_total(&self.disk.member.path).unwrap_or((u64::MAX, 0));
        if more > free {
            let why = format!("{more} more bytes are needed, {free} are free");
            return Err(RequestError::DiskFull { disk: self.disk.name.clone(), why });
        }
        match fallocate(&self.file, FallocateFlags::KEEP_SIZE, start, more) {
            Ok(()) => {
                self.room_bytes = bytes;
                Ok(())
            }
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                let text = format!("disk {}: its file system cannot reserve room", self.disk.name);
                Err(RequestError::refuse(StatusCode::NOT_IMPLEMENTED, text))
            }
            Err(error) => {
                // Some file systems keep what they could reserve. What cannot be freed now is freed
                // by the seal, or with the file.
                let _ = self.free_beyond(start.max(self.bytes));
                Err(self.fail(error.into()))
            }
        }
    }

    /// Free what the file system keeps beyond a place. The file ends there until it is sealed.
    fn free_beyond(&self, place: u64) -> io::Result<()> {
        self.file.set_len(place)?;
        // The first call may make the file longer: that frees nothing. The second frees what is beyond.
        self.file.set_len(place)
    }

    fn try_write(&mut self, bytes: &[u8], work: &WorkRecord) -> io::Result<()> {
        let name = &self.disk.name;
        work.write(name, bytes.len(), || self.file.write_all(bytes))?;
        work.verify(bytes.len(), || {
            self.crc.update(bytes);
            self.sums.add(bytes)
        })
    }

    fn try_seal(&mut self) -> io::Result<()> {
        self.file.set_len(self.bytes)?; // frees room that is not used
        self.file.sync_all()?;
        let status = ObjectStatus::of(&self.file.metadata()?);
        self.sums.finish(status.id)?;
        let place = self.disk.sums_path(status.id.inode);
        let folder = place.parent().unwrap_or(Path::new("/"));
        make_own_folder(folder)?;
        fs::rename(&self.paths[1], &place)?;
        File::open(folder)?.sync_all()
    }

    /// Give it the time at which it gets its name: of two of one name the later counts.
    fn set_time(&self) -> io::Result<ObjectStatus> {
        futimens(&self.file, &unique_times())?;
        self.file.sync_all()?;
        Ok(ObjectStatus::of(&self.file.metadata()?))
    }

    fn fail(&self, error: io::Error) -> RequestError {
        self.disk.fail(&self.path, error)
    }

    /// Whether its file has a name besides ours, or instead of it: then it is an object.
    fn has_name(&self) -> bool {
        match self.file.metadata() {
            Ok(status) => status.nlink() > 1 || status.nlink() == 1 && !self.paths[0].exists(),
            Err(_) => true,
        }
    }

    /// Remove what is there of it. What cannot be removed now is removed at the next start.
    fn discard(self) {
        // The file is still open, so its inode is no other's.
        if !self.has_name()
            && let Ok(status) = self.file.metadata()
        {
            let _ = remove(&self.disk.sums_path(status.ino()));
        }
        self.paths.iter().for_each(|path| drop(remove(path)));
    }
}

impl Drop for NewObject {
    fn drop(&mut self) {
        let Some(draft) = self.0.take() else { return };
        let disk = draft.disk.clone();
        match disk.queue.is_here() {
            true => draft.discard(),
            false => disk.queue.run_later(move || draft.discard()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disks::{Survey, look};
    use crate::object_file::{ObjectFile, Target};
    use crate::start::disks;
    use std::sync::mpsc::channel;
    use std::time::{Duration, SystemTime};
    use tempfile::TempDir;

    fn disk() -> (TempDir, Arc<Disk>) {
        let folder = tempfile::tempdir().unwrap();
        let disks = disks(&[folder.path().to_path_buf()], &[], None).unwrap();
        (folder, disks.all[0].clone())
    }

    fn path() -> ObjectPath {
        ObjectPath::parse("/a").unwrap()
    }

    fn new_files(folder: &TempDir) -> usize {
        fs::read_dir(folder.path().join(".swathe/new")).unwrap().count()
    }

    #[test]
    fn an_object_that_is_given_up_is_removed_by_a_thread_of_the_disk() {
        let (folder, disk) = disk();
        let new = NewObject::create(&disk, &path(), None).unwrap();
        // All threads of the disk are at work, as on one that hangs.
        let gates = (0..crate::disk_queue::THREADS).map(|_| {
            let (gate, wait) = channel::<()>();
            let (sender, is_running) = channel();
            disk.queue.run_later(move || {
                sender.send(()).unwrap();
                let _ = wait.recv();
            });
            is_running.recv().unwrap();
            gate
        });
        let gates: Vec<_> = gates.collect();
        drop(new);
        assert_eq!(new_files(&folder), 2);
        drop(gates);
        while new_files(&folder) > 0 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn an_object_with_a_second_name_keeps_its_checksums() {
        let (folder, disk) = disk();
        let mut new = NewObject::create(&disk, &path(), None).unwrap();
        new.write(b"content", &WorkRecord::default()).unwrap();
        new.seal(&WorkRecord::default()).unwrap();
        // As a rename by two steps that failed between them.
        fs::hard_link(&new.draft().paths[0], folder.path().join("a")).unwrap();
        drop(new);
        while new_files(&folder) > 0 {
            std::thread::yield_now();
        }
        let Some(Target::Object(object)) = ObjectFile::open(&disk, &path()).unwrap() else {
            panic!("expected an object");
        };
        assert!(object.is_verified());
    }

    #[test]
    fn the_seal_of_a_large_object_has_little_to_write() {
        let (_folder, disk) = disk();
        let mut new = NewObject::create(&disk, &path(), None).unwrap();
        let piece = vec![1; 5 << 20];
        for number in 1..=14 {
            new.write(&piece, &WorkRecord::default()).unwrap();
            let expected = if number < 13 { number * (5 << 20) } else { (number - 13) * (5 << 20) };
            assert_eq!(new.draft().bytes_to_sync, expected);
        }
    }

    #[test]
    fn room_that_is_not_used_is_free_again() {
        let (folder, disk) = disk();
        let mut new = NewObject::create(&disk, &path(), None).unwrap();
        if new.reserve(8 << 20).is_err() {
            return; // this file system cannot
        }
        assert!(matches!(new.reserve(1 << 55), Err(RequestError::DiskFull { .. })));
        assert_eq!(new.room_bytes(), 8 << 20);
        new.write(b"content", &WorkRecord::default()).unwrap();
        new.seal(&WorkRecord::default()).unwrap();
        new.name(false).unwrap();
        let status = fs::metadata(folder.path().join("a")).unwrap();
        assert_eq!(status.len(), 7);
        assert!(status.blocks() * 512 < 1 << 20, "{} blocks", status.blocks());
    }

    #[test]
    fn an_object_is_newer_than_all_before_also_if_the_clock_was_set_back() {
        let (folder, disk) = disk();
        let name = |disk: &Arc<Disk>| {
            let mut new = NewObject::create(disk, &path(), None).unwrap();
            new.seal(&WorkRecord::default()).unwrap();
            new.name(true).unwrap().modified()
        };
        name(&disk);
        drop(disk);
        // As if the disk was used by a server whose clock was an hour fast.
        let time = SystemTime::now() + Duration::from_secs(3600);
        File::open(folder.path().join(".swathe/new")).unwrap().set_modified(time).unwrap();
        let disks = disks(&[folder.path().to_path_buf()], &[], None).unwrap();
        assert!(name(&disks.all[0]) > time);
        // Or the object came from elsewhere.
        let time = time + Duration::from_secs(3600);
        File::open(folder.path().join("a")).unwrap().set_modified(time).unwrap();
        let look = look(&disks.all[0], &path());
        Survey::of(vec![(disks.all[0].clone(), look)]).learn_times();
        assert!(name(&disks.all[0]) > time);
    }

    #[test]
    fn what_a_growth_got_before_it_failed_is_free_again() {
        let (folder, disk) = disk();
        let mut new = NewObject::create(&disk, &path(), None).unwrap();
        if new.reserve(1 << 20).is_err() {
            return; // this file system cannot
        }
        let grow = |new: &mut NewObject| {
            let file = &new.draft().file;
            fallocate(file, FallocateFlags::KEEP_SIZE, 1 << 20, 8 << 20).unwrap();
        };
        grow(&mut new);
        new.draft().free_beyond(1 << 20).unwrap();
        let room = new.draft().file.metadata().unwrap().blocks() * 512;
        assert!((1 << 20..2 << 20).contains(&room), "{room} bytes");
        // What could not be freed is freed by the seal, also of an object as long as its room.
        grow(&mut new);
        new.write(&vec![1; 1 << 20], &WorkRecord::default()).unwrap();
        new.seal(&WorkRecord::default()).unwrap();
        new.name(false).unwrap();
        let status = fs::metadata(folder.path().join("a")).unwrap();
        assert_eq!(status.len(), 1 << 20);
        assert!(status.blocks() * 512 < 2 << 20, "{} blocks", status.blocks());
    }

    #[test]
    fn a_growth_that_is_refused_counts_for_no_limit() {
        let folder = tempfile::tempdir().unwrap();
        let disks = disks(&[folder.path().to_path_buf()], &[], Some(1 << 60)).unwrap();
        let mut new = NewObject::create(&disks.all[0], &path(), Some(10)).unwrap();
        let used = || disks.all[0].used_bytes.load(Ordering::Relaxed);
        let before = used();
        assert!(matches!(new.reserve(1 << 55), Err(RequestError::DiskFull { .. })));
        assert_eq!(used(), before);
    }
}
