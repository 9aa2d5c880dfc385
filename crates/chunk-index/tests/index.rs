//! Indexes are checked before anything in them is used.

use proptest::prelude::*;
use std::sync::Arc;
use swathe_array::Region;
use swathe_chunk_index::{ArrayStorage, ChunkIndex, IndexError};
use swathe_layout::{ChunkTable, Coding, Layout, Storage};

/// A row of the columns: number, offset, length, filters left out.
type Row = (u64, u64, u64, u32);

fn index_of(json: &str, rows: &[Row]) -> Vec<u8> {
    let mut bytes = b"SWIX\x01\0\0\0".to_vec();
    bytes.extend((json.len() as u64).to_le_bytes());
    bytes.extend(json.as_bytes());
    bytes.extend(rows.iter().flat_map(|row| row.0.to_le_bytes()));
    bytes.extend(rows.iter().flat_map(|row| row.1.to_le_bytes()));
    bytes.extend(rows.iter().flat_map(|row| row.2.to_le_bytes()));
    bytes.extend(rows.iter().flat_map(|row| row.3.to_le_bytes()));
    bytes
}

fn array(name: &str, shape: &str, fill: &str, storage: &str) -> String {
    format!(
        r#"{{"name": "{name}", "dtype": "<i2", "element_bytes": 2, "shape": {shape}, "fill": {fill},
            "dims": [], "attributes": {{}}, "storage": {storage}}}"#
    )
}

fn head(arrays: &[String], chunks: usize) -> String {
    let arrays = arrays.join(",");
    format!(r#"{{"format": "hdf5", "arrays": [{arrays}], "chunks": {chunks}}}"#)
}

fn parse(json: &str, rows: &[Row]) -> Result<ChunkIndex, IndexError> {
    ChunkIndex::parse(index_of(json, rows).into())
}

/// An array of 4 x 6 elements in four padded chunks of 3 x 4. One chunk is missing.
fn chunks() -> (String, Vec<Row>) {
    let storage = r#"{"kind": "chunks", "chunk_shape": [3, 4], "is_padded": true,
        "filters": [{"name": "shuffle", "size": 2}], "first": 0, "count": 3}"#;
    let array = array("/a", "[4, 6]", r#""/v8=""#, storage);
    (head(&[array], 3), vec![(0, 100, 24, 0), (1, 124, 24, 1), (3, 200, 24, 0)])
}

fn layout(index: &ChunkIndex, number: usize) -> &Layout {
    match &index.arrays()[number].storage {
        ArrayStorage::Object(layout) => layout,
        other => panic!("no layout: {other:?}"),
    }
}

fn table(index: &ChunkIndex, number: usize) -> Arc<dyn ChunkTable> {
    match &layout(index, number).storage {
        Storage::Chunked(table) => table.clone(),
        other => panic!("no chunks: {other:?}"),
    }
}

#[test]
fn chunks_lie_where_the_columns_say_and_those_without_a_row_are_fill() {
    let (json, rows) = chunks();
    let index = parse(&json, &rows).expect("valid");
    assert_eq!((index.format(), index.find("/a"), index.find("/b")), ("hdf5", Some(0), None));
    assert_eq!(layout(&index, 0).shape, [6, 4]);
    let table = table(&index, 0);
    assert_eq!((&*index.arrays()[0].dtype, index.arrays()[0].plane), ("<i2", [0, 1]));
    assert_eq!(table.fill(), [0xfe, 0xff]);
    let second = table.position(1).expect("known");
    assert_eq!((second.offset, second.len), (124, 24));
    assert_eq!(second.coding, Coding::Filters { skips: 1 });
    assert_eq!(table.position(2).expect("known").len, 0);
    let whole = Region::of_shape(&[6, 4]);
    assert_eq!(table.grid().chunks_for(&whole), [0, 1, 2, 3]);
    assert_eq!(table.grid().chunk(3).shape(), [4, 3]);
}

#[test]
fn regular_chunks_lie_at_multiples_of_their_strides() {
    let storage = r#"{"kind": "regular", "offset": 80, "chunk_shape": [1, 5, 6],
        "strides": [1000, 0, 0]}"#;
    let json = head(&[array("/record", "[7, 5, 6]", "null", storage)], 0);
    let index = parse(&json, &[]).expect("valid");
    // Records of whole rows are read in rows.
    let Storage::Rows(rows) = layout(&index, 0).storage else { panic!("no rows") };
    assert_eq!((rows.byte(4 * 30), rows.byte(4 * 30 + 7)), (80 + 4000, 80 + 4000 + 14));
    let blocks = storage.replace("[1, 5, 6]", "[1, 5, 2]").replace("0, 0]", "0, 20]");
    let index = parse(&head(&[array("/blocks", "[7, 5, 6]", "null", &blocks)], 0), &[]);
    let blocks = table(&index.expect("valid"), 0);
    let chunk = blocks.position(4 * 3 + 1).expect("known");
    assert_eq!((chunk.offset, chunk.len), (80 + 4 * 1000 + 20, 20));
    assert_eq!(blocks.fill(), [0, 0]);
}

#[test]
fn arrays_of_the_index_and_of_the_library_have_no_layout() {
    let arrays = [
        array("/in", "[]", "null", r#"{"kind": "inline", "data": "AAA="}"#),
        array("/by", "[3]", "null", r#"{"kind": "library", "why": "texts"}"#),
        array("/no", "[3]", "null", r#"{"kind": "refused", "why": "external"}"#),
    ];
    let index = parse(&head(&arrays, 0), &[]).expect("valid");
    let storages: Vec<&ArrayStorage> = index.arrays().iter().map(|each| &each.storage).collect();
    assert!(matches!(storages[0], ArrayStorage::Index));
    assert!(matches!(storages[1], ArrayStorage::Library { why } if why == "texts"));
    assert!(matches!(storages[2], ArrayStorage::Refused { why } if why == "external"));
}

/// What is wrong with an index of one array of these storages, shapes and rows.
fn fault(shape: &str, storage: &str, rows: &[Row]) -> String {
    let json = head(&[array("/a", shape, "null", storage)], rows.len());
    parse(&json, rows).expect_err("refused").to_string()
}

#[test]
fn what_cannot_be_is_refused_by_the_name_of_the_array() {
    let listed = |chunk_shape: &str, first: u64, count: u64| {
        format!(
            r#"{{"kind": "chunks", "chunk_shape": {chunk_shape}, "is_padded": true,
                "filters": [], "first": {first}, "count": {count}}}"#
        )
    };
    let good = listed("[3, 4]", 0, 1);
    let cases: [(&str, &str, &[Row], &str); 9] = [
        ("[4, 6]", &good, &[(4, 0, 1, 0)], "ascending numbers of chunks below 4, found 4"),
        ("[4, 6]", &good, &[(0, 0, 0, 0)], "chunk 0 of 1 to"),
        ("[4, 6]", &good, &[(0, u64::MAX, 2, 0)], "chunk 0 of 1 to"),
        ("[4, 6]", &listed("[3, 4]", 1, 1), &[(0, 0, 1, 0)], "rows of 1 chunks"),
        ("[4, 6]", &listed("[3]", 0, 1), &[(0, 0, 1, 0)], "chunks of 2 axes"),
        ("[4, 6]", &listed("[0, 4]", 0, 1), &[(0, 0, 1, 0)], "chunks of 2 axes"),
        ("[4, 6]", &listed("[4294967296, 4]", 0, 1), &[(0, 0, 1, 0)], "chunks of 2 axes"),
        ("[9223372036854775807, 9223372036854775807]", &good, &[(0, 0, 1, 0)], "fewer than 2^63"),
        ("[9223372036854775807, 6]", r#"{"kind": "contiguous", "offset": 3}"#, &[], "below 2^64"),
    ];
    for (shape, storage, rows, expected) in cases {
        let found = fault(shape, storage, rows);
        assert!(found.starts_with("chunk index, array /a: expected "), "{found}");
        assert!(found.contains(expected), "{expected}: {found}");
    }
    let twice = listed("[3, 4]", 0, 2);
    let found = fault("[4, 6]", &twice, &[(1, 0, 1, 0), (1, 5, 1, 0)]);
    assert!(found.contains("ascending"), "{found}");
    let stride = r#"{"kind": "regular", "offset": 9, "chunk_shape": [1, 6],
        "strides": [18446744073709551615, 0]}"#;
    let found = fault("[4, 6]", stride, &[]);
    assert!(found.contains("strides that end below 2^64"), "{found}");
}

#[test]
fn two_arrays_cannot_have_one_path() {
    let one = array("/a", "[1]", "null", r#"{"kind": "contiguous", "offset": 3}"#);
    let error = parse(&head(&[one.clone(), one], 0), &[]).expect_err("refused");
    assert!(error.to_string().contains("a path of its own"), "{error}");
}

proptest! {
    /// Cut off or changed anywhere, an index is refused or is another one; nothing panics.
    #[test]
    fn damaged_indexes_are_refused_or_read(at in 0usize..700, byte: u8, cut in 0usize..700) {
        let (json, rows) = chunks();
        let mut bytes = index_of(&json, &rows);
        let length = bytes.len();
        prop_assert!(ChunkIndex::parse(bytes[..cut.min(length - 1)].into()).is_err());
        bytes[at % length] = byte;
        if let Ok(index) = ChunkIndex::parse(bytes.into()) {
            for array in index.arrays() {
                if let ArrayStorage::Object(Layout { storage: Storage::Chunked(table), .. }) = &array.storage {
                    for chunk in 0..table.grid().count().unwrap_or(0).min(100) {
                        let _ = table.position(chunk);
                    }
                }
            }
        }
    }
}
