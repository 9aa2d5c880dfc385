//! What of an object is cut: an HDU, or an array by its path.

use std::fmt::{Display, Formatter};
use std::sync::Arc;

/// An array of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// An HDU, from 0.
    Hdu(usize),
    /// An array of a chunk index.
    Array {
        /// Its number in the index, from 0.
        number: usize,
        /// Its path.
        path: Arc<str>,
    },
}

impl Part {
    /// Its number among those of its object.
    pub fn number(&self) -> usize {
        match self {
            Part::Hdu(number) | Part::Array { number, .. } => *number,
        }
    }

    /// What its pieces are called.
    pub(crate) fn piece(&self) -> &'static str {
        match self {
            Part::Hdu(_) => "tile",
            Part::Array { .. } => "chunk",
        }
    }
}

/// As messages name it.
impl Display for Part {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Part::Hdu(number) => write!(f, "HDU {number}"),
            Part::Array { path, .. } => write!(f, "array {path}"),
        }
    }
}
