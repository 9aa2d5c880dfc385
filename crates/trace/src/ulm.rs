//! One event as a line of text: `KEY=value` fields, one space between them.
//!
//! A value is bare when it is of printable ASCII without space, `"`, `\` and `=`, and not empty;
//! else it stands in double quotes, with `\"`, `\\`, `\n`, `\r`, `\t` and `\xHH` for other control
//! characters. Non-ASCII characters stay UTF-8, in quotes.

use crate::date::{parse_date, push_date};
use std::borrow::Cow;

/// Longest line that is read.
pub const LINE_BYTES: usize = 64 << 10;
/// Longer values are cut when they are recorded.
const VALUE_BYTES: usize = 4096;

/// The keys with which every line begins.
pub(crate) const FIRST: [&str; 5] = ["DATE", "HOST", "PROG", "LVL", "NL.EVNT"];

/// Why a line is no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UlmError {
    /// Nothing in it.
    #[error("an empty line")]
    Empty,
    /// Longer than [`LINE_BYTES`].
    #[error("longer than {LINE_BYTES} bytes")]
    TooLong,
    /// The file ends within it.
    #[error("cut off: no newline at its end")]
    CutOff,
    /// Something else instead of a key and `=`.
    #[error("byte {at}: expected KEY=, with KEY of A-Z, 0-9, '.', '_', '-', got {found:?}")]
    Key {
        /// Its offset, from 0.
        at: usize,
        /// The text that stands there.
        found: String,
    },
    /// A byte that a value has only in quotes or escaped, or something after the closing quote.
    #[error("byte {at} of value: {byte:#04x} is not allowed there")]
    Byte {
        /// Its offset in the line, from 0.
        at: usize,
        /// The byte.
        byte: u8,
    },
    /// A key without value.
    #[error("byte {at}: a value is missing")]
    NoValue {
        /// Its offset, from 0.
        at: usize,
    },
    /// A quote that does not end.
    #[error("byte {at}: the closing quote is missing")]
    Unclosed {
        /// Its start, from 0.
        at: usize,
    },
    /// A backslash with something unknown after it.
    #[error("byte {at}: no such escape")]
    Escape {
        /// Its offset, from 0.
        at: usize,
    },
    /// A value that is not UTF-8.
    #[error("byte {at}: the value is not UTF-8")]
    NotText {
        /// Start of the value, from 0.
        at: usize,
    },
    /// A key that occurs twice.
    #[error("{key} is there twice")]
    Twice {
        /// The key.
        key: String,
    },
    /// A key that every line has.
    #[error("{key} is missing")]
    Missing {
        /// The key.
        key: &'static str,
    },
    /// `DATE` is none.
    #[error("DATE: expected YYYYMMDDhhmmss.ffffff, got {found:?}")]
    Date {
        /// Its value.
        found: String,
    },
    /// A value that must be a number of nanoseconds.
    #[error("{key}: expected a whole number of nanoseconds, found {found:?}")]
    Nanoseconds {
        /// The key.
        key: &'static str,
        /// Its value.
        found: String,
    },
    /// More keys in a file than columns are allowed.
    #[error("{key}: more than {limit} different keys")]
    TooManyKeys {
        /// The one too many.
        key: String,
        /// The limit.
        limit: usize,
    },
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When, in nanoseconds since 1970; written to the microsecond.
    pub time_ns: i64,
    /// Name of the machine.
    pub host: String,
    /// Name of the program.
    pub prog: String,
    /// `Usage`, `Error`, `Warning` or `Info`.
    pub level: String,
    /// Name of the event.
    pub event: String,
    /// All else, in order.
    pub fields: Vec<(String, String)>,
}

impl Line {
    /// Append the line, without a newline.
    pub fn push(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"DATE=");
        push_date(out, self.time_ns);
        let first = [&self.host, &self.prog, &self.level, &self.event];
        for (key, value) in FIRST[1..].iter().zip(first) {
            push_field(out, key, value);
        }
        for (key, value) in &self.fields {
            push_field(out, key, value);
        }
    }
}

/// Whether a text can be the key of a field.
pub fn is_key(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.bytes().all(|byte| KEY[byte as usize])
}

/// Append a space, the key (which must be one) and the value.
pub fn push_field(out: &mut Vec<u8>, key: &str, value: &str) {
    out.push(b' ');
    out.extend_from_slice(key.as_bytes());
    out.push(b'=');
    push_value(out, value);
}

/// As [`push_field`]; a long value is cut.
pub fn push_short(out: &mut Vec<u8>, key: &str, value: &str) {
    if value.len() <= VALUE_BYTES {
        return push_field(out, key, value);
    }
    let mut end = VALUE_BYTES;
    while !value.is_char_boundary(end) {
        end -= 1;
    }
    push_field(out, key, &format!("{}...", &value[..end]));
}

/// Whether a value needs no quotes.
pub(crate) fn is_bare(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| BARE[byte as usize])
}

/// Append a value, in quotes if it needs them.
pub fn push_value(out: &mut Vec<u8>, value: &str) {
    if is_bare(value) {
        return out.extend_from_slice(value.as_bytes());
    }
    out.push(b'"');
    for byte in value.bytes() {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            0..0x20 | 0x7f => {
                let hex = |digit: u8| char::from_digit(digit.into(), 16).unwrap_or('0') as u8;
                out.extend([b'\\', b'x', hex(byte >> 4), hex(byte & 15)]);
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// Parse a line, without its newline.
///
/// # Errors
/// If it is not exactly as described above, or lacks one of the five that every line has.
pub fn parse(line: &[u8]) -> Result<Line, UlmError> {
    let mut fields = parse_fields(line)?;
    let mut take = |key: &'static str| {
        let index_of = fields.iter().position(|(other, _)| other == key);
        index_of.map(|index| fields.remove(index).1).ok_or(UlmError::Missing { key })
    };
    let [date, host, prog, level, event] = FIRST.map(&mut take);
    let date = date?;
    let time_ns = parse_date(date.as_bytes()).ok_or(UlmError::Date { found: date })?;
    Ok(Line { time_ns, host: host?, prog: prog?, level: level?, event: event?, fields })
}

/// Parse fields as they stand in a line, each with another key.
///
/// # Errors
/// If they are not exactly as described above.
pub fn parse_fields(line: &[u8]) -> Result<Vec<(String, String)>, UlmError> {
    if line.is_empty() {
        return Err(UlmError::Empty);
    }
    if line.len() > LINE_BYTES {
        return Err(UlmError::TooLong);
    }
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut at = 0;
    loop {
        let key = key_at(line, at)?;
        let value = value_at(line, at + key.len() + 1)?;
        let key = text(key);
        if fields.iter().any(|(other, _)| *other == key) {
            return Err(UlmError::Twice { key });
        }
        fields.push((key, decode(line, value)?.into_owned()));
        if value.end == line.len() {
            return Ok(fields);
        }
        at = value.end + 1;
    }
}

/// The range of a value in its line, with quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueRange {
    pub start: usize,
    pub end: usize,
    pub is_quoted: bool,
}

/// The key at a place of the line.
pub(crate) fn key_at(line: &[u8], at: usize) -> Result<&[u8], UlmError> {
    let rest = &line[at..];
    let length = rest.iter().position(|&byte| !KEY[byte as usize]).unwrap_or(rest.len());
    let fits = (1..=64).contains(&length)
        && rest[0].is_ascii_uppercase()
        && rest.get(length) == Some(&b'=');
    if fits {
        Ok(&rest[..length])
    } else {
        Err(UlmError::Key { at, found: text(&rest[..rest.len().min(20)]) })
    }
}

/// The value at a place of the line; a space or the end of the line follows it.
pub(crate) fn value_at(line: &[u8], start: usize) -> Result<ValueRange, UlmError> {
    let is_quoted = line.get(start) == Some(&b'"');
    let end = if is_quoted {
        closing_quote(line, start)? + 1
    } else {
        let rest = &line[start..];
        start + rest.iter().position(|&byte| !BARE[byte as usize]).unwrap_or(rest.len())
    };
    match line.get(end) {
        None | Some(b' ') if end > start => Ok(ValueRange { start, end, is_quoted }),
        None | Some(b' ') => Err(UlmError::NoValue { at: start }),
        Some(&byte) => Err(UlmError::Byte { at: end, byte }),
    }
}

fn closing_quote(line: &[u8], start: usize) -> Result<usize, UlmError> {
    let mut at = start + 1;
    loop {
        match line.get(at) {
            None => return Err(UlmError::Unclosed { at: start }),
            Some(b'"') => return Ok(at),
            Some(b'\\') => at += 2,
            Some(&byte) if byte < 0x20 || byte == 0x7f => return Err(UlmError::Byte { at, byte }),
            Some(_) => at += 1,
        }
    }
}

/// The text a value stands for.
pub(crate) fn decode(line: &[u8], value: ValueRange) -> Result<Cow<'_, str>, UlmError> {
    let not_text = |_| UlmError::NotText { at: value.start };
    if !value.is_quoted {
        return std::str::from_utf8(&line[value.start..value.end]).map(Cow::from).map_err(not_text);
    }
    let inner = &line[value.start + 1..value.end - 1];
    if memchr::memchr(b'\\', inner).is_none() {
        return std::str::from_utf8(inner).map(Cow::from).map_err(not_text);
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut at = 0;
    while let Some(&byte) = inner.get(at) {
        if byte != b'\\' {
            out.push(byte);
            at += 1;
            continue;
        }
        let (byte, length) =
            unescape(&inner[at..]).ok_or(UlmError::Escape { at: value.start + 1 + at })?;
        out.push(byte);
        at += length;
    }
    String::from_utf8(out).map(Cow::from).map_err(|_| UlmError::NotText { at: value.start })
}

/// The byte an escape stands for, and its length.
fn unescape(escape: &[u8]) -> Option<(u8, usize)> {
    let byte = match escape.get(1)? {
        b'"' => b'"',
        b'\\' => b'\\',
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'x' => {
            let digit = |at| (*escape.get(at)? as char).to_digit(16);
            let byte = digit(2)? * 16 + digit(3)?;
            return (byte < 0x80).then_some((byte as u8, 4));
        }
        _ => return None,
    };
    Some((byte, 2))
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Bytes of keys.
static KEY: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = matches!(byte as u8, b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-');
        byte += 1;
    }
    table
};

/// Bytes of values without quotes.
static BARE: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0x21;
    while byte < 0x7f {
        table[byte] = !matches!(byte as u8, b'"' | b'\\' | b'=');
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: &str = "DATE=20261121013038.055784 HOST=node7 PROG=swathe LVL=Usage \
         NL.EVNT=CUT_END TARGET=star-17 OBJECT=sdss:run1/f0.fits BYTES=25920 RESULT=ok";

    fn to_text(line: &Line) -> String {
        let mut out = Vec::new();
        line.push(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_line_is_read_and_written_as_it_was() {
        let line = parse(LINE.as_bytes()).expect("a line");
        assert_eq!(line.time_ns, 1_795_224_638_055_784_000);
        assert_eq!((&line.host[..], &line.prog[..], &line.level[..]), ("node7", "swathe", "Usage"));
        assert_eq!(line.event, "CUT_END");
        assert_eq!(line.fields[2], ("BYTES".to_string(), "25920".to_string()));
        assert_eq!(to_text(&line), LINE);
    }

    #[test]
    fn what_needs_quotes_gets_them() {
        let is_quoted = |value: &str| {
            let mut out = Vec::new();
            push_value(&mut out, value);
            String::from_utf8(out).expect("text")
        };
        assert_eq!(is_quoted("a/b:c?d&e"), "a/b:c?d&e");
        assert_eq!(is_quoted(""), r#""""#);
        assert_eq!(is_quoted("a b"), r#""a b""#);
        assert_eq!(is_quoted("a=b"), r#""a=b""#);
        assert_eq!(is_quoted("\"\\\n\r\t\x01\x7f"), r#""\"\\\n\r\t\x01\x7f""#);
        assert_eq!(is_quoted("Größe"), "\"Größe\"");
    }

    #[test]
    fn damaged_lines() {
        let first = "DATE=20261121013038.0 HOST=h PROG=p LVL=Usage NL.EVNT=E";
        let reason = |line: &[u8]| parse(line).expect_err("damaged");
        let with = |more: &str| reason(format!("{first} {more}").as_bytes());
        assert!(parse(first.as_bytes()).is_ok());
        assert_eq!(reason(b""), UlmError::Empty);
        assert_eq!(reason(&[b'A'; LINE_BYTES + 1]), UlmError::TooLong);
        assert!(matches!(with(""), UlmError::Key { at: 56, .. }));
        assert!(matches!(with(" A=1"), UlmError::Key { at: 56, .. }));
        assert!(matches!(with("a=1"), UlmError::Key { .. }));
        assert!(matches!(with("1A=1"), UlmError::Key { .. }));
        assert!(matches!(with("A"), UlmError::Key { .. }));
        assert!(matches!(with("A B=1"), UlmError::Key { .. }));
        assert_eq!(with("A="), UlmError::NoValue { at: 58 });
        assert_eq!(with("A= B=1"), UlmError::NoValue { at: 58 });
        assert_eq!(with("A=b=c"), UlmError::Byte { at: 59, byte: b'=' });
        assert_eq!(with("A=b\t"), UlmError::Byte { at: 59, byte: b'\t' });
        assert_eq!(with("A=\u{e9}"), UlmError::Byte { at: 58, byte: 0xc3 });
        assert_eq!(with("A=\"b"), UlmError::Unclosed { at: 58 });
        assert_eq!(with("A=\"b\\"), UlmError::Unclosed { at: 58 });
        assert_eq!(with("A=\"b\"c"), UlmError::Byte { at: 61, byte: b'c' });
        assert_eq!(with("A=\"b\tc\""), UlmError::Byte { at: 60, byte: b'\t' });
        assert_eq!(with("A=\"\\q\""), UlmError::Escape { at: 59 });
        assert_eq!(with("A=\"\\x8\""), UlmError::Escape { at: 59 });
        assert_eq!(with("A=\"\\xff\""), UlmError::Escape { at: 59 });
        assert_eq!(with("A=1 A=1"), UlmError::Twice { key: "A".into() });
        assert_eq!(with("HOST=x"), UlmError::Twice { key: "HOST".into() });
        assert_eq!(reason(b"DATE=20261121013038.0"), UlmError::Missing { key: "HOST" });
        assert_eq!(
            reason(first.replace("20261121", "20261321").as_bytes()),
            UlmError::Date { found: "20261321013038.0".into() }
        );
        let not_text = [first.as_bytes(), b" A=\"\xff\""].concat();
        assert_eq!(reason(&not_text), UlmError::NotText { at: 58 });
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            time_us in 0i64..4_000_000_000_000_000,
            first in proptest::array::uniform4(any::<String>()),
            fields in proptest::collection::btree_map("[A-Z][A-Z0-9._-]{0,9}", any::<String>(), 0..8),
        ) {
            let is_first = |key: &String| FIRST.contains(&&key[..]);
            let [host, prog, level, event] = first;
            let fields = fields.into_iter().filter(|(key, _)| !is_first(key)).collect();
            let line = Line { time_ns: time_us * 1000, host, prog, level, event, fields };
            let text = to_text(&line);
            prop_assert!(!text.contains('\n'));
            prop_assert_eq!(parse(text.as_bytes()), Ok(line));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn no_damage_panics_and_what_still_parses_is_written_the_same(
            at in 0..LINE.len(), byte in any::<u8>(),
        ) {
            let mut damaged_lines = LINE.as_bytes().to_vec();
            damaged_lines[at] = byte;
            if let Ok(line) = parse(&damaged_lines) {
                prop_assert_eq!(parse(to_text(&line).as_bytes()), Ok(line));
            }
        }
    }
}
