//! A stripe that the catalogue remembers, and what its servers have become since.

use super::*;

/// The same folders as a new process sees them whose catalogue remembers a stripe.
fn remember(stripe: &mut TestStripe, name: &str) {
    reopen(stripe);
    let mut settings = stripe.store.settings().clone();
    settings.options.insert("stripe".into(), name.into());
    stripe.store = StripedStore::of_servers(settings, stripe.store.servers.clone());
}

/// All work on a store whose object is `a`, and the error that each has.
fn errors_of(stripe: &TestStripe, bytes: &[u8]) -> Vec<(&'static str, String)> {
    let results = [
        ("open", stripe.open("a").map(drop)),
        ("list", stripe.list("").map(drop)),
        ("put", stripe.put("a", bytes, true)),
        ("put another", stripe.put("b", bytes, false)),
        ("remove", stripe.remove("a")),
    ];
    let text = |(work, result): (&'static str, Result<(), StoreError>)| {
        (work, result.expect_err(work).to_string())
    };
    results.into_iter().map(text).collect()
}

/// The stripe that a store was found to be.
fn name_of(stripe: &TestStripe) -> String {
    Upkeep(stripe.store.clone()).stripe().expect("a stripe")
}

/// All disks may not be mounted.
#[test]
fn a_remembered_stripe_whose_servers_are_all_empty_is_an_error() {
    for (is_remote, has_folders) in [(false, true), (false, false), (true, true)] {
        let mut stripe = TestStripe::new(3, 1, is_remote);
        let bytes = bytes_of(50_000, 1);
        stripe.put("a", &bytes, false).expect("written");
        let name = Upkeep(stripe.store.clone()).stripe().expect("a stripe");
        assert_eq!(marks(&stripe), [Some(name.clone())].into());
        (0..3).for_each(|server| mount(&stripe, server, false));
        if !has_folders {
            (0..3).for_each(|server| fs::remove_dir(folder(&stripe, server)).expect("removed"));
        }
        remember(&mut stripe, &name);
        for (work, text) in errors_of(&stripe, &bytes) {
            assert!(text.contains("mount"), "{is_remote} {has_folders} {work}: {text}");
        }
        let upkeep = Upkeep(stripe.store.clone());
        let states: Vec<_> = upkeep.server_reports(false).iter().map(|each| each.state).collect();
        assert_eq!(states, [ServerState::Missing; 3]);
        let may_lack = ListOptions { may_lack: true, ..ListOptions::default() };
        let object = ObjectName { url: &TestStripe::url(""), qualified_name: None };
        let listing = stripe.store.list(object, may_lack).and_then(|mut list| list.next_page());
        assert!(listing.is_err(), "{is_remote} {has_folders}");
        if has_folders {
            let error = upkeep.admit_empty_servers().expect_err("all are empty").to_string();
            assert!(error.contains("remove the store and add it again"), "{error}");
        } else {
            (0..3).for_each(|server| fs::create_dir(folder(&stripe, server)).expect("made"));
        }
        (0..3).for_each(|server| mount(&stripe, server, true));
        remember(&mut stripe, &name);
        assert!(stripe.get("a").expect("read") == bytes);
        stripe.put("b", &bytes, false).expect("written");
    }
}

/// Whatever most of its servers are.
#[test]
fn servers_of_another_stripe_do_not_outvote_the_remembered_one() {
    for (is_remote, count, is_marked) in
        [(false, 3, true), (true, 3, true), (false, 2, true), (false, 2, false), (true, 2, false)]
    {
        let mut stripe = TestStripe::new(3, 1, is_remote);
        let (ours, theirs) = (bytes_of(50_000, 1), bytes_of(60_000, 2));
        stripe.put("a", &ours, false).expect("written");
        let name = name_of(&stripe);
        let other = if is_marked { TestStripe::new(3, 1, is_remote) } else { unmarked(3, 1) };
        other.put("a", &theirs, false).expect("written");
        (3 - count..3).for_each(|server| put_disk_of(&other, &stripe, server));
        let before: Vec<_> = (0..3).map(|server| files_in(&folder(&stripe, server))).collect();
        remember(&mut stripe, &name);
        for (work, text) in errors_of(&stripe, &theirs) {
            let case = format!("{work}, {count}, remote: {is_remote}, marked: {is_marked}");
            let expected = format!("expected a server of stripe {name}, found one");
            assert!(text.matches(&expected).count() >= 2, "{case}: {text}");
        }
        let after: Vec<_> = (0..3).map(|server| files_in(&folder(&stripe, server))).collect();
        assert_eq!(after, before, "{is_remote} {count} {is_marked}");
    }
}

/// One such disk: a repair neither reads it as ours nor removes what is on it.
#[test]
fn an_unmarked_disk_of_another_stripe_is_left_out_by_a_repair() {
    for is_remembered in [false, true] {
        let mut stripe = TestStripe::new(3, 1, true);
        let ours = bytes_of(50_000, 1);
        stripe.put("a", &ours, false).expect("written");
        let name = name_of(&stripe);
        let other = unmarked(3, 1);
        other.put("a", &bytes_of(60_000, 2), false).expect("written");
        other.put("b", &ours, false).expect("written");
        put_disk_of(&other, &stripe, 2);
        let before = files_in(&folder(&stripe, 2));
        match is_remembered {
            true => remember(&mut stripe, &name),
            false => reopen(&mut stripe),
        }
        let (names, notes) = stripe.list_with_notes("").expect("listed without it");
        assert_eq!(names.len(), 1);
        assert!(notes[0].contains("found one without .swathe-stripe"), "{notes:?}");
        let upkeep = Upkeep(stripe.store.clone());
        assert!(upkeep.admit_empty_servers().expect("none is empty").is_empty());
        let url = TestStripe::url("a");
        let repair = upkeep.repair(&url, false, &RepairProgress::default()).expect("tried");
        assert!(!repair.failures.is_empty());
        assert!(upkeep.leftovers(true).expect("listed").iter().all(|part| !part.is_removed));
        assert!(files_in(&folder(&stripe, 2)) == before);
        // As the error says.
        let mark = fs::read(folder(&stripe, 0).join(MARK_PATH)).expect("read");
        fs::write(folder(&stripe, 2).join(MARK_PATH), mark).expect("copied");
        reopen(&mut stripe);
        assert!(stripe.list_with_notes("").expect("listed").1.is_empty());
    }
}

#[test]
fn a_stray_part_makes_no_server_of_a_mount_point() {
    for is_remote in [false, true] {
        let mut stripe = TestStripe::new(3, 1, is_remote);
        let (old, new) = (bytes_of(50_000, 1), bytes_of(60_000, 2));
        stripe.put("a", &old, false).expect("written");
        let name = name_of(&stripe);
        for server in 1..3 {
            mount(&stripe, server, false);
            fs::write(folder(&stripe, server).join("zz.stripe.5-aa.10.0"), b"x").expect("written");
        }
        remember(&mut stripe, &name);
        for (work, text) in errors_of(&stripe, &new) {
            let count = text.matches("found no folder or one without records").count();
            assert_eq!(count, 2, "{work}: {text}");
        }
        for server in 1..3 {
            fs::remove_file(folder(&stripe, server).join("zz.stripe.5-aa.10.0")).expect("removed");
            mount(&stripe, server, true);
        }
        remember(&mut stripe, &name);
        assert!(stripe.get("a").expect("read") == old);
    }
}

/// While a process writes. The marks were compared a moment ago.
#[test]
fn nothing_is_written_to_a_folder_whose_disk_was_unmounted() {
    let stripe = TestStripe::new(3, 1, false);
    let bytes = bytes_of(50_000, 1);
    stripe.put("a", &bytes, false).expect("written");
    mount(&stripe, 2, false);
    stripe.put("b", &bytes, false).expect("written without one");
    assert!(files_in(&folder(&stripe, 2)).is_empty());
    mount(&stripe, 1, false);
    stripe.put("c", &bytes, false).expect_err("two of three are away");
    stripe.remove("a").expect_err("two of three are away");
    stripe.store.servers[1].reserve("d", 1000).map(drop).expect_err("its disk is away");
    assert!(files_in(&folder(&stripe, 1)).is_empty());
    (1..3).for_each(|server| mount(&stripe, server, true));
    stripe.store.servers.iter().for_each(|server| server.identity().compared_at = None);
    stripe.put("c", &bytes, false).expect("written to all");
    assert!(stripe.get("b").expect("read") == bytes);
}

/// Of two servers one is enough to read, and it may be the wrong one.
#[test]
fn a_stripe_of_a_minority_is_not_remembered() {
    for is_away in [false, true] {
        let mut stripe = TestStripe::new(2, 1, true);
        let other = TestStripe::new(2, 1, true);
        stripe.put("a", &bytes_of(1000, 1), false).expect("written");
        other.put("a", &bytes_of(1000, 2), false).expect("written");
        assert!(Upkeep(stripe.store.clone()).stripe().is_some());
        put_disk_of(&other, &stripe, 0);
        reopen(&mut stripe);
        if is_away {
            stripe.kill(1, true);
        }
        assert_eq!(Upkeep(stripe.store.clone()).stripe(), None);
    }
}

/// A disk that was given the mark by hand, or by a repair that was killed, has it and no record.
#[test]
fn a_new_disk_with_the_mark_does_not_make_a_remembered_stripe_new() {
    for is_remote in [false, true] {
        let mut stripe = TestStripe::new(3, 1, is_remote);
        let bytes = bytes_of(50_000, 1);
        stripe.put("a", &bytes, false).expect("written");
        let name = name_of(&stripe);
        let mark = fs::read(folder(&stripe, 0).join(MARK_PATH)).expect("read");
        (0..3).for_each(|server| mount(&stripe, server, false));
        fs::write(folder(&stripe, 0).join(MARK_PATH), mark).expect("written");
        remember(&mut stripe, &name);
        for (work, text) in errors_of(&stripe, &bytes) {
            assert!(text.contains("mount its disk"), "{is_remote} {work}: {text}");
        }
        assert!((1..3).all(|server| files_in(&folder(&stripe, server)).is_empty()));
    }
}
