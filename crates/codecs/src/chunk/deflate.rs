//! Deflate in the framings of zlib and gzip.

use libdeflater::{DecompressionError, Decompressor};

use super::error::FilterError;
use super::fields::damage_error;
use super::wrong_size;

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
