//! From the bytes of files to columns, line by line.

use super::column::{Column, in_order};
use super::{DamagedLine, DictColumn, EventTable, Field, ReadError};
use crate::date::{Second, parse_date_after};
use crate::ulm::{FIRST, LINE_BYTES, UlmError, ValueRange, decode, key_at, text, value_at};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// At most this many different keys of a file: each costs up to eight bytes a line.
pub(super) const KEYS: usize = 128;
/// Damaged lines with their reasons stored.
pub(super) const MOST_DAMAGED_LINES: usize = 100;
/// Bytes read at a time.
pub(super) const CHUNK: usize = 1 << 20;
// The columns of the two that are not fields.
const DATE: usize = 0;
const EVENT: usize = 4;

/// A field of the line that is being looked at.
struct Pending {
    column: usize,
    /// `None`: as last time.
    value: Option<ValueRange>,
}

/// The lines so far, as columns.
pub(super) struct Reader {
    columns: Vec<Column>,
    by_key: HashMap<String, usize>,
    words: BTreeSet<String>,
    time_ns: Vec<i64>,
    pending: Vec<Pending>,
    second: Option<Second>,
    /// Number of the line over all files, and within its own.
    line: u64,
    line_of_file: u64,
    damaged_lines: Vec<DamagedLine>,
    damaged_count: u64,
}

impl Reader {
    pub fn new(words: &BTreeSet<String>) -> Reader {
        let mut reader = Reader {
            columns: Vec::new(),
            by_key: HashMap::new(),
            words: words.clone(),
            time_ns: Vec::new(),
            pending: Vec::new(),
            second: None,
            line: 0,
            line_of_file: 0,
            damaged_lines: Vec::new(),
            damaged_count: 0,
        };
        for key in FIRST {
            reader.add_column(key);
        }
        reader
    }

    fn add_column(&mut self, key: &str) -> usize {
        let column = self.columns.len();
        let names = self.words.contains(key);
        self.columns.push(Column::new(key, names, column + 1));
        self.by_key.insert(key.to_string(), column);
        column
    }

    /// Read a file. Reasons of damage name it if `with_names`.
    pub fn read_file(
        &mut self,
        path: &Path,
        with_names: bool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), ReadError> {
        let io_error = |source| ReadError::Io { path: path.to_path_buf(), source };
        // Opening a pipe would wait for its writer.
        if !std::fs::metadata(path).map_err(io_error)?.is_file() {
            return Err(ReadError::NotAFile { path: path.to_path_buf() });
        }
        let mut file = File::open(path).map_err(io_error)?;
        let mut buffer = vec![0; CHUNK + LINE_BYTES + 1];
        let mut length = 0;
        // Within a line that is too long.
        let mut is_skipping = false;
        self.line_of_file = 0;
        let name = with_names.then(|| path.display().to_string());
        let name = name.as_deref();
        loop {
            if !go_on() {
                return Err(ReadError::Interrupted);
            }
            let count = match file.read(&mut buffer[length..]) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(io_error(error)),
            };
            if self.line_of_file == 0 && length == 0 && buffer[..count].starts_with(b"\x1f\x8b") {
                return Err(ReadError::Compressed { path: path.to_path_buf() });
            }
            let end = length + count;
            let mut start = 0;
            while let Some(length) = memchr::memchr(b'\n', &buffer[start..end]) {
                let line = &buffer[start..start + length];
                start += length + 1;
                if std::mem::take(&mut is_skipping) {
                    continue;
                }
                self.add(line, name);
            }
            if count == 0 {
                if start < end && !is_skipping {
                    self.line_of_file += 1;
                    self.damage(UlmError::CutOff, name);
                }
                return Ok(());
            }
            if end - start > LINE_BYTES && !is_skipping {
                self.line_of_file += 1;
                self.damage(UlmError::TooLong, name);
                is_skipping = true;
            }
            if is_skipping {
                start = end;
            }
            buffer.copy_within(start..end, 0);
            length = end - start;
        }
    }

    fn add(&mut self, line: &[u8], name: Option<&str>) {
        self.line += 1;
        self.line_of_file += 1;
        if let Err(error) = self.add_line(line) {
            self.damage(error, name);
        }
    }

    fn damage(&mut self, error: UlmError, name: Option<&str>) {
        self.damaged_count += 1;
        if self.damaged_lines.len() < MOST_DAMAGED_LINES {
            let reason = match name {
                Some(path) => format!("{path}: {error}"),
                None => error.to_string(),
            };
            self.damaged_lines.push(DamagedLine { line: self.line_of_file, reason });
        }
    }

    /// Look at all of the line first, and take it only then.
    fn add_line(&mut self, line: &[u8]) -> Result<(), UlmError> {
        if line.is_empty() {
            return Err(UlmError::Empty);
        }
        if line.len() > LINE_BYTES {
            return Err(UlmError::TooLong);
        }
        self.pending.clear();
        let mut time_ns = 0;
        let mut at = 0;
        let mut previous = None;
        let mut expected = DATE;
        loop {
            let repeats = |column: &Column| column.repeats(&line[at..]);
            let (number, same) = match self.columns.get(expected) {
                Some(column) if repeats(column) => (expected, true),
                _ => {
                    let number = self.column_at(line, at, expected)?;
                    (number, number != expected && repeats(&self.columns[number]))
                }
            };
            let column = &mut self.columns[number];
            if column.line == self.line {
                return Err(UlmError::Twice { key: column.key.clone() });
            }
            column.line = self.line;
            if same {
                at += column.last_text.len();
                self.pending.push(Pending { column: number, value: None });
            } else {
                let value = value_at(line, at + column.start)?;
                at = value.end;
                if number == DATE {
                    let date = &line[value.start..value.end];
                    time_ns = parse_date_after(date, &mut self.second)
                        .ok_or_else(|| UlmError::Date { found: text(date) })?;
                } else {
                    if value.is_quoted {
                        decode(line, value)?;
                    }
                    self.pending.push(Pending { column: number, value: Some(value) });
                }
            }
            if let Some(previous) = previous.replace(number) {
                let previous: &mut Column = &mut self.columns[previous];
                previous.follower = number;
            }
            if at == line.len() {
                break;
            }
            at += 1;
            expected = self.columns[number].follower;
        }
        for (key, column) in FIRST.iter().zip(&self.columns) {
            if column.line != self.line {
                return Err(UlmError::Missing { key });
            }
        }
        let row = self.time_ns.len();
        self.time_ns.push(time_ns);
        for Pending { column, value } in &self.pending {
            let column = &mut self.columns[*column];
            if let Some(value) = *value {
                column.learn(line, value);
            }
            column.put(row);
        }
        Ok(())
    }

    /// The column of the key at a place of the line; most often the expected one.
    fn column_at(&mut self, line: &[u8], at: usize, expected: usize) -> Result<usize, UlmError> {
        if let Some(column) = self.columns.get(expected)
            && line[at..].starts_with(&column.last_text[..column.start])
        {
            return Ok(expected);
        }
        let key = key_at(line, at)?;
        // Keys are ASCII.
        let key = std::str::from_utf8(key).unwrap_or_default();
        match self.by_key.get(key) {
            Some(&column) => Ok(column),
            None if self.columns.len() >= KEYS => {
                Err(UlmError::TooManyKeys { key: key.to_string(), limit: KEYS })
            }
            None => Ok(self.add_column(key)),
        }
    }

    /// Keys of numbers followed by a value that is not a number.
    pub fn mixed_keys(&self) -> impl Iterator<Item = String> {
        self.columns.iter().filter(|column| column.is_mixed).map(|column| column.key.clone())
    }

    /// All columns, in the order of time.
    pub fn finish(self) -> EventTable {
        let Reader { time_ns, columns, damaged_lines, damaged_count, .. } = self;
        let order = order_of(&time_ns);
        let mut event = DictColumn::default();
        let mut fields = Vec::new();
        let rows = time_ns.len();
        for (number, column) in columns.into_iter().enumerate() {
            match column.finish(rows, order.as_deref()) {
                Some((_, Field::Words(names))) if number == EVENT => event = names,
                field => fields.extend(field),
            }
        }
        let time_ns = in_order(time_ns, order.as_deref());
        EventTable { time_ns, event, fields, damaged_lines, damaged_count }
    }
}

/// The order of time, if it differs from that of the lines. Stable.
fn order_of(time_ns: &[i64]) -> Option<Vec<u32>> {
    if time_ns.is_sorted() {
        return None;
    }
    let mut order: Vec<u32> = (0..time_ns.len() as u32).collect();
    order.sort_by_key(|&row| time_ns[row as usize]);
    Some(order)
}
