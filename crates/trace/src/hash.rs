//! A hash of words that is quicker than that of the standard library: reading looks up most words
//! by it. Each table has another seed, so that nobody can construct words that collide.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Odd, with its bits well mixed: of the golden ratio.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone)]
pub(crate) struct Quick(u64);

impl Default for Quick {
    fn default() -> Quick {
        Quick(RandomState::new().hash_one(0u8))
    }
}

impl BuildHasher for Quick {
    type Hasher = Word;

    fn build_hasher(&self) -> Word {
        Word { seed: self.0, mixed: self.0 }
    }
}

pub(crate) struct Word {
    seed: u64,
    mixed: u64,
}

impl Word {
    fn mix(&mut self, piece: u64) {
        let product = u128::from(self.mixed ^ piece) * u128::from(self.seed | MIX);
        self.mixed = (product as u64) ^ (product >> 64) as u64;
    }
}

impl Hasher for Word {
    fn write(&mut self, bytes: &[u8]) {
        let (whole, rest) = bytes.as_chunks::<8>();
        for chunk in whole {
            self.mix(u64::from_ne_bytes(*chunk));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_ne_bytes(last) ^ (bytes.len() as u64) << 56);
    }

    fn finish(&self) -> u64 {
        self.mixed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn words_that_differ_a_little_do_not_fall_together() {
        let quick = Quick::default();
        let hashes: Vec<u64> =
            (0..200_000).map(|number| quick.hash_one(format!("star-{number}"))).collect();
        assert_eq!(hashes.iter().collect::<HashSet<_>>().len(), hashes.len());
        // A table looks at the lowest and at the highest bits.
        for shift in [0, 57] {
            let mut counts = [0u32; 128];
            for hash in &hashes {
                counts[(hash >> shift) as usize & 127] += 1;
            }
            let even = hashes.len() as u32 / 128;
            assert!(counts.iter().all(|&count| count.abs_diff(even) < even / 3), "{counts:?}");
        }
        assert_ne!(quick.hash_one(""), quick.hash_one("\0"));
    }
}
