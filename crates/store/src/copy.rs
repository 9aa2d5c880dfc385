//! Copies of objects from store to store, many at a time.
//!
//! A copy is of the requested version, or an error. Servers make it where they can
//! ([`server_copies`](crate::server_copies)); else its bytes pass through us. Then it is verified: the
//! bytes read have the length of that version, and what was written is read back, unless the store's
//! ETag is the MD5 of what it was sent. It is seen under its name when it is whole
//! (`docs/design/010-mirror.md`).

use crate::object_writer::{ObjectWriter, PART_BYTES, VerifiedObject, part_bytes, parts};
use crate::remote::RetryState;
use crate::server_copies::{CopyNames, ServerFailure, copy_by_servers};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use swathe_store_api::{Failure, Source, StoreError, Stores, Version};
use swathe_trace::Scope;

/// No object is larger: a server that says so would have memory filled with the list of its parts.
const LARGEST_BYTES: u64 = 16 << 40;
/// While waiting to send an object again, check this often whether to stop.
const STEP: Duration = Duration::from_millis(200);
/// Parts of one object that are in memory: while one is written, another is read. How many objects
/// are copied at the same time is the caller's choice.
const STREAMS: u32 = 2;

/// One object to copy.
#[derive(Clone, Debug)]
pub struct CopyOrder {
    /// The object.
    pub from: String,
    /// The version it must have, as text; `None` for the one it has when it is opened.
    pub version: Option<String>,
    /// The target.
    pub to: String,
    /// Whether an object of this name may be replaced.
    pub replaces: bool,
}

/// A copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyResult {
    /// The version of the copy.
    pub version: Version,
    /// Whether it was read to compare it, as no checksum of its store shows that it is whole.
    pub read_back: bool,
    /// Warnings of its store, as when not all of its parts could be written.
    pub notes: Vec<String>,
    /// How its bytes came there.
    pub route: CopyRoute,
}

impl CopyResult {
    fn new(object: VerifiedObject, route: CopyRoute) -> CopyResult {
        let VerifiedObject { version, read_back, notes } = object;
        CopyResult { version, read_back, notes, route }
    }
}

/// How the bytes of a copy came to its store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyRoute {
    /// Its servers copied them.
    Servers,
    /// Through us, as one end is a folder of this machine.
    Here,
    /// Through us, though both ends are servers, for this reason.
    Detour(String),
}

/// An order that was carried out, or could not be.
#[derive(Debug)]
pub struct CopyOutcome {
    /// Which, from 0.
    pub number: usize,
    /// Its result.
    pub outcome: Result<CopyResult, StoreError>,
}

/// Copies in progress, in threads of their own; they stop when this is dropped.
pub struct Copies {
    outcomes: Mutex<Receiver<CopyOutcome>>,
    state: Arc<CopyState>,
}

/// Starts a thread.
type Spawn<'a> = dyn FnMut(Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> + 'a;

struct CopyState {
    stores: Stores,
    orders: Vec<CopyOrder>,
    next: AtomicUsize,
    bytes: AtomicU64,
    stop: AtomicBool,
}

/// What attempts to copy an object have in common.
struct CopyAttempt {
    replaces: bool,
    /// Bytes that the present one copied.
    bytes: AtomicU64,
    /// Known when servers were asked.
    route: Option<CopyRoute>,
}

impl Copies {
    /// Start copying with a number of threads, each with one object at a time.
    ///
    /// # Errors
    /// [`StoreError::Io`] if a thread cannot be started.
    pub fn start(
        stores: Stores,
        orders: Vec<CopyOrder>,
        threads: usize,
    ) -> Result<Copies, StoreError> {
        let thread = || std::thread::Builder::new().name("swathe-copy".into());
        Copies::start_by(stores, orders, threads, &mut |work| thread().spawn(work))
    }

    fn start_by(
        stores: Stores,
        orders: Vec<CopyOrder>,
        threads: usize,
        spawn: &mut Spawn<'_>,
    ) -> Result<Copies, StoreError> {
        let (sender, receiver) = channel();
        let threads = threads.clamp(1, orders.len().max(1));
        let (next, bytes, stop) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicBool::new(false));
        let state = Arc::new(CopyState { stores, orders, next, bytes, stop });
        let copies = Copies { outcomes: Mutex::new(receiver), state };
        let mut handles = Vec::new();
        for _ in 0..threads {
            let (ours, sender, scope) = (copies.state.clone(), sender.clone(), Scope::current());
            let work = move || {
                scope.enter();
                ours.work(&sender);
            };
            match spawn(Box::new(work)) {
                Ok(thread) => handles.push(thread),
                Err(source) => {
                    // Nothing is copied once this has failed.
                    copies.stop();
                    handles.into_iter().for_each(|thread| drop(thread.join()));
                    return Err(StoreError::Io { url: "a thread".into(), source });
                }
            }
        }
        Ok(copies)
    }

    /// Outcomes since the last call, after at most this time; `None` when all are returned.
    pub fn poll(&self, timeout: Duration) -> Option<Vec<CopyOutcome>> {
        let outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        match outcomes.recv_timeout(timeout) {
            Ok(first) => Some(std::iter::once(first).chain(outcomes.try_iter()).collect()),
            Err(RecvTimeoutError::Timeout) => Some(Vec::new()),
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }

    /// Bytes written so far, without those of attempts that failed.
    pub fn bytes(&self) -> u64 {
        self.state.bytes.load(Ordering::Relaxed)
    }

    /// Begin no further object, and go on with none for more than a part.
    pub fn stop(&self) {
        self.state.stop.store(true, Ordering::Relaxed);
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        self.stop();
    }
}

impl CopyState {
    fn work(&self, sender: &Sender<CopyOutcome>) {
        while !self.is_stopped() {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(order) = self.orders.get(number) else { break };
            let outcome = match self.copy(order) {
                Ok(None) => break,
                Ok(Some(result)) => Ok(result),
                Err(error) => Err(error),
            };
            if sender.send(CopyOutcome { number, outcome }).is_err() {
                break;
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Copy an object; `None` if it was stopped.
    fn copy(&self, order: &CopyOrder) -> Result<Option<CopyResult>, StoreError> {
        let mut patience = RetryState::new();
        let mut attempt = CopyAttempt {
            // From the first attempt that gives the copy its name, the object there is ours.
            replaces: order.replaces,
            bytes: AtomicU64::new(0),
            route: None,
        };
        loop {
            let failure = match self.attempt(order, &mut attempt) {
                Ok(result) => return Ok(result),
                Err(failure) => failure,
            };
            self.count(&attempt, 0);
            let until = Instant::now() + patience.pause(failure, false)?;
            loop {
                if self.is_stopped() {
                    return Ok(None);
                }
                match until.saturating_duration_since(Instant::now()) {
                    Duration::ZERO => break,
                    rest => std::thread::sleep(rest.min(STEP)),
                }
            }
        }
    }

    /// Set the number of bytes that an attempt has copied.
    fn count(&self, attempt: &CopyAttempt, bytes: u64) {
        let before = attempt.bytes.swap(bytes, Ordering::Relaxed);
        self.bytes.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Try once.
    fn attempt(
        &self,
        order: &CopyOrder,
        attempt: &mut CopyAttempt,
    ) -> Result<Option<CopyResult>, Failure> {
        let source = self.at_version(order, order.version.as_deref())?;
        let size = source.len();
        if size > LARGEST_BYTES {
            let (url, most) = (source.url().to_string(), LARGEST_BYTES >> 40);
            let why = format!("expected an object of at most {most} TiB, found {size} bytes");
            return Err(StoreError::Unsupported { url, why }.into());
        }
        let route = match &attempt.route {
            // Servers that did not copy it are not asked again.
            Some(route) => route.clone(),
            None => {
                let (from, to, replaces) = (&order.from, &order.to, attempt.replaces);
                let progress = |bytes| {
                    self.count(attempt, bytes);
                    !self.is_stopped()
                };
                let names = CopyNames { from, to, replaces };
                match copy_by_servers(&self.stores, names, &*source, &progress) {
                    Ok(object) => {
                        return Ok(Some(CopyResult::new(object, CopyRoute::Servers)));
                    }
                    Err(_) if self.is_stopped() => return Ok(None),
                    Err(ServerFailure::Failed(failure)) => return Err(failure),
                    Err(ServerFailure::NoServers) => CopyRoute::Here,
                    Err(ServerFailure::Unable(why)) => CopyRoute::Detour(why),
                }
            }
        };
        self.count(attempt, 0);
        attempt.route = Some(route.clone());
        let object = self.copy_here(order, &*source, attempt)?;
        Ok(object.map(|object| CopyResult::new(object, route)))
    }

    /// Copy an object by way of this process.
    fn copy_here(
        &self,
        order: &CopyOrder,
        source: &dyn Source,
        attempt: &mut CopyAttempt,
    ) -> Result<Option<VerifiedObject>, Failure> {
        let size = source.len();
        let part_bytes = match self.stores.locate(&order.to).0.is_bucket() {
            true => part_bytes(size),
            false => PART_BYTES,
        };
        let parts = parts(size, part_bytes);
        let in_parts = parts.len() > 1;
        let mut writer = ObjectWriter::create(&self.stores, &order.to, size, in_parts, part_bytes)?;
        let mut byte_count = 0;
        for part in source.fetch(parts, STREAMS) {
            let part = part?;
            if self.is_stopped() {
                return Ok(None);
            }
            byte_count += part.len() as u64;
            writer.write(part)?;
            self.count(attempt, byte_count);
        }
        if source.is_local() {
            // Servers check the version with each part.
            drop(self.at_version(order, Some(&source.version().to_string()))?);
        }
        let copy = writer.finish(attempt.replaces)?;
        attempt.replaces = true;
        let mut object = copy.verify(|| self.is_stopped())?;
        if let Some(object) = &mut object {
            object.notes.extend(source.take_notes());
        }
        Ok(object)
    }

    /// The object at a version, or at any.
    fn at_version(
        &self,
        order: &CopyOrder,
        expected: Option<&str>,
    ) -> Result<Arc<dyn Source>, StoreError> {
        let Some(expected) = expected else { return self.stores.open(&order.from) };
        let version = expected.split_once(' ').and_then(|(size, tag)| {
            Some(Version { size: size.parse().ok()?, tag: tag.to_string() })
        });
        if let Some(version) = version
            && let Some(source) = self.stores.assume(&order.from, version)?
        {
            return Ok(source);
        }
        let source = self.stores.open(&order.from)?;
        let found = source.version().to_string();
        if found == expected {
            return Ok(source);
        }
        let (url, expected) = (source.url().to_string(), format!("version {expected}"));
        Err(StoreError::Differs { url, expected, found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object_writer::MOST_PARTS;
    use crate::open::stores;

    #[test]
    fn nothing_is_copied_where_not_all_threads_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::File::create(path("from")).unwrap().set_len(64 * PART_BYTES).unwrap();
        let version = stores(Vec::new()).open(&path("from")).unwrap().version().to_string();
        let to = |number| CopyOrder {
            from: path("from"),
            version: Some(version.clone()),
            to: path(&format!("to-{number}")),
            replaces: true,
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let mut first = true;
        let result = Copies::start_by(stores(Vec::new()), vec![to(1), to(2)], 2, &mut |work| {
            let is_over = is_over.clone();
            if !std::mem::take(&mut first) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(std::thread::spawn(move || {
                work();
                is_over.store(true, Ordering::Relaxed);
            }))
        });
        let error = result.map(|_| ()).unwrap_err();
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
        assert!(is_over.load(Ordering::Relaxed), "a thread goes on");
        let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(files.len(), 1, "{files:?}");
    }

    #[test]
    fn parts_are_as_stores_take_them() {
        assert_eq!(parts(0, part_bytes(0)), []);
        assert_eq!(parts(5, part_bytes(5)), [0..5]);
        for size in [PART_BYTES, PART_BYTES + 1, 100 << 30, 5 << 40] {
            let parts = parts(size, part_bytes(size));
            assert!(parts.len() as u64 <= MOST_PARTS);
            let lengths: Vec<u64> = parts.iter().map(|part| part.end - part.start).collect();
            assert_eq!(lengths.iter().sum::<u64>(), size);
            // Some stores want all but the last to be of one size.
            assert!(lengths[..lengths.len() - 1].iter().all(|&length| length == part_bytes(size)));
        }
    }
}
