//! Deflate in the framings of zlib and gzip, and without one.

use libdeflater::{DecompressionError, Decompressor};

use super::error::FilterError;
use super::fields::damage_error;
use super::{MOST_BYTES, make_room, wrong_size};

/// Deflate (RFC 1951) stores at best 258 bytes in two bits.
pub(super) const MOST_EXPANSION: usize = 1032;

/// Inflate a stream of zlib.
pub(super) fn decode_zlib(
    filter: &'static str,
    inflater: &mut Decompressor,
    bytes: &[u8],
    out: &mut [u8],
) -> Result<usize, FilterError> {
    let result = inflater.zlib_decompress(bytes, out);
    result.map_err(|error| filter_error(filter, error, bytes, out))
}

/// Inflate a member of gzip.
pub(super) fn decode_gzip(
    inflater: &mut Decompressor,
    bytes: &[u8],
    out: &mut [u8],
) -> Result<usize, FilterError> {
    let result = inflater.gzip_decompress(bytes, out);
    result.map_err(|error| filter_error("gzip", error, bytes, out))
}

/// Check where a chunk begins in the bytes of a stream, and their number.
pub(super) fn validate_raw(from: u64, size: u64) -> Result<(), FilterError> {
    if from <= size && size <= MOST_BYTES as u64 {
        return Ok(());
    }
    let found = i64::try_from(size).unwrap_or(i64::MAX);
    let (what, expected) = ("bytes of the stream", "those before the chunk, up to 2^31");
    Err(FilterError::Parameter { filter: "rawdeflate", what, expected, found })
}

/// Inflate a stream without a framing, and take the chunk out of it. `place`: first byte of the
/// chunk, and bytes of all.
pub(super) fn decode_raw(
    place: [u64; 2],
    inflater: &mut Decompressor,
    bytes: &[u8],
    out: &mut [u8],
) -> Result<usize, FilterError> {
    let filter = "rawdeflate";
    let [from, size] = place.map(|each| usize::try_from(each).unwrap_or(usize::MAX));
    if size / MOST_EXPANSION > bytes.len() {
        let (expected, found) = ((size / MOST_EXPANSION) as u64, bytes.len() as u64);
        return Err(FilterError::Short { filter, expected, found });
    }
    let mut whole = Vec::new();
    make_room(filter, size, &mut whole)?;
    let result = inflater.deflate_decompress(bytes, &mut whole);
    let count = result.map_err(|error| filter_error(filter, error, bytes, &whole))?;
    let chunk = whole[..count].get(from..).unwrap_or_default();
    let length = chunk.len().min(out.len());
    out[..length].copy_from_slice(&chunk[..length]);
    Ok(length)
}

fn filter_error(
    filter: &'static str,
    error: DecompressionError,
    bytes: &[u8],
    out: &[u8],
) -> FilterError {
    match error {
        DecompressionError::InsufficientSpace => wrong_size(filter, out.len(), out.len() + 1),
        DecompressionError::BadData => damage_error(filter, bytes, out),
    }
}
