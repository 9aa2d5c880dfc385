//! Integers in the lowest bits of their elements, whose other bits are not theirs.

use super::error::FilterError;

/// Check the size of an element in bytes, and the bits that count.
pub(super) fn validate(size: u32, bits: u32) -> Result<(), FilterError> {
    let error = |what, expected, found: u32| {
        Err(FilterError::Parameter { filter: "bits", what, expected, found: i64::from(found) })
    };
    if ![1, 2, 4, 8].contains(&size) {
        return error("size of an element", "1, 2, 4 or 8 bytes", size);
    }
    if bits == 0 || bits > 8 * size {
        return error("bits that count", "1 to those of an element", bits);
    }
    Ok(())
}

/// Set the other bits of all elements: to the sign, or to 0. `shape`: bytes of an element, and
/// bits that count. `out` is as long as `bytes`.
pub(super) fn extend(
    [size, count]: [u32; 2],
    has_sign: bool,
    big_endian: bool,
    bytes: &[u8],
    out: &mut [u8],
) -> Result<usize, FilterError> {
    let rest = bytes.len() % size as usize;
    if rest > 0 {
        let (what, found) = ("bytes after the last element", rest as i64);
        return Err(FilterError::Corrupt { filter: "bits", what, expected: 0, found });
    }
    match (size, big_endian) {
        (1, _) => extend_all(bytes, out, |[byte]: [u8; 1]| {
            [low_bits(u64::from(byte), count, has_sign) as u8]
        }),
        (2, false) => extend_all(bytes, out, |of| {
            (low_bits(u64::from(u16::from_le_bytes(of)), count, has_sign) as u16).to_le_bytes()
        }),
        (2, true) => extend_all(bytes, out, |of| {
            (low_bits(u64::from(u16::from_be_bytes(of)), count, has_sign) as u16).to_be_bytes()
        }),
        (4, false) => extend_all(bytes, out, |of| {
            (low_bits(u64::from(u32::from_le_bytes(of)), count, has_sign) as u32).to_le_bytes()
        }),
        (4, true) => extend_all(bytes, out, |of| {
            (low_bits(u64::from(u32::from_be_bytes(of)), count, has_sign) as u32).to_be_bytes()
        }),
        (_, false) => extend_all(bytes, out, |of| {
            low_bits(u64::from_le_bytes(of), count, has_sign).to_le_bytes()
        }),
        (_, true) => extend_all(bytes, out, |of| {
            low_bits(u64::from_be_bytes(of), count, has_sign).to_be_bytes()
        }),
    }
    Ok(bytes.len())
}

fn extend_all<const N: usize>(bytes: &[u8], out: &mut [u8], of: impl Fn([u8; N]) -> [u8; N]) {
    let elements = bytes.as_chunks::<N>().0;
    for (result, element) in out.as_chunks_mut::<N>().0.iter_mut().zip(elements) {
        *result = of(*element);
    }
}

/// The lowest `count` bits of a value, 1 to 64, with their sign or with zeros above.
fn low_bits(value: u64, count: u32, has_sign: bool) -> u64 {
    let shift = 64 - count;
    let high = value << shift;
    if has_sign { (high as i64 >> shift) as u64 } else { high >> shift }
}
