//! Compressions that only TIFF uses: LZW and PackBits.

use weezl::{BitOrder, LzwError, LzwStatus, decode};

use super::error::FilterError;
use super::fields::damage_error;
use super::wrong_size;

/// A code of 12 bits stands for at most 4096 bytes.
pub(super) const MOST_EXPANSION_LZW: usize = 2731;
/// Two bytes stand for at most 128.
pub(super) const MOST_EXPANSION_PACKBITS: usize = 64;

/// Decode LZW. What follows the decoded bytes is not looked at: writers leave out the end code.
pub(super) fn decode_lzw(bytes: &[u8], out: &mut [u8]) -> Result<usize, FilterError> {
    let mut decoder = decode::Decoder::with_tiff_size_switch(BitOrder::Msb, 8);
    let (mut input, mut output) = (0, 0);
    while output < out.len() {
        let result = decoder.decode_bytes(&bytes[input..], &mut out[output..]);
        input += result.consumed_in;
        output += result.consumed_out;
        match result.status {
            Ok(LzwStatus::Ok) if result.consumed_in + result.consumed_out > 0 => {}
            Ok(LzwStatus::Ok | LzwStatus::NoProgress | LzwStatus::Done) => break,
            Err(LzwError::InvalidCode) => return Err(damage_error("lzw", bytes, out)),
        }
    }
    Ok(output)
}

/// Decode runs of equal bytes and of others.
pub(super) fn decode_packbits(bytes: &[u8], out: &mut [u8]) -> Result<usize, FilterError> {
    let mut rest = bytes;
    let mut at = 0;
    let length = out.len();
    while let [head, after @ ..] = rest {
        let count = match head {
            0..128 => usize::from(*head) + 1,
            128 => {
                rest = after;
                continue;
            }
            _ => 257 - usize::from(*head),
        };
        let to = out.get_mut(at..at + count).ok_or(wrong_size("packbits", length, at + count))?;
        if *head < 128 {
            let (run, after) = after.split_at_checked(count).ok_or(FilterError::Short {
                filter: "packbits",
                expected: count as u64,
                found: after.len() as u64,
            })?;
            to.copy_from_slice(run);
            rest = after;
        } else {
            let (value, after) = after.split_first().ok_or(FilterError::Short {
                filter: "packbits",
                expected: 1,
                found: 0,
            })?;
            to.fill(*value);
            rest = after;
        }
        at += count;
    }
    Ok(at)
}
