//! One header card: 80 bytes, read and written.

use serde::{Deserialize, Serialize};

/// Bytes of a card.
pub const CARD: usize = 80;

/// A card exactly as stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Card(pub [u8; CARD]);

impl std::fmt::Debug for Card {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0).trim_end())
    }
}

impl Serialize for Card {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Card {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Card, D::Error> {
        let bytes: &[u8] = Deserialize::deserialize(deserializer)?;
        let expected = "a card of 80 bytes";
        bytes
            .try_into()
            .map(Card)
            .map_err(|_| serde::de::Error::invalid_length(bytes.len(), &expected))
    }
}

/// The value field of a card.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `T` or `F`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A real number.
    Float(f64),
    /// A string, trailing blanks removed.
    Str(String),
    /// No value, or one of another form.
    Other(String),
}

impl Card {
    /// A card from text, padded with blanks or cut to 80 bytes.
    pub fn from_text(text: &str) -> Card {
        let mut bytes = [b' '; CARD];
        for (to, from) in bytes.iter_mut().zip(text.bytes()) {
            *to = from;
        }
        Card(bytes)
    }

    /// A card with a value in fixed format.
    pub fn fixed_format(keyword: &str, value: &str, comment: &str) -> Card {
        let mut card = Card([b' '; CARD]);
        let equals = keyword.len().max(8);
        let start = equals + 2 + 20usize.saturating_sub(value.len());
        card.put(0, keyword);
        card.put(equals, "=");
        card.put(start, value);
        let end = start + value.len();
        if !comment.is_empty() && end + 3 < CARD {
            card.put(end + 1, "/");
            card.put(end + 3, comment);
        }
        card
    }

    /// Write text at a byte, as much of it as the card has room for.
    fn put(&mut self, at: usize, text: &str) {
        let room = self.0.iter_mut().skip(at);
        room.zip(text.bytes()).for_each(|(to, from)| *to = from);
    }

    /// A card with a string value.
    pub fn string(keyword: &str, value: &str, comment: &str) -> Card {
        let literal = format!("'{:<8}'", value.replace('\'', "''"));
        let mut text = format!("{keyword:<8}= {literal:<20}");
        if !comment.is_empty() && text.len() + 3 < CARD {
            text.push_str(" / ");
            text.push_str(comment);
        }
        Card::from_text(&text)
    }

    /// The first eight bytes without trailing blanks.
    pub fn keyword(&self) -> &[u8] {
        self.0[..8].trim_ascii_end()
    }

    /// Whether the keyword is this one.
    pub fn is(&self, keyword: &str) -> bool {
        self.keyword() == keyword.as_bytes()
    }

    /// Whether bytes 9 and 10 say that a value follows.
    pub fn has_value(&self) -> bool {
        self.0[8] == b'=' && self.0[9] == b' '
    }

    /// The bytes after the value indicator.
    pub fn body(&self) -> &[u8] {
        if self.has_value() { &self.0[10..] } else { &self.0[8..] }
    }

    /// The value, if the card has one. A string that is continued in CONTINUE cards ends in `&`.
    pub fn value(&self) -> Option<Value> {
        self.has_value().then(|| parse_value(self.body()).0)
    }

    /// The text after the slash that ends the value.
    pub fn comment(&self) -> String {
        if !self.has_value() {
            return String::new();
        }
        let rest = parse_value(self.body()).1;
        let rest = rest.strip_prefix(b"/").unwrap_or(rest);
        String::from_utf8_lossy(rest.trim_ascii()).into_owned()
    }

    /// The same card with another number, keeping keyword and comment.
    pub fn with_number(&self, value: &str) -> Card {
        let keyword = String::from_utf8_lossy(self.keyword()).into_owned();
        Card::fixed_format(&keyword, value, &self.comment())
    }
}

/// The value at the start of a field, and what follows it (from its slash).
pub(crate) fn parse_value(field: &[u8]) -> (Value, &[u8]) {
    let field = field.trim_ascii_start();
    if field.first() == Some(&b'\'') {
        return parse_string(&field[1..]);
    }
    let end = field.iter().position(|&byte| byte == b'/').unwrap_or(field.len());
    let text = String::from_utf8_lossy(field[..end].trim_ascii()).into_owned();
    let value = match text.as_str() {
        "T" => Value::Bool(true),
        "F" => Value::Bool(false),
        _ => match text.parse::<i64>() {
            Ok(value) => Value::Int(value),
            Err(_) => parse_float(&text).map_or(Value::Other(text), Value::Float),
        },
    };
    (value, &field[end..])
}

/// A real number of the standard: an exponent may be marked by D, and `inf` is not one.
fn parse_float(text: &str) -> Option<f64> {
    let plain =
        |byte: u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'E' | b'e' | b'D' | b'd');
    if text.is_empty() || !text.bytes().all(plain) {
        return None;
    }
    text.replace(['D', 'd'], "E").parse().ok()
}

fn parse_string(rest: &[u8]) -> (Value, &[u8]) {
    let mut text = Vec::new();
    let mut at = 0;
    while at < rest.len() {
        if rest[at] == b'\'' {
            if rest.get(at + 1) != Some(&b'\'') {
                at += 1;
                break;
            }
            at += 1;
        }
        text.push(rest[at]);
        at += 1;
    }
    let value = String::from_utf8_lossy(text.trim_ascii_end()).into_owned();
    (Value::Str(value), rest[at..].trim_ascii_start())
}

/// A real number as a card holds it: the shortest text that reads back as the same number, with a
/// point or an exponent.
pub(crate) fn format_float(value: f64) -> String {
    let plain = format!("{value:?}");
    let text = if plain.len() <= 20 { plain } else { format!("{value:e}") };
    let text = text.replace('e', "E");
    match text.find('E') {
        Some(at) if !text[..at].contains('.') => format!("{}.0{}", &text[..at], &text[at..]),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        Card::from_text(text).value().unwrap()
    }

    #[test]
    fn values_of_every_kind_are_read() {
        assert_eq!(value("SIMPLE  =                    T / yes"), Value::Bool(true));
        assert_eq!(value("NAXIS1  =                 2048"), Value::Int(2048));
        assert_eq!(value("CRVAL1  =  1.5D2 / D exponent"), Value::Float(150.0));
        assert_eq!(value("OBJECT  = 'it''s / here ' / comment"), Value::Str("it's / here".into()));
        assert_eq!(value("BLANK   ="), Value::Other(String::new()));
    }

    #[test]
    fn what_a_card_has_no_room_for_is_cut() {
        let text = |value: &str, comment: &str| {
            String::from_utf8(Card::fixed_format("A", value, comment).0.to_vec()).unwrap()
        };
        assert_eq!(text("1", "c"), format!("{:<80}", format!("A       = {:>20} / c", 1)));
        assert_eq!(text("1", &"c".repeat(99)), format!("A       = {:>20} / {}", 1, "c".repeat(47)));
        assert_eq!(text(&"1".repeat(66), "c"), format!("A       = {} / c", "1".repeat(66)));
        assert_eq!(text(&"1".repeat(67), "c"), format!("A       = {}   ", "1".repeat(67)));
        assert_eq!(text(&"1".repeat(99), "c"), format!("A       = {}", "1".repeat(70)));
    }

    #[test]
    fn comment_is_kept_with_a_new_number() {
        let card = Card::from_text("CRPIX1  =              1024.5 / reference pixel");
        assert_eq!(
            card.with_number("24.5"),
            Card::from_text("CRPIX1  =                 24.5 / reference pixel")
        );
    }

    #[test]
    fn floats_come_back_as_they_were() {
        for value in [1024.5, -0.1, 1e-300, 123456789012345.7, 1.0 / 3.0, 3e22] {
            let text = format_float(value);
            assert_eq!(text.parse::<f64>().unwrap(), value, "{text}");
            assert!(text.contains('.'), "{text}");
        }
    }
}
