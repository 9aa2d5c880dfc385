//! What takes finished lines: standard error and the log of the system. Files, memory and the
//! collector have modules of their own.

use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

/// Takes lines. Those that it has not written it adds to `lost`: lines, not bytes.
pub(crate) trait LineSink: Send {
    /// Whether lines can be taken now.
    fn ready(&mut self) -> io::Result<bool> {
        Ok(true)
    }

    /// Take whole lines.
    fn write(&mut self, lines: &[u8], lost_lines: &mut u64) -> io::Result<()>;

    /// Lines in memory that will be written at the end, if this many bytes more are added.
    fn pending_lines(&mut self, _more: usize) -> u64 {
        0
    }

    /// End the output. Lines that are written now are added to `line_count`.
    fn finish(&mut self, _line_count: &mut u64) -> io::Result<()> {
        Ok(())
    }
}

/// Who the lines are from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// Name of the machine.
    pub host: String,
    /// Name of the program.
    pub prog: String,
    /// The token for the collector.
    pub token: Option<String>,
}

/// How many lines.
pub(crate) fn count(lines: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', lines).count() as u64
}

/// Write all, or count the lines that are lost; returns whether the last line written is whole.
pub(crate) fn write_all(
    to: &mut impl Write,
    lines: &[u8],
    lost_lines: &mut u64,
) -> (bool, io::Result<()>) {
    let mut at = 0;
    while at < lines.len() {
        let error = match to.write(&lines[at..]) {
            Ok(0) => io::ErrorKind::WriteZero.into(),
            Ok(count) => {
                at += count;
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => error,
        };
        *lost_lines += count(&lines[at..]);
        return (at == 0 || lines[at - 1] == b'\n', Err(error));
    }
    (true, Ok(()))
}

pub(crate) struct Stderr;

impl LineSink for Stderr {
    fn write(&mut self, lines: &[u8], lost_lines: &mut u64) -> io::Result<()> {
        write_all(&mut io::stderr(), lines, lost_lines).1
    }
}

/// A line a datagram, as `syslog(3)` sends them, without its time: the line has one.
pub(crate) struct Syslog {
    socket: UnixDatagram,
    path: PathBuf,
    tag: String,
    message: Vec<u8>,
}

/// Facility `user`.
const FACILITY: u8 = 1 << 3;
/// The kernel may hold no more than ten datagrams that the daemon has not read: it is waited for.
/// One that takes nothing for this long is stuck.
const PATIENCE: Duration = Duration::from_millis(500);
const SEVERITIES: [(&[u8], u8); 2] = [(b" LVL=Error ", 3), (b" LVL=Warning ", 4)];
const INFORMATIONAL: u8 = 6;

impl Syslog {
    pub fn open(path: &std::path::Path, prog: &str) -> io::Result<Syslog> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(path)?;
        socket.set_write_timeout(Some(PATIENCE))?;
        let prog: String = prog.chars().filter(char::is_ascii_graphic).take(32).collect();
        let tag = format!("{prog}[{}]: ", std::process::id());
        Ok(Syslog { socket, path: path.into(), tag, message: Vec::new() })
    }

    fn send(&mut self, line: &[u8]) -> io::Result<()> {
        // The level is the fourth field.
        let start = &line[..line.len().min(600)];
        let severity = SEVERITIES
            .iter()
            .find(|(level, _)| memchr::memmem::find(start, level).is_some())
            .map_or(INFORMATIONAL, |(_, severity)| *severity);
        self.message.clear();
        write!(self.message, "<{}>{}", FACILITY | severity, self.tag)?;
        self.message.extend_from_slice(line);
        self.socket.send(&self.message).map(drop)
    }
}

impl LineSink for Syslog {
    fn write(&mut self, lines: &[u8], lost_lines: &mut u64) -> io::Result<()> {
        let mut outcome = Ok(());
        let mut is_stuck = false;
        for line in lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            if is_stuck {
                *lost_lines += 1;
                continue;
            }
            let mut result = self.send(line);
            // The daemon was started anew.
            if result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
            {
                result = self.socket.connect(&self.path).and_then(|()| self.send(line));
            }
            if let Err(error) = result {
                *lost_lines += 1;
                is_stuck = error.kind() == io::ErrorKind::WouldBlock;
                outcome = Err(error);
            }
        }
        outcome
    }
}
