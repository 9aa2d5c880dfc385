//! How one dump is cut into shards, a shard into chunks, and what a shard's bytes are: those of the
//! codec `sharding_indexed` of Zarr 3, with the index at the end.

use crate::{Element, Invalid};
use std::ops::Range;

/// Size of a chunk, at most: what a small section reads.
const CHUNK_BYTES: u64 = 1 << 20;
/// Size of a shard, at most.
const SHARD_BYTES: u64 = 64 << 20;
/// Offset and length of a chunk that is not there.
const MISSING: u64 = u64::MAX;
const ENTRY_BYTES: u64 = 16;
const CHECKSUM_BYTES: u64 = 4;

/// Elements from one to the next along each axis, in C order.
pub fn strides(shape: &[u64]) -> Vec<u64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// The shards of one dump of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharding {
    pub(crate) shape: Vec<u64>,
    pub(crate) element: Element,
    /// Lengths of a chunk.
    pub chunk_shape: Vec<u64>,
    /// Lengths of a shard: whole chunks.
    pub shard_shape: Vec<u64>,
    /// Shards along each axis.
    pub grid: Vec<u64>,
}

impl Sharding {
    /// The shards of an array of a shape.
    pub fn new(shape: &[u64], element: Element) -> Sharding {
        let chunk_shape = chunk_shape(shape, element.bytes());
        let shard_shape = shard_shape(shape, &chunk_shape, element.bytes());
        let grid = shape.iter().zip(&shard_shape).map(|(a, b)| a.div_ceil(*b)).collect();
        Sharding { shape: shape.to_vec(), element, chunk_shape, shard_shape, grid }
    }

    /// Number of shards.
    pub fn count(&self) -> u64 {
        self.grid.iter().product()
    }

    /// The place of a shard in the grid, the last axis fastest.
    pub fn place(&self, number: u64) -> Vec<u64> {
        strides(&self.grid)
            .iter()
            .zip(&self.grid)
            .map(|(step, count)| number / step % count)
            .collect()
    }

    /// The elements of a shard that are in the array.
    pub fn region(&self, place: &[u64]) -> Vec<Range<u64>> {
        let axis = |axis: usize| {
            let start = place[axis] * self.shard_shape[axis];
            start..(start + self.shard_shape[axis]).min(self.shape[axis])
        };
        (0..self.shape.len()).map(axis).collect()
    }

    /// Bytes of a chunk.
    pub fn chunk_bytes(&self) -> u64 {
        self.chunk_shape.iter().product::<u64>() * self.element.bytes()
    }

    /// Bytes of the index of a shard, with its checksum.
    pub fn index_bytes(&self) -> u64 {
        self.chunks_of_shard().iter().product::<u64>() * ENTRY_BYTES + CHECKSUM_BYTES
    }

    /// Chunks along each axis of a shard.
    pub fn chunks_of_shard(&self) -> Vec<u64> {
        self.shard_shape.iter().zip(&self.chunk_shape).map(|(a, b)| a / b).collect()
    }

    /// The bytes of a shard: chunks in C order, then for each its offset and length, then a CRC-32C
    /// of these.
    ///
    /// `elements` are those of its region of lengths `shape`.
    pub fn encode(&self, elements: &[u8], shape: &[u64]) -> Vec<u8> {
        let size = self.element.bytes();
        let chunks: Vec<u64> =
            shape.iter().zip(&self.chunk_shape).map(|(a, b)| a.div_ceil(*b)).collect();
        let (chunk_bytes, count) = (self.chunk_bytes(), chunks.iter().product::<u64>());
        let mut bytes = vec![0; (count * chunk_bytes) as usize];
        bytes.reserve_exact(self.index_bytes() as usize);
        let (steps, chunk_steps) = (strides(shape), strides(&self.chunk_shape));
        for (number, chunk) in bytes.chunks_exact_mut(chunk_bytes as usize).enumerate() {
            let mut rest = number as u64;
            let mut region = vec![0..0; shape.len()];
            for axis in (0..shape.len()).rev() {
                let start = rest % chunks[axis] * self.chunk_shape[axis];
                region[axis] = start..(start + self.chunk_shape[axis]).min(shape[axis]);
                rest /= chunks[axis];
            }
            for_each_row(&region, |start, length| {
                let from: u64 = start.iter().zip(&steps).map(|(at, step)| at * step).sum();
                let within = start.iter().zip(&region).zip(&chunk_steps);
                let to: u64 = within.map(|((at, span), step)| (at - span.start) * step).sum();
                let (from, to, length) = (from * size, to * size, (length * size) as usize);
                chunk[to as usize..][..length]
                    .copy_from_slice(&elements[from as usize..][..length]);
            });
        }
        self.push_index(&mut bytes, &chunks);
        bytes
    }

    /// Append the index of a shard that has the first `chunks` along each axis.
    fn push_index(&self, bytes: &mut Vec<u8>, chunks: &[u64]) {
        let (every, start) = (self.chunks_of_shard(), bytes.len());
        let (steps, own_steps) = (strides(&every), strides(chunks));
        for number in 0..every.iter().product() {
            let place: Vec<u64> =
                steps.iter().zip(&every).map(|(step, count)| number / step % count).collect();
            let is_there = place.iter().zip(chunks).all(|(at, count)| at < count);
            let own: u64 = place.iter().zip(&own_steps).map(|(at, step)| at * step).sum();
            let length = self.chunk_bytes();
            let entry = if is_there { [own * length, length] } else { [MISSING, MISSING] };
            bytes.extend(entry.iter().flat_map(|value| value.to_le_bytes()));
        }
        let checksum = crc32c::crc32c(&bytes[start..]);
        bytes.extend(checksum.to_le_bytes());
    }

    /// Where a shard's chunks lie, from the bytes of its index; `None` for those that are not there.
    ///
    /// `shard_bytes` is the length of the whole shard.
    pub fn read_index(
        &self,
        index: &[u8],
        shard_bytes: u64,
    ) -> Result<Vec<Option<Range<u64>>>, Invalid> {
        let fault = |found: &str| Invalid::new("index of a shard", "one that is whole", found);
        let entries = index
            .split_last_chunk::<{ CHECKSUM_BYTES as usize }>()
            .filter(|_| index.len() as u64 == self.index_bytes())
            .filter(|(entries, sum)| crc32c::crc32c(entries) == u32::from_le_bytes(**sum))
            .map(|(entries, _)| entries)
            .ok_or_else(|| fault("another checksum"))?;
        let end = shard_bytes.saturating_sub(self.index_bytes());
        let (values, _) = entries.as_chunks::<8>();
        let pairs = values.chunks_exact(2).map(|pair| {
            let (offset, length) = (u64::from_le_bytes(pair[0]), u64::from_le_bytes(pair[1]));
            match (offset, length) {
                (MISSING, MISSING) => Ok(None),
                _ if length == self.chunk_bytes()
                    && offset.checked_add(length).is_some_and(|stop| stop <= end) =>
                {
                    Ok(Some(offset..offset + length))
                }
                _ => Err(fault("a chunk outside the shard")),
            }
        });
        pairs.collect()
    }
}

/// Call for each row of a region of an array: where it starts, and its length along the last axis.
pub fn for_each_row(region: &[Range<u64>], mut row: impl FnMut(&[u64], u64)) {
    if region.iter().any(|span| span.is_empty()) {
        return;
    }
    let last = region.len() - 1;
    let length = region[last].end - region[last].start;
    let mut at: Vec<u64> = region.iter().map(|span| span.start).collect();
    loop {
        row(&at, length);
        let Some(axis) = (0..last).rev().find(|&axis| at[axis] + 1 < region[axis].end) else {
            return;
        };
        at[axis] += 1;
        for later in axis + 1..last {
            at[later] = region[later].start;
        }
    }
}

/// The shape of a chunk: as even as can be, within `CHUNK_BYTES`.
fn chunk_shape(shape: &[u64], element_bytes: u64) -> Vec<u64> {
    let mut chunk = shape.to_vec();
    loop {
        let elements: u64 = chunk.iter().product();
        let size = element_bytes * elements;
        if size <= CHUNK_BYTES {
            return chunk;
        }
        let longest = chunk.iter().copied().max().unwrap_or(1);
        let axis = chunk.iter().position(|&length| length == longest).unwrap_or(0);
        let parts = if longest * 2 > elements { size.div_ceil(CHUNK_BYTES) } else { 2 };
        chunk[axis] = longest.div_ceil(parts.min(longest));
    }
}

/// The shape of a shard: whole chunks, along the last axes first.
fn shard_shape(shape: &[u64], chunk: &[u64], element_bytes: u64) -> Vec<u64> {
    let mut shard = chunk.to_vec();
    let mut size = element_bytes * chunk.iter().product::<u64>();
    for axis in (0..shape.len()).rev() {
        let chunks = shape[axis].div_ceil(chunk[axis]);
        let count = chunks.min(SHARD_BYTES / size).max(1);
        shard[axis] *= count;
        size *= count;
        if count < chunks {
            break;
        }
    }
    shard
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sharding(shape: &[u64], element: &str) -> Sharding {
        Sharding::new(shape, Element::parse(element).expect("a type"))
    }

    #[test]
    fn an_array_of_the_paper_is_one_shard() {
        let of = sharding(&[128, 128, 128], "f4");
        assert_eq!((of.count(), &of.shard_shape[..]), (1, &[128, 128, 128][..]));
        assert_eq!(of.chunk_shape, [64, 64, 64]);
    }

    #[test]
    fn large_arrays_have_several() {
        let of = sharding(&[512, 512, 512], "f4");
        assert!(of.count() > 1 && of.chunk_bytes() <= CHUNK_BYTES);
        let regions = (0..of.count()).map(|number| of.region(&of.place(number)));
        let elements: u64 = regions
            .map(|region| region.iter().map(|span| span.end - span.start).product::<u64>())
            .sum();
        assert_eq!(elements, 512 * 512 * 512);
    }

    #[test]
    fn a_shard_is_chunks_and_their_index() {
        let of = Sharding {
            chunk_shape: vec![2, 2],
            shard_shape: vec![4, 4],
            grid: vec![1, 1],
            ..sharding(&[3, 3], "u1")
        };
        let bytes = of.encode(&[1, 2, 3, 4, 5, 6, 7, 8, 9], &[3, 3]);
        assert_eq!(bytes[..16], [1, 2, 4, 5, 3, 0, 6, 0, 7, 8, 0, 0, 9, 0, 0, 0]);
        let index = of.read_index(&bytes[16..], bytes.len() as u64).expect("an index");
        assert_eq!(index, [Some(0..4), Some(4..8), Some(8..12), Some(12..16)]);
        for damage in [0, 5, bytes.len() - 17] {
            let mut index = bytes[16..].to_vec();
            index[damage] ^= 1;
            assert!(of.read_index(&index, bytes.len() as u64).is_err());
        }
        assert!(of.read_index(&bytes[17..], bytes.len() as u64).is_err());
        assert!(of.read_index(&bytes[16..], 20).is_err(), "chunks must lie in the shard");
    }
}
