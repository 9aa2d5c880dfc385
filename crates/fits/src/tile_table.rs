//! Tables of compressed tiles: which rows hold a region, where a tile is and how it is scaled.

use crate::error::FitsError;
use swathe_array::Region;
use swathe_codecs::tile::{Encoding, TileCodec};

/// The table of tiles of a compressed image.
#[derive(Clone, Debug)]
pub struct TileTable {
    /// How tiles are coded.
    pub codec: TileCodec,
    /// Pixels of a tile along each axis, NAXIS1 first; those at the far edges may be smaller.
    pub tile_shape: Vec<u64>,
    /// Rows, one per tile.
    pub rows: u64,
    /// Bytes of a row.
    pub row_bytes: u64,
    /// First byte of the first row.
    pub table_start: u64,
    /// First byte of the heap.
    pub heap_start: u64,
    /// Bytes of the heap.
    pub heap_len: u64,
    pub(crate) columns: Vec<(Encoding, Descriptor)>,
    pub(crate) scale: Source,
    pub(crate) zero: Source,
    pub(crate) blank: Source,
}

/// Where one tile lies and how it is scaled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TileEntry {
    /// The column it is in.
    pub encoding: Encoding,
    /// First byte in the file.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// ZSCALE.
    pub scale: f64,
    /// ZZERO.
    pub zero: f64,
    /// ZBLANK.
    pub blank: Option<i64>,
}

/// A column of variable-length arrays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptor {
    pub(crate) at: usize,
    /// 64-bit (Q) rather than 32-bit (P) descriptors.
    pub(crate) wide: bool,
    pub(crate) element_bytes: u64,
}

/// Where a number per tile comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    Absent,
    Constant(f64),
    Column { at: usize, form: u8 },
}

impl TileTable {
    /// The pixels of a tile.
    pub fn tile(&self, image_shape: &[u64], row: u64) -> Region {
        let mut rest = row;
        let mut start = Vec::with_capacity(image_shape.len());
        let mut stop = Vec::with_capacity(image_shape.len());
        for (&side, &tile) in image_shape.iter().zip(&self.tile_shape) {
            let along = side.div_ceil(tile);
            let first = (rest % along) * tile;
            rest /= along;
            start.push(first as i64);
            stop.push(side.min(first + tile) as i64);
        }
        Region { start, stop }
    }

    /// The rows of the tiles that hold a region, ascending. The region must lie in the image.
    pub fn rows_for(&self, image_shape: &[u64], region: &Region) -> Vec<u64> {
        let mut rows = vec![0];
        let mut stride = 1;
        for (axis, (&side, &tile)) in image_shape.iter().zip(&self.tile_shape).enumerate() {
            let first = region.start[axis].unsigned_abs() / tile;
            let last = (region.stop[axis] - 1).unsigned_abs() / tile;
            rows = (first..=last)
                .flat_map(|at| rows.iter().map(move |row| row + at * stride))
                .collect();
            stride *= side.div_ceil(tile);
        }
        rows
    }

    /// Read a row of the table.
    ///
    /// # Errors
    /// [`FitsError::OutsideHeap`] where it points elsewhere, [`FitsError::Missing`] where no
    /// column holds the tile.
    pub fn entry(&self, row: &[u8]) -> Result<TileEntry, FitsError> {
        let found = self.columns.iter().find_map(|(encoding, column)| {
            let (count, offset) = column.read(row)?;
            (count > 0).then_some((*encoding, count.checked_mul(column.element_bytes), offset))
        });
        let Some((encoding, len, offset)) = found else {
            return Err(FitsError::Missing { keyword: "the data of a tile".into() });
        };
        let outside = |stop| FitsError::OutsideHeap { start: offset, stop, heap: self.heap_len };
        let len = len.ok_or_else(|| outside(u64::MAX))?;
        let stop = offset.checked_add(len).ok_or_else(|| outside(u64::MAX))?;
        if stop > self.heap_len {
            return Err(outside(stop));
        }
        Ok(TileEntry {
            encoding,
            offset: self.heap_start + offset,
            len,
            scale: self.scale.read(row).unwrap_or(1.0),
            zero: self.zero.read(row).unwrap_or(0.0),
            blank: self.blank.read(row).map(|blank| blank as i64),
        })
    }
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

impl Source {
    fn read(&self, row: &[u8]) -> Option<f64> {
        match *self {
            Source::Absent => None,
            Source::Constant(value) => Some(value),
            Source::Column { at, form } => match form {
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
