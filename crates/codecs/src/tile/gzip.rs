//! GZIP_1 and GZIP_2 (FITS Standard 4.0, 10.4.2): one gzip member per tile, its bytes either as
//! they would be stored or shuffled, all most significant bytes first.

use libdeflater::{DecompressionError, Decompressor};

use super::error::CodecError;
use super::room;

/// Deflate (RFC 1951) stores at best 258 bytes in two bits: no stream expands more than this.
const MOST_EXPANSION: usize = 1032;

/// Inflates a tile of `pixels` pixels into `out`, which ends up 1, 2, 4 or 8 bytes per pixel
/// long; `width` is the likeliest.
///
/// Writers chose the width by their own rules, so it is known only once the tile is inflated.
pub(super) fn inflate(
    codec: &'static str,
    inflater: &mut Decompressor,
    bytes: &[u8],
    pixels: usize,
    width: usize,
    out: &mut Vec<u8>,
) -> Result<usize, CodecError> {
    let limit = bytes.len().saturating_mul(MOST_EXPANSION);
    if pixels > limit {
        return Err(CodecError::Short {
            codec,
            expected: (pixels / MOST_EXPANSION) as u64,
            found: bytes.len() as u64,
        });
    }
    let likely = pixels.saturating_mul(width).min(limit);
    let widest = pixels.saturating_mul(8).min(limit);
    let size = match member(inflater, bytes, likely, codec, out)? {
        Ok(size) => Ok(size),
        Err(DecompressionError::InsufficientSpace) if widest > likely => {
            member(inflater, bytes, widest, codec, out)?
        }
        Err(error) => Err(error),
    };
    let expected = (pixels * width) as u64;
    match size {
        Ok(size) => {
            out.truncate(size);
            [1, 2, 4, 8].into_iter().find(|width| size == pixels * width).ok_or(CodecError::Size {
                codec,
                expected,
                found: size as u64,
            })
        }
        Err(DecompressionError::InsufficientSpace) => {
            Err(CodecError::Size { codec, expected, found: widest as u64 + 1 })
        }
        Err(DecompressionError::BadData) => {
            Err(CodecError::Stream { codec, expected, found: bytes.len() as u64 })
        }
    }
}

/// Inflates one member into at most `size` bytes: gzip, or the bare zlib stream of RFC 1950 that
/// some writers stored.
fn member(
    inflater: &mut Decompressor,
    bytes: &[u8],
    size: usize,
    codec: &'static str,
    out: &mut Vec<u8>,
) -> Result<Result<usize, DecompressionError>, CodecError> {
    room(codec, out, size)?;
    Ok(match bytes {
        [0x78, _, ..] => inflater.zlib_decompress(bytes, out),
        _ => inflater.gzip_decompress(bytes, out),
    })
}

/// Puts the bytes of `out.len() / width` pixels together again from `width` planes of bytes.
pub(super) fn unshuffle(planes: &[u8], width: usize, out: &mut [u8]) {
    let plane = planes.len() / width.max(1);
    let split: Vec<&[u8]> = planes.chunks_exact(plane.max(1)).collect();
    match split[..] {
        [a, b] => {
            for ((pixel, a), b) in out.as_chunks_mut().0.iter_mut().zip(a).zip(b) {
                *pixel = u16::to_le_bytes(u16::from(*a) | u16::from(*b) << 8);
            }
        }
        [a, b, c, d] => {
            let bytes = a.iter().zip(b).zip(c.iter().zip(d));
            for (pixel, ((a, b), (c, d))) in out.as_chunks_mut().0.iter_mut().zip(bytes) {
                let high = u32::from(*a) | u32::from(*b) << 8;
                *pixel = u32::to_le_bytes(high | u32::from(*c) << 16 | u32::from(*d) << 24);
            }
        }
        _ => {
            for (byte, plane) in split.iter().enumerate() {
                for (pixel, value) in out.chunks_exact_mut(width).zip(*plane) {
                    pixel[byte] = *value;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libdeflater::{CompressionLvl, Compressor};

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut compressor = Compressor::new(CompressionLvl::default());
        let mut out = vec![0; compressor.gzip_compress_bound(data.len())];
        let size = compressor.gzip_compress(data, &mut out).unwrap();
        out.truncate(size);
        out
    }

    #[test]
    fn finds_the_width_from_the_size() {
        let mut inflater = Decompressor::new();
        for width in [1, 2, 4, 8] {
            let data: Vec<u8> = (0..100 * width).map(|i| (i % 251) as u8).collect();
            for likely in [1, 2, 4, 8] {
                let mut out = Vec::new();
                let result = inflate("GZIP_1", &mut inflater, &gzip(&data), 100, likely, &mut out);
                assert_eq!(result, Ok(width));
                assert_eq!(out, data);
            }
        }
    }

    #[test]
    fn wrong_sizes_and_broken_streams_are_errors() {
        let mut inflater = Decompressor::new();
        let mut out = Vec::new();
        let mut run = |bytes: &[u8], pixels| {
            inflate("GZIP_1", &mut inflater, bytes, pixels, 2, &mut out).unwrap_err()
        };
        let stream = gzip(&[7; 200]);
        assert!(matches!(run(&stream, 99), CodecError::Size { found: 200, .. }));
        assert!(matches!(run(&stream, 20), CodecError::Size { .. }));
        assert!(matches!(run(&stream[..stream.len() - 1], 100), CodecError::Stream { .. }));
        assert!(matches!(run(&stream, 1 << 30), CodecError::Short { .. }));
        assert!(matches!(run(&[], 5), CodecError::Short { .. }));
    }

    #[test]
    fn unshuffles_every_width_and_only_what_is_asked() {
        for width in [1, 2, 4, 8] {
            let pixels: Vec<u8> = (0..40 * width).map(|i| (i * 7 % 256) as u8).collect();
            let planes: Vec<u8> = (0..width)
                .flat_map(|byte| pixels.iter().skip(byte).step_by(width).copied())
                .collect();
            for need in [0, 1, 7, 40] {
                let mut out = vec![0; need * width];
                unshuffle(&planes, width, &mut out);
                assert_eq!(out, pixels[..need * width]);
            }
        }
    }
}
