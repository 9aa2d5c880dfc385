//! A decoding table of what most often comes together: one or two literals, a short match, or a
//! literal and a short match, its distance included.
//!
//! Noise compresses into literals and short matches in no order that a processor could foresee.
//! All entries here are used in the same way, without a branch, whatever they hold; what is rare
//! has none, and is looked up symbol by symbol ([`super::huffman`]).

use super::huffman::{self, Table, entry};
use std::ops::Range;

/// The entry of bits that are to be looked up symbol by symbol.
pub(super) const NONE: u64 = 0;

/// Bits of the index. One more would make the table as large as the window, which is in use beside
/// it; that and building it cost more than is won (tried: 8 %, one less 5 %).
const BITS: usize = 11;
const SIZE: usize = 1 << BITS;

/// The symbols of lengths from 3 to 10, without extra bits.
const SHORT: Range<usize> = 257..265;
const SHORTEST: usize = 3;
const LITERAL: Range<usize> = 0..256;
/// Bytes a match is copied in at once: as far back it must at least come from, and as long it may
/// be.
pub(super) const STEP: usize = 16;

// The offsets of the parts of an entry. Below are 6 bits: how many bits of the stream it uses,
// those of the distance included. An entry without a match has a length and a distance of 0.
/// The offset of the distance's extra bits in the stream: 8 bits, as all but the last.
const EXTRA: u32 = 8;
const LITERAL_COUNT: u32 = 16;
const LENGTH: u32 = 24;
const LITERALS: u32 = 32;
const SECOND_LITERAL: u32 = 40;
/// The distance without its extra bits: 16 bits.
const DISTANCE: u32 = 48;

/// A part of an entry that fits nowhere.
const NEVER: u64 = 0xff << EXTRA;

/// Bits of the stream an entry uses.
#[inline(always)]
pub(super) fn bit_count(entry: u64) -> u64 {
    entry & 0x3f
}

/// The literals, and what may be written behind them.
#[inline(always)]
pub(super) fn literals(entry: u64) -> [u8; 2] {
    ((entry >> LITERALS) as u16).to_le_bytes()
}

#[inline(always)]
pub(super) fn literal_count(entry: u64) -> usize {
    (entry >> LITERAL_COUNT & 0xff) as usize
}

/// The length of the match: at most [`STEP`].
#[inline(always)]
pub(super) fn length(entry: u64) -> usize {
    (entry >> LENGTH & 0xff) as usize
}

/// The distance of the match, at least [`STEP`], if the stream's next bits are `bits`.
#[inline(always)]
pub(super) fn distance(entry: u64, bits: u64) -> usize {
    let extra = (bits & ((1 << bit_count(entry)) - 1)) >> (entry >> EXTRA & 0x3f);
    ((entry >> DISTANCE) + extra) as usize
}

/// The table.
pub(super) struct PairedSymbols {
    pub entries: [u64; SIZE],
}

impl PairedSymbols {
    pub(super) fn new() -> PairedSymbols {
        PairedSymbols { entries: [NONE; SIZE] }
    }

    /// Set up for the codes that these are set up for.
    pub(super) fn set(&mut self, codes: &Table<512>, distances: &Table<512>) {
        self.entries.fill(NONE);
        // What may follow a code in the bits of the index that it leaves.
        let mut after = [NONE; SIZE / 2];
        let mut far = [NEVER; 512];
        far.iter_mut()
            .zip(&distances.entries)
            .for_each(|(far, &entry)| *far = only_distance(entry));
        for length in 1..BITS {
            let (own, room) = (code(length), BITS - length);
            let symbols = codes.of_length(length, SHORT);
            if !symbols.is_empty() {
                for (slot, after) in after[..1 << room].iter_mut().enumerate() {
                    let far = far[slot % far.len()];
                    *after = if fits(far, room) { own + far } else { NONE };
                }
            }
            for index in symbols {
                let (symbol, first) = codes.symbol(index, length);
                let length_part = ((symbol - SHORT.start + SHORTEST) as u64) << LENGTH;
                for (slot, &after) in after[..1 << room].iter().enumerate() {
                    let entry = if after == NONE { NONE } else { after + length_part };
                    self.entries[first | slot << length] = entry;
                }
            }
        }

        // Literals as what comes second, then what follows in their own places.
        let mut second = [NONE; SIZE / 2];
        second.copy_from_slice(&self.entries[..SIZE / 2]);
        for length in 1..BITS {
            let own = code(length) + (1 << LITERAL_COUNT);
            for index in codes.of_length(length, LITERAL) {
                let (symbol, first) = codes.symbol(index, length);
                for slot in (first..second.len()).step_by(1 << length) {
                    second[slot] = own + ((symbol as u64) << SECOND_LITERAL);
                }
            }
        }
        for length in 1..=BITS {
            let (own, room) = (code(length) + (1 << LITERAL_COUNT), BITS - length);
            let symbols = codes.of_length(length, LITERAL);
            if !symbols.is_empty() {
                for (after, &second) in after[..1 << room].iter_mut().zip(&second) {
                    *after = if fits(second, room) { own + second } else { own };
                }
            }
            for index in symbols {
                let (symbol, first) = codes.symbol(index, length);
                for (slot, &after) in after[..1 << room].iter().enumerate() {
                    self.entries[first | slot << length] = after + ((symbol as u64) << LITERALS);
                }
            }
        }
        // The user of an entry writes this many without a check for room.
        assert!(
            self.entries.iter().all(|&entry| is_bounded(entry)),
            "an entry stands for too much"
        );
    }
}

/// Whether an entry stands for no more than its two literals and a match of one step.
fn is_bounded(entry: u64) -> bool {
    literal_count(entry) <= literals(entry).len() && length(entry) <= STEP
}

/// The part of an entry for a code of `length` bits.
fn code(length: usize) -> u64 {
    length as u64 | (length as u64) << EXTRA
}

/// The part of an entry for a distance in a table of distances.
fn only_distance(far: u32) -> u64 {
    let base = u64::from(far >> 16);
    if far & entry::KIND == entry::NUMBER && base >= STEP as u64 {
        let code_bits = u64::from(far >> 8 & 0xf);
        u64::from(huffman::bit_count(far)) | code_bits << EXTRA | base << DISTANCE
    } else {
        NEVER
    }
}

/// Whether the codes of a part take no more than this many bits.
fn fits(part: u64, room: usize) -> bool {
    part >> EXTRA & 0xff <= room as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::literal_deflate::huffman as code_lengths;
    use proptest::prelude::*;

    fn single(table: &Table<512>, bits: u64) -> u32 {
        let entry = table.entries[bits as usize % 512];
        if entry & !entry::BIT_COUNT == entry::LONG { table.long(bits) } else { entry }
    }

    /// Code lengths of Huffman's tree for counts that halve from one symbol to the next but one,
    /// if enough bits are left for it.
    fn lengths<const SYMBOLS: usize>(seed: u64, steep: u32) -> Vec<u8> {
        let mut random = seed | 1;
        let mut counts = [0; SYMBOLS];
        for count in &mut counts {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *count = (1 << ((random >> 40) as u32 % steep)) + (random >> 60) as u32;
        }
        code_lengths(&counts).iter().map(|&length| length as u8).collect()
    }

    #[test]
    fn an_entry_that_stands_for_too_much_is_known() {
        assert!(is_bounded(NONE) && is_bounded(2 << LITERAL_COUNT | (STEP as u64) << LENGTH));
        assert!(!is_bounded(3 << LITERAL_COUNT));
        assert!(!is_bounded((STEP as u64 + 1) << LENGTH));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn an_entry_is_what_its_symbols_are_one_by_one(
            seed in any::<u64>(),
            (steep, steep_far) in (1u32..12, 1u32..12),
            all_bits in prop::collection::vec(any::<u64>(), 2000),
        ) {
            let mut codes = Table::<512>::new(&huffman::LITERALS_AND_LENGTHS);
            let mut distances = Table::<512>::new(&huffman::DISTANCES);
            let (of_codes, far) = (lengths::<286>(seed, steep), lengths::<30>(!seed, steep_far));
            prop_assume!(of_codes.iter().chain(&far).all(|&length| length <= 15));
            codes.set(&of_codes).unwrap();
            distances.set(&far).unwrap();
            let mut table = PairedSymbols::new();
            table.set(&codes, &distances);
            for bits in all_bits {
                let entry = table.entries[bits as usize % SIZE];
                let first = single(&codes, bits);
                if entry == NONE {
                    // Never a literal whose code fits the index.
                    let is_literal = first & entry::KIND == entry::LITERAL;
                    prop_assert!(!is_literal || huffman::bit_count(first) > BITS as u32);
                    continue;
                }
                let mut at = 0;
                for literal in &literals(entry)[..literal_count(entry)] {
                    let symbol = single(&codes, bits >> at);
                    prop_assert_eq!(symbol & entry::KIND, entry::LITERAL);
                    prop_assert_eq!((symbol >> 16) as u8, *literal);
                    at += huffman::bit_count(symbol);
                }
                if length(entry) > 0 {
                    let symbol = single(&codes, bits >> at);
                    prop_assert_eq!(symbol & entry::KIND, entry::NUMBER);
                    prop_assert_eq!(huffman::length(symbol, bits >> at), length(entry));
                    at += huffman::bit_count(symbol);
                    let far = single(&distances, bits >> at);
                    prop_assert_eq!(huffman::distance(far, bits >> at), distance(entry, bits));
                    prop_assert!((STEP..=32 << 10).contains(&distance(entry, bits)));
                    at += huffman::bit_count(far);
                } else {
                    prop_assert_eq!(distance(entry, bits), 0);
                }
                prop_assert!(at > 0 && length(entry) <= STEP);
                prop_assert_eq!(bit_count(entry), u64::from(at));
            }
        }
    }
}
