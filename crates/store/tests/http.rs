//! HTTP sources against servers that do right and wrong.

mod server;

use server::{Reply, Request, Server, Then, good, raw, reply};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use swathe_store::{Source, StoreError, open, open_with_stall};

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

/// A server that does right on opening and answers reads as told.
fn reads(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
    server(move |request, _| (request.method == "GET").then(|| answer(request)))
}

/// Read bytes 10 to 20, which must fail.
fn read_error(server: &Server) -> StoreError {
    open(&server.url("a.fits")).unwrap().read_exact_at(10, &mut [0; 10]).unwrap_err()
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
    let ranges = [5..10, 0..100_000, 7..7, 90_000..100_000, 5..10];
    for (range, bytes) in ranges.iter().zip(source.read_ranges(&ranges).unwrap()) {
        assert_eq!(bytes, data[range.start as usize..range.end as usize]);
    }
    assert!(source.read_ranges(&[]).unwrap().is_empty());
    let requests = server.requests();
    assert_eq!(requests.len(), 6, "nothing is asked for an empty range");
    assert_eq!(requests[0].target, "/folder/a%20b.fits?id=7");
    assert!(requests.iter().all(|request| request.header("accept-encoding") == Some("identity")));
    assert!(requests[1..].iter().all(|request| request.header("if-match") == Some("\"one\"")));
    assert!(server.connections() <= 5, "{} connections", server.connections());
}

#[test]
fn eight_ranges_are_in_flight() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = most.clone();
    let server = server(move |_, _| {
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(100));
        now.fetch_sub(1, Ordering::SeqCst);
        None
    });
    let source = open(&server.url("a.fits")).unwrap();
    let ranges: Vec<_> = (0..24).map(|i| i * 1000..i * 1000 + 700).collect();
    let (found, data) = (source.read_ranges(&ranges).unwrap(), data());
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
                    let start = thread * 1000 + i;
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
        assert_error!(source.read_ranges(&[range]).unwrap_err(), ShortRead, "expected");
    }
    source.read_exact_at(u64::MAX, &mut [0; 2]).unwrap_err();
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_server_that_refuses_head_is_asked_for_the_first_byte() {
    for status in ["403 Forbidden", "405 Method Not Allowed", "501 Not Implemented", "200 OK"] {
        let server =
            server(move |request, _| (request.method == "HEAD").then(|| reply(status, b"")));
        let source = open(&server.url("a.fits")).unwrap();
        assert_eq!((source.len(), source.version().tag.as_str()), (SIZE as u64, "\"one\""));
        assert_eq!(server.requests()[1].range(), Some((0, 0)));
        source.read_exact_at(10, &mut [0; 10]).unwrap();
    }
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
    let whole = || Reply { then: Then::Hang, ..raw("200 OK\nContent-Length: 100000", b"") };
    let server = server(move |request, _| (request.method == "GET").then(whole));
    let began = Instant::now();
    assert_error!(read_error(&server), Unsupported, "does not serve ranges");
    let no_head = Server::start(move |request, _| match request.method.as_str() {
        "HEAD" => reply("405 Method Not Allowed", b""),
        _ => whole(),
    });
    assert_error!(open_error(&no_head.url("a.fits")), Unsupported, "does not serve ranges");
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn answers_with_another_range_are_errors() {
    let part = |range: &str| {
        let head = format!("206 Partial Content\n{range}\n{ETAG}");
        reads(move |_| reply(&head, &[0; 10]))
    };
    for range in ["10-18/100000", "11-20/100000", "0-9/100000"] {
        let error = read_error(&part(&format!("Content-Range: bytes {range}")));
        assert_error!(error, Network, "asked for bytes 10-19");
    }
    for range in [
        "X: -",
        "Content-Range: 10-19/100000",
        "Content-Range: bytes x",
        "Content-Range: bytes 10-18446744073709551615/*",
        "Content-Range: bytes */100000",
    ] {
        assert_error!(read_error(&part(range)), Network, "without saying which");
    }
    let other_size = part("Content-Range: bytes 10-19/99999");
    assert_error!(read_error(&other_size), Changed, "opened as 100000 \"one\"");
    let unknown_size = part("Content-Range: bytes 10-19/*");
    open(&unknown_size.url("a")).unwrap().read_exact_at(10, &mut [0; 10]).unwrap();
}

const PART: &str = "206 Partial Content\nContent-Range: bytes 10-19/100000";

#[test]
fn short_bodies_are_short_reads() {
    let announced = reads(|_| reply(PART, &[0; 9]));
    assert_error!(read_error(&announced), ShortRead, "expected 10 bytes from byte 10, found 9");
    assert_eq!(announced.requests().len(), 2);
    let cut = reads(|_| raw(&format!("{PART}\nContent-Length: 10"), &[0; 4]));
    assert_error!(read_error(&cut), ShortRead, "expected 10 bytes from byte 10, found 4");
    assert_eq!(cut.requests().len(), 4, "tried again twice");
    let until_close = reads(|_| raw(PART, &[0; 4]));
    assert_error!(read_error(&until_close), ShortRead, "found 4");
    let chunked = |body: &'static [u8]| {
        reads(move |_| raw(&format!("{PART}\nTransfer-Encoding: chunked"), body))
    };
    assert_error!(read_error(&chunked(b"4\r\nabcd\r\n0\r\n\r\n")), ShortRead, "found 4");
}

#[test]
fn long_bodies_are_errors_and_not_read_on() {
    let announced = reads(|_| reply(PART, &[0; 11]));
    assert_error!(read_error(&announced), ShortRead, "found 11");
    let until_close = reads(|_| Reply { then: Then::Hang, ..raw(PART, &[0; 50_000]) });
    assert_error!(read_error(&until_close), ShortRead, "expected 10 bytes from byte 10, found");
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
            1 | 2 if wrong.is_empty() => Some(Reply { bytes: vec![], then: Then::Close }),
            1 | 2 => Some(reply(wrong, b"")),
            _ => None,
        });
        let source = open(&server.url("a.fits")).unwrap();
        source.read_exact_at(10, &mut [0; 10]).unwrap();
        assert!(server.requests().len() >= 4);
    }
}

#[test]
fn failures_that_do_not_pass_are_errors_soon() {
    let server = Server::start(|_, _| reply("500 Internal Server Error", b""));
    let began = Instant::now();
    let said = format!("127.0.0.1:{} answered 500", server.port);
    assert_error!(open_error(&server.url("a")), Network, said);
    assert_eq!(server.requests().len(), 3);
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = open_error(&format!("http://127.0.0.1:{port}/a.fits"));
    assert_error!(error, Network, format!("cannot connect to 127.0.0.1:{port}: "));
}

#[test]
fn garbage_instead_of_http_is_a_network_error() {
    let server =
        Server::start(|_, _| Reply { bytes: b"SSH-2.0\r\n\r\n".into(), then: Then::Close });
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
    open(&other_date.url("a")).unwrap().read_exact_at(10, &mut [0; 10]).unwrap();
}

#[test]
fn a_shrunk_object_without_version_is_an_error() {
    let server = Server::start(|request, number| {
        good(request, if number == 0 { &[7; 100] } else { &[7; 15] }, "")
    });
    let source = open(&server.url("a")).unwrap();
    assert_eq!(source.version().tag, "unversioned");
    assert_error!(source.read_exact_at(10, &mut [0; 3]).unwrap_err(), Changed, "unversioned");
    assert_error!(source.read_exact_at(20, &mut [0; 3]).unwrap_err(), Changed, "unversioned");
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
        Reply { bytes: vec![], then: Then::Hang },
        Reply { then: Then::Hang, ..raw(&format!("{PART}\nContent-Length: 10"), &[0; 4]) },
        Reply {
            then: Then::Hang,
            ..raw("500 No\nContent-Length: 9\nContent-Type: text/plain", b"a")
        },
    ];
    for (i, silence) in silences.into_iter().enumerate() {
        let server = reads(move |_| silence.clone());
        let source = open_with_stall(&server.url("a"), Duration::from_millis(300)).unwrap();
        let began = Instant::now();
        let error = source.read_exact_at(10, &mut [0; 10]).unwrap_err();
        let said = if i < 2 { "sent nothing for 0.3 s" } else { "answered 500" };
        assert_error!(error, Network, format!("127.0.0.1:{} {said}", server.port));
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    }
}

#[test]
fn a_slow_server_is_waited_for() {
    let server = reads(|request| {
        std::thread::sleep(Duration::from_millis(200));
        good(request, &data(), ETAG)
    });
    let source = open_with_stall(&server.url("a"), Duration::from_millis(2000)).unwrap();
    let ranges: Vec<_> = (0..24).map(|i| i..i + 5).collect();
    source.read_ranges(&ranges).unwrap();
}

#[test]
fn redirects_are_followed_but_not_for_ever() {
    let target = server(|_, _| None);
    let to = target.url("real.fits?token=SECRETTOKEN");
    let start = Server::start(move |_, _| reply(&format!("302 Found\nLocation: {to}"), b""));
    let url = start.url("a.fits?key=SECRETKEY").replace("http://", "http://me:SECRETPASS@");
    let source = open(&url).unwrap();
    let mut buffer = [0; 100];
    source.read_exact_at(50, &mut buffer).unwrap();
    assert_eq!(buffer, data()[50..150]);
    assert!(start.requests().iter().all(|request| request.header("authorization").is_some()));
    for request in target.requests() {
        assert_eq!(request.header("referer"), None);
        assert_eq!(request.header("authorization"), None);
        assert!(request.method == "HEAD" || request.range() == Some((50, 149)));
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
    open(&labelled.url("a.fit.gz")).unwrap().read_exact_at(10, &mut [0; 10]).unwrap();
    let identity = reads(|_| reply(&format!("{PART}\nContent-Encoding: identity"), &[0; 10]));
    open(&identity.url("a")).unwrap().read_exact_at(10, &mut [0; 10]).unwrap();
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
                source.read_exact_at(10, &mut [0; 10])
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
    let garbage = Server::start(|_, _| Reply { bytes: b"nonsense\r\n".into(), then: Then::Close });
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
