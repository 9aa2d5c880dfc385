//! Pixels with a stored width that is not that of ZBITPIX: widened or narrowed, wrapping as a cast.

use swathe_array::DType;

use super::error::CodecError;

/// The type a value of `width` bytes has in a tile of `dtype` pixels: raw floats stay floats,
/// integers follow BITPIX, 8-bit ones being unsigned.
pub(super) fn of_width(dtype: DType, width: usize) -> Option<DType> {
    match (dtype.is_float(), width) {
        (true, 4) => Some(DType::F32),
        (true, 8) => Some(DType::F64),
        (false, 1) => Some(DType::U8),
        (false, 2) => Some(DType::I16),
        (false, 4) => Some(DType::I32),
        (false, 8) => Some(DType::I64),
        _ => None,
    }
}

/// Rewrites big-endian `from` pixels as big-endian `dtype` ones, into as many as `out` holds.
pub(super) fn convert(
    codec: &'static str,
    from: DType,
    bytes: &[u8],
    dtype: DType,
    out: &mut [u8],
) -> Result<(), CodecError> {
    match from {
        DType::U8 => integers(bytes, |[byte]: [u8; 1]| byte.into(), dtype, out),
        DType::I16 => integers(bytes, |value| i16::from_be_bytes(value).into(), dtype, out),
        DType::I32 => integers(bytes, |value| i32::from_be_bytes(value).into(), dtype, out),
        DType::I64 => integers(bytes, i64::from_be_bytes, dtype, out),
        DType::F32 => floats(bytes, |value| f32::from_be_bytes(value).into(), dtype, out),
        DType::F64 => floats(bytes, f64::from_be_bytes, dtype, out),
    }
    .ok_or(CodecError::Unsupported {
        codec,
        expected: "integers for integer pixels, floats for float pixels",
        found: from.bitpix(),
    })
}

fn integers<const N: usize>(
    bytes: &[u8],
    value: impl Fn([u8; N]) -> i64,
    dtype: DType,
    out: &mut [u8],
) -> Option<()> {
    match dtype {
        DType::U8 => each(bytes, value, |value| [value as u8], out),
        DType::I16 => each(bytes, value, |value| (value as i16).to_be_bytes(), out),
        DType::I32 => each(bytes, value, |value| (value as i32).to_be_bytes(), out),
        DType::I64 => each(bytes, value, i64::to_be_bytes, out),
        DType::F32 | DType::F64 => return None,
    }
    Some(())
}

fn floats<const N: usize>(
    bytes: &[u8],
    value: impl Fn([u8; N]) -> f64,
    dtype: DType,
    out: &mut [u8],
) -> Option<()> {
    match dtype {
        DType::F32 => each(bytes, value, |value| (value as f32).to_be_bytes(), out),
        DType::F64 => each(bytes, value, f64::to_be_bytes, out),
        _ => return None,
    }
    Some(())
}

fn each<T, const N: usize, const M: usize>(
    bytes: &[u8],
    value: impl Fn([u8; N]) -> T,
    store: impl Fn(T) -> [u8; M],
    out: &mut [u8],
) {
    for (to, from) in out.as_chunks_mut().0.iter_mut().zip(bytes.as_chunks().0) {
        *to = store(value(*from));
    }
}
