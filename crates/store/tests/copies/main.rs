//! Listings of buckets, and copies from store to store.

mod bucket_listings;
mod safe_copies;
#[path = "../server/mod.rs"]
mod server;
mod server_copies;
mod server_copies_s3;
mod webdav;

use server::{Reply, Request, Server, good, reply};
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use swathe_store::{Copies, CopyOrder, CopyResult};
use swathe_store_api::{StoreError, StoreSettings, Stores};
use tempfile::TempDir;

fn store(name: &str, root: String, options: &[(&str, &str)]) -> StoreSettings {
    let text = |&(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    let options: BTreeMap<_, _> = options.iter().map(text).collect();
    StoreSettings::new(name.into(), root, options)
}

fn bucket(scheme: &str, server: &Server) -> StoreSettings {
    let endpoint = server.url("");
    let options = [("endpoint", endpoint.trim_end_matches('/')), ("anonymous", "true")];
    store("lake", format!("{scheme}://frames/dr1"), &options)
}

fn folder(name: &str, path: &Path) -> StoreSettings {
    store(name, format!("file://{}", path.display()), &[])
}

/// Copy these with two threads; what became of each, in their order.
fn copy(stores: &Stores, orders: &[(&str, &str, &str)]) -> Vec<Result<CopyResult, StoreError>> {
    copy_and_count(stores, orders).0
}

/// The same, and how many bytes were written.
fn copy_and_count(
    stores: &Stores,
    orders: &[(&str, &str, &str)],
) -> (Vec<Result<CopyResult, StoreError>>, u64) {
    let order = |&(from, version, to): &(&str, &str, &str)| CopyOrder {
        from: from.into(),
        version: (!version.is_empty()).then(|| version.to_string()),
        to: to.into(),
        replaces: true,
    };
    let orders = orders.iter().map(order).collect();
    let copies = Copies::start(stores.clone(), orders, 2).unwrap();
    let mut results = Vec::new();
    while let Some(more) = copies.poll(Duration::from_secs(10)) {
        results.extend(more);
    }
    results.sort_by_key(|result| result.number);
    (results.into_iter().map(|result| result.outcome).collect(), copies.bytes())
}

fn version(stores: &Stores, object: &str) -> String {
    stores.open(object).unwrap().version().to_string()
}

fn bytes(count: u32) -> Vec<u8> {
    (0..count).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// A folder with files of this many bytes, called so, and a folder to copy to.
fn files(sizes: &[u32]) -> (TempDir, Stores) {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("from")).unwrap();
    for &size in sizes {
        fs::write(place.path().join(format!("from/{size}")), bytes(size)).unwrap();
    }
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    let stores = swathe_store::stores(vec![folder("from", &from), folder("to", &to)]);
    (place, stores)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn files_are_copied_whole_or_not_at_all() {
    let (place, stores) = files(&[0, 5, 20_000_000]);
    let versions = ["from:0", "from:5", "from:20000000"].map(|name| version(&stores, name));
    let results = copy(
        &stores,
        &[
            ("from:0", &versions[0], "to:a/0"),
            ("from:5", &versions[1], "to:a/5"),
            ("from:20000000", &versions[2], "to:b"),
            ("from:5", "5 another", "to:c/other"),
            ("from:none", "5 another", "to:c/none"),
        ],
    );
    let to = place.path().join("to");
    assert_eq!(fs::read(to.join("b")).unwrap(), bytes(20_000_000));
    assert_eq!(results[2].as_ref().unwrap().version.to_string(), version(&stores, "to:b"));
    assert!(results[..3].iter().all(|result| result.as_ref().unwrap().read_back));
    assert_eq!(names(&to.join("a")), ["0", "5"]);
    let message = results[3].as_ref().unwrap_err().to_string();
    assert!(message.contains("expected version 5 another, found 5 mtime:"), "{message}");
    assert!(matches!(results[4], Err(StoreError::NotFound { .. })));
    assert_eq!(names(&to.join("c")), [""; 0]);
}

#[test]
fn what_a_killed_copy_left_is_written_anew() {
    let (place, stores) = files(&[5]);
    let to = place.path().join("to");
    let version = version(&stores, "from:5");
    let long = "n".repeat(250);
    for name in ["5", &long] {
        // A copy that cannot be given its name leaves nothing.
        fs::create_dir_all(to.join(name)).unwrap();
        let results = copy(&stores, &[("from:5", &version, &format!("to:{name}"))]);
        assert!(matches!(results[0], Err(StoreError::Io { .. })), "{results:?}");
        assert_eq!(names(&to), [name]);
        fs::remove_dir(to.join(name)).unwrap();
        // A copy in progress locks others out, and a killed one does not.
        let start: String = name.chars().take(50).collect();
        let sum = crc32fast::hash(name.as_bytes());
        let path = to.join(format!(".{start}-{sum:08x}.part"));
        fs::write(&path, vec![9; 100]).unwrap();
        let lock = File::open(&path).unwrap();
        lock.lock().unwrap();
        let results = copy(&stores, &[("from:5", &version, &format!("to:{name}"))]);
        let message = results[0].as_ref().unwrap_err().to_string();
        assert!(message.contains("another process is writing it"), "{message}");
        drop(lock);
        let results = copy(&stores, &[("from:5", &version, &format!("to:{name}"))]);
        assert!(results[0].is_ok(), "{results:?}");
        assert_eq!(names(&to), [name]);
        assert_eq!(fs::read(to.join(name)).unwrap(), bytes(5));
        fs::remove_file(to.join(name)).unwrap();
    }
}

#[test]
fn places_that_cannot_be_written() {
    let (place, _) = files(&[5]);
    let server = Server::start(|_, _| reply("404 Not Found", b""));
    let from = folder("from", &place.path().join("from"));
    let web = store("web", server.url("").trim_end_matches('/').into(), &[]);
    let full = folder("full", Path::new("/proc/nothing"));
    let stores = swathe_store::stores(vec![from, web, full]);
    let version = version(&stores, "from:5");
    for to in ["web:x", "full:x", "from:5/x"] {
        let results = copy(&stores, &[("from:5", &version, to)]);
        assert!(results[0].is_err(), "{to}");
    }
    assert!(matches!(stores.remove("web:x"), Err(StoreError::Unsupported { .. })));
}

#[test]
fn a_source_that_changes_leaves_no_copy() {
    let place = tempfile::tempdir().unwrap();
    let data = bytes(20_000_000);
    let server = Server::start(move |request, _| match request.range() {
        Some((first, _)) if first > 0 => good(request, &data, "ETag: \"two\""),
        _ => good(request, &data, "ETag: \"one\""),
    });
    let web = store("web", server.url("").trim_end_matches('/').into(), &[]);
    let stores = swathe_store::stores(vec![web, folder("to", place.path())]);
    let results = copy(
        &stores,
        &[("web:a", "20000000 \"one\"", "to:a"), ("web:b", "30000000 \"one\"", "to:b")],
    );
    assert!(matches!(results[0], Err(StoreError::Changed { .. })), "{results:?}");
    assert!(matches!(results[1], Err(StoreError::Changed { .. })), "{results:?}");
    assert_eq!(names(place.path()), [""; 0]);
    assert!(server.requests().iter().all(|get| get.header("if-match") == Some("\"one\"")));
}

#[test]
fn a_source_that_ends_early_leaves_no_copy() {
    let place = tempfile::tempdir().unwrap();
    let data = bytes(1000);
    let server = Server::start(move |request, _| {
        let mut answer = good(request, &data, "ETag: \"one\"");
        answer.bytes.truncate(answer.bytes.len() - 300);
        answer.then = server::ConnectionEnd::Close;
        answer
    });
    let web = store("web", server.url("").trim_end_matches('/').into(), &[]);
    let stores = swathe_store::stores(vec![web, folder("to", place.path())]);
    let results = copy(&stores, &[("web:a", "1000 \"one\"", "to:a")]);
    assert!(matches!(results[0], Err(StoreError::ShortRead { .. })), "{results:?}");
    assert_eq!(names(place.path()), [""; 0]);
}

/// What a server keeps of what it is sent.
type Keep = fn(Vec<u8>) -> Vec<u8>;

/// Buckets as Google's and Amazon's XML has them.
struct Lake {
    objects: Mutex<HashMap<String, Vec<u8>>>,
    parts: Mutex<BTreeMap<usize, Vec<u8>>>,
    keep: Keep,
    fails: bool,
}

impl Lake {
    fn new(keep: Keep, fails: bool) -> Arc<Lake> {
        Arc::new(Lake { objects: Mutex::default(), parts: Mutex::default(), keep, fails })
    }

    fn answer(&self, request: &Request) -> Reply {
        let target = request.target.replace("%2F", "/");
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let mut objects = self.objects.lock().unwrap();
        let ok = |body: &str| reply("200 OK\nETag: \"kept\"", body.as_bytes());
        match request.method.as_str() {
            "POST" if query.starts_with("uploads") => {
                ok("<InitiateMultipartUploadResult><UploadId>7</UploadId>\
                    </InitiateMultipartUploadResult>")
            }
            "PUT" if query.contains("partNumber=") => {
                if self.fails {
                    return reply("403 Forbidden", b"");
                }
                let number = query.split("partNumber=").nth(1).unwrap();
                let number = number.split('&').next().unwrap().parse().unwrap();
                self.parts.lock().unwrap().insert(number, request.body.clone());
                ok("")
            }
            "POST" => {
                assert!(!objects.contains_key(path));
                let parts = std::mem::take(&mut *self.parts.lock().unwrap());
                let whole = parts.into_values().flatten().collect();
                objects.insert(path.into(), (self.keep)(whole));
                ok("<CompleteMultipartUploadResult><ETag>\"kept\"</ETag>\
                    </CompleteMultipartUploadResult>")
            }
            "PUT" => {
                objects.insert(path.into(), (self.keep)(request.body.clone()));
                ok("")
            }
            "DELETE" => {
                objects.remove(path);
                reply("204 No Content", b"")
            }
            _ => match objects.get(path) {
                Some(data) => good(request, data, "ETag: \"kept\""),
                None => reply("404 Not Found", b""),
            },
        }
    }
}

#[test]
fn objects_of_buckets_are_read_back_or_removed() {
    let (place, _) = files(&[5, 20_000_000]);
    let cut = |mut data: Vec<u8>| {
        data.pop();
        data
    };
    let spoil = |mut data: Vec<u8>| {
        let last = data.len() - 1;
        data[last] ^= 1;
        data
    };
    let cases: [(Keep, &str); 3] =
        [(|data| data, ""), (cut, " bytes, found "), (spoil, "of what was written from byte ")];
    for (keep, message) in cases {
        for scheme in ["gs", "s3"] {
            let lake = Lake::new(keep, false);
            let ours = lake.clone();
            let server = Server::start(move |request, _| ours.answer(request));
            let from = folder("from", &place.path().join("from"));
            let stores = swathe_store::stores(vec![from, bucket(scheme, &server)]);
            let versions = ["from:5", "from:20000000"].map(|name| version(&stores, name));
            let results = copy(
                &stores,
                &[
                    ("from:5", &versions[0], "lake:a b/5"),
                    ("from:20000000", &versions[1], "lake:20000000"),
                ],
            );
            let objects = lake.objects.lock().unwrap();
            if message.is_empty() {
                assert!(results.iter().all(|result| result.as_ref().unwrap().read_back));
                assert_eq!(objects["/frames/dr1/a%20b/5"], bytes(5));
                assert_eq!(objects["/frames/dr1/20000000"], bytes(20_000_000));
                assert_eq!(results[1].as_ref().unwrap().version.to_string(), "20000000 \"kept\"");
            } else {
                let errors = results.iter().map(|result| result.as_ref().unwrap_err().to_string());
                assert!(errors.clone().all(|error| error.contains(message)), "{results:?}");
                assert!(objects.is_empty(), "{:?}", objects.keys());
            }
        }
    }
}

#[test]
fn an_upload_that_fails_is_given_up() {
    let (place, _) = files(&[20_000_000]);
    let lake = Lake::new(|data| data, true);
    let ours = lake.clone();
    let server = Server::start(move |request, _| ours.answer(request));
    let from = folder("from", &place.path().join("from"));
    let stores = swathe_store::stores(vec![from, bucket("s3", &server)]);
    let version = version(&stores, "from:20000000");
    let results = copy(&stores, &[("from:20000000", &version, "lake:a")]);
    assert!(matches!(results[0], Err(StoreError::Forbidden { .. })), "{results:?}");
    assert!(lake.objects.lock().unwrap().is_empty());
    // Parts already sent are removed, though nobody waits for that.
    let given_up = |request: &Request| request.method == "DELETE";
    let limit = std::time::Instant::now() + Duration::from_secs(120);
    while !server.requests().iter().any(given_up) {
        assert!(std::time::Instant::now() < limit, "the upload is not given up");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn without_a_version_the_object_is_copied_as_it_is() {
    let (place, stores) = files(&[5, 20_000_000]);
    let results = copy(&stores, &[("from:5", "", "to:a"), ("from:20000000", "", "to:b")]);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(fs::read(place.path().join("to/b")).unwrap(), bytes(20_000_000));
    let missing = copy(&stores, &[("from:none", "", "to:c")]);
    assert!(matches!(missing[..], [Err(StoreError::NotFound { .. })]), "{missing:?}");
    assert_eq!(names(&place.path().join("to")), ["a", "b"]);
}

#[test]
fn copies_stop_when_told() {
    let (place, stores) = files(&[5]);
    let version = version(&stores, "from:5");
    let order = |number: usize| CopyOrder {
        from: "from:5".into(),
        version: Some(version.clone()),
        to: format!("to:{number}"),
        replaces: true,
    };
    let copies = Copies::start(stores, (0..100_000).map(order).collect(), 2).unwrap();
    copies.stop();
    let mut results = 0;
    while let Some(more) = copies.poll(Duration::from_secs(10)) {
        results += more.len();
    }
    assert!(results < 100_000);
    let names_there = names(&place.path().join("to"));
    assert_eq!(names_there.iter().filter(|name| name.starts_with('.')).count(), 0);
}
