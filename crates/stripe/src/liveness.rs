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
    use std::time::{Duration, Instant};

    /// Wait until a server is asked again.
    fn wait_for(stripe: &TestStripe, server: usize) {
        let until = Instant::now() + Duration::from_secs(60);
        while stripe.store.servers[server].is_silent() {
            assert!(Instant::now() < until, "it is asked again after a pause");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn a_server_that_hangs_is_left_out_of_a_write() {
        let stripe = TestStripe::new(4, 1, true);
        stripe.put("a", &bytes_of(50_000, 1), false).expect("written");
        stripe.behaviours[1].is_hanging.store(true, Ordering::Relaxed);
        let bytes = bytes_of(60_000, 2);
        stripe.put("a", &bytes, true).expect("written without it");
        assert_eq!(stripe.get("a").expect("read"), bytes);
        stripe.behaviours[1].is_hanging.store(false, Ordering::Relaxed);
        wait_for(&stripe, 1);
        let upkeep = Upkeep(stripe.store.clone());
        let url = TestStripe::url("a");
        let check = upkeep.check(&url, false).expect("checked");
        assert_eq!(check.parts[1].state, PieceState::Missing);
        let repair = upkeep.repair(&url, false, &RepairProgress::default()).expect("repaired");
        assert_eq!(repair.rebuilt_parts, ["s1:"]);
    }

    #[test]
    fn a_server_that_hangs_is_asked_once_for_many_objects() {
        let stripe = TestStripe::new(4, 1, true);
        stripe.put("a", &bytes_of(5000, 1), false).expect("written");
        let hanging = &stripe.behaviours[1];
        hanging.is_hanging.store(true, Ordering::Relaxed);
        stripe.put("b", &bytes_of(5000, 2), false).expect("written without it");
        hanging.questions.store(0, Ordering::Relaxed);
        for number in 0..10 {
            let (path, bytes) = (format!("c{number}"), bytes_of(5000, number));
            stripe.put(&path, &bytes, false).expect("written without it");
            assert_eq!(stripe.get(&path).expect("read"), bytes);
            stripe.remove(&path).expect("removed without it");
        }
        // Beside the work, after a pause.
        assert!(hanging.questions.load(Ordering::Relaxed) <= 1);
        hanging.is_hanging.store(false, Ordering::Relaxed);
        wait_for(&stripe, 1);
        stripe.put("d", &bytes_of(5000, 3), false).expect("written");
        let check = Upkeep(stripe.store.clone()).check(&TestStripe::url("d"), false);
        let parts = check.expect("checked").parts;
        assert!(parts.iter().all(|part| part.state == PieceState::Whole), "{parts:?}");
    }

    #[test]
    fn a_server_that_answers_but_no_writer_is_left_out() {
        let mut stripe = TestStripe::new(4, 1, true);
        stripe.store.late = Duration::from_millis(100);
        stripe.behaviours[2].is_deaf.store(true, Ordering::Relaxed);
        let bytes = bytes_of(20_000, 1);
        stripe.put("a", &bytes, false).expect("written without it");
        assert_eq!(stripe.get("a").expect("read"), bytes);
        let notes = stripe.open("a").expect("open").take_notes();
        assert!(
            notes.iter().any(|note| note.contains("without its part on s2 (no answer)")),
            "{notes:?}"
        );
        assert!(stripe.files(2, true).is_empty() && stripe.files(2, false).is_empty());
    }

    #[test]
    fn more_servers_that_hang_than_parity_are_named() {
        let stripe = TestStripe::new(4, 1, true);
        let bytes = bytes_of(100_000, 1);
        stripe.put("a", &bytes, false).expect("written");
        let source = stripe.open("a").expect("open");
        for number in [1, 2] {
            stripe.behaviours[number].is_hanging.store(true, Ordering::Relaxed);
        }
        let mut buffer = vec![0; bytes.len()];
        let error = source.read_exact_at(0, &mut buffer).expect_err("two of four").to_string();
        assert!(error.contains("expected bytes of any 3 of its 4 parts"), "{error}");
        assert!(error.contains("on s1: ") && error.contains("on s2: "), "{error}");
    }

    #[test]
    fn too_few_servers_that_answer_are_an_error() {
        let stripe = TestStripe::new(4, 1, true);
        stripe.put("a", &bytes_of(50_000, 1), false).expect("written");
        for number in [1, 2, 3] {
            stripe.behaviours[number].is_hanging.store(true, Ordering::Relaxed);
        }
        let error = stripe.list("").expect_err("one of four").to_string();
        assert!(error.contains("expected listings of 2 of 4 servers, found 1"), "{error}");
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
