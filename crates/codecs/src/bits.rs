//! Most-significant-bit-first reader over a byte slice, through a 64-bit reservoir.
//!
//! Reading past the end yields zero bits and is noticed afterwards by [`Bits::overrun`]: loops
//! over pixels then need no error path of their own.

/// Position in a stream of bits. Copied freely so that hot loops keep it in registers.
#[derive(Clone, Copy)]
pub(crate) struct Bits<'a> {
    bytes: &'a [u8],
    /// Byte that the next refill starts from.
    at: usize,
    /// Coming bits, the next one at the top.
    pub(crate) word: u64,
    /// Bits of `word` that have been counted in; those below are zero or right, but not counted.
    pub(crate) count: u32,
}

impl<'a> Bits<'a> {
    /// Starts at the first bit of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Bits { bytes, at: 0, word: 0, count: 0 }
    }

    /// Starts at a bit of `bytes`.
    pub(crate) fn from_bit(bytes: &'a [u8], bit: usize) -> Self {
        let mut bits = Bits { at: bit / 8, ..Bits::new(bytes) };
        bits.refill();
        bits.skip((bit % 8) as u32);
        bits
    }

    /// Brings `count` to 56 or more.
    #[inline(always)]
    pub(crate) fn refill(&mut self) {
        let next = match self.bytes.get(self.at..self.at + 8) {
            Some(eight) => u64::from_be_bytes(eight.try_into().unwrap_or_default()),
            None => tail(self.bytes, self.at),
        };
        self.word |= next >> self.count;
        self.at += ((63 - self.count) >> 3) as usize;
        self.count |= 56;
    }

    /// Drops `n` bits, at most `count` and below 64.
    #[inline(always)]
    pub(crate) fn skip(&mut self, n: u32) {
        self.word <<= n;
        self.count -= n;
    }

    /// Takes `n` bits, 1 to `count`.
    #[inline(always)]
    pub(crate) fn take(&mut self, n: u32) -> u32 {
        let value = (self.word >> (64 - n)) as u32;
        self.skip(n);
        value
    }

    /// Takes 1 to 32 bits, refilling first.
    pub(crate) fn read(&mut self, n: u32) -> u32 {
        self.refill();
        self.take(n)
    }

    /// Bits not taken yet.
    pub(crate) fn rest_bits(&self) -> u64 {
        (self.bytes.len() as u64 * 8).saturating_sub(self.position_bits())
    }

    /// Bits taken, from the first of `bytes`.
    pub(crate) fn position_bits(&self) -> u64 {
        self.at as u64 * 8 - u64::from(self.count)
    }

    /// Whether more bits were taken than the input has.
    #[inline(always)]
    pub(crate) fn overrun(&self) -> bool {
        self.position_bits() > self.bytes.len() as u64 * 8
    }

    /// Whether the reservoir holds nothing of the stream any more.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.position_bits() >= self.bytes.len() as u64 * 8
    }

    /// Starts again at the next whole byte.
    pub(crate) fn align(&self) -> Self {
        let at = usize::try_from(self.position_bits().div_ceil(8)).unwrap_or(usize::MAX);
        Bits::new(self.bytes.get(at..).unwrap_or_default())
    }
}

/// The bytes from `at`, zeros after the last.
#[cold]
fn tail(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    for (to, from) in eight.iter_mut().zip(bytes.get(at..).unwrap_or_default()) {
        *to = *from;
    }
    u64::from_be_bytes(eight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_bits_in_order_and_notices_the_end() {
        let bytes: Vec<u8> = (0..23).map(|i| (i * 73 + 5) as u8).collect();
        let mut bits = Bits::new(&bytes);
        for at in 0..bytes.len() * 8 / 3 {
            bits.refill();
            let mut want = 0;
            for bit in at * 3..at * 3 + 3 {
                want = want << 1 | u32::from(bytes[bit / 8] >> (7 - bit % 8) & 1);
            }
            assert_eq!(bits.take(3), want);
            assert!(!bits.overrun());
        }
        bits.refill();
        bits.take(3);
        assert!(bits.overrun());
    }

    #[test]
    fn aligns_to_the_next_byte() {
        let mut bits = Bits::new(&[0xff, 0x12, 0x34]);
        bits.refill();
        bits.take(3);
        let mut bits = bits.align();
        bits.refill();
        assert_eq!(bits.take(8), 0x12);
        let mut bits = bits.align();
        bits.refill();
        assert_eq!(bits.take(8), 0x34);
    }
}
