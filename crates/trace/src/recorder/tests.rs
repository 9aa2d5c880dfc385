use super::*;
use crate::memory::Memory;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};

/// A process has one recorder.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    lock(&ALONE)
}

fn begin(sink: impl LineSink + 'static) -> Arc<Session> {
    let from = Origin { host: "h".into(), prog: "p".into(), token: None };
    start_with("a test", &from, || Ok(Box::new(sink))).expect("started");
    lock(&CURRENT).clone().expect("recording")
}

fn record(number: u64) {
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
fn wait_until_empty(recorder: &Session) {
    until(|| {
        recorder.writer.get().expect("a writer").unpark();
        lock(&recorder.rings).iter().all(|ring| ring.used_words() == 0)
    });
}

fn counts_of(recorded_events: u64, dropped_events: u64, written_events: u64) -> Counts {
    Counts { recorded_events, dropped_events, written_events }
}

fn value(line: &str, key: &str) -> u64 {
    let mut fields = line.split(' ').filter_map(|field| field.split_once('='));
    let (_, value) = fields.find(|(name, _)| *name == key).expect(key);
    value.parse().expect("a number")
}

/// Passes lines on, once it may.
struct Gate {
    open: Arc<AtomicBool>,
    /// Reports that lines arrived, and waits for permission to write them.
    passing: Option<(SyncSender, Receiver<()>)>,
    lines: Sender<Vec<u8>>,
}

type SyncSender = std::sync::mpsc::SyncSender<()>;

impl LineSink for Gate {
    fn ready(&mut self) -> io::Result<bool> {
        Ok(self.open.load(Ordering::Relaxed))
    }

    fn write(&mut self, lines: &[u8], _lost_lines: &mut u64) -> io::Result<()> {
        if let Some((arrival, leave)) = &self.passing {
            let _ = arrival.send(());
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
        std::thread::spawn(move || record(number)).join().expect("ended");
    }
    assert_eq!(lock(&recorder.rings).len(), 1);
    open.store(true, Ordering::Relaxed);
    let counts = stop().expect("recorded");
    let all = THREADS as u64 + 10;
    assert_eq!(counts, counts_of(all, 0, all));
    drop(recorder);
    let text = text_of(lines);
    let numbers: Vec<u64> = text
        .lines()
        .filter(|line| line.contains("TOLD"))
        .map(|line| value(line, "NUMBER"))
        .collect();
    assert!(numbers.into_iter().eq(0..all));
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
            let (began, start) = sync_channel::<()>(1);
            let (release, end) = sync_channel::<()>(1);
            releases.push(release);
            scope.spawn(move || {
                record(0);
                began.send(()).expect("awaited");
                let _ = end.recv();
            });
            start.recv().expect("began");
        }
        assert_eq!(lock(&recorder.rings).len(), THREADS);
        assert!(bytes(&lock(&recorder.rings)) <= 60 << 20);
        let (report, reports) = sync_channel::<()>(1);
        let (more, goes_on) = sync_channel::<()>(1);
        scope.spawn(move || {
            record(1);
            for _ in 0..2 {
                report.send(()).expect("awaited");
                goes_on.recv().expect("a word");
                (0..1000).for_each(|_| record(1));
            }
            report.send(()).expect("awaited");
        });
        reports.recv().expect("told");
        let current = lock(&CURRENT);
        more.send(()).expect("it listens");
        let result_without_lock = reports.recv_timeout(Duration::from_secs(120));
        drop(current);
        result_without_lock.expect("told while the lock is held");
        assert_eq!(recorder.homeless.load(Ordering::Relaxed), 1001);
        // One ends: its ring is free for who has none.
        drop(releases.pop());
        until(|| lock(&recorder.rings).iter().any(|ring| ring.is_closed()));
        until(|| recorder.release_count.load(Ordering::Relaxed) == 1);
        more.send(()).expect("it listens");
        reports.recv().expect("told");
    });
    let counts = stop().expect("recorded");
    let count = THREADS as u64 + 1000;
    assert_eq!(counts, counts_of(count, 1001, count));
    drop((recorder, lines));
}

#[test]
fn what_a_stuck_writer_leaves_is_dropped_and_counted_once() {
    let _alone = alone();
    let (arrival, coming) = sync_channel(9);
    let (pass, leave) = channel();
    let (sender, lines) = channel();
    let passing = Some((arrival, leave));
    let recorder = begin(Gate { open: Arc::new(true.into()), passing, lines: sender });
    record(0);
    pass.send(()).expect("it listens");
    coming.recv().expect("written");
    until(|| recorder.written_events.load(Ordering::Relaxed) == 1);
    record(1);
    coming.recv().expect("on its way");
    (2..10).for_each(record);
    let counts = stop_within(Duration::from_millis(10)).expect("recorded");
    assert_eq!(counts, counts_of(10, 9, 1));
    // The lines on their way arrive after all; the rest is not written.
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
    for limit in (300..700).step_by(20) {
        let path = folder.path().join(format!("{limit}.ulm"));
        let recorder = begin(Memory::open(&path, limit).expect("a file"));
        for number in 0..5 {
            record(number);
            wait_until_empty(&recorder);
        }
        let counts = stop().expect("recorded");
        let text = std::fs::read_to_string(&path).expect("read");
        let last = text.lines().last().expect("a line");
        assert!(last.contains("TRACE_END"), "{limit}: {text}");
        let lines = text.lines().count() as u64 - 1;
        assert_eq!(counts, counts_of(5, 5 - lines, lines), "{limit}");
        assert_eq!(value(last, "DROPPED"), 5 - lines, "{limit}: {text}");
        assert!(text.len() as u64 <= limit);
    }
}

/// Ids with one of their own, and one that is shared, of some kinds; and as they are written.
fn some_ids() -> Vec<(Ids, String)> {
    let common = |value: &str| {
        let mut ids = Ids::default();
        ids.push("OBJECT", value);
        ids.share()
    };
    let mut alone = Ids::default();
    alone.push("OBJECT", "c d");
    let all = [Ids::default(), alone, common("a"), common("b"), common("b").share()];
    let texts = ["", " OBJECT=\"c d\"", " OBJECT=a", " OBJECT=b", " OBJECT=b"];
    let with = |target: &'static str| {
        let each = all.iter().zip(texts);
        each.map(move |(ids, text)| {
            (ids.after("TARGET", target), format!(" TARGET={target}{text}"))
        })
    };
    let bare = all.iter().cloned().zip(texts.map(String::from));
    bare.chain(with("s")).chain(with("t")).collect()
}

/// What a line says after its thread.
fn rest(line: &str) -> &str {
    let at = line.find(" THREAD=").expect("a thread") + 1;
    &line[at + line[at..].find(' ').expect("more")..]
}

#[test]
fn lines_have_the_ids_they_were_told_with_whatever_was_told_before() {
    let _alone = alone();
    let (sender, lines) = channel();
    let recorder = begin(Gate { open: Arc::new(true.into()), passing: None, lines: sender });
    let ids = some_ids();
    let scopes = ["x", "y"].map(|job| Scope::new(vec![("JOB".into(), job.into())]));
    let mut expected = Vec::new();
    for (first, before) in &ids {
        for (round, (second, after)) in ids.iter().enumerate() {
            // Not each time: the ids of a thread are recorded again with its scope.
            let scope = round / 3 % 2;
            scopes[scope].adopt();
            let job = ["x", "y"][scope];
            let (number, now) = (expected.len() as u64, Instant::now());
            event(Level::Usage, "TOLD", first, |record| _ = record.number("NUMBER", number));
            expected.push(format!(" JOB={job}{before} NUMBER={number}"));
            events_at(Level::Usage, &["A", "B"], now, second, |record| {
                _ = record.word("RESULT", "ok")
            });
            expected.push(format!(" JOB={job}{after} RESULT=ok"));
            expected.push(format!(" JOB={job}{after} RESULT=ok"));
        }
        wait_until_empty(&recorder);
    }
    Scope::default().enter();
    let all = expected.len() as u64;
    assert_eq!(stop(), Some(counts_of(all, 0, all)));
    drop(recorder);
    let text = text_of(lines);
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains("TRACE_END")).collect();
    assert_eq!(lines.len(), expected.len());
    for (line, expected) in lines.iter().zip(&expected) {
        assert_eq!(rest(line), expected);
    }
    for three in lines.chunks(3) {
        let names: Vec<&str> = three.iter().filter_map(|line| line.split(' ').nth(4)).collect();
        assert_eq!(names, ["NL.EVNT=TOLD", "NL.EVNT=A", "NL.EVNT=B"]);
    }
}

#[test]
fn what_is_lost_counts_each_event_and_leaves_the_ids_of_others_right() {
    let _alone = alone();
    let open = Arc::new(AtomicBool::new(false));
    let (sender, lines) = channel();
    let recorder = begin(Gate { open: open.clone(), passing: None, lines: sender });
    let ids = some_ids();
    let record = |number: usize| {
        let (about, _) = &ids[number % ids.len()];
        // Of lengths that leave more and less room at the end.
        let long = "x".repeat(number * 7 % 600);
        events_at(Level::Usage, &["A", "B"], Instant::now(), about, |record| {
            record.number("NUMBER", number as u64).text("LONG", &long);
        });
    };
    let all = 4000;
    (0..all).for_each(record);
    let lost_events = lock(&recorder.rings)[0].lost_events();
    assert!(lost_events > 100 && lost_events.is_multiple_of(2));
    open.store(true, Ordering::Relaxed);
    wait_until_empty(&recorder);
    (all..all + 100).for_each(record);
    let counts = stop().expect("recorded");
    let count = 2 * (all as u64 + 100);
    assert_eq!((counts.recorded_events, counts.dropped_events), (count - lost_events, lost_events));
    assert_eq!(counts.written_events, counts.recorded_events);
    drop(recorder);
    let text = text_of(lines);
    for line in text.lines().filter(|line| !line.contains("TRACE_END")) {
        let number = value(line, "NUMBER");
        let (_, about) = &ids[number as usize % ids.len()];
        assert!(rest(line).starts_with(&format!("{about} NUMBER={number} ")), "{line}");
    }
    assert_eq!(text.lines().count() as u64, counts.written_events + 1);
}
