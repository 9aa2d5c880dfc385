//! Threads that wait for servers. They are used again: opening an object and cutting from it take
//! several, for some milliseconds each, and to start one takes longer than to wake one.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread::{Builder, ThreadId, current};
use std::time::Duration;
use swathe_store_api::Interrupt;
use swathe_trace::Scope;

/// How long a thread without work waits for more.
const IDLE: Duration = Duration::from_secs(1);

type Work = Box<dyn FnOnce() + Send>;

/// Threads without work.
struct IdleThreads {
    /// The process that they are of: a fork takes no threads along.
    process: u32,
    /// Last the one that had work last.
    threads: Vec<(ThreadId, Sender<Work>)>,
}

/// Those of this process; `None` if another thread has the list, or had it when this process was
/// forked: nobody waits for it.
fn idle_threads() -> Option<MutexGuard<'static, IdleThreads>> {
    static IDLE_THREADS: Mutex<IdleThreads> =
        Mutex::new(IdleThreads { process: 0, threads: Vec::new() });
    let mut idle = match IDLE_THREADS.try_lock() {
        Ok(idle) => idle,
        Err(TryLockError::Poisoned(error)) => error.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    let process = std::process::id();
    if idle.process != process {
        *idle = IdleThreads { process, threads: Vec::new() };
    }
    Some(idle)
}

/// Do work in a thread that has none, or in a new one. A panic ends the work only.
///
/// # Errors
/// If no thread can be started.
pub(crate) fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let work: Work = Box::new(work);
    let idle = idle_threads().and_then(|mut idle| idle.threads.pop());
    match idle {
        // It is no longer in the list, so it waits until this comes.
        Some((_, thread)) => {
            thread.send(work).map_err(|_| io::Error::other("a thread that had no work ended"))
        }
        None => Builder::new().name("swathe-stripe".into()).spawn(|| serve(work)).map(drop),
    }
}

/// Do work, and then more, until there was none for a time.
fn serve(work: Work) {
    let (sender, receiver) = channel();
    let mut next = Some(work);
    while let Some(work) = next {
        // The panic was reported when it happened.
        drop(catch_unwind(AssertUnwindSafe(work)));
        Interrupt::default().enter();
        Scope::default().enter();
        let Some(mut idle) = idle_threads() else { return };
        idle.threads.push((current().id(), sender.clone()));
        drop(idle);
        next = wait(&receiver);
    }
}

/// Wait for work; `None` once there was none for a time, and this thread is not in the list.
fn wait(receiver: &Receiver<Work>) -> Option<Work> {
    loop {
        if let Ok(work) = receiver.recv_timeout(IDLE) {
            return Some(work);
        }
        let Some(mut idle) = idle_threads() else { continue };
        let own = idle.threads.iter().position(|(id, _)| *id == current().id());
        // Else work is on its way to it.
        if let Some(at) = own {
            idle.threads.remove(at);
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn threads_are_used_again_also_after_a_panic_and_have_nothing_of_the_work_before() {
        spawn(|| panic!("a test of panics")).expect("a thread");
        let (sender, receiver) = channel();
        let ids = (0..100).map(|_| {
            let sender = sender.clone();
            let work = move || {
                let is_set = Interrupt::current().is_set();
                let interrupt = Interrupt::default();
                interrupt.enter();
                interrupt.set();
                sender.send((current().id(), is_set)).expect("heard");
            };
            spawn(work).expect("a thread");
            let (id, is_set) = receiver.recv().expect("work is done");
            assert!(!is_set);
            id
        });
        assert!(ids.collect::<HashSet<ThreadId>>().len() < 100);
    }

    #[test]
    fn work_is_done_at_the_same_time() {
        let (first, second) = (channel::<()>(), channel::<()>());
        let (done, ends) = channel();
        let (go, heard) = (second.0, first.1);
        let other = done.clone();
        spawn(move || {
            heard.recv().expect("the other runs");
            drop(go);
            done.send(1).expect("heard");
        })
        .expect("a thread");
        spawn(move || {
            first.0.send(()).expect("heard");
            let end = second.1.recv();
            assert!(end.is_err());
            other.send(2).expect("heard");
        })
        .expect("a thread");
        assert_eq!(ends.iter().sum::<i32>(), 3);
    }
}
