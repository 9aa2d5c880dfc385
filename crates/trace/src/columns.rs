//! Many lines as columns: one of times, and for every key one of words or one of numbers.
//!
//! Lines of a file resemble each other: a field is first compared with the one that stood there
//! last time, and looked at byte by byte only where it differs.

use crate::date::{Second, parse_date_after};
use crate::quick::Quick;
use crate::ulm::{FIRST, LINE_BYTES, UlmError, Value, decode, key_at, text, value_at};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Keys whose values are names, whatever they look like.
const NAMES: [&str; 19] = [
    "HOST",
    "PROG",
    "LVL",
    "NL.EVNT",
    "PID",
    "THREAD",
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
/// Different keys of a file that are kept: each costs up to eight bytes a line.
const KEYS: usize = 128;
/// Damaged lines of which the reason is kept.
const DAMAGED: usize = 100;
/// Bytes read at a time.
const CHUNK: usize = 1 << 20;
/// No value.
const NONE: i32 = -1;
// Where in the columns those two are that are no field.
const DATE: usize = 0;
const EVENT: usize = 4;

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It is compressed.
    #[error("{}: compressed; decompress it first (gunzip)", path.display())]
    Compressed {
        /// The file.
        path: PathBuf,
    },
    /// It is a folder, a pipe or the like.
    #[error("{}: not a regular file", path.display())]
    NotAFile {
        /// What was named.
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
pub struct Damaged {
    /// Its number in its file, from 1.
    pub line: u64,
    /// Why, with the file where several are read.
    pub reason: String,
}

/// A column of words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coded {
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
    /// Of words.
    Coded(Coded),
    /// Of numbers.
    Numbers(Numbers),
}

/// The events of some files, in the order of time; those of one time in the order of the files.
#[derive(Debug, Default)]
pub struct Table {
    /// Nanoseconds since 1970.
    pub time_ns: Vec<i64>,
    /// Names of the events.
    pub event: Coded,
    /// All other columns, in the order in which their keys first appear.
    pub fields: Vec<(String, Field)>,
    /// The first lines that were left out.
    pub damaged: Vec<Damaged>,
    /// How many were left out.
    pub damaged_count: u64,
}

/// Read files of events, as long as `go_on`, asked for every megabyte, says so.
///
/// # Errors
/// Where a file cannot be read. Damaged lines are left out and counted.
pub fn read<P: AsRef<Path>>(
    paths: &[P],
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Table, ReadError> {
    let mut words = BTreeSet::new();
    loop {
        let mut reader = Reader::new(&words);
        for path in paths {
            reader.read_file(path.as_ref(), paths.len() > 1, go_on)?;
        }
        // What looked like numbers and then was not is read again, as it is written.
        let before = words.len();
        words.extend(reader.mixed());
        if words.len() == before {
            return Ok(reader.finish());
        }
    }
}

struct Column {
    key: String,
    /// The key and `=`, and after `start` bytes the last value as written; none at first.
    written: Vec<u8>,
    start: usize,
    /// The column that followed last time.
    follower: usize,
    /// The line in which it was last.
    line: u64,
    /// What became of the last value.
    last: Item,
    values: Values,
    /// Whether something that is no number came after numbers.
    mixed: bool,
}

#[derive(Clone, Copy)]
enum Item {
    Code(i32),
    Number(f64),
}

enum Values {
    /// Nothing yet; `true`: names, whatever they look like.
    Unknown(bool),
    Words {
        codes: Vec<i32>,
        known: HashMap<Box<str>, i32, Quick>,
    },
    Numbers(Vec<f64>),
}

/// A field of the line that is being looked at.
struct Pending {
    column: usize,
    /// `None`: as last time.
    value: Option<Value>,
}

struct Reader {
    columns: Vec<Column>,
    by_key: HashMap<String, usize>,
    words: BTreeSet<String>,
    time_ns: Vec<i64>,
    pending: Vec<Pending>,
    second: Option<Second>,
    /// Number of the line over all files, and within its own.
    line: u64,
    line_of_file: u64,
    damaged: Vec<Damaged>,
    damaged_count: u64,
}

impl Reader {
    fn new(words: &BTreeSet<String>) -> Reader {
        let mut reader = Reader {
            columns: Vec::new(),
            by_key: HashMap::new(),
            words: words.clone(),
            time_ns: Vec::new(),
            pending: Vec::new(),
            second: None,
            line: 0,
            line_of_file: 0,
            damaged: Vec::new(),
            damaged_count: 0,
        };
        for key in FIRST {
            reader.add_column(key);
        }
        reader
    }

    fn add_column(&mut self, key: &str) -> usize {
        let column = self.columns.len();
        let names = NAMES.contains(&key) || self.words.contains(key);
        self.columns.push(Column {
            key: key.to_string(),
            written: format!("{key}=").into_bytes(),
            start: key.len() + 1,
            follower: column + 1,
            line: 0,
            last: Item::Code(NONE),
            values: Values::Unknown(names),
            mixed: false,
        });
        self.by_key.insert(key.to_string(), column);
        column
    }

    fn read_file(
        &mut self,
        path: &Path,
        named: bool,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), ReadError> {
        let failed = |source| ReadError::Io { path: path.to_path_buf(), source };
        // Opening a pipe would wait for its writer.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(ReadError::NotAFile { path: path.to_path_buf() });
        }
        let mut file = File::open(path).map_err(failed)?;
        let mut buffer = vec![0; CHUNK + LINE_BYTES + 1];
        let mut held = 0;
        // Within a line that is too long.
        let mut skipping = false;
        self.line_of_file = 0;
        let shown = named.then(|| path.display().to_string());
        let shown = shown.as_deref();
        loop {
            if !go_on() {
                return Err(ReadError::Interrupted);
            }
            let got = match file.read(&mut buffer[held..]) {
                Ok(got) => got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(failed(error)),
            };
            if self.line_of_file == 0 && held == 0 && buffer[..got].starts_with(b"\x1f\x8b") {
                return Err(ReadError::Compressed { path: path.to_path_buf() });
            }
            let end = held + got;
            let mut start = 0;
            while let Some(length) = memchr::memchr(b'\n', &buffer[start..end]) {
                let line = &buffer[start..start + length];
                start += length + 1;
                if std::mem::take(&mut skipping) {
                    continue;
                }
                self.add(line, shown);
            }
            if got == 0 {
                if start < end && !skipping {
                    self.line_of_file += 1;
                    self.damage(UlmError::CutOff, shown);
                }
                return Ok(());
            }
            if end - start > LINE_BYTES && !skipping {
                self.line_of_file += 1;
                self.damage(UlmError::TooLong, shown);
                skipping = true;
            }
            if skipping {
                start = end;
            }
            buffer.copy_within(start..end, 0);
            held = end - start;
        }
    }

    fn add(&mut self, line: &[u8], shown: Option<&str>) {
        self.line += 1;
        self.line_of_file += 1;
        if let Err(error) = self.add_line(line) {
            self.damage(error, shown);
        }
    }

    fn damage(&mut self, error: UlmError, shown: Option<&str>) {
        self.damaged_count += 1;
        if self.damaged.len() < DAMAGED {
            let reason = match shown {
                Some(path) => format!("{path}: {error}"),
                None => error.to_string(),
            };
            self.damaged.push(Damaged { line: self.line_of_file, reason });
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
        let mut before = None;
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
                at += column.written.len();
                self.pending.push(Pending { column: number, value: None });
            } else {
                let value = value_at(line, at + column.start)?;
                at = value.end;
                if number == DATE {
                    let date = &line[value.start..value.end];
                    time_ns = parse_date_after(date, &mut self.second)
                        .ok_or_else(|| UlmError::Date { found: text(date) })?;
                } else {
                    if value.quoted {
                        decode(line, value)?;
                    }
                    self.pending.push(Pending { column: number, value: Some(value) });
                }
            }
            if let Some(before) = before.replace(number) {
                let before: &mut Column = &mut self.columns[before];
                before.follower = number;
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
            && line[at..].starts_with(&column.written[..column.start])
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

    fn mixed(&self) -> impl Iterator<Item = String> {
        self.columns.iter().filter(|column| column.mixed).map(|column| column.key.clone())
    }

    fn finish(self) -> Table {
        let Reader { time_ns, columns, damaged, damaged_count, .. } = self;
        let order = order_of(&time_ns);
        let mut event = Coded::default();
        let mut fields = Vec::new();
        let rows = time_ns.len();
        for (number, column) in columns.into_iter().enumerate() {
            match column.values {
                Values::Unknown(_) => {}
                Values::Words { mut codes, known } => {
                    codes.resize(rows, NONE);
                    let mut words = vec![String::new(); known.len()];
                    for (word, code) in known {
                        words[code as usize] = word.into();
                    }
                    let coded = Coded { codes: in_order(codes, order.as_deref()), words };
                    if number == EVENT {
                        event = coded;
                    } else {
                        fields.push((column.key, Field::Coded(coded)));
                    }
                }
                Values::Numbers(mut numbers) => {
                    numbers.resize(rows, f64::NAN);
                    let numbers = in_order(numbers, order.as_deref());
                    fields.push((column.key, Field::Numbers(numbers)));
                }
            }
        }
        let time_ns = in_order(time_ns, order.as_deref());
        Table { time_ns, event, fields, damaged, damaged_count }
    }
}

impl Column {
    /// Whether a line goes on with the key and its last value.
    fn repeats(&self, rest: &[u8]) -> bool {
        let length = self.written.len();
        length > self.start
            && rest.starts_with(&self.written)
            && matches!(rest.get(length), None | Some(b' '))
    }

    /// Make a new value the last one.
    fn learn(&mut self, line: &[u8], value: Value) {
        let raw = &line[value.start..value.end];
        self.written.truncate(self.start);
        self.written.extend_from_slice(raw);
        if let Values::Unknown(names) = self.values {
            self.values = if !names && !value.quoted && number(raw).is_some() {
                Values::Numbers(Vec::new())
            } else {
                Values::Words { codes: Vec::new(), known: HashMap::default() }
            };
        }
        match &mut self.values {
            Values::Words { known, .. } => {
                // That it can be decoded was seen before.
                let word = decode(line, value).unwrap_or_default();
                let code = known.get(&*word).copied().unwrap_or_else(|| {
                    // As many words as an i32 counts are more than memory holds.
                    let code = i32::try_from(known.len()).unwrap_or(NONE);
                    known.insert(Box::from(&*word), code);
                    code
                });
                self.last = Item::Code(code);
            }
            _ => {
                let number = if value.quoted { None } else { number(raw) };
                self.mixed |= number.is_none();
                self.last = Item::Number(number.unwrap_or(f64::NAN));
            }
        }
    }

    /// Give the event of a row the last value.
    fn put(&mut self, row: usize) {
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
}

/// A number: digits, perhaps with sign, fraction and exponent.
fn number(text: &[u8]) -> Option<f64> {
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    if !unsigned.first()?.is_ascii_digit() {
        return None;
    }
    // Up to here every integer is exact.
    if unsigned.len() <= 15 && unsigned.iter().all(u8::is_ascii_digit) {
        let value =
            unsigned.iter().fold(0u64, |value, digit| value * 10 + u64::from(digit - b'0')) as f64;
        return Some(if unsigned.len() < text.len() { -value } else { value });
    }
    std::str::from_utf8(text).ok()?.parse().ok().filter(|value: &f64| value.is_finite())
}

/// The order of time, where it is not the order in which they are. Stable.
fn order_of(time_ns: &[i64]) -> Option<Vec<u32>> {
    if time_ns.is_sorted() {
        return None;
    }
    let mut order: Vec<u32> = (0..time_ns.len() as u32).collect();
    order.sort_by_key(|&row| time_ns[row as usize]);
    Some(order)
}

fn in_order<T: Copy>(values: Vec<T>, order: Option<&[u32]>) -> Vec<T> {
    match order {
        None => values,
        Some(order) => order.iter().map(|&row| values[row as usize]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ulm::Line;
    use proptest::prelude::*;
    use std::io::Write;

    fn file_of(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(bytes).expect("written");
        file
    }

    fn read(paths: &[&Path]) -> Result<Table, ReadError> {
        super::read(paths, &mut || true)
    }

    fn table_of(bytes: &[u8]) -> Table {
        read(&[file_of(bytes).path()]).expect("a table")
    }

    fn line(time: &str, event: &str, more: &str) -> String {
        format!("DATE=20261121013038.{time} HOST=h PROG=p LVL=Usage NL.EVNT={event}{more}\n")
    }

    fn field<'a>(table: &'a Table, key: &str) -> &'a Field {
        &table.fields.iter().find(|(other, _)| other == key).expect(key).1
    }

    fn words(table: &Table, key: &str) -> Vec<Option<String>> {
        let Field::Coded(coded) = field(table, key) else { panic!("{key} is of numbers") };
        let word = |&code: &i32| coded.words.get(usize::try_from(code).ok()?).cloned();
        coded.codes.iter().map(word).collect()
    }

    fn numbers(table: &Table, key: &str) -> Vec<Option<f64>> {
        let Field::Numbers(numbers) = field(table, key) else { panic!("{key} is of words") };
        numbers.iter().map(|value| Some(*value).filter(|value| !value.is_nan())).collect()
    }

    #[test]
    fn columns_of_words_and_numbers_in_the_order_of_time() {
        let text = [
            line("000002", "B", " TARGET=7 BYTES=12 NOTE=\"a b\""),
            line("000001", "A", " BYTES=1.5e3"),
            line("000002", "A", " TARGET=007"),
        ]
        .concat();
        let table = table_of(text.as_bytes());
        let second = 1_795_224_638_000_000_000;
        assert_eq!(table.time_ns, [second + 1000, second + 2000, second + 2000]);
        assert_eq!(table.event.words, ["B", "A"]);
        assert_eq!(table.event.codes, [1, 0, 1]);
        let some = |text: &str| Some(text.to_string());
        assert_eq!(words(&table, "HOST"), [some("h"), some("h"), some("h")]);
        assert_eq!(words(&table, "TARGET"), [None, some("7"), some("007")]);
        assert_eq!(words(&table, "NOTE"), [None, some("a b"), None]);
        assert_eq!(numbers(&table, "BYTES"), [Some(1500.0), Some(12.0), None]);
        assert_eq!((table.damaged_count, table.damaged.len()), (0, 0));
    }

    #[test]
    fn a_column_with_one_value_that_is_no_number_keeps_all_as_written() {
        let text = [line("1", "E", " X=007"), line("2", "E", " X=1.50"), line("3", "E", " X=a")];
        let table = table_of(text.concat().as_bytes());
        let expected = ["007", "1.50", "a"].map(|word| Some(word.to_string()));
        assert_eq!(words(&table, "X"), expected);
    }

    #[test]
    fn damaged_lines_are_left_out_and_counted() {
        let good = line("1", "E", " A=1");
        let long = line("2", "E", &format!(" A={}", "x".repeat(3 * CHUNK)));
        let text = format!("{good}\n{long}rubbish\n{good}{good}DATE=2026");
        let table = table_of(text.as_bytes());
        assert_eq!(table.time_ns.len(), 3);
        let lines: Vec<u64> = table.damaged.iter().map(|damaged| damaged.line).collect();
        assert_eq!(lines, [2, 3, 4, 7]);
        assert_eq!(table.damaged_count, 4);
        assert!(table.damaged[1].reason.contains("longer than"), "{:?}", table.damaged);
        assert!(table.damaged[3].reason.contains("cut off"), "{:?}", table.damaged);
        let many = table_of("\n".repeat(1000).as_bytes());
        assert_eq!((many.damaged_count, many.damaged.len()), (1000, DAMAGED));
    }

    #[test]
    fn a_damaged_line_leaves_nothing_behind() {
        let text = [line("1", "E", " A=1"), line("2", "E", " A=2 NEW=x B="), line("3", "E", "")];
        let table = table_of(text.concat().as_bytes());
        assert_eq!(numbers(&table, "A"), [Some(1.0), None]);
        assert!(!table.fields.iter().any(|(key, _)| key == "NEW"));
    }

    #[test]
    fn keys_beyond_the_limit_are_damage() {
        let text: String = (0..200).map(|n| line("1", "E", &format!(" K{n}=1"))).collect();
        let table = table_of(text.as_bytes());
        assert_eq!(table.time_ns.len(), KEYS - FIRST.len());
        assert_eq!(table.damaged_count as usize, 200 - (KEYS - FIRST.len()));
    }

    #[test]
    fn several_files_are_one_table_and_what_is_no_file_is_refused() {
        let (a, b) = (file_of(line("2", "A", "").as_bytes()), file_of(b"x\n"));
        let c = file_of(line("1", "C", "").as_bytes());
        let table = read(&[a.path(), b.path(), c.path()]).expect("a table");
        assert_eq!(table.event.codes, [1, 0]);
        assert!(table.damaged[0].reason.starts_with(&b.path().display().to_string()));
        let gz = file_of(b"\x1f\x8b\x08\0\0");
        assert!(matches!(read(&[gz.path()]), Err(ReadError::Compressed { .. })));
        assert!(matches!(read(&["/dev/null".as_ref()]), Err(ReadError::NotAFile { .. })));
        assert!(matches!(read(&["/no/such".as_ref()]), Err(ReadError::Io { .. })));
        let stopped = super::read(&[a.path()], &mut || false);
        assert!(matches!(stopped, Err(ReadError::Interrupted)));
        assert_eq!(table_of(b"").time_ns.len(), 0);
    }

    #[test]
    fn numbers_are_what_looks_like_one() {
        for text in ["0", "-1", "007", "1.5", "1e9", "123456789012345678901"] {
            assert_eq!(number(text.as_bytes()), text.parse().ok(), "{text}");
        }
        for text in ["", "-", "inf", "nan", "1x", ".5", "+1", "1e999", "0x10", "-inf"] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn columns_hold_what_the_lines_say(
            lines in proptest::collection::vec(
                (0i64..3_000_000, "[A-C]", proptest::collection::btree_map("[A-D]", "[ab\"=0-9ü ]{0,3}", 0..4)),
                0..40,
            ),
        ) {
            let mut text = Vec::new();
            let mut expected = Vec::new();
            for (time_us, event, fields) in lines {
                let line = Line {
                    time_ns: time_us * 1000,
                    host: "h".into(),
                    prog: "p".into(),
                    level: "Usage".into(),
                    event,
                    fields: fields.into_iter().collect(),
                };
                line.push(&mut text);
                text.push(b'\n');
                expected.push(line);
            }
            expected.sort_by_key(|line| line.time_ns);
            let table = table_of(&text);
            prop_assert_eq!(table.damaged_count, 0);
            prop_assert_eq!(table.time_ns.len(), expected.len());
            for (row, line) in expected.iter().enumerate() {
                prop_assert_eq!(table.time_ns[row], line.time_ns);
                prop_assert_eq!(&table.event.words[table.event.codes[row] as usize], &line.event);
                for (key, column) in &table.fields {
                    let wanted = line.fields.iter().find(|(other, _)| other == key);
                    let wanted = wanted.map(|(_, value)| value);
                    match column {
                        Field::Coded(coded) => {
                            let found = usize::try_from(coded.codes[row]).ok();
                            let found = found.map(|code| &coded.words[code]);
                            if key.len() == 1 {
                                prop_assert_eq!(found, wanted);
                            }
                        }
                        Field::Numbers(numbers) => {
                            let wanted = wanted.map(|value| value.parse::<f64>().expect("a number"));
                            prop_assert_eq!(Some(numbers[row]).filter(|n| !n.is_nan()), wanted);
                        }
                    }
                }
            }
        }

        #[test]
        fn no_bytes_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0usize..60,
        ) {
            let mut text = line("1", "E", " A=\"x\\n\" B=2").into_bytes();
            text.truncate(cut);
            text.extend(bytes);
            table_of(&text);
        }
    }
}
