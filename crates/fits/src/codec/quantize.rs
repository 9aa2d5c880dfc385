//! Quantised floats (FITS Standard 4.0, 10.2): integers back to floating point.
//!
//! value = (integer - random + 0.5) * ZSCALE + ZZERO, in double precision and in this order, then
//! rounded to the pixel type: other readers do the same, and the last bit depends on it.

use super::dither::Sequence;
use super::{Dither, Quantize, TileInput};

/// Integer that stands for an exact zero under SUBTRACTIVE_DITHER_2.
const ZERO_VALUE: i32 = -2_147_483_646;

/// Appends to `out` the pixels that `integers` (big-endian, 32-bit) stand for.
pub(super) fn restore<const N: usize>(
    quantize: Quantize,
    input: &TileInput<'_>,
    integers: &[[u8; 4]],
    pixel: impl Fn(f64) -> [u8; N] + Copy,
    out: &mut [[u8; N]],
) {
    let blank = input.blank.and_then(|blank| i32::try_from(blank).ok());
    let (scale, zero) = (input.scale, input.zero);
    let exact_zero = quantize.dither == Dither::Subtractive2;
    if quantize.dither == Dither::None {
        for (to, integer) in out.iter_mut().zip(integers) {
            *to = pixel(f64::from(i32::from_be_bytes(*integer)) * scale + zero);
        }
    } else {
        let mut sequence = Sequence::new(input.tile, quantize.seed);
        let mut done = 0;
        while done < integers.len().min(out.len()) {
            let random = sequence.run(integers.len() - done);
            let coming = out[done..].iter_mut().zip(&integers[done..]).zip(random);
            for ((to, integer), random) in coming {
                let integer = i32::from_be_bytes(*integer);
                let value = (f64::from(integer) - f64::from(*random) + 0.5) * scale + zero;
                *to = pixel(if exact_zero && integer == ZERO_VALUE { 0.0 } else { value });
            }
            done += random.len();
        }
    }
    if let Some(blank) = blank.map(i32::to_be_bytes) {
        for (to, integer) in out.iter_mut().zip(integers) {
            if *integer == blank {
                *to = pixel(f64::NAN);
            }
        }
    }
}
