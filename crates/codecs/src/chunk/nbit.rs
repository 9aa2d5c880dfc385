//! N-bit of HDF5: of each element, the bits that count, one after the other.

use super::error::FilterError;
use super::wrong_size;
use crate::bits::Bits;

const FILTER: &str = "nbit";
/// The least precision is one bit of 16 bytes; compound elements may have gaps, which are stored
/// in no bits.
pub(super) const MOST_EXPANSION: usize = 1 << 16;
/// Types within types.
const DEEPEST: usize = 8;

/// The type of an element.
enum Type {
    /// A number: its bytes, byte order, and the bits that count, from `offset`.
    Number { size: usize, is_big_endian: bool, precision: u32, offset: u32 },
    /// Elements of one type.
    Array { size: usize, of: Box<Type> },
    /// Members and where they start.
    Compound { size: usize, members: Vec<(usize, Type)> },
    /// Bytes that are stored whole.
    Whole { size: usize },
}

/// How elements are coded.
pub(super) struct Nbit {
    /// Whether all bits are stored, so that the chunk is as it was.
    is_copy: bool,
    count: usize,
    of: Type,
}

/// The values that HDF5 stores, one after the other.
struct Values<'a> {
    all: &'a [u32],
    at: usize,
}

impl Values<'_> {
    fn next(&mut self) -> Result<u32, FilterError> {
        let value = self.all.get(self.at).copied();
        self.at += 1;
        let (expected, found) = ("more", self.all.len() as u64);
        value.ok_or(parameter("number of values", expected, found))
    }

    /// A size of 1 to 2^24 bytes.
    fn size(&mut self) -> Result<usize, FilterError> {
        let size = self.next()?;
        if (1..=1 << 24).contains(&size) {
            return Ok(size as usize);
        }
        Err(parameter("size of a type", "1 to 16777216 bytes", u64::from(size)))
    }
}

fn parameter(what: &'static str, expected: &'static str, found: u64) -> FilterError {
    FilterError::Parameter { filter: FILTER, what, expected, found: found as i64 }
}

impl Nbit {
    /// Check the values that HDF5 stores: their number, whether the chunk is stored as it is, the
    /// number of elements, and their type.
    pub(super) fn new(values: &[u32]) -> Result<Nbit, FilterError> {
        let mut values = Values { all: values, at: 1 };
        let is_copy = values.next()? != 0;
        let count = values.next()? as usize;
        let of = Type::new(&mut values, 0)?;
        Ok(Nbit { is_copy, count, of })
    }

    /// Decode a chunk.
    pub(super) fn decode(&self, bytes: &[u8], out: &mut [u8]) -> Result<usize, FilterError> {
        let length = out.len();
        let size = self.of.size();
        let decoded_bytes =
            if self.is_copy { bytes.len() } else { self.count.saturating_mul(size) };
        let out = out.get_mut(..decoded_bytes).ok_or(wrong_size(FILTER, length, decoded_bytes))?;
        if self.is_copy {
            out.copy_from_slice(bytes);
            return Ok(decoded_bytes);
        }
        let least_bytes = (self.count as u64).saturating_mul(self.of.bits()).div_ceil(8);
        if (bytes.len() as u64) < least_bytes {
            let (expected, found) = (least_bytes, bytes.len() as u64);
            return Err(FilterError::Short { filter: FILTER, expected, found });
        }
        out.fill(0);
        let mut bits = Bits::new(bytes);
        for element in out.chunks_exact_mut(size) {
            self.of.read(&mut bits, element);
        }
        Ok(decoded_bytes)
    }
}

impl Type {
    fn new(values: &mut Values, depth: usize) -> Result<Type, FilterError> {
        if depth > DEEPEST {
            return Err(parameter("depth of types", "at most 8", depth as u64));
        }
        let class = values.next()?;
        let size = values.size()?;
        match class {
            1 => {
                let (order, precision, offset) = (values.next()?, values.next()?, values.next()?);
                if size > 16 || order > 1 {
                    let expected = "at most 16 bytes, in order 0 or 1";
                    return Err(parameter("size of a number", expected, size as u64));
                }
                let end = u64::from(precision) + u64::from(offset);
                if precision == 0 || end > size as u64 * 8 {
                    return Err(parameter("bits of a number", "1 to those of its bytes", end));
                }
                Ok(Type::Number { size, is_big_endian: order == 1, precision, offset })
            }
            2 => {
                let of = Type::new(values, depth + 1)?;
                if !size.is_multiple_of(of.size()) {
                    let expected = "a multiple of that of its elements";
                    return Err(parameter("size of an array", expected, size as u64));
                }
                Ok(Type::Array { size, of: Box::new(of) })
            }
            3 => {
                let count = values.next()?;
                if count == 0 {
                    // Elements of no bits would take time and no stored bytes.
                    return Err(parameter("members of a compound type", "one or more", 0));
                }
                let mut members = Vec::new();
                for _ in 0..count {
                    let offset = values.next()? as usize;
                    let of = Type::new(values, depth + 1)?;
                    if offset + of.size() > size {
                        let end = (offset + of.size()) as u64;
                        return Err(parameter("end of a member", "at most that of its type", end));
                    }
                    members.push((offset, of));
                }
                Ok(Type::Compound { size, members })
            }
            4 => Ok(Type::Whole { size }),
            _ => Err(parameter("class of a type", "1 to 4", u64::from(class))),
        }
    }

    /// Bytes of an element.
    fn size(&self) -> usize {
        match self {
            Type::Number { size, .. }
            | Type::Array { size, .. }
            | Type::Compound { size, .. }
            | Type::Whole { size } => *size,
        }
    }

    /// Bits of an element as stored.
    fn bits(&self) -> u64 {
        match self {
            Type::Number { precision, .. } => u64::from(*precision),
            Type::Array { size, of } => (size / of.size()) as u64 * of.bits(),
            Type::Compound { members, .. } => members.iter().map(|(_, of)| of.bits()).sum(),
            Type::Whole { size } => *size as u64 * 8,
        }
    }

    /// Read an element into zeros.
    fn read(&self, bits: &mut Bits, out: &mut [u8]) {
        match self {
            Type::Number { size, is_big_endian, precision, offset } => {
                let value = read_wide(bits, *precision) << offset;
                if *is_big_endian {
                    out.copy_from_slice(&value.to_be_bytes()[16 - size..]);
                } else {
                    out.copy_from_slice(&value.to_le_bytes()[..*size]);
                }
            }
            Type::Array { of, .. } => {
                out.chunks_exact_mut(of.size()).for_each(|element| of.read(bits, element));
            }
            Type::Compound { members, .. } => {
                for (offset, of) in members {
                    of.read(bits, &mut out[*offset..offset + of.size()]);
                }
            }
            Type::Whole { .. } => out.iter_mut().for_each(|byte| *byte = bits.read(8) as u8),
        }
    }
}

/// Read 1 to 128 bits.
pub(super) fn read_wide(bits: &mut Bits, mut count: u32) -> u128 {
    let mut value = 0;
    while count > 32 {
        value = value << 32 | u128::from(bits.read(32));
        count -= 32;
    }
    value << count | u128::from(bits.read(count))
}
