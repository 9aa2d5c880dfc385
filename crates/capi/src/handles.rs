//! The handles of open objects: whole numbers, as those of files.
//!
//! A number names a place in a table and the generation of what is there, so that a handle that was
//! closed is an error, and never another object. Places are made once and stay, so that a call
//! finds its own with two loads, and no lock that other handles need. No handle is as small as the
//! descriptors of files: one passed to `read(2)` by mistake is an error, too.

use crate::fault::Fault;
use crate::reader::{Cursor, Reader};
use crate::run_reader::RunReader;
use crate::run_writer::RunWriter;
use crate::writer::Writer;
use libc::c_int;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Handles per piece of the table.
const PIECE: usize = 64;
/// The bits of a place: as many objects are open at the same time.
const PLACE_BITS: u32 = 14;
const PLACES: usize = 1 << PLACE_BITS;
const LAST_GENERATION: c_int = 0xffff;

/// An open object.
#[derive(Clone)]
pub(crate) enum OpenObject {
    /// To read.
    Reader(Arc<Reader>),
    /// To write; `None` while it is closed.
    Writer(Arc<Mutex<Option<Writer>>>),
    /// A run to write; `None` while it is ended.
    RunWriter(Arc<Mutex<Option<RunWriter>>>),
    /// A run to read.
    RunReader(Arc<RunReader>),
}

impl OpenObject {
    /// What it is for, in messages.
    fn purpose(&self) -> &'static str {
        match self {
            OpenObject::Reader(_) => "to read",
            OpenObject::Writer(_) => "to write",
            OpenObject::RunWriter(_) => "to write a run",
            OpenObject::RunReader(_) => "to read a run",
        }
    }
}

#[derive(Default)]
struct Place {
    entry: Mutex<Entry>,
    /// Locked during a read from the position on, which may wait for a server.
    cursor: Mutex<Cursor>,
}

#[derive(Default)]
struct Entry {
    handle: c_int,
    generation: c_int,
    object: Option<OpenObject>,
}

static TABLE: [OnceLock<Box<[Place; PIECE]>>; PLACES / PIECE] =
    [const { OnceLock::new() }; PLACES / PIECE];
static FREE: Mutex<FreePlaces> = Mutex::new(FreePlaces { next: 0, after_close: VecDeque::new() });

struct FreePlaces {
    /// The first that was never used.
    next: usize,
    /// In the order in which they were closed: the longest free is used first.
    after_close: VecDeque<usize>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // After a panic, what these guard is checked by who uses it next.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn index_of(handle: c_int) -> usize {
    handle as usize & (PLACES - 1)
}

fn place_of(handle: c_int) -> Option<&'static Place> {
    let index = index_of(handle);
    Some(&TABLE[index / PIECE].get()?[index % PIECE])
}

fn not_open(handle: c_int) -> Fault {
    Fault::new(libc::EBADF, format!("handle {handle}: expected one that is open, found none"))
}

/// A handle of an object.
pub(crate) fn add(object: OpenObject) -> Result<c_int, Fault> {
    let index = {
        let mut free = lock(&FREE);
        match free.after_close.pop_front() {
            Some(index) => index,
            None if free.next < PLACES => {
                free.next += 1;
                free.next - 1
            }
            None => {
                let text = format!("expected at most {PLACES} open objects, found more");
                return Err(Fault::new(libc::EMFILE, text));
            }
        }
    };
    let piece =
        TABLE[index / PIECE].get_or_init(|| Box::new(std::array::from_fn(|_| Place::default())));
    let place = &piece[index % PIECE];
    let mut entry = lock(&place.entry);
    entry.generation = entry.generation % LAST_GENERATION + 1;
    let handle = entry.generation << PLACE_BITS | index as c_int;
    if let OpenObject::Reader(reader) = &object {
        *lock(&place.cursor) = Cursor::start(handle, reader.clone());
    }
    (entry.handle, entry.object) = (handle, Some(object));
    Ok(handle)
}

/// The object of a handle.
fn get(handle: c_int) -> Result<OpenObject, Fault> {
    let place = place_of(handle).ok_or_else(|| not_open(handle))?;
    let entry = lock(&place.entry);
    let object = entry.object.clone().filter(|_| entry.handle == handle);
    object.ok_or_else(|| not_open(handle))
}

/// The object of a handle that is open to read.
pub(crate) fn reader(handle: c_int) -> Result<Arc<Reader>, Fault> {
    match get(handle)? {
        OpenObject::Reader(reader) => Ok(reader),
        other => Err(wrong_way(handle, "to read", &other)),
    }
}

/// Work on the object of a handle that is open to write.
pub(crate) fn with_writer<T>(
    handle: c_int,
    work: impl FnOnce(&mut Writer) -> Result<T, Fault>,
) -> Result<T, Fault> {
    match get(handle)? {
        OpenObject::Writer(writer) => {
            let mut writer = lock(&writer);
            work(writer.as_mut().ok_or_else(|| not_open(handle))?)
        }
        other => Err(wrong_way(handle, "to write", &other)),
    }
}

/// Work on the run of a handle that is open to write one.
pub(crate) fn with_run_writer<T>(
    handle: c_int,
    work: impl FnOnce(&mut RunWriter) -> Result<T, Fault>,
) -> Result<T, Fault> {
    match get(handle)? {
        OpenObject::RunWriter(run) => {
            let mut run = lock(&run);
            work(run.as_mut().ok_or_else(|| not_open(handle))?)
        }
        other => Err(wrong_way(handle, "to write a run", &other)),
    }
}

/// The run of a handle that is open to read one.
pub(crate) fn run_reader(handle: c_int) -> Result<Arc<RunReader>, Fault> {
    match get(handle)? {
        OpenObject::RunReader(run) => Ok(run),
        other => Err(wrong_way(handle, "to read a run", &other)),
    }
}

fn wrong_way(handle: c_int, expected: &str, found: &OpenObject) -> Fault {
    let found = found.purpose();
    let text = format!("handle {handle}: expected one that is open {expected}, found {found}");
    Fault::new(libc::EBADF, text)
}

/// Work on the position of a handle that is open to read.
#[inline]
pub(crate) fn with_cursor<T>(
    handle: c_int,
    work: impl FnOnce(&mut Cursor) -> Result<T, Fault>,
) -> Result<T, Fault> {
    if let Some(place) = place_of(handle) {
        let mut cursor = lock(&place.cursor);
        if cursor.handle == handle && handle > 0 {
            return work(&mut cursor);
        }
    }
    reader(handle)?;
    Err(not_open(handle))
}

/// Fill a buffer of the caller from the position on, if the bytes are in memory and the handle is
/// right; `false` if not. Nothing in it can fail.
#[inline]
pub(crate) fn read_ready(handle: c_int, buffer: &mut [u8]) -> bool {
    let Some(place) = place_of(handle) else { return false };
    let mut cursor = lock(&place.cursor);
    cursor.handle == handle && handle > 0 && cursor.read_ready(buffer)
}

/// Whether a handle is open to write.
pub(crate) fn is_writer(handle: c_int) -> bool {
    matches!(get(handle), Ok(OpenObject::Writer(_)))
}

/// Whether a handle is open to write a run.
pub(crate) fn is_run_writer(handle: c_int) -> bool {
    matches!(get(handle), Ok(OpenObject::RunWriter(_)))
}

/// Remove a handle; its object is closed by who still uses it last.
pub(crate) fn remove(handle: c_int) -> Result<OpenObject, Fault> {
    let place = place_of(handle).ok_or_else(|| not_open(handle))?;
    let object = {
        let mut entry = lock(&place.entry);
        if entry.handle != handle {
            return Err(not_open(handle));
        }
        entry.handle = 0;
        entry.object.take().ok_or_else(|| not_open(handle))?
    };
    *lock(&place.cursor) = Cursor::default();
    lock(&FREE).after_close.push_back(index_of(handle));
    Ok(object)
}
