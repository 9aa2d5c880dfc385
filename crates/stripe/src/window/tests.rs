use super::*;
use crate::testing::{BLOCK, TestStripe, bytes_of, flip};
use std::sync::atomic::Ordering;

fn proving_object(parity: u32, bytes: &[u8]) -> (TestStripe, Arc<Object>) {
    let stripe = TestStripe::new(3, parity, true);
    let each = stripe.behaviours.iter();
    each.for_each(|server| server.is_proving.store(true, Ordering::Relaxed));
    stripe.put("a", bytes, false).expect("written");
    let object = stripe.store.open_object(&TestStripe::url("a")).expect("open");
    (stripe, Arc::new(object))
}

#[test]
fn a_reader_that_distrusts_a_server_does_not_change_what_others_asked_for() {
    for parity in [0, 1] {
        let bytes = bytes_of(100_000, 7);
        let (_stripe, object) = proving_object(parity, &bytes);
        let mut window = Window::of(object.clone(), vec![1001..1201, 40_001..40_009], 2);
        let needs = window.needs(&HashSet::new()).expect("readable");
        object.parts.iter().for_each(crate::part::Part::distrust);
        window.ask(&needs);
        let answers = window.answers().expect("read");
        assert!(answers == [&bytes[1001..1201], &bytes[40_001..40_009]], "parity {parity}");
        assert!(object.take_notes().is_empty());
    }
}

#[test]
fn long_reads_make_no_sources_that_prove() {
    let bytes = bytes_of(60_000, 7);
    let (stripe, object) = proving_object(1, &bytes);
    let mut window = Window::new(object.clone(), ShardRanges::default());
    window.requests = vec![0..60_000];
    window.targets = ShardRanges::of(object.layout(), &window.requests);
    window.begin();
    assert!(window.answers().expect("read") == [&bytes[..]]);
    let each = stripe.behaviours.iter();
    let count: u64 = each.map(|server| server.proof_sources.load(Ordering::Relaxed)).sum();
    assert_eq!(count, 0);
}

#[test]
fn damage_between_what_is_read_costs_no_part() {
    let bytes = bytes_of(200_000, 7);
    let (stripe, object) = proving_object(1, &bytes);
    let request = 0..bytes.len() as u64;
    // Two parts, each damaged in a row of its own: each is needed for the row of the other.
    *stripe.behaviours[0].damaged_byte.lock().expect("no panic") = Some(5 * BLOCK + 7);
    *stripe.behaviours[1].damaged_byte.lock().expect("no panic") = Some(9 * BLOCK + 7);
    let answers = Window::start(object.clone(), vec![request], 8).answers().expect("read");
    assert!(answers == [&bytes[..]]);
    // Rows around one that is damaged, as those of a cut.
    let rows: Vec<Range<u64>> = (0..24).map(|row| row * BLOCK..row * BLOCK + 200).collect();
    let answers = Window::start(object.clone(), rows.clone(), 8).answers().expect("read");
    assert!(
        rows.iter()
            .zip(&answers)
            .all(|(row, answer)| { answer == &bytes[row.start as usize..row.end as usize] })
    );
    assert!(object.parts.iter().all(|part| part.loss().is_none()));
}

/// Three parts of an object of one row, each damaged in another range of it, and the bytes that are right.
fn damaged_row(is_remote: bool) -> (TestStripe, Vec<u8>) {
    let stripe = TestStripe::new(3, 1, is_remote);
    let bytes = bytes_of(2 * BLOCK as usize, 7);
    stripe.put("a", &bytes, false).expect("written");
    (0..3).for_each(|server| flip(&stripe.part(server), 2000 * server + 600));
    (stripe, bytes)
}

#[test]
fn damage_of_several_parts_of_a_row_in_different_ranges_is_rebuilt() {
    for is_remote in [false, true] {
        let (stripe, bytes) = damaged_row(is_remote);
        assert!(stripe.get("a").expect("read") == bytes);
        let source = stripe.open("a").expect("open");
        for at in (0..bytes.len()).step_by(500) {
            let mut piece = vec![0; 400.min(bytes.len() - at)];
            source.read_exact_at(at as u64, &mut piece).expect("read");
            assert!(piece == bytes[at..at + piece.len()], "from {at}");
        }
        assert!(!source.take_notes().is_empty());
        // Where two of three have lost the same range, the others are read.
        flip(&stripe.part(0), 2700);
        let source = stripe.open("a").expect("open");
        let is_read = |start: u64| source.read_exact_at(start, &mut [0; 300]).is_ok();
        let lost: Vec<u64> = (0..2 * BLOCK).step_by(512).filter(|&at| !is_read(at)).collect();
        // The shards of two parts may be data, or one of them parity.
        assert!(!lost.is_empty() && lost.iter().all(|at| at % BLOCK == 2560), "{lost:?}");
    }
}

#[test]
fn many_damaged_ranges_of_two_parts_of_a_row_are_rebuilt() {
    for is_proving in [false, true] {
        let stripe = TestStripe::new(3, 1, true);
        let each = stripe.behaviours.iter();
        each.for_each(|server| server.is_proving.store(is_proving, Ordering::Relaxed));
        let bytes = bytes_of(2 * BLOCK as usize, 7);
        stripe.put("a", &bytes, false).expect("written");
        // Seven of sixteen ranges of 512 bytes in each.
        for number in 0..7 {
            flip(&stripe.part(0), 1024 * number + 5);
            flip(&stripe.part(1), 1024 * number + 600);
        }
        assert!(stripe.get("a").expect("read") == bytes);
    }
}

#[test]
fn damage_that_servers_tell_of_spoils_no_more_than_its_block() {
    let bytes = bytes_of(8 * BLOCK as usize, 7);
    let (stripe, object) = proving_object(1, &bytes);
    // In the same row, in different blocks of what servers verify.
    *stripe.behaviours[0].damaged_byte.lock().expect("no panic") = Some(100);
    *stripe.behaviours[1].damaged_byte.lock().expect("no panic") = Some(5000);
    for request in [0..8 * BLOCK, 60..140, 4990..5010] {
        let answers = Window::start(object.clone(), vec![request.clone()], 8).answers();
        let answers = answers.expect("read");
        assert!(answers == [&bytes[request.start as usize..request.end as usize]], "{request:?}");
    }
}

#[test]
fn a_server_that_always_tells_of_other_damage_is_done_without() {
    let bytes = bytes_of(3_000_000, 7);
    let rows: Vec<Range<u64>> = (0..90).map(|row| row * 4 * BLOCK..row * 4 * BLOCK + 200).collect();
    for parity in [0, 1] {
        let (stripe, object) = proving_object(parity, &bytes);
        let liar = &stripe.behaviours[1];
        liar.is_lying.store(true, Ordering::Relaxed);
        let answers = Window::start(object.clone(), rows.clone(), 8).answers();
        assert!(liar.lies.load(Ordering::Relaxed) <= 1 + MOST_DAMAGES as u64 + rows.len() as u64);
        match answers {
            Ok(answers) => assert!(parity == 1 && answers.len() == rows.len()),
            Err(error) => assert!(parity == 0, "{error}"),
        }
    }
}
