//! Listings of buckets, and copies from store to store.

mod server;

use server::{ConnectionEnd, Reply, Request, Server, good, reply};
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use swathe_store::{Copies, CopyOrder, CopyResult};
use swathe_store_api::{Entry, ListOptions, Listed, StoreError, StoreSettings, Stores};
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

// ---- Listings

fn page(keys: &[&str], next: &str) -> Reply {
    let one = |key: &&str| {
        format!(
            "<Contents><Key>{key}</Key><LastModified>2024-01-02T03:04:05.000Z</LastModified>\
             <ETag>\"one\"</ETag><Size>7</Size></Contents>"
        )
    };
    let objects: String = keys.iter().map(one).collect();
    let token = if next.is_empty() {
        String::new()
    } else {
        format!("<NextContinuationToken>{next}</NextContinuationToken>")
    };
    reply("200 OK", format!("<ListBucketResult>{objects}{token}</ListBucketResult>").as_bytes())
}

const ONE: &str = "200 OK\nLast-Modified: Tue, 02 Jan 2024 03:04:05 GMT\nETag: \"one\"";

fn entry(listed: Listed) -> Entry {
    match listed {
        Listed::Object(entry) => entry,
        Listed::Unlisted { path, why } => panic!("{path}: {why}"),
    }
}

fn paths(page: Vec<Listed>) -> Vec<String> {
    page.into_iter().map(|listed| entry(listed).path).collect()
}

#[test]
fn buckets_are_listed_page_by_page() {
    let server = Server::start(|request, _| {
        assert!(request.target.starts_with("/frames?") || request.target.starts_with("/frames/?"));
        assert!(request.target.contains("prefix=dr1%2Frun"), "{}", request.target);
        match request.target.contains("continuation-token=more") {
            false => page(&["dr1/run/a b.fits", "dr1/run/b.fits"], "more"),
            true => page(&["dr1/run/sub/c.fits"], ""),
        }
    });
    for scheme in ["s3", "gs"] {
        let stores = swathe_store::stores(vec![bucket(scheme, &server)]);
        let before = server.requests().len();
        let mut listing = stores.list("lake:run", ListOptions::default()).unwrap();
        assert_eq!(server.requests().len(), before, "nothing is asked yet");
        let first = listing.next_page().unwrap().unwrap();
        assert_eq!(server.requests().len(), before + 1, "nothing is asked ahead");
        let Entry { size, modified, etag, .. } = entry(first[0].clone());
        assert_eq!((size, etag.as_deref()), (Some(7), Some("one")));
        assert_eq!(modified.as_deref(), Some("2024-01-02T03:04:05+00:00"));
        assert_eq!(paths(first), ["run/a b.fits", "run/b.fits"]);
        assert_eq!(paths(listing.next_page().unwrap().unwrap()), ["run/sub/c.fits"]);
        assert!(listing.next_page().unwrap().is_none());
        assert!(listing.next_page().unwrap().is_none());
    }
}

#[test]
fn a_listing_in_circles_ends() {
    let server = Server::start(|_, _| page(&["dr1/run/a.fits"], "again"));
    let mut listing = swathe_store::stores(vec![bucket("s3", &server)])
        .list("lake:run", ListOptions::default())
        .unwrap();
    listing.next_page().unwrap();
    let error = listing.next_page().unwrap_err();
    assert!(error.to_string().contains("same page of its listing again"), "{error}");
}

#[test]
fn a_listing_in_a_long_circle_ends() {
    let server = Server::start(|request, _| {
        let next = [("token=a", "b"), ("token=b", "c"), ("token=c", "a")];
        let next = next.iter().find(|(token, _)| request.target.contains(token));
        page(&["dr1/run/a.fits"], next.map_or("a", |(_, token)| token))
    });
    let mut listing = swathe_store::stores(vec![bucket("s3", &server)])
        .list("lake:run", ListOptions::default())
        .unwrap();
    for _ in 0..3 {
        listing.next_page().unwrap();
    }
    let error = listing.next_page().unwrap_err();
    assert!(error.to_string().contains("same page of its listing again"), "{error}");
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn refused_listings_say_why() {
    let said = "<Error><Message>Not for you</Message><Key>SECRET</Key></Error>";
    let server = Server::start(move |_, _| reply("403 Forbidden", said.as_bytes()));
    let stores =
        swathe_store::stores(vec![bucket("s3", &server), folder("disk", Path::new("/data"))]);
    let error = stores.list("lake:run", ListOptions::default()).unwrap().next_page().unwrap_err();
    assert!(matches!(error, StoreError::Forbidden { .. }));
    let expected = "s3://frames/dr1/run: access denied: 403 Forbidden: Not for you; asked anonymou";
    assert!(error.to_string().starts_with(expected), "{error}");
    assert!(!error.to_string().contains("SECRET"));
    for place in ["nowhere://host/a", "lake:a//b", "lake:../b", "http://"] {
        let refused = stores.list(place, ListOptions::default()).map(|_| ()).unwrap_err();
        assert!(matches!(refused, StoreError::Unsupported { .. }), "{place}: {refused}");
    }
}

#[test]
fn nothing_below_a_prefix_is_an_empty_page_and_no_bucket_an_error() {
    let server = Server::start(|request, _| match request.method.as_str() {
        "HEAD" if request.target.ends_with("/one") => reply(ONE, b""),
        "HEAD" => reply("404 Not Found", b""),
        _ if request.target.starts_with("/frames") => page(&[], ""),
        _ => reply("404 Not Found", b"<Error><Message>No such bucket</Message></Error>"),
    });
    let stores = swathe_store::stores(vec![bucket("s3", &server)]);
    let first = |place: &str| stores.list(place, ListOptions::default()).unwrap().next_page();
    let error = first("lake:run").unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    assert!(error.to_string().ends_with("no such folder"), "{error}");
    let whole = StoreSettings { root: "s3://frames".into(), ..bucket("s3", &server) };
    let whole = swathe_store::stores(vec![whole]).list("lake:", ListOptions::default());
    assert_eq!(whole.unwrap().next_page().unwrap().unwrap(), []);
    let may_lack = ListOptions { may_lack: true, ..ListOptions::default() };
    assert_eq!(stores.list("lake:run", may_lack).unwrap().next_page().unwrap().unwrap(), []);
    assert_eq!(paths(first("lake:one").unwrap().unwrap()), ["one"]);
    let mut elsewhere = bucket("s3", &server);
    elsewhere.root = "s3://nowhere".into();
    let error = swathe_store::stores(vec![elsewhere])
        .list("lake:", ListOptions::default())
        .unwrap()
        .next_page()
        .unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    assert!(error.to_string().contains("No such bucket"), "{error}");
}

// ---- Copies

/// Copy these with two threads; what became of each, in their order.
fn copy(stores: &Stores, orders: &[(&str, &str, &str)]) -> Vec<Result<CopyResult, StoreError>> {
    copy_counted(stores, orders).0
}

/// The same, and how many bytes were written.
fn copy_counted(
    stores: &Stores,
    orders: &[(&str, &str, &str)],
) -> (Vec<Result<CopyResult, StoreError>>, u64) {
    let order = |&(from, version, to): &(&str, &str, &str)| CopyOrder {
        from: from.into(),
        version: version.into(),
        to: to.into(),
        replaces: true,
    };
    let orders = orders.iter().map(order).collect();
    let copies = Copies::start(stores.clone(), orders, 2).unwrap();
    let mut done = Vec::new();
    while let Some(more) = copies.poll(Duration::from_secs(10)) {
        done.extend(more);
    }
    done.sort_by_key(|done| done.number);
    (done.into_iter().map(|done| done.outcome).collect(), copies.bytes())
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
    let done = copy(
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
    assert_eq!(done[2].as_ref().unwrap().version.to_string(), version(&stores, "to:b"));
    assert!(done[..3].iter().all(|done| done.as_ref().unwrap().read_back));
    assert_eq!(names(&to.join("a")), ["0", "5"]);
    let said = done[3].as_ref().unwrap_err().to_string();
    assert!(said.contains("expected version 5 another, found 5 mtime:"), "{said}");
    assert!(matches!(done[4], Err(StoreError::NotFound { .. })));
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
        let done = copy(&stores, &[("from:5", &version, &format!("to:{name}"))]);
        assert!(matches!(done[0], Err(StoreError::Io { .. })), "{done:?}");
        assert_eq!(names(&to), [name]);
        fs::remove_dir(to.join(name)).unwrap();
        // A copy in progress locks others out, and a killed one does not.
        let start: String = name.chars().take(50).collect();
        let sum = crc32fast::hash(name.as_bytes());
        let path = to.join(format!(".{start}-{sum:08x}.part"));
        fs::write(&path, vec![9; 100]).unwrap();
        let locked = File::open(&path).unwrap();
        locked.lock().unwrap();
        let done = copy(&stores, &[("from:5", &version, &format!("to:{name}"))]);
        let said = done[0].as_ref().unwrap_err().to_string();
        assert!(said.contains("another process is writing it"), "{said}");
        drop(locked);
        let done = copy(&stores, &[("from:5", &version, &format!("to:{name}"))]);
        assert!(done[0].is_ok(), "{done:?}");
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
        let done = copy(&stores, &[("from:5", &version, to)]);
        assert!(done[0].is_err(), "{to}");
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
    let done = copy(
        &stores,
        &[("web:a", "20000000 \"one\"", "to:a"), ("web:b", "30000000 \"one\"", "to:b")],
    );
    assert!(matches!(done[0], Err(StoreError::Changed { .. })), "{done:?}");
    assert!(matches!(done[1], Err(StoreError::Changed { .. })), "{done:?}");
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
    let done = copy(&stores, &[("web:a", "1000 \"one\"", "to:a")]);
    assert!(matches!(done[0], Err(StoreError::ShortRead { .. })), "{done:?}");
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
    for (keep, said) in cases {
        for scheme in ["gs", "s3"] {
            let lake = Lake::new(keep, false);
            let ours = lake.clone();
            let server = Server::start(move |request, _| ours.answer(request));
            let from = folder("from", &place.path().join("from"));
            let stores = swathe_store::stores(vec![from, bucket(scheme, &server)]);
            let versions = ["from:5", "from:20000000"].map(|name| version(&stores, name));
            let done = copy(
                &stores,
                &[
                    ("from:5", &versions[0], "lake:a b/5"),
                    ("from:20000000", &versions[1], "lake:20000000"),
                ],
            );
            let objects = lake.objects.lock().unwrap();
            if said.is_empty() {
                assert!(done.iter().all(|done| done.as_ref().unwrap().read_back));
                assert_eq!(objects["/frames/dr1/a%20b/5"], bytes(5));
                assert_eq!(objects["/frames/dr1/20000000"], bytes(20_000_000));
                assert_eq!(done[1].as_ref().unwrap().version.to_string(), "20000000 \"kept\"");
            } else {
                let errors = done.iter().map(|done| done.as_ref().unwrap_err().to_string());
                assert!(errors.clone().all(|error| error.contains(said)), "{done:?}");
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
    let done = copy(&stores, &[("from:20000000", &version, "lake:a")]);
    assert!(matches!(done[0], Err(StoreError::Forbidden { .. })), "{done:?}");
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
fn an_object_that_appears_meanwhile_is_replaced_only_if_it_may_be() {
    let (place, local) = files(&[5]);
    let (dav, _server, remote) = dav(&place, |_| None);
    fs::create_dir(place.path().join("to")).unwrap();
    fs::write(place.path().join("to/a"), b"of another").unwrap();
    dav.objects.lock().unwrap().insert("/dr1/a".into(), b"of another".to_vec());
    dav.folders.lock().unwrap().push("/dr1".into());
    for (stores, object) in [(local, "to:a"), (remote, "web:a")] {
        let version = version(&stores, "from:5");
        let outcome = |replaces| {
            let (from, to) = ("from:5".into(), object.into());
            let order = CopyOrder { from, version: version.clone(), to, replaces };
            let copies = Copies::start(stores.clone(), vec![order], 1).unwrap();
            let mut done = Vec::new();
            while let Some(more) = copies.poll(Duration::from_secs(10)) {
                done.extend(more);
            }
            done.pop().unwrap().outcome
        };
        assert!(matches!(outcome(false), Err(StoreError::Exists { .. })));
        assert_eq!(stores.open(object).unwrap().len(), 10);
        outcome(true).unwrap();
        assert_eq!(stores.open(object).unwrap().len(), 5);
    }
    assert_eq!(names(&place.path().join("to")), ["a"]);
    assert!(dav.objects.lock().unwrap().keys().eq(["/dr1/a"]));
}

#[test]
fn copies_stop_when_told() {
    let (place, stores) = files(&[5]);
    let version = version(&stores, "from:5");
    let order = |number: usize| CopyOrder {
        from: "from:5".into(),
        version: version.clone(),
        to: format!("to:{number}"),
        replaces: true,
    };
    let copies = Copies::start(stores, (0..100_000).map(order).collect(), 2).unwrap();
    copies.stop();
    let mut done = 0;
    while let Some(more) = copies.poll(Duration::from_secs(10)) {
        done += more.len();
    }
    assert!(done < 100_000);
    let names_there = names(&place.path().join("to"));
    assert_eq!(names_there.iter().filter(|name| name.starts_with('.')).count(), 0);
}

// ---- WebDAV

/// A WebDAV server as nginx is: a folder that lacks is a 500, and a PUT a file when it is whole.
#[derive(Default)]
struct Dav {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    folders: Mutex<Vec<String>>,
}

impl Dav {
    fn answer(&self, request: &Request) -> Reply {
        let path = &request.target;
        let (folder, _) = path.trim_end_matches('/').rsplit_once('/').unwrap();
        let lacks = !self.folders.lock().unwrap().iter().any(|other| other == folder);
        let mut objects = self.objects.lock().unwrap();
        match request.method.as_str() {
            "MKCOL" if lacks && !folder.is_empty() => reply("409 Conflict", b""),
            "MKCOL" => {
                assert!(path.ends_with('/'), "{path}");
                self.folders.lock().unwrap().push(path.trim_end_matches('/').into());
                reply("201 Created", b"")
            }
            "PUT" if request.header("content-length").is_none() => {
                reply("411 Length Required", b"")
            }
            "PUT" if lacks => reply("500 Internal Server Error", b""),
            "PUT" => {
                objects.insert(path.clone(), request.body.clone());
                reply("201 Created", b"")
            }
            "MOVE" => {
                let (_, to) = request.header("destination").unwrap().split_once("://").unwrap();
                let to = to[to.find('/').unwrap()..].to_string();
                if request.header("overwrite") == Some("F") && objects.contains_key(&to) {
                    return reply("412 Precondition Failed", b"");
                }
                match objects.remove(path) {
                    Some(object) => objects.insert(to, object),
                    None => return reply("404 Not Found", b""),
                };
                reply("204 No Content", b"")
            }
            "PROPFIND" => {
                assert_eq!(request.header("depth"), Some("0"));
                let properties = |kind: &str| {
                    let response = format!(
                        "<D:multistatus xmlns:D=\"DAV:\"><D:response><D:href>{path}</D:href>\
                         <D:propstat><D:prop><D:resourcetype>{kind}</D:resourcetype></D:prop>\
                         </D:propstat></D:response></D:multistatus>"
                    );
                    reply("207 Multi-Status", response.as_bytes())
                };
                let folders = self.folders.lock().unwrap();
                match folders.iter().any(|properties| properties == path.trim_end_matches('/')) {
                    true => properties("<D:collection/>"),
                    false if objects.contains_key(path) => properties(""),
                    false => reply("404 Not Found", b""),
                }
            }
            "DELETE" => {
                assert_eq!(request.header("depth"), Some("0"));
                match objects.remove(path) {
                    Some(_) => reply("204 No Content", b""),
                    None => reply("404 Not Found", b""),
                }
            }
            _ => match objects.get(path) {
                Some(data) => good(request, data, "ETag: \"kept\""),
                None => reply("404 Not Found", b""),
            },
        }
    }
}

/// A WebDAV server, which `answer` may keep from answering, and stores to copy to it.
fn dav(
    place: &TempDir,
    answer: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static,
) -> (Arc<Dav>, Server, Stores) {
    let dav = Arc::new(Dav::default());
    let ours = dav.clone();
    let server = Server::start(move |request, _| match answer(request) {
        Some(reply) => reply,
        None => ours.answer(request),
    });
    let from = folder("from", &place.path().join("from"));
    let root = format!("dav://127.0.0.1:{}/dr1", server.port);
    let stores = swathe_store::stores(vec![from, store("web", root, &[("anonymous", "true")])]);
    (dav, server, stores)
}

fn requests_of(server: &Server, method: &str) -> Vec<Request> {
    server.requests().into_iter().filter(|request| request.method == method).collect()
}

#[test]
fn objects_of_webdav_get_their_names_when_they_are_whole() {
    let (place, _) = files(&[0, 5, 100_000, 20_000_000]);
    let (dav, server, stores) = dav(&place, |_| None);
    let names = ["from:0", "from:5", "from:100000", "from:20000000"];
    let versions = names.map(|name| version(&stores, name));
    let to = ["web:a b/0", "web:a b/5+%", "web:c/d/100000", "web:20000000"];
    let orders: Vec<_> =
        (0..4).map(|number| (names[number], versions[number].as_str(), to[number])).collect();
    let done = copy(&stores, &orders);
    assert!(done.iter().all(|done| done.as_ref().is_ok_and(|done| done.read_back)), "{done:?}");
    let objects = dav.objects.lock().unwrap().clone();
    let expected = ["/dr1/20000000", "/dr1/a%20b/0", "/dr1/a%20b/5+%25", "/dr1/c/d/100000"];
    assert_eq!(objects.keys().collect::<Vec<_>>(), expected);
    let sizes = [20_000_000, 0, 5, 100_000];
    for (name, size) in expected.iter().zip(sizes) {
        assert_eq!(objects[*name], bytes(size), "{name}");
    }
    let puts = requests_of(&server, "PUT");
    assert!(puts.iter().all(|put| put.target.contains("/.") && put.target.ends_with(".part")));
    let lengths: Vec<_> = puts.iter().map(|put| put.body.len()).collect();
    assert_eq!(lengths.iter().filter(|&&length| length == 20_000_000).count(), 1);
    // Again, over what is there.
    assert!(copy(&stores, &orders).iter().all(Result::is_ok));
    stores.remove("web:c/d/100000").unwrap();
    stores.remove("web:c/d/100000").unwrap();
    assert_eq!(dav.objects.lock().unwrap().len(), 3);
    assert!(matches!(stores.remove("web:c/d/"), Err(StoreError::Unsupported { .. })));
}

#[test]
fn folders_of_webdav_are_asked_for_again_where_no_answer_came() {
    let (place, _) = files(&[5]);
    let lost = AtomicUsize::new(0);
    let (dav, server, stores) = dav(&place, move |request| {
        // One above what is there, and one above that.
        let is_lost =
            request.method == "MKCOL" && [0, 2].contains(&lost.fetch_add(1, Ordering::Relaxed));
        is_lost.then(|| Reply { bytes: vec![], then: ConnectionEnd::Close })
    });
    let version = version(&stores, "from:5");
    let done = copy(&stores, &[("from:5", &version, "web:a/b/5")]);
    assert!(done[0].is_ok(), "{done:?}");
    assert_eq!(dav.objects.lock().unwrap()["/dr1/a/b/5"], bytes(5));
    // Five, were all answered.
    assert!(requests_of(&server, "MKCOL").len() > 5);
}

#[test]
fn what_webdav_spoils_does_not_stay() {
    let (place, _) = files(&[5, 20_000_000]);
    let spoilt = |request: &Request| {
        let mut request = request.clone();
        let at = request.body.len().checked_sub(1).filter(|_| request.method == "PUT")?;
        request.body[at] ^= 1;
        Some(request)
    };
    let other = Arc::new(Dav::default());
    let ours = other.clone();
    let (_, server, stores) =
        dav(&place, move |request| Some(ours.answer(&spoilt(request).unwrap_or(request.clone()))));
    let done = copy(
        &stores,
        &[
            ("from:5", &version(&stores, "from:5"), "web:5"),
            ("from:20000000", &version(&stores, "from:20000000"), "web:large"),
        ],
    );
    for done in done {
        let said = done.unwrap_err().to_string();
        assert!(said.contains("of what was written from byte "), "{said}");
    }
    assert_eq!(requests_of(&server, "MOVE").len(), 2);
    assert!(other.objects.lock().unwrap().is_empty());
}

#[test]
fn servers_that_do_not_write_say_so() {
    let (place, _) = files(&[5, 20_000_000]);
    for (method, head, said) in [
        ("PUT", "405 Not Allowed", "takes no PUT here: 405 Method Not Allowed"),
        ("MOVE", "405 Not Allowed", "takes no MOVE here: 405 Method Not Allowed"),
        ("PUT", "403 Forbidden", "access denied: 403 Forbidden"),
        ("PUT", "413 Payload Too Large", "answered 413 Payload Too Large"),
        ("PUT", "303 See Other\nLocation: /", "answered 303 See Other"),
        ("MOVE", "207 Multi-Status", "answered 207 Multi-Status"),
    ] {
        let (dav, server, stores) =
            dav(&place, move |request| (request.method == method).then(|| reply(head, b"")));
        for name in ["5", "20000000"] {
            let version = version(&stores, &format!("from:{name}"));
            let done = copy(&stores, &[(&format!("from:{name}"), &version, "web:a")]);
            let found = done[0].as_ref().unwrap_err().to_string();
            assert!(found.starts_with("http://127.0.0.1:"), "{found}");
            assert!(found.contains(said), "{method}: {found}");
        }
        assert!(dav.objects.lock().unwrap().is_empty(), "{method}");
        assert_eq!(requests_of(&server, "DELETE").len(), 2, "{method}");
    }
}

#[test]
fn a_stream_that_is_refused_says_why() {
    let (place, _) = files(&[20_000_000]);
    let full = |request: &Request| {
        let full = request.method == "PUT" && !request.body.is_empty();
        full.then(|| reply("413 Payload Too Large\nContent-Type: text/plain", b"disk full"))
    };
    let (dav, server, stores) = dav(&place, full);
    let version = version(&stores, "from:20000000");
    let done = copy(&stores, &[("from:20000000", &version, "web:a")]);
    let said = done[0].as_ref().unwrap_err().to_string();
    assert!(said.ends_with("answered 413 Payload Too Large, disk full"), "{said}");
    assert!(dav.objects.lock().unwrap().is_empty());
    assert_eq!(requests_of(&server, "DELETE").len(), 1);
}

#[test]
fn what_fails_in_passing_is_written_all_the_same() {
    let (place, _) = files(&[100_000]);
    let failed = Mutex::new(HashMap::new());
    let (dav, server, stores) = dav(&place, move |request| {
        let mut failed = failed.lock().unwrap();
        let times: &mut u32 = failed.entry(request.method.clone()).or_default();
        *times += 1;
        (request.method != "MKCOL" && *times < 3).then(|| match request.method.as_str() {
            "PUT" => reply("503 Service Unavailable\nRetry-After: 0", b""),
            _ => reply("502 Bad Gateway", b""),
        })
    });
    let version = version(&stores, "from:100000");
    let done = copy(&stores, &[("from:100000", &version, "web:a")]);
    assert!(done[0].is_ok(), "{done:?}");
    assert_eq!(dav.objects.lock().unwrap()["/dr1/a"], bytes(100_000));
    assert_eq!(requests_of(&server, "MOVE").len(), 3);
}

#[test]
fn a_stream_that_breaks_off_begins_anew() {
    let (place, _) = files(&[20_000_000]);
    let left = Mutex::new(vec![server::ConnectionEnd::Close, server::ConnectionEnd::Keep]);
    let (dav, server, stores) = dav(&place, move |request| {
        if request.method != "PUT" || request.body.is_empty() {
            return None;
        }
        // Then without any answer.
        let then = left.lock().unwrap().pop()?;
        let mut answer = reply("503 Service Unavailable", b"");
        if then == server::ConnectionEnd::Close {
            answer.bytes.clear();
        }
        Some(Reply { then, ..answer })
    });
    let version = version(&stores, "from:20000000");
    let (done, written) = copy_counted(&stores, &[("from:20000000", &version, "web:a")]);
    assert!(done[0].is_ok(), "{done:?}");
    assert_eq!(written, 20_000_000, "what came to nothing does not count");
    assert_eq!(dav.objects.lock().unwrap()["/dr1/a"], bytes(20_000_000));
    assert_eq!(dav.objects.lock().unwrap().len(), 1);
    let sent = requests_of(&server, "PUT").iter().filter(|put| !put.body.is_empty()).count();
    assert_eq!(sent, 3);
}

#[test]
fn a_name_that_was_given_unheard_is_no_failure() {
    let (place, _) = files(&[5]);
    let other = Arc::new(Dav::default());
    let (ours, first) = (other.clone(), Mutex::new(true));
    let (_, server, stores) = dav(&place, move |request| {
        let mut reply = ours.answer(request);
        if request.method == "MOVE" && std::mem::take(&mut *first.lock().unwrap()) {
            reply.bytes.clear();
            reply.then = server::ConnectionEnd::Close;
        }
        Some(reply)
    });
    let done = copy(&stores, &[("from:5", &version(&stores, "from:5"), "web:a")]);
    assert!(done[0].is_ok(), "{done:?}");
    assert_eq!(requests_of(&server, "MOVE").len(), 2);
    assert_eq!(other.objects.lock().unwrap()["/dr1/a"], bytes(5));
}

#[test]
fn a_stream_that_is_to_come_back_later_does_not_come_at_once() {
    let (place, _) = files(&[20_000_000]);
    let (dav, server, stores) = dav(&place, |request| {
        let busy = request.method == "PUT" && !request.body.is_empty();
        // Longer than is waited for.
        busy.then(|| reply("503 Service Unavailable\nRetry-After: 3600", b""))
    });
    let version = version(&stores, "from:20000000");
    let (done, written) = copy_counted(&stores, &[("from:20000000", &version, "web:a")]);
    let said = done[0].as_ref().unwrap_err().to_string();
    assert!(said.contains("answered 503 Service Unavailable"), "{said}");
    assert_eq!(requests_of(&server, "PUT").iter().filter(|put| !put.body.is_empty()).count(), 1);
    assert_eq!(written, 0);
    assert!(dav.objects.lock().unwrap().is_empty());
}

#[test]
fn a_copy_within_a_busy_server_ends() {
    let dav = Arc::new(Dav::default());
    dav.folders.lock().unwrap().push("/dr1".into());
    dav.objects.lock().unwrap().insert("/dr1/a".into(), bytes(20_000_000));
    let (ours, failed) = (dav.clone(), Mutex::new(HashMap::new()));
    let server = Server::start(move |request, _| {
        if request.method == "GET" && request.target == "/dr1/a" {
            // Until one request at a time is left.
            let mut failed = failed.lock().unwrap();
            let times: &mut u32 = failed.entry(request.range()).or_default();
            *times += 1;
            if *times < 5 {
                return reply("503 Service Unavailable\nRetry-After: 0", b"");
            }
        }
        ours.answer(request)
    });
    let root = format!("dav://127.0.0.1:{}/dr1", server.port);
    let named = |name| store(name, root.clone(), &[("anonymous", "true")]);
    let stores = swathe_store::stores(vec![named("one"), named("two")]);
    let order = CopyOrder {
        from: "one:a".into(),
        version: "20000000 \"kept\"".into(),
        to: "two:b".into(),
        replaces: true,
    };
    let copies = Copies::start(stores, vec![order], 1).unwrap();
    let done = copies.poll(Duration::from_secs(60)).expect("what became of it");
    assert_eq!(done.len(), 1, "the copy hangs");
    assert!(done[0].outcome.is_ok(), "{done:?}");
    assert_eq!(dav.objects.lock().unwrap()["/dr1/b"], bytes(20_000_000));
}

#[test]
fn an_etag_that_becomes_strong_is_of_the_same_version() {
    let (place, _) = files(&[20_000_000]);
    let other = Arc::new(Dav::default());
    let ours = other.clone();
    let (_, server, stores) = dav(&place, move |request| {
        if request.method == "GET" && request.range().is_some_and(|(first, _)| first == 0) {
            let objects = ours.objects.lock().unwrap();
            return Some(good(request, &objects[&request.target], "ETag: W/\"kept\""));
        }
        Some(ours.answer(request))
    });
    let version = version(&stores, "from:20000000");
    let done = copy(&stores, &[("from:20000000", &version, "web:a")]);
    assert!(done[0].is_ok(), "{done:?}");
    assert_eq!(other.objects.lock().unwrap()["/dr1/a"], bytes(20_000_000));
    assert!(requests_of(&server, "GET").iter().all(|get| get.header("if-match").is_none()));
}

#[test]
fn names_that_xrootd_would_cut_are_refused() {
    let (place, _) = files(&[5, 100_000]);
    let refused = |stores: &Stores, to: &str| {
        for from in ["from:5", "from:100000"] {
            let done = copy(stores, &[(from, &version(stores, from), to)]);
            let said = done[0].as_ref().unwrap_err().to_string();
            assert!(said.contains("would cut the name before the ?"), "{said}");
        }
    };
    // Known by the URL, or by what it says of itself: when asked, or else when written to.
    let (_, server, stores) = dav(&place, |_| None);
    let (store, _) = stores.locate("web:a");
    let door = store.settings().root.replace("dav://", "http://");
    let options = BTreeMap::from([("door".into(), door), ("anonymous".into(), "true".into())]);
    let doored = StoreSettings::new("web".into(), "root://192.0.2.1".into(), options);
    let doored = swathe_store::stores(vec![folder("from", &place.path().join("from")), doored]);
    for to in ["web:x?1", "web:a?b/x"] {
        refused(&doored, to);
        let said = doored.remove(to).unwrap_err().to_string();
        assert!(said.contains("would cut the name before the ?"), "{said}");
    }
    assert!(server.requests().is_empty());
    let (_, server, stores) = dav(&place, |request| {
        let is_asked = request.method == "PROPFIND";
        is_asked.then(|| reply("404 Not Found\nServer: XrootD/v5.5.3", b""))
    });
    refused(&stores, "web:x?1");
    assert!(stores.remove("web:x?1").is_err());
    assert!(server.requests().iter().all(|request| request.method == "PROPFIND"));
    let (_, server, stores) = dav(&place, |request| match request.method.as_str() {
        "PROPFIND" => Some(reply("405 Method Not Allowed", b"")),
        "PUT" => Some(reply("201 Created\nServer: XrootD/v5.5.3", b"")),
        _ => None,
    });
    refused(&stores, "web:x?1");
    assert!(requests_of(&server, "MOVE").is_empty());
    // Others take them.
    let (dav, _server, stores) = self::dav(&place, |_| None);
    let done = copy(&stores, &[("from:5", &version(&stores, "from:5"), "web:x?1")]);
    assert!(done[0].is_ok(), "{done:?}");
    assert_eq!(dav.objects.lock().unwrap()["/dr1/x%3F1"], bytes(5));
    stores.remove("web:x?1").unwrap();
    assert!(dav.objects.lock().unwrap().is_empty());
}

#[test]
fn folders_are_not_removed() {
    let (place, _) = files(&[5]);
    let (dav, server, stores) = dav(&place, |_| None);
    let done = copy(&stores, &[("from:5", &version(&stores, "from:5"), "web:c/a")]);
    assert!(done[0].is_ok(), "{done:?}");
    let said = stores.remove("web:c").unwrap_err().to_string();
    assert!(said.contains("is a folder, and not removed"), "{said}");
    assert!(requests_of(&server, "DELETE").is_empty());
    stores.remove("web:c/a").unwrap();
    assert!(dav.objects.lock().unwrap().is_empty());
    // Not every server sends the state; if it should and cannot now, nothing is removed.
    for (head, deleted) in [
        ("403 Forbidden", 1),
        ("405 Method Not Allowed", 1),
        ("501 Not Implemented", 1),
        ("500 Internal Server Error", 0),
    ] {
        let (_, server, stores) = self::dav(&place, move |request| {
            let is_asked = request.method == "PROPFIND";
            is_asked.then(|| reply(head, b""))
        });
        assert_eq!(stores.remove("web:a").is_ok(), deleted == 1, "{head}");
        assert_eq!(requests_of(&server, "DELETE").len(), deleted, "{head}");
    }
}
