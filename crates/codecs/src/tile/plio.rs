//! PLIO_1 (FITS Standard 4.0, 10.4.3): the line lists IRAF keeps pixel masks in.
//!
//! A list of 16-bit words, big-endian: a short header with the start of the instructions and
//! the number of words, then instructions of a 4-bit code and 12 bits of data that either
//! change the current value or advance over pixels. Pixels after the last instruction are zero.

use super::error::CodecError;

const NAME: &str = "PLIO_1";

/// Decodes the leading pixels that `out` has room for, each of `N` bytes. `out` must be zero.
pub(super) fn decode<const N: usize>(
    bytes: &[u8],
    store: impl Fn(i32) -> [u8; N],
    out: &mut [u8],
) -> Result<(), CodecError> {
    let words = bytes.as_chunks::<2>().0;
    let (pixels, _) = out.as_chunks_mut::<N>();
    let mut value = 1i32;
    let mut at = 0usize;
    let mut instructions = instructions(words)?.iter();
    while at < pixels.len() {
        let Some(word) = instructions.next() else { break };
        let word = u16::from_be_bytes(*word);
        let data = i32::from(word & 0xfff);
        let end = at.saturating_add(data as usize).min(pixels.len());
        match word >> 12 {
            0 => at = end,
            4 => {
                pixels[at..end].fill(store(value));
                at = end;
            }
            5 => {
                // Zeros up to one last pixel of the current value, if it is still needed.
                if data > 0
                    && let Some(pixel) = pixels.get_mut(at + data as usize - 1)
                {
                    *pixel = store(value);
                }
                at = end;
            }
            1 => {
                let high = instructions.next().ok_or(CodecError::Short {
                    codec: NAME,
                    expected: bytes.len() as u64 + 2,
                    found: bytes.len() as u64,
                })?;
                value = (i32::from(i16::from_be_bytes(*high)) << 12).wrapping_add(data);
            }
            2 => value = value.wrapping_add(data),
            3 => value = value.wrapping_sub(data),
            code @ (6 | 7) => {
                value = value.wrapping_add(if code == 6 { data } else { -data });
                pixels[at] = store(value);
                at += 1;
            }
            code => {
                return Err(CodecError::Corrupt {
                    codec: NAME,
                    what: "instruction",
                    expected: 7,
                    found: i64::from(code),
                });
            }
        }
    }
    Ok(())
}

/// The words after the header. The third word is positive in the first form of the header, the
/// length itself; in the later one the length is split over the fourth and fifth.
fn instructions(words: &[[u8; 2]]) -> Result<&[[u8; 2]], CodecError> {
    let word = |at: usize| words.get(at).map(|word| i64::from(i16::from_be_bytes(*word)));
    let found = 2 * words.len() as u64;
    let short = |expected: u64| CodecError::Short { codec: NAME, expected, found };
    let third = word(2).ok_or_else(|| short(6))?;
    let (first, length) = if third > 0 {
        (3, third)
    } else {
        let low = word(3).ok_or_else(|| short(10))?;
        let high = word(4).ok_or_else(|| short(10))?;
        (word(1).unwrap_or_default(), (high << 15) + low)
    };
    let corrupt =
        |what, expected, found| CodecError::Corrupt { codec: NAME, what, expected, found };
    let end = usize::try_from(length).map_err(|_| corrupt("length of list", 0, length))?;
    let start = usize::try_from(first).map_err(|_| corrupt("start of list", 0, first))?;
    if end > words.len() {
        return Err(short(2 * end as u64));
    }
    Ok(words.get(start..end).unwrap_or_default())
}
