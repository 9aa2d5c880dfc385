//! The queue of a disk, and the threads that work it off: a slow disk holds up nobody else's work.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;

/// Threads of a disk: requests that it can order as it likes.
const THREADS: usize = 4;
/// Pieces of work that wait for a thread; others wait for a place.
const PLACES: usize = 64;
/// How long a piece of work may take until its requester is told that the disk is busy.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

type Work = Box<dyn FnOnce() + Send>;

/// The times of a piece of work.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkTimes {
    pub(crate) queue: Duration,
    pub(crate) disk: Duration,
}

/// Why work has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueError {
    /// Not in time.
    Busy,
    /// It panicked.
    Panic,
}

/// Work for one disk.
#[derive(Debug)]
pub(crate) struct DiskQueue {
    waiting: Arc<Waiting>,
    places: Arc<Semaphore>,
    /// Work that has no result yet, also what waits for a place.
    length: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Waiting {
    work: Mutex<Option<VecDeque<Work>>>,
    news: Condvar,
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Waiting")
    }
}

/// Counts work until it has a result, or nobody waits for one.
struct LengthGuard(Arc<AtomicUsize>);

impl Drop for LengthGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl DiskQueue {
    /// Start the threads of a disk. They end when the queue is dropped and its work done.
    pub(crate) fn start(name: &str) -> io::Result<DiskQueue> {
        let waiting = Arc::new(Waiting::default());
        *lock(&waiting) = Some(VecDeque::new());
        for number in 0..THREADS {
            let waiting = waiting.clone();
            let thread = std::thread::Builder::new().name(format!("{number}{name}"));
            thread.spawn(move || {
                while let Some(work) = next(&waiting) {
                    // What panics drops the sender of its result; that says so.
                    let _ = catch_unwind(AssertUnwindSafe(work));
                }
            })?;
        }
        let (places, length) = (Arc::new(Semaphore::new(PLACES)), Arc::default());
        Ok(DiskQueue { waiting, places, length })
    }

    /// Work that waits or runs.
    pub(crate) fn length(&self) -> usize {
        self.length.load(Ordering::Relaxed)
    }

    /// Have a thread do work, within a limit of time; it is done also if nobody waits for it any
    /// more.
    pub(crate) async fn run_within<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(T, WorkTimes), QueueError> {
        let start = Instant::now();
        self.length.fetch_add(1, Ordering::Relaxed);
        let guard = LengthGuard(self.length.clone());
        let place = timeout(limit, self.places.clone().acquire_owned()).await;
        let place = place.map_err(|_| QueueError::Busy)?.map_err(|_| QueueError::Panic)?;
        let (sender, receiver) = oneshot::channel();
        self.push(place, move || {
            let begin = Instant::now();
            let result = work();
            let times = WorkTimes { queue: begin - start, disk: begin.elapsed() };
            drop(guard);
            let _ = sender.send((result, times));
        });
        match timeout(limit.saturating_sub(start.elapsed()), receiver).await {
            Ok(result) => result.map_err(|_| QueueError::Panic),
            Err(_) => Err(QueueError::Busy),
        }
    }

    fn push(&self, place: OwnedSemaphorePermit, work: impl FnOnce() + Send + 'static) {
        let work = move || {
            drop(place); // free for another now that this one has a thread
            work();
        };
        if let Some(waiting) = &mut *lock(&self.waiting) {
            waiting.push_back(Box::new(work));
        }
        self.waiting.news.notify_one();
    }
}

impl Drop for DiskQueue {
    fn drop(&mut self) {
        let rest = lock(&self.waiting).take();
        self.waiting.news.notify_all();
        drop(rest);
    }
}

fn lock(waiting: &Waiting) -> std::sync::MutexGuard<'_, Option<VecDeque<Work>>> {
    waiting.work.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The next work; `None` at the end.
fn next(waiting: &Waiting) -> Option<Work> {
    let mut queue = lock(waiting);
    loop {
        if let Some(work) = queue.as_mut()?.pop_front() {
            return Some(work);
        }
        queue = waiting.news.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;
    use std::sync::mpsc;

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().build().unwrap().block_on(work)
    }

    #[test]
    fn all_work_is_done() {
        let queue = DiskQueue::start("test").unwrap();
        let results = block_on(join_all(
            (0..1000).map(|number| queue.run_within(LONGEST, move || number * 2)),
        ));
        let results: Vec<i32> = results.into_iter().map(|result| result.unwrap().0).collect();
        assert_eq!(results, (0..1000).map(|number| number * 2).collect::<Vec<_>>());
        assert_eq!(queue.length(), 0);
    }

    #[test]
    fn work_that_panics_is_told_and_harms_no_other() {
        let queue = DiskQueue::start("test").unwrap();
        for _ in 0..2 * THREADS {
            let result = block_on(queue.run_within(LONGEST, || panic!("on purpose")));
            assert_eq!(result.map(|(never, _): ((), _)| never), Err(QueueError::Panic));
        }
        assert_eq!(block_on(queue.run_within(LONGEST, || 1)).unwrap().0, 1);
    }

    #[test]
    fn a_disk_that_hangs_is_busy_and_others_are_not() {
        let (slow, quick) = (DiskQueue::start("slow").unwrap(), DiskQueue::start("quick").unwrap());
        let (gates, limit) = (Mutex::new(Vec::new()), Duration::from_millis(50));
        block_on(async {
            let hanging = (0..THREADS + PLACES + 5).map(|_| {
                let (gate, wait) = mpsc::channel::<()>();
                gates.lock().unwrap().push(gate);
                slow.run_within(limit, move || wait.recv())
            });
            let results = join_all(hanging).await;
            assert!(results.iter().all(|result| matches!(result, Err(QueueError::Busy))));
            assert!(slow.length() >= THREADS);
            assert_eq!(quick.run_within(LONGEST, || 1).await.unwrap().0, 1);
            gates.lock().unwrap().clear();
            assert_eq!(slow.run_within(LONGEST, || 2).await.unwrap().0, 2);
        });
        while slow.length() > 0 {
            std::thread::yield_now(); // until all of its threads have seen that the gates are gone
        }
    }
}
