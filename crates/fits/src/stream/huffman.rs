//! Decoding tables for the prefix codes of deflate (RFC 1951, 3.2.2).

/// Longest code of deflate.
const MAX_CODE_BITS: usize = 15;

/// A table entry, from its low bits: 6 bits, how many bits of the stream it uses, extra bits
/// included; 2 bits, its kind; then by kind
/// - literals: the first in bits 16 to 23, the second of a pair in bits 24 to 31;
/// - numbers: 4 bits, where the extra bits start; bit 12, whether a literal comes before it, in
///   bits 24 to 31; the base from bit 16 (8 bits for a length, 16 for a distance);
/// - special: which one, from bit 16.
pub(super) mod entry {
    pub(crate) const USED: u32 = 0x3f;
    pub(crate) const KIND: u32 = 3 << 6;
    /// One literal.
    pub(crate) const LITERAL: u32 = 0 << 6;
    /// Two literals.
    pub(crate) const PAIR: u32 = 1 << 6;
    /// A number: a base and extra bits.
    pub(crate) const NUMBER: u32 = 2 << 6;
    /// None of these.
    pub(crate) const SPECIAL: u32 = 3 << 6;
    /// Set in what is more than literals.
    pub(crate) const NO_LITERAL: u32 = 2 << 6;
    /// Set in a number that has a literal before it.
    pub(crate) const LITERAL_BEFORE: u32 = 1 << 12;
    /// The end of the block.
    pub(crate) const END: u32 = SPECIAL;
    /// A code longer than the table's index.
    pub(crate) const LONG: u32 = SPECIAL | 1 << 16;
    /// No code at all.
    pub(crate) const INVALID: u32 = SPECIAL | 2 << 16;
}

/// Bits of the stream an entry uses.
#[inline(always)]
pub(super) fn used(entry: u32) -> u32 {
    entry & entry::USED
}

/// The value of an entry's extra bits, of which `bits` are the stream's next.
#[inline(always)]
fn extra(entry: u32, bits: u64) -> usize {
    let code_bits = (entry >> 8) & 0xf;
    ((bits & ((1 << used(entry)) - 1)) >> code_bits) as usize
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

/// Lengths are kept without these, so that they fit in 8 bits.
const SHORTEST: usize = 3;

/// Entry of a symbol, before its code is known.
fn number_entry(base: u16, extra: u8) -> u32 {
    u32::from(base) << 16 | entry::NUMBER | u32::from(extra)
}

/// The symbols of one alphabet: what each stands for.
pub(super) struct Alphabet {
    entry_of: fn(usize) -> u32,
}

pub(super) const LITERALS_AND_LENGTHS: Alphabet = Alphabet { entry_of: length_entry };
pub(super) const DISTANCES: Alphabet = Alphabet { entry_of: distance_entry };
pub(super) const CODE_LENGTHS: Alphabet =
    Alphabet { entry_of: |symbol| (symbol as u32) << 16 | entry::LITERAL };

/// RFC 1951, 3.2.5.
fn length_entry(symbol: usize) -> u32 {
    const BASES: [u16; 29] = [
        3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115,
        131, 163, 195, 227, 258,
    ];
    match symbol {
        0..=255 => (symbol as u32) << 16 | entry::LITERAL,
        256 => entry::END,
        257..=264 | 285 => number_entry(BASES[symbol - 257] - SHORTEST as u16, 0),
        265..=284 => {
            number_entry(BASES[symbol - 257] - SHORTEST as u16, ((symbol - 261) / 4) as u8)
        }
        _ => entry::INVALID,
    }
}

fn distance_entry(symbol: usize) -> u32 {
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
    /// Per length: index into `sorted` of the code 0...0 if there were one of this length.
    offsets: [i32; MAX_CODE_BITS + 1],
    /// Symbols in the order of their codes.
    sorted: [u16; 288],
    /// Per length: index into `sorted` of its first code.
    starts: [usize; MAX_CODE_BITS + 2],
    alphabet: Alphabet,
}

impl<const SIZE: usize> Table<SIZE> {
    const BITS: usize = SIZE.trailing_zeros() as usize;

    pub(super) fn new(alphabet: Alphabet) -> Self {
        Self {
            entries: [entry::INVALID; SIZE],
            limits: [0; MAX_CODE_BITS + 1],
            offsets: [0; MAX_CODE_BITS + 1],
            sorted: [0; 288],
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
        let mut left = 1i32;
        for &count in &counts[1..] {
            left = 2 * left - count as i32;
            if left < 0 {
                return Err("more codes than their lengths allow");
            }
        }
        let longest = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
        if left > 0 && longest > 1 {
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
            self.sorted[next[usize::from(length)]] = symbol as u16;
            next[usize::from(length)] += 1;
        }
        self.starts = starts;
        self.fill(&counts, left > 0);
        Ok(())
    }

    /// The first slot of a code, by its place in `sorted`: the code, its bits reversed.
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
                let entry = with_code((self.alphabet.entry_of)(self.sorted[index].into()), length);
                for slot in (self.slot(index, length)..SIZE).step_by(1 << length) {
                    self.entries[slot] = entry;
                }
            }
        }
    }

    /// Join a literal with what follows it, a second literal or a length, into one entry
    /// wherever both codes fit the index. Noise compresses into literals and short matches in no
    /// order that a processor could foresee; the fewer lookups, the fewer wrong guesses.
    pub(super) fn join_literals(&mut self) {
        let single = self.entries;
        // What may follow a literal, where, and how far left the literal then goes.
        let mut followers = Vec::with_capacity(SIZE / 2);
        for length in 1..Self::BITS {
            let codes = self.starts[length]..self.starts[length + 1];
            let literals = self.sorted[codes].partition_point(|&symbol| symbol < 256);
            if literals == 0 {
                continue;
            }
            // All literals of one length are followed alike.
            let room = (Self::BITS - length) as u32;
            followers.clear();
            for (slot, &second) in single[..1 << room].iter().enumerate() {
                let first = length as u32;
                match second & entry::KIND {
                    entry::LITERAL if used(second) <= room => {
                        let joined = (second >> 16) << 24 | entry::PAIR | (first + used(second));
                        followers.push((slot << length, joined, 16));
                    }
                    entry::NUMBER if (second >> 8 & 0xf) <= room => {
                        let joined = (second | entry::LITERAL_BEFORE) + first + (first << 8);
                        followers.push((slot << length, joined, 24));
                    }
                    _ => {}
                }
            }
            for index in self.starts[length]..self.starts[length] + literals {
                let (symbol, own) = (u32::from(self.sorted[index]), self.slot(index, length));
                for &(slot, joined, shift) in &followers {
                    self.entries[own | slot] = joined | symbol << shift;
                }
            }
        }
    }

    /// The entry for the stream's next bits, where the table only says that the code is long.
    #[cold]
    pub(super) fn long(&self, bits: u64) -> u32 {
        let code = u32::from((bits as u16).reverse_bits() >> 1);
        for length in Self::BITS + 1..=MAX_CODE_BITS {
            if code < self.limits[length] {
                let index = (code >> (MAX_CODE_BITS - length)) as i32 + self.offsets[length];
                let symbol = self.sorted.get(index as usize).copied().unwrap_or(u16::MAX);
                return with_code((self.alphabet.entry_of)(symbol.into()), length);
            }
        }
        entry::INVALID
    }
}

/// An entry whose code has `length` bits.
fn with_code(entry: u32, length: usize) -> u32 {
    match entry & entry::KIND {
        entry::NUMBER => (entry + length as u32) | ((length as u32) << 8),
        entry::LITERAL | entry::SPECIAL => entry + length as u32,
        _ => entry,
    }
}
