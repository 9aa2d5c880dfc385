//! How many events a thread records a second. Not a test: `--ignored --nocapture`.

use std::time::Instant;
use swathe_trace::{Ids, Level, event, start, stop};

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
                            let mut paused = 0.0;
                            for number in 0..2_000_000u64 {
                                event(Level::Usage, "CUT_END", |record| {
                                    record.ids(&about).number("BYTES", number).text("RESULT", "ok");
                                });
                                // As long as the ring is large: then nothing is lost.
                                if pause && number % 2000 == 0 {
                                    let since = Instant::now();
                                    std::thread::sleep(std::time::Duration::from_micros(500));
                                    paused += since.elapsed().as_secs_f64();
                                }
                            }
                            began.elapsed().as_secs_f64() - paused
                        })
                    })
                    .collect();
                each.into_iter().map(|thread| thread.join().expect("ended")).collect()
            });
            let wall_s = began.elapsed().as_secs_f64();
            let counts = stop().expect("recorded");
            let best = seconds.iter().fold(f64::MAX, |best: f64, s| best.min(*s));
            println!(
                "{threads} threads, pausing {pause}: {:.0} ns an event, {:.2} M/s each; written \
                 {:.2} M/s, dropped {}",
                best / 2e6 * 1e9,
                2.0 / best,
                counts.written as f64 / wall_s / 1e6,
                counts.dropped,
            );
        }
    }
    let began = Instant::now();
    for number in 0..100_000_000u64 {
        event(Level::Usage, "OFF", |record| _ = record.number("BYTES", number));
    }
    println!("off: {:.2} ns", began.elapsed().as_secs_f64() * 10.0);
}
