//! How many events a thread records a second, what those of a cut cost, and how fast they are read.
//! Not tests: `--ignored --nocapture`.

use std::io::Write;
use std::time::Instant;
use swathe_trace::{Ids, Level, event, events_at, read, start, stop};

const LINES: usize = 1_000_000;

#[test]
#[ignore = "measures"]
fn events_per_second() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let place = folder.path().join("run.ulm").display().to_string();
    let mut about = Ids::default();
    about.push("TARGET", "star-17");
    about.push("OBJECT", "sdss:run1/f0.fits");
    for threads in [1, 2] {
        for pause in [false, true] {
            start(&place, "swathe", "node7", None).expect("started");
            let began = Instant::now();
            let seconds: Vec<f64> = std::thread::scope(|scope| {
                let each: Vec<_> = (0..threads)
                    .map(|_| {
                        scope.spawn(|| {
                            let began = Instant::now();
                            let mut pause_s = 0.0;
                            for number in 0..2_000_000u64 {
                                event(Level::Usage, "CUT_END", &about, |record| {
                                    record.number("BYTES", number).text("RESULT", "ok");
                                });
                                // As long as the ring is large: then nothing is lost.
                                if pause && number % 2000 == 0 {
                                    let since = Instant::now();
                                    std::thread::sleep(std::time::Duration::from_micros(500));
                                    pause_s += since.elapsed().as_secs_f64();
                                }
                            }
                            began.elapsed().as_secs_f64() - pause_s
                        })
                    })
                    .collect();
                each.into_iter().map(|thread| thread.join().expect("ended")).collect()
            });
            let writer_s = writer_s();
            let wall_s = began.elapsed().as_secs_f64();
            let counts = stop().expect("recorded");
            let best = seconds.iter().fold(f64::MAX, |best: f64, s| best.min(*s));
            println!(
                "{threads} threads, pausing {pause}: {:.0} ns an event, {:.2} M/s each; written \
                 {:.2} M/s, {:.2} M/s of its core, dropped {}",
                best / 2e6 * 1e9,
                2.0 / best,
                counts.written_events as f64 / wall_s / 1e6,
                counts.written_events as f64 / writer_s / 1e6,
                counts.dropped_events,
            );
        }
    }
    let began = Instant::now();
    for number in 0..100_000_000u64 {
        event(Level::Usage, "OFF", &about, |record| _ = record.number("BYTES", number));
    }
    println!("off: {:.2} ns", began.elapsed().as_secs_f64() * 10.0);
}

/// As the engine records cuts: 320 targets for each object, written 16 at a time.
#[test]
#[ignore = "measures"]
fn cuts() {
    const CUTS: usize = 20_000;
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let path = folder.path().join("run.ulm");
    let names: Vec<String> = (0..CUTS).map(|number| format!("star-{number}")).collect();
    let mut ns: Vec<(f64, f64)> = (0..15)
        .map(|_| {
            start(&path.display().to_string(), "swathe", "node7", None).expect("started");
            let own = std::thread::scope(|scope| {
                scope.spawn(|| record_cuts(&names)).join().expect("ended") / CUTS as f64 * 1e9
            });
            let writer_ns = writer_s() / CUTS as f64 * 1e9;
            assert_eq!(stop().expect("recorded").dropped_events, 0, "the writer had no time");
            std::fs::remove_file(&path).expect("removed");
            (own, writer_ns)
        })
        .collect();
    ns.sort_by(|one, other| (one.0 + one.1).total_cmp(&(other.0 + other.1)));
    for (name, (own, writer_ns)) in [("median", ns[7]), ("best", ns[0])] {
        println!("{name}: {own:.0} ns a cut to record it, {writer_ns:.0} ns to write it");
    }
}

/// Seconds that it took, without pauses in which all is written.
fn record_cuts(names: &[String]) -> f64 {
    let pause = || std::thread::sleep(std::time::Duration::from_millis(100));
    let own_s = || spent_s(std::path::Path::new("/proc/thread-self"));
    let (before_s, mut now) = (own_s(), Instant::now());
    for (number, part) in names.chunks(320).enumerate() {
        let mut object = Ids::default();
        object
            .push("OBJECT", &format!("/data/survey/run1/camera3/frame-r-{number:06}-3-0042.fits"));
        let object = object.share();
        for part in part.chunks(16) {
            let abouts: Vec<Ids> = part.iter().map(|name| object.after("TARGET", name)).collect();
            for about in &abouts {
                events_at(Level::Usage, &["CUT_START"], now, about, |_| {});
            }
            for about in abouts {
                events_at(Level::Usage, &["WRITE_START"], now, &about, |_| {});
                now = Instant::now();
                events_at(Level::Usage, &["WRITE_END", "CUT_END"], now, &about, |record| {
                    record.number("BYTES", 43_200).word("RESULT", "ok");
                });
            }
        }
        if number % 4 == 3 {
            pause();
        }
    }
    let own_s = own_s() - before_s;
    pause();
    own_s
}

/// Seconds that the thread that writes has computed.
fn writer_s() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("tasks");
    let paths = tasks.map(|task| task.expect("a task").path());
    let of =
        |path: &std::path::Path, name| std::fs::read_to_string(path.join(name)).unwrap_or_default();
    let writer = paths.into_iter().find(|path| of(path, "comm").trim() == "swathe-trace");
    spent_s(&writer.expect("it runs"))
}

fn spent_s(thread: &std::path::Path) -> f64 {
    let text = std::fs::read_to_string(thread.join("schedstat")).expect("of a thread");
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("nanoseconds") / 1e9
}

/// As events of a job are: a few kinds, each of another target, of some objects.
#[test]
#[ignore = "measures"]
fn lines_read_per_second() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let path = folder.path().join("run.ulm");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).expect("a file"));
    let kinds = ["CUT_START", "READ_START", "READ_END", "ASSEMBLE_START", "ASSEMBLE_END"];
    for number in 0..LINES {
        let (at_us, kind) = (number as u64 * 7, kinds[number % kinds.len()]);
        let (second, us) = (10 + at_us / 1_000_000 % 50, at_us % 1_000_000);
        let (thread, target, object) = (number / 90 % 4 + 1, number / 5, number / 400);
        let end = if kind.ends_with("END") {
            format!(" BYTES={} RESULT=ok", number % 9973)
        } else {
            String::new()
        };
        writeln!(
            file,
            "DATE=202611210130{second}.{us:06} HOST=node7 PROG=swathe LVL=Usage NL.EVNT={kind} \
             PID=4711 THREAD={thread} JOB=ab12 TARGET=star-{target} OBJECT=sdss:run1/frame-{object:06}.fits{end}"
        )
        .expect("written");
    }
    file.flush().expect("written");
    let mut seconds: Vec<f64> = (0..9)
        .map(|_| {
            let began = Instant::now();
            let table = read(&[&path], &mut || true).expect("read");
            assert_eq!((table.time_ns.len(), table.damaged_count), (LINES, 0));
            began.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    println!("{LINES} lines: {:.3} s, best {:.3} s", seconds[4], seconds[0]);
}
