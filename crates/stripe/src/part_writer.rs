//! Writing one part, in a thread of its own.

use crate::liveness::while_alive;
use crate::read_events::in_part;
use crate::server::Server;
use bytes::{Bytes, BytesMut};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use swathe_store::{ObjectWriter, PART_BYTES, part_bytes};
use swathe_store_api::{Failure, Interrupt, Room, StoreError, Version};
use swathe_trace::Scope;

/// Bytes that are handed over at a time to a store that takes a long part by one request.
const STREAM_BYTES: u64 = 1 << 20;
/// Blocks that wait to be written.
const QUEUE: usize = 2;
/// How long the end of a part is waited for at a time.
const STEP: Duration = Duration::from_millis(100);

/// A part that is being written.
pub(crate) struct PartWriter {
    sender: Option<SyncSender<Bytes>>,
    thread: Option<JoinHandle<Result<Version, Failure>>>,
    /// Why it is not begun.
    absence: Option<StoreError>,
    interrupt: Interrupt,
    server: Option<Arc<Server>>,
    /// Whether it was written; once it ended.
    end: Arc<(Mutex<Option<bool>>, Condvar)>,
}

impl PartWriter {
    /// Begin to write a part of `size` bytes to a path of a server, perhaps in room that was
    /// reserved.
    pub(crate) fn start(
        server: Arc<Server>,
        (part, path): (u32, String),
        size: u64,
        room: Option<Box<dyn Room>>,
    ) -> Result<PartWriter, StoreError> {
        let (sender, receiver) = sync_channel(QUEUE);
        let (scope, interrupt) = (Scope::current(), Interrupt::current().child());
        let url = path.clone();
        let end = Arc::<(Mutex<Option<bool>>, Condvar)>::default();
        let (inner, place) = (interrupt.clone(), server.clone());
        let last = End(end.clone());
        let work = move || {
            scope.enter();
            inner.enter();
            let result = in_part(part, || write(&server, &path, size, room, &receiver));
            last.tell(result.is_ok());
            result
        };
        let thread = std::thread::Builder::new().name("swathe-part".into()).spawn(work);
        let thread = thread.map_err(|source| StoreError::Io { url, source })?;
        let (sender, thread, server) = (Some(sender), Some(thread), Some(place));
        Ok(PartWriter { sender, thread, absence: None, interrupt, server, end })
    }

    /// A part that is not written, and why.
    pub(crate) fn absent(why: StoreError) -> PartWriter {
        let end = Arc::new((Mutex::new(Some(false)), Condvar::new()));
        let (interrupt, absence) = (Interrupt::default(), Some(why));
        PartWriter { sender: None, thread: None, absence, interrupt, server: None, end }
    }

    fn state(&self) -> Option<bool> {
        *self.end.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing more is done for it.
    pub(crate) fn has_ended(&self) -> bool {
        self.state().is_some()
    }

    /// Whether all of it is written and checked.
    pub(crate) fn is_written(&self) -> bool {
        self.state() == Some(true)
    }

    /// Wait until it has ended, but not long.
    pub(crate) fn wait_a_moment(&self) {
        let state = self.end.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.end.1.wait_timeout_while(state, STEP, |state| state.is_none()));
    }

    /// End it, as its server is too late.
    pub(crate) fn interrupt(&self) {
        if let (false, Some(server)) = (self.has_ended(), &self.server) {
            server.note_hang();
            self.interrupt.set();
        }
    }

    /// Write the next block; `false` if the part failed.
    pub(crate) fn write(&mut self, block: Bytes) -> bool {
        let is_sent = self.sender.as_ref().is_some_and(|sender| sender.send(block).is_ok());
        if !is_sent {
            self.sender = None;
        }
        is_sent
    }

    /// Whether it did not fail yet, as far as is known.
    pub(crate) fn is_going(&self) -> bool {
        self.sender.is_some()
    }

    /// Say that no more blocks follow. Of several parts, all are told before one is waited for: each
    /// sends its last bytes then.
    pub(crate) fn end(&mut self) {
        self.sender = None;
    }

    /// Wait until all of it is written and checked; the version that its server gave it.
    pub(crate) fn finish(mut self) -> Result<Version, Failure> {
        self.end();
        if let Some(why) = self.absence.take() {
            return Err(why.into());
        }
        let thread = self.thread.take().expect("a part is finished once");
        let result = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let is_left_out = self.interrupt.is_set() && !Interrupt::current().is_set();
        match (result, &self.server) {
            (Err(Failure { error: StoreError::Interrupted { .. }, .. }), Some(server))
                if is_left_out =>
            {
                Err(server.absence().into())
            }
            (result, _) => result,
        }
    }
}

/// Tells that a part has ended, also where its thread panics.
struct End(Arc<(Mutex<Option<bool>>, Condvar)>);

impl End {
    fn tell(&self, is_written: bool) {
        let mut state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.get_or_insert(is_written);
        self.0.1.notify_all();
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.tell(false);
    }
}

impl Drop for PartWriter {
    fn drop(&mut self) {
        // Too few bytes: what was written is thrown away.
        self.end();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn write(
    server: &Server,
    path: &str,
    size: u64,
    room: Option<Box<dyn Room>>,
    blocks: &Receiver<Bytes>,
) -> Result<Version, Failure> {
    let is_one_request = size > PART_BYTES && !server.store().takes_any_size();
    let write_bytes = if is_one_request { STREAM_BYTES } else { part_bytes(size) };
    let mut writer = alive(server, || match room {
        Some(room) => Ok(server.fill(room, path, size, write_bytes)?),
        None => Ok(server.write(path, size, write_bytes)?),
    })?;
    match write_blocks(server, &mut writer, (path, size), write_bytes, blocks) {
        Ok(last) => alive(server, || {
            if !last.is_empty() {
                writer.write(last.freeze())?;
            }
            let object = writer.finish(true)?.verify(|| Interrupt::current().is_set())?;
            let version = object.map(|object| object.version);
            version.ok_or_else(|| StoreError::Interrupted { url: path.to_string() }.into())
        }),
        Err(failure) => {
            if server.is_known_to_fail() {
                // It is not waited for while it is told to remove what it has.
                let (outer, end) = (Interrupt::current(), Interrupt::default());
                end.set();
                end.enter();
                drop(writer);
                outer.enter();
            }
            Err(failure)
        }
    }
}

/// Do work on a server while it is alive, and remember if it failed.
fn alive<T>(server: &Server, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let began = Instant::now();
    let result = while_alive(server, |_| work()).map_err(Failure::from).flatten();
    if let Err(Failure { error: StoreError::Network { .. }, .. }) = &result {
        server.note_failure_after(began.elapsed());
    }
    result
}

/// Write blocks, in pieces of `write_bytes`; the last piece is returned.
fn write_blocks(
    server: &Server,
    writer: &mut ObjectWriter,
    (path, size): (&str, u64),
    write_bytes: u64,
    blocks: &Receiver<Bytes>,
) -> Result<BytesMut, Failure> {
    let (mut waiting, mut count) = (BytesMut::new(), 0);
    let mut write = |piece: Bytes| alive(server, || writer.write(piece));
    for block in blocks {
        count += block.len() as u64;
        let mut rest = block;
        while !rest.is_empty() {
            let room = (write_bytes as usize) - waiting.len();
            let next = rest.split_to(room.min(rest.len()));
            let is_whole = waiting.is_empty() && next.len() as u64 == write_bytes;
            if is_whole {
                write(next)?;
                continue;
            }
            waiting.extend_from_slice(&next);
            if waiting.len() as u64 == write_bytes {
                write(waiting.split().freeze())?;
            }
        }
    }
    if count != size {
        let (url, start) = (path.to_string(), 0);
        return Err(StoreError::ShortRead { url, start, expected: size, found: count }.into());
    }
    Ok(waiting)
}
