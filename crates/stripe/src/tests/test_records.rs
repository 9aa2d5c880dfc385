//! What the records of a striped object say, and what counts of them.

use crate::repair_progress::RepairProgress;
use crate::reports::PieceState;
use crate::testing::{TestStripe, bytes_of, flip};
use crate::upkeep::Upkeep;
use std::fs;
use swathe_store_api::StoreError;

#[test]
fn parts_of_another_version_or_object_do_not_count() {
    let stripe = TestStripe::new(4, 1, false);
    let (old, new) = (bytes_of(200_000, 1), bytes_of(200_000, 2));
    stripe.put("a", &old, false).expect("written");
    let old_part = fs::read(stripe.part(2)).expect("read");
    stripe.put("a", &new, true).expect("written");
    fs::write(stripe.part(2), &old_part).expect("written");
    assert!(stripe.get("a").expect("read") == new);
    fs::write(stripe.part(2), &old_part[..100]).expect("written");
    assert!(stripe.get("a").expect("read") == new);
}

#[test]
fn one_record_is_enough() {
    let stripe = TestStripe::new(5, 1, false);
    let bytes = bytes_of(100_000, 9);
    stripe.put("a", &bytes, false).expect("written");
    (0..3).for_each(|server| fs::remove_file(stripe.record(server)).expect("removed"));
    flip(&stripe.record(3), 30);
    assert!(stripe.get("a").expect("read") == bytes);
    // A minority had it; so the reader gave it to others.
    (0..3).for_each(|server| fs::remove_file(stripe.record(server)).expect("removed"));
    flip(&stripe.record(4), 30);
    let error = stripe.get("a").expect_err("no record");
    assert!(matches!(error, StoreError::Differs { .. }), "{error}");
}

#[test]
fn an_empty_record_says_as_little_as_none() {
    let stripe = TestStripe::new(4, 1, false);
    let bytes = bytes_of(100_000, 9);
    stripe.put("a", &bytes, false).expect("written");
    (0..3).for_each(|server| fs::write(stripe.record(server), b"").expect("emptied"));
    assert_eq!(stripe.list("").expect("listed"), [("a".to_string(), Some(100_000))]);
    let upkeep = Upkeep(stripe.store.clone());
    let url = TestStripe::url("a");
    let states = |upkeep: &Upkeep| -> Vec<_> {
        let report = upkeep.check(&url, false).expect("checked");
        report.records.iter().map(|record| record.state).collect()
    };
    let (damaged, whole) = (PieceState::Damaged, PieceState::Whole);
    assert_eq!(states(&upkeep), [damaged, damaged, damaged, whole]);
    let repair = upkeep.repair(&url, false, &RepairProgress::default()).expect("repaired");
    assert_eq!(repair.rebuilt_records, ["s0:", "s1:", "s2:"]);
    assert_eq!(states(&upkeep), [whole; 4]);
    (0..3).for_each(|server| fs::write(stripe.record(server), b"").expect("emptied"));
    assert!(stripe.get("a").expect("read") == bytes);
    assert_eq!(states(&upkeep), [whole; 4]);
}

#[test]
fn an_object_with_empty_records_alone_is_an_error_and_can_be_written_anew() {
    let stripe = TestStripe::new(4, 1, false);
    stripe.put("a", &bytes_of(100_000, 9), false).expect("written");
    (0..4).for_each(|server| fs::write(stripe.record(server), b"").expect("emptied"));
    let error = stripe.get("a").expect_err("no record");
    assert!(matches!(error, StoreError::Differs { .. }), "{error}");
    assert!(error.to_string().contains("s0: the record: expected its header, found 0 bytes"));
    let listed = stripe.list("").expect("listed");
    assert_eq!(listed, [("a".to_string(), None)]);
    // Its parts may be all that is left of it.
    fs::remove_file(stripe.part(3)).expect("removed");
    let leftovers = Upkeep(stripe.store.clone()).leftovers(true).expect("listed");
    assert!(leftovers.iter().all(|part| !part.is_removed), "{leftovers:?}");
    let again = bytes_of(5000, 2);
    stripe.put("a", &again, true).expect("written anew");
    assert!(stripe.get("a").expect("read") == again);
}

#[test]
fn an_older_record_does_not_count() {
    let stripe = TestStripe::new(4, 1, false);
    stripe.put("a", &bytes_of(100, 1), false).expect("written");
    let old = fs::read(stripe.record(0)).expect("read");
    let new = bytes_of(90_000, 2);
    stripe.put("a", &new, true).expect("written");
    fs::write(stripe.record(0), old).expect("written");
    assert!(stripe.get("a").expect("read") == new);
}

#[test]
fn a_removed_object_stays_removed_when_a_server_returns() {
    let stripe = TestStripe::new(4, 1, false);
    stripe.put("a", &bytes_of(1000, 1), false).expect("written");
    stripe.kill(3, true);
    stripe.remove("a").expect("removed");
    stripe.kill(3, false);
    assert!(matches!(stripe.get("a"), Err(StoreError::NotFound { .. })));
    assert_eq!(stripe.list("").expect("listed"), []);
    let again = bytes_of(2000, 2);
    stripe.put("a", &again, false).expect("written anew");
    assert!(stripe.get("a").expect("read") == again);
    stripe.remove("a").expect("removed");
    for server in 0..4 {
        // The record that it was removed stays for a day.
        let files = (stripe.files(server, true), stripe.files(server, false));
        assert_eq!((files.0.len(), files.1.len()), (1, usize::from(server == 3)), "{files:?}");
    }
    assert!(matches!(stripe.remove("a"), Err(StoreError::NotFound { .. })));
}

#[test]
fn a_removal_that_too_few_servers_can_hear_of_changes_nothing() {
    let stripe = TestStripe::new(4, 1, false);
    let bytes = bytes_of(1000, 1);
    stripe.put("a", &bytes, false).expect("written");
    [1, 2].into_iter().for_each(|server| stripe.kill(server, true));
    let error = stripe.remove("a").expect_err("two of four").to_string();
    assert!(error.contains("expected answers of 3 of 4 servers, found 2"), "{error}");
    assert!(error.contains("s1:") && error.contains("s2:"), "{error}");
    [1, 2].into_iter().for_each(|server| stripe.kill(server, false));
    assert!(stripe.get("a").expect("read") == bytes);
}
