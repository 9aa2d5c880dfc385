//! Decoding tables for the prefix codes of deflate (RFC 1951, 3.2.2).

use std::ops::Range;

/// Longest code of deflate.
const MAX_CODE_BITS: usize = 15;

/// A table entry, from its low bits: 6 bits, how many bits of the stream it uses, extra bits
/// included; 2 bits, its kind; then by kind
/// - a literal: its byte, from bit 16;
/// - numbers: 4 bits, the offset of the extra bits; the base from bit 16 (8 bits for a length, 16
///   for a distance);
/// - special: which one, from bit 16.
pub(super) mod entry {
    pub(crate) const BIT_COUNT: u32 = 0x3f;
    pub(crate) const KIND: u32 = 3 << 6;
    /// One literal.
    pub(crate) const LITERAL: u32 = 0 << 6;
    /// A number: a base and extra bits.
    pub(crate) const NUMBER: u32 = 2 << 6;
    /// None of these.
    pub(crate) const SPECIAL: u32 = 3 << 6;
    /// The end of the block.
    pub(crate) const END: u32 = SPECIAL;
    /// A code longer than the table's index.
    pub(crate) const LONG: u32 = SPECIAL | 1 << 16;
    /// No code at all.
    pub(crate) const INVALID: u32 = SPECIAL | 2 << 16;
}

/// Bits of the stream an entry uses.
#[inline(always)]
pub(super) fn bit_count(entry: u32) -> u32 {
    entry & entry::BIT_COUNT
}

/// The value of an entry's extra bits: `bits` are the stream's next.
#[inline(always)]
fn extra(entry: u32, bits: u64) -> usize {
    let code_bits = (entry >> 8) & 0xf;
    ((bits & ((1 << bit_count(entry)) - 1)) >> code_bits) as usize
}

/// The length a `NUMBER` entry of literals and lengths stands for.
#[inline(always)]
pub(super) fn length(entry: u32, bits: u64) -> usize {
    SHORTEST + (entry >> 16 & 0xff) as usize + extra(entry, bits)
}

/// The distance a `NUMBER` entry of distances stands for.
#[inline(always)]
pub(super) fn distance(entry: u32, bits: u64) -> usize {
    (entry >> 16) as usize + extra(entry, bits)
}

/// Lengths are stored without these, so that they fit in 8 bits.
const SHORTEST: usize = 3;

/// Entry of a symbol, before its code is known.
const fn number_entry(base: u16, extra: u8) -> u32 {
    (base as u32) << 16 | entry::NUMBER | extra as u32
}

macro_rules! alphabet {
    ($entry_of:ident) => {{
        let mut entries = [entry::INVALID; 288];
        let mut symbol = 0;
        while symbol < entries.len() {
            entries[symbol] = $entry_of(symbol);
            symbol += 1;
        }
        entries
    }};
}

/// The meaning of each symbol of an alphabet.
pub(super) type Alphabet = [u32; 288];

pub(super) static LITERALS_AND_LENGTHS: Alphabet = alphabet!(length_entry);
pub(super) static DISTANCES: Alphabet = alphabet!(distance_entry);
pub(super) static CODE_LENGTHS: Alphabet = alphabet!(literal_entry);

const fn literal_entry(symbol: usize) -> u32 {
    (symbol as u32) << 16 | entry::LITERAL
}

/// RFC 1951, 3.2.5.
const fn length_entry(symbol: usize) -> u32 {
    const BASES: [u16; 29] = [
        3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115,
        131, 163, 195, 227, 258,
    ];
    match symbol {
        0..=255 => literal_entry(symbol),
        256 => entry::END,
        257..=264 | 285 => number_entry(BASES[symbol - 257] - SHORTEST as u16, 0),
        265..=284 => {
            number_entry(BASES[symbol - 257] - SHORTEST as u16, ((symbol - 261) / 4) as u8)
        }
        _ => entry::INVALID,
    }
}

const fn distance_entry(symbol: usize) -> u32 {
    match symbol {
        0..=3 => number_entry(symbol as u16 + 1, 0),
        4..=29 => {
            let extra = (symbol / 2 - 1) as u8;
            number_entry(((2 + (symbol as u16 & 1)) << extra) + 1, extra)
        }
        _ => entry::INVALID,
    }
}

/// A table of `1 << BITS` entries for the short codes, and what it takes to decode long ones.
pub(super) struct Table<const SIZE: usize> {
    pub entries: [u32; SIZE],
    /// Per length: one past its last code, left-aligned in 15 bits.
    limits: [u32; MAX_CODE_BITS + 1],
    /// Per length: index into `symbols_by_code` of the code 0...0 if it had this length.
    offsets: [i32; MAX_CODE_BITS + 1],
    /// Symbols in the order of their codes.
    symbols_by_code: [u16; 288],
    /// Per length: index into `symbols_by_code` of its first code.
    starts: [usize; MAX_CODE_BITS + 2],
    alphabet: &'static Alphabet,
}

impl<const SIZE: usize> Table<SIZE> {
    const BITS: usize = SIZE.trailing_zeros() as usize;

    pub(super) fn new(alphabet: &'static Alphabet) -> Self {
        Self {
            entries: [entry::INVALID; SIZE],
            limits: [0; MAX_CODE_BITS + 1],
            offsets: [0; MAX_CODE_BITS + 1],
            symbols_by_code: [0; 288],
            starts: [0; MAX_CODE_BITS + 2],
            alphabet,
        }
    }

    /// Set up for codes of these lengths (0: no code). As zlib, refuses lengths that no prefix
    /// code can have and codes that leave bit patterns unused, but for a code of one bit.
    pub(super) fn set(&mut self, lengths: &[u8]) -> Result<(), &'static str> {
        let mut counts = [0u32; MAX_CODE_BITS + 1];
        lengths.iter().for_each(|&length| counts[usize::from(length)] += 1);
        counts[0] = 0;
        let mut rest_codes = 1i32;
        for &count in &counts[1..] {
            rest_codes = 2 * rest_codes - count as i32;
            if rest_codes < 0 {
                return Err("more codes than their lengths allow");
            }
        }
        let longest = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
        if rest_codes > 0 && longest > 1 {
            return Err("fewer codes than their lengths demand");
        }

        let mut starts = [0usize; MAX_CODE_BITS + 2];
        let mut first = 0u32;
        for length in 1..=MAX_CODE_BITS {
            starts[length + 1] = starts[length] + counts[length] as usize;
            self.offsets[length] = starts[length] as i32 - first as i32;
            let end = first + counts[length];
            self.limits[length] = end << (MAX_CODE_BITS - length);
            first = end << 1;
        }
        let mut next = starts;
        for (symbol, &length) in lengths.iter().enumerate().filter(|(_, length)| **length > 0) {
            self.symbols_by_code[next[usize::from(length)]] = symbol as u16;
            next[usize::from(length)] += 1;
        }
        self.starts = starts;
        self.fill(&counts, rest_codes > 0);
        Ok(())
    }

    /// The first slot of a code, by its place in `symbols_by_code`: the code, its bits reversed.
    fn slot(&self, index: usize, length: usize) -> usize {
        let code = (index as i32 - self.offsets[length]) as u16;
        usize::from(code.reverse_bits() >> (16 - length))
    }

    fn fill(&mut self, counts: &[u32; 16], incomplete: bool) {
        if incomplete {
            self.entries.fill(entry::INVALID);
        } else if counts[Self::BITS + 1..].iter().any(|&count| count > 0) {
            self.entries.fill(entry::LONG);
        }
        for length in 1..=Self::BITS {
            let symbols = self.starts[length]..self.starts[length + 1];
            for index in symbols {
                let entry =
                    with_code(self.alphabet[usize::from(self.symbols_by_code[index])], length);
                for slot in (self.slot(index, length)..SIZE).step_by(1 << length) {
                    self.entries[slot] = entry;
                }
            }
        }
    }

    /// The `symbols` with codes of a length, as [`Table::symbol`] takes them.
    pub(super) fn of_length(&self, length: usize, symbols: Range<usize>) -> Range<usize> {
        let (start, end) = (self.starts[length], self.starts[length + 1]);
        let before =
            |bound| self.symbols_by_code[start..end].partition_point(|&at| usize::from(at) < bound);
        start + before(symbols.start)..start + before(symbols.end)
    }

    /// A symbol by its place among all, and the first slot of its code in any table.
    pub(super) fn symbol(&self, index: usize, length: usize) -> (usize, usize) {
        (self.symbols_by_code[index].into(), self.slot(index, length))
    }

    /// The entry for the stream's next bits, if the table only says that the code is long.
    #[cold]
    pub(super) fn long(&self, bits: u64) -> u32 {
        let code = u32::from((bits as u16).reverse_bits() >> 1);
        // The limits ascend. All are compared: which is the first to lie above is not foreseeable.
        let below = self.limits[Self::BITS + 1..].iter().filter(|&&limit| code >= limit).count();
        let length = Self::BITS + 1 + below;
        let Some(&offset) = self.offsets.get(length) else { return entry::INVALID };
        let index = (code >> (MAX_CODE_BITS - length)) as i32 + offset;
        match self.symbols_by_code.get(index as usize) {
            Some(&symbol) => with_code(self.alphabet[usize::from(symbol)], length),
            None => entry::INVALID,
        }
    }
}

/// An entry for a code of `length` bits.
fn with_code(entry: u32, length: usize) -> u32 {
    match entry & entry::KIND {
        entry::NUMBER => (entry + length as u32) | ((length as u32) << 8),
        entry::LITERAL | entry::SPECIAL => entry + length as u32,
        _ => entry,
    }
}
