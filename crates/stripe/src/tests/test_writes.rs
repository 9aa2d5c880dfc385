//! Writers of striped objects: too few servers, two at once, readers meanwhile.

use crate::testing::{TestStripe, bytes_of};
use std::sync::atomic::Ordering;
use swathe_store_api::{PartSums, StoreError};

#[test]
fn writes_need_enough_servers() {
    let stripe = TestStripe::new(5, 1, false);
    let bytes = bytes_of(300_000, 1);
    // A server without a mark would not be used.
    stripe.put("first", &bytes, false).expect("all are there");
    stripe.kill(2, true);
    stripe.put("a", &bytes, false).expect("four are enough");
    assert!(stripe.get("a").expect("read") == bytes);
    let notes = stripe.open("a").expect("open").take_notes();
    assert!(notes[0].contains("without its part on s2 ("), "{notes:?}");
    stripe.kill(2, false);
    stripe.behaviours[4].is_full.store(true, Ordering::Relaxed);
    stripe.put("b", &bytes, false).expect("four are enough");
    let notes = stripe.open("b").expect("open").take_notes();
    let [note] = &notes[..] else { panic!("{notes:?}") };
    assert!(note.contains("without its part on s4 (") && note.contains("space"), "{note}");
    // Each version has a reason of its own.
    stripe.put("c", &bytes, false).expect("four are enough");
    let notes = ["a", "b"].map(|path| stripe.open(path).expect("open").take_notes());
    assert!(notes[0][0].contains("s2 (") && notes[1][0].contains("space"), "{notes:?}");
    stripe.kill(2, true);
    let error = stripe.put("a", &bytes_of(500, 2), true).expect_err("three are not");
    let text = error.to_string();
    assert!(text.contains("s2:") && text.contains("s4:"), "{text}");
    stripe.kill(2, false);
    assert!(stripe.get("a").expect("the old one") == bytes);
    assert!(stripe.get("b").expect("read") == bytes);
}

#[test]
fn an_object_that_is_not_finished_is_not_there() {
    let stripe = TestStripe::new(3, 1, false);
    let old = bytes_of(50_000, 1);
    stripe.put("a", &old, false).expect("written");
    let mut sink = stripe.create("a", 60_000).expect("begun");
    sink.write(bytes_of(40_000, 2).into()).map_err(|failure| failure.error).expect("written");
    drop(sink);
    let mut short = stripe.create("a", 60_000).expect("begun");
    short.write(bytes_of(40_000, 2).into()).map_err(|failure| failure.error).expect("written");
    assert!(short.finish(&PartSums::default(), 1, true).is_err());
    assert!(stripe.get("a").expect("read") == old);
    (0..3).for_each(|server| assert_eq!(stripe.files(server, false).len(), 1));
    let error = stripe.put("a", &old, false).expect_err("it exists");
    assert!(matches!(error, StoreError::Exists { .. }), "{error}");
    let mut long = stripe.create("c", 10).expect("begun");
    assert!(long.write(bytes_of(11, 2).into()).is_err());
}

#[test]
fn of_two_writers_one_wins_whole() {
    let stripe = TestStripe::new(4, 1, false);
    for round in 0..20 {
        let contents = [bytes_of(50_000, round), bytes_of(70_000, round + 100)];
        let results: Vec<_> = std::thread::scope(|threads| {
            let writers: Vec<_> = contents
                .iter()
                .map(|bytes| threads.spawn(|| stripe.put("a", bytes, true)))
                .collect();
            writers.into_iter().map(|writer| writer.join().expect("no panic")).collect()
        });
        assert!(results.iter().any(Result::is_ok), "{results:?}");
        let read = stripe.get("a").expect("read");
        assert!(contents.contains(&read), "a mixture of {} bytes", read.len());
    }
}

#[test]
fn a_reader_of_an_object_that_is_replaced_sees_one_version_or_an_error() {
    let stripe = TestStripe::new(4, 1, false);
    let old = bytes_of(400_000, 1);
    stripe.put("a", &old, false).expect("written");
    let source = stripe.open("a").expect("open");
    let mut pieces = source.fetch(vec![0..1000, 200_000..400_000], 1);
    assert!(pieces.next().expect("one").expect("read")[..] == old[..1000]);
    stripe.put("a", &bytes_of(400_000, 2), true).expect("replaced");
    let late = stripe.open("a").expect("open");
    assert!(late.version() != source.version());
    match source.fetch(vec![0..400_000], 1).next().expect("one") {
        Ok(bytes) => assert!(bytes[..] == old),
        Err(error) => assert!(matches!(error, StoreError::Changed { .. }), "{error}"),
    }
}

#[test]
fn a_writer_that_is_overtaken_says_so_and_changes_nothing() {
    let stripe = TestStripe::new(4, 1, false);
    stripe.put("a", &bytes_of(100, 1), false).expect("written");
    let mut slow = stripe.create("a", 50_000).expect("begun");
    slow.write(bytes_of(50_000, 2).into()).map_err(|failure| failure.error).expect("written");
    let new = bytes_of(70_000, 3);
    stripe.put("a", &new, true).expect("overtakes it");
    let failure = slow.finish(&PartSums::default(), 1, true).expect_err("overtaken");
    assert!(failure.error.to_string().contains("of another writer"), "{}", failure.error);
    assert!(stripe.get("a").expect("read") == new);
    (0..4).for_each(|server| assert_eq!(stripe.files(server, false).len(), 1));
}
