//! The columns of an index: where the chunks of all arrays lie.

use std::ops::Range;
use std::sync::Arc;

/// Bytes of one chunk in the columns.
pub(crate) const ROW_BYTES: usize = 8 + 8 + 8 + 4;

/// The columns of all chunks.
#[derive(Debug)]
pub(crate) struct Columns {
    bytes: Arc<[u8]>,
    /// First byte of the first column.
    start: usize,
    rows: usize,
}

impl Columns {
    /// The columns of `rows` chunks, which end the bytes of an index.
    pub(crate) fn new(bytes: Arc<[u8]>, start: usize, rows: usize) -> Columns {
        Columns { bytes, start, rows }
    }

    /// Number of rows.
    pub(crate) fn count(&self) -> usize {
        self.rows
    }

    fn word(&self, column: usize, row: usize) -> u64 {
        let at = self.start + (column * self.rows + row) * 8;
        let mut word = [0; 8];
        word.copy_from_slice(&self.bytes[at..at + 8]);
        u64::from_le_bytes(word)
    }

    pub(crate) fn number(&self, row: usize) -> u64 {
        self.word(0, row)
    }

    pub(crate) fn offset(&self, row: usize) -> u64 {
        self.word(1, row)
    }

    pub(crate) fn length(&self, row: usize) -> u64 {
        self.word(2, row)
    }

    pub(crate) fn skips(&self, row: usize) -> u32 {
        let at = self.start + 3 * self.rows * 8 + row * 4;
        let mut word = [0; 4];
        word.copy_from_slice(&self.bytes[at..at + 4]);
        u32::from_le_bytes(word)
    }

    /// The row of a chunk among those of its array.
    pub(crate) fn find(&self, rows: Range<usize>, chunk: u64) -> Option<usize> {
        let (mut low, mut high) = (rows.start, rows.end);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.number(middle).cmp(&chunk) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }
}
