//! Szip: extended Rice coding (CCSDS 121.0-B), as HDF5 and HDF4 store it.
//!
//! Pixels of 32 and 64 bits are coded as 8-bit pixels, the lowest bytes of all first as they lie
//! in memory. Scanlines that are no whole number of blocks are padded.

use super::error::FilterError;
use super::fields::{Fields, corrupt, damage_error};
use super::{Tools, make_room, shuffle};
use crate::bits::Bits;

const FILTER: &str = "szip";
/// 64 blocks of 32 pixels, all equal, take some ten bits.
pub(super) const MOST_EXPANSION: usize = 1 << 14;
/// Pixels are differences to the one before.
const NEAREST_NEIGHBOR: u32 = 32;
/// Pixels of 16 bits are big-endian.
const MSB: u32 = 16;
/// Zero blocks up to the end of the segment, and blocks of a segment.
const REST_OF_SEGMENT: usize = 5;
const SEGMENT: usize = 64;
/// The largest code of two pixels in one: their sum is at most 12.
const MOST_PAIR: u32 = 90;

/// How pixels are coded.
pub(super) struct Szip {
    is_difference: bool,
    is_big_endian: bool,
    /// Pixels of a block.
    block: usize,
    /// Bits of a pixel as coded, 1 to 24, and bytes as stored.
    bits: u32,
    pixel_bytes: usize,
    /// Byte planes that are coded one after the other: 1, 4 or 8.
    planes: usize,
    /// Pixels of a scanline.
    scanline: usize,
}

impl Szip {
    /// Check the parameters.
    pub(super) fn new(
        options: u32,
        block: u32,
        bits: u32,
        scanline: u32,
    ) -> Result<Szip, FilterError> {
        let error = |what, expected, found: u32| {
            Err(FilterError::Parameter { filter: FILTER, what, expected, found: i64::from(found) })
        };
        if !(2..=32).contains(&block) || block % 2 == 1 {
            return error("pixels of a block", "an even number, 2 to 32", block);
        }
        if !(1..=24).contains(&bits) && bits != 32 && bits != 64 {
            return error("bits of a pixel", "1 to 24, 32 or 64", bits);
        }
        if !(1..=4096).contains(&scanline) {
            return error("pixels of a scanline", "1 to 4096", scanline);
        }
        let planes = if bits > 24 { bits as usize / 8 } else { 1 };
        let bits = if planes > 1 { 8 } else { bits };
        Ok(Szip {
            is_difference: options & NEAREST_NEIGHBOR != 0,
            is_big_endian: options & MSB != 0,
            block: block as usize,
            bits,
            pixel_bytes: (bits as usize).div_ceil(8).next_power_of_two(),
            planes,
            scanline: scanline as usize,
        })
    }

    /// Decode a chunk.
    pub(super) fn decode(
        &self,
        bytes: &[u8],
        tools: &mut Tools,
        out: &mut [u8],
    ) -> Result<usize, FilterError> {
        let mut fields = Fields::new(FILTER, bytes);
        let size = fields.length_le()?;
        if size > out.len() {
            return Err(corrupt(FILTER, "decoded size", out.len(), size as u64));
        }
        let element_bytes = self.pixel_bytes * self.planes;
        if !size.is_multiple_of(element_bytes) {
            let whole = size / element_bytes * element_bytes;
            return Err(corrupt(FILTER, "decoded size", whole, size as u64));
        }
        let out = &mut out[..size];
        if self.planes == 1 {
            self.decode_pixels(fields.rest(), out)?;
        } else {
            make_room(FILTER, size, &mut tools.buffer)?;
            self.decode_pixels(fields.rest(), &mut tools.buffer)?;
            shuffle::unshuffle(&tools.buffer, self.planes, out);
        }
        Ok(size)
    }

    /// Decode whole scanlines; each starts with a reference.
    fn decode_pixels(&self, bytes: &[u8], out: &mut [u8]) -> Result<(), FilterError> {
        let mut bits = Bits::new(bytes);
        let line = self.scanline.next_multiple_of(self.block);
        let mut pixels = vec![0; line];
        for row in out.chunks_mut(self.scanline * self.pixel_bytes) {
            // The last line ends with the block of its last pixel.
            let count = (row.len() / self.pixel_bytes).next_multiple_of(self.block);
            self.decode_line(&mut bits, &mut pixels[..count], line / self.block)
                .ok_or_else(|| damage_error(FILTER, bytes, row))?;
            if self.is_difference {
                self.sum(&mut pixels[..count]);
            }
            self.store(&pixels, row);
        }
        Ok(())
    }

    /// Decode the blocks of a line of `line_blocks` blocks; none if the bits end or cannot be.
    fn decode_line(&self, bits: &mut Bits, pixels: &mut [u32], line_blocks: usize) -> Option<()> {
        let id_bits = match self.bits {
            0..=8 => 3,
            9..=16 => 4,
            _ => 5,
        };
        let mut at = 0;
        while at < pixels.len() {
            let reference = usize::from(self.is_difference && at == 0);
            let id = bits.read(id_bits);
            let is_pairs = id == 0 && bits.read(1) == 1;
            let block = &mut pixels[at..at + self.block];
            if reference == 1 && id != (1 << id_bits) - 1 {
                block[0] = bits.read(self.bits);
            }
            let rest = &mut block[reference..];
            at += self.block;
            if id == (1 << id_bits) - 1 {
                block.iter_mut().for_each(|pixel| *pixel = bits.read(self.bits));
            } else if is_pairs {
                self.read_pairs(bits, reference, block)?;
            } else if id == 0 {
                rest.fill(0);
                let blocks = read_unary(bits)? as usize + 1;
                let first = at / self.block - 1;
                let blocks = match blocks.cmp(&REST_OF_SEGMENT) {
                    std::cmp::Ordering::Less => blocks,
                    std::cmp::Ordering::Equal => {
                        (line_blocks - first).min(SEGMENT - first % SEGMENT)
                    }
                    std::cmp::Ordering::Greater => blocks - 1,
                };
                let end = ((first + blocks) * self.block).min(pixels.len());
                pixels[at.min(end)..end].fill(0);
                at = end.max(at);
            } else {
                for pixel in rest.iter_mut() {
                    *pixel = read_unary(bits)?;
                }
                if id > 1 {
                    for pixel in rest {
                        *pixel = pixel.checked_shl(id - 1)? | bits.read(id - 1);
                    }
                }
            }
            if bits.overrun() {
                return None;
            }
        }
        Some(())
    }

    /// Read pairs of pixels, each in one code; of the first pair, only the second if there is a
    /// reference.
    fn read_pairs(&self, bits: &mut Bits, reference: usize, block: &mut [u32]) -> Option<()> {
        for (pair, pixels) in block.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let code = read_unary(bits).filter(|code| *code <= MOST_PAIR)?;
            let mut sum = 0;
            while (sum + 1) * (sum + 2) / 2 <= code {
                sum += 1;
            }
            let second = code - sum * (sum + 1) / 2;
            if pair > 0 || reference == 0 {
                pixels[0] = sum - second;
            }
            pixels[1] = second;
        }
        Some(())
    }

    /// Restore pixels from the reference and the mapped differences after it.
    fn sum(&self, pixels: &mut [u32]) {
        let most = (1u32 << self.bits) - 1;
        let Some((first, rest)) = pixels.split_first_mut() else { return };
        let mut last = *first;
        for pixel in rest {
            let difference = *pixel;
            let room = last.min(most - last);
            last = if difference.div_ceil(2) <= room {
                if difference % 2 == 0 {
                    last + difference / 2
                } else {
                    last - difference.div_ceil(2)
                }
            } else if last <= most / 2 {
                difference & most
            } else {
                most.wrapping_sub(difference) & most
            };
            *pixel = last;
        }
    }

    /// Store pixels as bytes.
    fn store(&self, pixels: &[u32], out: &mut [u8]) {
        let size = self.pixel_bytes;
        for (out, pixel) in out.chunks_exact_mut(size).zip(pixels) {
            if self.is_big_endian {
                out.copy_from_slice(&pixel.to_be_bytes()[4 - size..]);
            } else {
                out.copy_from_slice(&pixel.to_le_bytes()[..size]);
            }
        }
    }
}

/// Zeros before the next one; none if the bits end before.
fn read_unary(bits: &mut Bits) -> Option<u32> {
    let mut zeros = 0u32;
    loop {
        bits.refill();
        let here = bits.word.leading_zeros().min(bits.count);
        if here < bits.count {
            bits.skip(here);
            bits.skip(1);
            return Some(zeros + here);
        }
        let count = bits.count - 1;
        bits.skip(count);
        zeros = zeros.checked_add(count)?;
        if bits.overrun() {
            return None;
        }
    }
}
