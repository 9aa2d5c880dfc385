//! Decoding the symbols of a block: the loop in which a reader of gzip files spends its time.

use super::{AHEAD_BYTES, CUT_OFF, Inflate, Input, SLACK_BYTES};
use crate::stream::huffman::{self, entry};
use crate::stream::paired_symbols::{self, STEP};

const TOO_FAR: &str = "a match from before the start of the data";

impl Inflate {
    /// Decode the rest of the input, with zeros behind it.
    pub(super) fn symbols_of_the_end(&mut self, input: &mut Input) -> Result<bool, &'static str> {
        let rest = &input.bytes[input.at..];
        let mut buffer = [0; 3 * AHEAD_BYTES];
        buffer[..rest.len()].copy_from_slice(rest);
        let mut end = Input { bytes: &buffer[..], at: 0 };
        // An error in the padding only shows that the input was cut off.
        let result = self.symbols(&mut end);
        // The bits in the register may also be of bytes before `rest`.
        if end.at * 8 > rest.len() * 8 + self.bit_count as usize {
            return Err(CUT_OFF);
        }
        let result = result?;
        // The bit buffer may hold bytes of the padding: those go back first.
        while end.at > rest.len() {
            end.at -= 1;
            self.bit_count -= 8;
        }
        self.bits &= (1 << self.bit_count) - 1;
        input.at += end.at;
        Ok(result)
    }

    /// Decode until the block ends (true), or the input or the room runs short (false).
    pub(super) fn symbols(&mut self, input: &mut Input) -> Result<bool, &'static str> {
        match self.window.take() {
            None => self.symbols_here(input, |_, _| ()),
            Some(mut window) => {
                let result = self.symbols_here(input, |from, length| window.mark(from, length));
                self.window = Some(window);
                result
            }
        }
    }

    /// [`Inflate::symbols_anywhere`] as fast as this processor can.
    #[inline(always)]
    fn symbols_here(
        &mut self,
        input: &mut Input,
        on_match: impl FnMut(usize, usize),
    ) -> Result<bool, &'static str> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2") {
            // SAFETY: the processor has the instructions.
            return unsafe { self.symbols_bmi2(input, on_match) };
        }
        self.symbols_anywhere(input, on_match)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2")]
    fn symbols_bmi2(
        &mut self,
        input: &mut Input,
        on_match: impl FnMut(usize, usize),
    ) -> Result<bool, &'static str> {
        self.symbols_anywhere(input, on_match)
    }

    /// `on_match` is called for each match: its source in the buffer, and its length; also for
    /// some of no length, from the end.
    #[inline(always)]
    fn symbols_anywhere(
        &mut self,
        input: &mut Input,
        mut on_match: impl FnMut(usize, usize),
    ) -> Result<bool, &'static str> {
        let (bytes, mut at) = (input.bytes, input.at);
        let Some(ahead) = bytes.len().checked_sub(AHEAD_BYTES) else { return Ok(false) };
        if at > ahead {
            return Ok(false);
        }
        let (mut bits, mut count) = (self.bits, self.bit_count);
        // In locals: a write into the buffer could otherwise change them, for all that the
        // compiler knows.
        let pairs = &self.pairs.entries;
        let (codes, distances) = (&self.codes.entries, &self.distances.entries);
        let valid_from = self.valid_from;
        let buffer = &mut self.buffer[..];
        let mut end = self.end;
        let room = self.room;
        assert!(valid_from <= end && buffer.len() >= room + SLACK_BYTES);
        macro_rules! refill {
            () => {
                // SAFETY: a round refills at most twice, by at most 7 bytes each, and
                // AHEAD_BYTES lay ahead when it began.
                bits |= unsafe { load(bytes, at) } << count;
                at += ((63 - count) >> 3) as usize;
                count |= 56;
            };
        }
        macro_rules! next {
            ($entries:expr) => {
                $entries[bits as usize % $entries.len()]
            };
        }
        macro_rules! use_bits {
            ($bit_count:expr) => {
                let bit_count = $bit_count;
                bits >>= bit_count;
                count -= bit_count as u32;
            };
        }
        refill!();
        // The entry of the bits that come next is looked up before what stands before it is
        // written, so that the two go side by side. What waits for what are only the lookups.
        let mut next = next!(pairs);
        let result = 'block: {
            while at <= ahead && end < room {
                refill!();
                if next != paired_symbols::NONE {
                    // Of the 56 bits this uses at most 11 for codes and 13 for a distance.
                    let this = next;
                    let distance = paired_symbols::distance(this, bits);
                    use_bits!(paired_symbols::bit_count(this));
                    next = next!(pairs);
                    // SAFETY: two literals and a STEP are less than the SLACK_BYTES behind `room`.
                    unsafe { store(buffer, end, paired_symbols::literals(this)) };
                    end += paired_symbols::literal_count(this);
                    if distance > end - valid_from {
                        break 'block Err(TOO_FAR);
                    }
                    // SAFETY: as before, and `distance` bytes lie before `end`.
                    unsafe { copy_step(buffer, end, distance) };
                    on_match(end - distance, paired_symbols::length(this));
                    end += paired_symbols::length(this);
                    continue;
                }
                let mut symbol = next!(codes);
                if symbol & !entry::BIT_COUNT == entry::LONG {
                    symbol = self.codes.long(bits);
                }
                match symbol & entry::KIND {
                    entry::LITERAL => {
                        use_bits!(huffman::bit_count(symbol));
                        next = next!(pairs);
                        buffer[end] = (symbol >> 16) as u8;
                        end += 1;
                        continue;
                    }
                    entry::NUMBER => {}
                    _ if symbol & !entry::BIT_COUNT == entry::END => {
                        use_bits!(huffman::bit_count(symbol));
                        break 'block Ok(true);
                    }
                    _ => break 'block Err("a code that stands for nothing"),
                }
                let length = huffman::length(symbol, bits);
                use_bits!(huffman::bit_count(symbol));
                // A distance uses at most 28 bits; the rest is enough for the next lookup.
                refill!();
                let mut far = next!(distances);
                if far & !entry::BIT_COUNT == entry::LONG {
                    far = self.distances.long(bits);
                }
                if far & entry::KIND != entry::NUMBER {
                    break 'block Err("a distance code that stands for nothing");
                }
                let distance = huffman::distance(far, bits);
                use_bits!(huffman::bit_count(far));
                next = next!(pairs);
                if distance > end - valid_from {
                    break 'block Err(TOO_FAR);
                }
                // SAFETY: `distance` bytes, at least one, lie before `end`; SLACK_BYTES behind
                // `room` are enough for a match of 258 bytes and a step.
                unsafe { copy_match(buffer, end, distance, length) };
                on_match(end - distance, length);
                end += length;
            }
            Ok(false)
        };
        // The refill counts bytes in by whole bits only up to 63: the rest of the word is junk.
        self.bits = bits & ((1 << count) - 1);
        self.bit_count = count;
        self.end = end;
        input.at = at;
        result
    }
}

/// # Safety
/// `at + 8 <= bytes.len()`.
#[inline(always)]
unsafe fn load(bytes: &[u8], at: usize) -> u64 {
    debug_assert!(at + 8 <= bytes.len());
    // SAFETY: the caller's promise.
    u64::from_le_bytes(unsafe { bytes.as_ptr().add(at).cast::<[u8; 8]>().read() })
}

/// # Safety
/// `at + 2 <= buffer.len()`.
#[inline(always)]
unsafe fn store(buffer: &mut [u8], at: usize, literals: [u8; 2]) {
    debug_assert!(at + 2 <= buffer.len());
    // SAFETY: the caller's promise.
    unsafe { buffer.as_mut_ptr().add(at).cast::<[u8; 2]>().write(literals) }
}

/// Copy a step from `distance` before `end`. If that is less than a step, or nothing, the output
/// is of no use, but no harm is done.
///
/// # Safety
/// `distance <= end` and `end + STEP <= buffer.len()`.
#[inline(always)]
unsafe fn copy_step(buffer: &mut [u8], end: usize, distance: usize) {
    debug_assert!(distance <= end && end + STEP <= buffer.len());
    // SAFETY: both lie in the buffer by the caller's promise.
    unsafe {
        let to = buffer.as_mut_ptr().add(end);
        to.cast::<[u8; STEP]>().write(to.sub(distance).cast::<[u8; STEP]>().read());
    }
}

/// Copy `length` bytes from `distance` before `end`, and perhaps up to a step less one more behind them.
///
/// # Safety
/// `distance` is between 1 and `end`, and `end + length + STEP <= buffer.len()`.
#[inline(always)]
unsafe fn copy_match(buffer: &mut [u8], end: usize, distance: usize, length: usize) {
    debug_assert!(distance >= 1 && distance <= end && end + length + STEP <= buffer.len());
    // SAFETY: all addresses lie in the buffer by the caller's promise.
    unsafe {
        let to = buffer.as_mut_ptr().add(end);
        let from = to.sub(distance);
        if distance >= STEP {
            let mut at = 0;
            while at < length {
                to.add(at).cast::<[u8; STEP]>().write(from.add(at).cast::<[u8; STEP]>().read());
                at += STEP;
            }
        } else if distance == 1 {
            to.write_bytes(from.read(), length);
        } else {
            for at in 0..length {
                to.add(at).write(from.add(at).read());
            }
        }
    }
}
