//! Objects of a striped store, with what may happen to its servers.

use crate::layout::Layout;
use crate::repair_progress::RepairProgress;
use crate::reports::PieceState;
use crate::testing::{BLOCK, TestStripe, bytes_of, flip};
use crate::upkeep::Upkeep;
use std::fs;
use std::ops::Range;
use std::sync::atomic::Ordering;
use swathe_store_api::{PartSums, Source, Store, StoreError};

const SHAPES: [(usize, u32); 6] = [(1, 0), (2, 1), (4, 0), (5, 1), (5, 2), (8, 3)];

fn ranges(size: u64, seed: u64) -> Vec<Range<u64>> {
    let numbers = bytes_of(40, seed);
    let at = |byte: u8| size * u64::from(byte) / 256;
    numbers
        .chunks(2)
        .map(|pair| at(pair[0]).min(at(pair[1]))..at(pair[0]).max(at(pair[1])))
        .collect()
}

fn assert_reads(source: &dyn Source, expected: &[u8], seed: u64) {
    let requests = ranges(expected.len() as u64, seed);
    let pieces: Result<Vec<_>, _> = source.fetch(requests.clone(), 2).collect();
    for (piece, range) in pieces.expect("read").iter().zip(requests) {
        assert!(piece[..] == expected[range.start as usize..range.end as usize], "{range:?}");
    }
}

#[test]
fn what_is_written_is_read() {
    for is_remote in [false, true] {
        for (servers, parity) in SHAPES {
            let stripe = TestStripe::new(servers, parity, is_remote);
            for size in [0, 1, 4096, 100_000, 1_000_001] {
                let bytes = bytes_of(size, servers as u64);
                stripe.put("d.bin", &bytes, true).expect("written");
                let source = stripe.open("d.bin").expect("open");
                assert_eq!(source.len(), size as u64);
                assert_reads(&*source, &bytes, size as u64);
                assert!(stripe.get("d.bin").expect("read") == bytes);
            }
            for server in 0..servers {
                assert_eq!(
                    stripe.files(server, false).len(),
                    1,
                    "the parts of older versions are gone"
                );
            }
        }
    }
}

#[test]
fn a_server_that_cannot_be_connected_to_is_left_out_without_a_hedge() {
    let stripe = TestStripe::new(4, 1, true);
    let bytes = bytes_of(300_000, 7);
    stripe.put("a", &bytes, false).expect("written");
    let source = stripe.open("a").expect("open");
    let behaviour = &stripe.behaviours[2];
    behaviour.is_hanging.store(true, Ordering::Relaxed);
    behaviour.is_unreachable.store(true, Ordering::Relaxed);
    let mut buffer = vec![0; bytes.len()];
    source.read_exact_at(0, &mut buffer).expect("rebuilt");
    assert!(buffer == bytes);
    let servers = stripe.store.servers.iter();
    let silent: Vec<bool> = servers.map(|server| server.is_silent()).collect();
    assert_eq!(silent, [false, false, true, false]);
}

#[test]
fn a_server_without_which_too_few_are_left_is_waited_for() {
    let stripe = TestStripe::new(3, 0, true);
    let bytes = bytes_of(50_000, 7);
    stripe.put("a", &bytes, false).expect("written");
    stripe.behaviours[1].is_unreachable.store(true, Ordering::Relaxed);
    stripe.behaviours[1].delay_ms.store(150, Ordering::Relaxed);
    assert!(stripe.get("a").expect("read") == bytes);
}

#[test]
fn impossible_reads_are_errors() {
    let stripe = TestStripe::new(3, 1, false);
    stripe.put("a", &bytes_of(1000, 1), false).expect("written");
    let source = stripe.open("a").expect("open");
    let mut pieces = source.fetch(vec![0..10, 990..1001, 0..5], 1);
    assert_eq!(pieces.next().map(|piece| piece.expect("read").len()), Some(10));
    let error = pieces.next().expect("an error").expect_err("too long");
    assert!(matches!(error, StoreError::ShortRead { start: 990, expected: 11, found: 10, .. }));
    assert!(pieces.next().is_none());
    assert!(matches!(stripe.open("b"), Err(StoreError::NotFound { .. })));
    for path in ["", "d/", "../a", "a/../b", "x\0", &"n".repeat(200)] {
        assert!(matches!(stripe.open(path), Err(StoreError::Unsupported { .. })), "{path:?}");
    }
}

#[test]
fn any_servers_may_be_lost_up_to_parity() {
    for (servers, parity) in SHAPES.into_iter().filter(|(_, parity)| *parity > 0) {
        for first in 0..servers {
            let stripe = TestStripe::new(servers, parity, first % 2 == 0);
            let bytes = bytes_of(300_000, 7);
            stripe.put("a", &bytes, false).expect("written");
            for lost in 0..parity as usize {
                let server = (first + lost) % servers;
                if first % 3 == 0 {
                    fs::remove_file(stripe.part(server)).expect("removed");
                } else {
                    stripe.kill(server, true);
                }
            }
            match stripe.open("a") {
                Ok(source) => {
                    assert_reads(&*source, &bytes, first as u64);
                    assert!(stripe.get("a").expect("read") == bytes);
                }
                // With half of the servers silent no version is sure.
                Err(error) => {
                    assert!(first % 3 != 0 && 2 * parity as usize > servers, "{error}");
                }
            }
        }
    }
}

#[test]
fn too_many_lost_servers_are_named_and_the_rest_is_read() {
    [false, true].into_iter().for_each(read_without_two);
}

fn read_without_two(is_remote: bool) {
    let stripe = TestStripe::new(5, 1, is_remote);
    let bytes = bytes_of(40 * BLOCK as usize, 3);
    stripe.put("a", &bytes, false).expect("written");
    for server in [1, 3] {
        fs::remove_file(stripe.part(server)).expect("removed");
    }
    let source = stripe.open("a").expect("open");
    let error =
        source.fetch(vec![0..bytes.len() as u64], 1).next().expect("one").expect_err("lost");
    let text = error.to_string();
    assert!(
        text.contains("found 3 parts") && text.contains("s1:") && text.contains("s3:"),
        "{text}"
    );
    // In the first row shards 0 and 2 are on servers 2 and 4, shard 1 is on server 3.
    let mut block = vec![0; BLOCK as usize];
    for shard in [0, 2] {
        source.read_exact_at(shard * BLOCK, &mut block).expect("intact");
        assert!(block[..] == bytes[(shard * BLOCK) as usize..((shard + 1) * BLOCK) as usize]);
    }
    assert!(source.read_exact_at(BLOCK, &mut block).is_err());
}

#[test]
fn bytes_that_are_not_what_was_written_are_rebuilt() {
    for (servers, parity) in [(2, 1), (5, 2)] {
        let stripe = TestStripe::new(servers, parity, false);
        let bytes = bytes_of(300_000, 5);
        stripe.put("a", &bytes, false).expect("written");
        for at in 0..parity as usize {
            (0..7).for_each(|flips| flip(&stripe.part(at), 9_000 * flips + at));
        }
        let source = stripe.open("a").expect("open");
        assert_reads(&*source, &bytes, 8);
        assert!(stripe.get("a").expect("read") == bytes);
        let notes = source.take_notes();
        assert!(
            notes.iter().any(|note| note.contains("s0:") && note.contains("stripe check")),
            "{notes:?}"
        );
    }
}

#[test]
fn without_parity_wrong_bytes_are_an_error() {
    let stripe = TestStripe::new(3, 0, false);
    let bytes = bytes_of(100_000, 5);
    stripe.put("a", &bytes, false).expect("written");
    flip(&stripe.part(1), 5000);
    let error = stripe.get("a").expect_err("damaged");
    assert!(matches!(error, StoreError::Differs { .. }), "{error}");
    assert!(error.to_string().contains("s1:"), "{error}");
}

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
    assert!(error.to_string().contains("s0:: the record: expected its header, found 0 bytes"));
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
fn writes_need_enough_servers() {
    let stripe = TestStripe::new(5, 1, false);
    let bytes = bytes_of(300_000, 1);
    stripe.kill(2, true);
    stripe.put("a", &bytes, false).expect("four are enough");
    assert!(stripe.get("a").expect("read") == bytes);
    let notes = stripe.open("a").expect("open").take_notes();
    assert!(notes[0].contains("without its part on s2:"), "{notes:?}");
    stripe.kill(2, false);
    stripe.behaviours[4].is_full.store(true, Ordering::Relaxed);
    stripe.put("b", &bytes, false).expect("four are enough");
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

#[test]
fn a_late_part_is_read_around() {
    let stripe = TestStripe::new(5, 1, true);
    let bytes = bytes_of(600_000, 4);
    stripe.put("a", &bytes, false).expect("written");
    // Warm: parts are open.
    let source = stripe.open("a").expect("open");
    assert_reads(&*source, &bytes, 1);
    stripe.behaviours[2].delay_ms.store(300, Ordering::Relaxed);
    assert_reads(&*source, &bytes, 2);
    let [tries, wins, extra, read] = stripe.store.hedges.counts();
    assert!(tries > 0 && wins > 0 && wins <= tries, "{tries} {wins}");
    assert!(extra <= (1 << 20) + read / 20, "{extra} of {read}");
}

#[test]
fn a_slow_server_is_left_out_by_its_costs() {
    let mut stripe = TestStripe::new(5, 1, true);
    let bytes = bytes_of(4_000_000, 4);
    stripe.put("a", &bytes, false).expect("written");
    let store = &stripe.store;
    let servers = store.servers.iter().enumerate().map(|(number, server)| {
        let store = server.store().clone();
        let mut settings = store.settings().clone();
        if number == 1 {
            settings.costs.total_bytes_per_s /= 50.0;
            settings.costs.request = swathe_plan::Curve::affine(1e-4, 1e6);
        }
        let slower = crate::testing::with_settings(&stripe, number, settings);
        std::sync::Arc::new(crate::server::Server::new(slower, ""))
    });
    let servers = servers.collect();
    stripe.store =
        crate::striped_store::StripedStore::of_servers(store.settings().clone(), servers);
    let source = stripe.open("a").expect("open");
    assert_reads(&*source, &bytes, 1);
    assert!(stripe.get("a").expect("read") == bytes);
    let [slow, other] =
        [1, 0].map(|server: usize| stripe.behaviours[server].read_bytes.load(Ordering::Relaxed));
    assert!(5 * slow < other, "{slow} of {other}");
}

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
            assert_eq!(report.parts[1].damaged_blocks, [block]);
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
