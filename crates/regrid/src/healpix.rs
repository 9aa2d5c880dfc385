//! HEALPix (Gorski et al. 2005, ApJ 622, 759): the cell of a place, by its base cell and the place
//! in it, which both orders number.

use std::f64::consts::FRAC_PI_2;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Healpix {
    pub(crate) nside: i64,
    pub(crate) is_nested: bool,
}

impl Healpix {
    pub(crate) fn cells(self) -> usize {
        (12 * self.nside * self.nside) as usize
    }

    /// The cell of a place in degrees; the longitude lies in [0, 360).
    pub(crate) fn cell(self, latitude: f64, longitude: f64) -> usize {
        let (base, x, y) = self.place(latitude.to_radians(), longitude.to_radians());
        let cell =
            if self.is_nested { self.nest_number(base, x, y) } else { self.ring(base, x, y) };
        cell as usize
    }

    /// Base cell, and column and row in it: equations 4 to 10 and section 4 of the paper, turned so
    /// that x grows to the north-east and y to the north-west.
    fn place(self, latitude: f64, longitude: f64) -> (i64, i64, i64) {
        let nside = self.nside as f64;
        let z = latitude.sin();
        let quarters = (longitude / FRAC_PI_2).min(4.0_f64.next_down());
        let last = self.nside - 1;
        if z.abs() <= 2.0 / 3.0 {
            let (ascent, height) = (nside * (0.5 + quarters), nside * z * 0.75);
            let (up, down) = ((ascent - height).floor() as i64, (ascent + height).floor() as i64);
            let (face_up, face_down) = (up / self.nside, down / self.nside);
            let base = match face_up.cmp(&face_down) {
                std::cmp::Ordering::Equal => (face_up & 3) | 4,
                std::cmp::Ordering::Less => face_up & 3,
                std::cmp::Ordering::Greater => (face_down & 3) + 8,
            };
            return (base, down.rem_euclid(self.nside), last - up.rem_euclid(self.nside));
        }
        let quarter = quarters.floor();
        let within = quarters - quarter;
        // sqrt(3 (1 - |z|)), without the loss of digits at the pole.
        let distance = nside * (3.0 / (1.0 + z.abs())).sqrt() * latitude.cos().abs();
        let right = ((within * distance).floor() as i64).min(last);
        let left = (((1.0 - within) * distance).floor() as i64).min(last);
        if z > 0.0 {
            (quarter as i64, last - left, last - right)
        } else {
            (quarter as i64 + 8, right, left)
        }
    }

    fn nest_number(self, base: i64, x: i64, y: i64) -> i64 {
        base * self.nside * self.nside + spread(x) + 2 * spread(y)
    }

    /// Number in rings from the north pole, eastwards in each.
    fn ring(self, base: i64, x: i64, y: i64) -> i64 {
        let nside = self.nside;
        let (row, column) = (base / 4, base % 4);
        let ring = (row + 2) * nside - x - y - 1;
        // Twice the column of the base cell's centre, in units of its half width.
        let centre = 2 * column + i64::from(row != 1);
        let (length, before, shift) = if ring < nside {
            (ring, 2 * ring * (ring - 1), 0)
        } else if ring > 3 * nside {
            let length = 4 * nside - ring;
            (length, self.cells() as i64 - 2 * length * (length + 1), 0)
        } else {
            (nside, 2 * nside * (nside - 1) + (ring - nside) * 4 * nside, (ring - nside) & 1)
        };
        let place = (centre * length + x - y + 1 + shift) / 2;
        let ring_cells = 4 * length;
        before + (place - 1).rem_euclid(ring_cells)
    }
}

/// The bits of a number at the even places.
fn spread(value: i64) -> i64 {
    let mut bits = value;
    for (shift, mask) in [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ] {
        bits = (bits | (bits << shift)) & mask;
    }
    bits
}
