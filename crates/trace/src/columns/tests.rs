use super::column::number;
use super::reader::{CHUNK, KEYS, MOST_DAMAGED_LINES};
use super::*;
use crate::ulm::{FIRST, Line};
use proptest::prelude::*;
use std::io::Write;

fn file_of(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("written");
    file
}

fn read(paths: &[&Path]) -> Result<EventTable, ReadError> {
    super::read(paths, &mut || true)
}

fn table_of(bytes: &[u8]) -> EventTable {
    read(&[file_of(bytes).path()]).expect("a table")
}

fn line(time: &str, event: &str, more: &str) -> String {
    format!("DATE=20261121013038.{time} HOST=h PROG=p LVL=Usage NL.EVNT={event}{more}\n")
}

fn field<'a>(table: &'a EventTable, key: &str) -> &'a Field {
    &table.fields.iter().find(|(other, _)| other == key).expect(key).1
}

fn words(table: &EventTable, key: &str) -> Vec<Option<String>> {
    let Field::Words(column) = field(table, key) else { panic!("{key} is of numbers") };
    let word = |&code: &i32| column.words.get(usize::try_from(code).ok()?).cloned();
    column.codes.iter().map(word).collect()
}

fn numbers(table: &EventTable, key: &str) -> Vec<Option<f64>> {
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
    assert_eq!((table.damaged_count, table.damaged_lines.len()), (0, 0));
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
    let lines: Vec<u64> =
        table.damaged_lines.iter().map(|damaged_lines| damaged_lines.line).collect();
    assert_eq!(lines, [2, 3, 4, 7]);
    assert_eq!(table.damaged_count, 4);
    assert!(table.damaged_lines[1].reason.contains("longer than"), "{:?}", table.damaged_lines);
    assert!(table.damaged_lines[3].reason.contains("cut off"), "{:?}", table.damaged_lines);
    let many = table_of("\n".repeat(1000).as_bytes());
    assert_eq!((many.damaged_count, many.damaged_lines.len()), (1000, MOST_DAMAGED_LINES));
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
    assert!(table.damaged_lines[0].reason.starts_with(&b.path().display().to_string()));
    let gz = file_of(b"\x1f\x8b\x08\0\0");
    assert!(matches!(read(&[gz.path()]), Err(ReadError::Compressed { .. })));
    assert!(matches!(read(&["/dev/null".as_ref()]), Err(ReadError::NotAFile { .. })));
    assert!(matches!(read(&["/no/such".as_ref()]), Err(ReadError::Io { .. })));
    let result = super::read(&[a.path()], &mut || false);
    assert!(matches!(result, Err(ReadError::Interrupted)));
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
                let expected = line.fields.iter().find(|(other, _)| other == key);
                let expected = expected.map(|(_, value)| value);
                match column {
                    Field::Words(column) => {
                        let value = usize::try_from(column.codes[row]).ok();
                        let value = value.map(|code| &column.words[code]);
                        if key.len() == 1 {
                            prop_assert_eq!(value, expected);
                        }
                    }
                    Field::Numbers(numbers) => {
                        let expected = expected.map(|value| value.parse::<f64>().expect("a number"));
                        prop_assert_eq!(Some(numbers[row]).filter(|n| !n.is_nan()), expected);
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
