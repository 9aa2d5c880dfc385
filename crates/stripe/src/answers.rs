//! Servers that are asked at the same time, and how long the late ones are waited for.

use crate::server::Server;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use swathe_store_api::Interrupt;
use swathe_trace::Scope;

/// How much longer than the others a server may take, at least as a multiple of what they took.
const PATIENCE: u32 = 2;

/// How long late servers are waited for, when the others are enough.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grace {
    /// At least so long.
    pub(crate) least: Duration,
    /// If all of them failed when they were last asked, at least so long.
    pub(crate) least_after_failure: Duration,
    /// Whether their work ends then; else it goes on, and its answer is not heard.
    pub(crate) ends: bool,
}

/// What the answers so far are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// More are needed.
    Open,
    /// They are enough.
    Enough,
    /// Too many failed, whatever the others say.
    Hopeless,
}

impl Standing {
    /// That of `good` answers and `bad` ones, where `minimum` of either decide.
    pub(crate) fn of(good: usize, bad: usize, minimum: usize) -> Standing {
        match (good >= minimum, bad >= minimum) {
            (true, _) => Standing::Enough,
            (false, true) => Standing::Hopeless,
            (false, false) => Standing::Open,
        }
    }
}

/// Ask servers, and wait for those without which there is not enough. The others may be late by some
/// grace; those that are later give `None`, and count as failed. If there cannot be enough, the others
/// are waited for as if they had failed before. The answers are by the number of the server, `count`
/// in all.
pub(crate) fn ask_enough<T: Send + 'static>(
    servers: &[(usize, Arc<Server>)],
    count: usize,
    grace: Grace,
    standing: impl Fn(&[Option<T>]) -> Standing,
    work: impl Fn(usize, &Server) -> T + Send + Sync + 'static,
) -> Vec<Option<T>> {
    let mut answers: Vec<Option<T>> = (0..count).map(|_| None).collect();
    let did_fail: Vec<bool> = servers.iter().map(|(_, server)| server.has_failed()).collect();
    let (began, outer) = (Instant::now(), Interrupt::current());
    let inner = outer.child();
    inner.enter();
    let receiver = ask(servers, work);
    outer.enter();
    let mut limit = None;
    let mut late = servers.len();
    while late > 0 {
        let standing = standing(&answers);
        if limit.is_none() && standing == Standing::Hopeless {
            limit = Some(Instant::now() + grace.least_after_failure);
        }
        if limit.is_none() && standing == Standing::Enough {
            let each = servers.iter().zip(&did_fail);
            let are_all_failures = each
                .filter(|((number, _), _)| answers[*number].is_none())
                .all(|(_, &did_fail)| did_fail);
            let least = if are_all_failures { grace.least_after_failure } else { grace.least };
            limit = Some(Instant::now() + least.max(PATIENCE * began.elapsed()));
        }
        let answer = match limit {
            None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(until) => receiver.recv_timeout(until.saturating_duration_since(Instant::now())),
        };
        match answer {
            Ok((number, answer)) => {
                answers[number] = Some(answer);
                late -= 1;
            }
            Err(RecvTimeoutError::Timeout) => {
                let late = servers.iter().filter(|(number, _)| answers[*number].is_none());
                late.for_each(|(_, server)| server.note_failure());
                if grace.ends {
                    inner.set();
                }
                break;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    answers
}

/// Ask servers at the same time; the answers come with the number of each, as they arrive. Those of
/// this machine are asked one after the other: that takes less than a thread.
fn ask<T: Send + 'static>(
    servers: &[(usize, Arc<Server>)],
    work: impl Fn(usize, &Server) -> T + Send + Sync + 'static,
) -> Receiver<(usize, T)> {
    let (sender, receiver) = channel();
    let work = Arc::new(work);
    for (number, server) in servers {
        let (number, server, work, sender) =
            (*number, server.clone(), work.clone(), sender.clone());
        let is_local = server.store().is_local();
        // A thread that panics gives no answer.
        let ask = move || {
            let answer = catch_unwind(AssertUnwindSafe(|| work(number, &server)));
            drop(answer.map(|answer| sender.send((number, answer))));
        };
        if is_local {
            ask();
            continue;
        }
        let (scope, interrupt) = (Scope::current(), Interrupt::current());
        std::thread::spawn(move || {
            scope.enter();
            interrupt.enter();
            ask();
        });
    }
    receiver
}

/// Ask all servers, and wait for all answers.
pub(crate) fn ask_all<T: Send + 'static>(
    servers: &[Arc<Server>],
    work: impl Fn(usize, &Server) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let answers = ask(&with_numbers(servers), work);
    let mut answers: Vec<(usize, T)> = answers.into_iter().collect();
    assert!(answers.len() == servers.len(), "a thread that asked a server panicked");
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Servers with their numbers.
pub(crate) fn with_numbers(servers: &[Arc<Server>]) -> Vec<(usize, Arc<Server>)> {
    servers.iter().cloned().enumerate().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_can_be_too_many() {
        let standing = |good, bad| Standing::of(good, bad, 3);
        assert_eq!(standing(2, 2), Standing::Open);
        assert_eq!(standing(3, 2), Standing::Enough);
        assert_eq!(standing(0, 3), Standing::Hopeless);
        assert_eq!(standing(2, 3), Standing::Hopeless);
    }
}
