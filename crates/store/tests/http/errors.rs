//! Answers that are wrong, short or late, and failures of servers.

use super::server::{ConnectionEnd, Reply, Request, Server, good, raw, reply};
use super::{AT, ETAG, PART, data, open_error, read_error, reads, server};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use swathe_store::open;
use swathe_store_api::StoreError;

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

#[test]
fn short_answers_are_short_reads() {
    let server = reads(|_| reply(PART, &[0; 9]));
    assert_error!(read_error(&server), ShortRead, "expected 10 bytes from byte 90010, found 9");
    assert_eq!(server.requests().len(), 2);
    let nothing = reads(|_| raw(&format!("{PART}\nContent-Length: 10"), b""));
    assert_error!(read_error(&nothing), ShortRead, "expected 10 bytes from byte 90010, found 0");
    assert_eq!(nothing.requests().len(), 1 + 6, "tried again");
}

#[test]
fn an_answer_that_breaks_off_is_taken_up_where_it_broke() {
    let cut = |request: &Request, is_chunked: bool| {
        let (first, last) = request.range().unwrap();
        let part = format!("206 Partial Content\nContent-Range: bytes {first}-{last}/100000");
        let piece = &data()[first..(first + 400).min(last + 1)];
        if is_chunked {
            let mut body = format!("{:x}\r\n", piece.len()).into_bytes();
            body.extend_from_slice(piece);
            body.extend_from_slice(b"\r\n0\r\n\r\n");
            return raw(&format!("{part}\nTransfer-Encoding: chunked"), &body);
        }
        raw(&format!("{part}\nContent-Length: {}", last + 1 - first), piece)
    };
    for is_chunked in [false, true] {
        let server = reads(move |request| cut(request, is_chunked));
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
    let server = reads(|_| reply(PART, &[0; 11]));
    assert_error!(read_error(&server), ShortRead, "found 11");
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
    let reason = format!("127.0.0.1:{} answered 418", teapot.port);
    assert_error!(read_error(&teapot), Network, reason);
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
    let reason = format!("127.0.0.1:{} answered 500", server.port);
    assert_error!(open_error(&server.url("a")), Network, reason);
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
fn garbage_instead_of_http_is_a_network_error() {
    let server = Server::start(|_, _| Reply {
        bytes: b"SSH-2.0\r\n\r\n".into(),
        then: ConnectionEnd::Close,
    });
    let reason = format!("no answer from 127.0.0.1:{}", server.port);
    assert_error!(open_error(&server.url("a")), Network, reason);
    assert_error!(open_error("https://127.0.0.1:1/a"), Network, "cannot connect");
    assert_error!(open_error(&server.url("a").replace("http", "https")), Network, "cannot connect");
}
