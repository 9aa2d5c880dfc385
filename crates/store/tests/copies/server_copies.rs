//! Copies that WebDAV servers make, within a server and from another.

use super::server::{ConnectionEnd, Reply, Request, Server, raw, reply};
use super::webdav::{Dav, requests_of};
use super::{bytes, copy, copy_and_count, store};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use swathe_store::{Copies, CopyOrder, CopyResult, CopyRoute};
use swathe_store_api::{Store, StoreError, StoreSettings, Stores};
use tempfile::TempDir;

const SIZE: u32 = 20_000_000;
const MARKER: &str = "Perf Marker\nTimestamp: 1\nStripe Index: 0\nStripe Bytes Transferred: 5\n\
                      Total Stripe Count: 1\nEnd\n";

pub(super) fn holding(path: &str, content: Vec<u8>) -> Arc<Dav> {
    let dav = Arc::new(Dav::default());
    dav.folders.lock().unwrap().push("/dr1".into());
    dav.objects.lock().unwrap().insert(path.into(), content);
    dav
}

pub(super) fn serve(
    dav: &Arc<Dav>,
    answer: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static,
) -> Server {
    let dav = dav.clone();
    Server::start(move |request, _| answer(request).unwrap_or_else(|| dav.answer(request)))
}

pub(super) fn web(name: &str, server: &Server) -> StoreSettings {
    let root = format!("dav://127.0.0.1:{}/dr1", server.port);
    store(name, root, &[("anonymous", "true")])
}

/// Two stores of one server.
pub(super) fn within(server: &Server) -> Stores {
    swathe_store::stores(vec![web("one", server), web("two", server)])
}

pub(super) fn detour(result: &Result<CopyResult, StoreError>) -> String {
    match &result.as_ref().unwrap().route {
        CopyRoute::Detour(why) => why.clone(),
        route => panic!("{route:?}"),
    }
}

pub(super) fn copy_new(stores: &Stores, from: &str, to: &str) -> Result<CopyResult, StoreError> {
    let order = CopyOrder { from: from.into(), version: None, to: to.into(), replaces: false };
    let copies = Copies::start(stores.clone(), vec![order], 1).unwrap();
    let mut results = Vec::new();
    while let Some(more) = copies.poll(Duration::from_secs(10)) {
        results.extend(more);
    }
    results.pop().unwrap().outcome
}

#[test]
fn a_server_copies_what_it_has() {
    let dav = holding("/dr1/a", bytes(SIZE));
    dav.objects.lock().unwrap().insert("/dr1/empty".into(), Vec::new());
    let server = serve(&dav, |_| None);
    let orders = [("one:a", "", "two:c/b %ü"), ("one:empty", "", "two:empty2")];
    let (results, count) = copy_and_count(&within(&server), &orders);
    for result in &results {
        let result = result.as_ref().unwrap();
        assert_eq!(result.route, CopyRoute::Servers);
        assert!(result.read_back, "an ETag that is no MD5 shows nothing");
    }
    assert_eq!(count, u64::from(SIZE));
    let objects = dav.objects.lock().unwrap().clone();
    let names: Vec<_> = objects.keys().map(String::as_str).collect();
    assert_eq!(names, ["/dr1/a", "/dr1/c/b%20%25%C3%BC", "/dr1/empty", "/dr1/empty2"]);
    assert_eq!(objects["/dr1/c/b%20%25%C3%BC"], bytes(SIZE));
    assert!(requests_of(&server, "PUT").is_empty());
    let copies = requests_of(&server, "COPY");
    // An empty object is opened without its ETag.
    assert!(copies.iter().any(|copy| copy.header("if-match") == Some("\"kept\"")));
    assert!(copies.iter().all(|copy| copy.header("destination").unwrap().ends_with(".part")));
}

/// A digest of what a server has; `None` if that is not asked for.
fn digest(dav: &Dav, request: &Request) -> Option<Reply> {
    let wants = request.method == "HEAD" && request.header("want-digest").is_some();
    let objects = dav.objects.lock().unwrap();
    let object = objects.get(&request.target).filter(|_| wants)?;
    let digest = format!("200 OK\nDigest: adler32={:08x}", crc32fast::hash(object));
    let mut answer = reply(&digest, object);
    answer.bytes.truncate(answer.bytes.len() - object.len());
    Some(answer)
}

#[test]
fn where_checksums_are_told_no_byte_passes_through_us() {
    let dav = holding("/dr1/a", bytes(SIZE));
    let ours = dav.clone();
    let server = serve(&dav, move |request| digest(&ours, request));
    let results = copy(&within(&server), &[("one:a", "", "two:b")]);
    let result = results[0].as_ref().unwrap();
    assert_eq!((&result.route, result.read_back), (&CopyRoute::Servers, false));
    assert_eq!(dav.objects.lock().unwrap()["/dr1/b"], bytes(SIZE));
    let ends = requests_of(&server, "GET").into_iter().map(|get| get.range().unwrap().1);
    assert!(ends.max() < Some(64 << 10), "only the first bytes are read");
}

#[test]
fn a_server_that_copies_something_else_is_found_out() {
    type Spoil = fn(&mut Vec<u8>);
    let cases: [(Spoil, &str); 3] = [
        (|data| data.truncate(data.len() / 2), "said they copied 20000000 bytes, and the copy has"),
        (|data| *data.last_mut().unwrap() ^= 1, "has other bytes"),
        (Vec::clear, "and the copy has 0"),
    ];
    for has_digests in [false, true] {
        for (spoil, reason) in cases {
            let dav = holding("/dr1/a", bytes(SIZE));
            let ours = dav.clone();
            let server = serve(&dav, move |request| {
                if request.method == "COPY" {
                    let answer = ours.answer(request);
                    let mut objects = ours.objects.lock().unwrap();
                    let part = objects.iter_mut().find(|(name, _)| name.ends_with(".part"));
                    spoil(part.unwrap().1);
                    return Some(answer);
                }
                digest(&ours, request).filter(|_| has_digests)
            });
            let results = copy(&within(&server), &[("one:a", "", "two:b")]);
            let why = detour(&results[0]);
            assert!(why.contains(reason), "{why}");
            let objects = dav.objects.lock().unwrap();
            assert!(objects.keys().eq(["/dr1/a", "/dr1/b"]), "{:?}", objects.keys());
            assert_eq!(objects["/dr1/b"], bytes(SIZE));
        }
    }
}

#[test]
fn a_server_that_takes_no_copy_is_asked_once() {
    for (head, reason, count) in [
        ("405 Not Allowed", "takes no COPY here: 405 Method Not Allowed", 1),
        ("501 Not Implemented", "takes no COPY here: 501 Not Implemented", 1),
        ("403 Forbidden", "access denied: 403 Forbidden", 2),
        ("207 Multi-Status", "answered 207 Multi-Status", 2),
        ("303 See Other\nLocation: /", "answered 303 See Other", 2),
    ] {
        let dav = holding("/dr1/a", bytes(5));
        let is_copy = |request: &Request| request.method == "COPY";
        let server = serve(&dav, move |request| is_copy(request).then(|| reply(head, b"")));
        let stores = within(&server);
        for to in ["two:b", "two:c"] {
            let why = detour(&copy(&stores, &[("one:a", "", to)])[0]);
            assert!(why.starts_with("127.0.0.1:") || why.starts_with("the servers"), "{why}");
            assert!(why.contains(reason), "{why}");
        }
        assert_eq!(requests_of(&server, "COPY").len(), count, "{head}");
        assert_eq!(dav.objects.lock().unwrap().len(), 3);
    }
}

#[test]
fn nothing_is_replaced_by_a_server_unasked() {
    let dav = holding("/dr1/a", bytes(5));
    dav.objects.lock().unwrap().insert("/dr1/b".into(), b"of another".to_vec());
    let server = serve(&dav, |_| None);
    let stores = within(&server);
    let result = copy_new(&stores, "one:a", "two:b");
    assert!(matches!(result, Err(StoreError::Exists { .. })), "{result:?}");
    assert_eq!(dav.objects.lock().unwrap()["/dr1/b"], b"of another");
    assert_eq!(dav.objects.lock().unwrap().len(), 2);
    let results = copy(&stores, &[("one:a", "", "two:b")]);
    assert_eq!(results[0].as_ref().unwrap().route, CopyRoute::Servers);
    assert_eq!(dav.objects.lock().unwrap()["/dr1/b"], bytes(5));
    assert!(requests_of(&server, "PUT").is_empty());
}

#[test]
fn a_source_that_changes_while_a_server_copies_leaves_no_copy() {
    for version in ["", "100000 \"kept\""] {
        let dav = holding("/dr1/a", bytes(100_000));
        let (ours, changed) = (dav.clone(), Mutex::new(false));
        let server = serve(&dav, move |request| {
            if request.method == "COPY" {
                *changed.lock().unwrap() = true;
                return None;
            }
            let is_source = request.method == "GET" && request.target == "/dr1/a";
            (is_source && *changed.lock().unwrap()).then(|| {
                let objects = ours.objects.lock().unwrap();
                super::good(request, &objects["/dr1/a"], "ETag: \"another\"")
            })
        });
        let results = copy(&within(&server), &[("one:a", version, "two:b")]);
        assert!(matches!(results[0], Err(StoreError::Changed { .. })), "{results:?}");
        assert!(dav.objects.lock().unwrap().keys().eq(["/dr1/a"]), "nothing is left");
    }
}

#[test]
fn copies_within_a_server_that_knows_two_readers_pass_through_us() {
    let dav = holding("/dr1/a", bytes(5));
    let server = serve(&dav, |_| None);
    let place = TempDir::new().unwrap();
    let token = place.path().join("token");
    std::fs::write(&token, "SECRET").unwrap();
    let root = format!("dav://127.0.0.1:{}/dr1", server.port);
    let two = store("two", root, &[("token_file", token.to_str().unwrap())]);
    let stores = swathe_store::stores(vec![web("one", &server), two]);
    let why = detour(&copy(&stores, &[("one:a", "", "two:b")])[0]);
    assert!(why.contains("different credentials"), "{why}");
    assert!(requests_of(&server, "COPY").is_empty());
}

/// A server that copies from `from` whatever it is told, and answers with `end`.
pub(super) fn pulling(from: &Arc<Dav>, end: Reply) -> (Arc<Dav>, Server) {
    let (dav, from) = (holding("/dr1/old", Vec::new()), from.clone());
    let ours = dav.clone();
    let server = serve(&dav, move |request| {
        let source = request.header("source").filter(|_| request.method == "COPY")?;
        let path = &source[source.find("/dr1").unwrap()..];
        let object = from.objects.lock().unwrap()[path].clone();
        ours.objects.lock().unwrap().insert(request.target.clone(), object);
        Some(end.clone())
    });
    (dav, server)
}

pub(super) fn success() -> Reply {
    raw("201 Created\nConnection: close", format!("{MARKER}success: Created\n").as_bytes())
}

/// A store on a server that is given up soon.
fn impatient(settings: StoreSettings) -> Arc<dyn Store> {
    swathe_store::connect_with_stall(settings, Duration::from_millis(700))
}

#[test]
fn a_server_pulls_from_another() {
    let from = holding("/dr1/a%20b", bytes(SIZE));
    let source = serve(&from, |_| None);
    let (to, target) = pulling(&from, success());
    let stores = swathe_store::stores(vec![web("one", &source), web("two", &target)]);
    let (results, count) = copy_and_count(&stores, &[("one:a b", "", "two:x/b")]);
    let result = results[0].as_ref().unwrap();
    assert_eq!(result.route, CopyRoute::Servers);
    assert_eq!(count, u64::from(SIZE));
    assert_eq!(to.objects.lock().unwrap()["/dr1/x/b"], bytes(SIZE));
    let copies = requests_of(&target, "COPY");
    let url = format!("http://127.0.0.1:{}/dr1/a%20b", source.port);
    for copy in &copies {
        assert_eq!(copy.header("source"), Some(url.as_str()));
        assert_eq!(copy.header("credential"), Some("none"));
        for name in ["authorization", "transferheaderauthorization", "copy-header"] {
            assert_eq!(copy.header(name), None, "{name}");
        }
    }
    assert!(requests_of(&target, "PUT").is_empty());
}

#[test]
fn a_pull_that_fails_or_stalls_is_a_detour() {
    let end = |head: &str, text: &str, then| Reply { then, ..raw(head, text.as_bytes()) };
    let (close, hang) = (ConnectionEnd::Close, ConnectionEnd::Hang);
    let created = "201 Created\nConnection: close";
    let many = MARKER.replace(": 5", ": 20000001");
    for (answer, reason) in [
        (end(created, &format!("{MARKER}failure: disk full\n"), close), "failure: disk full"),
        (end(created, MARKER, close), "without saying how the copy ended"),
        (end("202 Accepted\nConnection: close", "", close), "without saying how the copy ended"),
        (end(created, MARKER, hang), "sent nothing for 0.7 s"),
        (end(created, MARKER, ConnectionEnd::Repeat(MARKER)), "copied nothing for"),
        (end(created, "", ConnectionEnd::Repeat("Timestamp: 1\n")), "copied nothing for"),
        (end(created, &many, hang), "says it copied 20000001 of 20000000 bytes"),
        (end(created, &"x".repeat(100_000), hang), "without a marker"),
        (Reply { bytes: vec![], then: hang }, "sent nothing for 0.7 s"),
        (reply("400 Bad Request", b""), "answered 400 Bad Request"),
    ] {
        let from = holding("/dr1/a", bytes(SIZE));
        let source = serve(&from, |_| None);
        let (to, target) = pulling(&from, answer);
        let stores = Stores::new(vec![web("one", &source), web("two", &target)], impatient);
        let (results, count) = copy_and_count(&stores, &[("one:a", "", "two:b")]);
        let why = detour(&results[0]);
        assert!(why.contains(reason), "{why}");
        assert_eq!(count, u64::from(SIZE), "what came to nothing does not count");
        assert_eq!(requests_of(&target, "COPY").len(), 1, "{reason}");
        let objects = to.objects.lock().unwrap();
        assert!(objects.keys().eq(["/dr1/b", "/dr1/old"]), "{:?}", objects.keys());
        assert_eq!(objects["/dr1/b"], bytes(SIZE));
    }
}

#[test]
fn a_copy_by_servers_ends_when_it_is_told() {
    let from = holding("/dr1/a", bytes(5));
    let source = serve(&from, |_| None);
    let (to, target) = pulling(&from, Reply { bytes: vec![], then: ConnectionEnd::Hang });
    let stores = swathe_store::stores(vec![web("one", &source), web("two", &target)]);
    let order =
        CopyOrder { from: "one:a".into(), version: None, to: "two:b".into(), replaces: true };
    let copies = Copies::start(stores, vec![order], 1).unwrap();
    let limit = std::time::Instant::now() + Duration::from_secs(60);
    while requests_of(&target, "COPY").is_empty() {
        assert!(std::time::Instant::now() < limit, "no copy");
        std::thread::sleep(Duration::from_millis(10));
    }
    copies.stop();
    while let Some(more) = copies.poll(Duration::from_secs(10)) {
        assert!(more.is_empty(), "{more:?}");
    }
    assert!(to.objects.lock().unwrap().keys().eq(["/dr1/old"]), "nothing is left");
}

/// A store whose token is in a file, with further options.
pub(super) fn secret_store(
    place: &TempDir,
    server: &Server,
    options: &[(&str, &str)],
) -> StoreSettings {
    let token = place.path().join("token");
    std::fs::write(&token, "SECRETTOKEN").unwrap();
    let options: Vec<_> =
        options.iter().copied().chain([("token_file", token.to_str().unwrap())]).collect();
    store("one", format!("dav://127.0.0.1:{}/dr1", server.port), &options)
}

#[test]
fn a_token_goes_to_another_server_only_if_its_store_says_so() {
    let place = TempDir::new().unwrap();
    for (options, is_sent) in [
        (&[][..], false),
        (&[("delegation", "false")][..], false),
        (&[("delegation", "true")][..], true),
    ] {
        let from = holding("/dr1/a", bytes(5));
        let source = serve(&from, |_| None);
        let (to, target) = pulling(&from, success());
        let one = secret_store(&place, &source, options);
        let stores = swathe_store::stores(vec![one, web("two", &target)]);
        let results = copy(&stores, &[("one:a", "", "two:b")]);
        let copies = requests_of(&target, "COPY");
        if is_sent {
            assert_eq!(results[0].as_ref().unwrap().route, CopyRoute::Servers);
            let token = copies[0].header("transferheaderauthorization");
            assert_eq!(token, Some("Bearer SECRETTOKEN"));
        } else {
            let why = detour(&results[0]);
            assert!(why.contains("the option delegation of their store is not true"), "{why}");
            assert!(copies.is_empty());
        }
        let all = target.requests();
        assert!(all.iter().all(|request| request.header("authorization").is_none()));
        assert_eq!(to.objects.lock().unwrap()["/dr1/b"], bytes(5));
    }
}

#[test]
fn a_redirect_of_a_copy_is_followed_without_the_token_of_its_server() {
    let place = TempDir::new().unwrap();
    let from = holding("/dr1/a", bytes(5));
    let source = serve(&from, |_| None);
    let (pool_dav, pool) = pulling(&from, success());
    let to = format!("http://127.0.0.1:{}", pool.port);
    let (ours, main) = (pool_dav.clone(), pool_dav.clone());
    // A door whose files are those of its pool.
    let door = serve(&ours, move |request| {
        let is_copy = request.method == "COPY";
        let location = format!("307 Temporary Redirect\nLocation: {to}{}", request.target);
        is_copy.then(|| reply(&location, b""))
    });
    let mut two = secret_store(&place, &door, &[]);
    two.name = "two".into();
    let stores = swathe_store::stores(vec![web("one", &source), two]);
    let results = copy(&stores, &[("one:a", "", "two:b")]);
    assert_eq!(results[0].as_ref().unwrap().route, CopyRoute::Servers);
    assert_eq!(main.objects.lock().unwrap()["/dr1/b"], bytes(5));
    let first = requests_of(&door, "COPY");
    assert_eq!(first[0].header("authorization"), Some("Bearer SECRETTOKEN"));
    assert!(pool.requests().iter().all(|request| request.header("authorization").is_none()));
    // In circles it leads nowhere.
    let dav = holding("/dr1/old", Vec::new());
    let circle = serve(&dav, |request| {
        let is_copy = request.method == "COPY";
        is_copy.then(|| reply("307 Temporary Redirect\nLocation: /dr1/again", b""))
    });
    let stores = swathe_store::stores(vec![web("one", &source), web("two", &circle)]);
    let why = detour(&copy(&stores, &[("one:a", "", "two:b")])[0]);
    assert!(why.contains("too many redirects"), "{why}");
}

#[test]
fn a_token_is_not_carried_on_where_others_can_read_it() {
    let place = TempDir::new().unwrap();
    let from = holding("/dr1/a", bytes(5));
    let source = serve(&from, |_| None);
    let dav = holding("/dr1/old", Vec::new());
    let target = serve(&dav, |request| {
        let is_copy = request.method == "COPY";
        // Nobody answers there; it is never asked.
        let location = "307 Temporary Redirect\nLocation: http://192.0.2.1/dr1/b";
        is_copy.then(|| reply(location, b""))
    });
    let one = secret_store(&place, &source, &[("delegation", "true")]);
    let stores = swathe_store::stores(vec![one, web("two", &target)]);
    let why = detour(&copy(&stores, &[("one:a", "", "two:b")])[0]);
    assert!(why.contains("would send a token over http://"), "{why}");
    assert_eq!(dav.objects.lock().unwrap()["/dr1/b"], bytes(5));
}

#[test]
fn a_token_that_a_server_repeats_is_not_shown() {
    let place = TempDir::new().unwrap();
    let from = holding("/dr1/a", bytes(5));
    let source = serve(&from, |_| None);
    for answer in [
        raw("201 Created\nConnection: close", b"failure: SECRETTOKEN is expired\n"),
        reply("400 Bad Request\nContent-Type: text/plain", b"SECRETTOKEN is expired"),
    ] {
        let (_, target) = pulling(&from, answer);
        let one = secret_store(&place, &source, &[("delegation", "true")]);
        let stores = swathe_store::stores(vec![one, web("two", &target)]);
        let why = detour(&copy(&stores, &[("one:a", "", "two:b")])[0]);
        assert!(why.contains("... is expired"), "{why}");
    }
}
