//! HCOMPRESS_1 (FITS Standard 4.0, 10.4.4; White 1992): a two-dimensional Haar transform, its
//! coefficients digitised and coded bit plane by bit plane in quadtrees.
//!
//! The format names its axes the other way round: `nx` counts rows, `ny` is the fastest axis.

use std::num::Wrapping;

use super::error::CodecError;
use super::quadtree;
use super::transform::{self, Levels};
use super::{Coefficient, HCOMPRESS_1 as NAME, room};
use crate::bits::Bits;

const MAGIC: [u8; 2] = [0xdd, 0x99];

/// Buffers for coefficients of one width.
#[derive(Debug, Default)]
pub(super) struct Buffers<T> {
    /// Absolute values: of 32 bits if the tile's fit, since adding a bit plane is bound by them.
    narrow: Vec<Wrapping<i32>>,
    wide: Vec<Wrapping<i64>>,
    codes: quadtree::Codes,
    coefficients: Vec<T>,
    levels: Levels<T>,
}

/// The fields ahead of the bit planes.
struct Head<'a> {
    nx: usize,
    ny: usize,
    scale: i32,
    sum: i64,
    /// Bit planes of the coefficients of: sums, differences along one axis, along both.
    planes: [u8; 3],
    body: &'a [u8],
}

fn head(bytes: &[u8]) -> Result<Head<'_>, CodecError> {
    let short = CodecError::Short { codec: NAME, expected: 25, found: bytes.len() as u64 };
    let (fields, body) = bytes.split_first_chunk::<25>().ok_or(short)?;
    let int = |at: usize| {
        fields[at..at + 4].iter().fold(0i32, |value, byte| value << 8 | i32::from(*byte))
    };
    let corrupt =
        |what, expected, found| CodecError::Corrupt { codec: NAME, what, expected, found };
    if fields[..2] != MAGIC {
        let found = i64::from(fields[0]) << 8 | i64::from(fields[1]);
        return Err(corrupt("first two bytes", 0xdd99, found));
    }
    let axis = |what, at| {
        usize::try_from(int(at)).map_err(|_| corrupt(what, i64::from(i32::MAX), int(at).into()))
    };
    let sum = fields[14..22].iter().fold(0i64, |value, byte| value << 8 | i64::from(*byte));
    Ok(Head {
        nx: axis("rows", 2)?,
        ny: axis("columns", 6)?,
        scale: int(10),
        sum,
        planes: [fields[22], fields[23], fields[24]],
        body,
    })
}

/// Decodes a tile of `shape` (fastest axis first) and returns its leading pixels, at least `need`.
///
/// `T` decides when arithmetic wraps: 32 bits for 8- and 16-bit images, else 64.
pub(super) fn decode<'b, T: Coefficient>(
    bytes: &[u8],
    smooth: bool,
    shape: &[u64],
    need: usize,
    buffers: &'b mut Buffers<T>,
) -> Result<&'b [T], CodecError> {
    let head = head(bytes)?;
    let (nx, ny) = (head.nx, head.ny);
    fits(&head, shape)?;
    if let Some(planes) = head.planes.iter().find(|planes| **planes >= T::BITS) {
        return Err(CodecError::Corrupt {
            codec: NAME,
            what: "bit planes",
            expected: i64::from(T::BITS) - 1,
            found: i64::from(*planes),
        });
    }
    let Buffers { narrow, wide, codes, coefficients, levels } = buffers;
    room(NAME, coefficients, nx * ny)?;
    let bits = if head.planes.iter().all(|planes| *planes < 32) {
        read(&head, codes, narrow, coefficients)?
    } else {
        read(&head, codes, wide, coefficients)?
    };
    if bits.overrun() {
        let found = bytes.len() as u64;
        return Err(CodecError::Short { codec: NAME, expected: found + 1, found });
    }
    coefficients[0] = T::from_i64(head.sum) * T::new(head.scale.max(1));
    let smoothing = if smooth { head.scale >> 1 } else { 0 };
    transform::invert(coefficients, nx, ny, T::new(smoothing.max(0)), need, levels)
}

/// Whether the tile has the pixels it declares, in rows that are rows of `shape`.
fn fits(head: &Head<'_>, shape: &[u64]) -> Result<(), CodecError> {
    let corrupt = |what, expected: u64, found: usize| CodecError::Corrupt {
        codec: NAME,
        what,
        expected: expected as i64,
        found: found as i64,
    };
    let pixels: u64 = shape.iter().product();
    let found = head.nx.saturating_mul(head.ny);
    if found as u64 != pixels || found == 0 {
        return Err(corrupt("pixels", pixels, found));
    }
    let mut row = 1;
    let rows = shape.iter().any(|axis| {
        row *= axis;
        row == head.ny as u64
    });
    if !rows && head.ny != 1 {
        return Err(corrupt("pixels of a row", shape.first().copied().unwrap_or(1), head.ny));
    }
    Ok(())
}

/// Reads the bit planes, by way of `magnitudes`, and signs of all coefficients.
fn read<'a, M: Coefficient, T: Coefficient>(
    head: &Head<'a>,
    codes: &mut quadtree::Codes,
    magnitudes: &mut Vec<M>,
    coefficients: &mut [T],
) -> Result<Bits<'a>, CodecError> {
    let (nx, ny) = (head.nx, head.ny);
    magnitudes.clear();
    room(NAME, magnitudes, nx * ny)?;
    let (nx2, ny2) = (nx.div_ceil(2), ny.div_ceil(2));
    let mut bits = Bits::new(head.body);
    let quadrants = [
        (0, 0, nx2, ny2, head.planes[0]),
        (0, ny2, nx2, ny / 2, head.planes[1]),
        (nx2, 0, nx / 2, ny2, head.planes[1]),
        (nx2, ny2, nx / 2, ny / 2, head.planes[2]),
    ];
    for (row, column, rows, columns, planes) in quadrants {
        let at = (row * ny + column).min(magnitudes.len());
        let values = &mut magnitudes[at..];
        let quadrant = quadtree::Quadrant { values, stride: ny, rows, columns };
        quadtree::decode(&mut bits, planes, quadrant, codes)?;
    }
    bits.refill();
    let end = bits.take(4);
    if end != 0 {
        return Err(CodecError::Corrupt {
            codec: NAME,
            what: "mark after the bit planes",
            expected: 0,
            found: i64::from(end),
        });
    }
    Ok(signs(bits.align(), T::new(head.scale.max(1)), magnitudes, coefficients))
}

/// Sets the sign of every coefficient that is not zero, one bit each, and undoes the digitisation.
fn signs<'a, M: Coefficient, T: Coefficient>(
    mut bits: Bits<'a>,
    scale: T,
    magnitudes: &[M],
    coefficients: &mut [T],
) -> Bits<'a> {
    let zero = M::new(0);
    for (to, from) in coefficients.chunks_mut(32).zip(magnitudes.chunks(32)) {
        bits.refill();
        for (to, from) in to.iter_mut().zip(from) {
            let present = u32::from(*from != zero);
            // All ones if the sign bit is set: x ^ -1 - -1 is -x.
            let minus = T::new(-((bits.word >> 63) as i32 & present as i32));
            *to = ((T::from_i64(from.to_i64()) ^ minus) - minus) * scale;
            bits.skip(present);
        }
    }
    bits
}

/// The 32- and 64-bit integers the transform is defined in, wrapping.
impl Coefficient for Wrapping<i32> {
    const BITS: u8 = 32;
    fn new(value: i32) -> Self {
        Wrapping(value)
    }
    fn from_i64(value: i64) -> Self {
        Wrapping(value as i32)
    }
    fn to_i64(self) -> i64 {
        self.0.into()
    }
}

impl Coefficient for Wrapping<i64> {
    const BITS: u8 = 64;
    fn new(value: i32) -> Self {
        Wrapping(value.into())
    }
    fn from_i64(value: i64) -> Self {
        Wrapping(value)
    }
    fn to_i64(self) -> i64 {
        self.0
    }
}
