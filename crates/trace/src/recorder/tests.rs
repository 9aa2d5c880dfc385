use super::*;
use crate::sink::Memory;
use std::sync::mpsc::{Sender, channel, sync_channel};

/// There is one recorder in a process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    lock(&ALONE)
}

fn begin(sink: impl Sink + 'static) -> Arc<Recorder> {
    let from = From { host: "h".into(), prog: "p".into(), token: None };
    start_with("a test", &from, || Ok(Box::new(sink))).expect("started");
    lock(&CURRENT).clone().expect("recording")
}

fn tell(number: u64) {
    event(Level::Usage, "TOLD", &Ids::default(), |record| _ = record.number("NUMBER", number));
}

fn until(is_true: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(120);
    while !is_true() {
        assert!(Instant::now() < limit, "it does not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Wait until all is taken out of the rings; what comes now is written by itself.
fn until_taken(recorder: &Recorder) {
    until(|| {
        recorder.writer.get().expect("a writer").unpark();
        lock(&recorder.rings).iter().all(|ring| ring.used() == 0)
    });
}

fn value(line: &str, key: &str) -> u64 {
    let mut fields = line.split(' ').filter_map(|field| field.split_once('='));
    let (_, value) = fields.find(|(found, _)| *found == key).expect(key);
    value.parse().expect("a number")
}

/// Passes lines on, once it may.
struct Gate {
    open: Arc<AtomicBool>,
    /// Tells that lines came, and waits for leave to take them.
    passing: Option<(SyncSender, Receiver<()>)>,
    lines: Sender<Vec<u8>>,
}

type SyncSender = std::sync::mpsc::SyncSender<()>;

impl Sink for Gate {
    fn ready(&mut self) -> io::Result<bool> {
        Ok(self.open.load(Ordering::Relaxed))
    }

    fn write(&mut self, lines: &[u8], _lost: &mut u64) -> io::Result<()> {
        if let Some((came, leave)) = &self.passing {
            let _ = came.send(());
            let _ = leave.recv();
        }
        let _ = self.lines.send(lines.to_vec());
        Ok(())
    }
}

fn text_of(lines: Receiver<Vec<u8>>) -> String {
    String::from_utf8(lines.into_iter().flatten().collect()).expect("text")
}

#[test]
fn threads_that_come_and_go_share_a_ring_while_nothing_can_be_written() {
    let _alone = alone();
    let open = Arc::new(AtomicBool::new(false));
    let (sender, lines) = channel();
    let recorder = begin(Gate { open: open.clone(), passing: None, lines: sender });
    for number in 0..THREADS as u64 + 10 {
        std::thread::spawn(move || tell(number)).join().expect("ended");
    }
    assert_eq!(lock(&recorder.rings).len(), 1);
    open.store(true, Ordering::Relaxed);
    let counts = stop().expect("recorded");
    let all = THREADS as u64 + 10;
    assert_eq!(counts, Counts { recorded: all, dropped: 0, written: all });
    drop(recorder);
    let text = text_of(lines);
    let told: Vec<u64> = text
        .lines()
        .filter(|line| line.contains("TOLD"))
        .map(|line| value(line, "NUMBER"))
        .collect();
    assert!(told.into_iter().eq(0..all));
}

#[test]
fn who_finds_no_ring_counts_what_is_lost_and_takes_no_lock() {
    let _alone = alone();
    let (sender, lines) = channel();
    let recorder = begin(Gate { open: Arc::new(true.into()), passing: None, lines: sender });
    let bytes = |rings: &[Arc<Ring>]| rings.iter().map(|ring| ring.bytes()).sum::<usize>();
    std::thread::scope(|scope| {
        let mut releases = Vec::new();
        for _ in 0..THREADS {
            let (began, begun) = sync_channel::<()>(1);
            let (release, released) = sync_channel::<()>(1);
            releases.push(release);
            scope.spawn(move || {
                tell(0);
                began.send(()).expect("awaited");
                let _ = released.recv();
            });
            begun.recv().expect("began");
        }
        assert_eq!(lock(&recorder.rings).len(), THREADS);
        assert!(bytes(&lock(&recorder.rings)) <= 60 << 20);
        let (told, done) = sync_channel::<()>(1);
        let (more, goes_on) = sync_channel::<()>(1);
        scope.spawn(move || {
            tell(1);
            for _ in 0..2 {
                told.send(()).expect("awaited");
                goes_on.recv().expect("a word");
                (0..1000).for_each(|_| tell(1));
            }
            told.send(()).expect("awaited");
        });
        done.recv().expect("told");
        let current = lock(&CURRENT);
        more.send(()).expect("it listens");
        let told_without_lock = done.recv_timeout(Duration::from_secs(120));
        drop(current);
        told_without_lock.expect("told while the lock is held");
        assert_eq!(recorder.homeless.load(Ordering::Relaxed), 1001);
        // One ends: its ring is free for who has none.
        drop(releases.pop());
        until(|| lock(&recorder.rings).iter().any(|ring| ring.is_closed()));
        until(|| recorder.left.load(Ordering::Relaxed) == 1);
        more.send(()).expect("it listens");
        done.recv().expect("told");
    });
    let counts = stop().expect("recorded");
    let recorded = THREADS as u64 + 1000;
    assert_eq!(counts, Counts { recorded, dropped: 1001, written: recorded });
    drop((recorder, lines));
}

#[test]
fn what_a_stuck_writer_leaves_is_dropped_and_counted_once() {
    let _alone = alone();
    let (came, coming) = sync_channel(9);
    let (pass, leave) = channel();
    let (sender, lines) = channel();
    let passing = Some((came, leave));
    let recorder = begin(Gate { open: Arc::new(true.into()), passing, lines: sender });
    tell(0);
    pass.send(()).expect("it listens");
    coming.recv().expect("written");
    until(|| recorder.written.load(Ordering::Relaxed) == 1);
    tell(1);
    coming.recv().expect("on its way");
    (2..10).for_each(tell);
    let counts = stop_within(Duration::from_millis(10)).expect("recorded");
    assert_eq!(counts, Counts { recorded: 10, dropped: 9, written: 1 });
    // What was on its way arrives after all; what is left is not written any more.
    drop(pass);
    drop(recorder);
    let text = text_of(lines);
    let [first, second, last] = &text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    assert_eq!((value(first, "NUMBER"), value(second, "NUMBER")), (0, 1));
    assert!(last.contains("TRACE_END"));
    assert_eq!((value(last, "RECORDED"), value(last, "DROPPED")), (10, 8));
}

#[test]
fn of_a_full_memory_every_lost_event_is_counted() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.ulm");
    for limit in (300..700).step_by(20) {
        let recorder = begin(Memory::open(&path, limit).expect("a file"));
        for number in 0..5 {
            tell(number);
            until_taken(&recorder);
        }
        let counts = stop().expect("recorded");
        let text = std::fs::read_to_string(&path).expect("read");
        let last = text.lines().last().expect("a line");
        assert!(last.contains("TRACE_END"), "{limit}: {text}");
        let kept = text.lines().count() as u64 - 1;
        assert_eq!(counts, Counts { recorded: 5, dropped: 5 - kept, written: kept }, "{limit}");
        assert_eq!(value(last, "DROPPED"), 5 - kept, "{limit}: {text}");
        assert!(text.len() as u64 <= limit);
    }
}
