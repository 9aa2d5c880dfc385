//! HTTP sources against servers that do right and wrong.

mod server;

use bytes::Bytes;
use server::{ConnectionEnd, Reply, Request, Server, good, raw, reply};
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use swathe_plan::Costs;
use swathe_store::{connect, open, open_with_stall};
use swathe_store_api::{Source, StoreError, StoreSettings, Version};

const SIZE: usize = 100_000;
const ETAG: &str = "ETag: \"one\"";

fn data() -> Vec<u8> {
    (0..SIZE as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// A server that does right but for what `wrong` answers.
fn server(wrong: impl Fn(&Request, usize) -> Option<Reply> + Send + Sync + 'static) -> Server {
    let data = data();
    Server::start(move |request, number| {
        wrong(request, number).unwrap_or_else(|| good(request, &data, ETAG))
    })
}

/// A server that is correct on opening and answers reads with `answer`.
fn reads(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
    server(move |request, number| (number > 0).then(|| answer(request)))
}

/// Where tests read: beyond the first bytes, which come with opening.
const AT: u64 = 90_010;

/// Read ten bytes, which must fail.
fn read_error(server: &Server) -> StoreError {
    open(&server.url("a.fits")).unwrap().read_exact_at(AT, &mut [0; 10]).unwrap_err()
}

fn fetch(
    source: &dyn Source,
    ranges: &[Range<u64>],
    streams: u32,
) -> Result<Vec<Bytes>, StoreError> {
    source.fetch(ranges.to_vec(), streams).collect()
}

fn open_error(url: &str) -> StoreError {
    open(url).map(|source| source.version().clone()).unwrap_err()
}

macro_rules! assert_error {
    ($error:expr, $variant:ident, $text:expr) => {
        let error = $error;
        assert!(matches!(error, StoreError::$variant { .. }), "{error:?}");
        assert!(error.to_string().contains(&$text as &str), "{error}");
    };
}

#[test]
fn ranges_come_in_order_over_few_connections() {
    let (server, data) = (server(|_, _| None), data());
    let url = server.url("folder/a%20b.fits?id=7");
    let source = open(&url).unwrap();
    assert_eq!(source.url(), url);
    assert_eq!((source.len(), source.version().tag.as_str()), (SIZE as u64, "\"one\""));
    assert!(!source.is_local());
    let mut buffer = [0; 500];
    source.read_exact_at(99_500, &mut buffer).unwrap();
    assert_eq!(buffer, data[99_500..]);
    let ranges = [95_005..95_010, 0..100_000, 7..7, 90_000..100_000, 5..10];
    for (range, bytes) in ranges.iter().zip(fetch(&*source, &ranges, 4).unwrap()) {
        assert_eq!(bytes, data[range.start as usize..range.end as usize]);
    }
    assert!(fetch(&*source, &[], 4).unwrap().is_empty());
    let requests = server.requests();
    // Nor, while a request is in flight, for a part of it.
    let count = requests.len();
    assert!((4..=5).contains(&count), "an empty range and what opening brought: {count} requests");
    assert_eq!(requests[0].target, "/folder/a%20b.fits?id=7");
    assert!(requests.iter().all(|request| request.header("accept-encoding") == Some("identity")));
    assert!(requests[1..].iter().all(|request| request.header("if-match") == Some("\"one\"")));
    assert!(server.connections() <= 5, "{} connections", server.connections());
}

#[test]
fn as_many_ranges_are_in_flight_as_asked_for() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (seen, limit) = (most.clone(), Instant::now() + Duration::from_secs(60));
    let server = server(move |_, number| {
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        // Until all requests have arrived, besides the one for opening; and one more might.
        while number > 0 && most.load(Ordering::SeqCst) < 8 && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(50));
        now.fetch_sub(1, Ordering::SeqCst);
        None
    });
    let source = open(&server.url("a.fits")).unwrap();
    let ranges: Vec<_> = (50..74).map(|i| i * 1000..i * 1000 + 700).collect();
    let (found, data) = (fetch(&*source, &ranges, 8).unwrap(), data());
    assert!(
        ranges
            .iter()
            .zip(found)
            .all(|(range, bytes)| { bytes == data[range.start as usize..range.end as usize] })
    );
    assert_eq!(seen.load(Ordering::SeqCst), 8);
}

#[test]
fn many_threads_read_at_once() {
    let (server, data) = (server(|_, _| None), data());
    let source = open(&server.url("a.fits")).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let (source, data) = (&source, &data);
            scope.spawn(move || {
                for i in 0..10 {
                    let start = 50_000 + thread * 1000 + i;
                    let mut buffer = [0; 100];
                    source.read_exact_at(start as u64, &mut buffer).unwrap();
                    assert_eq!(buffer, data[start..start + 100]);
                }
            });
        }
    });
}

#[test]
fn ranges_past_the_end_are_short_and_not_asked_for() {
    let server = server(|_, _| None);
    let source = open(&server.url("a.fits")).unwrap();
    assert_error!(source.read_exact_at(99_999, &mut [0; 2]).unwrap_err(), ShortRead, "found 1");
    #[allow(clippy::reversed_empty_ranges)]
    for range in [u64::MAX - 1..u64::MAX, 5..4] {
        assert_error!(fetch(&*source, &[range], 4).unwrap_err(), ShortRead, "expected");
    }
    source.read_exact_at(u64::MAX, &mut [0; 2]).unwrap_err();
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_first_bytes_come_with_opening() {
    let server = server(|_, _| None);
    let source = open(&server.url("a.fits")).unwrap();
    let first = source.first();
    assert_eq!(first, data()[..first.len()]);
    let mut buffer = [0; 10];
    source.read_exact_at(10, &mut buffer).unwrap();
    assert_eq!(buffer, data()[10..20]);
    assert_eq!(server.requests().len(), 1);
    assert_eq!(server.requests()[0].range(), Some((0, first.len() - 1)));
}

#[test]
fn an_assumed_version_asks_nothing_and_is_checked_by_the_first_read() {
    let server = server(|_, _| None);
    let url = server.url("a.fits");
    let version = open(&url).unwrap().version().clone();
    let before = server.requests().len();
    let assume = |version| swathe_store::stores(Vec::new()).assume(&url, version).unwrap();
    let source = assume(version.clone()).unwrap();
    assert_eq!(server.requests().len(), before);
    let mut buffer = [0; 10];
    source.read_exact_at(10, &mut buffer).unwrap();
    assert_eq!(buffer, data()[10..20]);
    let other = assume(Version { tag: "\"two\"".into(), ..version.clone() }).unwrap();
    assert_error!(other.read_exact_at(10, &mut buffer).unwrap_err(), Changed, "\"two\"");
    let larger = assume(Version { size: 100_001, ..version.clone() }).unwrap();
    assert_error!(larger.read_exact_at(10, &mut buffer).unwrap_err(), Changed, "100001");
    assert!(assume(Version { tag: "Mon".into(), ..version }).is_none());
}

#[test]
fn an_empty_object_is_empty() {
    let server = Server::start(|request, _| good(request, b"", ETAG));
    let source = open(&server.url("a.fits")).unwrap();
    assert_eq!(source.len(), 0);
    source.read_exact_at(0, &mut []).unwrap();
}

#[test]
fn a_server_without_ranges_is_named_so_and_nothing_is_downloaded() {
    // The body never comes: waiting for it would stall.
    let whole =
        || Reply { then: ConnectionEnd::Hang, ..raw("200 OK\nContent-Length: 100000", b"") };
    let began = Instant::now();
    assert_error!(read_error(&reads(move |_| whole())), Unsupported, "does not serve ranges");
    let server = Server::start(move |_, _| whole());
    assert_error!(open_error(&server.url("a.fits")), Unsupported, "does not serve ranges");
    assert!(began.elapsed() < Duration::from_secs(30));
    let small = Server::start(|_, _| reply("200 OK", &[7; 100]));
    let source = open(&small.url("a.fits")).unwrap();
    assert_eq!((source.len(), source.first()), (100, vec![7; 100].into()));
}

#[test]
fn answers_with_another_range_are_errors() {
    let part = |range: &str| {
        let head = format!("206 Partial Content\n{range}\n{ETAG}");
        reads(move |_| reply(&head, &[0; 10]))
    };
    for range in ["90010-90018/100000", "90011-90020/100000", "0-9/100000"] {
        let error = read_error(&part(&format!("Content-Range: bytes {range}")));
        assert_error!(error, Network, "asked for bytes 90010-90019");
    }
    for range in [
        "X: -",
        "Content-Range: 90010-90019/100000",
        "Content-Range: bytes x",
        "Content-Range: bytes 90010-18446744073709551615/*",
        "Content-Range: bytes */100000",
    ] {
        assert_error!(read_error(&part(range)), Network, "without saying which");
    }
    let other_size = part("Content-Range: bytes 90010-90019/99999");
    assert_error!(read_error(&other_size), Changed, "opened as 100000 \"one\"");
    let unknown_size = part("Content-Range: bytes 90010-90019/*");
    open(&unknown_size.url("a")).unwrap().read_exact_at(AT, &mut [0; 10]).unwrap();
}

const PART: &str = "206 Partial Content\nContent-Range: bytes 90010-90019/100000";

#[test]
fn short_answers_are_short_reads() {
    let announced = reads(|_| reply(PART, &[0; 9]));
    assert_error!(read_error(&announced), ShortRead, "expected 10 bytes from byte 90010, found 9");
    assert_eq!(announced.requests().len(), 2);
    let nothing = reads(|_| raw(&format!("{PART}\nContent-Length: 10"), b""));
    assert_error!(read_error(&nothing), ShortRead, "expected 10 bytes from byte 90010, found 0");
    assert_eq!(nothing.requests().len(), 1 + 6, "tried again");
}

#[test]
fn an_answer_that_breaks_off_is_taken_up_where_it_broke() {
    let cut = |request: &Request, chunked: bool| {
        let (first, last) = request.range().unwrap();
        let part = format!("206 Partial Content\nContent-Range: bytes {first}-{last}/100000");
        let sent = &data()[first..(first + 400).min(last + 1)];
        if chunked {
            let mut body = format!("{:x}\r\n", sent.len()).into_bytes();
            body.extend_from_slice(sent);
            body.extend_from_slice(b"\r\n0\r\n\r\n");
            return raw(&format!("{part}\nTransfer-Encoding: chunked"), &body);
        }
        raw(&format!("{part}\nContent-Length: {}", last + 1 - first), sent)
    };
    for chunked in [false, true] {
        let server = reads(move |request| cut(request, chunked));
        let mut buffer = [0; 1000];
        open(&server.url("a")).unwrap().read_exact_at(AT, &mut buffer).unwrap();
        assert_eq!(buffer, data()[AT as usize..AT as usize + 1000]);
        let ranges: Vec<_> = server.requests()[1..].iter().filter_map(Request::range).collect();
        assert_eq!(ranges, [(90_010, 91_009), (90_410, 91_009), (90_810, 91_009)]);
    }
}

#[test]
fn a_server_that_says_when_to_come_back_is_obeyed() {
    let server =
        server(|_, number| (number == 1).then(|| reply("503 Slow Down\nRetry-After: 1", b"")));
    let source = open(&server.url("a")).unwrap();
    let began = Instant::now();
    source.read_exact_at(AT, &mut [0; 10]).unwrap();
    assert!(began.elapsed() >= Duration::from_secs(1));
    let hours = reads(|_| reply("503 Slow Down\nRetry-After: 7200", b""));
    assert_error!(read_error(&hours), Network, "answered 503");
    assert_eq!(hours.requests().len(), 2);
}

#[test]
fn long_bodies_are_errors_and_not_read_on() {
    let announced = reads(|_| reply(PART, &[0; 11]));
    assert_error!(read_error(&announced), ShortRead, "found 11");
    let until_close = reads(|_| Reply { then: ConnectionEnd::Hang, ..raw(PART, &[0; 50_000]) });
    assert_error!(read_error(&until_close), ShortRead, "expected 10 bytes from byte 90010, found");
}

#[test]
fn statuses_become_errors_that_say_what_the_server_said() {
    for status in ["404 Not Found", "410 Gone"] {
        let server = Server::start(move |_, _| reply(status, b""));
        assert_error!(open_error(&server.url("a")), NotFound, "not found");
        assert_error!(read_error(&reads(move |_| reply(status, b""))), NotFound, "not found");
    }
    let xml = b"<?xml?><Error><Code>AccessDenied</Code><Message>Not for you</Message></Error>";
    let server = Server::start(|_, _| reply("403 Forbidden", xml));
    assert_error!(open_error(&server.url("a")), Forbidden, "denied: 403 Forbidden, Not for you");
    let plain = || reply("401 Unauthorized\nContent-Type: text/plain", b"log in\x07 first\nbye");
    assert_error!(
        read_error(&reads(move |_| plain())),
        Forbidden,
        "401 Unauthorized, log in first"
    );
    let html = reads(|_| reply("403 Forbidden\nContent-Type: text/html", b"<html>long"));
    assert!(read_error(&html).to_string().ends_with("access denied: 403 Forbidden"));
    let teapot = reads(|_| reply("418 I'm a teapot", b""));
    let said = format!("127.0.0.1:{} answered 418", teapot.port);
    assert_error!(read_error(&teapot), Network, said);
}

#[test]
fn failures_that_pass_are_tried_again() {
    for wrong in ["500 Internal Server Error", "503 Slow Down", "429 Too Many Requests", ""] {
        let server = server(move |_, number| match number {
            1 | 2 if wrong.is_empty() => Some(Reply { bytes: vec![], then: ConnectionEnd::Close }),
            1 | 2 => Some(reply(wrong, b"")),
            _ => None,
        });
        let source = open(&server.url("a.fits")).unwrap();
        source.read_exact_at(AT, &mut [0; 10]).unwrap();
        assert_eq!(server.requests().len(), 4);
    }
}

#[test]
fn failures_that_do_not_pass_are_errors_soon() {
    let server = Server::start(|_, _| reply("500 Internal Server Error", b""));
    let began = Instant::now();
    let said = format!("127.0.0.1:{} answered 500", server.port);
    assert_error!(open_error(&server.url("a")), Network, said);
    assert_eq!(server.requests().len(), 6);
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_server_that_is_not_there_is_named() {
    // Not one that was free just now: anybody may have it by then.
    let error = open_error("http://127.0.0.1:1/a.fits");
    assert_error!(error, Network, "cannot connect to 127.0.0.1:1: ");
}

#[test]
fn a_server_that_is_started_anew_is_waited_for() {
    let closing =
        |request: &Request, _| Reply { then: ConnectionEnd::Close, ..good(request, &data(), ETAG) };
    let server = Server::start(closing);
    let port = server.port;
    let source = open(&server.url("a.fits")).unwrap();
    drop(server);
    while TcpStream::connect(("127.0.0.1", port)).is_ok() {}
    let again = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(150));
        Server::start_at(port, closing)
    });
    let mut bytes = [0; 10];
    source.read_exact_at(AT, &mut bytes).unwrap();
    assert_eq!(bytes, data()[AT as usize..][..10]);
    assert_eq!(again.join().unwrap().requests().len(), 1);
}

#[test]
fn a_server_of_this_machine_is_known_as_one() {
    let bucket = |name: &str, endpoint: &str| {
        let options = [("endpoint".to_string(), endpoint.to_string())].into();
        StoreSettings::new(name.into(), format!("s3://{name}"), options)
    };
    let stores = swathe_store::stores(vec![
        bucket("near", "http://127.0.0.1:9"),
        bucket("far", "http://10.0.0.1:9"),
    ]);
    for here in ["http://localhost/a", "https://127.8.9.1:80/a", "root://[::1]:1094//a", "near:a"] {
        assert!(stores.is_served_here(here), "{here}");
    }
    for elsewhere in ["http://localhost.org/a", "https://[::2]/a", "far:a", "/a", "relative"] {
        assert!(!stores.is_served_here(elsewhere), "{elsewhere}");
    }
}

#[test]
fn what_is_measured_is_filed_by_server() {
    let key = |root: &str, options: &[(&str, &str)]| {
        let options = options.iter().map(|&(name, value)| (name.into(), value.into())).collect();
        connect(StoreSettings::new("named".into(), root.into(), options)).key()
    };
    for (root, options, expected) in [
        ("s3://b/dr1", ("endpoint", "http://[::1]:9000"), "s3://[::1]:9000/b/dr1"),
        ("gs://b", ("endpoint", "https://Gcs.example/x/"), "gs://gcs.example:443/x/b"),
        ("az://b", ("account", "survey"), "az://survey.blob.core.windows.net:443/b"),
        ("root://host//a", ("door", "http://door.example"), "root://door.example:80//a"),
        ("root://host", ("door", "https://host:8443"), "root://host:8443"),
        ("root://host//a", ("token_file", "/token"), "root://host//a"),
        ("https://host/a", ("token_file", "/token"), "https://host/a"),
        ("file:///a b", ("probe_object", "a"), "file:///a b"),
    ] {
        assert_eq!(key(root, &[options]), expected);
    }
    let measured = [("https://host/a", 0.25), ("https://host", 0.5), ("file://", 0.125)];
    let measured =
        measured.map(|(root, open_s)| (root.to_string(), Costs { open_s, ..Costs::remote() }));
    let store = StoreSettings::new("named".into(), "https://host/a/b".into(), BTreeMap::new());
    let stores = swathe_store::stores(vec![store]).with_costs(measured.into());
    for (object, key, open_s) in [
        ("https://host/x", "https://host", Some(0.5)),
        ("https://host/ab", "https://host", Some(0.5)),
        ("https://host/a/c", "https://host/a", Some(0.25)),
        ("named:c", "https://host/a/b", None),
        ("https://host/a/b/c", "https://host/a/b", None),
        ("https://host.org/a/c", "https://host.org", None),
        ("/a/c", "file://", Some(0.125)),
        ("file:///a/c", "file://", Some(0.125)),
    ] {
        let (store, _) = stores.locate(object);
        assert_eq!(store.key(), key, "{object}");
        let settings = store.settings();
        assert_eq!(settings.is_measured.then_some(settings.costs.open_s), open_s, "{object}");
    }
}

#[test]
fn garbage_instead_of_http_is_a_network_error() {
    let server = Server::start(|_, _| Reply {
        bytes: b"SSH-2.0\r\n\r\n".into(),
        then: ConnectionEnd::Close,
    });
    let said = format!("no answer from 127.0.0.1:{}", server.port);
    assert_error!(open_error(&server.url("a")), Network, said);
    assert_error!(open_error("https://127.0.0.1:1/a"), Network, "cannot connect");
    assert_error!(open_error(&server.url("a").replace("http", "https")), Network, "cannot connect");
}

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
            let said = format!("<x:getlastmodified>{date}</x:getlastmodified>");
            return reply("207 Multi-Status\nServer: XrootD/v5.5.3", said.as_bytes());
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
    let questions_sent = AtomicUsize::new(0);
    let server = Server::start(move |request, _| {
        if request.method != "PROPFIND" {
            let until = Instant::now() + Duration::from_secs(10);
            let is_in_round_two = request.range() == Some((AT as usize + 4, AT as usize + 4));
            // So that the questions come in order, however busy the machine is.
            while is_in_round_two
                && questions_sent.load(Ordering::SeqCst) < 2
                && Instant::now() < until
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            return good(request, &[1; SIZE], "Server: XrootD/v5.5.3");
        }
        let date = if questions_sent.fetch_add(1, Ordering::SeqCst) < 2 { "Mon" } else { "Tue" };
        let said = format!("<x:getlastmodified>{date}</x:getlastmodified>");
        reply("207 Multi-Status\nServer: XrootD/v5.5.3", said.as_bytes())
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

#[test]
fn a_server_that_falls_silent_is_an_error_in_time() {
    let silences = [
        Reply { bytes: vec![], then: ConnectionEnd::Hang },
        Reply { then: ConnectionEnd::Hang, ..raw(&format!("{PART}\nContent-Length: 10"), b"") },
        Reply {
            then: ConnectionEnd::Hang,
            ..raw("500 No\nContent-Length: 9\nContent-Type: text/plain", b"a")
        },
    ];
    for (i, silence) in silences.into_iter().enumerate() {
        let server = reads(move |_| silence.clone());
        let source = open_with_stall(&server.url("a"), Duration::from_millis(300)).unwrap();
        let began = Instant::now();
        let error = source.read_exact_at(AT, &mut [0; 10]).unwrap_err();
        let said = if i < 2 { "sent nothing for 0.3 s" } else { "answered 500" };
        assert_error!(error, Network, format!("127.0.0.1:{} {said}", server.port));
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }
}

#[test]
fn a_slow_server_is_waited_for() {
    let server = reads(|request| {
        std::thread::sleep(Duration::from_millis(200));
        good(request, &data(), ETAG)
    });
    let source = open_with_stall(&server.url("a"), Duration::from_millis(2000)).unwrap();
    let ranges: Vec<_> = (AT..AT + 24).map(|i| i..i + 5).collect();
    fetch(&*source, &ranges, 8).unwrap();
}

#[test]
fn redirects_are_followed_but_not_for_ever() {
    let target = server(|_, _| None);
    let to = target.url("real.fits?token=SECRETTOKEN");
    let start = Server::start(move |_, _| reply(&format!("302 Found\nLocation: {to}"), b""));
    let url = start.url("a.fits?key=SECRETKEY").replace("http://", "http://me:SECRETPASS@");
    let source = open(&url).unwrap();
    let mut buffer = [0; 100];
    source.read_exact_at(AT, &mut buffer).unwrap();
    assert_eq!(buffer, data()[90_010..90_110]);
    assert!(start.requests().iter().all(|request| request.header("authorization").is_some()));
    for request in target.requests() {
        assert_eq!(request.header("referer"), None);
        assert_eq!(request.header("authorization"), None);
        assert!([Some(0), Some(90_010)].contains(&request.range().map(|range| range.0)));
    }
    let circle = Server::start(|_, _| reply("302 Found\nLocation: /again?token=SECRETTOKEN", b""));
    let error = open_error(&circle.url("a"));
    assert!(!format!("{error:?}").contains("SECRET"), "{error:?}");
    assert_error!(error, Network, "redirect");
    assert!(circle.requests().len() <= 6);
}

#[test]
fn compressed_answers_are_refused() {
    let always = Server::start(|_, _| reply("200 OK\nContent-Encoding: gzip", &[0; 10]));
    assert_error!(open_error(&always.url("a")), Unsupported, "Content-Encoding gzip");
    let later = reads(|_| reply(&format!("{PART}\nContent-Encoding: br"), &[0; 10]));
    assert_error!(read_error(&later), Unsupported, "Content-Encoding br");
    let labelled = reads(|_| reply(&format!("{PART}\nContent-Encoding: x-gzip"), &[0; 10]));
    open(&labelled.url("a.fit.gz")).unwrap().read_exact_at(AT, &mut [0; 10]).unwrap();
    let identity = reads(|_| reply(&format!("{PART}\nContent-Encoding: identity"), &[0; 10]));
    open(&identity.url("a")).unwrap().read_exact_at(AT, &mut [0; 10]).unwrap();
}

#[test]
fn secrets_of_the_url_are_sent_but_never_shown() {
    let secret_url = |url: String| {
        url.replace("http://", "http://USER:SE%2FCRETPASS@")
            + "?id=5&X-Amz-Signature=SECRETSIGNATURE&token=SECRET%2Btoken#SECRETPART"
    };
    // A server that repeats what it was sent.
    let echo = |status: &'static str| {
        move |request: &Request| {
            let text = format!("cannot serve {} to USER SE/CRETPASS SECRET+token", request.target);
            reply(&format!("{status}\nContent-Type: text/plain"), text.as_bytes())
        }
    };
    let check = |source: Result<Arc<dyn Source>, StoreError>| {
        let error = source
            .and_then(|source| {
                assert!(!source.url().contains("SECRET"), "{}", source.url());
                assert!(source.url().contains("?id=5&X-Amz-Signature=...&token=..."));
                source.read_exact_at(AT, &mut [0; 10])
            })
            .unwrap_err();
        for text in [error.to_string(), format!("{error:?}")] {
            for secret in ["SECRET", "USER", "CRETPASS"] {
                assert!(!text.contains(secret), "{text}");
            }
            assert!(text.contains("127.0.0.1") || text.contains("://..."), "{text}");
        }
    };
    let statuses =
        ["400 Bad", "401 No", "403 No", "404 No", "412 No", "416 No", "418 No", "500 No"];
    for status in statuses {
        let (on_open, on_read) = (echo(status), reads(echo(status)));
        let on_open = Server::start(move |request, _| on_open(request));
        check(open(&secret_url(on_open.url("a"))));
        check(open(&secret_url(on_read.url("a"))));
        assert_eq!(on_read.requests()[0].header("authorization").unwrap()[..6], *"Basic ");
        assert!(on_read.requests()[0].target.contains("token=SECRET%2Btoken"));
    }
    let garbage =
        Server::start(|_, _| Reply { bytes: b"nonsense\r\n".into(), then: ConnectionEnd::Close });
    check(open(&secret_url(garbage.url("a"))));
    check(open(&secret_url(garbage.url("a")).replace("http://", "https://")));
    check(open(&secret_url("http://127.0.0.1:1/".into())));
    check(open("http://USER:SECRET/PASS@127.0.0.1/a"));
    check(open("http://USER:SECRET@127.0.0.1:99999/a"));
    check(open("ftp://USER:SECRET@127.0.0.1/a"));
    check(open("s3://USER:SECRET@127.0.0.1/a"));
}

#[test]
fn objects_told_apart_by_a_hidden_word_have_different_versions() {
    let server = Server::start(|request, _| good(request, &[0; 9], "Last-Modified: Mon"));
    let version = |key| open(&server.url(&format!("get?key={key}"))).unwrap().version().clone();
    assert_ne!(version("a"), version("b"));
    assert_eq!(version("a"), version("a"));
}
