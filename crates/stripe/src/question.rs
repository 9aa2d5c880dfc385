//! Servers that are asked at the same time, and how long the late ones are waited for.

use crate::server::Server;
use crate::threads::spawn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
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
    /// How long they are waited for where they are needed.
    pub(crate) most: Duration,
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
    /// That of `good` answers and `bad` ones of `count` servers, where `minimum` good ones are needed.
    pub(crate) fn of(good: usize, bad: usize, minimum: usize, count: usize) -> Standing {
        match (good >= minimum, bad + minimum > count) {
            (true, _) => Standing::Enough,
            (false, true) => Standing::Hopeless,
            (false, false) => Standing::Open,
        }
    }
}

/// What a server is asked, with its number.
type Work<T> = dyn Fn(usize, &Server) -> T + Send + Sync;

/// The same work for several servers, and their answers.
pub(crate) struct Question<T> {
    /// By the number of the server; `None` of those that were not asked, or not heard.
    pub(crate) answers: Vec<Option<T>>,
    work: Arc<Work<T>>,
    /// Those that were asked, and whether they failed before.
    servers: Vec<(usize, Arc<Server>, bool)>,
    /// How many of them have not answered yet.
    late: usize,
    inner: Interrupt,
    /// `None`: the work panicked.
    sender: Sender<(usize, Option<T>)>,
    receiver: Receiver<(usize, Option<T>)>,
}

impl<T: Send + 'static> Question<T> {
    /// Nobody is asked yet; there are `count` servers in all.
    pub(crate) fn new(
        count: usize,
        work: impl Fn(usize, &Server) -> T + Send + Sync + 'static,
    ) -> Question<T> {
        let (sender, receiver) = channel();
        Question {
            answers: (0..count).map(|_| None).collect(),
            work: Arc::new(work),
            servers: Vec::new(),
            late: 0,
            inner: Interrupt::current().child(),
            sender,
            receiver,
        }
    }

    /// Ask servers, each with its number, at the same time. Those of this machine are asked one after
    /// the other: that takes less than a thread.
    pub(crate) fn ask(&mut self, servers: &[(usize, Arc<Server>)]) {
        for (number, server) in servers {
            self.servers.push((*number, server.clone(), server.is_known_to_fail()));
        }
        self.late += servers.len();
        let outer = Interrupt::current();
        self.inner.enter();
        for (number, server) in servers {
            let (number, server) = (*number, server.clone());
            let (work, sender) = (self.work.clone(), self.sender.clone());
            let is_local = server.store().is_local();
            let ask = move || {
                let answer = catch_unwind(AssertUnwindSafe(|| work(number, &server)));
                // If nobody waits for it, it is not needed.
                let _ = sender.send((number, answer.ok()));
            };
            if is_local {
                ask();
                continue;
            }
            let (scope, interrupt) = (Scope::current(), Interrupt::current());
            let work = move || {
                scope.enter();
                interrupt.enter();
                ask();
            };
            spawn(work).expect("a thread to ask a server");
        }
        outer.enter();
    }

    /// Take the next answer; false if none comes until then.
    fn take_until(&mut self, until: Option<Instant>) -> bool {
        let message = match until {
            None => self.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(until) => {
                self.receiver.recv_timeout(until.saturating_duration_since(Instant::now()))
            }
        };
        let Ok((number, answer)) = message else { return false };
        self.answers[number] = answer;
        self.late -= 1;
        true
    }

    /// Wait until all have answered, or what they say leaves nothing to wait for, or some time is over.
    pub(crate) fn wait_for(&mut self, time: Duration, is_over: impl Fn(&[Option<T>]) -> bool) {
        let until = Some(Instant::now() + time);
        while self.late > 0 && !is_over(&self.answers) && self.take_until(until) {}
    }

    /// Wait for those without which there is not enough. The others may be late by some grace; those
    /// that are later count as failed. If there cannot be enough, the others are waited for as if they
    /// had failed before.
    pub(crate) fn wait(&mut self, grace: Grace, standing: impl Fn(&[Option<T>]) -> Standing) {
        let began = Instant::now();
        let (most, mut limit) = (began + grace.most, None);
        while self.late > 0 {
            let standing = standing(&self.answers);
            if limit.is_none() && standing == Standing::Hopeless {
                limit = Some(Instant::now() + grace.least_after_failure);
            }
            if limit.is_none() && standing == Standing::Enough {
                let are_all_failures = self.late_servers().all(|(_, did_fail)| did_fail);
                let least = if are_all_failures { grace.least_after_failure } else { grace.least };
                limit = Some(Instant::now() + least.max(PATIENCE * began.elapsed()));
            }
            if !self.take_until(Some(limit.unwrap_or(most))) {
                // A reader is quick to leave one out, which need not hang.
                let is_hanging = grace.ends || limit.is_none();
                self.late_servers().for_each(|(server, _)| match is_hanging {
                    true => server.note_hang(),
                    false => server.note_late(),
                });
                if is_hanging {
                    self.inner.set();
                }
                break;
            }
        }
    }

    fn late_servers(&self) -> impl Iterator<Item = (&Server, bool)> {
        let late = self.servers.iter().filter(|(number, ..)| self.answers[*number].is_none());
        late.map(|(_, server, did_fail)| (&**server, *did_fail))
    }
}

/// Ask servers, and wait for enough of them. The answers are by the number of the server, `count` in
/// all; `None` of those that were not waited for.
pub(crate) fn ask_enough<T: Send + 'static>(
    servers: &[(usize, Arc<Server>)],
    count: usize,
    grace: Grace,
    standing: impl Fn(&[Option<T>]) -> Standing,
    work: impl Fn(usize, &Server) -> T + Send + Sync + 'static,
) -> Vec<Option<T>> {
    let mut question = Question::new(count, work);
    question.ask(servers);
    question.wait(grace, standing);
    question.answers
}

/// Ask all servers, and wait for all answers.
pub(crate) fn ask_all<T: Send + 'static>(
    servers: &[Arc<Server>],
    work: impl Fn(usize, &Server) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let mut question = Question::new(servers.len(), work);
    question.ask(&with_numbers(servers));
    while question.late > 0 && question.take_until(None) {}
    let answers = question.answers.into_iter();
    answers.map(|answer| answer.expect("no thread that asks a server panics")).collect()
}

/// The servers, with their numbers, that do not hang, as far as is known, if they are at least so
/// many; else all. Those that hang are asked again after a pause, beside the work.
pub(crate) fn present(servers: &[Arc<Server>], minimum: usize) -> Vec<(usize, Arc<Server>)> {
    let all = with_numbers(servers);
    let present: Vec<_> = all.iter().filter(|(_, server)| !server.is_away()).cloned().collect();
    if present.len() >= minimum { present } else { all }
}

/// Servers with their numbers.
pub(crate) fn with_numbers(servers: &[Arc<Server>]) -> Vec<(usize, Arc<Server>)> {
    servers.iter().cloned().enumerate().collect()
}

/// More than half.
pub(crate) fn majority(count: usize) -> usize {
    count / 2 + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestStripe;
    use std::sync::atomic::Ordering;

    #[test]
    fn servers_that_are_needed_are_waited_for_up_to_a_limit_then_left_out() {
        let stripe = TestStripe::new(3, 1, true);
        let servers = &stripe.store.servers;
        for number in [0, 2] {
            stripe.behaviours[number].is_hanging.store(true, Ordering::Relaxed);
        }
        let limit = Duration::from_millis(50);
        let grace = Grace { least: limit, least_after_failure: limit, most: limit, ends: false };
        let work = |_, server: &Server| drop(server.open("a"));
        let standing = |answers: &[Option<()>]| {
            Standing::of(answers.iter().flatten().count(), 0, 2, answers.len())
        };
        let answers = ask_enough(&with_numbers(servers), 3, grace, standing, work);
        assert_eq!(answers, [None, Some(()), None]);
        let numbers = |minimum| -> Vec<usize> {
            present(servers, minimum).into_iter().map(|(number, _)| number).collect()
        };
        assert_eq!((numbers(1), numbers(2)), (vec![1], vec![0, 1, 2]));
    }

    #[test]
    fn failures_can_be_too_many() {
        let of_five = |good, bad| Standing::of(good, bad, 3, 5);
        assert_eq!(of_five(2, 2), Standing::Open);
        assert_eq!(of_five(3, 2), Standing::Enough);
        assert_eq!(of_five(0, 3), Standing::Hopeless);
        assert_eq!(of_five(2, 3), Standing::Hopeless);
        let of_four = |good, bad| Standing::of(good, bad, 3, 4);
        assert_eq!(of_four(2, 1), Standing::Open);
        assert_eq!(of_four(0, 2), Standing::Hopeless);
    }
}
