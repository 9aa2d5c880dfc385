//! An index whose content is checked, and the layouts that it provides.

use crate::columns::{Columns, ROW_BYTES};
use crate::error::IndexError;
use crate::head::{ArrayHead, Head, StorageHead};
use crate::table::{IndexTable, Positions};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::collections::HashMap;
use std::sync::Arc;
use swathe_codecs::chunk::Filters;
use swathe_layout::{ChunkGrid, Layout, Rows, Storage};

const MAGIC: &[u8; 8] = b"SWIX\x01\0\0\0";
/// Bytes before the JSON.
const HEAD_BYTES: usize = 16;
/// Most axes of an array, as in HDF5.
const MOST_AXES: usize = 32;
/// Most bytes of an element.
const MOST_ELEMENT_BYTES: usize = 1 << 16;
/// Most bytes of the text of a type.
const MOST_TYPE_BYTES: usize = 64;
/// Most bytes of a decoded chunk.
const MOST_CHUNK_BYTES: u64 = 1 << 31;

/// The arrays of an object.
#[derive(Debug)]
pub struct ChunkIndex {
    bytes: Arc<[u8]>,
    json_bytes: usize,
    format: String,
    arrays: Vec<Array>,
    numbers: HashMap<Arc<str>, usize>,
}

/// An array of an index.
#[derive(Debug)]
pub struct Array {
    /// Its path in the object.
    pub path: Arc<str>,
    /// The type of its elements, as NumPy writes it; bytes without a type for compound ones.
    pub dtype: String,
    /// The element of what is not stored.
    pub fill: Vec<u8>,
    /// The axes of its planes, `x` and `y`, numbered from the fastest: those of these names, else
    /// the two fastest.
    pub plane: [usize; 2],
    /// Where its elements lie.
    pub storage: ArrayStorage,
}

/// Where the elements of an array lie.
#[derive(Debug)]
pub enum ArrayStorage {
    /// In the object. A number without axes has one axis of one element here.
    Object(Layout),
    /// In the index; those who show the index read it there.
    Index,
    /// Known to the format's library only.
    Library {
        /// Why.
        why: String,
    },
    /// It is not read.
    Refused {
        /// Why not.
        why: String,
    },
}

impl ChunkIndex {
    /// Read an index, and check all of it.
    ///
    /// # Errors
    /// [`IndexError`] if anything in it cannot be.
    pub fn parse(bytes: Arc<[u8]>) -> Result<ChunkIndex, IndexError> {
        let magic = bytes.get(..8).unwrap_or(&bytes);
        if magic != MAGIC {
            return Err(IndexError::bytes("SWIX, version 1", format!("{magic:?}")));
        }
        let json_bytes = bytes.get(8..HEAD_BYTES).map(|length| {
            let mut word = [0; 8];
            word.copy_from_slice(length);
            u64::from_le_bytes(word)
        });
        let json = json_bytes
            .and_then(|length| HEAD_BYTES.checked_add(usize::try_from(length).ok()?))
            .and_then(|end| bytes.get(HEAD_BYTES..end))
            .ok_or_else(|| IndexError::bytes("the JSON", format!("{} bytes", bytes.len())))?;
        let head: Head = serde_json::from_slice(json)
            .map_err(|error| IndexError::bytes("JSON of an index", error))?;
        let start = HEAD_BYTES + json.len();
        let rows = usize::try_from(head.chunks).ok();
        let end = rows.and_then(|rows| rows.checked_mul(ROW_BYTES)?.checked_add(start));
        let (Some(rows), true) = (rows, end == Some(bytes.len())) else {
            let expected = format!("columns of {} chunks", head.chunks);
            return Err(IndexError::bytes(expected, format!("{} bytes", bytes.len() - start)));
        };
        let json_bytes = json.len();
        let columns = Arc::new(Columns::new(bytes.clone(), start, rows));
        let mut arrays = Vec::with_capacity(head.arrays.len());
        let mut numbers = HashMap::with_capacity(head.arrays.len());
        for array in head.arrays {
            let array = Array::new(array, &columns)?;
            if numbers.insert(array.path.clone(), arrays.len()).is_some() {
                return Err(array.wrong("a path of its own", "that of another array"));
            }
            arrays.push(array);
        }
        Ok(ChunkIndex { bytes, json_bytes, format: head.format, arrays, numbers })
    }

    /// The bytes it was read from.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its JSON: groups, attributes, dimensions.
    pub fn json(&self) -> &[u8] {
        &self.bytes[HEAD_BYTES..HEAD_BYTES + self.json_bytes]
    }

    /// Name of the format.
    pub fn format(&self) -> &str {
        &self.format
    }

    /// The arrays, in the order of the index.
    pub fn arrays(&self) -> &[Array] {
        &self.arrays
    }

    /// The number of an array.
    pub fn find(&self, path: &str) -> Option<usize> {
        self.numbers.get(path).copied()
    }
}

impl Array {
    fn new(head: ArrayHead, columns: &Arc<Columns>) -> Result<Array, IndexError> {
        let path: Arc<str> = head.name.into();
        let bytes = head.element_bytes;
        let dtype = match head.dtype {
            serde_json::Value::String(text) => text,
            _ => format!("|V{bytes}"),
        };
        let axis = |name: &str| head.dims.iter().rev().position(|each| each == name);
        let plane = match (axis("x"), axis("y")) {
            (Some(x), Some(y)) if head.dims.len() == head.shape.len() => [x, y],
            _ => [0, 1],
        };
        let mut array =
            Array { path, dtype, fill: Vec::new(), plane, storage: ArrayStorage::Index };
        if array.dtype.len() > MOST_TYPE_BYTES || !array.dtype.bytes().all(is_of_type) {
            return Err(array.wrong("a type of NumPy", &array.dtype));
        }
        let is_read = !matches!(head.storage, StorageHead::Refused { .. });
        if is_read && !(1..=MOST_ELEMENT_BYTES).contains(&bytes) {
            let expected = format!("elements of 1 to {MOST_ELEMENT_BYTES} bytes");
            return Err(array.wrong(expected, bytes));
        }
        if head.shape.len() > MOST_AXES {
            return Err(array.wrong(format!("{MOST_AXES} axes at most"), head.shape.len()));
        }
        if head.shape.iter().any(|&side| i64::try_from(side).is_err()) {
            return Err(array.wrong("axes below 2^63", format!("{:?}", head.shape)));
        }
        array.fill = match head.fill {
            None => vec![0; bytes],
            Some(text) => BASE64_STANDARD
                .decode(&text)
                .ok()
                .filter(|fill| fill.len() == bytes)
                .ok_or_else(|| array.wrong(format!("a fill value of {bytes} bytes"), text))?,
        };
        let mut shape: Vec<u64> = head.shape.iter().rev().copied().collect();
        if shape.is_empty() {
            shape.push(1);
        }
        array.storage = array.checked_storage(head.storage, shape, bytes, columns)?;
        Ok(array)
    }

    fn checked_storage(
        &self,
        head: StorageHead,
        shape: Vec<u64>,
        element_bytes: usize,
        columns: &Arc<Columns>,
    ) -> Result<ArrayStorage, IndexError> {
        let (chunk_shape, is_padded, filters) = match &head {
            StorageHead::Inline {} => return Ok(ArrayStorage::Index),
            StorageHead::Library { why } => {
                return Ok(ArrayStorage::Library { why: why.clone() });
            }
            StorageHead::Refused { why } => {
                return Ok(ArrayStorage::Refused { why: why.clone() });
            }
            StorageHead::Contiguous { offset } => {
                let bytes = product(&shape).and_then(|all| all.checked_mul(element_bytes as u64));
                if bytes.and_then(|bytes| bytes.checked_add(*offset)).is_none() {
                    return Err(self.wrong("an end below 2^64", format!("{shape:?} at {offset}")));
                }
                let storage = Storage::Rows(Rows::contiguous(*offset, element_bytes));
                return Ok(ArrayStorage::Object(Layout { element_bytes, shape, storage }));
            }
            StorageHead::Chunks { chunk_shape, is_padded, filters, .. } => {
                (chunk_shape, *is_padded, filters.clone())
            }
            StorageHead::Regular { chunk_shape, .. } => (chunk_shape, false, Vec::new()),
        };
        let mut chunk_shape: Vec<u64> = chunk_shape.iter().rev().copied().collect();
        if chunk_shape.is_empty() {
            chunk_shape.push(1);
        }
        let bytes = product(&chunk_shape).and_then(|all| all.checked_mul(element_bytes as u64));
        if chunk_shape.len() != shape.len()
            || !bytes.is_some_and(|bytes| (1..=MOST_CHUNK_BYTES).contains(&bytes))
        {
            let expected =
                format!("chunks of {} axes, of 1 to {MOST_CHUNK_BYTES} bytes", shape.len());
            return Err(self.wrong(expected, format!("{chunk_shape:?}")));
        }
        let grid = ChunkGrid { shape: shape.clone(), chunk_shape, is_padded };
        let Some(count) = grid.count().filter(|&count| i64::try_from(count).is_ok()) else {
            return Err(self.wrong("fewer than 2^63 chunks", format!("{grid:?}")));
        };
        // A padded chunk ends beyond the array.
        let ends = shape.iter().zip(&grid.chunk_shape);
        if !ends.clone().all(|(&side, &chunk)| i64::try_from(side.saturating_add(chunk)).is_ok()) {
            return Err(self.wrong("chunks that end below 2^63", format!("{grid:?}")));
        }
        let positions = match head {
            StorageHead::Regular { offset, strides, .. } => {
                match self.regular(offset, strides, &grid, element_bytes)? {
                    Positions::Regular { offset, strides } if is_of_records(&grid) => {
                        let storage = Storage::Rows(Rows {
                            offset,
                            element_bytes: element_bytes as u64,
                            record_elements: grid.chunk_shape.iter().product(),
                            record_stride: strides[strides.len() - 1],
                        });
                        return Ok(ArrayStorage::Object(Layout { element_bytes, shape, storage }));
                    }
                    positions => positions,
                }
            }
            StorageHead::Chunks { first, count: rows, .. } => {
                self.in_rows(first, rows, count, columns)?
            }
            _ => return Ok(ArrayStorage::Index),
        };
        let filters =
            Filters::new(filters).map_err(|error| self.wrong("filters that are known", error))?;
        let table = IndexTable {
            grid,
            element_bytes,
            codec_name: filters.name(),
            filters,
            fill: self.fill.clone(),
            positions,
        };
        let storage = Storage::Chunked(Arc::new(table));
        Ok(ArrayStorage::Object(Layout { element_bytes, shape, storage }))
    }

    /// Chunks at regular distances.
    fn regular(
        &self,
        offset: u64,
        strides: Vec<u64>,
        grid: &ChunkGrid,
        element_bytes: usize,
    ) -> Result<Positions, IndexError> {
        let strides: Vec<u64> = strides.into_iter().rev().collect();
        let chunk_bytes = grid.chunk_shape.iter().product::<u64>() * element_bytes as u64;
        let axes = grid.shape.iter().zip(&grid.chunk_shape).zip(&strides);
        let end = axes.into_iter().try_fold(offset, |end, ((&side, &chunk), &stride)| {
            side.div_ceil(chunk).saturating_sub(1).checked_mul(stride)?.checked_add(end)
        });
        let end = end.and_then(|end| end.checked_add(chunk_bytes));
        if strides.len() != grid.shape.len() && !(strides.is_empty() && grid.shape == [1])
            || end.is_none()
        {
            let expected = format!("{} strides that end below 2^64", grid.shape.len());
            return Err(self.wrong(expected, format!("{strides:?} from {offset}")));
        }
        Ok(Positions::Regular { offset, strides })
    }

    /// Chunks whose positions are rows of the columns.
    fn in_rows(
        &self,
        first: u64,
        rows: u64,
        count: u64,
        columns: &Arc<Columns>,
    ) -> Result<Positions, IndexError> {
        let end = first.checked_add(rows).filter(|&end| end <= columns.count() as u64);
        let Some(end) = end else {
            let expected = format!("rows of {} chunks", columns.count());
            return Err(self.wrong(expected, format!("{rows} rows from {first}")));
        };
        let rows = first as usize..end as usize;
        let mut least = 0;
        for row in rows.clone() {
            let number = columns.number(row);
            if number < least || number >= count {
                let expected = format!("ascending numbers of chunks below {count}");
                return Err(self.wrong(expected, number));
            }
            least = number + 1;
            let (offset, length) = (columns.offset(row), columns.length(row));
            if length == 0 || length > MOST_CHUNK_BYTES || offset.checked_add(length).is_none() {
                let expected = format!("chunk {number} of 1 to {MOST_CHUNK_BYTES} bytes");
                return Err(self.wrong(expected, format!("{length} bytes at {offset}")));
            }
        }
        Ok(Positions::Listed { columns: columns.clone(), rows })
    }

    fn wrong(&self, expected: impl ToString, found: impl ToString) -> IndexError {
        IndexError::Array {
            path: self.path.to_string(),
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }
}

/// Whether types of NumPy have such a character. None of them ends the text in a header of `.npy`.
fn is_of_type(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"<>|=[]-".contains(&byte)
}

/// Whether chunks are records of whole rows along the slowest axis, so that parts of them can be
/// read.
fn is_of_records(grid: &ChunkGrid) -> bool {
    let (shape, chunk_shape) = (&grid.shape, &grid.chunk_shape);
    let slowest = shape.len() - 1;
    slowest > 0 && chunk_shape[slowest] == 1 && chunk_shape[..slowest] == shape[..slowest]
}

fn product(sides: &[u64]) -> Option<u64> {
    sides.iter().try_fold(1u64, |all, &side| all.checked_mul(side))
}
