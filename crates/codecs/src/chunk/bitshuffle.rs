//! Bitshuffle: the planes of the bits of elements, in blocks that may be compressed.

use serde::{Deserialize, Serialize};

use super::error::FilterError;
use super::fields::{Fields, corrupt};
use super::{Tools, lz, make_room, wrong_size};

const FILTER: &str = "bitshuffle";
/// Bytes of a block that the filter chooses, and its fewest elements.
const BLOCK_BYTES: usize = 8192;
const FEWEST_ELEMENTS: usize = 128;

/// How blocks are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// They are not.
    None,
    /// LZ4.
    Lz4,
    /// Zstandard.
    Zstd,
}

/// Check the sizes of an element and of a block.
pub(super) fn validate(size: u32, block: u32) -> Result<(), FilterError> {
    super::shuffle::validate(FILTER, size)?;
    if block.is_multiple_of(8) && block <= 1 << 24 {
        return Ok(());
    }
    let (what, expected) = ("elements of a block", "a multiple of 8 up to 16777216");
    Err(FilterError::Parameter { filter: FILTER, what, expected, found: i64::from(block) })
}

/// Decode a chunk. `sizes`: bytes of an element, and elements of a block or 0.
pub(super) fn decode(
    sizes: [u32; 2],
    codec: Codec,
    bytes: &[u8],
    tools: &mut Tools,
    out: &mut [u8],
) -> Result<usize, FilterError> {
    let [size, block] = sizes.map(|number| number as usize);
    let mut block_bytes = match block {
        0 => (BLOCK_BYTES / size / 8 * 8).max(FEWEST_ELEMENTS) * size,
        _ => block * size,
    };
    let mut fields = Fields::new(FILTER, bytes);
    let decoded_bytes = if codec == Codec::None {
        bytes.len()
    } else {
        let found = fields.number_be()?;
        let in_chunk = fields.length_be()?;
        if found > out.len() as u64 {
            return Err(corrupt(FILTER, "decoded size", out.len(), found));
        }
        if in_chunk != 0 {
            block_bytes = in_chunk;
        }
        if !block_bytes.is_multiple_of(8 * size) {
            return Err(corrupt(FILTER, "size of a block", block_bytes / size, in_chunk as u64));
        }
        found as usize
    };
    // What is left after the last eight elements is not shuffled.
    let out_length = out.len();
    let out = out.get_mut(..decoded_bytes).ok_or(wrong_size(FILTER, out_length, decoded_bytes))?;
    let (planar, rest) = out.split_at_mut(decoded_bytes / (8 * size) * (8 * size));
    let mut buffer = std::mem::take(&mut tools.buffer);
    for out in planar.chunks_mut(block_bytes) {
        if codec == Codec::None {
            unshuffle(fields.take(out.len())?, size, out);
            continue;
        }
        let length = fields.length_be()?;
        let block = fields.take(length)?;
        make_room(FILTER, out.len(), &mut buffer)?;
        let count = match codec {
            Codec::Zstd => lz::decode_zstd(FILTER, tools.zstd()?, block, &mut buffer)?,
            _ => lz::decode_lz4_stream(FILTER, block, &mut buffer)?,
        };
        if count != out.len() {
            return Err(wrong_size(FILTER, out.len(), count));
        }
        unshuffle(&buffer, size, out);
    }
    tools.buffer = buffer;
    let count = rest.len();
    rest.copy_from_slice(fields.take(count)?);
    Ok(decoded_bytes)
}

/// Put elements together from the planes of their bits. Their number is a multiple of 8.
pub(super) fn unshuffle(planes: &[u8], size: usize, out: &mut [u8]) {
    let groups = planes.len() / (8 * size);
    if groups == 0 {
        return;
    }
    for (byte, planes) in planes.chunks_exact(8 * groups).enumerate() {
        let planes: [&[u8]; 8] = std::array::from_fn(|bit| &planes[bit * groups..][..groups]);
        for (group, eight) in out.chunks_exact_mut(8 * size).enumerate() {
            let bits = transpose(u64::from_le_bytes(planes.map(|plane| plane[group])));
            if size == 1 {
                eight.copy_from_slice(&bits.to_le_bytes());
                continue;
            }
            for (element, value) in eight.chunks_exact_mut(size).zip(bits.to_le_bytes()) {
                element[byte] = value;
            }
        }
    }
}

/// Swap the rows and columns of 8 by 8 bits.
fn transpose(bits: u64) -> u64 {
    let swap = |bits: u64, mask: u64, distance: u32| {
        let other = (bits ^ bits >> distance) & mask;
        bits ^ other ^ other << distance
    };
    let bits = swap(bits, 0x00aa_00aa_00aa_00aa, 7);
    let bits = swap(bits, 0x0000_cccc_0000_cccc, 14);
    swap(bits, 0x0000_0000_f0f0_f0f0, 28)
}
