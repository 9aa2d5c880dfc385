//! Requests that share one connection of HTTP/2, to servers that do right and wrong.

use bytes::Bytes;
use h2::Reason;
use h2::server::{Connection, SendResponse};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use swathe_plan::{Costs, Curve, MultiplexCosts, Way};
use swathe_store::connect;
use swathe_store_api::{ObjectName, Source, StoreError, StoreSettings};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

const SIZE: usize = 400_000;
const ETAG: &str = "\"one\"";

fn data() -> Vec<u8> {
    (0..SIZE).map(|at| (at * 7 + at / 251) as u8).collect()
}

fn rows() -> Vec<Range<u64>> {
    (0..60).map(|row| 100_000 + row * 4_000..102_000 + row * 4_000).collect()
}

/// What the server does with a request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    Answer,
    /// It sends REFUSED_STREAM.
    Refuse,
    /// It sends this many bytes of the range, then RST_STREAM,
    Reset(usize),
    /// or GOAWAY for all requests,
    GoAway(usize),
    /// or nothing more.
    Stall(usize),
    /// It answers all requests that it has, and takes no more of the connection.
    LastOfConnection,
    /// Another status than 206.
    Status(u16),
    /// Other bytes than were requested.
    WrongRange,
    /// Of another version.
    Changed,
}

type Script = Box<dyn Fn(usize, &Range<usize>) -> Act + Send + Sync>;

struct ServerState {
    script: Script,
    /// Whether it speaks HTTP/2.
    speaks: AtomicBool,
    count: AtomicUsize,
    connections: AtomicUsize,
    /// Over which version of HTTP each range was requested.
    log: Mutex<Vec<(u8, Range<usize>)>>,
}

/// A server that speaks both versions at one port, without TLS.
struct Server {
    address: String,
    state: Arc<ServerState>,
    _runtime: tokio::runtime::Runtime,
}

impl Server {
    fn start(script: impl Fn(usize, &Range<usize>) -> Act + Send + Sync + 'static) -> Server {
        let state = Arc::new(ServerState {
            script: Box::new(script),
            speaks: AtomicBool::new(true),
            count: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            log: Mutex::new(Vec::new()),
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let task_state = state.clone();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, task_state.clone()));
            }
        });
        Server { address, state, _runtime: runtime }
    }

    fn source(&self) -> Arc<dyn Source> {
        self.source_with("always")
    }

    fn source_with(&self, http2: &str) -> Arc<dyn Source> {
        let options = BTreeMap::from([("http2".to_string(), http2.to_string())]);
        let settings = StoreSettings::new("web".into(), self.address.clone(), options);
        let url = format!("{}/a.fits", self.address);
        let store = connect(settings.with_costs(&costs()));
        store.open(ObjectName { url: &url, qualified_name: None }).unwrap()
    }

    /// The ranges that were requested over a version of HTTP, without that of opening.
    fn ranges(&self, version: u8) -> Vec<Range<usize>> {
        let log = self.state.log.lock().unwrap();
        log.iter()
            .filter(|(by, range)| *by == version && range.start > 0)
            .cloned()
            .map(|(_, range)| range)
            .collect()
    }
}

async fn serve(stream: TcpStream, state: Arc<ServerState>) {
    let mut begin = [0; 3];
    while let Ok(count) = stream.peek(&mut begin).await {
        match count {
            0 => return,
            3 => break,
            _ => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
    if begin != *b"PRI" {
        let stream = stream.into_std().unwrap();
        stream.set_nonblocking(false).unwrap();
        std::thread::spawn(move || serve_http1(stream, &state));
    } else if state.speaks.load(Ordering::Relaxed) {
        state.connections.fetch_add(1, Ordering::Relaxed);
        serve_http2(stream, state).await;
    } else {
        let mut stream = stream.into_std().unwrap();
        stream.set_nonblocking(false).unwrap();
        let answer = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        stream.write_all(answer).unwrap();
    }
}

fn parse_range(range: Option<&str>) -> Option<Range<usize>> {
    let (first, last) = range?.strip_prefix("bytes=")?.split_once('-')?;
    Some(first.parse().ok()?..last.parse::<usize>().ok()?.min(SIZE - 1) + 1)
}

fn serve_http1(stream: std::net::TcpStream, state: &ServerState) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let (mut stream, mut range, data) = (stream, None, data());
    while let Some(Ok(line)) = lines.next() {
        if let Some(value) = line.strip_prefix("Range: ") {
            range = parse_range(Some(value));
        }
        if line.is_empty() {
            let range = range.take().expect("a range");
            state.log.lock().unwrap().push((1, range.clone()));
            let (start, last, length) = (range.start, range.end - 1, range.len());
            let head = format!(
                "HTTP/1.1 206 Partial Content\r\nETag: {ETAG}\r\nContent-Length: {length}\r\n\
                 Content-Range: bytes {start}-{last}/{SIZE}\r\n\r\n"
            );
            let result =
                stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&data[range]));
            if result.is_err() {
                return;
            }
        }
    }
}

async fn serve_http2(stream: TcpStream, state: Arc<ServerState>) {
    let Ok(mut connection): Result<Connection<TcpStream, Bytes>, _> =
        h2::server::Builder::new().max_concurrent_streams(100).handshake(stream).await
    else {
        return;
    };
    let mut ends = false;
    let mut open_answers = Vec::new();
    loop {
        match timeout(Duration::from_millis(30), connection.accept()).await {
            // What was sent before is on its way now.
            Err(_) if ends => connection.abrupt_shutdown(Reason::INTERNAL_ERROR),
            Err(_) => {}
            Ok(Some(Ok((request, respond)))) => {
                let range = request.headers().get("range").and_then(|value| value.to_str().ok());
                let range = parse_range(range).expect("a range");
                state.log.lock().unwrap().push((2, range.clone()));
                let count = state.count.fetch_add(1, Ordering::Relaxed);
                let act = (state.script)(count, &range);
                ends |= matches!(act, Act::GoAway(_));
                if act == Act::LastOfConnection {
                    connection.graceful_shutdown();
                }
                open_answers.extend(answer(respond, act, &range));
            }
            Ok(_) => return,
        }
    }
}

/// Answer a request, and return its stream if more would have to come.
fn answer(
    mut respond: SendResponse<Bytes>,
    act: Act,
    range: &Range<usize>,
) -> Option<h2::SendStream<Bytes>> {
    if act == Act::Refuse {
        respond.send_reset(Reason::REFUSED_STREAM);
        return None;
    }
    let status = if let Act::Status(status) = act { status } else { 206 };
    let etag = if act == Act::Changed { "\"two\"" } else { ETAG };
    let start = if act == Act::WrongRange { range.start + 1 } else { range.start };
    let head = http::Response::builder()
        .status(status)
        .header("etag", etag)
        .header("content-range", format!("bytes {start}-{}/{SIZE}", range.end - 1))
        .body(())
        .unwrap();
    let mut stream = respond.send_response(head, false).ok()?;
    let bytes = Bytes::from(data()[range.clone()].to_vec());
    match act {
        Act::Reset(count) => {
            stream.send_data(bytes.slice(..count), false).unwrap();
            // After the bytes have gone.
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                stream.send_reset(Reason::INTERNAL_ERROR);
            });
            None
        }
        Act::GoAway(count) | Act::Stall(count) => {
            stream.send_data(bytes.slice(..count), false).unwrap();
            Some(stream)
        }
        _ => {
            stream.send_data(bytes, true).unwrap();
            None
        }
    }
}

fn costs() -> Costs {
    let multiplex = MultiplexCosts {
        requests: 100,
        latency_s: 1e-3,
        request_s: 1e-5,
        bytes_per_s: 1e8,
        header_bytes: 60,
    };
    let request = Curve::affine(1e-3, 1e8);
    Costs { request, multiplexed: Some(multiplex), ..Costs::remote() }
}

fn way(streams: u32) -> Way {
    Way { ranges_per_request: 1, streams, multiplexed: true }
}

fn read(source: &dyn Source) -> Result<Vec<Bytes>, StoreError> {
    source.fetch_by(rows(), way(20)).collect()
}

fn assert_rows(pieces: &[Bytes]) {
    let data = data();
    assert_eq!(pieces.len(), rows().len());
    for (range, piece) in rows().iter().zip(pieces) {
        assert_eq!(piece[..], data[range.start as usize..range.end as usize], "{range:?}");
    }
}

fn row(number: usize) -> Range<usize> {
    let range = rows()[number].clone();
    range.start as usize..range.end as usize
}

#[test]
fn requests_share_one_connection() {
    let server = Server::start(|_, _| Act::Answer);
    let source = server.source();
    assert!(!source.connections().multiplexed);
    assert_rows(&read(&*source).unwrap());
    assert_eq!(server.ranges(2).len(), 60);
    assert_eq!(server.ranges(1), []);
    assert_eq!(server.state.connections.load(Ordering::Relaxed), 1);
    // The object was opened on one of HTTP/1.1.
    assert_eq!((source.connections().streams, source.connections().multiplexed), (1, true));
    assert_eq!(source.take_traffic().requests, 61);
    assert!(source.take_notes().is_empty() && source.costs().multiplexed.is_some());
}

#[test]
fn it_is_not_spoken_without_tls_or_against_the_option() {
    let server = Server::start(|_, _| Act::Answer);
    for http2 in ["auto", "never"] {
        assert!(server.source_with(http2).costs().multiplexed.is_none(), "{http2}");
    }
    let source = server.source_with("auto");
    let timing = source.measure_multiplexed(&rows(), 20, Duration::from_secs(5)).unwrap();
    assert!(timing.refusal.unwrap().contains("http://"));
    assert_eq!(server.ranges(2), []);
}

#[test]
fn requests_are_measured() {
    let server = Server::start(|_, _| Act::Answer);
    let source = server.source();
    let timing = source.measure_multiplexed(&rows(), 60, Duration::from_secs(5)).unwrap();
    assert_eq!((timing.refusal, timing.bytes), (None, 120_000));
    assert!((20..200).contains(&timing.header_bytes), "{}", timing.header_bytes);
    assert!(timing.first_byte_s > 0.0 && timing.seconds >= timing.first_byte_s);
    server.state.speaks.store(false, Ordering::Relaxed);
    let old = Server::start(|_, _| Act::Answer);
    old.state.speaks.store(false, Ordering::Relaxed);
    let timing = old.source().measure_multiplexed(&rows(), 60, Duration::from_secs(5)).unwrap();
    assert!(timing.refusal.is_some());
}

#[test]
fn a_request_that_is_reset_is_continued() {
    let server =
        Server::start(|_, range| if *range == row(7) { Act::Reset(500) } else { Act::Answer });
    let source = server.source();
    assert_rows(&read(&*source).unwrap());
    let ranges = server.ranges(2);
    assert_eq!(ranges.len(), 61);
    assert!(ranges.contains(&(row(7).start + 500..row(7).end)));
    assert_eq!(server.ranges(1), []);
    assert!(source.take_notes().is_empty());
}

#[test]
fn after_goaway_only_what_is_missing_is_requested() {
    // Twenty are in flight: each has sent 700 of its bytes when all end.
    let server = Server::start(|count, _| if count < 20 { Act::GoAway(700) } else { Act::Answer });
    let source = server.source();
    assert_rows(&read(&*source).unwrap());
    assert_eq!(server.state.connections.load(Ordering::Relaxed), 2);
    assert_eq!(server.ranges(1), []);
    let ranges = server.ranges(2);
    assert_eq!(ranges.len(), 80);
    for number in 0..20 {
        let rest = row(number).start + 700..row(number).end;
        assert_eq!(ranges.iter().filter(|range| **range == rest).count(), 1, "{number}");
    }
    assert!(source.take_notes().is_empty());
}

#[test]
fn a_connection_that_takes_no_more_is_followed_by_another() {
    // As nginx does after a thousand requests.
    let server =
        Server::start(|count, _| if count == 25 { Act::LastOfConnection } else { Act::Answer });
    let source = server.source();
    assert_rows(&read(&*source).unwrap());
    assert!(server.state.connections.load(Ordering::Relaxed) >= 2);
    assert_eq!(server.ranges(1), []);
    assert!(source.take_notes().is_empty());
}

#[test]
fn a_refused_stream_is_requested_again() {
    let server = Server::start(|count, _| if count % 9 == 3 { Act::Refuse } else { Act::Answer });
    let source = server.source();
    assert_rows(&read(&*source).unwrap());
    assert!(server.ranges(2).len() > 60);
    assert_eq!(server.ranges(1), []);
    assert!(source.take_notes().is_empty());
}

#[test]
fn a_stall_ends_with_the_stall_timeout() {
    let server =
        Server::start(|_, range| if *range == row(5) { Act::Stall(900) } else { Act::Answer });
    let source = server.source();
    let began = Instant::now();
    assert_rows(&read(&*source).unwrap());
    assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let rest = row(5).start + 900..row(5).end;
    assert!(server.ranges(2).contains(&rest) || server.ranges(1).contains(&rest));
}

#[test]
fn a_server_that_went_back_to_1_1_is_read_by_that_in_the_same_read() {
    let server = Server::start(|count, _| if count < 20 { Act::GoAway(700) } else { Act::Answer });
    server.state.speaks.store(true, Ordering::Relaxed);
    let source = server.source();
    let mut pieces = source.fetch_by(rows(), way(20));
    // Started anew, as another program, while it is read.
    while server.ranges(2).len() < 20 {
        std::thread::sleep(Duration::from_millis(1));
    }
    server.state.speaks.store(false, Ordering::Relaxed);
    let pieces: Vec<Bytes> = pieces.by_ref().collect::<Result<_, _>>().unwrap();
    assert_rows(&pieces);
    let again: usize = server.ranges(1).iter().map(|range| range.len()).sum();
    assert!(again < 60 * 4_000, "only what is missing, with gaps: {again}");
    assert!(server.ranges(1).iter().all(|range| range.start >= row(0).start + 700));
    let notes = source.take_notes();
    assert!(notes.len() == 1 && notes[0].contains("HTTP/2 were refused"), "{notes:?}");
    // It is not tried again.
    assert!(source.costs().multiplexed.is_none());
    let before = server.ranges(2).len();
    assert_rows(&read(&*source).unwrap());
    assert_eq!(server.ranges(2).len(), before);
    assert!(source.take_notes().is_empty());
}

#[test]
fn a_server_that_never_spoke_it_is_read_by_1_1() {
    let server = Server::start(|_, _| Act::Answer);
    server.state.speaks.store(false, Ordering::Relaxed);
    let source = server.source();
    assert_rows(&read(&*source).unwrap());
    assert_eq!(server.ranges(2), []);
    // By the plan for them, not by a request for each.
    assert!(server.ranges(1).len() < 60, "{}", server.ranges(1).len());
    assert_eq!(source.take_notes().len(), 1);
}

#[test]
fn answers_are_checked_as_those_of_1_1() {
    for act in [Act::Status(200), Act::WrongRange, Act::Status(404), Act::Changed] {
        let server = Server::start(move |count, _| if count == 3 { act } else { Act::Answer });
        let source = server.source();
        match (act, read(&*source)) {
            (Act::Changed, Err(StoreError::Changed { .. })) => {}
            (Act::Status(404), Err(StoreError::NotFound { .. })) => {}
            // HTTP/1.1 gives the right one.
            (Act::Status(200) | Act::WrongRange, Ok(pieces)) => {
                assert_rows(&pieces);
                assert_eq!(source.take_notes().len(), 1, "{act:?}");
            }
            (_, other) => panic!("{act:?}: {other:?}"),
        }
    }
}

#[test]
fn ranges_past_the_end_and_empty_ones_are_as_before() {
    let server = Server::start(|_, _| Act::Answer);
    let source = server.source();
    let pieces: Vec<_> =
        source.fetch_by(vec![5..5, 1..2, 399_999..400_001, 7..8], way(4)).collect();
    assert_eq!(pieces.len(), 3);
    assert_eq!(pieces[0].as_ref().unwrap().len(), 0);
    assert_eq!(pieces[1].as_ref().unwrap()[..], data()[1..2]);
    assert!(matches!(pieces[2], Err(StoreError::ShortRead { .. })));
}
