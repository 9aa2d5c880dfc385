//! Checks and repairs of striped objects.

use crate::layout::Layout;
use crate::repair_progress::RepairProgress;
use crate::reports::PieceState;
use crate::testing::{BLOCK, TestStripe, bytes_of, flip};
use crate::upkeep::Upkeep;
use std::fs;
use swathe_store_api::StoreError;

#[test]
fn what_is_lost_or_damaged_is_found_and_rebuilt() {
    for (servers, parity) in [(2, 1), (5, 1), (5, 2), (8, 3)] {
        let stripe = TestStripe::new(servers, parity, false);
        let bytes = bytes_of(500_000, 6);
        stripe.put("a", &bytes, false).expect("written");
        let before: Vec<_> =
            (0..servers).map(|server| fs::read(stripe.part(server)).expect("read")).collect();
        let paths: Vec<_> = (0..servers).map(|server| stripe.part(server)).collect();
        let record = fs::read(stripe.record(0)).expect("read");
        let record_path = stripe.record(0);
        // One lost, with its record; the others damaged.
        fs::remove_file(stripe.part(0)).expect("removed");
        fs::remove_file(stripe.record(0)).expect("removed");
        (1..parity as usize).for_each(|server| flip(&stripe.part(server), 70_000));
        let (folder, behaviours) = (stripe.folder, stripe.behaviours);
        let upkeep = Upkeep(stripe.store);
        let url = TestStripe::url("a");
        let report = upkeep.check(&url, true).expect("checked");
        assert!(report.is_readable);
        assert_eq!(report.parts[0].state, PieceState::Missing);
        assert_eq!(report.records[0].state, PieceState::Missing);
        if parity > 1 {
            assert_eq!(report.parts[1].state, PieceState::Damaged);
            let layout = Layout::new(500_000, BLOCK, servers as u32 - parity, parity);
            let block = 70_000 / layout.sum_bytes * layout.sum_bytes;
            assert_eq!(report.parts[1].damage_starts, [block]);
        }
        let quick = upkeep.check(&url, false).expect("checked");
        assert_eq!(quick.parts.iter().filter(|part| part.state != PieceState::Whole).count(), 1);
        let progress = RepairProgress::default();
        let repair = upkeep.repair(&url, true, &progress).expect("repaired");
        let part_bytes: u64 = before.iter().map(|bytes| bytes.len() as u64).sum();
        let rebuilt_bytes: u64 = before.iter().take(parity as usize).map(|b| b.len() as u64).sum();
        assert_eq!(progress.counts(), (part_bytes + rebuilt_bytes, part_bytes + rebuilt_bytes));
        assert_eq!(progress.written_bytes(), rebuilt_bytes);
        assert_eq!(repair.rebuilt_parts.len(), parity as usize);
        assert_eq!(repair.rebuilt_records, ["s0:"]);
        assert!(repair.failures.is_empty());
        for (path, bytes) in paths.iter().zip(&before) {
            assert!(fs::read(path).expect("read") == *bytes, "{}", path.display());
        }
        assert_eq!(fs::read(record_path).expect("read"), record);
        let report = upkeep.check(&url, true).expect("checked");
        let all = report.parts.iter().chain(&report.records);
        assert!(all.clone().all(|piece| piece.state == PieceState::Whole));
        let again = upkeep.repair(&url, true, &RepairProgress::default()).expect("nothing to do");
        assert!(again.rebuilt_parts.is_empty() && again.rebuilt_records.is_empty());
        drop((folder, behaviours));
    }
}

#[test]
fn damage_in_different_ranges_of_a_row_is_mended() {
    let stripe = TestStripe::new(4, 1, false);
    let bytes = bytes_of(300_000, 6);
    stripe.put("a", &bytes, false).expect("written");
    let before: Vec<_> =
        (0..4).map(|server| fs::read(stripe.part(server)).expect("read")).collect();
    let paths: Vec<_> = (0..4).map(|server| stripe.part(server)).collect();
    for (number, path) in paths.iter().enumerate() {
        (0..2).for_each(|row| flip(path, 20_000 * row + 600 * number));
    }
    let (folder, behaviours) = (stripe.folder, stripe.behaviours);
    let upkeep = Upkeep(stripe.store);
    let url = TestStripe::url("a");
    let report = upkeep.check(&url, true).expect("checked");
    assert!(report.is_readable);
    assert!(report.parts.iter().all(|part| part.damage_starts.len() == 2));
    let repair = upkeep.repair(&url, true, &RepairProgress::default()).expect("repaired");
    assert!(repair.failures.is_empty(), "{:?}", repair.failures);
    assert_eq!(repair.rebuilt_parts.len(), 4);
    for (path, bytes) in paths.iter().zip(&before) {
        assert!(fs::read(path).expect("read") == *bytes, "{}", path.display());
    }
    // The same range of two parts.
    (0..2).for_each(|number| flip(&paths[number], 20_000));
    let report = upkeep.check(&url, true).expect("checked");
    assert!(!report.is_readable);
    drop((folder, behaviours));
}

/// The first and the last disk in each other's place.
fn exchange(stripe: &TestStripe) {
    let disk = |name: &str| stripe.folder.path().join(name);
    let rename = |from: &str, to: &str| fs::rename(disk(from), disk(to)).expect("moved");
    let last = format!("s{}", stripe.behaviours.len() - 1);
    rename("s0", "other");
    rename(&last, "s0");
    rename("other", &last);
}

#[test]
fn parts_on_exchanged_disks_are_found() {
    for (is_remote, parity) in [(false, 1), (true, 1), (true, 2)] {
        let stripe = TestStripe::new(4 + parity as usize - 1, parity, is_remote);
        // So long that several windows are on their way when the first part is not found.
        let bytes = bytes_of(9_000_000, 6);
        stripe.put("a", &bytes, false).expect("written");
        exchange(&stripe);
        let source = stripe.open("a").expect("open");
        let mut found = vec![0; bytes.len()];
        source.read_exact_at(0, &mut found).expect("read");
        assert!(found == bytes);
        let notes = source.take_notes();
        let last = format!("s{}", 3 + parity - 1);
        let expected = format!(" is on {last}, and was written to s0; were their disks exchanged?");
        assert!(notes.iter().any(|note| note.contains(&expected)), "{notes:?}");
        assert!(!notes.iter().any(|note| note.contains("is lost")), "{notes:?}");
        let upkeep = Upkeep(stripe.store.clone());
        let report = upkeep.check(&TestStripe::url("a"), true).expect("checked");
        assert!(report.is_readable);
        assert!(report.parts.iter().all(|part| part.state == PieceState::Whole));
        let moved = report.parts.iter().filter(|part| part.why.is_some());
        let moved: Vec<&str> = moved.map(|part| part.server.as_str()).collect();
        assert_eq!(moved, [format!("{last}:"), "s0:".into()]);
        let repair = upkeep.repair(&TestStripe::url("a"), true, &RepairProgress::default());
        assert!(repair.expect("nothing to do").rebuilt_parts.is_empty());
        assert!(upkeep.leftovers(true).expect("listed").is_empty());
        // What is gone is looked for, and not found.
        (0..2).for_each(|server| fs::remove_file(stripe.part(server)).expect("removed"));
        if parity == 1 {
            let error = stripe.get("a").expect_err("too few").to_string();
            assert!(error.contains("expected bytes of any 3 of its 4 parts, found 2"), "{error}");
        } else {
            assert!(stripe.get("a").expect("read") == bytes);
        }
    }
}

#[test]
fn many_readers_find_parts_on_exchanged_disks() {
    let stripe = TestStripe::new(3, 1, true);
    let bytes = bytes_of(3_000_000, 6);
    stripe.put("a", &bytes, false).expect("written");
    exchange(&stripe);
    let source = stripe.open("a").expect("open");
    std::thread::scope(|threads| {
        for number in 0..8 {
            let (source, bytes) = (&source, &bytes);
            threads.spawn(move || {
                let start = 300_000 * number;
                let mut found = vec![0; 600_000];
                source.read_exact_at(start as u64, &mut found).expect("read");
                assert!(found == bytes[start..start + 600_000]);
            });
        }
    });
}

#[test]
fn with_one_of_two_exchanged_disks_away_the_other_is_read() {
    let stripe = TestStripe::new(4, 1, true);
    let bytes = bytes_of(300_000, 6);
    stripe.put("a", &bytes, false).expect("written");
    exchange(&stripe);
    stripe.kill(3, true);
    assert!(stripe.get("a").expect("read") == bytes);
    let report = Upkeep(stripe.store.clone()).check(&TestStripe::url("a"), true).expect("checked");
    assert!(report.is_readable);
    let states: Vec<_> = report.parts.iter().map(|part| part.state).collect();
    let whole = PieceState::Whole;
    assert_eq!(states, [PieceState::Missing, whole, whole, whole]);
}

#[test]
fn disks_that_are_put_back_are_found_by_who_reads_meanwhile() {
    let stripe = TestStripe::new(3, 1, true);
    let bytes = bytes_of(9_000_000, 6);
    stripe.put("a", &bytes, false).expect("written");
    let source = stripe.open("a").expect("open");
    for _ in 0..4 {
        let mut found = vec![0; bytes.len()];
        source.read_exact_at(0, &mut found).expect("read");
        assert!(found == bytes);
        exchange(&stripe);
    }
}

#[test]
fn with_two_spare_parts_none_is_rebuilt_beside_another() {
    let stripe = TestStripe::new(4, 2, true);
    let bytes = bytes_of(300_000, 6);
    stripe.put("a", &bytes, false).expect("written");
    exchange(&stripe);
    // The server that has the first part; the last is on the first server.
    stripe.kill(3, true);
    let upkeep = Upkeep(stripe.store.clone());
    let url = TestStripe::url("a");
    let repair = upkeep.repair(&url, false, &RepairProgress::default()).expect("tried");
    assert_eq!(repair.rebuilt_parts, [""; 0]);
    assert!((0..3).all(|server| stripe.files(server, false).len() == 1));
    assert!(stripe.get("a").expect("read") == bytes);
    stripe.kill(3, false);
    fs::remove_file(stripe.part(3)).expect("removed");
    let repair = upkeep.repair(&url, false, &RepairProgress::default()).expect("repaired");
    assert_eq!(repair.rebuilt_parts, ["s3:"]);
    assert!((0..4).all(|server| stripe.files(server, false).len() == 1));
}

#[test]
fn a_part_is_rebuilt_where_no_other_one_is() {
    let stripe = TestStripe::new(4, 1, false);
    let bytes = bytes_of(300_000, 6);
    stripe.put("a", &bytes, false).expect("written");
    exchange(&stripe);
    // The new disk has the parts of the old one no more.
    fs::remove_file(stripe.part(0)).expect("removed");
    let upkeep = Upkeep(stripe.store.clone());
    let url = TestStripe::url("a");
    let repair = upkeep.repair(&url, true, &RepairProgress::default()).expect("repaired");
    assert_eq!((repair.rebuilt_parts, repair.failures.len()), (vec!["s0:".to_string()], 0));
    assert!((0..4).all(|server| stripe.files(server, false).len() == 1));
    assert!(upkeep.check(&url, true).expect("checked").is_readable);
    // One that is damaged is written anew in its place.
    flip(&stripe.part(0), 100);
    let repair = upkeep.repair(&url, true, &RepairProgress::default()).expect("repaired");
    assert_eq!(repair.rebuilt_parts, ["s0:"]);
    assert!((0..4).all(|server| stripe.files(server, false).len() == 1));
    assert!(stripe.get("a").expect("read") == bytes);
}

#[test]
fn what_cannot_be_rebuilt_is_said() {
    let stripe = TestStripe::new(4, 1, false);
    stripe.put("a", &bytes_of(200_000, 6), false).expect("written");
    fs::remove_file(stripe.part(0)).expect("removed");
    fs::remove_file(stripe.part(1)).expect("removed");
    let upkeep = Upkeep(stripe.store);
    let url = TestStripe::url("a");
    assert!(!upkeep.check(&url, false).expect("checked").is_readable);
    let repair = upkeep.repair(&url, true, &RepairProgress::default()).expect("tried");
    assert_eq!(repair.failures.len(), 2);
    assert!(repair.failures[0].why.contains("found 2 parts"), "{}", repair.failures[0].why);
    assert!(matches!(upkeep.check(&TestStripe::url("b"), true), Err(StoreError::NotFound { .. })));
}

#[test]
fn leftovers_are_found_and_removed() {
    let stripe = TestStripe::new(4, 1, false);
    stripe.put("a", &bytes_of(100_000, 1), false).expect("written");
    stripe.kill(3, true);
    stripe.put("a", &bytes_of(100_000, 2), true).expect("replaced");
    stripe.kill(3, false);
    let unfinished = stripe.folder.path().join("s1/b.stripe.1-00ff.10.1");
    fs::write(&unfinished, b"0123").expect("written");
    let (folder, behaviours) = (stripe.folder, stripe.behaviours);
    let upkeep = Upkeep(stripe.store);
    let found = upkeep.leftovers(false).expect("listed");
    let kinds: Vec<_> = found.iter().map(|left| (left.server.as_str(), left.is_replaced)).collect();
    assert_eq!(kinds, [("s3:", true), ("s1:", false)]);
    let removed = upkeep.leftovers(true).expect("removed");
    // Those of the last day stay: a write may be using them.
    assert_eq!(removed.iter().map(|left| left.is_removed).collect::<Vec<_>>(), [false, true]);
    assert!(!unfinished.exists());
    let reports = upkeep.server_reports(true);
    assert_eq!(reports.iter().map(|report| report.parts).collect::<Vec<_>>(), [1, 1, 1, 1]);
    assert!(reports.iter().all(|report| report.is_reachable && report.records == 1));
    upkeep.repair(&TestStripe::url("a"), false, &RepairProgress::default()).expect("repaired");
    assert_eq!(upkeep.server_reports(true)[3].parts, 2);
    drop((folder, behaviours));
}

#[test]
fn parts_with_damage_in_different_rows_rebuild_each_other() {
    let stripe = TestStripe::new(4, 1, false);
    let bytes = bytes_of(600_000, 6);
    stripe.put("a", &bytes, false).expect("written");
    let before: Vec<_> =
        (0..4).map(|server| fs::read(stripe.part(server)).expect("read")).collect();
    let paths: Vec<_> = (0..4).map(|server| stripe.part(server)).collect();
    flip(&paths[0], 3 * BLOCK as usize);
    flip(&paths[1], 9 * BLOCK as usize);
    flip(&paths[2], 15 * BLOCK as usize);
    let (folder, behaviours) = (stripe.folder, stripe.behaviours);
    let upkeep = Upkeep(stripe.store);
    let url = TestStripe::url("a");
    assert!(upkeep.check(&url, true).expect("checked").is_readable);
    let repair = upkeep.repair(&url, true, &RepairProgress::default()).expect("repaired");
    assert!(repair.failures.is_empty(), "{:?}", repair.failures);
    for (path, bytes) in paths.iter().zip(&before) {
        assert!(fs::read(path).expect("read") == *bytes);
    }
    drop((folder, behaviours));
}

#[test]
fn a_record_is_repaired_from_one_whose_checksums_are_sound() {
    let stripe = TestStripe::new(4, 1, false);
    stripe.put("a", &bytes_of(200_000, 6), false).expect("written");
    let sound = fs::read(stripe.record(1)).expect("read");
    let mut rotten = sound.clone();
    let last = rotten.len() - 6;
    rotten[last] ^= 1;
    fs::write(stripe.record(0), rotten).expect("written");
    let path = stripe.record(3);
    fs::remove_file(&path).expect("removed");
    let (folder, behaviours) = (stripe.folder, stripe.behaviours);
    Upkeep(stripe.store)
        .repair(&TestStripe::url("a"), false, &RepairProgress::default())
        .expect("repaired");
    assert_eq!(fs::read(path).expect("read"), sound);
    drop((folder, behaviours));
}

#[test]
fn a_server_that_was_away_gets_the_removal_though_its_parts_are_young() {
    let stripe = TestStripe::new(3, 1, false);
    stripe.put("a", &bytes_of(50_000, 1), false).expect("written");
    stripe.kill(0, true);
    stripe.remove("a").expect("removed without one");
    stripe.kill(0, false);
    let removal = fs::read(stripe.record(1)).expect("a record");
    assert_ne!(fs::read(stripe.record(0)).expect("the earlier record"), removal);
    let leftovers = Upkeep(stripe.store.clone()).leftovers(true).expect("listed");
    assert!(leftovers.iter().all(|part| part.server == "s0:" && !part.is_removed), "{leftovers:?}");
    assert_eq!(leftovers.len(), 1);
    for server in 0..3 {
        assert_eq!(fs::read(stripe.record(server)).expect("a record"), removal);
    }
}
