//! The fields of events, as they are written.

use crate::ulm::{is_bare, push_short};
use std::sync::Arc;
use std::time::Duration;

/// The fields of an event.
pub struct Record<'a>(pub(crate) &'a mut Vec<u8>);

/// Fields that many events have, ready to be written.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    pub(crate) own: Vec<u8>,
    /// Those of others, too, which come last: recorded once for many events in a row.
    pub(crate) common: Option<Arc<[u8]>>,
}

impl Ids {
    /// Whether the common fields are the same.
    pub(crate) fn shares(&self, common: &Option<Arc<[u8]>>) -> bool {
        match (&self.common, common) {
            (None, None) => true,
            (Some(mine), Some(others)) => Arc::ptr_eq(mine, others),
            _ => false,
        }
    }

    /// Add one.
    pub fn push(&mut self, key: &str, value: &str) {
        Record(&mut self.own).text(key, value);
    }

    /// The same fields, as the common ones of many events.
    pub fn share(mut self) -> Ids {
        self.own.extend_from_slice(self.common.as_deref().unwrap_or_default());
        Ids { own: Vec::new(), common: Some(self.own.into()) }
    }

    /// The same fields with one more before them.
    pub fn after(&self, key: &str, value: &str) -> Ids {
        let mut own = Vec::with_capacity(key.len() + value.len() + 2 + self.own.len());
        Record(&mut own).text(key, value);
        own.extend_from_slice(&self.own);
        Ids { own, common: self.common.clone() }
    }
}

impl Record<'_> {
    /// A text. A long one is cut.
    pub fn text(&mut self, key: &str, value: &str) -> &mut Self {
        push_short(self.0, key, value);
        self
    }

    /// A word that needs no quotes.
    #[inline]
    pub fn word(&mut self, key: &'static str, word: &'static str) -> &mut Self {
        debug_assert!(is_bare(word), "{key}={word}");
        for part in [" ", key, "=", word] {
            self.0.extend_from_slice(part.as_bytes());
        }
        self
    }

    /// An id, as 16 hexadecimal digits.
    pub fn id(&mut self, key: &str, id: u64) -> &mut Self {
        let digits: [u8; 16] = std::array::from_fn(|at| {
            let digit = (id >> (60 - 4 * at)) & 0xf;
            b"0123456789abcdef"[digit as usize]
        });
        for part in [b" ", key.as_bytes(), b"=", &digits] {
            self.0.extend_from_slice(part);
        }
        self
    }

    /// A time in seconds, to the microsecond.
    pub fn seconds(&mut self, key: &str, time: Duration) -> &mut Self {
        self.text(key, &format!("{:.6}", time.as_secs_f64()))
    }

    /// A whole number.
    #[inline]
    pub fn number(&mut self, key: &str, value: u64) -> &mut Self {
        self.0.push(b' ');
        self.0.extend_from_slice(key.as_bytes());
        self.0.push(b'=');
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = value;
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.0.extend_from_slice(&digits[at..]);
        self
    }
}
