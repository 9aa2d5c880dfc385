//! Copies that the servers of buckets make.

use super::server::{ConnectionEnd, Reply, Request, Server, good, reply};
use super::webdav::requests_of;
use super::{bytes, copy, store};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use swathe_store::{Copies, CopyOrder, CopyRoute};
use swathe_store_api::{StoreError, StoreSettings, Stores};

const MD5: &str = "d41d8cd98f00b204e9800998ecf8427e";

/// Buckets whose server copies. An object is its bytes and its ETag.
#[derive(Default)]
struct CopyingLake {
    objects: Mutex<HashMap<String, (Vec<u8>, String)>>,
    parts: Mutex<BTreeMap<usize, Vec<u8>>>,
    /// Answers to the next copies, instead of copying.
    answers: Mutex<Vec<Reply>>,
    /// Answers to the next beginnings of objects of parts.
    beginnings: Mutex<Vec<Reply>>,
    /// Whether half of an object is copied.
    halves: bool,
    /// Whether a copy of an object has its ETag, whatever that is.
    keeps_etags: bool,
    /// Whether a source that is copied is gone.
    moves: bool,
    /// What another writer puts there as soon as a copy was read.
    other: Mutex<Option<Vec<u8>>>,
}

impl CopyingLake {
    fn answer(&self, request: &Request) -> Reply {
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let mut objects = self.objects.lock().unwrap();
        let copy = request.header("x-amz-copy-source").map(|from| format!("/{from}"));
        match (request.method.as_str(), copy) {
            ("PUT", Some(from)) => {
                if let Some(answer) = self.answers.lock().unwrap().pop() {
                    return answer;
                }
                let (mut content, etag) = objects[&from].clone();
                let expected = request.header("x-amz-copy-source-if-match");
                if expected.is_some_and(|tag| tag.trim_matches('"') != etag)
                    || request.header("if-none-match").is_some() && objects.contains_key(path)
                {
                    return reply("412 Precondition Failed", b"");
                }
                let answer = format!("<R><ETag>&quot;{MD5}&quot;</ETag></R>");
                if let Some(range) = request.header("x-amz-copy-source-range") {
                    let (first, last) =
                        range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
                    let (first, last): (usize, usize) =
                        (first.parse().unwrap(), last.parse().unwrap());
                    let number = query.split("partNumber=").nth(1).unwrap();
                    let number = number.split('&').next().unwrap().parse().unwrap();
                    self.parts.lock().unwrap().insert(number, content[first..=last].to_vec());
                } else {
                    if self.halves {
                        content.truncate(content.len() / 2);
                    }
                    let etag = if self.keeps_etags { etag } else { MD5.into() };
                    objects.insert(path.into(), (content, etag));
                    if self.moves {
                        objects.insert(from, (b"changed".to_vec(), "changed".into()));
                    }
                }
                reply("200 OK", answer.as_bytes())
            }
            ("POST", _) if query.starts_with("uploads") => {
                if let Some(answer) = self.beginnings.lock().unwrap().pop() {
                    return answer;
                }
                let answer = "<InitiateMultipartUploadResult><UploadId>7</UploadId>\
                              </InitiateMultipartUploadResult>";
                reply("200 OK", answer.as_bytes())
            }
            ("POST", _)
                if request.header("if-none-match").is_some() && objects.contains_key(path) =>
            {
                reply("412 Precondition Failed", b"")
            }
            ("POST", _) => {
                let parts = std::mem::take(&mut *self.parts.lock().unwrap());
                let etag = format!("{MD5}-{}", parts.len());
                let content = parts.into_values().flatten().collect();
                objects.insert(path.into(), (content, etag));
                let answer = "<CompleteMultipartUploadResult><ETag>\"x\"</ETag>\
                              </CompleteMultipartUploadResult>";
                reply("200 OK", answer.as_bytes())
            }
            ("PUT", _) => {
                objects.insert(path.into(), (request.body.clone(), "through us".into()));
                reply("200 OK\nETag: \"through us\"", b"")
            }
            ("DELETE", _) if query.starts_with("uploadId") => {
                self.parts.lock().unwrap().clear();
                reply("204 No Content", b"")
            }
            ("DELETE", _) => {
                objects.remove(path);
                reply("204 No Content", b"")
            }
            _ => match objects.get(path) {
                Some((content, etag)) => {
                    let answer = good(request, content, &format!("ETag: \"{etag}\""));
                    if path.starts_with("/other")
                        && let Some(other) = self.other.lock().unwrap().take()
                    {
                        objects.insert(path.into(), (other, "other".into()));
                    }
                    answer
                }
                None => reply("404 Not Found", b""),
            },
        }
    }
}

fn lake(lake: CopyingLake, size: u32, etag: &str) -> (Arc<CopyingLake>, Server) {
    lake.objects.lock().unwrap().insert("/frames/a%20b".into(), (bytes(size), etag.into()));
    let lake = Arc::new(lake);
    let ours = lake.clone();
    (lake, Server::start(move |request, _| ours.answer(request)))
}

fn bucket(name: &str, root: &str, server: &Server, options: &[(&str, &str)]) -> StoreSettings {
    let endpoint = server.url("");
    let endpoint = ("endpoint", endpoint.trim_end_matches('/'));
    let options: Vec<_> =
        options.iter().copied().chain([endpoint, ("anonymous", "true")]).collect();
    store(name, root.into(), &options)
}

fn two(server: &Server) -> Stores {
    swathe_store::stores(vec![
        bucket("one", "s3://frames", server, &[]),
        bucket("two", "s3://other/dr1", server, &[]),
    ])
}

fn gets(server: &Server) -> usize {
    let gets = server.requests().into_iter().filter(|request| request.method == "GET");
    gets.map(|get| get.range().map_or(0, |(first, last)| last - first)).max().unwrap()
}

#[test]
fn s3_copies_from_bucket_to_bucket() {
    let (lake, server) = lake(CopyingLake::default(), 20_000_000, MD5);
    let results = copy(&two(&server), &[("one:a b", "", "two:c d")]);
    let result = results[0].as_ref().unwrap();
    assert_eq!((&result.route, result.read_back), (&CopyRoute::Servers, false));
    assert_eq!(lake.objects.lock().unwrap()["/other/dr1/c%20d"].0, bytes(20_000_000));
    assert!(gets(&server) < 64 << 10, "only the first bytes are read");
}

#[test]
fn s3_copies_in_the_parts_that_an_object_came_in() {
    let etag = format!("{MD5}-3");
    let (lake, server) = lake(CopyingLake::default(), 20_000_000, &etag);
    let results = copy(&two(&server), &[("one:a b", "", "two:c")]);
    let result = results[0].as_ref().unwrap();
    assert_eq!((&result.route, result.read_back), (&CopyRoute::Servers, false));
    assert_eq!(lake.objects.lock().unwrap()["/other/dr1/c"], (bytes(20_000_000), etag));
    assert!(gets(&server) < 64 << 10, "only the first bytes are read");
}

#[test]
fn etags_that_are_no_md5_are_no_proof() {
    let (lake, server) = lake(CopyingLake::default(), 20_000_000, "kept");
    let results = copy(&two(&server), &[("one:a b", "", "two:c")]);
    let result = results[0].as_ref().unwrap();
    assert_eq!((&result.route, result.read_back), (&CopyRoute::Servers, true));
    assert_eq!(lake.objects.lock().unwrap()["/other/dr1/c"].0, bytes(20_000_000));
}

#[test]
fn half_a_copy_in_a_bucket_is_found_out() {
    let half = CopyingLake { halves: true, ..CopyingLake::default() };
    let (lake, server) = lake(half, 1000, MD5);
    let results = copy(&two(&server), &[("one:a b", "", "two:c")]);
    let CopyRoute::Detour(why) = &results[0].as_ref().unwrap().route else { panic!() };
    assert!(why.contains("said they copied 1000 bytes, and the copy has 500"), "{why}");
    assert_eq!(lake.objects.lock().unwrap()["/other/dr1/c"].0, bytes(1000));
}

#[test]
fn a_success_of_s3_may_be_an_error() {
    let slow = || reply("200 OK", b"\n\n<Error><Code>SlowDown</Code></Error>");
    let denied = || reply("403 Forbidden", b"<Error><Message>no</Message></Error>");
    let none = || reply("501 Not Implemented", b"");
    for (answers, reason) in [
        (vec![slow()], None),
        (vec![denied()], Some("access denied: 403 Forbidden, no")),
        (vec![none(); 6], Some("answered 501 Not Implemented")),
    ] {
        let answers = Mutex::new(answers);
        let (lake, server) = lake(CopyingLake { answers, ..CopyingLake::default() }, 1000, MD5);
        let results = copy(&two(&server), &[("one:a b", "", "two:c")]);
        match (&results[0].as_ref().unwrap().route, reason) {
            (CopyRoute::Servers, None) => {}
            (CopyRoute::Detour(why), Some(reason)) => assert!(why.contains(reason), "{why}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(lake.objects.lock().unwrap()["/other/dr1/c"].0, bytes(1000));
    }
}

#[test]
fn a_bucket_is_not_asked_for_what_others_have() {
    let (lake, server) = lake(CopyingLake::default(), 1000, MD5);
    let (_, far) = self::lake(CopyingLake::default(), 1000, MD5);
    let stores = swathe_store::stores(vec![
        bucket("one", "s3://frames", &server, &[]),
        bucket("far", "s3://frames", &far, &[]),
        store("web", server.url("frames"), &[]),
    ]);
    for from in ["far:a b", "web:a b"] {
        let results = copy(&stores, &[(from, "", "one:c")]);
        let route = &results[0].as_ref().unwrap().route;
        assert!(matches!(route, CopyRoute::Detour(_)), "{route:?}");
    }
    assert!(lake.objects.lock().unwrap().contains_key("/frames/c"));
    let is_copy = |request: &Request| request.header("x-amz-copy-source").is_some();
    assert!(!server.requests().iter().any(is_copy));
}

#[test]
fn a_bucket_replaces_nothing_unasked_and_copies_one_version() {
    let (lake, server) = lake(CopyingLake::default(), 1000, MD5);
    let taken = (b"of another".to_vec(), "other".to_string());
    lake.objects.lock().unwrap().insert("/other/dr1/c".into(), taken.clone());
    let result = super::server_copies::copy_new(&two(&server), "one:a b", "two:c");
    assert!(matches!(result, Err(StoreError::Exists { .. })), "{result:?}");
    assert_eq!(lake.objects.lock().unwrap()["/other/dr1/c"], taken);
    // At another version than the object has there is no copy.
    let version = format!("1000 \"{}\"", MD5.replace('d', "e"));
    let results = copy(&two(&server), &[("one:a b", &version, "two:d")]);
    assert!(results[0].is_err(), "{results:?}");
    assert!(!lake.objects.lock().unwrap().contains_key("/other/dr1/d"));
}

#[test]
fn a_copy_in_a_bucket_that_proves_nothing_is_not_removed() {
    // The source changes while it is copied.
    let (lake, server) =
        self::lake(CopyingLake { moves: true, ..CopyingLake::default() }, 1000, "kept");
    let results = copy(&two(&server), &[("one:a b", "", "two:c")]);
    assert!(results[0].is_err(), "{results:?}");
    assert_eq!(lake.objects.lock().unwrap()["/other/dr1/c"].0, bytes(1000));
    assert!(requests_of(&server, "DELETE").is_empty());
    // Another writer replaces a copy that was found out.
    let other = Mutex::new(Some(b"of another".to_vec()));
    let half = CopyingLake { halves: true, other, ..CopyingLake::default() };
    let (lake, server) = self::lake(half, 1000, MD5);
    let result = super::server_copies::copy_new(&two(&server), "one:a b", "two:c");
    let message = result.unwrap_err().to_string();
    assert!(message.contains("was left at two:c"), "{message}");
    assert_eq!(lake.objects.lock().unwrap()["/other/dr1/c"].0, b"of another");
    assert!(requests_of(&server, "DELETE").is_empty());
}

#[test]
fn the_etag_of_parts_proves_nothing_of_a_copy_that_was_made_at_once() {
    let keeping = CopyingLake { keeps_etags: true, ..CopyingLake::default() };
    // No parts that S3 takes have this ETag.
    let (_lake, server) = self::lake(keeping, 20_000_000, &format!("{MD5}-19"));
    let results = copy(&two(&server), &[("one:a b", "", "two:c")]);
    let result = results[0].as_ref().unwrap();
    assert_eq!((&result.route, result.read_back), (&CopyRoute::Servers, true));
}

#[test]
fn parts_replace_nothing_unasked_and_do_not_stay() {
    let (lake, server) = self::lake(CopyingLake::default(), 20_000_000, &format!("{MD5}-3"));
    let taken = (b"of another".to_vec(), "other".to_string());
    lake.objects.lock().unwrap().insert("/other/dr1/c".into(), taken.clone());
    let result = super::server_copies::copy_new(&two(&server), "one:a b", "two:c");
    assert!(matches!(result, Err(StoreError::Exists { .. })), "{result:?}");
    assert_eq!(lake.objects.lock().unwrap()["/other/dr1/c"], taken);
    let deletes = requests_of(&server, "DELETE");
    assert!(deletes.iter().all(|delete| delete.target.contains("uploadId=7")), "{deletes:?}");
    assert_eq!(deletes.len(), 1);
}

#[test]
fn a_conflict_is_no_reason_to_replace() {
    let answers = Mutex::new(vec![reply("409 Conflict", b"")]);
    let (lake, server) = self::lake(CopyingLake { answers, ..CopyingLake::default() }, 1000, MD5);
    let result = super::server_copies::copy_new(&two(&server), "one:a b", "two:c");
    assert!(result.unwrap_err().to_string().contains("answered 409"));
    assert!(!lake.objects.lock().unwrap().contains_key("/other/dr1/c"));
}

#[test]
fn a_redirect_of_a_copy_in_a_bucket_is_a_failure() {
    let (_lake, foreign) = self::lake(CopyingLake::default(), 1000, MD5);
    let location = format!("307 Temporary Redirect\nLocation: {}", foreign.url("other/dr1/c"));
    let answers = Mutex::new(vec![reply(&location, b"")]);
    let (_lake, server) = self::lake(CopyingLake { answers, ..CopyingLake::default() }, 1000, MD5);
    let results = copy(&two(&server), &[("one:a b", "", "two:c")]);
    let CopyRoute::Detour(why) = &results[0].as_ref().unwrap().route else { panic!() };
    assert!(why.contains("answered 307"), "{why}");
    assert!(foreign.requests().is_empty());
}

#[test]
fn a_copy_in_parts_that_is_stopped_leaves_no_parts() {
    let hang = Reply { bytes: vec![], then: ConnectionEnd::Hang };
    let answers = Mutex::new(vec![hang; 3]);
    let silent = CopyingLake { answers, ..CopyingLake::default() };
    let (_lake, server) = self::lake(silent, 20_000_000, &format!("{MD5}-3"));
    let order =
        CopyOrder { from: "one:a b".into(), version: None, to: "two:c".into(), replaces: true };
    let copies = Copies::start(two(&server), vec![order], 1).unwrap();
    let start = Instant::now();
    while requests_of(&server, "PUT").is_empty() {
        assert!(start.elapsed() < Duration::from_secs(60), "no copy");
        thread::sleep(Duration::from_millis(10));
    }
    copies.stop();
    while let Some(more) = copies.poll(Duration::from_secs(10)) {
        assert!(more.is_empty(), "{more:?}");
    }
    let deletes = requests_of(&server, "DELETE");
    assert_eq!(deletes.len(), 1);
    assert!(deletes[0].target.contains("uploadId=7"), "{deletes:?}");
}

#[test]
fn a_copy_in_parts_that_cannot_begin_says_why() {
    let denied = "<Error><Message>not yours</Message></Error>";
    let beginnings = Mutex::new(vec![reply("403 Forbidden", denied.as_bytes())]);
    let silent = CopyingLake { beginnings, ..CopyingLake::default() };
    let (lake, server) = self::lake(silent, 1000, &format!("{MD5}-1"));
    let results = copy(&two(&server), &[("one:a b", "", "two:c")]);
    let CopyRoute::Detour(why) = &results[0].as_ref().unwrap().route else { panic!() };
    assert!(why.starts_with("the servers of the copy answered: access denied: 403"), "{why}");
    assert!(why.contains("not yours"), "{why}");
    assert_eq!(lake.objects.lock().unwrap()["/other/dr1/c"].0, bytes(1000));
}
