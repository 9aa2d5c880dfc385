//! Room in a folder of this machine: a file without a name, so that it is free again when its process
//! ends, in whatever way.

use crate::place::Place;
use crate::write::NewFile;
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, openat};
use rustix::io::Errno;
use std::fs::File;
use swathe_store_api::{ObjectName, Room, Sink, StoreError};

/// Finds the place of an object of the store.
pub(crate) type PlaceOf = Box<dyn Fn(ObjectName<'_>) -> Result<Place, StoreError> + Send>;

pub(crate) struct LocalRoom {
    place_of: PlaceOf,
    url: String,
    file: File,
    bytes: u64,
}

impl LocalRoom {
    /// Room for a file of `bytes` bytes in the folder of a place.
    pub(crate) fn create(
        place: &Place,
        bytes: u64,
        place_of: PlaceOf,
    ) -> Result<LocalRoom, StoreError> {
        let (folder, _) = place.make_folder()?;
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = match openat(&folder, ".", flags, Mode::from_raw_mode(0o666)) {
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => return Err(no_room(&place.url)),
            file => {
                File::from(file.map_err(|error| StoreError::from_io(&place.url, error.into()))?)
            }
        };
        let mut room = LocalRoom { place_of, url: place.url.clone(), file, bytes: 0 };
        room.grow(bytes)?;
        Ok(room)
    }
}

fn no_room(url: &str) -> StoreError {
    StoreError::Unsupported { url: url.into(), why: "its file system cannot reserve room".into() }
}

impl Room for LocalRoom {
    fn grow(&mut self, bytes: u64) -> Result<(), StoreError> {
        if bytes <= self.bytes {
            return Ok(());
        }
        match fallocate(&self.file, FallocateFlags::empty(), 0, bytes) {
            Ok(()) => {
                self.bytes = bytes;
                Ok(())
            }
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Err(no_room(&self.url)),
            Err(error) => {
                // Some file systems keep what they could reserve.
                let fail = |error| StoreError::from_io(&self.url, error);
                self.file.set_len(self.bytes).map_err(fail)?;
                Err(fail(error.into()))
            }
        }
    }

    fn fill(
        self: Box<Self>,
        object: ObjectName<'_>,
        _size: u64,
        _in_parts: bool,
    ) -> Result<Box<dyn Sink>, StoreError> {
        let place = (self.place_of)(object)?;
        Ok(Box::new(NewFile::in_room(&place, self.file, self.bytes)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use swathe_store_api::{PartSums, part_name};

    #[test]
    fn room_is_filled_by_the_object_and_the_rest_is_free() {
        let folder = tempfile::tempdir().expect("a folder");
        let url = folder.path().join("below/object").display().to_string();
        let object = ObjectName { url: &url, qualified_name: None };
        let place_of = |object: ObjectName<'_>| Place::free(object.url.into());
        let place = place_of(object).expect("a place");
        let mut room = match LocalRoom::create(&place, 1 << 20, Box::new(place_of)) {
            Err(StoreError::Unsupported { .. }) => return, // this file system cannot
            room => room.expect("room"),
        };
        room.grow(4 << 20).expect("more");
        assert!(room.grow(1 << 55).is_err());
        let files = || fs::read_dir(folder.path().join("below")).expect("listed").count();
        assert_eq!(files(), 0, "it has no name");
        // One that was left behind gives way.
        fs::write(folder.path().join("below").join(part_name("object")), "old").expect("written");
        let mut sink = Box::new(room).fill(object, 4, true).expect("begun");
        let (part, mut sums) = (Bytes::from_static(b"part"), PartSums::default());
        sums.add(&part);
        sink.write(part).map_err(|failure| failure.error).expect("written");
        sink.finish(&sums, 4, false).map_err(|failure| failure.error).expect("named");
        let status = fs::metadata(&url).expect("a file");
        assert_eq!((status.len(), files()), (4, 1));
        assert!(status.blocks() * 512 < 1 << 20, "{} blocks", status.blocks());
    }
}
