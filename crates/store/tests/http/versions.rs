//! Objects that change while they are read, and how their versions are told apart.

use super::server::{Server, good, reply};
use super::{AT, SIZE, data, read_error};
use bytes::Bytes;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use swathe_store::open;
use swathe_store_api::{StoreError, Version};

#[test]
fn a_changed_object_is_an_error_even_where_if_match_is_ignored() {
    let changing = |before: &'static str, after: &'static str, heed: bool| {
        let data = data();
        Server::start(move |request, number| {
            let mut request = request.clone();
            if !heed {
                request.headers.remove("if-match");
            }
            good(&request, &data, if number == 0 { before } else { after })
        })
    };
    for heed in [true, false] {
        let error = read_error(&changing("ETag: \"one\"", "ETag: \"two\"", heed));
        assert_error!(error, Changed, "opened as 100000 \"one\"");
    }
    for (before, after) in [
        ("ETag: W/\"one\"", "ETag: W/\"two\""),
        (
            "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT",
            "Last-Modified: Tue, 02 Jan 2024 00:00:00 GMT",
        ),
        ("ETag: W/\"one\"\nLast-Modified: a", "ETag: W/\"one\"\nLast-Modified: b"),
    ] {
        let server = changing(before, after, true);
        assert_error!(read_error(&server), Changed, "changed");
        assert_eq!(server.requests()[1].header("if-match"), None);
    }
    let other_date =
        changing("ETag: \"one\"\nLast-Modified: a", "ETag: \"one\"\nLast-Modified: b", true);
    open(&other_date.url("a")).unwrap().read_exact_at(AT, &mut [0; 10]).unwrap();
}

#[test]
fn a_shrunk_object_without_version_is_an_error() {
    let server = Server::start(|request, number| {
        good(request, if number == 0 { &[7; 100_000] } else { &[7; 90_015] }, "")
    });
    let source = open(&server.url("a")).unwrap();
    assert_eq!(source.version().tag, "unversioned");
    assert_error!(source.read_exact_at(AT, &mut [0; 3]).unwrap_err(), Changed, "unversioned");
    assert_error!(source.read_exact_at(90_020, &mut [0; 3]).unwrap_err(), Changed, "unversioned");
}

/// A server as XRootD's: it sends the date only with PROPFIND, of a new object from
/// request `changes` on.
fn dating(changes: usize) -> Server {
    Server::start(move |request, number| {
        let (date, byte) = if number < changes { ("Mon", 1) } else { ("Tue", 2) };
        if request.method == "PROPFIND" {
            let body = format!("<x:getlastmodified>{date}</x:getlastmodified>");
            return reply("207 Multi-Status\nServer: XrootD/v5.5.3", body.as_bytes());
        }
        good(request, &[byte; SIZE], "Server: XrootD/v5.5.3")
    })
}

fn methods(server: &Server) -> Vec<String> {
    server.requests().into_iter().map(|request| request.method).collect()
}

#[test]
fn a_date_that_is_told_apart_is_asked_before_and_after_reading() {
    let server = dating(usize::MAX);
    let source = open(&server.url("a")).unwrap();
    assert_eq!(source.version().tag, "Mon");
    assert!(source.can_be_assumed());
    // The server was unknown: the bytes before the date are requested again.
    assert_eq!(methods(&server), ["GET", "PROPFIND", "GET"]);
    source.read_exact_at(AT, &mut [0; 10]).unwrap();
    source.read_exact_at(0, &mut [0; 10]).unwrap();
    assert_eq!(methods(&server)[3..], ["GET", "PROPFIND"]);
    let another = open(&server.url("b")).unwrap();
    assert_eq!(methods(&server)[5..], ["PROPFIND", "GET"]);
    // One question is enough for all bytes before it.
    let ranges: Vec<Range<u64>> = (0..50).map(|at| AT + at..AT + at + 1).collect();
    for (streams, questions) in [(50, 1), (20, 3), (1, 13)] {
        let before = methods(&server).len();
        let pieces: Result<Vec<Bytes>, StoreError> =
            another.fetch(ranges.clone(), streams).collect();
        assert_eq!(pieces.unwrap().concat(), [1; 50]);
        let requests = methods(&server).split_off(before);
        let dates = requests.iter().filter(|method| *method == "PROPFIND").count();
        assert_eq!((requests.len(), dates), (50 + questions, questions), "{streams} streams");
        assert_eq!(requests.last().unwrap(), "PROPFIND");
        assert_eq!(another.questions(50, streams), questions as u64);
    }
}

#[test]
fn pieces_are_given_by_rounds_once_the_date_is_known() {
    // The date is requested when it is opened, after the first round, and after the second.
    let question_count = AtomicUsize::new(0);
    let server = Server::start(move |request, _| {
        if request.method != "PROPFIND" {
            let until = Instant::now() + Duration::from_secs(10);
            let is_in_round_two = request.range() == Some((AT as usize + 4, AT as usize + 4));
            // So that the questions come in order, however busy the machine is.
            while is_in_round_two
                && question_count.load(Ordering::SeqCst) < 2
                && Instant::now() < until
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            return good(request, &[1; SIZE], "Server: XrootD/v5.5.3");
        }
        let date = if question_count.fetch_add(1, Ordering::SeqCst) < 2 { "Mon" } else { "Tue" };
        let body = format!("<x:getlastmodified>{date}</x:getlastmodified>");
        reply("207 Multi-Status\nServer: XrootD/v5.5.3", body.as_bytes())
    });
    let source = open(&server.url("a")).unwrap();
    let ranges = (0..5).map(|at| AT + at..AT + at + 1).collect();
    let pieces: Vec<_> = source.fetch(ranges, 1).collect();
    assert_eq!(pieces[..4].iter().flatten().flatten().copied().collect::<Vec<u8>>(), [1; 4]);
    assert_error!(pieces[4].as_ref().unwrap_err(), Changed, "Mon");
    assert_eq!(pieces.len(), 5);
}

#[test]
fn a_change_that_only_the_date_tells_is_an_error() {
    // After opening; between the bytes and the date; between two pieces.
    for changes in [3, 4, 5] {
        let server = dating(changes);
        let source = open(&server.url("a")).unwrap();
        let pieces: Vec<_> = source.fetch(vec![AT..AT + 9, AT + 9..AT + 19], 1).collect();
        let Some(Err(error)) = pieces.last() else { panic!("{changes}: {pieces:?}") };
        assert_error!(error, Changed, "opened as 100000 Mon");
        assert!(pieces.iter().flatten().all(|piece| piece.iter().all(|byte| *byte == 1)));
    }
}

#[test]
fn an_object_is_assumed_by_the_date_where_that_is_told_apart() {
    let server = dating(usize::MAX);
    let version = |tag: &str| Version { size: SIZE as u64, tag: tag.into() };
    let assume =
        |tag| swathe_store::stores(Vec::new()).assume(&server.url("a"), version(tag)).unwrap();
    assert!(assume("Mon").is_none(), "the server is not known yet");
    open(&server.url("a")).unwrap();
    let requests_before = methods(&server).len();
    assert!(assume("unversioned").is_none() && assume("W/\"one\"").is_none());
    assume("Mon").unwrap().read_exact_at(AT, &mut [0; 10]).unwrap();
    assert_eq!(methods(&server)[requests_before..], ["GET", "PROPFIND"]);
    let stale = assume("Sun").unwrap();
    assert_error!(stale.read_exact_at(AT, &mut [0; 10]).unwrap_err(), Changed, "Sun");
}

#[test]
fn a_server_that_tells_no_date_apart_is_read_all_the_same() {
    for answer in ["405 Method Not Allowed", "403 Forbidden", "207 Multi-Status"] {
        let server = Server::start(move |request, _| match &*request.method {
            "PROPFIND" => reply(answer, b"<D:getlastmodified/>"),
            _ => good(request, &[7; SIZE], "Server: XrootD/v5.5.3"),
        });
        let source = open(&server.url("a")).unwrap();
        assert_eq!(source.version().tag, "unversioned", "{answer}");
        source.read_exact_at(AT, &mut [0; 10]).unwrap();
        assert_eq!(methods(&server), ["GET", "PROPFIND", "GET"], "{answer}");
    }
    // Other servers are not asked, unless their URL allows it.
    let server = Server::start(|request, _| good(request, &[7; SIZE], ""));
    open(&server.url("a")).unwrap();
    assert_eq!(methods(&server), ["GET"]);
    open(&server.url("a").replace("http", "dav")).unwrap();
    assert_eq!(methods(&server)[1..], ["GET", "PROPFIND"]);
}

#[test]
fn the_tag_is_the_best_the_server_has() {
    for (validators, tag) in [
        ("ETag: \"one\"\nLast-Modified: Mon", "\"one\""),
        ("ETag: W/\"one\"\nLast-Modified: Mon", "Mon"),
        ("ETag: W/\"one\"", "W/\"one\""),
        ("", "unversioned"),
    ] {
        let server = Server::start(move |request, _| good(request, &[0; 9], validators));
        assert_eq!(open(&server.url("a")).unwrap().version().tag, tag);
    }
}
