//! Many lines as columns: one of times, and for every key one of words or one of numbers.
//!
//! Lines of a file resemble each other: a field is first compared with the one at the same place
//! of the last line, and read byte by byte only if it differs.

mod column;
mod reader;

use reader::Reader;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file is compressed.
    #[error("{}: compressed; decompress it first (gunzip)", path.display())]
    Compressed {
        /// The file.
        path: PathBuf,
    },
    /// The path is a folder, a pipe or the like.
    #[error("{}: not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// `go_on` said no.
    #[error("interrupted")]
    Interrupted,
    /// The system says no.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A line that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedLine {
    /// Its number in its file, from 1.
    pub line: u64,
    /// Why, with the file if several are read.
    pub reason: String,
}

/// A column of words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DictColumn {
    /// For each event which word, or -1 for none.
    pub codes: Vec<i32>,
    /// The words.
    pub words: Vec<String>,
}

/// A column of numbers, NaN for none.
pub type Numbers = Vec<f64>;

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// A column of words.
    Words(DictColumn),
    /// A column of numbers.
    Numbers(Numbers),
}

/// The events of some files, in the order of time; those of one time in the order of the files.
#[derive(Debug, Default)]
pub struct EventTable {
    /// Nanoseconds since 1970.
    pub time_ns: Vec<i64>,
    /// Names of the events.
    pub event: DictColumn,
    /// All other columns, in the order in which their keys first appear.
    pub fields: Vec<(String, Field)>,
    /// The first lines that were left out.
    pub damaged_lines: Vec<DamagedLine>,
    /// How many were left out.
    pub damaged_count: u64,
}

/// Read files of events, until `go_on`, called every megabyte, returns false.
///
/// # Errors
/// If a file cannot be read. Damaged lines are left out and counted.
pub fn read<P: AsRef<Path>>(
    paths: &[P],
    go_on: &mut dyn FnMut() -> bool,
) -> Result<EventTable, ReadError> {
    let mut words = BTreeSet::new();
    loop {
        let mut reader = Reader::new(&words);
        for path in paths {
            reader.read_file(path.as_ref(), paths.len() > 1, go_on)?;
        }
        // What looked like numbers and then was not is read again, as it is written.
        let before = words.len();
        words.extend(reader.mixed_keys());
        if words.len() == before {
            return Ok(reader.finish());
        }
    }
}

#[cfg(test)]
mod tests;
