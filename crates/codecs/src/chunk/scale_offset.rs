//! Scale-offset of HDF5: integers above the least one in as few bits as hold them all, or decimal
//! fractions as such integers.

use super::error::FilterError;
use super::fields::{Fields, corrupt};
use super::nbit::read_wide;
use super::wrong_size;
use crate::bits::Bits;

const FILTER: &str = "scaleoffset";
/// Bytes before the integers: bits of each, bytes of the least one, and that in 16 bytes.
const HEADER_BYTES: usize = 21;

/// The type of the elements.
#[derive(Clone, Copy)]
enum Class {
    Integer,
    /// With this factor: ten to the power of the number of decimals.
    Decimal(i32),
}

/// How elements are coded.
pub(super) struct ScaleOffset {
    class: Class,
    count: usize,
    size: usize,
    is_big_endian: bool,
    /// The fill value, which all bits set stand for.
    fill: Option<u64>,
}

impl ScaleOffset {
    /// Check the values that HDF5 stores: kind and factor of the scale, number of elements, class,
    /// size, sign, byte order, whether there is a fill value, and that.
    pub(super) fn new(values: &[u32]) -> Result<ScaleOffset, FilterError> {
        let error = |what, expected, found: i64| {
            Err(FilterError::Parameter { filter: FILTER, what, expected, found })
        };
        let &[kind, factor, count, class, size, _sign, order, has_fill, ref fill @ ..] = values
        else {
            return error("number of values", "at least 8", values.len() as i64);
        };
        let class = match (class, kind) {
            (0, 2) => Class::Integer,
            (1, 0) => Class::Decimal(factor as i32),
            _ => return error("kind of the scale", "2 of integers, or 0 of floats", kind.into()),
        };
        let sizes: &[u32] = if matches!(class, Class::Integer) { &[1, 2, 4, 8] } else { &[4, 8] };
        if !sizes.contains(&size) {
            return error("size of an element", "1, 2, 4 or 8 bytes (float: 4 or 8)", size.into());
        }
        if order > 1 || has_fill > 1 {
            return error("byte order and fill value", "0 or 1", order.max(has_fill).into());
        }
        let fill = match (has_fill, fill) {
            (0, _) => None,
            (_, [low]) if size <= 4 => Some(u64::from(*low)),
            (_, [low, high, ..]) => Some(u64::from(*low) | u64::from(*high) << 32),
            _ => return error("number of values", "9 or 10", values.len() as i64),
        };
        Ok(ScaleOffset {
            class,
            count: count as usize,
            size: size as usize,
            is_big_endian: order == 1,
            fill,
        })
    }

    /// Decode a chunk.
    pub(super) fn decode(&self, bytes: &[u8], out: &mut [u8]) -> Result<usize, FilterError> {
        let size = self.size;
        let decoded_bytes = self.count.saturating_mul(size);
        let length = out.len();
        let out = out.get_mut(..decoded_bytes).ok_or(wrong_size(FILTER, length, decoded_bytes))?;
        let mut fields = Fields::new(FILTER, bytes);
        let width = fields.length_le()?;
        if width > size * 8 {
            return Err(corrupt(FILTER, "bits of an integer", size * 8, width as u64));
        }
        let least_bytes = usize::from(fields.take(1)?[0]);
        if least_bytes != 8 {
            return Err(corrupt(FILTER, "bytes of the least value", 8, least_bytes as u64));
        }
        let least = fields.number_le()?;
        let data = bytes.get(HEADER_BYTES..).unwrap_or_default();
        let data_bytes = (self.count as u64 * width as u64).div_ceil(8);
        if (data.len() as u64) < data_bytes {
            let (expected, found) = (data_bytes + HEADER_BYTES as u64, bytes.len() as u64);
            return Err(FilterError::Short { filter: FILTER, expected, found });
        }
        let mut bits = Bits::new(data);
        let is_full = width == size * 8;
        if is_full {
            out.copy_from_slice(&data[..decoded_bytes]);
        }
        let top = if width == 64 { u64::MAX } else { (1 << width) - 1 };
        for out in out.chunks_exact_mut(size) {
            if !is_full {
                let value = if width == 0 { 0 } else { read_wide(&mut bits, width as u32) as u64 };
                let value = match self.fill {
                    Some(fill) if value == top => fill,
                    _ => self.restore(value, least),
                };
                out.copy_from_slice(&value.to_le_bytes()[..size]);
            }
            if self.is_big_endian {
                out.reverse();
            }
        }
        Ok(decoded_bytes)
    }

    /// The bits of an element from its integer and those of the least element.
    fn restore(&self, value: u64, least: u64) -> u64 {
        match (self.class, self.size) {
            (Class::Integer, _) => value.wrapping_add(least),
            (Class::Decimal(decimals), 4) => {
                let scale = 10f32.powi(decimals);
                let value = value as u32 as i32 as f32 / scale + f32::from_bits(least as u32);
                u64::from(value.to_bits())
            }
            (Class::Decimal(decimals), _) => {
                let scale = 10f64.powi(decimals);
                (value as i64 as f64 / scale + f64::from_bits(least)).to_bits()
            }
        }
    }
}
