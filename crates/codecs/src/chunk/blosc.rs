//! Chunks of Blosc 1: a header, the starts of blocks, and their streams.

use super::error::FilterError;
use super::fields::{Fields, corrupt};
use super::{Tools, bitshuffle, deflate, lz, make_room, shuffle, wrong_size};

const FILTER: &str = "blosc";
const HEADER_BYTES: usize = 16;
/// The newest version of the format of chunks.
const NEWEST: u8 = 2;
/// A block has a stream for each byte of an element if elements have at most this many bytes,
const MOST_STREAMS: usize = 16;
/// and if there are at least this many. Else it has one stream.
const FEWEST_ELEMENTS: usize = 128;

/// Bits of the flags.
const HAS_BYTE_PLANES: u8 = 1;
const IS_COPY: u8 = 2;
const HAS_BIT_PLANES: u8 = 4;
const IS_ONE_STREAM: u8 = 16;

#[derive(Clone, Copy)]
enum Codec {
    BloscLz,
    Lz4,
    Zlib,
    Zstd,
}

impl Codec {
    fn new(number: u8) -> Result<Codec, FilterError> {
        match number {
            0 => Ok(Codec::BloscLz),
            1 => Ok(Codec::Lz4),
            3 => Ok(Codec::Zlib),
            4 => Ok(Codec::Zstd),
            _ => Err(FilterError::Parameter {
                filter: FILTER,
                what: "number of the codec",
                expected: "0 (blosclz), 1 (lz4), 3 (zlib) or 4 (zstd)",
                found: i64::from(number),
            }),
        }
    }
}

/// What the header says.
struct Header {
    flags: u8,
    size: usize,
    block_bytes: usize,
}

/// Decode a chunk.
pub(super) fn decode(
    bytes: &[u8],
    tools: &mut Tools,
    out: &mut [u8],
) -> Result<usize, FilterError> {
    let mut fields = Fields::new(FILTER, bytes);
    let start = fields.take(4)?;
    let decoded_bytes = fields.length_le()?;
    let block_bytes = fields.length_le()?;
    let stored_bytes = fields.length_le()?;
    if start[0] > NEWEST {
        return Err(FilterError::Parameter {
            filter: FILTER,
            what: "version of the chunk",
            expected: "at most 2 (a chunk of Blosc 1)",
            found: i64::from(start[0]),
        });
    }
    if decoded_bytes > out.len() {
        return Err(corrupt(FILTER, "decoded size", out.len(), decoded_bytes as u64));
    }
    if stored_bytes > bytes.len() || stored_bytes < HEADER_BYTES {
        return Err(corrupt(FILTER, "stored size", bytes.len(), stored_bytes as u64));
    }
    let header = Header { flags: start[2], size: usize::from(start[3]).max(1), block_bytes };
    let out = &mut out[..decoded_bytes];
    if header.flags & IS_COPY != 0 {
        out.copy_from_slice(fields.take(decoded_bytes)?);
        return Ok(decoded_bytes);
    }
    if block_bytes == 0 && decoded_bytes > 0 {
        return Err(corrupt(FILTER, "size of a block", decoded_bytes, 0));
    }
    let codec = Codec::new(header.flags >> 5)?;
    let mut buffer = std::mem::take(&mut tools.buffer);
    for out in out.chunks_mut(block_bytes.max(1)) {
        let start = fields.length_le()?;
        let block = bytes[..stored_bytes]
            .get(start..)
            .ok_or_else(|| corrupt(FILTER, "start of a block", stored_bytes, start as u64))?;
        decode_block(&header, codec, block, tools, &mut buffer, out)?;
    }
    tools.buffer = buffer;
    Ok(decoded_bytes)
}

/// Decode a block: its streams, and what was shuffled.
fn decode_block(
    header: &Header,
    codec: Codec,
    bytes: &[u8],
    tools: &mut Tools,
    buffer: &mut Vec<u8>,
    out: &mut [u8],
) -> Result<(), FilterError> {
    let size = header.size;
    let is_split = header.flags & IS_ONE_STREAM == 0
        && size <= MOST_STREAMS
        && header.block_bytes / size >= FEWEST_ELEMENTS
        && out.len() == header.block_bytes;
    let has_bit_planes = header.flags & HAS_BIT_PLANES != 0;
    let has_planes = header.flags & HAS_BYTE_PLANES != 0 && size > 1 || has_bit_planes;
    let length = out.len();
    let target = if has_planes {
        make_room(FILTER, length, buffer)?;
        &mut buffer[..]
    } else {
        &mut *out
    };
    let streams = if is_split { size } else { 1 };
    if !length.is_multiple_of(streams) {
        return Err(corrupt(FILTER, "size of a block", length / streams * streams, length as u64));
    }
    let mut fields = Fields::new(FILTER, bytes);
    for target in target.chunks_mut((length / streams).max(1)) {
        let count = fields.length_le()?;
        decode_stream(codec, fields.take(count)?, tools, target)?;
    }
    if has_bit_planes {
        let count = length / size;
        if count.is_multiple_of(8) {
            let (planes, rest) = buffer.split_at(count * size);
            bitshuffle::unshuffle(planes, size, &mut out[..count * size]);
            out[count * size..].copy_from_slice(rest);
        } else {
            out.copy_from_slice(buffer);
        }
    } else if has_planes {
        shuffle::unshuffle(buffer, size, out);
    }
    Ok(())
}

/// Decode a stream to exactly `out`, or copy it if it is as long.
fn decode_stream(
    codec: Codec,
    bytes: &[u8],
    tools: &mut Tools,
    out: &mut [u8],
) -> Result<(), FilterError> {
    if bytes.len() == out.len() {
        out.copy_from_slice(bytes);
        return Ok(());
    }
    let count = match codec {
        Codec::BloscLz => lz::decode_blosclz(bytes, out)?,
        Codec::Lz4 => lz::decode_lz4_stream(FILTER, bytes, out)?,
        Codec::Zlib => deflate::decode_zlib(FILTER, tools.inflater(), bytes, out)?,
        Codec::Zstd => lz::decode_zstd(FILTER, tools.zstd()?, bytes, out)?,
    };
    if count == out.len() { Ok(()) } else { Err(wrong_size(FILTER, out.len(), count)) }
}
