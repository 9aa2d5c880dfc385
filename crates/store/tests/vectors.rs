//! Requests for many ranges, to servers that do right and wrong.

mod server;

use bytes::Bytes;
use server::{ConnectionEnd, Reply, Request, Server, good, raw, reply};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use swathe_plan::{Costs, MultiRange, Way};
use swathe_store::{connect, received_bytes};
use swathe_store_api::{ObjectName, Source, StoreError, StoreSettings};

const SIZE: usize = 200_000;
const ETAG: &str = "ETag: \"one\"";
const BOUNDARY: &str = "123456";

/// Bytes with line ends and boundaries in them.
fn data() -> Vec<u8> {
    let filler = b"\r\n--123456\r\n--123456--\r\n";
    (0..SIZE).map(|at| filler[at % filler.len()].wrapping_add((at / 997) as u8)).collect()
}

fn rows() -> Vec<Range<u64>> {
    (0..50).map(|row| 100_000 + row * 1_000..100_200 + row * 1_000).collect()
}

/// The ranges of a request, if they are many.
fn ranges(request: &Request) -> Option<Vec<Range<usize>>> {
    let list = request.header("range")?.strip_prefix("bytes=")?;
    let parse = |text: &str| {
        let (first, last) = text.split_once('-')?;
        Some(first.parse().ok()?..last.parse::<usize>().ok()? + 1)
    };
    list.contains(',').then(|| list.split(',').map(|text| parse(text).expect("a range")).collect())
}

fn part(range: &Range<usize>) -> Vec<u8> {
    let head = format!(
        "\r\n--{BOUNDARY}\r\nContent-type: application/fits\r\nContent-range: bytes {}-{}/{SIZE}\r\n\r\n",
        range.start,
        range.end - 1
    );
    let mut part = head.into_bytes();
    part.extend_from_slice(&data()[range.clone()]);
    part
}

fn body(ranges: &[Range<usize>]) -> Vec<u8> {
    let mut body: Vec<u8> = ranges.iter().flat_map(part).collect();
    body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
    body
}

fn head() -> String {
    format!("206 Partial Content\n{ETAG}\nContent-Type: multipart/byteranges; boundary={BOUNDARY}")
}

/// A server that answers requests for many ranges with `answer`: what was asked, and how often before.
fn server(answer: impl Fn(&[Range<usize>], usize) -> Reply + Send + Sync + 'static) -> Server {
    let (data, count) = (data(), std::sync::atomic::AtomicUsize::new(0));
    Server::start(move |request, _| match ranges(request) {
        Some(ranges) => answer(&ranges, count.fetch_add(1, std::sync::atomic::Ordering::Relaxed)),
        None => good(request, &data, ETAG),
    })
}

fn costs() -> Costs {
    let multi_range = MultiRange {
        ranges: 1000,
        header_bytes: 7000,
        range_s: 1e-6,
        part_bytes: 90,
        gap_bytes: 0,
    };
    Costs { multi_range: Some(multi_range), ..Costs::remote() }
}

fn settings(server: &Server) -> StoreSettings {
    let root = server.url("").trim_end_matches('/').to_string();
    StoreSettings::new("web".into(), root, BTreeMap::new()).with_costs(&costs())
}

fn source(server: &Server) -> Arc<dyn Source> {
    let url = server.url("a.fits");
    connect(settings(server)).open(ObjectName { url: &url, qualified_name: None }).unwrap()
}

fn way(ranges_per_request: u32, streams: u32) -> Way {
    Way { ranges_per_request, streams, multiplexed: false }
}

/// Read all rows with one request, or as the source then sees fit.
fn read(source: &dyn Source) -> Result<Vec<Bytes>, StoreError> {
    source.fetch_by(rows(), way(1000, 4)).collect()
}

fn assert_rows(pieces: &[Bytes]) {
    let data = data();
    assert_eq!(pieces.len(), rows().len());
    for (range, piece) in rows().iter().zip(pieces) {
        assert_eq!(piece[..], data[range.start as usize..range.end as usize], "{range:?}");
    }
}

fn vectors(server: &Server) -> Vec<Vec<Range<usize>>> {
    server.requests().iter().filter_map(ranges).collect()
}

#[test]
fn rows_are_one_request() {
    let server = server(|ranges, _| reply(&head(), &body(ranges)));
    let source = source(&server);
    source.take_traffic();
    let bytes_before = received_bytes();
    assert_rows(&read(&*source).unwrap());
    let traffic = source.take_traffic();
    assert_eq!((traffic.requests, traffic.bytes), (1, body(&vectors(&server)[0]).len() as u64));
    assert!(received_bytes() >= bytes_before + traffic.bytes, "other tests receive, too");
    let request = server.requests().pop().unwrap();
    assert_eq!(request.header("if-match"), Some("\"one\""));
    assert!(source.take_notes().is_empty() && source.costs().multi_range.is_some());
}

#[test]
fn a_request_has_no_more_ranges_than_the_profile_and_its_header_allow() {
    let server = server(|ranges, _| reply(&head(), &body(ranges)));
    let url = server.url("a.fits");
    let of = MultiRange { ranges: 20, ..costs().multi_range.unwrap() };
    for (multi_range, most) in [(of, 20), (MultiRange { header_bytes: 160, ..of }, 11)] {
        let costs = Costs { multi_range: Some(multi_range), ..costs() };
        let store = connect(settings(&server).with_costs(&costs));
        let source = store.open(ObjectName { url: &url, qualified_name: None }).unwrap();
        let before = vectors(&server).len();
        assert_rows(&read(&*source).unwrap());
        let requests = vectors(&server).split_off(before);
        assert!(requests.iter().all(|ranges| ranges.len() <= most));
        assert_eq!(requests.len(), rows().len().div_ceil(most));
    }
    let longest = server
        .requests()
        .iter()
        .rev()
        .take(3)
        .map(|request| request.header("range").unwrap().len())
        .max();
    assert!(longest <= Some(160), "{longest:?}");
}

#[test]
fn ranges_that_overlap_or_came_with_opening_or_are_none_go_alone() {
    let server = server(|ranges, _| reply(&head(), &body(ranges)));
    let source = source(&server);
    let ranges = vec![0..10, 5..5, 100_000..100_010, 100_005..100_020, 150_000..150_010];
    let pieces: Vec<Bytes> =
        source.fetch_by(ranges.clone(), way(100, 2)).collect::<Result<_, _>>().unwrap();
    let data = data();
    for (range, piece) in ranges.iter().zip(&pieces) {
        assert_eq!(piece[..], data[range.start as usize..range.end as usize]);
    }
    // Bytes that another request of this read is bringing are not requested twice.
    let requests = vectors(&server);
    let start = requests[0][0].start;
    assert!([100_005, 100_010].contains(&start), "{requests:?}");
    assert_eq!(requests, [[start..100_020, 150_000..150_010]]);
    let past: Result<Vec<_>, _> =
        source.fetch_by(vec![1..2, SIZE as u64 - 1..SIZE as u64 + 1], way(100, 2)).collect();
    assert!(matches!(past, Err(StoreError::ShortRead { .. })), "{past:?}");
    assert_eq!(vectors(&server).len(), 1, "nothing past the end is asked for");
}

#[test]
fn parts_that_are_reordered_or_merged_or_chunked_are_read() {
    let whole = |ranges: &[Range<usize>]| ranges[0].start..ranges[ranges.len() - 1].end;
    let backwards = server(|ranges, _| {
        let backwards: Vec<_> = ranges.iter().rev().cloned().collect();
        reply(&head(), &body(&backwards))
    });
    let as_one = server(move |ranges, _| reply(&head(), &body(&[whole(ranges)])));
    let single = server(move |ranges, _| {
        let range = whole(ranges);
        let content_range =
            format!("Content-Range: bytes {}-{}/{SIZE}", range.start, range.end - 1);
        reply(&format!("206 Partial Content\n{ETAG}\n{content_range}"), &data()[range])
    });
    let in_chunks = server(|ranges, _| {
        let mut chunks = Vec::new();
        for chunk in body(ranges).chunks(777) {
            chunks.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            chunks.extend_from_slice(chunk);
            chunks.extend_from_slice(b"\r\n");
        }
        chunks.extend_from_slice(b"0\r\n\r\n");
        let mut reply = raw(&format!("{}\nTransfer-Encoding: chunked", head()), &chunks);
        reply.then = ConnectionEnd::Keep;
        reply
    });
    for server in [backwards, as_one, single, in_chunks] {
        let source = source(&server);
        assert_rows(&read(&*source).unwrap());
        assert_eq!(vectors(&server).len(), 1);
        assert!(source.take_notes().is_empty());
    }
}

/// Answers that are no parts, or wrong ones. None of their bytes is used.
fn wrong_answers() -> Vec<(&'static str, Server)> {
    let replace = |from: &'static str, to: &'static str| {
        server(move |ranges, _| {
            let text: Vec<u8> = body(ranges);
            let at = text.windows(from.len()).position(|part| part == from.as_bytes()).unwrap();
            let bytes = [&text[..at], to.as_bytes(), &text[at + from.len()..]].concat();
            reply(&head(), &bytes)
        })
    };
    let status = |status: &'static str| server(move |_, _| reply(status, b"no"));
    let one = server(|ranges, _| {
        let range = ranges[3].clone();
        let content_range =
            format!("Content-Range: bytes {}-{}/{SIZE}", range.start, range.end - 1);
        reply(&format!("206 Partial Content\n{ETAG}\n{content_range}"), &data()[range])
    });
    let whole = server(|_, _| reply(&format!("200 OK\n{ETAG}"), &data()));
    let left_out = server(|ranges, _| reply(&head(), &body(&ranges[..9])));
    let twice = server(|ranges, _| reply(&head(), &body(&[&ranges[..9], &ranges[..9]].concat())));
    let other_ranges = server(|ranges, _| {
        let mut ranges = ranges.to_vec();
        ranges[7].end += 1;
        reply(&head(), &body(&ranges))
    });
    let without_type =
        server(|ranges, _| reply(&format!("206 Partial Content\n{ETAG}"), &body(ranges)));
    let few = server(|ranges, _| match ranges.len() {
        0..=20 => reply(&head(), &body(ranges)),
        _ => reply(&format!("200 OK\n{ETAG}"), &data()),
    });
    vec![
        ("200", whole),
        ("200", few),
        ("left out", left_out),
        ("left out", one),
        ("a requested range, once", twice),
        ("a requested range, once", other_ranges),
        ("multipart/byteranges with a boundary", without_type),
        ("400", status("400 Bad Request")),
        ("416", status("416 Range Not Satisfiable")),
        ("431", status("431 Request Header Fields Too Large")),
        ("500", status("500 Internal Server Error")),
        ("expected --123456", replace("--123456\r\nContent-type", "--654321\r\nContent-type")),
        ("Content-Range", replace("/200000", "/200001")),
        ("a requested range", replace("100199", "100198")),
        ("a requested range", replace("100199", "100200")),
        ("Content-Range: expected", replace("100199", "18446744073709551614")),
        ("a Content-Range", replace("Content-range", "Content-langue")),
    ]
}

#[test]
fn a_wrong_answer_is_never_data_and_ranges_are_then_read_one_by_one() {
    for (why, server) in wrong_answers() {
        let source = source(&server);
        assert_rows(&read(&*source).unwrap_or_else(|error| panic!("{why}: {error}")));
        let note = source.take_notes().join("\n");
        assert!(note.contains(why) && note.contains("swathe probe"), "{why}: {note}");
        assert!(source.costs().multi_range.is_none(), "{why}");
        // Nobody asks again, and it is noted once.
        let before = vectors(&server).len();
        assert_eq!(before, 1, "{why}");
        assert_rows(&read(&*self::source(&server)).unwrap());
        assert_eq!((vectors(&server).len(), source.take_notes()), (before, Vec::new()), "{why}");
    }
}

#[test]
fn the_whole_object_is_dropped_before_its_body_is_read() {
    let server = server(|_, _| reply(&format!("200 OK\n{ETAG}"), &data()));
    let source = source(&server);
    source.take_traffic();
    assert_rows(&read(&*source).unwrap());
    let bytes = source.take_traffic().bytes;
    assert!(bytes < SIZE as u64 / 2, "{bytes}");
}

#[test]
fn an_answer_that_breaks_off_is_continued() {
    for missing in [10_000, 3_000, 5] {
        let server = server(move |ranges, count| {
            let body = body(ranges);
            match count {
                0 => {
                    let length = format!("Content-Length: {}", body.len());
                    raw(&format!("{}\n{length}", head()), &body[..body.len() - missing])
                }
                _ => reply(&head(), &body),
            }
        });
        let source = source(&server);
        assert_rows(&read(&*source).unwrap());
        assert!(source.take_notes().is_empty());
        let requests = vectors(&server);
        let first = requests[0].len();
        // Only what is missing; nothing is, if only the last boundary is.
        match missing {
            5 => assert_eq!(requests.len(), 1),
            3_000 => assert!((2..first / 2).contains(&requests[1].len()), "{}", requests[1].len()),
            _ => {
                let count: usize = requests[1].iter().map(|range| range.len()).sum();
                assert!(requests[1].len() > first / 2 && count < 10_000, "{count}");
            }
        }
    }
}

#[test]
fn another_version_is_an_error() {
    let tags = ["\"two\"", "W/\"two\""];
    for tag in tags {
        let other = server(move |ranges, _| reply(&head().replace("\"one\"", tag), &body(ranges)));
        let error = read(&*source(&other)).unwrap_err();
        assert!(matches!(error, StoreError::Changed { .. }), "{error}");
    }
    let server = server(|_, _| reply("412 Precondition Failed", b""));
    assert!(matches!(read(&*source(&server)).unwrap_err(), StoreError::Changed { .. }));
}

#[test]
fn compressed_answers_and_refusals_are_errors() {
    let gzip =
        server(|ranges, _| reply(&format!("{}\nContent-Encoding: gzip", head()), &body(ranges)));
    let error = read(&*source(&gzip)).unwrap_err();
    assert!(matches!(error, StoreError::Unsupported { .. }), "{error}");
    let server = server(|_, _| reply("403 Forbidden", b""));
    assert!(matches!(read(&*source(&server)).unwrap_err(), StoreError::Forbidden { .. }));
}

#[test]
fn a_server_that_never_answers_or_cuts_the_connection_is_asked_one_by_one() {
    let hangs = server(|_, _| Reply { bytes: Vec::new(), then: ConnectionEnd::Hang });
    let cuts = server(|_, _| Reply { bytes: Vec::new(), then: ConnectionEnd::Close });
    for (server, count) in [(hangs, 1), (cuts, 2)] {
        let source = source(&server);
        assert_rows(&read(&*source).unwrap());
        assert!(vectors(&server).len() <= count, "{}", vectors(&server).len());
        assert!(source.costs().multi_range.is_none());
    }
}

#[test]
fn what_a_request_for_many_ranges_takes_is_measured() {
    let server = server(|ranges, _| match ranges.len() {
        0..=20 => reply(&head(), &body(ranges)),
        21..=30 => Reply { bytes: Vec::new(), then: ConnectionEnd::Hang },
        _ => reply(&format!("200 OK\n{ETAG}"), &data()),
    });
    let source = source(&server);
    let limit = Duration::from_millis(400);
    let measure = |count: usize| source.measure_vector(&rows()[..count], limit).unwrap();
    let good = measure(20);
    assert_eq!((good.refusal, good.parts, good.is_ordered), (None, 20, true));
    assert_eq!(good.bytes, body(&vectors(&server)[0]).len() as u64);
    assert!(good.first_byte_s > 0.0 && good.first_byte_s <= good.seconds);
    assert!(measure(25).refusal.unwrap().contains("0.4 s"));
    assert!(measure(50).refusal.unwrap().contains("200"));
    // Measuring is no use of it: reads go on as the profile says.
    assert!(source.costs().multi_range.is_some());
}
