//! The queue of a disk, and the threads that work it off: a slow disk holds up nobody else's work.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;

/// Threads of a disk: requests that it can order as it likes.
pub(crate) const THREADS: usize = 4;
/// Pieces of work that wait for a thread; others wait for a place.
const PLACES: usize = 64;
/// How long a piece of work may take until its requester is told that the disk is busy.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);
/// If all threads of a disk are at work and none ends within this time, the disk is silent: nobody
/// waits for it until one does.
const SILENCE: Duration = Duration::from_secs(20);
/// How often those who wait look whether it is.
const STEP: Duration = Duration::from_millis(500);

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
    /// The disk is silent.
    Silent,
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
    silence: Duration,
}

struct Waiting {
    work: Mutex<Option<VecDeque<Work>>>,
    news: Condvar,
    start: Instant,
    /// Threads that are at work.
    running: AtomicUsize,
    /// When work began or ended last, in milliseconds from the start.
    last_change_ms: AtomicU64,
}

impl Waiting {
    fn count_change(&self) {
        self.last_change_ms.store(self.start.elapsed().as_millis() as u64, Ordering::Relaxed);
    }
}

thread_local! {
    /// The queue that this thread works off, as a number; 0: none.
    static QUEUE: Cell<usize> = const { Cell::new(0) };
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
        DiskQueue::start_with(name, SILENCE)
    }

    fn start_with(name: &str, silence: Duration) -> io::Result<DiskQueue> {
        let waiting = Arc::new(Waiting {
            work: Mutex::new(Some(VecDeque::new())),
            news: Condvar::new(),
            start: Instant::now(),
            running: AtomicUsize::new(0),
            last_change_ms: AtomicU64::new(0),
        });
        for number in 0..THREADS {
            let waiting = waiting.clone();
            let thread = std::thread::Builder::new().name(format!("{number}{name}"));
            thread.spawn(move || {
                QUEUE.set(Arc::as_ptr(&waiting) as usize);
                while let Some(work) = next(&waiting) {
                    waiting.running.fetch_add(1, Ordering::Relaxed);
                    waiting.count_change();
                    // What panics drops the sender of its result; that says so.
                    let _ = catch_unwind(AssertUnwindSafe(work));
                    waiting.running.fetch_sub(1, Ordering::Relaxed);
                    waiting.count_change();
                }
            })?;
        }
        let (places, length) = (Arc::new(Semaphore::new(PLACES)), Arc::default());
        Ok(DiskQueue { waiting, places, length, silence })
    }

    /// Whether all threads are at work, and none of it began or ended for long.
    fn is_silent(&self) -> bool {
        let last = Duration::from_millis(self.waiting.last_change_ms.load(Ordering::Relaxed));
        self.waiting.running.load(Ordering::Relaxed) == THREADS
            && self.waiting.start.elapsed().saturating_sub(last) > self.silence
    }

    /// Whether this thread is one of the disk.
    pub(crate) fn is_here(&self) -> bool {
        QUEUE.get() == Arc::as_ptr(&self.waiting) as usize
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
        let end = start + limit;
        self.length.fetch_add(1, Ordering::Relaxed);
        let guard = LengthGuard(self.length.clone());
        let place = self.until(end, self.places.clone().acquire_owned()).await?;
        let place = place.map_err(|_| QueueError::Panic)?;
        let (sender, receiver) = oneshot::channel();
        self.push(Some(place), move || {
            let begin = Instant::now();
            let result = work();
            let times = WorkTimes { queue: begin - start, disk: begin.elapsed() };
            drop(guard);
            let _ = sender.send((result, times));
        });
        self.until(end, receiver).await?.map_err(|_| QueueError::Panic)
    }

    /// Wait for something until a time, or until the disk is silent.
    async fn until<T>(&self, end: Instant, wait: impl Future<Output = T>) -> Result<T, QueueError> {
        let mut wait = pin!(wait);
        loop {
            if self.is_silent() {
                return Err(QueueError::Silent);
            }
            let rest = end.saturating_duration_since(Instant::now());
            match timeout(rest.min(STEP), wait.as_mut()).await {
                Ok(result) => return Ok(result),
                Err(_) if rest <= STEP => return Err(QueueError::Busy),
                Err(_) => {}
            }
        }
    }

    /// Have a thread do work that nobody waits for. It may never be done, if the server ends.
    pub(crate) fn run_later(&self, work: impl FnOnce() + Send + 'static) {
        self.push(None, work);
    }

    fn push(&self, place: Option<OwnedSemaphorePermit>, work: impl FnOnce() + Send + 'static) {
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
    use crate::testing::block_on;
    use futures_util::future::join_all;
    use std::sync::mpsc;

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

    #[test]
    fn nobody_waits_for_a_disk_that_is_silent() {
        let queue = DiskQueue::start_with("silent", Duration::from_millis(20)).unwrap();
        let (gate, wait) = mpsc::channel::<()>();
        let wait = Arc::new(Mutex::new(wait));
        block_on(async {
            let hanging = (0..2 * THREADS).map(|_| {
                let wait = wait.clone();
                queue.run_within(LONGEST, move || wait.lock().map(|wait| wait.recv()).is_ok())
            });
            let results = join_all(hanging).await;
            assert!(results.iter().all(|result| matches!(result, Err(QueueError::Silent))));
            let late = queue.run_within(LONGEST, || 1).await;
            assert_eq!(late.map(|(one, _)| one), Err(QueueError::Silent));
            drop(gate);
            // Its threads come back, and it answers again.
            while queue.is_silent() {
                std::thread::yield_now();
            }
            assert_eq!(queue.run_within(LONGEST, || 2).await.unwrap().0, 2);
        });
    }

    #[test]
    fn a_thread_knows_its_queue() {
        let (queue, other) =
            (DiskQueue::start("here").unwrap(), DiskQueue::start("there").unwrap());
        assert!(!queue.is_here());
        let (queue, other) = (Arc::new(queue), Arc::new(other));
        let (sender, receiver) = mpsc::channel();
        let both = (queue.clone(), other.clone());
        queue.run_later(move || sender.send((both.0.is_here(), both.1.is_here())).unwrap());
        assert_eq!(receiver.recv(), Ok((true, false)));
    }
}
