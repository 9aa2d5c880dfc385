//! Tests of folders as sources.

use super::*;
use crate::folder::table::Member;
use swathe_store_api::{MemoryStore, Store, StoreSettings, Stores};

fn nowhere(settings: StoreSettings) -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(&settings.name))
}

fn member(name: &str, size: u64) -> Member {
    Member { name: name.into(), size, stamp: String::new() }
}

/// A folder `m:x` of two members, and their ranges.
fn folder(store: &Arc<MemoryStore>) -> (FolderSource, Vec<Range<u64>>) {
    store.put("x/a", &b"0123456789"[..]);
    store.put("x/b/c", &b"abcdef"[..]);
    let stores = Stores::new(Vec::new(), nowhere).with(store.clone());
    let place = Place::new("m:x/", &stores);
    let members = vec![member("a", 10), member("b/c", 6)];
    let table = FolderTable::new("x", members).expect("a table");
    let ranges = (0..2).map(|number| table.range(number)).collect();
    (FolderSource::new(place, Arc::new(table), false), ranges)
}

#[test]
fn ranges_of_members_are_read_in_order_and_gaps_are_zeros() {
    let store = Arc::new(MemoryStore::new("m"));
    let (source, members) = folder(&store);
    let (a, b) = (members[0].start, members[1].start);
    let ranges = vec![a + 1..a + 3, a + 8..a + 10, b..b + 6];
    for streams in [1, 2, 9] {
        let pieces: Result<Vec<Bytes>, _> = source.fetch(ranges.clone(), streams).collect();
        assert_eq!(pieces.expect("read"), [&b"12"[..], b"89", b"abcdef"]);
    }
    let mut buffer = [1; 12];
    source.read_exact_at(a - 1, &mut buffer).expect("read");
    assert_eq!(&buffer, b"\x000123456789\0");
    let mut head = [0; 8];
    source.read_exact_at(0, &mut head).expect("read");
    assert_eq!(&head, b"SWFOLDER");
    assert_eq!((source.stored_bytes(), source.len()), (16, members[1].end));
    assert!(source.read_exact_at(source.len() - 1, &mut head).is_err());
}

#[test]
fn a_range_that_is_in_no_member_or_in_two_is_an_error() {
    let store = Arc::new(MemoryStore::new("m"));
    let (source, members) = folder(&store);
    let (a, b) = (&members[0], &members[1]);
    for range in [0..8, a.start..a.end + 1, a.end..a.end + 9, a.start..b.end, b.end..u64::MAX] {
        let mut pieces = source.fetch(vec![a.start..a.end, range.clone()], 4);
        let _ = pieces.next();
        let last = pieces.last();
        assert!(matches!(last, None | Some(Err(StoreError::ShortRead { .. }))), "{range:?}");
    }
}

#[test]
fn a_member_of_another_size_or_none_is_a_change() {
    let store = Arc::new(MemoryStore::new("m"));
    let (source, members) = folder(&store);
    store.put("x/a", &b"012345678"[..]);
    let read = || source.fetch(vec![members[0].clone()], 1).next();
    assert!(matches!(read(), Some(Err(StoreError::Changed { .. }))));
    let stores = Stores::new(Vec::new(), nowhere).with(store.clone());
    let table = FolderTable::new("x", vec![member("gone", 3)]).expect("a table");
    let gone = FolderSource::new(Place::new("m:x", &stores), Arc::new(table), false);
    let range = gone.len() - 3..gone.len();
    let error = gone.fetch(vec![range], 1).next();
    assert!(matches!(error, Some(Err(StoreError::Changed { .. }))));
}

#[test]
fn a_date_is_that_of_a_listing() {
    assert!(has_stamp("mtime:0.000000000-ino:5", "0"));
    assert!(has_stamp("mtime:12.000000034-ino:5", "12000000034"));
    assert!(has_stamp("mtime:-1.000000034-ino:5", "-999999966"));
    assert!(!has_stamp("mtime:12.000000034-ino:5", "12000000035"));
    assert!(has_stamp("\"e\"", "\"e\"") && !has_stamp("\"e\"", "\"f\""));
}
