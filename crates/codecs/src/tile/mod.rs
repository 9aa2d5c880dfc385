//! Tile compression (FITS Standard 4.0, section 10): one tile's bytes in, its pixels out.
//!
//! Every codec returns big-endian integers (or raw floats) as an uncompressed image would store
//! them; quantised floats are then restored from 32-bit integers. Nothing here applies BZERO and
//! BSCALE, and integer blanks stay the integers they are.
//!
//! Room for a tile is allocated only after its declared size is plausible for its bytes, as far
//! as the codec bounds that (a blank tile of PLIO_1 or HCOMPRESS_1 takes a few bytes, whatever
//! its size), and a tile never has more than 2^31 pixels.

mod dither;
mod error;
mod gzip;
mod hcompress;
mod pixel_width;
mod plio;
mod quadtree;
mod quantize;
mod rice;
mod transform;

use std::num::Wrapping;
use std::ops::{Add, BitAnd, BitOrAssign, BitXor, Mul, Neg, Shl, Shr, Sub};

use libdeflater::Decompressor;
use serde::{Deserialize, Serialize};
use swathe_array::DType;

pub use error::CodecError;

/// As errors call it.
const HCOMPRESS_1: &str = "HCOMPRESS_1";
/// Most pixels of one tile.
const MOST_PIXELS: u64 = 1 << 31;
/// A tile of more pixels than this must have been compressed into at least a byte for each
/// [`MOST_PIXELS_PER_BYTE`]: no file of a few bytes may ask for gigabytes.
const MANY_PIXELS: u64 = 1 << 24;
/// PLIO_1 codes 4095 equal pixels in two bytes; the others do not come near that.
const MOST_PIXELS_PER_BYTE: u64 = 1 << 14;

/// How the COMPRESSED_DATA of an image is coded (ZCMPTYPE with its ZNAMEi/ZVALi).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Codec {
    /// RICE_1.
    Rice {
        /// BLOCKSIZE, pixels of a block.
        block: usize,
        /// BYTEPIX, bytes of a pixel as it was coded.
        bytes_per_pixel: usize,
    },
    /// GZIP_1.
    Gzip1,
    /// GZIP_2: GZIP_1 of shuffled bytes.
    Gzip2,
    /// PLIO_1.
    Plio,
    /// HCOMPRESS_1. Its SCALE stands in the tile.
    Hcompress {
        /// SMOOTH.
        smooth: bool,
    },
    /// NOCOMPRESS.
    None,
}

impl Codec {
    /// The value of ZCMPTYPE.
    pub const fn name(self) -> &'static str {
        match self {
            Codec::Rice { .. } => "RICE_1",
            Codec::Gzip1 => "GZIP_1",
            Codec::Gzip2 => "GZIP_2",
            Codec::Plio => "PLIO_1",
            Codec::Hcompress { .. } => "HCOMPRESS_1",
            Codec::None => "NOCOMPRESS",
        }
    }
}

/// Dithering of quantised floats (ZQUANTIZ).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dither {
    /// NO_DITHER.
    None,
    /// SUBTRACTIVE_DITHER_1.
    Subtractive1,
    /// SUBTRACTIVE_DITHER_2: as 1, and exact zeros stay exact.
    Subtractive2,
}

/// How the floats of an image were quantised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantize {
    /// Dithering.
    pub dither: Dither,
    /// ZDITHER0, 1 to 10000.
    pub seed: u32,
}

/// How the tiles of an image are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TileCodec {
    /// Codec of the COMPRESSED_DATA.
    pub codec: Codec,
    /// Pixel type, that of ZBITPIX.
    pub dtype: DType,
    /// Set if floats are stored as scaled integers (with ZSCALE and ZZERO).
    pub quantize: Option<Quantize>,
}

/// The column that a tile's bytes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encoding {
    /// COMPRESSED_DATA.
    Codec,
    /// GZIP_COMPRESSED_DATA: gzip of unquantised pixels.
    Gzip,
    /// UNCOMPRESSED_DATA: unquantised pixels as they are.
    Uncompressed,
}

/// One tile as stored.
#[derive(Clone, Copy, Debug)]
pub struct TileInput<'a> {
    /// The bytes of its heap entry.
    pub bytes: &'a [u8],
    /// The column of that entry.
    pub encoding: Encoding,
    /// Pixels along each axis of this tile (those at an edge may be smaller), fastest axis first.
    pub shape: &'a [u64],
    /// Row of the table, from 0: it seeds the dither.
    pub tile: u64,
    /// ZSCALE.
    pub scale: f64,
    /// ZZERO.
    pub zero: f64,
    /// ZBLANK: the integer that stands for NaN in quantised floats.
    pub blank: Option<i64>,
}

/// Buffers for reuse between tiles.
#[derive(Default)]
pub struct Scratch {
    /// Integers that are not yet pixels.
    integers: Vec<u8>,
    /// Bytes inflated or decoded, of a width or order that is not yet right.
    raw: Vec<u8>,
    inflater: Option<Decompressor>,
    narrow: hcompress::Buffers<Wrapping<i32>>,
    wide: hcompress::Buffers<Wrapping<i64>>,
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}

impl TileCodec {
    /// Decodes a tile into `out`: at least its first `need` pixels, as an uncompressed image of
    /// this pixel type stores them (big-endian, before BZERO and BSCALE), NaN for the blanks of
    /// quantised floats. `out` may end up longer than that; what follows is not defined.
    ///
    /// # Errors
    ///
    /// [`CodecError`] when the bytes are not those of such a tile, or end before pixel `need`.
    pub fn decode(
        &self,
        input: &TileInput<'_>,
        need: usize,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        out.clear();
        let codec = self.codec.name();
        let pixels = pixels_of(codec, input)?;
        if need > pixels {
            let (expected, found) = (pixels as u64, need as u64);
            return Err(CodecError::Pixels { codec, expected, found });
        }
        let quantize = self.quantize.filter(|_| self.dtype.is_float());
        match quantize.filter(|_| input.encoding == Encoding::Codec) {
            None => self.decode_pixels(self.dtype, input, pixels, need, scratch, out),
            Some(quantize) => {
                let mut integers = std::mem::take(&mut scratch.integers);
                integers.clear();
                let result = self
                    .decode_pixels(DType::I32, input, pixels, need, scratch, &mut integers)
                    .and_then(|()| self.restore(quantize, input, need, &integers, out));
                scratch.integers = integers;
                result
            }
        }
    }

    /// Floats from their quantised integers.
    fn restore(
        &self,
        quantize: Quantize,
        input: &TileInput<'_>,
        need: usize,
        integers: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        room(self.codec.name(), out, need * self.dtype.size())?;
        let integers = integers.as_chunks().0;
        if self.dtype == DType::F32 {
            let pixel = |value| (value as f32).to_be_bytes();
            quantize::restore(quantize, input, integers, pixel, out.as_chunks_mut().0);
        } else {
            quantize::restore(quantize, input, integers, f64::to_be_bytes, out.as_chunks_mut().0);
        }
        Ok(())
    }

    /// The pixels as stored, as big-endian `dtype` ones.
    fn decode_pixels(
        &self,
        dtype: DType,
        input: &TileInput<'_>,
        pixels: usize,
        need: usize,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        let bytes = input.bytes;
        match (input.encoding, self.codec) {
            (Encoding::Uncompressed, _) | (Encoding::Codec, Codec::None) => {
                plain(dtype, bytes, pixels, need, out)
            }
            (Encoding::Gzip, _) | (Encoding::Codec, Codec::Gzip1) => {
                gzip("GZIP_1", false, dtype, bytes, pixels, need, scratch, out)
            }
            (Encoding::Codec, Codec::Gzip2) => {
                gzip("GZIP_2", true, dtype, bytes, pixels, need, scratch, out)
            }
            (_, codec) if dtype.is_float() => Err(CodecError::Unsupported {
                codec: codec.name(),
                expected: "integers or quantised floats, by BITPIX",
                found: dtype.bitpix(),
            }),
            (Encoding::Codec, Codec::Rice { block, bytes_per_pixel }) => {
                let width = Width { block, bytes_per_pixel };
                rice(dtype, bytes, width, need, scratch, out)
            }
            (Encoding::Codec, Codec::Plio) => {
                room("PLIO_1", out, need * dtype.size())?;
                match dtype {
                    DType::U8 => plio::decode(bytes, |value| [value as u8], out),
                    DType::I16 => plio::decode(bytes, |value| (value as i16).to_be_bytes(), out),
                    DType::I32 => plio::decode(bytes, i32::to_be_bytes, out),
                    _ => plio::decode(bytes, |value| i64::from(value).to_be_bytes(), out),
                }
            }
            (Encoding::Codec, Codec::Hcompress { smooth }) => {
                hcompress(dtype, bytes, smooth, input.shape, need, scratch, out)
            }
        }
    }
}

/// Pixels of a tile, if it may have that many.
fn pixels_of(codec: &'static str, input: &TileInput<'_>) -> Result<usize, CodecError> {
    let pixels = input.shape.iter().fold(1u64, |pixels, axis| pixels.saturating_mul(*axis));
    let plausible = MOST_PIXELS_PER_BYTE.saturating_mul(input.bytes.len() as u64);
    for expected in [MOST_PIXELS, plausible.max(MANY_PIXELS)] {
        if pixels > expected {
            return Err(CodecError::Pixels { codec, expected, found: pixels });
        }
    }
    Ok(pixels as usize)
}

/// Makes `buffer` `length` long; what is new is zero.
fn room<T: Copy + Default>(
    codec: &'static str,
    buffer: &mut Vec<T>,
    length: usize,
) -> Result<(), CodecError> {
    let more = length.saturating_sub(buffer.len());
    buffer.try_reserve(more).map_err(|_| CodecError::Memory {
        codec,
        expected: (length as u64).saturating_mul(size_of::<T>() as u64),
        found: (buffer.capacity() * size_of::<T>()) as u64,
    })?;
    buffer.resize(length, T::default());
    Ok(())
}

/// Pixels that were not compressed, of the width that their number of bytes implies.
fn plain(
    dtype: DType,
    bytes: &[u8],
    pixels: usize,
    need: usize,
    out: &mut Vec<u8>,
) -> Result<(), CodecError> {
    let codec = "NOCOMPRESS";
    let width = bytes.len() / pixels.max(1);
    let from = pixel_width::of_width(dtype, width)
        .filter(|_| bytes.len() == pixels * width)
        .ok_or(CodecError::Size {
            codec,
            expected: (pixels * dtype.size()) as u64,
            found: bytes.len() as u64,
        })?;
    room(codec, out, need * dtype.size())?;
    if from == dtype {
        out.copy_from_slice(&bytes[..need * width]);
        return Ok(());
    }
    pixel_width::convert(codec, from, bytes, dtype, out)
}

/// GZIP_1 or, if `is_shuffled`, GZIP_2; pixels of the right width are written to `out` at once.
#[allow(clippy::too_many_arguments)] // as the other codecs, and which of two it is
fn gzip(
    codec: &'static str,
    is_shuffled: bool,
    dtype: DType,
    bytes: &[u8],
    pixels: usize,
    need: usize,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> Result<(), CodecError> {
    if need == 0 {
        return Ok(());
    }
    let Scratch { raw, inflater, .. } = scratch;
    let inflater = inflater.get_or_insert_with(Decompressor::new);
    let target = if is_shuffled { &mut *raw } else { &mut *out };
    let width = gzip::inflate(codec, inflater, bytes, pixels, dtype.size(), target)?;
    let from = source(codec, dtype, width, pixels)?;
    if is_shuffled {
        room(codec, out, need * width)?;
        gzip::unshuffle(raw, width, out);
    }
    if from == dtype {
        return Ok(());
    }
    std::mem::swap(out, raw);
    out.clear();
    room(codec, out, need * dtype.size())?;
    pixel_width::convert(codec, from, raw, dtype, out)
}

/// The type of inflated pixels of this width.
fn source(
    codec: &'static str,
    dtype: DType,
    width: usize,
    pixels: usize,
) -> Result<DType, CodecError> {
    pixel_width::of_width(dtype, width).ok_or(CodecError::Size {
        codec,
        expected: (pixels * dtype.size()) as u64,
        found: (pixels * width) as u64,
    })
}

/// Parameters of RICE_1.
struct Width {
    block: usize,
    bytes_per_pixel: usize,
}

fn rice(
    dtype: DType,
    bytes: &[u8],
    Width { block, bytes_per_pixel }: Width,
    need: usize,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> Result<(), CodecError> {
    let codec = "RICE_1";
    if need == 0 {
        return Ok(());
    }
    let shortest = rice::shortest(bytes_per_pixel, block, need);
    if bytes.len() < shortest {
        let (expected, found) = (shortest as u64, bytes.len() as u64);
        return Err(CodecError::Short { codec, expected, found });
    }
    if bytes_per_pixel == dtype.size() {
        room(codec, out, need * bytes_per_pixel)?;
        return rice::decode(bytes, block, bytes_per_pixel, out);
    }
    let raw = &mut scratch.raw;
    raw.clear();
    let from = match bytes_per_pixel {
        1 => DType::U8,
        2 => DType::I16,
        _ => DType::I32,
    };
    room(codec, raw, need.saturating_mul(from.size()))?;
    rice::decode(bytes, block, bytes_per_pixel, raw)?;
    room(codec, out, need * dtype.size())?;
    pixel_width::convert(codec, from, raw, dtype, out)
}

fn hcompress(
    dtype: DType,
    bytes: &[u8],
    smooth: bool,
    shape: &[u64],
    need: usize,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> Result<(), CodecError> {
    if need == 0 {
        return Ok(());
    }
    room(HCOMPRESS_1, out, need * dtype.size())?;
    if matches!(dtype, DType::U8 | DType::I16) {
        let values = hcompress::decode(bytes, smooth, shape, need, &mut scratch.narrow)?;
        return match dtype {
            DType::U8 => store(values, |value| [value.0 as u8], out),
            _ => store(values, |value| (value.0 as i16).to_be_bytes(), out),
        };
    }
    let values = hcompress::decode(bytes, smooth, shape, need, &mut scratch.wide)?;
    match dtype {
        DType::I32 => store(values, |value| (value.0 as i32).to_be_bytes(), out),
        _ => store(values, |value| value.0.to_be_bytes(), out),
    }
}

fn store<T: Copy, const N: usize>(
    values: &[T],
    pixel: impl Fn(T) -> [u8; N],
    out: &mut [u8],
) -> Result<(), CodecError> {
    for (to, value) in out.as_chunks_mut().0.iter_mut().zip(values) {
        *to = pixel(*value);
    }
    Ok(())
}

/// An integer with wrapping arithmetic, as wide as HCOMPRESS_1 coefficients are stored.
trait Coefficient:
    Copy
    + Default
    + Ord
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + BitAnd<Output = Self>
    + BitXor<Output = Self>
    + BitOrAssign
    + Shl<usize, Output = Self>
    + Shr<usize, Output = Self>
{
    /// Bits of the integer.
    const BITS: u8;
    fn new(value: i32) -> Self;
    fn from_i64(value: i64) -> Self;
    fn to_i64(self) -> i64;
}
