//! Huffman codes of up to 20 bits, and how a block writes them down.

use crate::bits::Bits;

pub(super) const LONGEST_CODE: usize = 20;
/// Bits a code is first looked up by. 10 to 12 are equally fast.
const FAST_BITS: usize = 11;
/// Stands for a code no symbol has.
pub(super) const NO_SYMBOL: usize = 511;

/// One Huffman code.
pub(super) struct Table {
    /// By the next bits, the length of a code (above bit 9) and its symbol; 0 for longer codes.
    fast: [u16; 1 << FAST_BITS],
    /// By length: end of the codes of that length, as the top bits of `LONGEST_CODE`.
    ends: [u32; LONGEST_CODE + 1],
    /// By length, what to add to a code for its place in `symbols_by_code`.
    places: [u32; LONGEST_CODE + 1],
    /// Symbols in the order of their codes.
    symbols_by_code: [u16; 258],
}

impl Table {
    pub(super) fn new() -> Table {
        Table {
            fast: [0; 1 << FAST_BITS],
            ends: [0; LONGEST_CODE + 1],
            places: [0; LONGEST_CODE + 1],
            symbols_by_code: [0; 258],
        }
    }

    /// From the length of each symbol's code, 1 to [`LONGEST_CODE`].
    pub(super) fn build(&mut self, lengths: &[u8]) -> Result<(), &'static str> {
        let (mut code, mut place, mut end) = (0u32, 0usize, 0usize);
        for length in 1..=LONGEST_CODE {
            self.places[length] = (place as u32).wrapping_sub(code);
            for (symbol, _) in lengths.iter().enumerate().filter(|(_, l)| **l as usize == length) {
                if code >> length != 0 {
                    return Err("more codes of a length than there can be");
                }
                if length <= FAST_BITS {
                    let same = 1 << (FAST_BITS - length);
                    self.fast[end..end + same].fill((length << 9 | symbol) as u16);
                    end += same;
                }
                self.symbols_by_code[place] = symbol as u16;
                place += 1;
                code += 1;
            }
            self.ends[length] = code << (LONGEST_CODE - length);
            code <<= 1;
        }
        self.fast[end..].fill(0);
        Ok(())
    }

    /// The next symbol, of at least [`LONGEST_CODE`] bits counted in.
    #[inline(always)]
    pub(super) fn symbol(&self, bits: &mut Bits<'_>) -> usize {
        let entry = self.fast[(bits.word >> (64 - FAST_BITS)) as usize];
        if entry == 0 {
            let (length, symbol) = self.long(bits.word);
            bits.skip(length);
            return symbol;
        }
        bits.skip(u32::from(entry >> 9));
        usize::from(entry & 511)
    }

    /// As [`symbol`](Table::symbol), for a code too long for `fast`: its length as well.
    #[inline(never)]
    fn long(&self, word: u64) -> (u32, usize) {
        let top = (word >> (64 - LONGEST_CODE)) as u32;
        let length = (FAST_BITS + 1..=LONGEST_CODE).find(|length| top < self.ends[*length]);
        let Some(length) = length else { return (0, NO_SYMBOL) };
        let place = self.places[length].wrapping_add(top >> (LONGEST_CODE - length));
        let symbol = self.symbols_by_code.get(place as usize);
        (length as u32, symbol.map_or(NO_SYMBOL, |symbol| usize::from(*symbol)))
    }
}

/// The lengths of a code, each as steps up and down from the one before.
pub(super) fn read_lengths(bits: &mut Bits<'_>, lengths: &mut [u8]) -> Result<(), &'static str> {
    let mut length = bits.read(5) as usize;
    for to in lengths {
        loop {
            if !(1..=LONGEST_CODE).contains(&length) {
                return Err("a code is longer than 20 bits");
            }
            if bits.read(1) == 0 {
                break;
            }
            length = if bits.read(1) == 0 { length + 1 } else { length - 1 };
        }
        *to = length as u8;
    }
    Ok(())
}
