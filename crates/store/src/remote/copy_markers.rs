//! The answer of a server while it copies: lines with markers of performance, and then how it
//! ended, as XRootD and dCache send them.

use super::response::REASON_CHARS;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Most bytes that are kept of a line.
const LINE_BYTES: usize = 1024;
/// Most bytes between two markers, or of an answer without any.
const BYTES_BETWEEN: usize = 64 << 10;
/// Most stripes whose bytes are counted.
const STRIPES: usize = 1024;

/// How fast a server must at least copy, after a time for its begin.
const SLOWEST_BYTES_PER_S: f64 = 64e3;

/// Whether a copy goes on: as a server says, which may say so for ever.
pub(super) struct CopyPace {
    /// How long it may copy nothing.
    idle: Duration,
    begin: Instant,
    growth: Instant,
    bytes: u64,
}

impl CopyPace {
    pub(super) fn start(idle: Duration) -> CopyPace {
        let now = Instant::now();
        CopyPace { idle, begin: now, growth: now, bytes: 0 }
    }

    /// Count what was copied in all by now.
    ///
    /// # Errors
    /// Why the copy is given up.
    pub(super) fn count(&mut self, bytes: u64, now: Instant) -> Result<(), String> {
        if bytes > self.bytes {
            (self.bytes, self.growth) = (bytes, now);
        }
        let pause = now.saturating_duration_since(self.growth);
        if pause > self.idle {
            return Err(format!("copied nothing for {} s", pause.as_secs_f32()));
        }
        let elapsed = now.saturating_duration_since(self.begin);
        let limit = self.idle + Duration::from_secs_f64(self.bytes as f64 / SLOWEST_BYTES_PER_S);
        if elapsed > limit {
            let (bytes, seconds) = (self.bytes, elapsed.as_secs_f32());
            return Err(format!(
                "copied only {bytes} bytes in {seconds} s; expected at least {:.0} kB/s",
                SLOWEST_BYTES_PER_S / 1e3
            ));
        }
        Ok(())
    }
}

/// What a server said so far.
#[derive(Default)]
pub(super) struct CopyMarkers {
    line: Vec<u8>,
    bytes_since: usize,
    stripe: u64,
    /// Bytes of each stripe.
    stripes: BTreeMap<u64, u64>,
    has_markers: bool,
    outcome: Option<Result<(), String>>,
}

impl CopyMarkers {
    /// Take in more of the answer.
    ///
    /// # Errors
    /// Why no more is taken.
    pub(super) fn read(&mut self, text: &[u8]) -> Result<(), String> {
        for &byte in text {
            self.bytes_since += 1;
            match byte {
                b'\n' => self.end_line(),
                _ if self.line.len() < LINE_BYTES => self.line.push(byte),
                _ => {}
            }
            if self.bytes_since > BYTES_BETWEEN {
                return Err(format!("sent more than {BYTES_BETWEEN} bytes without a marker"));
            }
        }
        Ok(())
    }

    /// Bytes that the server says it copied.
    pub(super) fn bytes(&self) -> u64 {
        self.stripes.values().fold(0, |sum, &bytes| sum.saturating_add(bytes))
    }

    /// Whether the server said how it ended.
    pub(super) fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    /// How it ended; `must`: whether an answer that does not say so is a failure.
    pub(super) fn outcome(mut self, must: bool) -> Result<(), String> {
        self.end_line();
        match self.outcome {
            Some(outcome) => outcome,
            None if must || self.has_markers => {
                Err("ended its answer without saying how the copy ended".into())
            }
            None => Ok(()),
        }
    }

    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&self.line).trim().to_string();
        self.line.clear();
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let number = || value.trim().parse().unwrap_or_default();
        match name.trim().to_ascii_lowercase().as_str() {
            "perf marker" => {
                self.has_markers = true;
                self.bytes_since = 0;
            }
            "stripe index" => self.stripe = number(),
            "stripe bytes transferred"
                if self.stripes.len() < STRIPES || self.stripes.contains_key(&self.stripe) =>
            {
                self.stripes.insert(self.stripe, number());
            }
            "success" => self.outcome = Some(Ok(())),
            "failure" | "aborted" => {
                let chars = line.chars().filter(|char| !char.is_control());
                self.outcome = Some(Err(chars.take(REASON_CHARS).collect()));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> CopyMarkers {
        let mut markers = CopyMarkers::default();
        // A byte at a time, as a network may bring it.
        text.bytes().for_each(|byte| markers.read(&[byte]).unwrap());
        markers
    }

    const MARKER: &str = "Perf Marker\n\tTimestamp: 1\n\tStripe Index: 0\n\
                          \tStripe Bytes Transferred: 7\n\tTotal Stripe Count: 2\nEnd\n";

    #[test]
    fn bytes_are_those_of_all_stripes_now() {
        let other = MARKER.replace("Index: 0", "Index: 1").replace(": 7", ": 5");
        let later = MARKER.replace(": 7", ": 9");
        let markers = read(&format!("{MARKER}{other}{later}"));
        assert_eq!(markers.bytes(), 14);
        assert!(!markers.is_over());
        assert!(markers.outcome(false).unwrap_err().contains("without saying"));
    }

    #[test]
    fn the_end_is_said() {
        assert_eq!(read(&format!("{MARKER}success: Created")).outcome(true), Ok(()));
        assert_eq!(read("success: Created\r\n").outcome(true), Ok(()));
        let failure = read(&format!("{MARKER}failure: no \x07such file\n"));
        assert!(failure.is_over());
        assert_eq!(failure.outcome(true), Err("failure: no such file".into()));
        // A plain server need not say anything.
        assert_eq!(read("<html>Created</html>").outcome(false), Ok(()));
        assert_eq!(read("").outcome(false), Ok(()));
        assert!(read("").outcome(true).is_err());
    }

    #[test]
    fn an_answer_that_says_nothing_ends() {
        let mut markers = CopyMarkers::default();
        let text = [b'x'; 1024];
        assert!((0..65).any(|_| markers.read(&text).is_err()));
        let mut markers = CopyMarkers::default();
        assert!((0..10_000).all(|_| markers.read(MARKER.as_bytes()).is_ok()));
        assert_eq!(markers.bytes(), 7);
    }

    #[test]
    fn a_copy_that_creeps_is_given_up() {
        let pace = || CopyPace::start(Duration::from_secs(300));
        let after = |pace: &CopyPace, seconds| pace.begin + Duration::from_secs(seconds);
        let mut idle = pace();
        assert_eq!(idle.count(1 << 30, after(&idle, 1)), Ok(()));
        assert_eq!(idle.count(1 << 30, after(&idle, 301)), Ok(()));
        let why = "copied nothing for 301 s";
        assert_eq!(idle.count(1 << 30, after(&idle, 302)).unwrap_err(), why);
        // A byte more with each marker is not enough,
        let mut slow = pace();
        let end = (1..1_000).find_map(|seconds| slow.count(seconds, after(&slow, seconds)).err());
        let why = "copied only 301 bytes in 301 s; expected at least 64 kB/s";
        assert_eq!(end.as_deref(), Some(why));
        // a slow line is.
        let mut honest = pace();
        assert!((1..100_000).all(|at| honest.count(at * 65_000, after(&honest, at)).is_ok()));
    }
}
