//! How long the threads of the network were ready to run, but no core was free: a wait that is this
//! computer's, and not the network's.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The accounts of the threads, with the process that they are of: a fork takes no threads along.
static ACCOUNTS: Mutex<(u32, Vec<File>)> = Mutex::new((0, Vec::new()));

/// Account for this thread from now on, if the system does: Linux.
pub(crate) fn note_thread() {
    let Ok(account) = File::open("/proc/thread-self/schedstat") else { return };
    let mut accounts = ACCOUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if accounts.0 != process {
        *accounts = (process, Vec::new());
    }
    accounts.1.push(account);
}

/// The time that the threads of the network have waited for a core, all together; zero where the
/// system does not say.
pub fn delayed() -> Duration {
    let accounts = ACCOUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    Duration::from_nanos(accounts.1.iter().filter_map(waited_ns).sum())
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
    fn a_thread_that_waits_for_a_core_is_delayed() {
        if !std::path::Path::new("/proc/thread-self/schedstat").exists() {
            return;
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let work = || {
            note_thread();
            let (before, begin) = (delayed(), Instant::now());
            // More threads than cores: some wait, however fast the computer is. The account of a
            // thread ends with it.
            while delayed() <= before && begin.elapsed() < Duration::from_secs(20) {
                std::hint::spin_loop();
            }
            delayed() > before
        };
        let has_waited = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4 * cores).map(|_| scope.spawn(work)).collect();
            threads.into_iter().any(|thread| thread.join().expect("it does not panic"))
        });
        assert!(has_waited);
    }
}
