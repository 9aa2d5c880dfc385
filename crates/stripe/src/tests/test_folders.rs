//! Striped stores over local folders, where some are not mounted or do not exist yet.

use crate::reports::PieceState;
use crate::testing::{TestStripe, bytes_of};
use crate::upkeep::Upkeep;
use std::fs;
use std::sync::atomic::Ordering;
use swathe_store_api::{ListOptions, ObjectName, Store, StoreError};

/// Move folders of servers away, or back.
fn mount(stripe: &TestStripe, servers: &[usize], is_there: bool) {
    for server in servers {
        let folder = stripe.folder.path().join(format!("s{server}"));
        let elsewhere = stripe.folder.path().join(format!("away-{server}"));
        let (from, to) = if is_there { (elsewhere, folder) } else { (folder, elsewhere) };
        fs::rename(from, to).expect("moved");
    }
}

/// Assert that all work says that too few servers are there, and which are away.
fn assert_too_few(stripe: &TestStripe, path: &str) {
    let (upkeep, url) = (Upkeep(stripe.store.clone()), TestStripe::url(path));
    for (work, error) in [
        ("open", stripe.open(path).map(drop)),
        ("list", stripe.list("").map(drop)),
        ("list it", stripe.list(path).map(drop)),
        ("check", upkeep.check(&url, false).map(drop)),
        ("leftovers", upkeep.leftovers(false).map(drop)),
        ("put", stripe.put(path, &bytes_of(100, 9), true)),
        ("remove", stripe.remove(path)),
    ] {
        let error = error.expect_err(work);
        let text = error.to_string();
        assert!(
            matches!(error, StoreError::Network { .. })
                && text.contains("of 2 of 3 servers, found 1; s0: ")
                && text.contains("; s1: ")
                && text.contains("expected the folder of a server, found none; mount its disk"),
            "{work}: {text}"
        );
    }
}

#[test]
fn an_old_version_is_not_read_where_most_folders_are_away() {
    let stripe = TestStripe::new(3, 2, false);
    let (old, new) = (bytes_of(50_000, 1), bytes_of(60_000, 2));
    stripe.put("a", &old, false).expect("written");
    mount(&stripe, &[2], false);
    stripe.put("a", &new, true).expect("replaced without one");
    mount(&stripe, &[2], true);
    mount(&stripe, &[0, 1], false);
    assert_too_few(&stripe, "a");
    mount(&stripe, &[1], true);
    assert!(stripe.get("a").expect("read without one") == new);
}

#[test]
fn objects_are_not_absent_where_most_folders_are_away() {
    let stripe = TestStripe::new(3, 1, false);
    let bytes = bytes_of(50_000, 1);
    stripe.put("a", &bytes, false).expect("written");
    mount(&stripe, &[0, 1], false);
    assert_too_few(&stripe, "a");
    assert!(matches!(stripe.open("b"), Err(StoreError::Network { .. })));
    // One may be away.
    mount(&stripe, &[1], true);
    assert!(stripe.get("a").expect("read") == bytes);
    assert!(matches!(stripe.open("b"), Err(StoreError::NotFound { .. })));
    let (listed, notes) = stripe.list_with_notes("").expect("listed");
    assert_eq!(listed, [("a".to_string(), Some(50_000))]);
    assert!(matches!(&notes[..], [note] if note.contains("without s0: ")), "{notes:?}");
    let report = Upkeep(stripe.store.clone()).check(&TestStripe::url("a"), false).expect("checked");
    let states = |pieces: &[crate::reports::PieceReport]| -> Vec<PieceState> {
        pieces.iter().map(|piece| piece.state).collect()
    };
    let whole = PieceState::Whole;
    assert!(report.is_readable);
    assert_eq!(states(&report.records), [PieceState::Unreachable, whole, whole]);
    stripe.remove("a").expect("removed");
    assert!(matches!(stripe.open("a"), Err(StoreError::NotFound { .. })));
}

#[test]
fn a_new_store_makes_its_folders() {
    for away in [&[0, 1, 2][..], &[1, 2]] {
        let stripe = TestStripe::new(3, 1, false);
        let folders = away.iter().map(|server| stripe.folder.path().join(format!("s{server}")));
        folders.for_each(|folder| fs::remove_dir(folder).expect("removed"));
        let are_all_away = away.len() == 3;
        let hint = "no folder of its servers exists; mount their disks";
        let Err(error @ StoreError::NotFound { .. }) = stripe.open("a") else {
            panic!("expected that it is not found");
        };
        assert_eq!(error.to_string().contains(hint), are_all_away, "{error}");
        assert_eq!(stripe.list("").expect("an empty listing"), []);
        // Who does not expect that it lacks what is listed hears that no folder is there.
        let (url, options) = (TestStripe::url(""), ListOptions::default());
        let listing = stripe.store.list(ObjectName { url: &url, qualified_name: None }, options);
        match listing.expect("begun").next_page() {
            Err(error @ StoreError::NotFound { .. }) if are_all_away => {
                assert!(error.to_string().contains(hint), "{error}");
            }
            result => assert!(!are_all_away && matches!(result, Ok(None)), "{result:?}"),
        }
        let bytes = bytes_of(50_000, 1);
        stripe.put("a", &bytes, false).expect("written");
        assert!(stripe.get("a").expect("read") == bytes);
        assert!((0..3).all(|server| stripe.files(server, true).len() == 1));
    }
}

#[test]
fn servers_that_are_no_folders_are_not_asked_for_them() {
    let stripe = TestStripe::new(3, 1, true);
    // For their records, and for their marks and those that name a stripe: these are known for a while.
    for expected in [9, 12, 15] {
        assert!(matches!(stripe.open("a"), Err(StoreError::NotFound { .. })));
        let each = stripe.behaviours.iter();
        let questions: u64 = each.map(|server| server.questions.load(Ordering::Relaxed)).sum();
        assert_eq!(questions, expected);
    }
}
