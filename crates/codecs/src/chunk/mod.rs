//! Filters of chunks, as HDF5, NetCDF4, HDF4, TIFF, ASDF, Zarr and DICOM use them: the stored bytes of a
//! chunk in, its elements out. Elements keep the byte order they are stored in.
//!
//! Room is allocated only after the declared size is plausible for the stored bytes: each filter
//! states how far it can expand. A few bytes may stand for any number of equal elements only with
//! scale-offset; a chunk never has more than 2^31 bytes.

mod bits;
mod bitshuffle;
mod blosc;
mod bzip2;
mod checksum;
mod deflate;
mod error;
mod fields;
mod lz;
mod nbit;
mod predictor;
mod scale_offset;
mod shuffle;
mod szip;
mod tiff;

use libdeflater::Decompressor;
use serde::{Deserialize, Serialize};
use zstd_safe::DCtx;

pub use error::FilterError;
pub use lz::Lz4Framing;

/// Most bytes of a chunk.
const MOST_BYTES: usize = 1 << 31;
/// Most filters: one for each bit of a mask of those left out.
const MOST_FILTERS: usize = 32;

/// A filter, with the parameters that decoding needs. As JSON, `{"name": "shuffle", "size": 4}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "lowercase", deny_unknown_fields)]
#[non_exhaustive]
pub enum Filter {
    /// A stream of zlib (RFC 1950). HDF5 filter 1; TIFF compression 8 and 32946; zlib of ASDF and
    /// Zarr 2.
    Deflate,
    /// A member of gzip (RFC 1952). Zarr.
    Gzip,
    /// A stream of deflate (RFC 1951) with other bytes before and after the chunk. DICOM.
    RawDeflate {
        /// First byte of the chunk in what the stream inflates to.
        from: u64,
        /// Bytes that the stream inflates to.
        size: u64,
    },
    /// Integers in the lowest bits of elements; the others get their sign, or zeros. DICOM.
    Bits {
        /// Bytes of an element: 1, 2, 4 or 8.
        size: u32,
        /// Bits that count.
        bits: u32,
        /// Whether the integers have a sign.
        #[serde(rename = "signed")]
        has_sign: bool,
        /// Byte order of the elements.
        big_endian: bool,
    },
    /// The first bytes of all elements, then their second bytes, and so on. HDF5 filter 2.
    Shuffle {
        /// Bytes of an element.
        size: u32,
    },
    /// A checksum of 4 bytes after the chunk. HDF5 filter 3.
    Fletcher32,
    /// A CRC-32C of 4 bytes after the chunk. Zarr 3.
    Crc32c,
    /// Each element is the difference to the one at its left. TIFF predictor 2.
    Horizontal {
        /// Bytes of an element: 1, 2, 4 or 8.
        size: u32,
        /// Elements of a pixel that are stored together.
        samples: u32,
        /// Pixels of a row of the tile or strip.
        width: u32,
        /// Byte order of the elements.
        big_endian: bool,
    },
    /// Differences of the bytes of a row, the highest bytes of all elements first. TIFF
    /// predictor 3.
    Floating {
        /// Bytes of an element: 2, 4 or 8.
        size: u32,
        /// Elements of a pixel that are stored together.
        samples: u32,
        /// Pixels of a row of the tile or strip.
        width: u32,
        /// Byte order that the elements get.
        big_endian: bool,
    },
    /// LZW, codes of 9 to 12 bits, highest bit first. TIFF compression 5.
    Lzw,
    /// Runs of equal bytes. TIFF compression 32773.
    Packbits,
    /// LZF. HDF5 filter 32000.
    Lzf,
    /// Blocks of LZ4.
    Lz4 {
        /// What surrounds the blocks.
        framing: Lz4Framing,
    },
    /// Frames of Zstandard. HDF5 filter 32015; TIFF compression 50000; Zarr.
    Zstd,
    /// A stream of bzip2. HDF5 filter 307; ASDF (`bzp2`); Zarr 2 (`bz2`).
    Bzip2,
    /// The first bits of the elements of a block, then their second bits, and so on, in blocks that
    /// may be compressed. HDF5 filter 32008.
    Bitshuffle {
        /// Bytes of an element.
        size: u32,
        /// Elements of a block, a multiple of 8; 0 for what the filter chooses.
        block: u32,
        /// How blocks are compressed.
        codec: bitshuffle::Codec,
    },
    /// A chunk of Blosc 1, which says itself how it is coded. HDF5 filter 32001; Zarr.
    Blosc,
    /// Extended Rice coding (CCSDS 121.0), after the size in 4 bytes. HDF5 filter 4.
    Szip {
        /// Mask of options: the first value HDF5 stores.
        options: u32,
        /// Pixels of a block: the second value.
        block: u32,
        /// Bits of a pixel: the third value.
        bits: u32,
        /// Pixels of a scanline: the fourth value.
        scanline: u32,
    },
    /// Integers above the least one, in as many bits as needed. HDF5 filter 6.
    ScaleOffset {
        /// All values HDF5 stores for it.
        values: Vec<u32>,
    },
    /// The bits of elements that count. HDF5 filter 5.
    Nbit {
        /// All values HDF5 stores for it.
        values: Vec<u32>,
    },
}

impl Filter {
    /// The name, as JSON has it.
    pub const fn name(&self) -> &'static str {
        match self {
            Filter::Deflate => "deflate",
            Filter::Gzip => "gzip",
            Filter::RawDeflate { .. } => "rawdeflate",
            Filter::Bits { .. } => "bits",
            Filter::Shuffle { .. } => "shuffle",
            Filter::Fletcher32 => "fletcher32",
            Filter::Crc32c => "crc32c",
            Filter::Horizontal { .. } => "horizontal",
            Filter::Floating { .. } => "floating",
            Filter::Lzw => "lzw",
            Filter::Packbits => "packbits",
            Filter::Lzf => "lzf",
            Filter::Lz4 { .. } => "lz4",
            Filter::Zstd => "zstd",
            Filter::Bzip2 => "bzip2",
            Filter::Bitshuffle { .. } => "bitshuffle",
            Filter::Blosc => "blosc",
            Filter::Szip { .. } => "szip",
            Filter::ScaleOffset { .. } => "scaleoffset",
            Filter::Nbit { .. } => "nbit",
        }
    }

    /// Check the parameters.
    fn validate(&self) -> Result<(), FilterError> {
        match self {
            Filter::Shuffle { size } | Filter::Bitshuffle { size, block: 0, .. } => {
                shuffle::validate(self.name(), *size)
            }
            Filter::Bitshuffle { size, block, .. } => bitshuffle::validate(*size, *block),
            Filter::Horizontal { size, samples, width, .. }
            | Filter::Floating { size, samples, width, .. } => {
                let least = if matches!(self, Filter::Floating { .. }) { 2 } else { 1 };
                predictor::validate(self.name(), least, *size, *samples, *width)
            }
            Filter::Bits { size, bits, .. } => bits::validate(*size, *bits),
            Filter::RawDeflate { from, size } => deflate::validate_raw(*from, *size),
            Filter::Szip { options, block, bits, scanline } => {
                szip::Szip::new(*options, *block, *bits, *scanline).map(drop)
            }
            Filter::ScaleOffset { values } => scale_offset::ScaleOffset::new(values).map(drop),
            Filter::Nbit { values } => nbit::Nbit::new(values).map(drop),
            Filter::Deflate
            | Filter::Gzip
            | Filter::Fletcher32
            | Filter::Crc32c
            | Filter::Lzw
            | Filter::Packbits
            | Filter::Lzf
            | Filter::Lz4 { .. }
            | Filter::Zstd
            | Filter::Bzip2
            | Filter::Blosc => Ok(()),
        }
    }

    /// Bytes that this filter makes of `size`, if it always makes as many.
    fn encoded_bytes(&self, size: usize) -> Option<usize> {
        match self {
            Filter::Shuffle { .. }
            | Filter::Horizontal { .. }
            | Filter::Floating { .. }
            | Filter::Bits { .. } => Some(size),
            Filter::Fletcher32 | Filter::Crc32c => size.checked_add(checksum::BYTES),
            Filter::Bitshuffle { codec: bitshuffle::Codec::None, .. } => Some(size),
            _ => None,
        }
    }

    /// Most bytes that `size` bytes can decode to.
    fn most_decoded_bytes(&self, size: usize) -> usize {
        let ratio = match self {
            Filter::Shuffle { .. }
            | Filter::Horizontal { .. }
            | Filter::Floating { .. }
            | Filter::Bits { .. }
            | Filter::Fletcher32
            | Filter::Crc32c
            | Filter::Bitshuffle { codec: bitshuffle::Codec::None, .. } => 1,
            Filter::Deflate | Filter::Gzip | Filter::RawDeflate { .. } => deflate::MOST_EXPANSION,
            Filter::Lzw => tiff::MOST_EXPANSION_LZW,
            Filter::Packbits => tiff::MOST_EXPANSION_PACKBITS,
            Filter::Lzf => lz::MOST_EXPANSION_LZF,
            Filter::Lz4 { .. } | Filter::Bitshuffle { codec: bitshuffle::Codec::Lz4, .. } => {
                lz::MOST_EXPANSION_LZ4
            }
            Filter::Zstd
            | Filter::Blosc
            | Filter::Bitshuffle { codec: bitshuffle::Codec::Zstd, .. } => lz::MOST_EXPANSION_ZSTD,
            Filter::Bzip2 => bzip2::MOST_EXPANSION,
            Filter::Szip { .. } => szip::MOST_EXPANSION,
            Filter::Nbit { .. } => nbit::MOST_EXPANSION,
            Filter::ScaleOffset { .. } => MOST_BYTES,
        };
        size.saturating_mul(ratio)
    }

    /// Decode into `out`; return the bytes written, which start at its first. More than fit are an
    /// error.
    fn decode(
        &self,
        bytes: &[u8],
        tools: &mut Tools,
        out: &mut [u8],
    ) -> Result<usize, FilterError> {
        match self {
            Filter::Deflate => deflate::decode_zlib(self.name(), tools.inflater(), bytes, out),
            Filter::Gzip => deflate::decode_gzip(tools.inflater(), bytes, out),
            Filter::RawDeflate { from, size } => {
                deflate::decode_raw([*from, *size], tools.inflater(), bytes, out)
            }
            Filter::Bits { size, bits, has_sign, big_endian } => {
                bits::extend([*size, *bits], *has_sign, *big_endian, bytes, out)
            }
            Filter::Shuffle { size } => {
                shuffle::unshuffle(bytes, *size as usize, out);
                Ok(bytes.len())
            }
            Filter::Fletcher32 => checksum::check_fletcher32(bytes, out),
            Filter::Crc32c => checksum::check_crc32c(bytes, out),
            Filter::Horizontal { size, samples, width, big_endian } => {
                predictor::sum_horizontal([*size, *samples, *width], *big_endian, bytes, out)
            }
            Filter::Floating { size, samples, width, big_endian } => {
                predictor::sum_bytes([*size, *samples, *width], *big_endian, bytes, out)
            }
            Filter::Lzw => tiff::decode_lzw(bytes, out),
            Filter::Packbits => tiff::decode_packbits(bytes, out),
            Filter::Lzf => lz::decode_lzf(bytes, out),
            Filter::Lz4 { framing } => lz::decode_lz4(*framing, bytes, out),
            Filter::Zstd => lz::decode_zstd(self.name(), tools.zstd()?, bytes, out),
            Filter::Bzip2 => bzip2::decode(bytes, out),
            Filter::Bitshuffle { size, block, codec } => {
                bitshuffle::decode([*size, *block], *codec, bytes, tools, out)
            }
            Filter::Blosc => blosc::decode(bytes, tools, out),
            Filter::Szip { options, block, bits, scanline } => {
                szip::Szip::new(*options, *block, *bits, *scanline)?.decode(bytes, tools, out)
            }
            Filter::ScaleOffset { values } => {
                scale_offset::ScaleOffset::new(values)?.decode(bytes, out)
            }
            Filter::Nbit { values } => nbit::Nbit::new(values)?.decode(bytes, out),
        }
    }
}

/// Filters in the order in which a writer applies them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Filter>", into = "Vec<Filter>")]
pub struct Filters(Vec<Filter>);

impl TryFrom<Vec<Filter>> for Filters {
    type Error = FilterError;

    fn try_from(filters: Vec<Filter>) -> Result<Filters, FilterError> {
        Filters::new(filters)
    }
}

impl From<Filters> for Vec<Filter> {
    fn from(filters: Filters) -> Vec<Filter> {
        filters.0
    }
}

/// Buffers and decoders for reuse between chunks.
#[derive(Default)]
pub struct Scratch {
    /// Bytes between two filters.
    buffers: [Vec<u8>; 2],
    tools: Tools,
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}

/// Decoders with a state, and a buffer for the inside of one filter.
#[derive(Default)]
struct Tools {
    inflater: Option<Decompressor>,
    zstd: Option<DCtx<'static>>,
    buffer: Vec<u8>,
}

impl Tools {
    fn inflater(&mut self) -> &mut Decompressor {
        self.inflater.get_or_insert_with(Decompressor::new)
    }

    fn zstd(&mut self) -> Result<&mut DCtx<'static>, FilterError> {
        if self.zstd.is_none() {
            self.zstd = DCtx::try_create();
        }
        let none = FilterError::Memory { filter: "zstd", expected: 1 << 17, found: 0 };
        self.zstd.as_mut().ok_or(none)
    }
}

/// The size that a filter should decode to.
#[derive(Clone, Copy)]
enum Size {
    Exact(usize),
    /// Another filter has made these bytes, and none makes more.
    AtMost(usize),
}

impl Filters {
    /// Check the number and the parameters of filters.
    ///
    /// # Errors
    ///
    /// [`FilterError::Parameter`] if one is wrong.
    pub fn new(filters: Vec<Filter>) -> Result<Filters, FilterError> {
        if filters.len() > MOST_FILTERS {
            return Err(FilterError::Parameter {
                filter: "filters",
                what: "their number",
                expected: "at most 32",
                found: filters.len() as i64,
            });
        }
        filters.iter().try_for_each(Filter::validate)?;
        Ok(Filters(filters))
    }

    /// The filters, in order.
    pub fn as_slice(&self) -> &[Filter] {
        &self.0
    }

    /// Their names, such as `shuffle+deflate`; `none` without filters.
    pub fn name(&self) -> String {
        let names: Vec<_> = self.0.iter().map(Filter::name).collect();
        if names.is_empty() { "none".into() } else { names.join("+") }
    }

    /// Decode a chunk into `out`, which ends up `decoded_bytes` long. Bit `i` of `skips`: filter
    /// `i` was not applied to this chunk.
    ///
    /// # Errors
    ///
    /// [`FilterError`] if the bytes are not those of a chunk of that size.
    pub fn decode(
        &self,
        bytes: &[u8],
        skips: u32,
        decoded_bytes: usize,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        if decoded_bytes > MOST_BYTES {
            let (expected, found) = (MOST_BYTES as u64, decoded_bytes as u64);
            return Err(FilterError::Large { expected, found });
        }
        let mut steps = Vec::with_capacity(self.0.len());
        let mut size = Size::Exact(decoded_bytes);
        for (_, filter) in self.0.iter().enumerate().filter(|(i, _)| skips >> i & 1 == 0) {
            steps.push((filter, size));
            size = match size {
                Size::Exact(size) | Size::AtMost(size) if filter.encoded_bytes(size).is_none() => {
                    // LZW at its worst takes 12 bits for a byte, the others hardly more than 8.
                    Size::AtMost(size.saturating_mul(2).saturating_add(1 << 16))
                }
                Size::Exact(size) => Size::Exact(filter.encoded_bytes(size).unwrap_or(size)),
                Size::AtMost(size) => Size::AtMost(filter.encoded_bytes(size).unwrap_or(size)),
            };
        }
        if steps.is_empty() {
            check_size("none", decoded_bytes, bytes.len())?;
            make_room("none", decoded_bytes, out)?;
            out.copy_from_slice(bytes);
            return Ok(());
        }
        let Scratch { buffers: [from, to], tools } = scratch;
        let mut is_first = true;
        while let Some((filter, size)) = steps.pop() {
            let input = if is_first { bytes } else { &from[..] };
            let output = if steps.is_empty() { &mut *out } else { &mut *to };
            decode_step(filter, input, size, tools, output)?;
            std::mem::swap(from, to);
            is_first = false;
        }
        Ok(())
    }
}

/// Undo one filter; `out` ends up as long as what it decodes to.
fn decode_step(
    filter: &Filter,
    bytes: &[u8],
    size: Size,
    tools: &mut Tools,
    out: &mut Vec<u8>,
) -> Result<(), FilterError> {
    let most = filter.most_decoded_bytes(bytes.len());
    let room = match size {
        Size::Exact(size) if size > most => {
            let least = size.div_ceil((most / bytes.len().max(1)).max(1));
            let (expected, found) = (least as u64, bytes.len() as u64);
            return Err(FilterError::Short { filter: filter.name(), expected, found });
        }
        Size::Exact(size) => size,
        Size::AtMost(size) => size.min(most),
    };
    if filter.encoded_bytes(0) == Some(0) {
        // Bytes in another order, no fewer and no more.
        match size {
            Size::Exact(size) => check_size(filter.name(), size, bytes.len())?,
            Size::AtMost(size) if bytes.len() > size => {
                return Err(wrong_size(filter.name(), size, bytes.len()));
            }
            Size::AtMost(_) => {}
        }
        make_room(filter.name(), bytes.len(), out)?;
    } else {
        make_room(filter.name(), room, out)?;
    }
    let count = filter.decode(bytes, tools, out)?;
    if let Size::Exact(size) = size {
        check_size(filter.name(), size, count)?;
    }
    out.truncate(count);
    Ok(())
}

fn check_size(filter: &'static str, expected: usize, found: usize) -> Result<(), FilterError> {
    if expected == found { Ok(()) } else { Err(wrong_size(filter, expected, found)) }
}

/// A size that is another one than it should be.
fn wrong_size(filter: &'static str, expected: usize, found: usize) -> FilterError {
    FilterError::Size { filter, expected: expected as u64, found: found as u64 }
}

/// Make a buffer this long; what it holds is not defined.
fn make_room(filter: &'static str, length: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
    let more = length.saturating_sub(out.len());
    out.try_reserve_exact(more).map_err(|_| FilterError::Memory {
        filter,
        expected: length as u64,
        found: out.capacity() as u64,
    })?;
    out.resize(length, 0);
    Ok(())
}
