//! Plans: which byte ranges to read for a set of segments. Numbers in, values out; no I/O.
#![warn(missing_docs)]

mod windows;

pub use windows::{Break, Reach, windows};
