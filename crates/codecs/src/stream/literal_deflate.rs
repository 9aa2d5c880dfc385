//! Deflating without matches: prefix codes alone, a block of its own for each part (RFC 1951).
//!
//! What matches use has little that repeats once more. To look for it is most of what a compressor
//! costs, and saves nothing (`docs/design/005-our-own-inflate.md`).

/// Longest code of a byte. Four of them and the bits of a byte fit in a word.
const LIMIT: u32 = 14;
/// Longest code of a code length.
const LIMIT_OF_LENGTHS: u32 = 7;
/// Room for what stands around the bytes of a block: lengths of at most 12 bits each.
const HEADER_BYTES: usize = 512;
/// The symbol that ends a block.
const END: usize = 256;
/// Three bits that begin a block: 2, dynamic codes, after 1 for the last.
const DYNAMIC: u32 = 2 << 1;
/// The order of the lengths of the codes for lengths in the stream.
pub(super) const ORDER: [usize; 19] =
    [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Append the deflated `parts`, one after the other, to `out`.
pub(super) fn deflate(parts: &[&[u8]], out: Vec<u8>) -> Vec<u8> {
    let mut bits = Bits { at: out.len(), out, pending: Run::default() };
    for (number, part) in parts.iter().enumerate() {
        bits.block(part, number + 1 == parts.len());
    }
    bits.finish()
}

/// A prefix code: of each symbol the bits, lowest first, and from bit 16 how many.
struct Code<const SYMBOLS: usize>([u32; SYMBOLS]);

impl<const SYMBOLS: usize> Code<SYMBOLS> {
    /// Nearly the shortest code for symbols with these counts, with no code longer than `limit`.
    fn new(mut counts: [u32; SYMBOLS], limit: u32) -> Self {
        let lengths = loop {
            let lengths = huffman(&counts);
            if lengths.iter().all(|&length| length <= limit) {
                break lengths;
            }
            // Flatter counts make flatter trees.
            counts.iter_mut().for_each(|count| *count = count.div_ceil(2));
        };
        let mut symbols = [0u32; 16];
        lengths.iter().for_each(|&length| symbols[length as usize] += 1);
        let mut next = [0u32; 16];
        for length in 2..=limit as usize {
            next[length] = (next[length - 1] + symbols[length - 1]) << 1;
        }
        let mut codes = [0; SYMBOLS];
        for (out, length) in codes.iter_mut().zip(lengths).filter(|(_, length)| *length > 0) {
            let code = &mut next[length as usize];
            *out = u32::from((*code as u16).reverse_bits()) >> (16 - length) | length << 16;
            *code += 1;
        }
        Self(codes)
    }

    fn length(&self, symbol: usize) -> u32 {
        self.0[symbol] >> 16
    }

    #[inline(always)]
    fn run(&self, symbol: usize) -> Run {
        Run { bits: u64::from(self.0[symbol] & 0xffff), count: self.length(symbol) }
    }
}

/// The code lengths of Huffman's tree; 0 for a symbol that does not occur, 1 if only one does.
pub(super) fn huffman<const SYMBOLS: usize>(counts: &[u32; SYMBOLS]) -> [u32; SYMBOLS] {
    // Of each its weight and, in 9 bits, its symbol.
    let mut leaves: Vec<u32> = (0..)
        .zip(counts)
        .filter(|(_, count)| **count > 0)
        .map(|(at, count)| count << 9 | at)
        .collect();
    leaves.sort_unstable();
    let symbol = |leaf: u32| (leaf & 0x1ff) as usize;
    let mut lengths = [0; SYMBOLS];
    if let [only] = leaves[..] {
        lengths[symbol(only)] = 1;
        return lengths;
    }
    // Both leaves and inner nodes come in ascending order: the two lightest are at the fronts.
    let mut inner: Vec<u32> = Vec::with_capacity(leaves.len());
    let mut leaf_parents = vec![0; leaves.len()];
    let mut inner_parents = vec![0; leaves.len()];
    let (mut leaf, mut node) = (0, 0);
    while inner.len() + 1 < leaves.len() {
        let mut weight = 0;
        for _ in 0..2 {
            let lightest = inner.get(node).copied().unwrap_or(u32::MAX);
            if leaf < leaves.len() && leaves[leaf] >> 9 <= lightest {
                weight += leaves[leaf] >> 9;
                leaf_parents[leaf] = inner.len();
                leaf += 1;
            } else {
                weight += lightest;
                inner_parents[node] = inner.len();
                node += 1;
            }
        }
        inner.push(weight);
    }
    // The root is the last; parents come after their children.
    let mut depths = vec![0; inner.len()];
    for node in (0..inner.len().saturating_sub(1)).rev() {
        depths[node] = depths[inner_parents[node]] + 1;
    }
    for (leaf, parent) in leaves.into_iter().zip(leaf_parents) {
        lengths[symbol(leaf)] = depths[parent] + 1;
    }
    lengths
}

/// Bits in a row, the first lowest.
#[derive(Clone, Copy, Default)]
struct Run {
    bits: u64,
    count: u32,
}

impl Run {
    /// The two one after the other: at most 64.
    #[inline(always)]
    fn then(self, next: Run) -> Run {
        Run { bits: self.bits | next.bits << self.count, count: self.count + next.count }
    }
}

/// Bits on their way out.
struct Bits {
    out: Vec<u8>,
    at: usize,
    /// Bits that are not in `out` yet: fewer than 8 between calls.
    pending: Run,
}

impl Bits {
    /// Append up to 56 bits.
    #[inline(always)]
    fn put(&mut self, run: Run) {
        let Run { bits, count } = self.pending.then(run);
        self.out[self.at..self.at + 8].copy_from_slice(&bits.to_le_bytes());
        self.at += (count / 8) as usize;
        self.pending = Run { bits: bits >> (count & !7), count: count % 8 };
    }

    fn number(&mut self, bits: u32, count: u32) {
        self.put(Run { bits: bits.into(), count });
    }

    fn block(&mut self, bytes: &[u8], last: bool) {
        self.out.resize(self.at + HEADER_BYTES + bytes.len() * LIMIT as usize / 8, 0);
        let mut counts = [[0u32; END + 1]; 4];
        let mut fours = bytes.chunks_exact(4);
        // In turn, for bytes that are all the same would wait for each other.
        for four in &mut fours {
            for (counts, &byte) in counts.iter_mut().zip(four) {
                counts[usize::from(byte)] += 1;
            }
        }
        fours.remainder().iter().for_each(|&byte| counts[0][usize::from(byte)] += 1);
        let mut sum = [0; END + 1];
        sum.iter_mut().zip(0..).for_each(|(sum, at)| *sum = counts.iter().map(|c| c[at]).sum());
        sum[END] = 1;
        let code = Code::new(sum, LIMIT);
        self.number(DYNAMIC | u32::from(last), 3);
        self.lengths(&code);
        let mut fours = bytes.chunks_exact(4);
        for four in &mut fours {
            // In two halves, so that less waits for what stands before it.
            let run = |at: usize| code.run(four[at].into());
            self.put(run(0).then(run(1)).then(run(2).then(run(3))));
        }
        fours.remainder().iter().for_each(|&byte| self.put(code.run(byte.into())));
        self.put(code.run(END));
    }

    /// The code lengths of a block: the many runs of zeros are joined.
    fn lengths(&mut self, code: &Code<{ END + 1 }>) {
        // A symbol for a length or a run, its extra bits and their number.
        let mut symbols: Vec<(usize, u32, u32)> = Vec::with_capacity(END + 2);
        let mut at = 0;
        while at <= END {
            let length = code.length(at);
            let zeros = (at..=END).take_while(|&at| code.length(at) == 0).take(138).count();
            let (symbol, bytes) = match zeros {
                0..=2 => ((length as usize, 0, 0), 1),
                3..=10 => ((17, zeros as u32 - 3, 3), zeros),
                _ => ((18, zeros as u32 - 11, 7), zeros),
            };
            symbols.push(symbol);
            at += bytes;
        }
        // No code of a distance.
        symbols.push((0, 0, 0));
        let mut counts = [0; ORDER.len()];
        symbols.iter().for_each(|(symbol, ..)| counts[*symbol] += 1);
        let own = Code::new(counts, LIMIT_OF_LENGTHS);
        // 257 codes of literals, one of a distance and all of lengths.
        self.number((ORDER.len() as u32 - 4) << 10, 14);
        ORDER.iter().for_each(|&symbol| self.number(own.length(symbol), 3));
        for (symbol, extra, extra_bits) in symbols {
            self.put(own.run(symbol));
            self.number(extra, extra_bits);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.number(0, 7);
        self.out.truncate(self.at);
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libdeflater::Decompressor;
    use proptest::prelude::*;

    fn inflate(output: &[u8], bytes: usize) -> Vec<u8> {
        let mut plain = vec![0; bytes];
        assert_eq!(Decompressor::new().deflate_decompress(output, &mut plain), Ok(bytes));
        plain
    }

    proptest! {
        #[test]
        fn another_inflater_gives_the_parts_back(
            parts in prop::collection::vec(
                (any::<u8>(), 0u32..8, prop::collection::vec(any::<u8>(), 0..3000)),
                1..4,
            ),
        ) {
            // Of each part a range of values, from one to all.
            let parts: Vec<Vec<u8>> = parts
                .into_iter()
                .map(|(least, bits, part)| {
                    part.iter().map(|byte| least.wrapping_add(byte >> (8 - bits.max(1)))).collect()
                })
                .collect();
            let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            let output = deflate(&slices, b"before".to_vec());
            prop_assert_eq!(&output[..6], b"before");
            let plain = parts.concat();
            prop_assert_eq!(inflate(&output[6..], plain.len()), plain);
        }
    }

    #[test]
    fn codes_that_would_be_too_long_are_made_shorter() {
        // The counts of the steepest possible tree.
        let (mut last, mut next) = (1, 1);
        let mut plain = Vec::new();
        for value in 0..20 {
            plain.extend(std::iter::repeat_n(value, last));
            (last, next) = (next, last + next);
        }
        let mut counts = [0; END + 1];
        plain.iter().for_each(|&value| counts[usize::from(value)] += 1);
        assert!(*huffman(&counts).iter().max().unwrap() > LIMIT);
        let code = Code::new(counts, LIMIT);
        assert!((0..20).all(|value| (1..=LIMIT).contains(&code.length(value))));
        assert_eq!(inflate(&deflate(&[&plain], Vec::new()), plain.len()), plain);
    }

    #[test]
    fn a_few_values_take_a_few_bits() {
        let plain: Vec<u8> = (0..8000u32).map(|at| 90 + (at % 16) as u8).collect();
        let output = deflate(&[&plain, &[7; 8000]], Vec::new());
        assert!(output.len() < 4000 + 1000 + 100, "{}", output.len());
    }
}
