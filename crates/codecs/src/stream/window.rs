//! The bytes before a seek point that what follows it refers to.
//!
//! Matches reach back [`WINDOW_BYTES`], but those of noise use a fifth of these bytes. Only
//! that is stored, in a third of the space of all; points can be three times as close.

use super::literal_deflate;
use libdeflater::Decompressor;

/// How far back a match may reach.
pub(super) const WINDOW_BYTES: usize = 32 << 10;
/// Bytes are stored in pairs, the first and the second ones apart: most FITS pixels have two, and
/// the high ones hardly differ.
const PAIRS: usize = WINDOW_BYTES / 2;
/// Bits set at once: as many as fit in a word after up to 7 others.
const BITS_AT_ONCE: usize = 56;
/// The pairs of one match that begins just before the end of the window, and what a word reaches
/// beyond.
const SLACK_PAIRS: usize = 256;

/// A window that is still open: matches may use more of it.
pub(super) struct Window {
    /// Its end in the decoder's buffer.
    end: usize,
    /// The last bytes before that; zeros before the first one.
    bytes: Vec<u8>,
    length: usize,
    /// One bit for each pair of `bytes`.
    use_mask: [u8; (PAIRS + SLACK_PAIRS) / 8],
}

impl Window {
    /// The bytes before the end of `history` that matches may reach.
    pub(super) fn new(history: &[u8], valid_from: usize) -> Window {
        let end = history.len();
        let length = (end - valid_from).min(WINDOW_BYTES);
        let mut bytes = vec![0; WINDOW_BYTES];
        bytes[WINDOW_BYTES - length..].copy_from_slice(&history[end - length..]);
        Window { end, bytes, length, use_mask: [0; (PAIRS + SLACK_PAIRS) / 8] }
    }

    /// Say that the decoder's buffer now begins `bytes` later.
    pub(super) fn shift(&mut self, bytes: usize) {
        self.end -= bytes;
    }

    /// The position in the decoder's buffer beyond which matches no longer reach it.
    pub(super) fn out_of_reach(&self) -> usize {
        self.end + WINDOW_BYTES
    }

    /// Record the source of a match, by its position in the decoder's buffer. Bytes beyond
    /// the window are passed over.
    #[inline(always)]
    pub(super) fn mark(&mut self, from: usize, length: usize) {
        let first = (from + WINDOW_BYTES - self.end).min(WINDOW_BYTES);
        let mut pair = first / 2;
        let mut rest_bits = (first + length).div_ceil(2) - pair;
        // The first time in any case: whether a match exists at all is not foreseeable.
        loop {
            let bits = rest_bits.min(BITS_AT_ONCE);
            if let Some(word) = self.use_mask[pair / 8..].first_chunk_mut::<8>() {
                let mask = ((1u64 << bits) - 1) << (pair % 8);
                *word = (u64::from_le_bytes(*word) | mask).to_le_bytes();
            }
            pair += bits;
            rest_bits -= bits;
            if rest_bits == 0 {
                break;
            }
        }
    }

    /// As a seek point stores it: number of bytes and, deflated, which pairs are used,
    /// their first bytes, their second bytes.
    pub(super) fn pack(&self) -> Box<[u8]> {
        let use_mask = &self.use_mask[..PAIRS / 8];
        let mut pairs = [[0; 2]; PAIRS];
        let mut count = 0;
        for (bits, eight) in use_mask.iter().zip(self.bytes.chunks_exact(16)) {
            for (bit, pair) in eight.chunks_exact(2).enumerate() {
                // Written in any case, and retained if it is used: that is not foreseeable.
                pairs[count % PAIRS] = [pair[0], pair[1]];
                count += usize::from(bits >> bit & 1);
            }
        }
        let pairs = &pairs[..count];
        let first: Vec<u8> = pairs.iter().map(|pair| pair[0]).collect();
        let second: Vec<u8> = pairs.iter().map(|pair| pair[1]).collect();
        let head = (self.length as u16).to_le_bytes().to_vec();
        literal_deflate::deflate(&[use_mask, &first, &second], head).into()
    }
}

/// Write what [`Window::pack`] stored, with zeros between, into a window; returns the number of
/// bytes, up to its end.
pub(super) fn unpack(input: &[u8], window: &mut [u8; WINDOW_BYTES]) -> Result<usize, &'static str> {
    let (length, body) = input.split_first_chunk().ok_or("no window")?;
    let length = usize::from(u16::from_le_bytes(*length));
    if length > WINDOW_BYTES {
        return Err("window out of range");
    }
    let mut plain = [0; PAIRS / 8 + WINDOW_BYTES];
    let bytes = Decompressor::new()
        .deflate_decompress(body, &mut plain)
        .map_err(|_| "window cannot be inflated")?;
    let (use_mask, pairs) = plain[..bytes].split_at_checked(PAIRS / 8).ok_or("window too short")?;
    let count: usize = use_mask.iter().map(|byte| byte.count_ones() as usize).sum();
    if pairs.len() != 2 * count {
        return Err("window of another length than it says");
    }
    let (first, second) = pairs.split_at(count);
    window.fill(0);
    for (pair, (first, second)) in ones(use_mask).zip(first.iter().zip(second)) {
        (window[2 * pair], window[2 * pair + 1]) = (*first, *second);
    }
    Ok(length)
}

/// The places of the bits that are set, lowest first.
fn ones(bits: &[u8]) -> impl Iterator<Item = usize> {
    let words =
        bits.chunks_exact(8).map(|word| word.first_chunk().map_or(0, |w| u64::from_le_bytes(*w)));
    words.enumerate().flat_map(|(at, mut word)| {
        std::iter::from_fn(move || {
            let bit = word.trailing_zeros() as usize;
            word &= word.wrapping_sub(1);
            (bit < 64).then_some(at * 64 + bit)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use libdeflater::{CompressionLvl, Compressor};
    use proptest::prelude::*;

    fn history(bytes: usize) -> Vec<u8> {
        (0..bytes as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8 | 1).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_was_marked_comes_back(
            bytes in prop_oneof![1usize..100, 1usize..80_000],
            valid_from in any::<prop::sample::Index>(),
            shift in any::<prop::sample::Index>(),
            matches in prop::collection::vec((1usize..=WINDOW_BYTES, 3usize..=258), 0..200),
            beyond in prop::collection::vec(0usize..WINDOW_BYTES, 0..20),
        ) {
            let history = history(bytes);
            let valid_from = valid_from.index(bytes);
            let mut window = Window::new(&history, valid_from);
            let length = (bytes - valid_from).min(WINDOW_BYTES);
            let shift = shift.index(bytes - length + 1);
            window.shift(shift);
            let end = bytes - shift;
            prop_assert_eq!(window.out_of_reach(), end + WINDOW_BYTES);
            let backs: Vec<_> = matches.iter().map(|&(b, run)| (1 + (b - 1) % length, run)).collect();
            backs.iter().for_each(|&(back, run)| window.mark(end - back, run));
            beyond.iter().for_each(|&on| window.mark(end + on, 258));

            let packed = window.pack();
            let mut output = Box::new([9; WINDOW_BYTES]);
            prop_assert_eq!(unpack(&packed, &mut output), Ok(length));
            for (back, run) in backs {
                let run = run.min(back);
                let copy = &output[WINDOW_BYTES - back..][..run];
                prop_assert_eq!(copy, &history[bytes - back..][..run]);
            }
        }

        #[test]
        fn any_bytes_do_no_harm(plain in prop::collection::vec(any::<u8>(), 0..5000), length: u16) {
            let mut packed = vec![0; 6000];
            packed[..2].copy_from_slice(&length.to_le_bytes());
            let mut compressor = Compressor::new(CompressionLvl::new(1).unwrap());
            let bytes = compressor.deflate_compress(&plain, &mut packed[2..]).unwrap();
            let mut window = Box::new([0; WINDOW_BYTES]);
            let _ = unpack(&packed[..2 + bytes], &mut window);
            let _ = unpack(&plain, &mut window);
        }
    }

    #[test]
    fn what_nothing_uses_is_not_kept() {
        let history = history(WINDOW_BYTES);
        let mut window = Window::new(&history, 0);
        window.mark(100, 4);
        let mut output = Box::new([9; WINDOW_BYTES]);
        let image = window.pack();
        // A bit for eight pairs that are not used.
        assert!(image.len() < PAIRS / 8 / 8 + 60, "{}", image.len());
        unpack(&image, &mut output).unwrap();
        assert_eq!(output[100..104], history[100..104]);
        assert!(output.iter().enumerate().all(|(at, &b)| (100..104).contains(&at) || b == 0));
    }

    #[test]
    fn damaged_windows_are_refused() {
        let mut window = Window::new(&history(WINDOW_BYTES), 0);
        window.mark(100, 200);
        let good = window.pack();
        let mut output = Box::new([0; WINDOW_BYTES]);
        let too_long = [&[1, 0x80], &good[2..]].concat();
        for input in [&good[..0], &good[..1], &good[..2], &good[..good.len() - 9], &too_long] {
            assert!(unpack(input, &mut output).is_err(), "{}", input.len());
        }
    }
}
