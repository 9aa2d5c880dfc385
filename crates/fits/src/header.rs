//! A header: cards up to END, parsed and looked up.

use crate::card::{CARD, Card, Value, parse_value};
use crate::error::FitsError;
use serde::{Deserialize, Serialize};

/// FITS files consist of blocks of this many bytes.
pub const BLOCK: usize = 2880;
/// A header with more cards is refused. The largest known have a few thousand.
const CARD_LIMIT: usize = 100_000;

/// The cards of a header, without END, exactly as stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    cards: Vec<Card>,
}

/// The result of parsing.
#[derive(Clone, Debug)]
pub enum HeaderParse {
    /// A whole header.
    Complete {
        /// It.
        header: Header,
        /// Bytes it takes, a multiple of 2880.
        bytes: usize,
    },
    /// No END yet: more bytes are needed.
    Incomplete,
}

impl Header {
    /// Find the header that the bytes begin with.
    ///
    /// # Errors
    /// [`FitsError::NotFits`] if they do not begin with a header, [`FitsError::TooManyCards`].
    pub fn parse(bytes: &[u8]) -> Result<HeaderParse, FitsError> {
        check_start(bytes)?;
        let mut cards = Vec::with_capacity((bytes.len() / CARD).min(512));
        for card in bytes.chunks_exact(CARD) {
            if &card[..3] == b"END" && card[3..8].iter().all(|&byte| byte == b' ' || byte == 0) {
                let end = (cards.len() + 1) * CARD;
                return Ok(HeaderParse::Complete {
                    header: Header { cards },
                    bytes: end.next_multiple_of(BLOCK),
                });
            }
            if cards.len() == CARD_LIMIT {
                return Err(FitsError::TooManyCards { limit: CARD_LIMIT });
            }
            let mut bytes = [0; CARD];
            bytes.copy_from_slice(card);
            cards.push(Card(bytes));
        }
        Ok(HeaderParse::Incomplete)
    }

    /// A header of these cards.
    pub fn from_cards(cards: Vec<Card>) -> Header {
        Header { cards }
    }

    /// The cards, in order.
    pub fn cards(&self) -> &[Card] {
        &self.cards
    }

    /// The cards, to be changed.
    pub(crate) fn cards_mut(&mut self) -> &mut Vec<Card> {
        &mut self.cards
    }

    /// The header as stored: cards, END, blanks to the end of the block.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(((self.cards.len() + 1) * CARD).next_multiple_of(BLOCK));
        for card in &self.cards {
            bytes.extend_from_slice(&card.0);
        }
        end_header(&mut bytes, 0);
        bytes
    }

    /// The first card with a keyword (as astropy, which ignores repetitions).
    pub fn card(&self, keyword: &str) -> Option<&Card> {
        self.position(keyword).map(|at| &self.cards[at])
    }

    pub(crate) fn position(&self, keyword: &str) -> Option<usize> {
        self.cards.iter().position(|card| card.is(keyword) && card.has_value())
    }

    /// Whether a keyword has a value.
    pub fn has(&self, keyword: &str) -> bool {
        self.position(keyword).is_some()
    }

    /// The value of a keyword; strings continued in CONTINUE cards are joined.
    pub fn value(&self, keyword: &str) -> Option<Value> {
        let at = self.position(keyword)?;
        match self.cards[at].value()? {
            Value::Str(text) if text.ends_with('&') => {
                Some(Value::Str(self.join_continuation(at, text)))
            }
            value => Some(value),
        }
    }

    fn join_continuation(&self, at: usize, mut text: String) -> String {
        for card in &self.cards[at + 1..] {
            if !card.is("CONTINUE") || !text.ends_with('&') {
                break;
            }
            let (Value::Str(more), _) = parse_value(&card.0[8..]) else { break };
            text.pop();
            text.push_str(&more);
        }
        text
    }

    /// An integer; `None` if the keyword is absent or has no value.
    ///
    /// # Errors
    /// [`FitsError::Value`] if it is something else.
    pub fn get_int(&self, keyword: &str) -> Result<Option<i64>, FitsError> {
        match self.value(keyword) {
            None => Ok(None),
            Some(Value::Int(value)) => Ok(Some(value)),
            Some(Value::Float(value)) if value.fract() == 0.0 && value.abs() < 9e15 => {
                Ok(Some(value as i64))
            }
            Some(Value::Other(text)) if text.is_empty() => Ok(None),
            Some(other) => Err(wrong(keyword, "an integer", &other)),
        }
    }

    /// A number; `None` if the keyword is absent or has no value.
    ///
    /// # Errors
    /// [`FitsError::Value`] if it is something else.
    pub fn get_float(&self, keyword: &str) -> Result<Option<f64>, FitsError> {
        match self.value(keyword) {
            None => Ok(None),
            Some(Value::Int(value)) => Ok(Some(value as f64)),
            Some(Value::Float(value)) => Ok(Some(value)),
            Some(Value::Other(text)) if text.is_empty() => Ok(None),
            Some(other) => Err(wrong(keyword, "a number", &other)),
        }
    }

    /// A logical value; `None` if the keyword is absent.
    ///
    /// # Errors
    /// [`FitsError::Value`] if it is something else.
    pub fn get_bool(&self, keyword: &str) -> Result<Option<bool>, FitsError> {
        match self.value(keyword) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(other) => Err(wrong(keyword, "T or F", &other)),
        }
    }

    /// A string; `None` if the keyword is absent.
    ///
    /// # Errors
    /// [`FitsError::Value`] if it is something else.
    pub fn get_str(&self, keyword: &str) -> Result<Option<String>, FitsError> {
        match self.value(keyword) {
            None => Ok(None),
            Some(Value::Str(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(keyword, "a string", &other)),
        }
    }
}

fn wrong(keyword: &str, expected: &'static str, found: &Value) -> FitsError {
    let found = match found {
        Value::Bool(true) => "T".into(),
        Value::Bool(false) => "F".into(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Str(text) => format!("the string {text:?}"),
        Value::Other(text) => format!("{text:?}"),
    };
    FitsError::Value { keyword: keyword.to_string(), expected, found }
}

/// Append END to the cards that begin at `start`, and blanks to the end of the block.
pub(crate) fn end_header(bytes: &mut Vec<u8>, start: usize) {
    bytes.extend_from_slice(&Card::from_text("END").0);
    let length = (bytes.len() - start).next_multiple_of(BLOCK);
    bytes.resize(start + length, b' ');
}

fn check_start(bytes: &[u8]) -> Result<(), FitsError> {
    let head = &bytes[..bytes.len().min(8)];
    let begins = |start: &[u8]| head.starts_with(&start[..head.len().min(start.len())]);
    if begins(b"SIMPLE  ") || begins(b"XTENSION") {
        return Ok(());
    }
    let text: String = bytes[..bytes.len().min(24)]
        .iter()
        .flat_map(|&byte| std::ascii::escape_default(byte))
        .map(char::from)
        .collect();
    Err(FitsError::NotFits {
        expected: "a header that begins with SIMPLE or XTENSION",
        found: format!("\"{text}\""),
    })
}
