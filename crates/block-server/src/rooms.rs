//! Room for an object before it is written, for a limited time.
//!
//! Room is an object that is being written and has no bytes yet: its file is on the disk, and the file
//! system keeps blocks for it. A PUT that names the room continues with that file, so nobody else can
//! take the blocks in between. Room that is not used in its time goes, as that of a client that was
//! killed.

use crate::disk::Disk;
use crate::error::RequestError;
use crate::new_object::NewObject;
use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

/// The number of a room, in requests and answers.
pub(crate) const ROOM: HeaderName = HeaderName::from_static("swathe-room");
/// Most rooms at a time: each is two open files.
const ROOMS: usize = 256;

/// The number of a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RoomId(pub(crate) u64);

impl RoomId {
    /// The room that a request names.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Option<RoomId>, RequestError> {
        let Some(value) = headers.get(ROOM) else { return Ok(None) };
        let number = value.to_str().ok().and_then(|text| u64::from_str_radix(text, 16).ok());
        let wrong = || {
            let text = format!("Swathe-Room: expected the number of a room, found {value:?}");
            RequestError::refuse(StatusCode::BAD_REQUEST, text)
        };
        number.map(RoomId).map(Some).ok_or_else(wrong)
    }

    fn error(self) -> RequestError {
        let text = format!(
            "Swathe-Room: expected room that is reserved, found none of number {:016x}: its time \
             is over, or the server began again",
            self.0
        );
        RequestError::refuse(StatusCode::PRECONDITION_FAILED, text)
    }
}

/// The rooms of a server.
#[derive(Debug, Default)]
pub(crate) struct Rooms(Mutex<HashMap<RoomId, Room>>);

#[derive(Debug)]
struct Room {
    /// `None` while its disk works on it.
    object: Option<NewObject>,
    disk: Arc<Disk>,
    end: Instant,
    _watcher: Watcher,
}

/// The task that waits for the end of a room: it ends with the room.
#[derive(Debug)]
struct Watcher(AbortHandle);

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Rooms {
    fn lock(&self) -> MutexGuard<'_, HashMap<RoomId, Room>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The disk of a room.
    pub(crate) fn disk(&self, id: RoomId) -> Result<Arc<Disk>, RequestError> {
        self.lock().get(&id).map(|room| room.disk.clone()).ok_or_else(|| id.error())
    }

    /// Take a room, to write the object.
    pub(crate) fn take(&self, id: RoomId) -> Result<NewObject, RequestError> {
        self.lock().remove(&id).and_then(|room| room.object).ok_or_else(|| id.error())
    }

    /// Bytes that are reserved on a disk.
    pub(crate) fn bytes_on(&self, disk: &Arc<Disk>) -> u64 {
        let rooms = self.lock();
        let of_disk = rooms.values().filter(|room| Arc::ptr_eq(&room.disk, disk));
        of_disk.filter_map(|room| Some(room.object.as_ref()?.room_bytes())).sum()
    }

    /// Keep a room until its time is over.
    pub(crate) fn add(
        self: &Arc<Rooms>,
        id: RoomId,
        object: NewObject,
        end: Instant,
    ) -> Result<(), RequestError> {
        let mut rooms = self.lock();
        if rooms.len() >= ROOMS {
            let text = format!("expected at most {ROOMS} rooms at a time; come again");
            return Err(RequestError::refuse(StatusCode::SERVICE_UNAVAILABLE, text));
        }
        let disk = object.disk().cloned().ok_or_else(|| id.error())?;
        let watcher = Watcher(tokio::spawn(self.clone().watch(id)).abort_handle());
        rooms.insert(id, Room { object: Some(object), disk, end, _watcher: watcher });
        Ok(())
    }

    /// Keep a room longer; `false` if it is not there, or has fewer bytes.
    pub(crate) fn renew(&self, id: RoomId, bytes: u64, end: Instant) -> bool {
        let mut rooms = self.lock();
        let Some(room) = rooms.get_mut(&id) else { return false };
        let is_enough = room.object.as_ref().is_some_and(|object| object.room_bytes() >= bytes);
        if is_enough {
            room.end = end;
        }
        is_enough
    }

    /// Take a room out for work on it; its number stays.
    pub(crate) fn borrow(
        &self,
        id: RoomId,
        end: Instant,
    ) -> Result<(NewObject, Arc<Disk>), RequestError> {
        let mut rooms = self.lock();
        let room = rooms.get_mut(&id).ok_or_else(|| id.error())?;
        room.end = end;
        let object = room.object.take().ok_or_else(|| {
            let text = "Swathe-Room: another request changes this room";
            RequestError::refuse(StatusCode::CONFLICT, text)
        })?;
        Ok((object, room.disk.clone()))
    }

    /// Give a room up.
    pub(crate) fn remove(&self, id: RoomId) {
        drop(self.lock().remove(&id));
    }

    /// Put a room back after work on it. One that was given up meanwhile is dropped.
    pub(crate) fn put_back(&self, id: RoomId, object: NewObject) {
        if let Some(room) = self.lock().get_mut(&id) {
            room.object = Some(object);
        }
    }

    /// Give room back when its time is over.
    async fn watch(self: Arc<Rooms>, id: RoomId) {
        loop {
            let Some(end) = self.lock().get(&id).map(|room| room.end) else { return };
            if end <= Instant::now() {
                drop(self.lock().remove(&id));
                return;
            }
            sleep_until(end).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object_path::ObjectPath;
    use crate::start::disks;
    use hyper::header::HeaderValue;
    use std::time::Duration;

    #[test]
    fn rooms_have_numbers() {
        let id =
            |value| RoomId::of(&HeaderMap::from_iter([(ROOM, HeaderValue::from_static(value))]));
        assert_eq!(RoomId::of(&HeaderMap::new()).unwrap(), None);
        assert_eq!(id("ff").unwrap(), Some(RoomId(255)));
        assert_eq!(id("room").unwrap_err().status().as_u16(), 400);
        let error = Rooms::default().take(RoomId(1)).unwrap_err();
        assert_eq!(error.status().as_u16(), 412);
    }

    #[test]
    fn a_room_that_is_gone_has_no_watcher() {
        let folder = tempfile::tempdir().unwrap();
        let disks = disks(&[folder.path().to_path_buf()], &[], None).unwrap();
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().build().unwrap().block_on(async {
            let path = ObjectPath::parse("/a").unwrap();
            for seconds in [3600, 0] {
                let object = NewObject::create(&disks.all[0], &path, None).unwrap();
                let end = Instant::now() + Duration::from_secs(seconds);
                disks.rooms.add(RoomId(1), object, end).unwrap();
                tokio::task::yield_now().await;
                if seconds > 0 {
                    disks.rooms.take(RoomId(1)).unwrap();
                }
                while Arc::strong_count(&disks.rooms) > 1 {
                    tokio::task::yield_now().await;
                }
                assert!(disks.rooms.lock().is_empty());
            }
        });
    }
}
