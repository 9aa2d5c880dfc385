//! Work on a server that may take long, and is ended when the server has died meanwhile.
//!
//! How long it takes to write some MiB, or to list a large folder, says nothing of a server: its line
//! may be slow. So one that does nothing for a while is asked something short beside the work.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use swathe_store_api::{Interrupt, StoreError};

/// How long a server may do nothing before it is asked whether it is there,
const SILENCE: Duration = Duration::from_secs(2);
/// and one that failed when it was last asked.
const FAILED_SILENCE: Duration = Duration::from_millis(200);

/// What may die while it is waited for.
pub(crate) trait Living: Sync {
    /// Whether it can be asked beside its work.
    fn is_watched(&self) -> bool;

    /// Whether it failed when it was last asked.
    fn has_failed(&self) -> bool;

    /// Whether it answers a short question.
    fn is_alive(&self) -> bool;

    /// The error that it does not.
    fn silence_error(&self) -> StoreError;
}

/// Do work that reports its progress. If it reports none for a while, and the server does not answer a
/// question, it is interrupted, and the error says so.
pub(crate) fn while_alive<T>(
    server: &impl Living,
    work: impl FnOnce(&dyn Fn()) -> T,
) -> Result<T, StoreError> {
    if !server.is_watched() {
        return Ok(work(&|| {}));
    }
    let outer = Interrupt::current();
    let (inner, end) = (outer.child(), outer.child());
    let (sender, receiver) = channel();
    let caller = outer.clone();
    let (result, is_dead) = std::thread::scope(move |threads| {
        let (end_of_watch, interrupt) = (end.clone(), inner.clone());
        let watch = threads.spawn(move || {
            end_of_watch.enter();
            let is_dead = has_died(server, &receiver);
            if is_dead {
                interrupt.set();
            }
            is_dead
        });
        inner.enter();
        let result = work(&|| {
            // Nobody hears it where the interrupt is set already.
            let _ = sender.send(());
        });
        outer.enter();
        end.set();
        drop(sender);
        (result, watch.join().unwrap_or(false))
    });
    match is_dead && !caller.is_set() {
        true => Err(server.silence_error()),
        false => Ok(result),
    }
}

/// Wait until the work ends, or the server does not answer.
fn has_died(server: &impl Living, progress: &Receiver<()>) -> bool {
    loop {
        let limit = if server.has_failed() { FAILED_SILENCE } else { SILENCE };
        match progress.recv_timeout(limit) {
            Ok(()) => {}
            Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => {
                if !server.is_alive() {
                    return !Interrupt::current().is_set();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::repair_progress::RepairProgress;
    use crate::reports::PieceState;
    use crate::testing::{TestStripe, bytes_of};
    use crate::upkeep::Upkeep;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_server_that_hangs_is_left_out_of_a_write() {
        let stripe = TestStripe::new(4, 1, true);
        stripe.put("a", &bytes_of(50_000, 1), false).expect("written");
        stripe.behaviours[1].is_hanging.store(true, Ordering::Relaxed);
        let bytes = bytes_of(60_000, 2);
        stripe.put("a", &bytes, true).expect("written without it");
        assert_eq!(stripe.get("a").expect("read"), bytes);
        stripe.behaviours[1].is_hanging.store(false, Ordering::Relaxed);
        let upkeep = Upkeep(stripe.store.clone());
        let url = TestStripe::url("a");
        let check = upkeep.check(&url, false).expect("checked");
        assert_eq!(check.parts[1].state, PieceState::Missing);
        let repair = upkeep.repair(&url, false, &RepairProgress::default()).expect("repaired");
        assert_eq!(repair.rebuilt_parts, ["s1:"]);
    }

    #[test]
    fn too_few_servers_that_answer_are_an_error() {
        let stripe = TestStripe::new(4, 1, true);
        stripe.put("a", &bytes_of(50_000, 1), false).expect("written");
        for number in [1, 2, 3] {
            stripe.behaviours[number].is_hanging.store(true, Ordering::Relaxed);
        }
        let error = stripe.list("").expect_err("one of four").to_string();
        assert!(error.contains("expected listings of 3 of 4 servers, found 1"), "{error}");
        assert!(error.contains("s1:") && error.contains("no answer"), "{error}");
        let error = stripe.put("b", &bytes_of(50_000, 1), false).expect_err("one of four");
        assert!(error.to_string().contains("no answer"), "{error}");
        assert_eq!(stripe.files(0, true).len(), 1);
        // One that answers slowly is waited for, and one that refuses not.
        for number in [1, 2, 3] {
            stripe.behaviours[number].is_hanging.store(false, Ordering::Relaxed);
            stripe.kill(number, true);
        }
        let error = stripe.list("").expect_err("one of four").to_string();
        assert!(error.contains("connection refused"), "{error}");
    }
}
