//! Copies to WebDAV servers, and to XRootD's.

use super::server::{self, ConnectionEnd, Reply, Request, Server, good, reply};
use super::{bytes, copy, copy_and_count, files, folder, names, store, version};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use swathe_store::{Copies, CopyOrder, ObjectWriter};
use swathe_store_api::{StoreError, StoreSettings, Stores};
use tempfile::TempDir;

/// A WebDAV server as nginx is: a folder that lacks is a 500, and a PUT a file when it is whole.
#[derive(Default)]
pub(super) struct Dav {
    pub(super) objects: Mutex<BTreeMap<String, Vec<u8>>>,
    pub(super) folders: Mutex<Vec<String>>,
}

impl Dav {
    pub(super) fn answer(&self, request: &Request) -> Reply {
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
            "COPY" => {
                let Some((_, to)) =
                    request.header("destination").and_then(|to| to.split_once("://"))
                else {
                    return reply("400 Bad Request", b"");
                };
                let to = to[to.find('/').unwrap()..].to_string();
                let folder = to.rsplit_once('/').unwrap().0;
                if !self.folders.lock().unwrap().iter().any(|other| other == folder) {
                    return reply("409 Conflict", b"");
                }
                match objects.get(path).cloned() {
                    Some(object) => objects.insert(to, object),
                    None => return reply("404 Not Found", b""),
                };
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

pub(super) fn requests_of(server: &Server, method: &str) -> Vec<Request> {
    server.requests().into_iter().filter(|request| request.method == method).collect()
}

#[test]
fn short_parts_of_an_object_are_read_back_several_at_a_time() {
    let (place, _) = files(&[5]);
    let (dav, server, stores) = dav(&place, |_| None);
    let write = || {
        let part = Bytes::from(vec![7; 1 << 20]);
        let size = 20 * part.len() as u64 + 3;
        let mut writer = ObjectWriter::create(&stores, "web:x", size, true, 1 << 20).unwrap();
        (0..20).for_each(|_| writer.write(part.clone()).unwrap());
        writer.write(part.slice(..3)).unwrap();
        writer.finish(true).unwrap()
    };
    assert!(write().verify(|| false).unwrap().unwrap().read_back);
    // One that opens it, and three of at most 8 MiB.
    assert_eq!(requests_of(&server, "GET").len(), 4);

    let object = write();
    dav.objects.lock().unwrap().get_mut("/dr1/x").unwrap()[9 << 20] ^= 1;
    let error = object.verify(|| false).expect_err("a byte has changed");
    assert!(matches!(error, StoreError::Differs { .. }), "{error}");
    assert!(dav.objects.lock().unwrap().is_empty());
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
    let results = copy(&stores, &orders);
    assert!(
        results.iter().all(|result| result.as_ref().is_ok_and(|result| result.read_back)),
        "{results:?}"
    );
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
            let order = CopyOrder { from, version: Some(version.clone()), to, replaces };
            let copies = Copies::start(stores.clone(), vec![order], 1).unwrap();
            let mut results = Vec::new();
            while let Some(more) = copies.poll(Duration::from_secs(10)) {
                results.extend(more);
            }
            results.pop().unwrap().outcome
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
fn folders_of_webdav_are_asked_for_again_where_no_answer_came() {
    let (place, _) = files(&[5]);
    let count = AtomicUsize::new(0);
    let (dav, server, stores) = dav(&place, move |request| {
        // One above what is there, and one above that.
        let is_lost =
            request.method == "MKCOL" && [0, 2].contains(&count.fetch_add(1, Ordering::Relaxed));
        is_lost.then(|| Reply { bytes: vec![], then: ConnectionEnd::Close })
    });
    let version = version(&stores, "from:5");
    let results = copy(&stores, &[("from:5", &version, "web:a/b/5")]);
    assert!(results[0].is_ok(), "{results:?}");
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
    let results = copy(
        &stores,
        &[
            ("from:5", &version(&stores, "from:5"), "web:5"),
            ("from:20000000", &version(&stores, "from:20000000"), "web:large"),
        ],
    );
    for result in results {
        let message = result.unwrap_err().to_string();
        assert!(message.contains("of what was written from byte "), "{message}");
    }
    assert_eq!(requests_of(&server, "MOVE").len(), 2);
    assert!(other.objects.lock().unwrap().is_empty());
}

#[test]
fn servers_that_do_not_write_say_so() {
    let (place, _) = files(&[5, 20_000_000]);
    for (method, head, reason) in [
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
            let results = copy(&stores, &[(&format!("from:{name}"), &version, "web:a")]);
            let message = results[0].as_ref().unwrap_err().to_string();
            assert!(message.starts_with("http://127.0.0.1:"), "{message}");
            assert!(message.contains(reason), "{method}: {message}");
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
    let results = copy(&stores, &[("from:20000000", &version, "web:a")]);
    let message = results[0].as_ref().unwrap_err().to_string();
    assert!(message.ends_with("answered 413 Payload Too Large, disk full"), "{message}");
    assert!(dav.objects.lock().unwrap().is_empty());
    assert_eq!(requests_of(&server, "DELETE").len(), 1);
}

#[test]
fn what_fails_in_passing_is_written_all_the_same() {
    let (place, _) = files(&[100_000]);
    let failures = Mutex::new(HashMap::new());
    let (dav, server, stores) = dav(&place, move |request| {
        let mut failures = failures.lock().unwrap();
        let times: &mut u32 = failures.entry(request.method.clone()).or_default();
        *times += 1;
        (request.method != "MKCOL" && *times < 3).then(|| match request.method.as_str() {
            "PUT" => reply("503 Service Unavailable\nRetry-After: 0", b""),
            _ => reply("502 Bad Gateway", b""),
        })
    });
    let version = version(&stores, "from:100000");
    let results = copy(&stores, &[("from:100000", &version, "web:a")]);
    assert!(results[0].is_ok(), "{results:?}");
    assert_eq!(dav.objects.lock().unwrap()["/dr1/a"], bytes(100_000));
    assert_eq!(requests_of(&server, "MOVE").len(), 3);
}

#[test]
fn a_stream_that_breaks_off_begins_anew() {
    let (place, _) = files(&[20_000_000]);
    let answers = Mutex::new(vec![server::ConnectionEnd::Close, server::ConnectionEnd::Keep]);
    let (dav, server, stores) = dav(&place, move |request| {
        if request.method != "PUT" || request.body.is_empty() {
            return None;
        }
        // Then without any answer.
        let then = answers.lock().unwrap().pop()?;
        let mut answer = reply("503 Service Unavailable", b"");
        if then == server::ConnectionEnd::Close {
            answer.bytes.clear();
        }
        Some(Reply { then, ..answer })
    });
    let version = version(&stores, "from:20000000");
    let (results, byte_count) = copy_and_count(&stores, &[("from:20000000", &version, "web:a")]);
    assert!(results[0].is_ok(), "{results:?}");
    assert_eq!(byte_count, 20_000_000, "what came to nothing does not count");
    assert_eq!(dav.objects.lock().unwrap()["/dr1/a"], bytes(20_000_000));
    assert_eq!(dav.objects.lock().unwrap().len(), 1);
    let put_count = requests_of(&server, "PUT").iter().filter(|put| !put.body.is_empty()).count();
    assert_eq!(put_count, 3);
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
    let results = copy(&stores, &[("from:5", &version(&stores, "from:5"), "web:a")]);
    assert!(results[0].is_ok(), "{results:?}");
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
    let (results, byte_count) = copy_and_count(&stores, &[("from:20000000", &version, "web:a")]);
    let message = results[0].as_ref().unwrap_err().to_string();
    assert!(message.contains("answered 503 Service Unavailable"), "{message}");
    assert_eq!(requests_of(&server, "PUT").iter().filter(|put| !put.body.is_empty()).count(), 1);
    assert_eq!(byte_count, 0);
    assert!(dav.objects.lock().unwrap().is_empty());
}

#[test]
fn a_copy_within_a_busy_server_ends() {
    let dav = Arc::new(Dav::default());
    dav.folders.lock().unwrap().push("/dr1".into());
    dav.objects.lock().unwrap().insert("/dr1/a".into(), bytes(20_000_000));
    let (ours, failures) = (dav.clone(), Mutex::new(HashMap::new()));
    let server = Server::start(move |request, _| {
        if request.method == "GET" && request.target == "/dr1/a" {
            // Until one request at a time is left.
            let mut failures = failures.lock().unwrap();
            let times: &mut u32 = failures.entry(request.range()).or_default();
            *times += 1;
            if *times < 5 {
                return reply("503 Service Unavailable\nRetry-After: 0", b"");
            }
        }
        ours.answer(request)
    });
    let root = format!("dav://127.0.0.1:{}/dr1", server.port);
    let named_store = |name| store(name, root.clone(), &[("anonymous", "true")]);
    let stores = swathe_store::stores(vec![named_store("one"), named_store("two")]);
    let order = CopyOrder {
        from: "one:a".into(),
        version: Some("20000000 \"kept\"".into()),
        to: "two:b".into(),
        replaces: true,
    };
    let copies = Copies::start(stores, vec![order], 1).unwrap();
    let results = copies.poll(Duration::from_secs(60)).expect("what became of it");
    assert_eq!(results.len(), 1, "the copy hangs");
    assert!(results[0].outcome.is_ok(), "{results:?}");
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
    let results = copy(&stores, &[("from:20000000", &version, "web:a")]);
    assert!(results[0].is_ok(), "{results:?}");
    assert_eq!(other.objects.lock().unwrap()["/dr1/a"], bytes(20_000_000));
    assert!(requests_of(&server, "GET").iter().all(|get| get.header("if-match").is_none()));
}

#[test]
fn names_that_xrootd_would_cut_are_refused() {
    let (place, _) = files(&[5, 100_000]);
    let refusal = |stores: &Stores, to: &str| {
        for from in ["from:5", "from:100000"] {
            let results = copy(stores, &[(from, &version(stores, from), to)]);
            let message = results[0].as_ref().unwrap_err().to_string();
            assert!(message.contains("would cut the name before the ?"), "{message}");
        }
    };
    // Known by the URL, or by what it says of itself: when asked, or else when written to.
    let (_, server, stores) = dav(&place, |_| None);
    let (store, _) = stores.locate("web:a");
    let door = store.settings().root.replace("dav://", "http://");
    let options = BTreeMap::from([("door".into(), door), ("anonymous".into(), "true".into())]);
    let through_door = StoreSettings::new("web".into(), "root://192.0.2.1".into(), options);
    let through_door =
        swathe_store::stores(vec![folder("from", &place.path().join("from")), through_door]);
    for to in ["web:x?1", "web:a?b/x"] {
        refusal(&through_door, to);
        let message = through_door.remove(to).unwrap_err().to_string();
        assert!(message.contains("would cut the name before the ?"), "{message}");
    }
    assert!(server.requests().is_empty());
    let (_, server, stores) = dav(&place, |request| {
        let is_asked = request.method == "PROPFIND";
        is_asked.then(|| reply("404 Not Found\nServer: XrootD/v5.5.3", b""))
    });
    refusal(&stores, "web:x?1");
    assert!(stores.remove("web:x?1").is_err());
    assert!(server.requests().iter().all(|request| request.method == "PROPFIND"));
    let (_, server, stores) = dav(&place, |request| match request.method.as_str() {
        "PROPFIND" => Some(reply("405 Method Not Allowed", b"")),
        "PUT" => Some(reply("201 Created\nServer: XrootD/v5.5.3", b"")),
        _ => None,
    });
    refusal(&stores, "web:x?1");
    assert!(requests_of(&server, "MOVE").is_empty());
    // Others take them.
    let (dav, _server, stores) = self::dav(&place, |_| None);
    let results = copy(&stores, &[("from:5", &version(&stores, "from:5"), "web:x?1")]);
    assert!(results[0].is_ok(), "{results:?}");
    assert_eq!(dav.objects.lock().unwrap()["/dr1/x%3F1"], bytes(5));
    stores.remove("web:x?1").unwrap();
    assert!(dav.objects.lock().unwrap().is_empty());
}

#[test]
fn folders_are_not_removed() {
    let (place, _) = files(&[5]);
    let (dav, server, stores) = dav(&place, |_| None);
    let results = copy(&stores, &[("from:5", &version(&stores, "from:5"), "web:c/a")]);
    assert!(results[0].is_ok(), "{results:?}");
    let message = stores.remove("web:c").unwrap_err().to_string();
    assert!(message.contains("is a folder, and not removed"), "{message}");
    assert!(requests_of(&server, "DELETE").is_empty());
    stores.remove("web:c/a").unwrap();
    assert!(dav.objects.lock().unwrap().is_empty());
    // Not every server sends the state; if it should and cannot now, nothing is removed.
    for (head, count) in [
        ("403 Forbidden", 1),
        ("405 Method Not Allowed", 1),
        ("501 Not Implemented", 1),
        ("500 Internal Server Error", 0),
    ] {
        let (_, server, stores) = self::dav(&place, move |request| {
            let is_asked = request.method == "PROPFIND";
            is_asked.then(|| reply(head, b""))
        });
        assert_eq!(stores.remove("web:a").is_ok(), count == 1, "{head}");
        assert_eq!(requests_of(&server, "DELETE").len(), count, "{head}");
    }
}
