//! Layouts: what a format says once, and a reader follows.

use crate::error::{DecodeError, LayoutError};
use crate::grid::ChunkGrid;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use swathe_array::{Region, Runs};
use swathe_codecs::{chunk, tile};

/// How an array lies in an object.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Bytes of a stored element.
    pub element_bytes: usize,
    /// Elements along each axis, fastest first.
    pub shape: Vec<u64>,
    /// Their positions.
    pub storage: Storage,
}

/// Positions of elements.
#[derive(Clone, Debug)]
pub enum Storage {
    /// Row after row.
    Rows(Rows),
    /// In chunks.
    Chunked(Arc<dyn ChunkTable>),
}

/// Rows of elements, each without a gap. Those of a record follow each other; records lie at
/// regular distances. An array without records is one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// First byte of the first record.
    pub offset: u64,
    /// Bytes of an element.
    pub element_bytes: u64,
    /// Elements of a record, in whole rows.
    pub record_elements: u64,
    /// Bytes from a record to the next.
    pub record_stride: u64,
}

impl Rows {
    /// Elements that follow each other from a byte.
    pub fn contiguous(offset: u64, element_bytes: usize) -> Rows {
        let element_bytes = element_bytes as u64;
        Rows { offset, element_bytes, record_elements: u64::MAX, record_stride: 0 }
    }

    /// The runs of the part of an array that are one piece of bytes each.
    pub fn runs(&self, array: &Region, to: &Region, part: &Region) -> Runs {
        let records = usize::from(self.record_stride != 0);
        array.runs_of_axes(to, part, array.axes() - records)
    }

    /// The first byte of an element, numbered with the fastest axis first.
    pub fn byte(&self, element: u64) -> u64 {
        let (record, within) = (element / self.record_elements, element % self.record_elements);
        let start = self.offset.saturating_add(record.saturating_mul(self.record_stride));
        start.saturating_add(within.saturating_mul(self.element_bytes))
    }
}

/// Where the chunks lie, and how they are decoded. Either their positions are known, or the object
/// has a table with an entry for each chunk.
pub trait ChunkTable: Debug + Send + Sync {
    /// Which chunk holds what.
    fn grid(&self) -> &ChunkGrid;

    /// Name of the codec, by which the time of decoding is measured.
    fn codec_name(&self) -> &str;

    /// The position of a chunk, if it is known without a read. Else the table has the three
    /// functions below.
    fn position(&self, _chunk: u64) -> Option<Chunk> {
        None
    }

    /// The bytes of the object that are the entry of a chunk.
    fn entry_range(&self, _chunk: u64) -> Range<u64> {
        0..0
    }

    /// The position of a chunk, as its entry states it.
    ///
    /// # Errors
    /// [`LayoutError`] if that cannot be right, or there are no entries.
    fn entry(&self, _bytes: &[u8]) -> Result<Chunk, LayoutError> {
        Err(LayoutError::NoData)
    }

    /// The approximate position of a chunk before its entry is read: as if all were of the same
    /// length, in order.
    fn expected_range(&self, _chunk: u64) -> Range<u64> {
        0..0
    }

    /// Whether every chunk is stored, as far as the object has no table.
    fn is_whole(&self) -> bool {
        true
    }

    /// The element of chunks that are not stored.
    fn fill(&self) -> &[u8];

    /// Decode at least the first `need` elements of a chunk. `out` may end up longer than that;
    /// what follows is not defined.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are not those of such a chunk.
    fn decode(
        &self,
        number: u64,
        chunk: &Chunk,
        bytes: &[u8],
        need: usize,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<(), DecodeError>;
}

/// Buffers for reuse between chunks.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Of tiles.
    pub tile: tile::Scratch,
    /// Of chunks with filters.
    pub chunk: chunk::Scratch,
}

/// The position of one chunk and how its elements are restored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chunk {
    /// First byte in the object.
    pub offset: u64,
    /// Bytes; 0 if it is not stored, so that all its elements are fill.
    pub len: u64,
    /// How this one is stored.
    pub coding: Coding,
}

/// What differs from chunk to chunk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Coding {
    /// A tile of a compressed image.
    Tile {
        /// Its encoding.
        encoding: tile::Encoding,
        /// The factor of the integers of quantised floats,
        scale: f64,
        /// the offset added after that,
        zero: f64,
        /// and the integer that stands for no value.
        blank: Option<i64>,
    },
    /// Filters, but for those whose bits are set.
    Filters {
        /// Bit `i`: filter `i` was not applied.
        skips: u32,
    },
}

/// The size of a read, before its ranges are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Rows or chunks.
    pub pieces: u64,
    /// Their name in messages.
    pub what: &'static str,
    /// The number of the last chunk, from 0; of rows that of the last element.
    pub last: u64,
    /// The last of them: first byte of it, or of its entry.
    pub start: u64,
    /// One past its last.
    pub stop: u64,
}

impl Layout {
    /// As [`ChunkTable::is_whole`].
    pub fn is_whole(&self) -> bool {
        match &self.storage {
            Storage::Rows(_) => true,
            Storage::Chunked(table) => table.is_whole(),
        }
    }

    /// The size of the read of a region, which has elements and lies in the array.
    pub fn need(&self, region: &Region) -> Need {
        let (mut pieces, mut last, mut stride) = (1u64, 0u64, 1u64);
        for (axis, &side) in self.shape.iter().enumerate() {
            let chunk = match &self.storage {
                Storage::Rows(_) => 1,
                Storage::Chunked(table) => table.grid().chunk_shape[axis],
            };
            let first = region.start[axis].unsigned_abs() / chunk;
            let end = (region.stop[axis] - 1).unsigned_abs() / chunk;
            last = last.saturating_add(end.saturating_mul(stride));
            stride = stride.saturating_mul(side.div_ceil(chunk));
            // A row is one piece, a row of chunks is not.
            if axis > 0 || matches!(self.storage, Storage::Chunked(_)) {
                pieces = pieces.saturating_mul(end - first + 1);
            }
        }
        let (what, range) = match &self.storage {
            Storage::Rows(rows) => {
                let start = rows.byte(last);
                ("rows", start..start.saturating_add(rows.element_bytes))
            }
            Storage::Chunked(table) => {
                let range = match table.position(last) {
                    Some(chunk) => chunk.offset..chunk.offset.saturating_add(chunk.len),
                    None => table.entry_range(last),
                };
                ("tiles", range)
            }
        };
        Need { pieces, what, last, start: range.start, stop: range.end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_of_rows_needs_a_piece_for_each_and_ends_with_its_last_element() {
        let storage = Storage::Rows(Rows::contiguous(100, 2));
        let layout = Layout { element_bytes: 2, shape: vec![10, 20], storage };
        let region = Region { start: vec![2, 3], stop: vec![5, 7] };
        let need = layout.need(&region);
        // Element 4 of row 6.
        let last = 6 * 10 + 4;
        let start = 100 + 2 * last;
        assert_eq!(need, Need { pieces: 4, what: "rows", last, start, stop: start + 2 });
    }

    #[test]
    fn records_lie_at_their_stride() {
        let rows = Rows { offset: 7, element_bytes: 4, record_elements: 30, record_stride: 1000 };
        assert_eq!(
            [rows.byte(0), rows.byte(29), rows.byte(30), rows.byte(61)],
            [7, 123, 1007, 2011]
        );
    }
}
