//! The collector at the other end of a connection.
//!
//! The sender says `SWATHE-TRACE 1 HOST PID TOKEN`, hears `OK` or `NO reason`, and sends lines. The
//! collector may ask `CLOCK ns` at any time; a thread answers with a line `CLOCK_REPLY`.

use crate::clock_reply::ClockReply;
use crate::sink::{LineSink, Origin, count, write_all};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A collector that takes nothing for this long is gone.
const PATIENCE: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// At the end, until the collector has read all.
const LAST: Duration = Duration::from_secs(2);
/// Longest line of a collector.
const ANSWER_BYTES: usize = 1000;

pub(crate) struct Sender {
    address: String,
    greeting: String,
    from: Origin,
    connection: Option<Connection>,
    try_at: Instant,
    pause: Duration,
}

struct Connection {
    stream: Arc<Mutex<TcpStream>>,
    /// Ends with the connection.
    reader: JoinHandle<()>,
}

impl Sender {
    pub fn new(address: &str, from: &Origin) -> io::Result<Sender> {
        let graphic = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let token = from.token.as_deref().filter(|token| !token.is_empty()).unwrap_or("-");
        if !graphic(token) || token.len() > 1000 {
            let message = "the token has other characters than printable ASCII, or is too long";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let host: String = from.host.chars().filter(char::is_ascii_graphic).take(255).collect();
        let host = if host.is_empty() { "-" } else { &host };
        Ok(Sender {
            address: address.to_string(),
            greeting: format!("SWATHE-TRACE 1 {host} {} {token}\n", std::process::id()),
            from: from.clone(),
            connection: None,
            try_at: Instant::now(),
            pause: FIRST_PAUSE,
        })
    }

    fn connect(&self) -> io::Result<Connection> {
        let mut last_error = io::Error::new(io::ErrorKind::NotFound, "no such host");
        for address in self.address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => return self.greet(stream),
                Err(error) => last_error = error,
            }
        }
        Err(last_error)
    }

    fn greet(&self, mut stream: TcpStream) -> io::Result<Connection> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(self.greeting.as_bytes())?;
        let mut answers = Answers::new(stream.try_clone()?);
        match answers.next()? {
            Some(answer) if answer == "OK" => {}
            Some(answer) => return Err(io::Error::other(format!("the collector says {answer:?}"))),
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        stream.set_read_timeout(None)?;
        let stream = Arc::new(Mutex::new(stream));
        let (clock_stream, from) = (stream.clone(), self.from.clone());
        let reader = std::thread::Builder::new()
            .name("swathe-trace-clock".into())
            .spawn(move || reply(&mut answers, &clock_stream, &from))?;
        Ok(Connection { stream, reader })
    }
}

/// Answer questions until the connection ends.
fn reply(answers: &mut Answers, stream: &Mutex<TcpStream>, from: &Origin) {
    while let Ok(Some(question)) = answers.next() {
        let received_ns = unix_ns();
        let Some(asked_ns) = question.strip_prefix("CLOCK ").and_then(|ns| ns.parse().ok()) else {
            continue;
        };
        let mut stream = lock(stream);
        let mut line = Vec::new();
        let reply = ClockReply { asked_ns, received_ns, sent_ns: unix_ns() };
        reply.line(&from.host, &from.prog).push(&mut line);
        line.push(b'\n');
        if stream.write_all(&line).is_err() {
            // Half a line may have gone: nothing may follow it.
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
    }
    let _ = lock(stream).shutdown(Shutdown::Both);
}

fn unix_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LineSink for Sender {
    fn ready(&mut self) -> io::Result<bool> {
        if self.connection.as_ref().is_some_and(|connection| connection.reader.is_finished()) {
            self.connection = None;
        }
        if self.connection.is_some() {
            return Ok(true);
        }
        if Instant::now() < self.try_at {
            return Ok(false);
        }
        match self.connect() {
            Ok(connection) => {
                self.connection = Some(connection);
                self.pause = FIRST_PAUSE;
                Ok(true)
            }
            Err(error) => {
                self.try_at = Instant::now() + self.pause;
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                Err(error)
            }
        }
    }

    fn write(&mut self, lines: &[u8], lost_lines: &mut u64) -> io::Result<()> {
        let Some(Connection { stream, .. }) = &self.connection else {
            *lost_lines += count(lines);
            return Err(io::ErrorKind::NotConnected.into());
        };
        let mut stream = lock(stream);
        let result = write_all(&mut *stream, lines, lost_lines).1;
        if result.is_err() {
            let _ = stream.shutdown(Shutdown::Both);
            drop(stream);
            self.connection = None;
            self.try_at = Instant::now() + FIRST_PAUSE;
        }
        result
    }

    /// End it so that all that was sent is read: a connection closed with questions unread is
    /// reset, and what the collector has not read yet is gone.
    fn finish(&mut self, _line_count: &mut u64) -> io::Result<()> {
        let Some(Connection { stream, reader }) = self.connection.take() else { return Ok(()) };
        lock(&stream).shutdown(Shutdown::Write)?;
        let until = Instant::now() + LAST;
        while !reader.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        // It may be closed by now.
        let _ = lock(&stream).shutdown(Shutdown::Both);
        Ok(())
    }
}

/// Lines of a collector.
struct Answers {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Answers {
    fn new(stream: TcpStream) -> Answers {
        Answers { stream, buffer: Vec::new() }
    }

    /// The next; `None` at the end.
    fn next(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer) {
                let line = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
                self.buffer.drain(..=end);
                return Ok(Some(line));
            }
            if self.buffer.len() > ANSWER_BYTES {
                return Err(io::Error::other("the collector says too much"));
            }
            let mut piece = [0; 256];
            match self.stream.read(&mut piece) {
                Ok(0) => return Ok(None),
                Ok(count) => self.buffer.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
