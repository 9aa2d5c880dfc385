//! What a program writes to standard output and standard error: start and end, as harmless text.

use crate::report::LogText;
use std::collections::VecDeque;

/// Collects a stream within a limit: its first half and its last.
#[derive(Debug)]
pub(crate) struct Log {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    half: usize,
    bytes: u64,
}

impl Log {
    /// Keep at most that many bytes.
    pub(crate) fn new(limit: usize) -> Log {
        Log { head: Vec::new(), tail: VecDeque::new(), half: limit / 2, bytes: 0 }
    }

    /// Add what was read.
    pub(crate) fn push(&mut self, part: &[u8]) {
        self.bytes += part.len() as u64;
        let (first, rest) = part.split_at(part.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        self.tail.extend(rest);
        self.tail.drain(..self.tail.len().saturating_sub(self.half));
    }

    /// Return the text, without control characters.
    pub(crate) fn text(&self) -> LogText {
        let missing = self.bytes - (self.head.len() + self.tail.len()) as u64;
        let mut bytes = self.head.clone();
        if missing > 0 {
            bytes.extend_from_slice(format!("\n[{missing} bytes left out]\n").as_bytes());
        }
        bytes.extend(&self.tail);
        let text = harmless(&String::from_utf8_lossy(&bytes));
        LogText { text, bytes: self.bytes, is_whole: missing == 0 }
    }
}

/// Return a text without control characters but line ends and tabs.
pub(crate) fn harmless(text: &str) -> String {
    let is_harmless = |char: &char| matches!(char, '\n' | '\t') || !char.is_control();
    // Marks that turn the direction of text could hide what follows them.
    let is_turn = |char: &char| matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().filter(|char| is_harmless(char) && !is_turn(char)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_stream_keeps_its_start_and_end() {
        let mut log = Log::new(8);
        for part in [&b"abc"[..], b"defgh", b"ijklmnop"] {
            log.push(part);
        }
        let text = log.text();
        assert_eq!(text.text, "abcd\n[8 bytes left out]\nmnop");
        assert_eq!((text.bytes, text.is_whole), (16, false));
        let mut short = Log::new(8);
        short.push(b"abcdefg");
        assert_eq!((short.text().text.as_str(), short.text().is_whole), ("abcdefg", true));
    }

    #[test]
    fn control_characters_are_left_out() {
        let mut log = Log::new(100);
        log.push(b"a\x1b[31mb\x07\r\n\tc\xff\xe2\x80\xae!");
        assert_eq!(log.text().text, "a[31mb\n\tc\u{fffd}!");
    }
}
