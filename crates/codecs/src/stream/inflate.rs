//! Inflating deflate blocks (RFC 1951), resumable between any two symbols.
//!
//! Ours, because no library both starts in the middle of a block's byte and reports where blocks
//! start at the speed of a whole-buffer decoder (`docs/design/005-our-own-inflate.md`).

mod symbols;

use super::huffman::{self, Table, entry};
use super::literal_deflate::ORDER;
use super::paired_symbols::{PairedSymbols, STEP};
use super::window::{self, WINDOW_BYTES, Window};

/// Bytes decoded into the buffer before they are handed out.
const CHUNK_BYTES: usize = 128 << 10;
/// Room behind the chunk: a match of 258 bytes, and what copying in steps of 16 writes too much.
/// Literals before a match that the table joins with it are shorter together.
const SLACK_BYTES: usize = 258 + STEP;
/// Input that must lie ahead for a round of the loop: two refills move on by at most 7 bytes each,
/// and 8 bytes are loaded at once.
const AHEAD_BYTES: usize = 32;

/// The part of the stream that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the three bits that begin a block.
    BlockStart,
    /// Inside a stored block.
    Stored { rest_bytes: usize },
    /// Inside a block of codes.
    Codes,
    /// Past the last block.
    Done,
}

/// Why [`Inflate::run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// More input is needed.
    Input,
    /// The buffer is full.
    Full,
    /// A block begins here.
    Block,
    /// The last block ended.
    Done,
}

/// A decoder of deflate blocks into a buffer of its own.
pub(super) struct Inflate {
    state: State,
    last_block: bool,
    /// Bits taken from the input and not yet used: fewer than 8 between calls.
    bits: u64,
    bit_count: u32,
    codes: Box<Table<512>>,
    distances: Box<Table<512>>,
    /// The most frequent symbols of both, in pairs.
    pairs: Box<PairedSymbols>,
    /// History, then new bytes.
    buffer: Box<[u8]>,
    /// Matches may not reach before this.
    valid_from: usize,
    /// New bytes not yet handed out: `handed..end`.
    pending_start: usize,
    end: usize,
    /// No symbol is decoded once `end` is here or beyond.
    room: usize,
    /// The bytes that matches are recorded to use.
    window: Option<Box<Window>>,
}

/// The position of the decoder in the input.
struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Inflate {
    pub(super) fn new() -> Inflate {
        Inflate {
            state: State::BlockStart,
            last_block: false,
            bits: 0,
            bit_count: 0,
            codes: Box::new(Table::new(&huffman::LITERALS_AND_LENGTHS)),
            distances: Box::new(Table::new(&huffman::DISTANCES)),
            pairs: Box::new(PairedSymbols::new()),
            buffer: vec![0; WINDOW_BYTES + CHUNK_BYTES + SLACK_BYTES].into(),
            valid_from: 0,
            pending_start: 0,
            end: 0,
            room: 0,
            window: None,
        }
    }

    /// Start over at a block, with no history.
    pub(super) fn restart(&mut self) {
        debug_assert_eq!(self.pending_start, self.end);
        self.state = State::BlockStart;
        self.last_block = false;
        (self.bits, self.bit_count) = (0, 0);
        (self.valid_from, self.pending_start, self.end) = (0, 0, 0);
        self.window = None;
    }

    /// Start over at a block with the history that a seek point keeps.
    pub(super) fn restart_with(&mut self, window_bytes: &[u8]) -> Result<(), &'static str> {
        self.restart();
        let Some(history) = self.buffer.first_chunk_mut() else { return Err("no room") };
        self.valid_from = WINDOW_BYTES - window::unpack(window_bytes, history)?;
        (self.pending_start, self.end) = (WINDOW_BYTES, WINDOW_BYTES);
        Ok(())
    }

    /// Bits of the last byte consumed that are still to be used.
    pub(super) fn buffered_bits(&self) -> u32 {
        self.bit_count
    }

    /// Take back to `skip` bits into `byte`, which was consumed.
    pub(super) fn skip_into(&mut self, byte: u8, skip: u32) {
        self.bits = u64::from(byte >> skip);
        self.bit_count = 8 - skip;
    }

    /// Note from here on which bytes before here matches use.
    pub(super) fn open_window(&mut self) {
        self.window = Some(Box::new(Window::new(&self.buffer[..self.end], self.valid_from)));
    }

    /// The window opened last, once no match to come can use it.
    pub(super) fn take_window(&mut self) -> Option<Box<Window>> {
        let is_done = self.state == State::Done;
        self.window.take_if(|window| is_done || self.end >= window.out_of_reach())
    }

    /// New bytes, to be handed out before more is decoded.
    pub(super) fn pending(&self) -> &[u8] {
        &self.buffer[self.pending_start..self.end]
    }

    /// Say that the first `count` pending bytes were handed out.
    pub(super) fn hand_out(&mut self, count: usize) {
        self.pending_start += count;
    }

    /// Decode from `input`; returns the bytes consumed and why it stopped. Stops at every start of
    /// a block but the one it was called at, and once about `target` bytes (at least one) are ready
    /// for output. `last`: no input follows.
    pub(super) fn run(
        &mut self,
        input: &[u8],
        last: bool,
        target: usize,
    ) -> Result<(usize, Pause), &'static str> {
        self.make_room();
        let window = self.window.as_ref().map_or(usize::MAX, |window| window.out_of_reach());
        let room = self.end.saturating_add(target.max(1)).min(WINDOW_BYTES + CHUNK_BYTES);
        self.room = room.min(window);
        let mut input = Input { bytes: input, at: 0 };
        let is_paused = self.blocks(&mut input, last)?;
        // Whole bytes go back, so that the caller's count of them is exact.
        let bytes = (self.bit_count / 8) as usize;
        input.at -= bytes;
        self.bit_count %= 8;
        self.bits &= (1 << self.bit_count) - 1;
        Ok((input.at, is_paused))
    }

    fn blocks(&mut self, input: &mut Input, last: bool) -> Result<Pause, &'static str> {
        let mut at_call = self.state == State::BlockStart;
        loop {
            match self.state {
                State::Done => return Ok(Pause::Done),
                State::BlockStart if self.last_block => self.state = State::Done,
                State::BlockStart if !at_call => return Ok(Pause::Block),
                State::BlockStart => {
                    let start = (input.at, self.bits, self.bit_count);
                    if self.block_start(input)? {
                        at_call = false;
                    } else {
                        (input.at, self.bits, self.bit_count) = start;
                        return Ok(Pause::Input);
                    }
                }
                State::Stored { rest_bytes } => {
                    let room = self.room.saturating_sub(self.end);
                    let count = rest_bytes.min(room).min(input.bytes.len() - input.at);
                    let from = &input.bytes[input.at..input.at + count];
                    self.buffer[self.end..self.end + count].copy_from_slice(from);
                    self.end += count;
                    input.at += count;
                    self.state = match rest_bytes - count {
                        0 => State::BlockStart,
                        rest_bytes => State::Stored { rest_bytes },
                    };
                    if count == room && rest_bytes > count {
                        return Ok(Pause::Full);
                    }
                    if rest_bytes > count {
                        return Ok(Pause::Input);
                    }
                }
                State::Codes => {
                    if self.end >= self.room {
                        return Ok(Pause::Full);
                    }
                    let result = if input.bytes.len() - input.at >= AHEAD_BYTES {
                        self.symbols(input)?
                    } else if last {
                        self.symbols_of_the_end(input)?
                    } else {
                        return Ok(Pause::Input);
                    };
                    if result {
                        self.state = State::BlockStart;
                    }
                }
            }
        }
    }

    /// Move the history to the front once the buffer is full and all was handed out.
    fn make_room(&mut self) {
        if self.pending_start == self.end && self.end >= WINDOW_BYTES + CHUNK_BYTES {
            let from = self.end - WINDOW_BYTES;
            self.buffer.copy_within(from..self.end, 0);
            self.valid_from = self.valid_from.saturating_sub(from);
            (self.pending_start, self.end) = (WINDOW_BYTES, WINDOW_BYTES);
            if let Some(window) = &mut self.window {
                window.shift(from);
            }
        }
    }

    /// Bytewise refill, for headers. False if the input ends before `count` bits.
    fn need(&mut self, input: &mut Input, count: u32) -> bool {
        while self.bit_count < count {
            let Some(&byte) = input.bytes.get(input.at) else { return false };
            self.bits |= u64::from(byte) << self.bit_count;
            self.bit_count += 8;
            input.at += 1;
        }
        true
    }

    fn take(&mut self, count: u32) -> u32 {
        let value = self.bits & ((1 << count) - 1);
        self.bits >>= count;
        self.bit_count -= count;
        value as u32
    }

    /// Read what begins a block; false if the input ends inside it.
    fn block_start(&mut self, input: &mut Input) -> Result<bool, &'static str> {
        if !self.need(input, 3) {
            return Ok(false);
        }
        let last_block = self.take(1) == 1;
        self.state = match self.take(2) {
            0 => {
                // The lengths start at the next whole byte.
                let partial = self.bit_count % 8;
                self.take(partial);
                if !self.need(input, 32) {
                    return Ok(self.return_to_start());
                }
                let (length, complement) = (self.take(16), self.take(16));
                if length != complement ^ 0xffff {
                    return Err("the two lengths of a stored block differ");
                }
                // Bytes in the bit buffer are the first of the block.
                let bytes = self.bit_count / 8;
                input.at -= bytes as usize;
                (self.bits, self.bit_count) = (0, 0);
                State::Stored { rest_bytes: length as usize }
            }
            1 => {
                let mut lengths = [8; 288];
                lengths[144..256].fill(9);
                lengths[256..280].fill(7);
                self.codes.set(&lengths)?;
                self.distances.set(&[5; 32])?;
                self.pairs.set(&self.codes, &self.distances);
                State::Codes
            }
            2 => match self.dynamic_codes(input)? {
                true => State::Codes,
                false => return Ok(self.return_to_start()),
            },
            _ => return Err("a block of unknown type"),
        };
        self.last_block = last_block;
        Ok(true)
    }

    /// Waits for more input at the start of the block; always false.
    fn return_to_start(&mut self) -> bool {
        self.state = State::BlockStart;
        false
    }

    /// RFC 1951, 3.2.7.
    fn dynamic_codes(&mut self, input: &mut Input) -> Result<bool, &'static str> {
        if !self.need(input, 14) {
            return Ok(false);
        }
        let literals = self.take(5) as usize + 257;
        let distances = self.take(5) as usize + 1;
        let code_lengths = self.take(4) as usize + 4;
        if literals > 286 || distances > 30 {
            return Err("more codes than deflate has symbols");
        }
        let mut own = [0u8; 19];
        for &symbol in &ORDER[..code_lengths] {
            if !self.need(input, 3) {
                return Ok(false);
            }
            own[symbol] = self.take(3) as u8;
        }
        let mut table = Table::<128>::new(&huffman::CODE_LENGTHS);
        table.set(&own)?;

        let mut lengths = [0u8; 286 + 30];
        let lengths = &mut lengths[..literals + distances];
        let mut length_count = 0;
        while length_count < lengths.len() {
            // A code of up to 7 bits and up to 7 more; fewer may be left at the end.
            let _ = self.need(input, 14);
            let entry = table.entries[(self.bits & 127) as usize];
            if entry & entry::KIND != entry::LITERAL {
                return Err("an unused code among the code lengths");
            }
            let symbol = entry >> 16;
            let (more, base) = match symbol {
                0..=15 => (0, 1),
                16 => (2, 3),
                17 => (3, 3),
                _ => (7, 11),
            };
            let bits = huffman::bit_count(entry);
            if self.bit_count < bits + more {
                return Ok(false);
            }
            self.take(bits);
            let count = base + self.take(more) as usize;
            let value = match symbol {
                0..=15 => symbol as u8,
                16 if length_count == 0 => return Err("a code length repeated before the first"),
                16 => lengths[length_count - 1],
                _ => 0,
            };
            let Some(run) = lengths.get_mut(length_count..length_count + count) else {
                return Err("more code lengths than codes");
            };
            run.fill(value);
            length_count += count;
        }
        if lengths[256] == 0 {
            return Err("no code for the end of the block");
        }
        self.codes.set(&lengths[..literals])?;
        self.distances.set(&lengths[literals..])?;
        self.pairs.set(&self.codes, &self.distances);
        Ok(true)
    }
}

/// The error of [`Inflate::run`] if the input is `last` and ends inside a block of codes.
pub(super) const CUT_OFF: &str = "cut off";
