//! Tables of compressed tiles: the rows for a region, the position and scaling of a tile.

use std::ops::Range;
use swathe_codecs::tile::{Encoding, TileCodec, TileInput};
use swathe_layout::{Chunk, ChunkGrid, ChunkTable, Coding, DecodeError, LayoutError, Scratch};

/// The table of tiles of a compressed image.
#[derive(Clone, Debug)]
pub(crate) struct TileTable {
    /// How tiles are coded.
    pub(crate) codec: TileCodec,
    /// Which tile holds what; the table has a row for each.
    pub(crate) grid: ChunkGrid,
    /// Rows, one per tile.
    pub(crate) rows: u64,
    /// Bytes of a row.
    pub(crate) row_bytes: u64,
    /// First byte of the first row.
    pub(crate) table_start: u64,
    /// First byte of the heap.
    pub(crate) heap_start: u64,
    /// Bytes of the heap.
    pub(crate) heap_len: u64,
    pub(crate) columns: Vec<(Encoding, Descriptor)>,
    pub(crate) scale: ParameterSource,
    pub(crate) zero: ParameterSource,
    pub(crate) blank: ParameterSource,
}

/// A column of variable-length arrays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptor {
    pub(crate) at: usize,
    /// 64-bit (Q) rather than 32-bit (P) descriptors.
    pub(crate) wide: bool,
    pub(crate) element_bytes: u64,
}

/// The source of a number per tile.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ParameterSource {
    Absent,
    Constant(f64),
    Column { at: usize, form: u8 },
}

impl ChunkTable for TileTable {
    fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    fn codec_name(&self) -> &str {
        self.codec.codec.name()
    }

    fn entry_range(&self, chunk: u64) -> Range<u64> {
        range(self.table_start, self.row_bytes, chunk)
    }

    fn expected_range(&self, chunk: u64) -> Range<u64> {
        range(self.heap_start, self.heap_len / self.rows.max(1), chunk)
    }

    fn entry(&self, row: &[u8]) -> Result<Chunk, LayoutError> {
        let column_match = self.columns.iter().find_map(|(encoding, column)| {
            let (count, offset) = column.read(row)?;
            (count > 0).then_some((*encoding, count.checked_mul(column.element_bytes), offset))
        });
        let Some((encoding, len, offset)) = column_match else {
            return Err(LayoutError::NoData);
        };
        let outside = |stop| LayoutError::OutsideHeap { start: offset, stop, heap: self.heap_len };
        let len = len.ok_or_else(|| outside(u64::MAX))?;
        let stop = offset.checked_add(len).ok_or_else(|| outside(u64::MAX))?;
        if stop > self.heap_len {
            return Err(outside(stop));
        }
        let coding = Coding::Tile {
            encoding,
            scale: self.scale.read(row).unwrap_or(1.0),
            zero: self.zero.read(row).unwrap_or(0.0),
            blank: self.blank.read(row).map(|blank| blank as i64),
        };
        Ok(Chunk { offset: self.heap_start + offset, len, coding })
    }

    /// All tiles are stored.
    fn fill(&self) -> &[u8] {
        &[0; 8][..self.codec.dtype.size()]
    }

    fn decode(
        &self,
        number: u64,
        chunk: &Chunk,
        bytes: &[u8],
        need: usize,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<(), DecodeError> {
        let Coding::Tile { encoding, scale, zero, blank } = chunk.coding else {
            return Err(DecodeError::Coding);
        };
        let shape = self.grid.chunk(number).shape();
        let input = TileInput { bytes, encoding, shape: &shape, tile: number, scale, zero, blank };
        Ok(self.codec.decode(&input, need, &mut scratch.tile, out)?)
    }
}

/// The bytes of item `number` of an array that begins at `start`, with items of `bytes` bytes.
fn range(start: u64, bytes: u64, number: u64) -> Range<u64> {
    let start = start.saturating_add(number.saturating_mul(bytes));
    start..start.saturating_add(bytes)
}

impl Descriptor {
    /// Count and heap offset.
    fn read(&self, row: &[u8]) -> Option<(u64, u64)> {
        if self.wide {
            Some((word64(row, self.at)? as u64, word64(row, self.at + 8)? as u64))
        } else {
            Some((
                u64::from(word32(row, self.at)? as u32),
                u64::from(word32(row, self.at + 4)? as u32),
            ))
        }
    }
}

impl ParameterSource {
    fn read(&self, row: &[u8]) -> Option<f64> {
        match *self {
            ParameterSource::Absent => None,
            ParameterSource::Constant(value) => Some(value),
            ParameterSource::Column { at, form } => match form {
                b'D' => Some(f64::from_bits(word64(row, at)? as u64)),
                b'E' => Some(f64::from(f32::from_bits(word32(row, at)? as u32))),
                b'K' => Some(word64(row, at)? as f64),
                b'J' => Some(f64::from(word32(row, at)?)),
                b'I' => Some(f64::from(i16::from_be_bytes(row.get(at..at + 2)?.try_into().ok()?))),
                b'B' => Some(f64::from(*row.get(at)?)),
                _ => None,
            },
        }
    }
}

fn word32(row: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_be_bytes(row.get(at..at + 4)?.try_into().ok()?))
}

fn word64(row: &[u8], at: usize) -> Option<i64> {
    Some(i64::from_be_bytes(row.get(at..at + 8)?.try_into().ok()?))
}
