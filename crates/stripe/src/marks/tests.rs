//! Disks and records of another stripe in the place of ours.

mod test_remembered_stripe;

use super::*;
use crate::repair_progress::RepairProgress;
use crate::reports::{PieceState, ServerState};
use crate::striped_store::StripedStore;
use crate::testing::{TestStripe, bytes_of, with_settings};
use crate::upkeep::Upkeep;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::Ordering;
use swathe_store_api::{ListOptions, ObjectName, Store};

fn folder(stripe: &TestStripe, server: usize) -> PathBuf {
    stripe.folder.path().join(format!("s{server}"))
}

/// The files of a folder, with their bytes.
fn files_in(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = fs::read_dir(folder).expect("listed").map(|entry| entry.expect("an entry").path());
    paths.map(|path| (path.clone(), fs::read(path).expect("read"))).collect()
}

/// Put the files of a server of another stripe whose names begin so in the place of those of ours.
fn put_files_of(other: &TestStripe, stripe: &TestStripe, server: usize, name: &str) {
    for (path, bytes) in files_in(&folder(other, server)) {
        let file_name = path.file_name().expect("a name").to_str().expect("a text").to_string();
        if file_name.starts_with(name) {
            fs::write(folder(stripe, server).join(file_name), bytes).expect("written");
        }
    }
}

fn put_disk_of(other: &TestStripe, stripe: &TestStripe, server: usize) {
    fs::remove_dir_all(folder(stripe, server)).expect("removed");
    fs::create_dir(folder(stripe, server)).expect("made");
    put_files_of(other, stripe, server, "");
}

/// The same folders as a new process sees them.
fn reopen(stripe: &mut TestStripe) {
    let anew = |(number, server): (usize, &Arc<Server>)| {
        let settings = server.store().settings().clone();
        Arc::new(Server::new(with_settings(stripe, number, settings), ""))
    };
    let servers = stripe.store.servers.iter().enumerate().map(anew).collect();
    stripe.store = StripedStore::of_servers(stripe.store.settings().clone(), servers);
}

/// A stripe that has objects and no mark, as those from before there were marks.
fn unmarked(servers: usize, parity: u32) -> TestStripe {
    let stripe = TestStripe::new(servers, parity, true);
    let leftover = "old.stripe.1-0f.1.0";
    (0..servers).for_each(|server| {
        fs::write(folder(&stripe, server).join(leftover), b"x").expect("written");
    });
    stripe
}

fn marks(stripe: &TestStripe) -> BTreeSet<Option<String>> {
    let mark = |server: &Arc<Server>| server.mark().expect("read");
    stripe.store.servers.iter().map(mark).collect()
}

/// What servers say, by one letter each: `-` has no mark, `0` is empty, `?` says nothing.
fn stripe_by(text: &str) -> Result<Option<String>, Vec<String>> {
    let statements: Vec<Statement> = text
        .chars()
        .map(|letter| match letter {
            '-' => Statement::Unmarked,
            '0' => Statement::Empty,
            '?' => Statement::Silence,
            name => Statement::Stripe(name.into()),
        })
        .collect();
    stripe_of(&statements, None)
}

#[test]
fn what_most_servers_say_counts() {
    for (statements, stripe) in [
        ("aaab", Some("a")),
        ("aab0", Some("a")),
        ("a000", Some("a")),
        ("a0??", Some("a")),
        ("aab?", Some("a")),
        ("b---", None),
        ("----", None),
        ("0000", None),
    ] {
        assert_eq!(stripe_by(statements), Ok(stripe.map(str::to_string)), "{statements}");
    }
    assert_eq!(stripe_by("aabb"), Err(vec!["a".to_string(), "b".to_string()]));
    assert_eq!(stripe_by("a-"), Err(vec!["one without mark".to_string(), "a".to_string()]));
}

#[test]
fn a_new_stripe_gets_one_mark_and_one_with_objects_none() {
    let stripe = TestStripe::new(4, 1, true);
    stripe.put("a", &bytes_of(1000, 1), false).expect("written");
    let all = marks(&stripe);
    assert!(all.len() == 1 && all.iter().all(Option::is_some), "{all:?}");
    assert_eq!(stripe.list("").expect("listed").len(), 1);
    let old = unmarked(3, 1);
    old.put("a", &bytes_of(1000, 1), false).expect("written");
    assert_eq!(marks(&old), [None].into());
    assert_eq!(old.get("a").expect("read"), bytes_of(1000, 1));
}

/// Move the disk of a server away, and leave its mount point; or bring it back.
fn mount(stripe: &TestStripe, server: usize, is_there: bool) {
    let (point, elsewhere) =
        (folder(stripe, server), stripe.folder.path().join(format!("away-{server}")));
    if is_there {
        fs::remove_dir(&point).expect("an empty mount point");
        fs::rename(elsewhere, point).expect("moved");
    } else {
        fs::rename(&point, elsewhere).expect("moved");
        fs::create_dir(point).expect("made");
    }
}

#[test]
fn an_empty_server_is_not_used_until_a_repair() {
    for is_remote in [false, true] {
        let mut stripe = TestStripe::new(3, 2, is_remote);
        let (old, new) = (bytes_of(50_000, 1), bytes_of(60_000, 2));
        stripe.put("a", &old, false).expect("written");
        let all = marks(&stripe);
        mount(&stripe, 2, false);
        reopen(&mut stripe);
        stripe.put("a", &new, true).expect("replaced without one");
        stripe.put("b", &old, false).expect("written without one");
        let (names, notes) = stripe.list_with_notes("").expect("listed");
        assert_eq!(names.len(), 2);
        assert!(
            notes[0].contains("s2: ")
                && notes[0].contains("found no folder or one without records"),
            "{notes:?}"
        );
        let states = |stripe: &TestStripe| -> Vec<ServerState> {
            let reports = Upkeep(stripe.store.clone()).server_reports(false);
            reports.iter().map(|each| each.state).collect()
        };
        let (reachable, missing) = (ServerState::Reachable, ServerState::Missing);
        assert_eq!(states(&stripe), [reachable, reachable, missing]);
        // The disk that is mounted has an older version; the others are two mount points.
        mount(&stripe, 2, true);
        (0..2).for_each(|server| mount(&stripe, server, false));
        reopen(&mut stripe);
        for (work, error) in [
            ("open", stripe.open("a").map(drop)),
            ("open another", stripe.open("b").map(drop)),
            ("list", stripe.list("").map(drop)),
            ("put", stripe.put("a", &new, true)),
            ("put another", stripe.put("c", &new, false)),
            ("remove", stripe.remove("a")),
        ] {
            let error = error.expect_err(work);
            let text = error.to_string();
            assert!(
                matches!(error, StoreError::Network { .. })
                    && text.contains("found 1; s0: ")
                    && text.contains("found no folder or one without records; mount its disk"),
                "{work}: {text}"
            );
        }
        mount(&stripe, 1, true);
        reopen(&mut stripe);
        assert!(stripe.get("a").expect("read without one") == new);
        let upkeep = Upkeep(stripe.store.clone());
        let repair =
            |path| upkeep.repair(&TestStripe::url(path), false, &RepairProgress::default());
        assert!(!repair("a").expect("tried").failures.is_empty(), "it is not used by one alone");
        // A new version may be on two that are empty.
        mount(&stripe, 1, false);
        let error = upkeep.admit_empty_servers().expect_err("two of three").to_string();
        assert!(
            error.contains("at most 1 of 3 servers") && error.contains("2: s0, s1;"),
            "{error}"
        );
        mount(&stripe, 1, true);
        assert!(files_in(&folder(&stripe, 0)).is_empty());
        assert_eq!(upkeep.admit_empty_servers().expect("one"), ["s0:"]);
        for path in ["a", "b"] {
            let url = TestStripe::url(path);
            assert!(repair(path).expect("repaired").failures.is_empty());
            let report = upkeep.check(&url, true).expect("checked");
            let states: Vec<_> = report.parts.iter().map(|part| part.state).collect();
            assert_eq!(states, [PieceState::Whole; 3], "{path}");
        }
        assert_eq!(marks(&stripe), all);
        assert_eq!(states(&stripe), [reachable; 3]);
        stripe.kill(1, is_remote);
        assert!(stripe.get("a").expect("read with the new one") == new);
    }
}

#[test]
fn a_server_that_has_lost_its_mark_is_known_by_its_records() {
    for is_remote in [false, true] {
        let (old, new) = (bytes_of(50_000, 1), bytes_of(60_000, 2));
        let mut stripe = TestStripe::new(5, 1, is_remote);
        let other = TestStripe::new(5, 1, is_remote);
        stripe.put("dr17/a", &old, false).expect("written");
        other.put("dr17/a", &new, false).expect("written");
        let all = marks(&stripe);
        let remove_mark = |server| {
            fs::remove_file(folder(&stripe, server).join(MARK_PATH)).expect("removed");
        };
        (0..3).for_each(remove_mark);
        // A crash left this mark unfinished, and this record is damaged.
        fs::write(folder(&stripe, 0).join(MARK_PATH), b"").expect("written");
        fs::write(folder(&stripe, 1).join("0.stripe"), b"x").expect("written");
        reopen(&mut stripe);
        stripe.put("dr17/a", &new, true).expect("written to all");
        stripe.put("b", &old, false).expect("written to all");
        let upkeep = Upkeep(stripe.store.clone());
        let report = upkeep.check(&TestStripe::url("b"), true).expect("checked");
        let states: Vec<_> = report.parts.iter().map(|part| part.state).collect();
        assert_eq!(states, [PieceState::Whole; 5]);
        assert_eq!(marks(&stripe).len(), 2);
        assert!(upkeep.admit_empty_servers().expect("none is empty").is_empty());
        assert_eq!(marks(&stripe), all);
        fs::remove_file(folder(&stripe, 1).join("0.stripe")).expect("removed");
        // One of another stripe, which has lost its mark too.
        fs::remove_dir_all(folder(&stripe, 4)).expect("removed");
        fs::create_dir(folder(&stripe, 4)).expect("made");
        fs::rename(folder(&other, 4).join("dr17"), folder(&stripe, 4).join("dr17")).expect("moved");
        reopen(&mut stripe);
        let (names, notes) = stripe.list_with_notes("").expect("listed");
        assert!(names.len() == 2 && notes[0].contains("found one of stripe"), "{notes:?}");
        assert!(stripe.get("dr17/a").expect("read") == new);
    }
}

/// What was not heard before it is written to is asked for.
#[test]
fn a_stripe_whose_servers_have_all_lost_their_marks_is_known_by_its_records() {
    let mut stripe = TestStripe::new(3, 1, false);
    let bytes = bytes_of(50_000, 1);
    stripe.put("a", &bytes, false).expect("written");
    let before = marks(&stripe);
    (0..3).for_each(|server| {
        fs::remove_file(folder(&stripe, server).join(MARK_PATH)).expect("removed");
    });
    reopen(&mut stripe);
    stripe.put("b", &bytes, false).expect("written");
    let names = (0..3).map(|server| stripe.store.servers[server].stripe());
    let names: BTreeSet<Option<String>> = names.collect();
    assert_eq!(names, before);
    // An empty mount point is not written to.
    mount(&stripe, 2, false);
    reopen(&mut stripe);
    stripe.put("c", &bytes, false).expect("written without it");
    assert!(files_in(&folder(&stripe, 2)).is_empty());
    mount(&stripe, 2, true);
    reopen(&mut stripe);
    Upkeep(stripe.store.clone()).admit_empty_servers().expect("none is empty");
    assert_eq!(marks(&stripe), before);
}

#[test]
fn a_late_server_that_is_empty_is_not_written_to() {
    let mut stripe = TestStripe::new(4, 1, true);
    stripe.put("a", &bytes_of(50_000, 1), false).expect("written");
    mount(&stripe, 3, false);
    reopen(&mut stripe);
    stripe.behaviours[3].open_delay_ms.store(1_500, std::sync::atomic::Ordering::Relaxed);
    stripe.put("b", &bytes_of(50_000, 2), false).expect("written without it");
    assert!(files_in(&folder(&stripe, 3)).is_empty());
}

#[test]
fn writers_that_begin_at_the_same_time_agree_on_a_mark() {
    for _ in 0..10 {
        let mut stripe = TestStripe::new(4, 1, true);
        let first = stripe.store.clone();
        reopen(&mut stripe);
        let (start, second) = (Barrier::new(2), &stripe.store);
        std::thread::scope(|threads| {
            for store in [&first, second] {
                let start = &start;
                threads.spawn(move || {
                    start.wait();
                    store.mark_servers("striped://wide").expect("marked");
                });
            }
        });
        let all = marks(&stripe);
        assert!(all.len() == 1 && all.iter().all(Option::is_some), "{all:?}");
        for store in [&first, second] {
            assert!(store.servers.iter().all(|server| all.contains(&server.stripe())));
        }
    }
}

#[test]
fn a_disk_of_another_stripe_is_left_out_and_named() {
    for (is_remote, is_new_process) in [(false, true), (true, false), (true, true)] {
        let (ours, theirs) = (bytes_of(90_000, 1), bytes_of(80_000, 2));
        let mut stripe = TestStripe::new(4, 1, is_remote);
        let other = TestStripe::new(4, 1, is_remote);
        for path in ["a", "removed"] {
            stripe.put(path, &ours, false).expect("written");
            other.put(path, &theirs, false).expect("written");
        }
        other.remove("removed").expect("removed");
        other.put("only-theirs", &theirs, false).expect("written");
        put_disk_of(&other, &stripe, 1);
        let before = files_in(&folder(&stripe, 1));
        if is_new_process {
            reopen(&mut stripe);
        } else {
            std::thread::sleep(DISPUTE_MEMORY);
            stripe.store.servers.iter().for_each(|server| server.identity().compared_at = None);
        }
        for path in ["a", "removed"] {
            assert!(stripe.get(path).expect("read") == ours, "{path}");
        }
        let (names, notes) = stripe.list_with_notes("").expect("listed");
        let names: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "removed"]);
        assert!(notes[0].contains("without s1:") && notes[0].contains("found one of"), "{notes:?}");
        for error in [stripe.get("only-theirs").map(drop), stripe.remove("only-theirs")] {
            assert!(matches!(error, Err(StoreError::NotFound { .. })), "{error:?}");
        }
        stripe.put("a", &theirs, true).expect("written without it");
        stripe.put("only-theirs", &ours, false).expect("written without it");
        stripe.remove("removed").expect("removed without it");
        assert!(stripe.get("a").expect("read") == theirs);
        assert!(stripe.get("only-theirs").expect("read") == ours);
        assert!(matches!(stripe.get("removed"), Err(StoreError::NotFound { .. })));
        let upkeep = Upkeep(stripe.store.clone());
        let url = TestStripe::url("a");
        let report = upkeep.check(&url, true).expect("checked");
        let why = report.records[1].why.clone().unwrap_or_default();
        assert_eq!(report.records[1].state, PieceState::Unreachable);
        assert!(why.contains("expected a server of stripe") && report.is_readable, "{why}");
        let repair = upkeep.repair(&url, true, &RepairProgress::default()).expect("tried");
        assert!(repair.rebuilt_parts.is_empty() && repair.rebuilt_records.is_empty());
        assert!(repair.failures.iter().all(|failure| failure.server == "s1:"));
        assert!(!repair.failures.is_empty());
        assert!(upkeep.leftovers(true).expect("listed").iter().all(|part| !part.is_removed));
        let states: Vec<_> = upkeep.server_reports(true).iter().map(|each| each.state).collect();
        assert_eq!(states[1], ServerState::Unreachable);
        // Nothing was changed on it, and it is still good for its own stripe.
        assert!(files_in(&folder(&stripe, 1)) == before);
    }
}

#[test]
fn a_record_of_another_stripe_is_left_out_and_written_over_by_a_repair() {
    for are_marked in [true, false] {
        let new = |servers| match are_marked {
            true => TestStripe::new(servers, 1, true),
            false => unmarked(servers, 1),
        };
        let (ours, theirs) = (bytes_of(90_000, 1), bytes_of(80_000, 2));
        for is_removed in [false, true] {
            // Without marks a stripe of as many servers of the same names cannot be told apart.
            let (stripe, other) = (new(4), new(5));
            stripe.put("a", &ours, false).expect("written");
            other.put("a", &theirs, false).expect("written");
            if is_removed {
                other.remove("a").expect("removed");
            }
            put_files_of(&other, &stripe, 1, "a.stripe");
            assert!(stripe.get("a").expect("read") == ours);
            let listed: Vec<_> = stripe.list("a").expect("listed");
            assert_eq!(listed[0], ("a".to_string(), Some(90_000)));
            let upkeep = Upkeep(stripe.store.clone());
            let url = TestStripe::url("a");
            let record = upkeep.check(&url, false).expect("checked").records.remove(1);
            let why = record.why.unwrap_or_default();
            assert!(why.contains("the record: expected one of"), "{why}");
            assert_eq!(record.state, PieceState::Damaged);
            let repair = upkeep.repair(&url, true, &RepairProgress::default()).expect("repaired");
            assert_eq!(repair.rebuilt_records, ["s1:"]);
            assert!(stripe.get("a").expect("read") == ours);
            put_files_of(&other, &stripe, 2, "a.stripe");
            stripe.put("a", &theirs, true).expect("written");
            assert!(stripe.get("a").expect("read") == theirs);
            stripe.remove("a").expect("removed");
        }
    }
}

#[test]
fn a_reader_gives_no_record_of_other_servers_to_ours() {
    for is_marked in [true, false] {
        let new = |servers| match is_marked {
            true => TestStripe::new(servers, 1, true),
            false => unmarked(servers, 1),
        };
        for is_removed in [false, true] {
            // A copy on each of two: what is on one disk is enough to read it.
            let (stripe, other) = (new(4), new(2));
            stripe.put("a", &bytes_of(90_000, 1), false).expect("written");
            let theirs = bytes_of(80_000, 2);
            other.put("b", &theirs, false).expect("written");
            if is_removed {
                other.remove("b").expect("removed");
            }
            put_files_of(&other, &stripe, 1, "b.stripe");
            let files = || (0..4).map(|server| files_in(&folder(&stripe, server)));
            let before: Vec<_> = files().collect();
            // Without marks nobody says that it is of another stripe.
            match stripe.get("b") {
                Ok(bytes) => assert!(!is_marked && !is_removed && bytes == theirs),
                Err(error) => {
                    assert!(is_marked || is_removed, "{error}");
                    assert!(matches!(
                        error,
                        StoreError::NotFound { .. } | StoreError::Differs { .. }
                    ));
                }
            }
            assert!(files().eq(before), "marked: {is_marked}, removed: {is_removed}");
        }
    }
}

#[test]
fn servers_of_two_stripes_as_many_of_each_are_an_error_and_not_written_to() {
    for is_marked in [true, false] {
        let mut stripe = TestStripe::new(2, 1, true);
        let other = if is_marked { TestStripe::new(2, 1, true) } else { unmarked(2, 1) };
        stripe.put("a", &bytes_of(1000, 1), false).expect("written");
        other.put("a", &bytes_of(1000, 2), false).expect("written");
        put_disk_of(&other, &stripe, 1);
        let before = [files_in(&folder(&stripe, 0)), files_in(&folder(&stripe, 1))];
        reopen(&mut stripe);
        let bytes = bytes_of(1000, 3);
        for result in [
            stripe.get("a").map(drop),
            stripe.put("a", &bytes, true),
            stripe.remove("a"),
            stripe.list("").map(drop),
        ] {
            let error = result.expect_err("two stripes").to_string();
            assert!(error.contains("s0:") && error.contains("s1:"), "{error}");
            assert!(error.contains("expected most servers to be of one stripe"), "{error}");
        }
        assert!([files_in(&folder(&stripe, 0)), files_in(&folder(&stripe, 1))] == before);
        assert!(stripe.store.is_writable());
    }
}

#[test]
fn a_new_store_needs_the_word_of_all_its_servers() {
    let stripe = TestStripe::new(3, 1, true);
    stripe.kill(0, true);
    let error = stripe.put("a", b"x", false).expect_err("one may have the objects").to_string();
    assert!(error.contains("expected all 3 servers of a new store, found"), "{error}");
    assert!(error.contains("no answer of s0;"), "{error}");
    assert!((1..3).all(|server| files_in(&folder(&stripe, server)).is_empty()));
    stripe.kill(0, false);
    stripe.put("a", b"x", false).expect("written");
    assert_eq!(marks(&stripe).len(), 1);
    // From then on the parity is enough.
    stripe.kill(0, true);
    stripe.put("b", b"y", false).expect("written without it");
}

#[test]
fn servers_that_cannot_be_listed_make_no_empty_one_new() {
    let mut stripe = TestStripe::new(3, 2, true);
    stripe.put("a", &bytes_of(5000, 1), false).expect("written");
    fs::remove_dir_all(folder(&stripe, 2)).expect("removed");
    fs::create_dir(folder(&stripe, 2)).expect("made");
    for server in [0, 1] {
        stripe.behaviours[server].refuses_listing.store(true, Ordering::Relaxed);
    }
    reopen(&mut stripe);
    drop(stripe.put("b", &bytes_of(5000, 2), false));
    assert_eq!(stripe.store.servers[2].mark().expect("read"), None);
    let error = stripe.store.servers[2].check_stripe().expect_err("it is empty").to_string();
    assert!(error.contains("found no folder or one without records"), "{error}");
}

#[test]
fn a_comparison_that_nobody_answers_forgets_nothing() {
    let stripe = TestStripe::new(3, 1, true);
    stripe.put("a", b"x", false).expect("written");
    let servers = &stripe.store.servers;
    let name = servers[0].stripe().expect("a mark");
    (0..3).for_each(|server| stripe.kill(server, true));
    compare_marks(servers, Duration::ZERO);
    assert!(servers.iter().all(|server| server.stripe().as_ref() == Some(&name)));
    // They are asked again as soon as one answers.
    (0..3).for_each(|server| stripe.kill(server, false));
    stripe.put("a", b"y", true).expect("written");
    let record = fs::read(stripe.record(0)).expect("read");
    assert!(record.windows(name.len()).any(|bytes| bytes == name.as_bytes()));
}

#[test]
fn the_mark_of_one_disk_beside_empty_ones_is_not_remembered() {
    let stripe = TestStripe::new(3, 1, true);
    stripe.store.servers[0].write_mark("aaaaaaaaaaaaaaaa", false).expect("written");
    let upkeep = Upkeep(stripe.store.clone());
    assert_eq!(upkeep.stripe(), None);
    // A write gives the mark to all, as if a first writer had died.
    stripe.put("a", b"x", false).expect("written");
    compare_marks(&stripe.store.servers, Duration::ZERO);
    assert_eq!(upkeep.stripe().as_deref(), Some("aaaaaaaaaaaaaaaa"));
}
