//! What of an object is cut: an HDU, or an array by its path.

use std::fmt::{Display, Formatter};
use std::sync::Arc;
use swathe_layout::ChunkGrid;

/// An array of an object. As large as a pointer: errors carry it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part(Arc<Name>);

#[derive(Debug, PartialEq, Eq)]
enum Name {
    /// An HDU, from 0.
    Hdu(usize),
    /// An array of a chunk index: its number in it, from 0, and its path.
    Array(usize, Box<str>),
}

impl Part {
    /// An HDU, from 0.
    pub fn hdu(number: usize) -> Part {
        Part(Arc::new(Name::Hdu(number)))
    }

    /// An array of a chunk index, by its number in it, from 0, and its path.
    pub fn array(number: usize, path: &str) -> Part {
        Part(Arc::new(Name::Array(number, path.into())))
    }

    /// Its number among those of its object.
    pub fn number(&self) -> usize {
        match &*self.0 {
            Name::Hdu(number) | Name::Array(number, _) => *number,
        }
    }

    /// It with all its pixels, in messages.
    pub(crate) fn what(&self) -> String {
        match &*self.0 {
            Name::Hdu(hdu) => format!("the image in HDU {hdu}"),
            Name::Array(..) => format!("the {self}"),
        }
    }

    /// All its tiles or chunks, in messages.
    pub(crate) fn pieces(&self) -> String {
        match &*self.0 {
            Name::Hdu(hdu) => format!("the tiles of HDU {hdu}"),
            Name::Array(..) => format!("the chunks of {self}"),
        }
    }

    /// One of them: a tile by its number, a chunk by its place in their grid, slowest axis first.
    pub(crate) fn piece(&self, number: u64, grid: &ChunkGrid) -> String {
        match &*self.0 {
            Name::Hdu(_) => format!("tile {number}"),
            Name::Array(..) => {
                let mut place: Vec<String> = grid.place(number).map(|at| at.to_string()).collect();
                place.reverse();
                format!("chunk ({})", place.join(", "))
            }
        }
    }
}

/// As messages name it.
impl Display for Part {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match &*self.0 {
            Name::Hdu(number) => write!(f, "HDU {number}"),
            Name::Array(_, path) => write!(f, "array {path}"),
        }
    }
}
