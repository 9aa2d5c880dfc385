//! The servers that get bearer tokens, and those that do not.

mod server;

use server::{Server, good, reply};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use swathe_store::{Copies, CopyOrder};
use swathe_store_api::{StoreError, StoreSettings, Stores};
use tempfile::TempDir;

const TOKEN: &str = "SECRETTOKEN";

/// A store that has a token, and other options.
fn store(folder: &Path, root: &str, options: &[(&str, &str)]) -> Stores {
    let file = folder.join("token");
    std::fs::write(&file, TOKEN).unwrap();
    let token_file = ("token_file", file.to_str().unwrap());
    let options = options.iter().chain([&token_file]);
    let options = options.map(|&(name, value)| (name.into(), value.into())).collect();
    swathe_store::stores(vec![StoreSettings::new("named".into(), root.into(), options)])
}

#[test]
fn tokens_go_over_tls_or_to_this_machine() {
    let folder = TempDir::new().unwrap();
    for (root, options) in [
        ("https://192.0.2.1", None),
        ("davs://192.0.2.1", None),
        ("root://192.0.2.1", None),
        ("root://192.0.2.1", Some(("door", "https://192.0.2.2"))),
        ("http://localhost:9000", None),
        ("http://127.0.0.2", None),
        ("dav://[::1]:80", None),
        ("root://192.0.2.1", Some(("door", "http://127.0.0.1:8080"))),
    ] {
        let token = store(folder.path(), root, options.as_slice()).bearer("named:a.fits");
        assert_eq!(token.unwrap().as_deref(), Some(TOKEN), "{root} {options:?}");
    }
    for (root, options, must) in [
        ("http://192.0.2.1", None, "the URL must be https://"),
        ("http://localhost.example", None, "the URL must be https://"),
        ("dav://192.0.2.1:8443", None, "the URL must be https://"),
        ("http://[2001:db8::1]", None, "the URL must be https://"),
        ("root://127.0.0.1", Some(("door", "http://192.0.2.1")), "the door must be https://"),
    ] {
        let stores = store(folder.path(), root, options.as_slice());
        let bearer_error = stores.bearer("named:a.fits").unwrap_err();
        let open_error = stores.open("named:a.fits").map(|_| ()).unwrap_err();
        for error in [bearer_error, open_error] {
            assert!(matches!(error, StoreError::Unsupported { .. }), "{error:?}");
            let message = error.to_string();
            assert!(
                message.contains(&format!("{root}/a.fits")) && message.contains(must),
                "{message}"
            );
            assert!(!format!("{error:?}").contains(TOKEN), "{error:?}");
        }
    }
}

#[test]
fn an_anonymous_store_sends_no_token() {
    let folder = TempDir::new().unwrap();
    let server = Server::start(|request, _| good(request, b"pixels", "ETag: \"one\""));
    let root = server.url("");
    for root in [root.trim_end_matches('/'), "dav://192.0.2.1", "https://192.0.2.1"] {
        let stores = store(folder.path(), root, &[("anonymous", "true")]);
        assert_eq!(stores.bearer("named:a.fits").unwrap(), None, "{root}");
    }
    let stores = store(folder.path(), root.trim_end_matches('/'), &[("anonymous", "true")]);
    stores.open("named:a.fits").unwrap();
    let requests = server.requests();
    assert!(!requests.is_empty());
    assert!(requests.iter().all(|request| request.header("authorization").is_none()));
}

#[test]
fn a_token_does_not_follow_to_another_server() {
    let folder = TempDir::new().unwrap();
    let target = Server::start(|request, _| good(request, b"pixels", "ETag: \"one\""));
    let to = target.url("real.fits");
    let start = Server::start(move |request, _| match request.target.as_str() {
        "/a.fits" => reply("302 Found\nLocation: /b.fits", b""),
        _ => reply(&format!("307 Temporary Redirect\nLocation: {to}"), b""),
    });
    let root = start.url("");
    let stores = store(folder.path(), root.trim_end_matches('/'), &[]);
    stores.open("named:a.fits").unwrap();
    let bearer = format!("Bearer {TOKEN}");
    let (first, then) = (start.requests(), target.requests());
    assert!(first.len() == 2 && !then.is_empty(), "{first:?} {then:?}");
    assert!(first.iter().all(|request| request.header("authorization") == Some(&bearer)));
    assert!(then.iter().all(|request| request.header("authorization").is_none()));
}

/// Copy a file of so many bytes to `named:a.fits`.
fn copy(stores: &Stores, folder: &Path, size: usize) -> Result<(), StoreError> {
    let from = folder.join("from");
    std::fs::write(&from, vec![7; size]).unwrap();
    let from = from.to_str().unwrap().to_string();
    let version = stores.open(&from).unwrap().version().to_string();
    let order =
        CopyOrder { from, version: Some(version), to: "named:a.fits".into(), replaces: true };
    let copies = Copies::start(stores.clone(), vec![order], 1).unwrap();
    let mut results = Vec::new();
    while let Some(more) = copies.poll(Duration::from_secs(10)) {
        results.extend(more);
    }
    results.pop().unwrap().outcome.map(|_| ())
}

#[test]
fn what_is_written_goes_where_the_server_sends_it_and_the_token_does_not() {
    let folder = TempDir::new().unwrap();
    for size in [5, 100_000, 20_000_000] {
        let content = Arc::new(Mutex::new(Vec::new()));
        let ours = content.clone();
        let target = Server::start(move |request, _| {
            let mut content = ours.lock().unwrap();
            if request.method == "PUT" {
                *content = request.body.clone();
                return reply("201 Created", b"");
            }
            good(request, &content, "ETag: \"one\"")
        });
        let to = target.url("pool/a?opaque=1");
        let door = Server::start(move |request, _| match request.method.as_str() {
            "MOVE" => reply("201 Created", b""),
            _ => reply(&format!("307 Temporary Redirect\nLocation: {to}"), b""),
        });
        let stores = store(folder.path(), "root://192.0.2.1", &[("door", door.url("").as_str())]);
        copy(&stores, folder.path(), size).unwrap();
        assert_eq!(*content.lock().unwrap(), vec![7; size]);
        let bearer = format!("Bearer {TOKEN}");
        let (requests, then) = (door.requests(), target.requests());
        assert!(requests.iter().all(|request| request.header("authorization") == Some(&bearer)));
        assert!(then.iter().all(|request| request.header("authorization").is_none()));
        // What is long is not sent to who would not take it.
        let puts = requests.iter().filter(|request| request.method == "PUT");
        let most = puts.map(|request| request.body.len()).max();
        assert_eq!(most, Some(if size == 5 { 5 } else { 0 }));
        let move_request = requests.iter().find(|request| request.method == "MOVE").unwrap();
        assert_eq!(move_request.header("destination"), Some(door.url("a.fits").as_str()));
    }
}

#[test]
fn nothing_is_written_with_a_token_over_http() {
    let folder = TempDir::new().unwrap();
    let stores = store(folder.path(), "dav://192.0.2.1", &[]);
    for error in [copy(&stores, folder.path(), 5), stores.remove("named:a.fits")] {
        let message = error.unwrap_err().to_string();
        assert!(message.contains("the URL must be https://"), "{message}");
    }
}

#[test]
fn a_door_of_webdav_is_one_of_http() {
    let folder = TempDir::new().unwrap();
    let server = Server::start(|request, _| good(request, b"pixels", "ETag: \"one\""));
    let door = server.url("").replace("http://", "dav://");
    let stores = store(folder.path(), "root://192.0.2.1", &[("door", &door)]);
    assert_eq!(stores.open("named:a.fits").unwrap().len(), 6);
    assert_eq!(stores.http_url("named:a.fits").unwrap(), Some(server.url("a.fits")));
    let key = stores.locate("named:a.fits").0.key();
    assert_eq!(key, format!("root://127.0.0.1:{}", server.port));
    let stores = store(folder.path(), "root://192.0.2.1", &[("door", "davs://192.0.2.2")]);
    assert_eq!(stores.bearer("named:a.fits").unwrap().as_deref(), Some(TOKEN));
    assert_eq!(stores.locate("named:a.fits").0.key(), "root://192.0.2.2:443");
    let stores = store(folder.path(), "root://127.0.0.1", &[("door", "dav://192.0.2.2")]);
    let message = stores.bearer("named:a.fits").unwrap_err().to_string();
    assert!(message.contains("the door must be https://"), "{message}");
}
