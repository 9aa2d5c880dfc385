//! The rounds, written once for both widths.

/// FIPS 180-4, 4.2.2.
#[rustfmt::skip]
pub(super) const K: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

/// Writes `compress` for the vector type and the operations of the module it is used in.
///
/// Intrinsics and not loops over arrays of lanes, because the sixteen message words and the eight
/// of the state have to stay in registers, which a vectoriser does not promise.
macro_rules! compress_in_lanes {
    ($feature:literal, $vector:ty, $lanes:literal) => {
        /// Runs every lane's state over that lane's blocks.
        ///
        /// # Panics
        ///
        /// If a lane has fewer blocks than the first.
        #[target_feature(enable = $feature)]
        pub(super) fn compress(
            states: &mut super::lanes::States<$lanes>,
            blocks: &[&[u8]; $lanes],
        ) {
            let mut state = [splat(0); 8];
            for (vector, words) in state.iter_mut().zip(&*states) {
                *vector = from_words(words);
            }
            for start in (0..blocks[0].len()).step_by(super::lanes::BLOCK_BYTES) {
                state = compress_one(state, load(blocks, start));
            }
            for (words, vector) in states.iter_mut().zip(state) {
                *words = to_words(vector);
            }
        }

        #[target_feature(enable = $feature)]
        #[inline]
        fn compress_one(state: [$vector; 8], message: [$vector; 16]) -> [$vector; 8] {
            let mut w = message;
            let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
            #[rustfmt::skip] // it would indent the pattern further with every run
            macro_rules! round {
                ($first:ident, $t:literal, $a:ident, $b:ident, $c:ident, $d:ident,
                 $e:ident, $f:ident, $g:ident, $h:ident) => {
                    if $first != 0 {
                        w[$t] =
                            schedule(w[$t], w[($t + 1) % 16], w[($t + 9) % 16], w[($t + 14) % 16]);
                    }
                    let with_key = add(add($h, w[$t]), splat(super::rounds::K[$first + $t]));
                    let t1 = add(add(big_sigma1($e), choose($e, $f, $g)), with_key);
                    $d = add($d, t1);
                    $h = add(add(big_sigma0($a), majority($a, $b, $c)), t1);
                };
            }
            for first in (0..64).step_by(16) {
                round!(first, 0, a, b, c, d, e, f, g, h);
                round!(first, 1, h, a, b, c, d, e, f, g);
                round!(first, 2, g, h, a, b, c, d, e, f);
                round!(first, 3, f, g, h, a, b, c, d, e);
                round!(first, 4, e, f, g, h, a, b, c, d);
                round!(first, 5, d, e, f, g, h, a, b, c);
                round!(first, 6, c, d, e, f, g, h, a, b);
                round!(first, 7, b, c, d, e, f, g, h, a);
                round!(first, 8, a, b, c, d, e, f, g, h);
                round!(first, 9, h, a, b, c, d, e, f, g);
                round!(first, 10, g, h, a, b, c, d, e, f);
                round!(first, 11, f, g, h, a, b, c, d, e);
                round!(first, 12, e, f, g, h, a, b, c, d);
                round!(first, 13, d, e, f, g, h, a, b, c);
                round!(first, 14, c, d, e, f, g, h, a, b);
                round!(first, 15, b, c, d, e, f, g, h, a);
            }
            let words = [a, b, c, d, e, f, g, h];
            let mut sum = state;
            for word in 0..8 {
                sum[word] = add(state[word], words[word]);
            }
            sum
        }

        /// FIPS 180-4, 6.2.2: the word 16 rounds on, from words 0, 1, 9 and 14.
        #[target_feature(enable = $feature)]
        #[inline]
        fn schedule(w0: $vector, w1: $vector, w9: $vector, w14: $vector) -> $vector {
            let sigma0 = xor(right::<7>(w1), right::<18>(w1), shift::<3>(w1));
            let sigma1 = xor(right::<17>(w14), right::<19>(w14), shift::<10>(w14));
            add(add(w0, sigma0), add(w9, sigma1))
        }

        #[target_feature(enable = $feature)]
        #[inline]
        fn big_sigma0(a: $vector) -> $vector {
            xor(right::<2>(a), right::<13>(a), right::<22>(a))
        }

        #[target_feature(enable = $feature)]
        #[inline]
        fn big_sigma1(e: $vector) -> $vector {
            xor(right::<6>(e), right::<11>(e), right::<25>(e))
        }
    };
}
