//! One column as it grows: of words or of numbers, whichever its values look like.
//!
//! What every field of every line goes through is `inline`: it is called from another module.

use super::{DictColumn, Field};
use crate::ulm::{ValueRange, decode};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// Keys with names as values, also if a name looks like a number.
const NAMES: [&str; 20] = [
    "HOST",
    "PROG",
    "LVL",
    "NL.EVNT",
    "PID",
    "THREAD",
    "PORTAL",
    "JOB",
    "TARGET",
    "OBJECT",
    "REQUEST",
    "WORKER",
    "STORE",
    "PEER",
    "SERVER",
    "RESULT",
    "REASON",
    "DEVICE",
    "INTERFACE",
    "SENDER",
];
/// No value.
const NONE: i32 = -1;

/// A column while lines are read.
pub(super) struct Column {
    pub key: String,
    /// The key and `=`, and after `start` bytes the last value as written; none at first.
    pub last_text: Vec<u8>,
    pub start: usize,
    /// The column that followed last time.
    pub follower: usize,
    /// The line in which it was last.
    pub line: u64,
    /// The last value.
    last: Item,
    values: Values,
    /// Whether a value that is not a number followed numbers.
    pub is_mixed: bool,
}

#[derive(Clone, Copy)]
enum Item {
    Code(i32),
    Number(f64),
}

enum Values {
    /// Nothing yet; `true`: names, also those that look like numbers.
    Unknown(bool),
    Words {
        codes: Vec<i32>,
        code_of_word: HashMap<Box<str>, i32, RandomState>,
    },
    Numbers(Vec<f64>),
}

impl Column {
    /// A column of a key; of `names`, if that is known, also if they look like numbers.
    pub fn new(key: &str, names: bool, follower: usize) -> Column {
        Column {
            key: key.to_string(),
            last_text: format!("{key}=").into_bytes(),
            start: key.len() + 1,
            follower,
            line: 0,
            last: Item::Code(NONE),
            values: Values::Unknown(names || NAMES.contains(&key)),
            is_mixed: false,
        }
    }

    /// Whether a line continues with the key and its last value.
    #[inline]
    pub fn repeats(&self, rest: &[u8]) -> bool {
        let length = self.last_text.len();
        length > self.start
            && rest.starts_with(&self.last_text)
            && matches!(rest.get(length), None | Some(b' '))
    }

    /// Make a new value the last one.
    #[inline]
    pub fn learn(&mut self, line: &[u8], value: ValueRange) {
        let raw = &line[value.start..value.end];
        self.last_text.truncate(self.start);
        self.last_text.extend_from_slice(raw);
        if let Values::Unknown(names) = self.values {
            self.values = if !names && !value.is_quoted && number(raw).is_some() {
                Values::Numbers(Vec::new())
            } else {
                Values::Words { codes: Vec::new(), code_of_word: HashMap::default() }
            };
        }
        match &mut self.values {
            Values::Words { code_of_word, .. } => {
                // That it can be decoded was seen before.
                let word = decode(line, value).unwrap_or_default();
                let code = code_of_word.get(&*word).copied().unwrap_or_else(|| {
                    // As many words as an i32 counts are more than memory holds.
                    let code = i32::try_from(code_of_word.len()).unwrap_or(NONE);
                    code_of_word.insert(Box::from(&*word), code);
                    code
                });
                self.last = Item::Code(code);
            }
            _ => {
                let number = if value.is_quoted { None } else { number(raw) };
                self.is_mixed |= number.is_none();
                self.last = Item::Number(number.unwrap_or(f64::NAN));
            }
        }
    }

    /// Set the value of a row's event to the last value.
    #[inline]
    pub fn put(&mut self, row: usize) {
        match (&mut self.values, self.last) {
            (Values::Words { codes, .. }, Item::Code(code)) => {
                codes.resize(row, NONE);
                codes.push(code);
            }
            (Values::Numbers(numbers), Item::Number(number)) => {
                numbers.resize(row, f64::NAN);
                numbers.push(number);
            }
            _ => {}
        }
    }

    /// Key and values, for all rows and in this order; `None` if no row has the key.
    pub fn finish(self, rows: usize, order: Option<&[u32]>) -> Option<(String, Field)> {
        let field = match self.values {
            Values::Unknown(_) => return None,
            Values::Words { mut codes, code_of_word } => {
                codes.resize(rows, NONE);
                let mut words = vec![String::new(); code_of_word.len()];
                for (word, code) in code_of_word {
                    words[code as usize] = word.into();
                }
                Field::Words(DictColumn { codes: in_order(codes, order), words })
            }
            Values::Numbers(mut numbers) => {
                numbers.resize(rows, f64::NAN);
                Field::Numbers(in_order(numbers, order))
            }
        };
        Some((self.key, field))
    }
}

/// A number: digits, perhaps with sign, fraction and exponent.
pub(super) fn number(text: &[u8]) -> Option<f64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if !digits.first()?.is_ascii_digit() {
        return None;
    }
    // Up to here every integer is exact.
    if digits.len() <= 15 && digits.iter().all(u8::is_ascii_digit) {
        let value =
            digits.iter().fold(0u64, |value, digit| value * 10 + u64::from(digit - b'0')) as f64;
        return Some(if digits.len() < text.len() { -value } else { value });
    }
    std::str::from_utf8(text).ok()?.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Values in another order, if one is set.
pub(super) fn in_order<T: Copy>(values: Vec<T>, order: Option<&[u32]>) -> Vec<T> {
    match order {
        None => values,
        Some(order) => order.iter().map(|&row| values[row as usize]).collect(),
    }
}
