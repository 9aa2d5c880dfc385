//! Unix compress, `.Z`: LZW codes of 9 bits growing to as many as the header allows.
//!
//! The format has neither length nor checksum and marks no end: a stream cut off between two
//! codes cannot be distinguished from a whole one.

use super::{Decoder, Progress, SeekPoint, StreamError, StreamKind};

const KIND: StreamKind = StreamKind::Compress;
/// Width of the first codes.
const FIRST_BITS: u32 = 9;
const MOST_BITS: u32 = 16;
/// In block mode, the code that empties the table.
const CLEAR: usize = 256;

/// A decoder of a compress stream.
pub(super) struct Compress {
    /// Bits of input not yet used, the next one lowest.
    word: u64,
    count: u32,
    /// Bits to pass over before the next code.
    skip: u32,
    header: bool,
    /// Widest code.
    max_bits: u32,
    block_mode: bool,
    /// Width of a code.
    bits: u32,
    /// Codes read since the width last changed, modulo 8.
    place: u32,
    /// The code before; none at the start and after [`CLEAR`].
    previous: Option<usize>,
    /// Next code to be assigned a string.
    free: usize,
    table: Box<Table>,
    /// A string the output had no room for, in reverse.
    pending: Vec<u8>,
    /// Compressed bytes read.
    at: u64,
}

/// The string of each code: that of another code and one byte more.
struct Table {
    prefix: [u16; 1 << MOST_BITS],
    last: [u8; 1 << MOST_BITS],
    first: [u8; 1 << MOST_BITS],
    /// At most the number of codes.
    length: [u16; 1 << MOST_BITS],
}

impl Table {
    /// With the strings of one byte.
    fn new() -> Box<Table> {
        let mut table = Box::new(Table {
            prefix: [0; 1 << MOST_BITS],
            last: [0; 1 << MOST_BITS],
            first: [0; 1 << MOST_BITS],
            length: [0; 1 << MOST_BITS],
        });
        for byte in 0..=255 {
            table.last[usize::from(byte)] = byte;
            table.first[usize::from(byte)] = byte;
            table.length[usize::from(byte)] = 1;
        }
        table
    }

    /// Assigns the string of `prefix` and a byte to `code`.
    fn add(&mut self, code: usize, prefix: usize, byte: u8) {
        self.prefix[code] = prefix as u16;
        self.last[code] = byte;
        self.first[code] = self.first[prefix];
        self.length[code] = self.length[prefix] + 1;
    }

    /// Bytes of the string of `code`, last first.
    fn reverse_bytes(&self, mut code: usize) -> impl Iterator<Item = u8> {
        (0..self.length[code]).map(move |_| {
            let byte = self.last[code];
            code = usize::from(self.prefix[code]);
            byte
        })
    }
}

impl Compress {
    /// From the start of the stream.
    pub(super) fn start() -> Compress {
        Compress {
            word: 0,
            count: 0,
            skip: 0,
            header: false,
            max_bits: 0,
            block_mode: false,
            bits: FIRST_BITS,
            place: 0,
            previous: None,
            free: CLEAR,
            table: Table::new(),
            pending: Vec::new(),
            at: 0,
        }
    }

    fn damage_error(&self, what: &'static str) -> StreamError {
        StreamError::Damaged { kind: KIND, at: self.at, what }
    }

    /// Takes bytes in until `word` has 56 bits or `input` is used up.
    #[inline]
    fn refill(&mut self, input: &[u8], step: &mut Progress) {
        while self.count <= 56 {
            let Some(byte) = input.get(step.input_bytes) else { break };
            self.word |= u64::from(*byte) << self.count;
            self.count += 8;
            self.at += 1;
            step.input_bytes += 1;
        }
    }

    fn drop_bits(&mut self, bits: u32) {
        self.word >>= bits;
        self.count -= bits;
    }

    /// The magic number and the flags.
    fn header(&mut self) -> Result<(), StreamError> {
        let [low, high, flags, ..] = self.word.to_le_bytes();
        if [low, high] != [0x1f, 0x9d] {
            return Err(self.damage_error("it does not start with 1f 9d"));
        }
        self.max_bits = u32::from(flags & 0x1f);
        self.block_mode = flags & 0x80 != 0;
        if !(FIRST_BITS..=MOST_BITS).contains(&self.max_bits) {
            return Err(self.damage_error("its codes are to have neither 9 nor up to 16 bits"));
        }
        self.free = if self.block_mode { CLEAR + 1 } else { CLEAR };
        self.drop_bits(24);
        self.header = true;
        Ok(())
    }

    /// Sets the width of the codes to come. Programs write codes in groups of eight, and whole
    /// groups before they change the width: the rest of the last one is padding.
    fn set_bits(&mut self, bits: u32) {
        self.skip = (8 - self.place) % 8 * self.bits;
        self.place = 0;
        self.bits = bits;
    }

    /// The next code, `None` if input is missing.
    #[inline]
    fn code(&mut self, input: &[u8], step: &mut Progress) -> Option<usize> {
        loop {
            if self.count < MOST_BITS {
                self.refill(input, step);
            }
            if self.skip == 0 {
                break;
            }
            let bits = self.skip.min(self.count).min(63);
            if bits == 0 {
                return None;
            }
            self.drop_bits(bits);
            self.skip -= bits;
        }
        if self.count < self.bits {
            return None;
        }
        let code = self.word as usize & ((1 << self.bits) - 1);
        self.drop_bits(self.bits);
        self.place = (self.place + 1) % 8;
        Some(code)
    }

    /// Enters the string that `code` adds to the table; returns whether it stands for a string.
    #[inline]
    fn enter(&mut self, code: usize) -> Result<bool, StreamError> {
        if code == CLEAR && self.block_mode {
            self.set_bits(FIRST_BITS);
            self.free = CLEAR + 1;
            self.previous = None;
            return Ok(false);
        }
        let Some(previous) = self.previous.replace(code) else {
            return match code < 256 {
                true => Ok(true),
                false => Err(self.damage_error("its first code is for no byte")),
            };
        };
        let room = self.free < 1 << self.max_bits;
        // A code may be used by the very string that enters it; with no room, none is that high.
        if code > self.free {
            return Err(self.damage_error("a code is used before it stands for anything"));
        }
        if room {
            let byte = self.table.first[if code == self.free { previous } else { code }];
            self.table.add(self.free, previous, byte);
            self.free += 1;
            if self.free == 1 << self.bits && self.bits < self.max_bits {
                self.set_bits(self.bits + 1);
            }
        }
        Ok(true)
    }
}

impl Decoder for Compress {
    fn decode(
        &mut self,
        input: &[u8],
        last: bool,
        output: &mut [u8],
    ) -> Result<Progress, StreamError> {
        let mut step = Progress { input_bytes: 0, output_bytes: 0, end: false };
        if !self.header {
            self.refill(input, &mut step);
            match self.count {
                24.. => self.header()?,
                _ if last => return Err(StreamError::CutOff { kind: KIND, at: self.at }),
                _ => return Ok(step),
            }
        }
        loop {
            if !self.pending.is_empty() {
                let bytes = self.pending.len().min(output.len() - step.output_bytes);
                let to = &mut output[step.output_bytes..step.output_bytes + bytes];
                let from = self.pending.drain(self.pending.len() - bytes..);
                to.iter_mut().zip(from.rev()).for_each(|(to, from)| *to = from);
                step.output_bytes += bytes;
                if !self.pending.is_empty() {
                    return Ok(step);
                }
            }
            let Some(code) = self.code(input, &mut step) else {
                step.end = last;
                return Ok(step);
            };
            if !self.enter(code)? {
                continue;
            }
            let length = usize::from(self.table.length[code]);
            match output.get_mut(step.output_bytes..step.output_bytes + length) {
                Some(to) => {
                    let from = self.table.reverse_bytes(code);
                    to.iter_mut().rev().zip(from).for_each(|(to, from)| *to = from);
                    step.output_bytes += length;
                }
                None => self.pending.extend(self.table.reverse_bytes(code)),
            }
        }
    }

    fn take_points(&mut self) -> Vec<SeekPoint> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
    }

    fn run(stream: &[u8], input: usize, output: usize) -> Result<Vec<u8>, StreamError> {
        crate::stream::testing::run(&mut Compress::start(), stream, input, output)
    }

    fn decode_all(stream: &[u8]) -> Result<Vec<u8>, StreamError> {
        run(stream, 128 << 10, 64 << 10)
    }

    /// Codes in groups of eight, as [`Compress::set_bits`] has it.
    #[derive(Default)]
    struct Writer {
        bytes: Vec<u8>,
        word: u64,
        count: u32,
        place: u32,
    }

    impl Writer {
        fn put(&mut self, value: u64, bits: u32) {
            self.word |= value << self.count;
            self.count += bits;
            while self.count >= 8 {
                self.bytes.push(self.word as u8);
                self.word >>= 8;
                self.count -= 8;
            }
        }

        fn code(&mut self, code: u16, bits: u32) {
            self.put(u64::from(code), bits);
            self.place = (self.place + 1) % 8;
        }

        fn end_group(&mut self, bits: u32) {
            while self.place != 0 {
                self.code(0, bits);
            }
        }
    }

    /// A plain encoder. In block mode it clears its table after every `clear` codes.
    fn encode(data: &[u8], max_bits: u32, block_mode: bool, clear: usize) -> Vec<u8> {
        let flags = max_bits as u8 | if block_mode { 0x80 } else { 0 };
        let mut to = Writer { bytes: vec![0x1f, 0x9d, flags], ..Writer::default() };
        let first_free = if block_mode { 257u32 } else { 256 };
        let (mut codes, mut bits, mut since) = (HashMap::new(), FIRST_BITS, 0u32);
        let mut data = data.iter().copied().peekable();
        while let Some(byte) = data.next() {
            let mut code = u16::from(byte);
            while let Some(longer) = data.peek().and_then(|next| codes.get(&(code, *next))) {
                code = *longer;
                data.next();
            }
            to.code(code, bits);
            // A decoder enters a string one code later: that is what the width goes by.
            if first_free + since == 1 << bits && bits < max_bits {
                to.end_group(bits);
                bits += 1;
            }
            if let Some(next) = data.peek()
                && first_free + since < 1 << max_bits
            {
                codes.insert((code, *next), (first_free + since) as u16);
            }
            since += 1;
            if block_mode && since as usize == clear {
                to.code(CLEAR as u16, bits);
                to.end_group(bits);
                codes.clear();
                (bits, since) = (FIRST_BITS, 0);
            }
        }
        to.put(0, 7);
        to.bytes
    }

    /// Written with ncompress 4.2.4.6.
    #[test]
    fn decodes_golden_streams() {
        let cards = bytes("1f9d9053923481c2a40808103d40041c58f060c285040d22044105");
        assert_eq!(decode_all(&cards).unwrap(), b"SIMPLE  = SIMPLE  = SIMPLE  = T");
        let letters = bytes("1f9d9061020a1c48b0a0c1830301");
        assert_eq!(decode_all(&letters).unwrap(), [b'a'; 40]);
        assert_eq!(decode_all(&bytes("1f9d90")).unwrap(), b"");
    }

    #[test]
    fn long_strings_are_decoded_to_the_last_byte() {
        let data = vec![7; 3_000_000];
        let stream = encode(&data, 16, true, usize::MAX);
        assert!(run(&stream, 5000, 100_000).unwrap() == data);
        assert!(run(&stream, 5000, 1000).unwrap() == data);
    }

    #[test]
    fn bad_headers_are_refused() {
        for short in ["", "1f", "1f9d"] {
            let at = short.len() as u64 / 2;
            assert_eq!(decode_all(&bytes(short)), Err(StreamError::CutOff { kind: KIND, at }));
        }
        for wrong in ["1f8b90", "1f9d88", "1f9d91", "1f9d80"] {
            let result = decode_all(&bytes(wrong));
            assert!(matches!(result, Err(StreamError::Damaged { .. })), "{wrong}: {result:?}");
        }
    }

    #[test]
    fn codes_without_a_string_are_refused() {
        // Codes 97 and 258, while 257 is the first to be entered; and 300 as the first.
        for wrong in ["1f9d90610402", "1f9d902c01"] {
            let result = decode_all(&bytes(wrong));
            assert!(matches!(result, Err(StreamError::Damaged { .. })), "{wrong}: {result:?}");
        }
    }

    #[test]
    fn the_longest_string_has_a_length() {
        let mut table = Table::new();
        (256..1 << MOST_BITS).for_each(|code| table.add(code, (code - 1) % 65_535, 1));
        assert_eq!(table.reverse_bytes(65_535).count(), 65_281);
    }

    fn data() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![
            (any::<u8>(), 0usize..6000).prop_map(|(byte, count)| vec![byte; count]),
            prop::collection::vec(any::<u8>(), 0..5000),
            prop::collection::vec(0u8..3, 0..5000),
        ];
        prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn pieces_of_any_size_give_the_same(
            data in data(), max_bits in 9u32..=16, block_mode in any::<bool>(),
            clear in 1usize..6000, input in 1usize..300, output in 1usize..3000,
        ) {
            let stream = encode(&data, max_bits, block_mode, clear);
            prop_assert!(decode_all(&stream).unwrap() == data);
            prop_assert!(run(&stream, input, output).unwrap() == data);
        }

        #[test]
        fn a_cut_gives_the_data_before_it(data in data(), cut in any::<prop::sample::Index>()) {
            let stream = encode(&data, 12, true, 5000);
            let cut = cut.index(stream.len() - 2) + 3;
            prop_assert!(data.starts_with(&decode_all(&stream[..cut.min(stream.len())]).unwrap()));
        }

        #[test]
        fn any_bytes_do_no_harm(
            flags in any::<u8>(), bytes in prop::collection::vec(any::<u8>(), 0..5000),
        ) {
            let stream = [&[0x1f, 0x9d, flags], &bytes[..]].concat();
            let pieces = run(&stream, 100, 100);
            prop_assert_eq!(decode_all(&stream), pieces);
        }
    }
}
