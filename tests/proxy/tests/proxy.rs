//! What clients see through the proxy. Times are checked from below only: machines are busy.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use swathe_test_proxy::{Proxy, Settings};

/// Byte `at` of every object.
fn byte(at: usize) -> u8 {
    (at * 31 + at / 257) as u8
}

fn object(length: usize) -> Vec<u8> {
    (0..length).map(byte).collect()
}

/// Answers `GET /N` with N bytes, `/chunked/N` in chunks, any number per connection.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            client.set_nodelay(true).unwrap();
            thread::spawn(move || serve(&client));
        }
    });
    address
}

fn serve(mut client: &TcpStream) {
    let mut input = BufReader::new(client);
    while let Some((first, length)) = head(&mut input) {
        let mut body = vec![0; length];
        input.read_exact(&mut body).unwrap();
        let mut words = first.split(' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let (_, number) = path.rsplit_once('/').unwrap();
        let bytes = object(number.parse().unwrap());
        let result = if path.starts_with("/chunked/") {
            let mut text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            for chunk in bytes.chunks(1000) {
                text.extend(format!("{:x}\r\n", chunk.len()).bytes());
                text.extend(chunk);
                text.extend(b"\r\n");
            }
            text.extend(b"0\r\n\r\n");
            client.write_all(&text)
        } else {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {number}\r\n\r\n");
            let body = if method == "HEAD" { &[][..] } else { &bytes };
            client.write_all(head.as_bytes()).and_then(|()| client.write_all(body))
        };
        if result.is_err() {
            return;
        }
    }
}

/// The first line of a head and its content length.
fn head(input: &mut impl BufRead) -> Option<(String, usize)> {
    let (mut first, mut length) = (String::new(), 0);
    input.read_line(&mut first).ok().filter(|read| *read > 0)?;
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            return Some((first, length));
        }
        let (name, value) = line.split_once(':').unwrap();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap();
        }
    }
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn new(proxy: &Proxy) -> Self {
        let socket = TcpStream::connect(proxy.address()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Self(BufReader::new(socket))
    }

    fn ask(&mut self, request: &str) {
        let text = format!("{request} HTTP/1.1\r\nHost: a\r\n\r\n");
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// The first line of an answer, what came of its body, and how that ended.
    fn get(&mut self, length: usize) -> (String, Vec<u8>, std::io::Result<()>) {
        self.ask(&format!("GET /{length}"));
        let (first, length) = head(&mut self.0).unwrap();
        let mut body = Vec::new();
        let mut piece = [0; 65536];
        while body.len() < length {
            let most = piece.len().min(length - body.len());
            match self.0.read(&mut piece[..most]) {
                Ok(0) => return (first, body, Err(ErrorKind::UnexpectedEof.into())),
                Ok(read) => body.extend(&piece[..read]),
                Err(error) => return (first, body, Err(error)),
            }
        }
        (first, body, Ok(()))
    }
}

fn proxy(settings: &[(&str, &str)]) -> Proxy {
    let mut all = Settings::default();
    for (name, value) in settings {
        all.set(name, value).unwrap();
    }
    Proxy::start(0, server().to_string(), all).unwrap()
}

#[test]
fn many_requests_on_one_connection_give_the_same_bytes() {
    let proxy = proxy(&[]);
    let mut client = Client::new(&proxy);
    let mut total = 0;
    for length in (0..200).map(|n| n * n * 17).chain([0, 1, 3_000_000]) {
        let (first, body, end) = client.get(length);
        assert!(first.contains("200") && end.is_ok());
        assert!(body == object(length), "{length}");
        total += length as u64;
    }
    let stats = proxy.stats();
    assert_eq!((stats.connections.load(Relaxed), stats.requests.load(Relaxed)), (1, 203));
    assert!(stats.bytes_down.load(Relaxed) > total);
}

#[test]
fn answers_without_a_length_or_body_keep_the_connection() {
    let proxy = proxy(&[("truncate", "1")]);
    let mut client = Client::new(&proxy);
    for _ in 0..3 {
        client.ask("HEAD /1000");
        assert_eq!(head(&mut client.0).unwrap().1, 1000);
        client.ask("GET /chunked/2500");
        head(&mut client.0).unwrap();
        let mut body = vec![0; 2500 + 3 * 7 + 5];
        client.0.read_exact(&mut body).unwrap();
        assert_eq!(&body[5..1005], &object(1000));
        assert!(body.ends_with(b"\r\n0\r\n\r\n"));
    }
    assert_eq!(proxy.stats().truncations.load(Relaxed), 0);
}

#[test]
fn bodies_of_requests_are_not_requests() {
    let proxy = proxy(&[]);
    let mut client = Client::new(&proxy);
    for body in ["Content-Length: 9\r\n\r\nGET /1 HT", "Content-Length: 0\r\n\r\n"] {
        let text = format!("PUT /5 HTTP/1.1\r\n{body}");
        client.0.get_mut().write_all(text.as_bytes()).unwrap();
        assert_eq!(head(&mut client.0).unwrap().1, 5);
        client.0.read_exact(&mut [0; 5]).unwrap();
    }
    assert_eq!(proxy.stats().requests.load(Relaxed), 2);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let proxy = proxy(&[("rtt-ms", "5")]);
    let mut client = Client::new(&proxy);
    client.ask("GET /300 HTTP/1.1\r\n\r\nGET /20000 HTTP/1.1\r\n\r\nHEAD /7");
    for length in [300, 20_000] {
        assert_eq!(head(&mut client.0).unwrap().1, length);
        let mut body = vec![0; length];
        client.0.read_exact(&mut body).unwrap();
        assert!(body == object(length));
    }
    assert_eq!(head(&mut client.0).unwrap().1, 7);
}

#[test]
fn every_exchange_takes_a_round_trip_and_connecting_another() {
    let rtt = Duration::from_millis(40);
    let proxy = proxy(&[("rtt-ms", "40")]);
    let start = Instant::now();
    let mut client = Client::new(&proxy);
    client.get(10).2.unwrap();
    assert!(start.elapsed() >= 2 * rtt);
    for _ in 0..3 {
        let start = Instant::now();
        client.get(10).2.unwrap();
        assert!(start.elapsed() >= rtt);
    }
    proxy.set("rtt-ms", "0").unwrap();
    let fastest = (0..20).map(|_| {
        let start = Instant::now();
        client.get(10).2.unwrap();
        start.elapsed()
    });
    assert!(fastest.min().unwrap() < rtt);
}

#[test]
fn delay_does_not_limit_throughput() {
    // One 64 KiB read per round trip would take ten times as long.
    let proxy = proxy(&[("rtt-ms", "100")]);
    let mut client = Client::new(&proxy);
    let start = Instant::now();
    assert!(client.get(20_000_000).1 == object(20_000_000));
    assert!(start.elapsed() < Duration::from_secs(15));
}

#[test]
fn links_never_exceed_their_rate() {
    for (name, connections) in [("connection-bytes-per-s", 1), ("shared-bytes-per-s", 5)] {
        let proxy = proxy(&[(name, "4000000"), ("rtt-ms", "4")]);
        let start = Instant::now();
        thread::scope(|scope| {
            for _ in 0..connections {
                scope.spawn(|| {
                    let length = 3_000_000 / connections;
                    assert!(Client::new(&proxy).get(length).1 == object(length));
                });
            }
        });
        assert!(start.elapsed() >= Duration::from_millis(750), "{name}");
    }
}

#[test]
fn uploads_never_exceed_their_rate() {
    let proxy = proxy(&[("upload-bytes-per-s", "4000000")]);
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut client = Client::new(&proxy);
                let request = "PUT /5 HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n";
                client.0.get_mut().write_all(request.as_bytes()).unwrap();
                client.0.get_mut().write_all(&object(1_000_000)).unwrap();
                assert_eq!(head(&mut client.0).unwrap().1, 5);
                client.0.read_exact(&mut [0; 5]).unwrap();
                // The whole body was passed on: the next request is seen as one.
                assert!(client.get(7).1 == object(7));
            });
        }
    });
    assert!(start.elapsed() >= Duration::from_millis(750));
}

#[test]
fn a_window_limits_each_connection_to_itself_in_a_round_trip() {
    let proxy = proxy(&[("rtt-ms", "50"), ("window-bytes", "8192")]);
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(Client::new(&proxy).get(80_000).1 == object(80_000)));
        }
    });
    // Ten windows, of which the first needs no acknowledgement.
    assert!(start.elapsed() >= Duration::from_millis(9 * 50));
}

#[test]
fn a_body_is_reset_truncated_or_stalled_in_its_middle() {
    const LENGTH: usize = 200_000;
    for (name, seed) in
        ["reset", "truncate", "stall"].into_iter().flat_map(|n| [(n, "1"), (n, "2")])
    {
        let proxy = proxy(&[(name, "1"), ("stall-s", "0.2"), ("seed", seed)]);
        let start = Instant::now();
        let (_, body, end) = Client::new(&proxy).get(LENGTH);
        let error = end.unwrap_err();
        assert!(body.len() < LENGTH && body == object(body.len()));
        let stats = proxy.stats();
        let (kind, count) = match name {
            "reset" => (ErrorKind::ConnectionReset, &stats.resets),
            "truncate" => (ErrorKind::UnexpectedEof, &stats.truncations),
            _ => (ErrorKind::UnexpectedEof, &stats.stalls),
        };
        assert_eq!(error.kind(), kind, "{name}");
        assert_eq!(count.load(Relaxed), 1);
        assert!(name != "stall" || start.elapsed() >= Duration::from_millis(200));
    }
}

#[test]
fn refusals_say_when_to_come_back_and_keep_the_connection() {
    let proxy = proxy(&[("unavailable", "0.3"), ("slow-down", "0.3"), ("retry-after", "7")]);
    let mut client = Client::new(&proxy);
    let (mut refusals, mut slow_downs) = (0, 0);
    for _ in 0..100 {
        client.ask("GET /50");
        let mut answer = String::new();
        client.0.read_line(&mut answer).unwrap();
        let mut next = String::new();
        client.0.read_line(&mut next).unwrap();
        let (_, length) = head(&mut std::io::Cursor::new("x\r\n").chain(&mut client.0)).unwrap();
        let refusal = !answer.contains("200");
        assert_eq!(next == "Retry-After: 7\r\n", refusal);
        refusals += u64::from(answer.contains("503"));
        slow_downs += u64::from(answer.contains("429"));
        let length = if refusal { length } else { 50 };
        client.0.read_exact(&mut vec![0; length]).unwrap();
    }
    let stats = proxy.stats();
    assert!(refusals > 10 && slow_downs > 10 && refusals + slow_downs < 90);
    assert_eq!(stats.unavailable.load(Relaxed), refusals);
    assert_eq!(stats.slow_downs.load(Relaxed), slow_downs);
}

#[test]
fn a_refusal_closes_the_connection_when_asked() {
    let proxy = proxy(&[("unavailable", "1")]);
    let mut client = Client::new(&proxy);
    client.ask("GET /50 HTTP/1.1\r\nConnection: close\r\nX:");
    let mut answer = String::new();
    client.0.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"));
}

#[test]
fn a_hanging_request_is_never_answered() {
    let proxy = proxy(&[("hang", "1")]);
    let mut client = Client::new(&proxy);
    client.0.get_ref().set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    client.ask("GET /10");
    let error = client.0.read(&mut [0]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
    assert_eq!(proxy.stats().hangs.load(Relaxed), 1);
}

#[test]
fn other_protocols_pass() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let (mut from, mut to) = (&socket, &socket);
            let _ = std::io::copy(&mut from, &mut to);
        }
    });
    let mut settings = Settings::default();
    settings.set("reset", "1").unwrap();
    let proxy = Proxy::start(0, address.to_string(), settings).unwrap();
    let mut socket = TcpStream::connect(proxy.address()).unwrap();
    for round in 0..5 {
        let message = vec![round; 1000];
        socket.write_all(&message).unwrap();
        let mut answer = vec![0xff; 1000];
        socket.read_exact(&mut answer).unwrap();
        assert_eq!(answer, message);
    }
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(socket.read(&mut [0]).unwrap(), 0);
    assert_eq!(proxy.stats().requests.load(Relaxed), 0);
}

#[test]
fn two_hundred_connections_at_once() {
    let proxy = proxy(&[("rtt-ms", "20"), ("shared-bytes-per-s", "100000000")]);
    thread::scope(|scope| {
        for n in 0..200 {
            let proxy = &proxy;
            scope.spawn(move || {
                let mut client = Client::new(proxy);
                for _ in 0..3 {
                    assert!(client.get(10_000 + n).1 == object(10_000 + n));
                }
            });
        }
    });
    assert_eq!(proxy.stats().connections.load(Relaxed), 200);
    assert_eq!(proxy.stats().requests.load(Relaxed), 600);
}

#[test]
fn an_unread_answer_takes_bounded_memory() {
    let proxy = proxy(&[("rtt-ms", "1")]);
    let mut client = Client::new(&proxy);
    client.ask("GET /100000000");
    thread::sleep(Duration::from_millis(500));
    assert!(proxy.stats().bytes_down.load(Relaxed) < 50_000_000);
}

#[test]
fn the_process_is_ruled_by_its_input_and_ends_with_it() {
    let mut process = Command::new(env!("CARGO_BIN_EXE_swathe-proxy"))
        .args(["--upstream", &server().to_string(), "--rtt-ms", "1.5"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut input = process.stdin.take().unwrap();
    let address = output.next().unwrap();
    let mut socket = TcpStream::connect(address.strip_prefix("listening ").unwrap()).unwrap();
    socket.write_all(b"GET /100 HTTP/1.0\r\n\r\n").unwrap();
    socket.read_exact(&mut [0; 100]).unwrap();
    for (line, answer) in [
        ("set rtt-ms 20", "ok"),
        ("set rtt 20", "error: no setting is called `rtt`"),
        ("what", "error: what is `what`?"),
        ("stats", "{\"connections\": 1, \"requests\": 1, \"bytes_up\": 21, \"bytes_down\": 14"),
        ("clear", "ok"),
        ("stats", "{\"connections\": 0, "),
    ] {
        writeln!(input, "{line}").unwrap();
        let line = output.next().unwrap();
        assert!(line.starts_with(answer), "{line}");
    }
    drop(input);
    assert!(process.wait().unwrap().success());
}
