//! Quantised floats (FITS Standard 4.0, 10.2): integers back to floating point.
//!
//! value = (integer - random + 0.5) * ZSCALE + ZZERO, in double precision and in this order, then
//! rounded to the pixel type: other readers do the same, and the last bit depends on it.

use super::dither::Sequence;
use super::{Dither, Quantize, TileInput};

/// Integer that stands for an exact zero under SUBTRACTIVE_DITHER_2.
const ZERO_VALUE: i32 = -2_147_483_646;

/// Writes to `out` the pixels that `integers` (big-endian, 32-bit) stand for.
pub(super) fn restore<const N: usize>(
    quantize: Quantize,
    input: &TileInput<'_>,
    integers: &[[u8; 4]],
    pixel: impl Fn(f64) -> [u8; N] + Copy,
    out: &mut [[u8; N]],
) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, tested on the line above. Sky as dithered
        // floats in RICE_1: 203 -> 248 Mpixel/s.
        return unsafe { each_with_avx2(quantize, input, integers, pixel, out) };
    }
    each(quantize, input, integers, pixel, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn each_with_avx2<const N: usize>(
    quantize: Quantize,
    input: &TileInput<'_>,
    integers: &[[u8; 4]],
    pixel: impl Fn(f64) -> [u8; N] + Copy,
    out: &mut [[u8; N]],
) {
    each(quantize, input, integers, pixel, out);
}

#[inline(always)]
fn each<const N: usize>(
    quantize: Quantize,
    input: &TileInput<'_>,
    integers: &[[u8; 4]],
    pixel: impl Fn(f64) -> [u8; N] + Copy,
    out: &mut [[u8; N]],
) {
    let special = Special {
        blank: input.blank.and_then(|blank| i32::try_from(blank).ok()),
        zero: (quantize.dither == Dither::Subtractive2).then_some(ZERO_VALUE),
    };
    let (scale, zero) = (input.scale, input.zero);
    if quantize.dither == Dither::None {
        for (to, integer) in out.iter_mut().zip(integers) {
            let integer = i32::from_be_bytes(*integer);
            *to = pixel(special.or(integer, f64::from(integer) * scale + zero));
        }
        return;
    }
    let mut sequence = Sequence::new(input.tile, quantize.seed);
    let mut index = 0;
    while index < integers.len().min(out.len()) {
        let random = sequence.run(integers.len() - index);
        let pixels = out[index..].iter_mut().zip(&integers[index..]).zip(random);
        for ((to, integer), random) in pixels {
            let integer = i32::from_be_bytes(*integer);
            let value = (f64::from(integer) - f64::from(*random) + 0.5) * scale + zero;
            *to = pixel(special.or(integer, value));
        }
        index += random.len();
    }
}

/// Integers that do not stand for a scaled value.
#[derive(Clone, Copy)]
struct Special {
    blank: Option<i32>,
    zero: Option<i32>,
}

impl Special {
    /// The pixel value of `integer`: `value` unless it is special.
    #[inline(always)]
    fn or(self, integer: i32, value: f64) -> f64 {
        let value = if self.zero == Some(integer) { 0.0 } else { value };
        if self.blank == Some(integer) { f64::NAN } else { value }
    }
}
