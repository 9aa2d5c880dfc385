//! The symbols of a block: codes, moves to front and runs, up to the last column.

use super::code::{NO_SYMBOL, Table, read_lengths};
use crate::bits::Bits;

/// Symbols coded with one table, before the next selector.
pub(super) const GROUP: usize = 50;
/// Groups the longest block can have; programs may announce more, but never use them.
const SELECTORS: usize = 18_002;
/// Bytes of `column` beyond the longest block, for stores of eight bytes.
const SLACK: usize = 8;

/// The Huffman-coded part of a block, on its way to the last column of the sorted rotations.
pub(super) struct Symbols {
    codes: Box<[Table; 6]>,
    /// Which of the codes each group has.
    selectors: Vec<u8>,
    /// Groups decoded.
    group: usize,
    /// The symbol that ends the block.
    end: usize,
    /// The bytes of the block, those seen last first.
    recent: [u8; 256],
    /// Binary digits read of a run's length.
    digits: u32,
    /// The column: `count` bytes, with room for `most`.
    pub(super) column: Vec<u8>,
    pub(super) count: usize,
    most: usize,
    /// How often each byte is in the column.
    pub(super) tally: [u32; 256],
}

impl Symbols {
    pub(super) fn new() -> Symbols {
        Symbols {
            codes: Box::new(std::array::from_fn(|_| Table::new())),
            selectors: Vec::new(),
            group: 0,
            end: 0,
            recent: [0; 256],
            digits: 0,
            column: Vec::new(),
            count: 0,
            most: 0,
            tally: [0; 256],
        }
    }

    /// Reads what precedes the symbols, from after the block's CRC; returns the row of the
    /// unrotated text.
    pub(super) fn tables(&mut self, bits: &mut Bits<'_>, level: u8) -> Result<usize, &'static str> {
        if bits.read(1) == 1 {
            return Err("a block is randomised, as only bzip2 before 0.9.5 (1999) did");
        }
        let origin = bits.read(24) as usize;
        let sixteens = bits.read(16);
        let mut symbol_count = 0;
        for high in (0..16).filter(|high| sixteens << high & 0x8000 != 0) {
            let sixteen = bits.read(16);
            for low in (0..16).filter(|low| sixteen << low & 0x8000 != 0) {
                self.recent[symbol_count] = (high << 4 | low) as u8;
                symbol_count += 1;
            }
        }
        if symbol_count == 0 {
            return Err("a block has no bytes");
        }
        self.end = symbol_count + 1;
        let codes = bits.read(3) as usize;
        if !(2..=6).contains(&codes) {
            return Err("a block has neither 2 nor up to 6 codes");
        }
        self.read_selectors(bits, codes)?;
        let mut lengths = [0; 258];
        for table in &mut self.codes[..codes] {
            read_lengths(bits, &mut lengths[..symbol_count + 2])?;
            table.build(&lengths[..symbol_count + 2])?;
        }
        self.most = usize::from(level) * 100_000;
        self.column.resize(self.most + SLACK, 0);
        (self.group, self.digits, self.count) = (0, 0, 0);
        self.tally = [0; 256];
        Ok(origin)
    }

    fn read_selectors(&mut self, bits: &mut Bits<'_>, codes: usize) -> Result<(), &'static str> {
        let count = bits.read(15) as usize;
        self.selectors.clear();
        let mut recent = [0, 1, 2, 3, 4, 5];
        for _ in 0..count {
            bits.refill();
            let ones = bits.word.leading_ones() as usize;
            if ones >= codes {
                return Err("a group is coded with none of the block's codes");
            }
            bits.skip(ones as u32 + 1);
            recent[..=ones].rotate_right(1);
            if self.selectors.len() < SELECTORS {
                self.selectors.push(recent[0]);
            }
        }
        Ok(())
    }

    /// Decodes one group, and says whether the block ended with it. Needs 1000 bits, or takes
    /// zeros for those missing.
    pub(super) fn group<'a>(&mut self, bits: Bits<'a>) -> (Bits<'a>, Result<bool, &'static str>) {
        let Some(&selector) = self.selectors.get(self.group) else {
            return (bits, Err("a block goes on after its last group"));
        };
        self.group += 1;
        let Symbols { codes, recent, column, tally, .. } = self;
        let table = &codes[usize::from(selector)];
        let (mut bits, mut count, mut digits) = (bits, self.count, self.digits);
        let mut result = Ok(false);
        for index in 0..GROUP {
            // Two codes fit what a refill counts in.
            if index % 2 == 0 {
                bits.refill();
            }
            let symbol = table.symbol(&mut bits);
            if symbol >= 2 {
                if symbol >= self.end || count >= self.most {
                    result = match symbol {
                        symbol if symbol == self.end => Ok(true),
                        NO_SYMBOL => Err("a code stands for no symbol"),
                        _ => Err(TOO_LONG),
                    };
                    break;
                }
                digits = 0;
                let byte = to_front(recent, symbol - 1);
                column[count] = byte;
                tally[usize::from(byte)] += 1;
                count += 1;
            } else {
                // A digit 1 or 2 of the run's length, least significant first: that many more.
                let run = (symbol + 1) << digits;
                if run > self.most - count {
                    result = Err(TOO_LONG);
                    break;
                }
                digits += 1;
                let byte = recent[0];
                if run <= SLACK {
                    column[count..count + SLACK].copy_from_slice(&[byte; SLACK]);
                } else {
                    column[count..count + run].fill(byte);
                }
                tally[usize::from(byte)] += run as u32;
                count += run;
            }
        }
        (self.count, self.digits) = (count, digits);
        (bits, result)
    }
}

pub(super) const TOO_LONG: &str = "a block is longer than its stream's level allows";

/// Moves the byte at `index` to the front of the list, and returns it.
///
/// Sixteen bytes at a time from the same sixteen, so that loads find the last stores whole.
#[inline(always)]
pub(super) fn to_front(list: &mut [u8; 256], index: usize) -> u8 {
    let byte = list[index & 255];
    let (chunks, _) = list.as_chunks_mut::<16>();
    let top = (index & 255) / 16;
    let above = !0u128 << (index % 16 * 8) << 8;
    let mut carry = u128::from(byte);
    for chunk in &mut chunks[..top] {
        let bytes = u128::from_le_bytes(*chunk);
        *chunk = (bytes << 8 | carry).to_le_bytes();
        carry = bytes >> 120;
    }
    let bytes = u128::from_le_bytes(chunks[top]);
    chunks[top] = (bytes & above | (bytes << 8 | carry) & !above).to_le_bytes();
    byte
}
