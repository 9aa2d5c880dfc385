//! Threads that write objects, with bounded memory.

use crate::fault::Fault;
use crate::writer::Writer;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use swathe_store_api::Stores;

const THREADS: usize = 4;
/// Bytes that wait to be written, at most; an object of more waits until it is alone.
const MOST_WAITING: usize = 512 << 20;

/// Threads that write objects. After an error they write no more.
pub(crate) struct WriteThreads {
    work: Arc<Work>,
    threads: Vec<JoinHandle<()>>,
}

struct Work {
    stores: Stores,
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<(String, Vec<u8>)>,
    /// Of the queue and of what is being written.
    bytes: usize,
    writing: usize,
    failure: Option<Fault>,
    is_closed: bool,
}

impl Work {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.news.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Write objects until there will be no more.
    fn run(&self) {
        let mut state = self.lock();
        loop {
            let Some((name, bytes)) = state.queue.pop_front() else {
                if state.is_closed {
                    return;
                }
                state = self.wait(state);
                continue;
            };
            state.writing += 1;
            let has_failed = state.failure.is_some();
            drop(state);
            let result = match has_failed {
                true => Ok(()),
                false => {
                    catch_unwind(AssertUnwindSafe(|| write_object(&self.stores, &name, &bytes)))
                        .unwrap_or_else(|_| {
                            Err(Fault::new(libc::EIO, format!("{name}: internal error")))
                        })
                }
            };
            state = self.lock();
            state.writing -= 1;
            state.bytes -= bytes.len();
            if let Err(fault) = result {
                state.failure.get_or_insert(fault);
            }
            self.news.notify_all();
        }
    }
}

impl WriteThreads {
    /// Threads that write to these stores; they begin with the first object.
    pub(crate) fn new(stores: Stores) -> WriteThreads {
        let (state, news) = (Mutex::default(), Condvar::new());
        WriteThreads { work: Arc::new(Work { stores, state, news }), threads: Vec::new() }
    }

    /// Write an object, in place of one of this name; wait first while too many bytes wait.
    pub(crate) fn write(&mut self, name: String, bytes: Vec<u8>) -> Result<(), Fault> {
        while self.threads.len() < THREADS {
            let work = self.work.clone();
            let thread = std::thread::Builder::new().name("swathe-run".into());
            let thread = thread.spawn(move || work.run()).map_err(|error| {
                Fault::new(libc::EAGAIN, format!("cannot start a thread: {error}"))
            })?;
            self.threads.push(thread);
        }
        let mut state = self.work.lock();
        while state.bytes > 0 && state.bytes + bytes.len() > MOST_WAITING {
            state = self.work.wait(state);
        }
        state.bytes += bytes.len();
        state.queue.push_back((name, bytes));
        self.work.news.notify_all();
        Ok(())
    }

    /// The first error so far.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        self.work.lock().failure.clone().map_or(Ok(()), Err)
    }

    /// Wait until all objects are durable.
    pub(crate) fn wait(&self) -> Result<(), Fault> {
        let mut state = self.work.lock();
        while state.writing > 0 || !state.queue.is_empty() {
            state = self.work.wait(state);
        }
        state.failure.clone().map_or(Ok(()), Err)
    }
}

impl Drop for WriteThreads {
    fn drop(&mut self) {
        self.work.lock().is_closed = true;
        self.work.news.notify_all();
        for thread in self.threads.drain(..) {
            // Its panics are caught, and are errors of what it wrote.
            drop(thread.join());
        }
    }
}

/// Write an object, in place of one of this name; it is durable then.
pub(crate) fn write_object(stores: &Stores, name: &str, bytes: &[u8]) -> Result<(), Fault> {
    let mut writer = Writer::create(stores.clone(), name, true)?;
    writer.write(bytes)?;
    writer.close()
}
