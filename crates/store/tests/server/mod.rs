//! An HTTP server that can misbehave: a thread per connection, an answer per request.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request, header names in lower case.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub target: String,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// First and last byte of the requested range.
    pub fn range(&self) -> Option<(usize, usize)> {
        let (first, last) = self.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
        Some((first.parse().ok()?, last.parse().ok()?))
    }
}

/// What to do after an answer was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConnectionEnd {
    Keep,
    Close,
    Hang,
    /// Send this again and again, ten times a second.
    Repeat(&'static str),
}

/// Bytes to send, as they are.
#[derive(Clone, Debug)]
pub struct Reply {
    pub bytes: Vec<u8>,
    pub then: ConnectionEnd,
}

/// An answer as it should be; `head` is the status line's end and headers, a line each.
pub fn reply(head: &str, body: &[u8]) -> Reply {
    let length = format!("Content-Length: {}", body.len());
    let mut bytes = format!("HTTP/1.1 {}\r\n{length}\r\n\r\n", head.replace('\n', "\r\n")).into();
    Vec::extend(&mut bytes, body);
    Reply { bytes, then: ConnectionEnd::Keep }
}

/// An answer as it stands, after which the connection is closed.
pub fn raw(head: &str, body: &[u8]) -> Reply {
    let mut bytes = format!("HTTP/1.1 {}\r\n\r\n", head.replace('\n', "\r\n")).into_bytes();
    bytes.extend_from_slice(body);
    Reply { bytes, then: ConnectionEnd::Close }
}

/// What a server that does everything right answers; `validators` are header lines.
pub fn good(request: &Request, data: &[u8], validators: &str) -> Reply {
    let validators = if validators.is_empty() { "X-None: -" } else { validators };
    if request.method == "HEAD" {
        let mut head = reply(&format!("200 OK\n{validators}"), data);
        head.bytes.truncate(head.bytes.len() - data.len());
        return head;
    }
    if let Some(version) = request.header("if-match")
        && !validators.contains(&format!("ETag: {version}"))
    {
        return reply("412 Precondition Failed", b"");
    }
    let size = data.len();
    match request.range() {
        None => reply(&format!("200 OK\n{validators}"), data),
        Some((first, _)) if first >= size => {
            reply(&format!("416 Range Not Satisfiable\nContent-Range: bytes */{size}"), b"")
        }
        Some((first, last)) => {
            let last = last.min(size - 1);
            let range = format!("Content-Range: bytes {first}-{last}/{size}");
            reply(&format!("206 Partial Content\n{range}\n{validators}"), &data[first..=last])
        }
    }
}

/// A running server; it ends with the value.
pub struct Server {
    pub port: u16,
    state: Arc<ServerState>,
}

#[derive(Default)]
struct ServerState {
    requests: Mutex<Vec<Request>>,
    connections: AtomicUsize,
    stop: AtomicBool,
}

impl Server {
    /// Answer each request with what `answer` makes of it and of the number of requests before.
    pub fn start(answer: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> Server {
        Server::start_at(0, answer)
    }

    /// The same at a port that is free, of all if it is 0.
    pub fn start_at(
        port: u16,
        answer: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(ServerState::default());
        let (ours, answer) = (state.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ours.stop.load(Ordering::Relaxed) {
                    break;
                }
                ours.connections.fetch_add(1, Ordering::Relaxed);
                let (ours, answer) = (ours.clone(), answer.clone());
                std::thread::spawn(move || ours.serve(stream.unwrap(), &*answer));
            }
        });
        Server { port, state }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl ServerState {
    /// Serve one connection; a client that goes away ends it.
    fn serve(&self, stream: TcpStream, answer: &dyn Fn(&Request, usize) -> Reply) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while let Some(request) = read_request(&mut reader) {
            let number = {
                let mut requests = self.requests.lock().unwrap();
                requests.push(request.clone());
                requests.len() - 1
            };
            let Reply { bytes, then } = answer(&request, number);
            if (&stream).write_all(&bytes).is_err() {
                return;
            }
            match then {
                ConnectionEnd::Keep => {}
                ConnectionEnd::Close => return,
                ConnectionEnd::Repeat(text) => {
                    while !self.stop.load(Ordering::Relaxed)
                        && (&stream).write_all(text.as_bytes()).is_ok()
                    {
                        std::thread::sleep(Duration::from_millis(100));
                    }
                    return;
                }
                ConnectionEnd::Hang => {
                    while !self.stop.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    return;
                }
            }
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        Some(line.trim_end().to_string())
    };
    let first = line()?;
    let mut words = first.split(' ');
    let (method, target) = (words.next()?.to_string(), words.next()?.to_string());
    let mut headers = HashMap::new();
    while let Some((name, value)) = line()?.split_once(':') {
        headers.insert(name.to_ascii_lowercase(), value.trim().to_string());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, target, headers, body })
}
