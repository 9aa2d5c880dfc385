//! The random sequence of subtractive dithering (FITS Standard 4.0, 10.2.1 and appendix I).

/// Numbers in the table.
pub(super) const LENGTH: usize = 10_000;

const MULTIPLIER: u64 = 16_807;
const MODULUS: u64 = 2_147_483_647;

/// Park and Miller's minimal standard generator, seeded with 1; single precision, as the writers
/// of the format keep it.
static TABLE: [f32; LENGTH] = table().0;

/// The table, and the generator's last state.
const fn table() -> ([f32; LENGTH], u64) {
    let mut values = [0.0; LENGTH];
    let mut seed = 1;
    let mut at = 0;
    while at < LENGTH {
        seed = MULTIPLIER * seed % MODULUS;
        values[at] = (seed as f64 / MODULUS as f64) as f32;
        at += 1;
    }
    (values, seed)
}

/// Place in the sequence of one tile.
pub(super) struct Sequence {
    /// Entry of the table that the current run was started by.
    start: usize,
    /// Entry to use next.
    next: usize,
}

impl Sequence {
    /// The sequence of the tile in table row `tile` (from 0) of an image with this ZDITHER0.
    pub(super) fn new(tile: u64, seed: u32) -> Self {
        let length = LENGTH as u64;
        let start = (tile % length + u64::from(seed) % length + length - 1) % length;
        Sequence::at(start as usize)
    }

    fn at(start: usize) -> Self {
        Sequence { start, next: (TABLE[start] * 500.0) as usize }
    }

    /// The coming numbers, at most `most` and at least one if `most` is not 0.
    pub(super) fn run(&mut self, most: usize) -> &'static [f32] {
        if self.next == LENGTH {
            *self = Sequence::at((self.start + 1) % LENGTH);
        }
        let run = &TABLE[self.next..LENGTH.min(self.next.saturating_add(most))];
        self.next += run.len();
        run
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generator_ends_in_the_standards_seed() {
        assert_eq!(table().1, 1_043_618_065);
    }

    #[test]
    fn runs_restart_from_the_following_entry() {
        let mut all = Vec::new();
        let mut sequence = Sequence::new(4, 3);
        while all.len() < 30_000 {
            all.extend_from_slice(sequence.run(777));
        }
        let (mut start, mut next) = (6, (TABLE[6] * 500.0) as usize);
        for value in all {
            assert_eq!(value, TABLE[next]);
            next += 1;
            if next == LENGTH {
                start += 1;
                next = (TABLE[start] * 500.0) as usize;
            }
        }
    }

    #[test]
    fn seed_wraps_round_the_table() {
        assert_eq!(Sequence::new(0, 1).start, 0);
        assert_eq!(Sequence::new(9_999, 1).start, 9_999);
        assert_eq!(Sequence::new(10_000, 1).start, 0);
        assert_eq!(Sequence::new(1, 10_000).start, 0);
        assert_eq!(Sequence::new(u64::MAX, u32::MAX).start, (1615 + 7295 + 9_999) % 10_000);
    }
}
