//! Codes that repeat earlier bytes: LZF, LZ4, BloscLZ and Zstandard.

use serde::{Deserialize, Serialize};
use zstd_safe::DCtx;

use super::error::FilterError;
use super::fields::{Fields, corrupt, damage_error};
use super::wrong_size;

/// Three bytes repeat at most 264.
pub(super) const MOST_EXPANSION_LZF: usize = 88;
/// A byte of a length adds at most 255, in LZ4 and in BloscLZ.
pub(super) const MOST_EXPANSION_LZ4: usize = 255;
/// A block of 128 KiB equal bytes takes 4 bytes.
pub(super) const MOST_EXPANSION_ZSTD: usize = 1 << 15;
/// The distance of BloscLZ from which it has a field of its own.
const FAR: usize = 8191;

/// What surrounds the blocks of LZ4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lz4Framing {
    /// Big-endian sizes of all and of a block, then blocks after their sizes. HDF5 filter 32004.
    Hdf5,
    /// Blocks after their big-endian sizes, each after its decoded size. ASDF.
    Asdf,
    /// One block after its decoded size. Zarr.
    Zarr,
}

/// Decode blocks of LZ4 in a framing.
pub(super) fn decode_lz4(
    framing: Lz4Framing,
    bytes: &[u8],
    out: &mut [u8],
) -> Result<usize, FilterError> {
    let mut fields = Fields::new("lz4", bytes);
    match framing {
        Lz4Framing::Zarr => decode_after_size(bytes, out),
        Lz4Framing::Asdf => {
            let mut at = 0;
            while !fields.rest().is_empty() {
                let length = fields.length_be()?;
                at += decode_after_size(fields.take(length)?, &mut out[at..])?;
            }
            Ok(at)
        }
        Lz4Framing::Hdf5 => {
            let size = fields.number_be()?;
            let block = fields.length_be()?;
            if size > out.len() as u64 {
                return Err(corrupt("lz4", "decoded size", out.len(), size));
            }
            if block == 0 && size > 0 {
                return Err(corrupt("lz4", "size of a block", 1, 0));
            }
            for out in out[..size as usize].chunks_mut(block.max(1)) {
                let length = fields.length_be()?;
                decode_lz4_block("lz4", fields.take(length)?, out)?;
            }
            Ok(size as usize)
        }
    }
}

/// Decode a block of LZ4 after its decoded size.
fn decode_after_size(bytes: &[u8], out: &mut [u8]) -> Result<usize, FilterError> {
    let mut fields = Fields::new("lz4", bytes);
    let size = fields.length_le()?;
    let length = out.len();
    let out = out.get_mut(..size).ok_or(wrong_size("lz4", length, size))?;
    let found = decode_lz4_stream("lz4", fields.rest(), out)?;
    if found == size { Ok(size) } else { Err(wrong_size("lz4", size, found)) }
}

/// Decode a block of LZ4 to exactly `out`, or copy it if it is as long.
pub(super) fn decode_lz4_block(
    filter: &'static str,
    bytes: &[u8],
    out: &mut [u8],
) -> Result<(), FilterError> {
    if bytes.len() == out.len() {
        out.copy_from_slice(bytes);
        return Ok(());
    }
    let size = decode_lz4_stream(filter, bytes, out)?;
    if size == out.len() { Ok(()) } else { Err(wrong_size(filter, out.len(), size)) }
}

/// Decode a block of LZ4.
pub(super) fn decode_lz4_stream(
    filter: &'static str,
    bytes: &[u8],
    out: &mut [u8],
) -> Result<usize, FilterError> {
    lz4_flex::block::decompress_into(bytes, out).map_err(|_| damage_error(filter, bytes, out))
}

/// Decode frames of Zstandard.
pub(super) fn decode_zstd(
    filter: &'static str,
    decoder: &mut DCtx<'static>,
    bytes: &[u8],
    out: &mut [u8],
) -> Result<usize, FilterError> {
    decoder.decompress(out, bytes).map_err(|_| damage_error(filter, bytes, out))
}

/// Decode LZF.
pub(super) fn decode_lzf(bytes: &[u8], out: &mut [u8]) -> Result<usize, FilterError> {
    let mut fields = Fields::new("lzf", bytes);
    let mut at = 0;
    while !fields.rest().is_empty() {
        let head = usize::from(fields.take(1)?[0]);
        if head < 32 {
            at = copy(fields.take(head + 1)?, at, out)
                .ok_or_else(|| damage_error("lzf", bytes, out))?;
            continue;
        }
        let mut length = head >> 5;
        if length == 7 {
            length += usize::from(fields.take(1)?[0]);
        }
        let distance = (head & 31) << 8 | usize::from(fields.take(1)?[0]);
        at = repeat(distance + 1, length + 2, at, out)
            .ok_or_else(|| damage_error("lzf", bytes, out))?;
    }
    Ok(at)
}

/// Decode BloscLZ.
pub(super) fn decode_blosclz(bytes: &[u8], out: &mut [u8]) -> Result<usize, FilterError> {
    let mut fields = Fields::new("blosc", bytes);
    let (mut at, mut mask) = (0, 31);
    while !fields.rest().is_empty() {
        let head = usize::from(fields.take(1)?[0]) & mask;
        mask = 255;
        if head < 32 {
            at = copy(fields.take(head + 1)?, at, out)
                .ok_or_else(|| damage_error("blosc", bytes, out))?;
            continue;
        }
        let mut length = (head >> 5) + 2;
        if head >> 5 == 7 {
            loop {
                let more = usize::from(fields.take(1)?[0]);
                length += more;
                if more < 255 {
                    break;
                }
            }
        }
        let mut distance = (head & 31) << 8 | usize::from(fields.take(1)?[0]);
        if distance == FAR {
            let far = fields.take(2)?;
            distance += usize::from(far[0]) << 8 | usize::from(far[1]);
        }
        at = repeat(distance + 1, length, at, out)
            .ok_or_else(|| damage_error("blosc", bytes, out))?;
    }
    Ok(at)
}

/// Put bytes at `at`; return the position after them, none if there is no room.
fn copy(bytes: &[u8], at: usize, out: &mut [u8]) -> Option<usize> {
    out.get_mut(at..at + bytes.len())?.copy_from_slice(bytes);
    Some(at + bytes.len())
}

/// Repeat `length` bytes from `distance` before `at`; return the position after them, none if there
/// are no such bytes or no room.
fn repeat(distance: usize, length: usize, at: usize, out: &mut [u8]) -> Option<usize> {
    let from = at.checked_sub(distance)?;
    let end = at.checked_add(length).filter(|end| *end <= out.len())?;
    if distance >= length {
        out.copy_within(from..from + length, at);
    } else {
        for i in at..end {
            out[i] = out[i - distance];
        }
    }
    Some(end)
}
