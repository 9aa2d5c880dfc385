//! Copies of servers lose nothing that is there, and tell no secrets.

use super::server::{ConnectionEnd, Reply, Request, reply};
use super::server_copies::{detour, holding, pulling, secret_store, serve, success, web, within};
use super::webdav::requests_of;
use super::{bytes, copy, folder, version};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};
use swathe_store::{Copies, CopyOrder, CopyRoute};
use tempfile::TempDir;

#[test]
fn a_folder_is_never_replaced() {
    let dav = holding("/dr1/a", bytes(5));
    dav.folders.lock().unwrap().push("/dr1/dr17".into());
    dav.objects.lock().unwrap().insert("/dr1/dr17/b".into(), bytes(7));
    // The server says that a name is a folder in its properties (dr17), or by a redirect (led).
    let leads = |request: &Request| {
        let is_folder = request.method == "PROPFIND" && request.target == "/dr1/led";
        is_folder.then(|| reply("301 Moved Permanently\nLocation: /dr1/led/", b""))
    };
    let server = serve(&dav, leads);
    let place = TempDir::new().unwrap();
    std::fs::write(place.path().join("a"), b"five!").unwrap();
    let local = folder("local", place.path());
    let stores = swathe_store::stores(vec![web("one", &server), web("two", &server), local]);
    let local_version = version(&stores, "local:a");
    for (from, version) in [("one:a", ""), ("local:a", local_version.as_str())] {
        for to in ["two:dr17", "two:led"] {
            let results = copy(&stores, &[(from, version, to)]);
            let message = results[0].as_ref().unwrap_err().to_string();
            assert!(message.contains("is a folder, and not replaced"), "{message}");
        }
        assert!(requests_of(&server, "MOVE").is_empty());
        assert!(dav.objects.lock().unwrap().keys().eq(["/dr1/a", "/dr1/dr17/b"]));
    }
}

#[test]
fn copies_of_two_writers_have_two_hidden_names() {
    let dav = holding("/dr1/a", bytes(5));
    let server = serve(&dav, |_| None);
    for _ in 0..2 {
        assert!(copy(&within(&server), &[("one:a", "", "two:b")])[0].is_ok());
    }
    let copies = requests_of(&server, "COPY").into_iter();
    let names: Vec<_> =
        copies.map(|copy| copy.header("destination").unwrap().to_string()).collect();
    assert_eq!(names.len(), 2);
    assert_ne!(names[0], names[1]);
}

#[test]
fn a_copy_that_fails_is_not_repeated_while_a_server_may_still_copy() {
    let dav = holding("/dr1/a", bytes(5));
    let gateway = |request: &Request| request.method == "COPY";
    let server =
        serve(&dav, move |request| gateway(request).then(|| reply("502 Bad Gateway", b"")));
    let why = detour(&copy(&within(&server), &[("one:a", "", "two:b")])[0]);
    assert!(why.contains("answered 502"), "{why}");
    assert_eq!(requests_of(&server, "COPY").len(), 1);
}

#[test]
fn a_redirect_to_another_server_is_told_no_secret_of_the_source() {
    let place = TempDir::new().unwrap();
    for has_token in [true, false] {
        let path = if has_token { "/dr1/a" } else { "/dr1/a?authz=SECRETTOKEN" };
        let from = holding(path, bytes(5));
        let (_, pool) = pulling(&from, success());
        let to = format!("http://127.0.0.1:{}", pool.port);
        // XRootD is asked to copy from itself as from another.
        let door = serve(&from, move |request| {
            let location = format!("307 Temporary Redirect\nLocation: {to}{}", request.target);
            match request.method.as_str() {
                "PROPFIND" => Some(reply("404 Not Found\nServer: XrootD/v5.5", b"")),
                "COPY" => Some(reply(&location, b"")),
                _ => None,
            }
        });
        let stores = match has_token {
            true => ["one", "two"].map(|name| {
                let mut store = secret_store(&place, &door, &[]);
                store.name = name.into();
                store
            }),
            false => ["one", "two"].map(|name| web(name, &door)),
        };
        let from = format!("dav://127.0.0.1:{}{path}", door.port);
        let results = copy(&swathe_store::stores(stores.into()), &[(&from, "", "two:b")]);
        let why = detour(&results[0]);
        assert!(why.contains("the option delegation of their store is not true"), "{why}");
        assert_eq!(requests_of(&door, "COPY").len(), 1);
        assert!(pool.requests().is_empty(), "{:?}", pool.requests());
    }
}

#[test]
fn what_got_a_name_unheard_is_compared_again() {
    for is_other in [false, true] {
        let dav = holding("/dr1/a", bytes(5));
        let (ours, first) = (dav.clone(), Mutex::new(true));
        let server = serve(&dav, move |request| {
            let is_move = request.method == "MOVE" && request.target.ends_with(".part");
            if !is_move || !std::mem::take(&mut *first.lock().unwrap()) {
                return None;
            }
            ours.answer(request);
            if is_other {
                let mut objects = ours.objects.lock().unwrap();
                objects.insert("/dr1/b".into(), b"other".to_vec());
            }
            Some(Reply { bytes: vec![], then: ConnectionEnd::Close })
        });
        let results = copy(&within(&server), &[("one:a", "", "two:b")]);
        match is_other {
            false => assert_eq!(results[0].as_ref().unwrap().route, CopyRoute::Servers),
            true => assert!(detour(&results[0]).contains("has other bytes")),
        }
        assert_eq!(dav.objects.lock().unwrap()["/dr1/b"], bytes(5));
    }
}

#[test]
fn a_copy_ends_while_a_server_computes_checksums() {
    let dav = holding("/dr1/a", bytes(5));
    let wants = |request: &Request| request.header("want-digest").is_some();
    let server = serve(&dav, move |request| {
        wants(request).then(|| Reply { bytes: vec![], then: ConnectionEnd::Hang })
    });
    let order =
        CopyOrder { from: "one:a".into(), version: None, to: "two:b".into(), replaces: true };
    let copies = Copies::start(within(&server), vec![order], 1).unwrap();
    let start = Instant::now();
    while !server.requests().iter().any(wants) {
        assert!(start.elapsed() < Duration::from_secs(60), "no checksum");
        thread::sleep(Duration::from_millis(10));
    }
    copies.stop();
    let end = Instant::now();
    while let Some(more) = copies.poll(Duration::from_secs(10)) {
        assert!(more.is_empty(), "{more:?}");
    }
    assert!(end.elapsed() < Duration::from_secs(10), "{:?}", end.elapsed());
    assert!(dav.objects.lock().unwrap().keys().eq(["/dr1/a"]), "nothing is left");
}
