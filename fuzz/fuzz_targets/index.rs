//! A chunk index: what it provides can be asked without a panic, and names no byte beyond 2^64.

#![no_main]

use libfuzzer_sys::fuzz_target;
use swathe_array::Region;
use swathe_chunk_index::{ArrayStorage, ChunkIndex};
use swathe_layout::{Layout, Storage};

/// Chunks of an array that are asked, from both ends.
const CHUNKS: u64 = 8;

fuzz_target!(|bytes: &[u8]| {
    let Ok(index) = ChunkIndex::parse(bytes.into()) else { return };
    assert_eq!(index.bytes(), bytes);
    for (number, array) in index.arrays().iter().enumerate() {
        assert_eq!(index.find(&array.path), Some(number));
        if let ArrayStorage::Object(layout) = &array.storage {
            ask(layout);
        }
    }
});

/// Ask where the elements of an array lie.
fn ask(layout: &Layout) {
    let corner: Vec<u64> = layout.shape.iter().map(|&side| side.min(2)).collect();
    // Nothing is read of an array without elements.
    if corner.iter().all(|&side| side > 0) {
        layout.need(&Region::of_shape(&corner));
    }
    let Storage::Chunked(table) = &layout.storage else { return };
    let count = table.grid().count().expect("it was counted");
    for chunk in (0..count.min(CHUNKS)).chain(count.saturating_sub(CHUNKS)..count) {
        let region = table.grid().chunk(chunk);
        assert_eq!(region.axes(), layout.shape.len());
        let position = table.position(chunk).expect("an index knows all positions");
        assert!(position.offset.checked_add(position.len).is_some());
    }
    table.is_whole();
}
