//! bzip2, by the decoder of compressed files.

use super::error::FilterError;
use super::fields::damage_error;
use super::wrong_size;
use crate::stream::{StreamKind, start};

/// The most that one byte becomes. Five bytes stand for 259 equal ones, and a block has room for
/// 900 000 of these five, in about 30 bytes.
pub(super) const MOST_EXPANSION: usize = 1 << 21;

/// Decode a stream.
pub(super) fn decode(bytes: &[u8], out: &mut [u8]) -> Result<usize, FilterError> {
    let mut decoder = start(StreamKind::Bzip2, false);
    let (mut input, mut output) = (0, 0);
    // A stream longer than expected shows by a byte more.
    let mut more = [0];
    loop {
        let is_full = output == out.len();
        let room = if is_full { &mut more[..] } else { &mut out[output..] };
        let step = decoder.decode(&bytes[input..], true, room);
        let step = step.map_err(|_| damage_error("bzip2", bytes, out))?;
        input += step.input_bytes;
        if is_full && step.output_bytes > 0 {
            return Err(wrong_size("bzip2", out.len(), out.len() + 1));
        }
        output += step.output_bytes;
        if step.end {
            return Ok(output);
        }
        if step.input_bytes + step.output_bytes == 0 {
            return Err(damage_error("bzip2", bytes, out));
        }
    }
}
