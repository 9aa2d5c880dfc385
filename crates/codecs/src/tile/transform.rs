//! Inverse H-transform of HCOMPRESS_1 (White 1992), with its optional smoothing.
//!
//! Coefficients lie in a pyramid: the sums of a level are its upper left quarter, which holds the
//! next coarser level the same way. Every level turns one sum and three differences into four
//! sums of the level below, or pixels in the end.

use super::error::CodecError;
use super::{Coefficient, HCOMPRESS_1 as NAME, room};

/// Sums of a level and of the level below.
#[derive(Debug, Default)]
pub(super) struct Levels<T> {
    coarse: Vec<T>,
    fine: Vec<T>,
}

/// Rounding of the coefficients of one level: they were halved once for every level above.
#[derive(Clone, Copy)]
struct Rounding<T> {
    /// Lowest bit a difference along one axis may have set, and what rounds to it.
    bit1: T,
    up1: T,
    down1: T,
    /// The same of a difference along both.
    bit0: T,
    up0: T,
    down0: T,
    /// Halvings that end the level.
    shift: usize,
}

impl<T: Coefficient> Rounding<T> {
    fn of(level: usize) -> Self {
        let one = T::new(1);
        let bit0 = one << level;
        let up0 = bit0 >> 1;
        let last = level == 0;
        Rounding {
            bit1: bit0 << 1,
            up1: bit0,
            down1: bit0 - one,
            bit0,
            up0,
            down0: if last { up0 } else { up0 - one },
            shift: if last { 2 } else { 1 },
        }
    }

    #[inline(always)]
    fn single(&self, value: T) -> T {
        round(value, self.up1, self.down1, self.bit1)
    }

    #[inline(always)]
    fn double(&self, value: T) -> T {
        round(value, self.up0, self.down0, self.bit0)
    }
}

#[inline(always)]
fn round<T: Coefficient>(value: T, up: T, down: T, bit: T) -> T {
    (value + if value >= T::new(0) { up } else { down }) & -bit
}

/// `value` moved away from (+) or towards (-) zero by `by`.
#[inline(always)]
fn outwards<T: Coefficient>(value: T, by: T) -> T {
    if value >= T::new(0) { value + by } else { value - by }
}

/// Inverts the transform of `nx` rows of `ny`; rows beyond the first `need` pixels may be left
/// out. `smoothing` is the largest change of a difference, 0 for none.
pub(super) fn invert<'l, T: Coefficient>(
    coefficients: &mut [T],
    nx: usize,
    ny: usize,
    smoothing: T,
    need: usize,
    levels: &'l mut Levels<T>,
) -> Result<&'l [T], CodecError> {
    room(NAME, &mut levels.coarse, nx * ny)?;
    room(NAME, &mut levels.fine, nx * ny)?;
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, tested on the line above. Figures: `quadtree`.
        unsafe { levels_with_avx2(coefficients, nx, ny, smoothing, need, levels) };
        return Ok(&levels.coarse);
    }
    each_level(coefficients, nx, ny, smoothing, need, levels);
    Ok(&levels.coarse)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn levels_with_avx2<T: Coefficient>(
    coefficients: &mut [T],
    nx: usize,
    ny: usize,
    smoothing: T,
    need: usize,
    levels: &mut Levels<T>,
) {
    each_level(coefficients, nx, ny, smoothing, need, levels);
}

/// Leaves the pixels in `levels.coarse`.
#[inline(always)]
fn each_level<T: Coefficient>(
    coefficients: &mut [T],
    nx: usize,
    ny: usize,
    smoothing: T,
    need: usize,
    levels: &mut Levels<T>,
) {
    let top = nx.max(ny).next_power_of_two().trailing_zeros() as usize;
    levels.coarse[0] = coefficients[0];
    if top > 0 {
        let bit2 = T::new(1) << (top + 1);
        let up = bit2 >> 1;
        levels.coarse[0] = round(coefficients[0], up, up - T::new(1), bit2);
    }
    for level in (0..top).rev() {
        let size = |axis: usize| axis.div_ceil(1 << level);
        let (rows, columns) = (size(nx), size(ny));
        let mut step =
            Level { coefficients: &mut *coefficients, stride: ny, rows, columns, smoothing };
        let top_rows =
            if level == 0 { need.div_ceil(ny).next_multiple_of(2).min(rows) } else { rows };
        step.expand(&levels.coarse, Rounding::of(level), top_rows, &mut levels.fine);
        std::mem::swap(&mut levels.coarse, &mut levels.fine);
    }
}

/// One level: positions of its differences, and the size of the result.
struct Level<'a, T> {
    coefficients: &'a mut [T],
    stride: usize,
    rows: usize,
    columns: usize,
    smoothing: T,
}

impl<T: Coefficient> Level<'_, T> {
    /// Turns the sums `coarse` into the first `top_rows` rows of sums `fine`.
    #[inline(always)]
    fn expand(&mut self, coarse: &[T], rounding: Rounding<T>, top_rows: usize, fine: &mut [T]) {
        let (half_rows, half) = (self.rows.div_ceil(2), self.columns.div_ceil(2));
        for (row, out) in fine[..top_rows * self.columns].chunks_mut(2 * self.columns).enumerate() {
            if self.smoothing > T::new(0) {
                self.smooth(coarse, row);
            }
            let h0 = &coarse[row * half..][..half];
            let hy = &self.coefficients[row * self.stride + half..][..self.columns - half];
            if 2 * row + 1 < self.rows {
                let below = &self.coefficients[(half_rows + row) * self.stride..];
                let (hx, hc) = below[..self.columns].split_at(half);
                let (upper, lower) = out.split_at_mut(self.columns);
                pair_of_rows(rounding, [h0, hx, hy, hc], upper, lower);
            } else {
                single_row(rounding, h0, hy, out);
            }
        }
    }
}

/// The four sums of every block of two rows.
#[inline(always)]
fn pair_of_rows<T: Coefficient>(r: Rounding<T>, h: [&[T]; 4], upper: &mut [T], lower: &mut [T]) {
    let [h0, hx, hy, hc] = h;
    let (upper_pairs, upper_single) = upper.as_chunks_mut::<2>();
    let (lower_pairs, lower_single) = lower.as_chunks_mut::<2>();
    let zero = T::new(0);
    let differences = hx.iter().zip(hy).zip(hc);
    let sums = upper_pairs.iter_mut().zip(lower_pairs).zip(h0);
    for (((upper, lower), h0), ((hx, hy), hc)) in sums.zip(differences) {
        let hc = r.double(*hc);
        let low0 = hc & r.bit0;
        let hx = outwards(r.single(*hx), -low0);
        let hy = outwards(r.single(*hy), -low0);
        let low1 = (hc ^ hx ^ hy) & r.bit1;
        let h0 = *h0
            + if *h0 >= zero {
                low0 - low1
            } else if low0 == zero {
                low1
            } else {
                low0 - low1
            };
        *upper = [(h0 - hx - hy + hc) >> r.shift, (h0 - hx + hy - hc) >> r.shift];
        *lower = [(h0 + hx - hy - hc) >> r.shift, (h0 + hx + hy + hc) >> r.shift];
    }
    if let ([upper], [lower], Some(h0), Some(hx)) =
        (upper_single, lower_single, h0.last(), hx.last())
    {
        let hx = r.single(*hx);
        let h0 = outwards(*h0, -(hx & r.bit1));
        *upper = (h0 - hx) >> r.shift;
        *lower = (h0 + hx) >> r.shift;
    }
}

/// The sums of the last row of an odd number of them.
#[inline(always)]
fn single_row<T: Coefficient>(r: Rounding<T>, h0: &[T], hy: &[T], out: &mut [T]) {
    let (pairs, single) = out.as_chunks_mut::<2>();
    for ((out, h0), hy) in pairs.iter_mut().zip(h0).zip(hy) {
        let hy = r.single(*hy);
        let h0 = outwards(*h0, -(hy & r.bit1));
        *out = [(h0 - hy) >> r.shift, (h0 + hy) >> r.shift];
    }
    if let ([out], Some(h0)) = (single, h0.last()) {
        *out = *h0 >> r.shift;
    }
}

impl<T: Coefficient> Level<'_, T> {
    /// Moves the differences of one row of blocks towards what the neighbouring sums suggest, by
    /// no more than digitisation may have changed them and never past a monotonic slope.
    #[inline(always)]
    fn smooth(&mut self, coarse: &[T], row: usize) {
        let (half_rows, half) = (self.rows.div_ceil(2), self.columns.div_ceil(2));
        let inner_row = row > 0 && 2 * row + 2 < self.rows;
        // Blocks from 1 to before `inner` have both neighbours in their row.
        let inner = (self.columns.max(2) - 2).div_ceil(2).max(1);
        let here = &coarse[row * half..][..half];
        let limit = self.smoothing;
        if inner_row {
            let (above, below) = (&coarse[(row - 1) * half..], &coarse[(row + 1) * half..]);
            let hx = &mut self.coefficients[(half_rows + row) * self.stride..][..half];
            for (at, hx) in hx.iter_mut().enumerate() {
                *hx = slope(*hx, [above[at], here[at], below[at]], limit);
            }
        }
        let hy = &mut self.coefficients[row * self.stride + half..];
        for at in 1..inner {
            hy[at] = slope(hy[at], [here[at - 1], here[at], here[at + 1]], limit);
        }
        if inner_row {
            let (above, below) = (&coarse[(row - 1) * half..], &coarse[(row + 1) * half..]);
            let (first, second) = self.coefficients.split_at_mut((half_rows + row) * self.stride);
            let hy = &first[row * self.stride + half..];
            let (hx, hc) = second.split_at_mut(half);
            for at in 1..inner {
                let corners = [above[at - 1], above[at + 1], below[at - 1], below[at + 1]];
                hc[at] = curvature(hc[at], [hx[at], hy[at]], here[at], corners, limit);
            }
        }
    }
}

/// `value` moved towards `target` / 2^`shift`, by at most `limit`; the quotient truncates.
#[inline(always)]
fn approach<T: Coefficient>(value: T, target: T, shift: usize, limit: T) -> T {
    let by = target - (value << shift);
    let by = if by >= T::new(0) { by } else { by + (T::new(1) << shift) - T::new(1) } >> shift;
    value + by.min(limit).max(-limit)
}

/// A difference along one axis, from the sums before, in and after its block.
#[inline(always)]
fn slope<T: Coefficient>(value: T, [before, here, after]: [T; 3], limit: T) -> T {
    let zero = T::new(0);
    let (left, right) = (here - before, after - here);
    let most = right.min(left).max(zero) << 2;
    let least = right.max(left).min(zero) << 2;
    if least >= most {
        return value;
    }
    approach(value, (after - before).min(most).max(least), 3, limit)
}

/// A difference along both axes, from the slopes of its block and the sums at its corners:
/// above left, above right, below left, below right.
#[inline(always)]
fn curvature<T: Coefficient>(
    value: T,
    [hx, hy]: [T; 2],
    here: T,
    [above_left, above_right, below_left, below_right]: [T; 4],
    limit: T,
) -> T {
    let zero = T::new(0);
    let (hx2, hy2) = (hx << 1, hy << 1);
    let rises = [
        (below_right - here, -hx2 - hy2),
        (here - below_left, hx2 - hy2),
        (here - above_right, hy2 - hx2),
        (above_left - here, hx2 + hy2),
    ];
    let bound = |clip: fn(T, T) -> T, join: fn(T, T) -> T| {
        let [a, b, c, d] = rises.map(|(rise, slope)| clip(rise, zero) + slope);
        join(join(a, b), join(c, d)) << 4
    };
    let most = bound(T::max, T::min);
    let least = bound(T::min, T::max);
    if least >= most {
        return value;
    }
    let target = below_right + above_left - above_right - below_left;
    approach(value, target.min(most).max(least), 6, limit)
}
