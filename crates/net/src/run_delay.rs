//! How long the threads of the network were ready to run, but no core was free: a wait that is this
//! computer's, and not the network's.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// The accounts that the system has of the threads of a process.
struct Accounts {
    /// The process that they are of: a fork takes no threads along.
    process: u32,
    threads: Vec<(ThreadId, File)>,
    /// Nanoseconds that threads had waited when they ended.
    ended_ns: u64,
}

static ACCOUNTS: Mutex<Accounts> =
    Mutex::new(Accounts { process: 0, threads: Vec::new(), ended_ns: 0 });

fn accounts() -> MutexGuard<'static, Accounts> {
    ACCOUNTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Account for this thread from now on, if the system does: Linux.
pub(crate) fn note_thread() {
    let Ok(account) = File::open("/proc/thread-self/schedstat") else { return };
    let mut accounts = accounts();
    let process = std::process::id();
    if accounts.process != process {
        *accounts = Accounts { process, threads: Vec::new(), ended_ns: 0 };
    }
    accounts.threads.push((thread::current().id(), account));
}

/// Close the account of this thread, which ends. Threads that look up names come and go.
pub(crate) fn forget_thread() {
    let (mut accounts, thread) = (accounts(), thread::current().id());
    if let Some(at) = accounts.threads.iter().position(|&(id, _)| id == thread) {
        let (_, account) = accounts.threads.swap_remove(at);
        accounts.ended_ns += waited_ns(&account).unwrap_or(0);
    }
}

/// The time that the threads of the network have waited for a core, all together; zero where the
/// system does not say.
pub fn core_wait() -> Duration {
    let accounts = accounts();
    let running_ns = accounts.threads.iter().filter_map(|(_, account)| waited_ns(account));
    Duration::from_nanos(accounts.ended_ns + running_ns.sum::<u64>())
}

/// The second number of an account: nanoseconds in the queue of a core.
fn waited_ns(account: &File) -> Option<u64> {
    let mut text = [0; 96];
    let length = account.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..length]).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_thread_that_waits_for_a_core_is_delayed_and_leaves_no_open_file() {
        if !std::path::Path::new("/proc/thread-self/schedstat").exists() {
            return;
        }
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let (before, until) = (core_wait(), Instant::now() + Duration::from_secs(60));
        let work = || {
            note_thread();
            // More threads than cores: some wait, however fast the computer is.
            while core_wait() == before && Instant::now() < until {
                std::hint::spin_loop();
            }
            forget_thread();
            thread::current().id()
        };
        let ids: Vec<ThreadId> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4 * cores).map(|_| scope.spawn(work)).collect();
            threads.into_iter().map(|thread| thread.join().expect("ended")).collect()
        });
        assert!(core_wait() > before, "what they waited is kept");
        assert!(accounts().threads.iter().all(|(id, _)| !ids.contains(id)));
    }
}
