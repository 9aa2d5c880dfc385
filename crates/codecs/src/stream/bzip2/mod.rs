//! bzip2: blocks of up to 900 000 bytes, each coded by itself and so each a seek point.
//!
//! A block is decoded in steps: Huffman codes, moves to front and runs make the last column of
//! the sorted rotations ([`symbols`]); following that column makes the text ([`mod@unsort`]); the
//! text still has runs of four to 255 + 4 equal bytes shortened ([`runs`]). The text stays inside
//! until its CRC is checked, so every byte of the output has a checked CRC.

mod code;
mod runs;
mod symbols;
mod unsort;

use self::code::LONGEST_CODE;
use self::runs::Runs;
use self::symbols::{GROUP, Symbols};
use self::unsort::unsort;
use super::{Decoder, Progress, SeekPoint, StreamError, StreamKind};
use crate::bits::Bits;

const KIND: StreamKind = StreamKind::Bzip2;
/// Pi, in decimal digits: a block follows.
const BLOCK_MAGIC: u64 = 0x3141_5926_5359;
/// Its square root: the stream ends.
const END_MAGIC: u64 = 0x1772_4538_5090;
/// Bytes in which the tables before a block's symbols must fit. Written without detours they
/// take 32 kB at most.
const LONGEST_TABLES: usize = 64 << 10;
/// Bytes of input taken in at a time.
const INTAKE: usize = 128 << 10;

/// A decoder of bzip2 streams.
pub(super) struct Bzip2 {
    state: State,
    /// Compressed bytes not yet decoded, and some that are.
    buffer: Vec<u8>,
    /// Offset of the buffer in the compressed data.
    base: u64,
    /// Bits of the buffer that are decoded.
    bit: usize,
    /// Bytes the buffer must hold before decoding a block's tables is tried again.
    enough: usize,
    /// Bytes of output so far, from the start of the decompressed data.
    raw: u64,
    /// Hundreds of thousands of bytes a block may have: 1 to 9.
    level: u8,
    /// CRC of the blocks of this stream so far; unknown if decoding began in the middle.
    combined_crc: Option<u32>,
    /// Streams read to their end.
    streams: u64,
    block: Block,
    symbols: Symbols,
    /// Rows of the sorted rotations, each with the row that follows it: see [`unsort`].
    rows: Vec<u32>,
    /// The block, but for its runs.
    text: Vec<u8>,
    runs: Runs,
    points: Option<Vec<SeekPoint>>,
}

/// The part of the stream that comes next.
#[derive(Clone, Copy)]
enum State {
    /// The first bytes of a stream, or the end of the data.
    Stream,
    /// A block, or the end of the stream.
    Block,
    Symbols,
    /// Bytes of a decoded block to output.
    Text,
    Done,
}

/// The state of a block before it is decoded.
#[derive(Default)]
struct Block {
    /// Bit it starts at, in the compressed data.
    start: u64,
    crc: u32,
    /// Row of the unrotated text.
    origin: usize,
}

/// The next step of decoding.
#[derive(PartialEq, Eq)]
enum Next {
    Go,
    Input,
    /// Room in the output.
    Room,
}

impl Bzip2 {
    /// From the start of the first stream.
    pub(super) fn start(points: bool) -> Bzip2 {
        Bzip2 {
            state: State::Stream,
            buffer: Vec::new(),
            base: 0,
            bit: 0,
            enough: 0,
            raw: 0,
            level: 0,
            combined_crc: Some(0),
            streams: 0,
            block: Block::default(),
            symbols: Symbols::new(),
            rows: Vec::new(),
            text: Vec::new(),
            runs: Runs::default(),
            points: points.then(Vec::new),
        }
    }

    /// From the start of a block. The window of its point is the digit of its stream's level.
    pub(super) fn resume(point: &SeekPoint, points: bool) -> Result<Bzip2, StreamError> {
        let damage_error = |what| StreamError::SeekPoint { kind: KIND, what };
        let [digit @ b'1'..=b'9'] = point.window[..] else {
            return Err(damage_error("its window is no digit"));
        };
        if point.bits > 7 {
            return Err(damage_error("it skips more bits than a byte has"));
        }
        Ok(Bzip2 {
            state: State::Block,
            base: point.compressed,
            bit: usize::from(point.bits),
            raw: point.raw,
            level: digit - b'0',
            combined_crc: None,
            ..Bzip2::start(points)
        })
    }

    /// Moves input into the buffer, in place of decoded input.
    fn take_in(&mut self, input: &[u8]) -> usize {
        let decoded_bytes = (self.bit / 8).min(self.buffer.len());
        self.buffer.drain(..decoded_bytes);
        self.base = self.base.saturating_add(decoded_bytes as u64);
        self.bit -= decoded_bytes * 8;
        let count = input.len().min(INTAKE);
        self.buffer.extend_from_slice(&input[..count]);
        count
    }

    /// Bytes of the buffer from the one decoding is at.
    fn rest_bytes(&self) -> usize {
        self.buffer.len().saturating_sub(self.bit / 8)
    }

    /// Bit decoding is at, in the compressed data.
    fn position(&self) -> u64 {
        self.base.saturating_mul(8).saturating_add(self.bit as u64)
    }

    fn damage_error(&self, what: &'static str) -> StreamError {
        StreamError::Damaged { kind: KIND, at: self.position() / 8, what }
    }

    /// Input is needed: that is an error if none follows.
    fn out_of_input(&self, complete: bool) -> Result<Next, StreamError> {
        if complete {
            let at = self.base.saturating_add(self.buffer.len() as u64);
            return Err(StreamError::CutOff { kind: KIND, at });
        }
        Ok(Next::Input)
    }

    /// "BZh" and a digit. After the first stream anything else is ignored, as bzip2 does.
    fn stream(&mut self, complete: bool) -> Result<Next, StreamError> {
        self.bit = self.bit.next_multiple_of(8);
        let first = self.buffer.get(self.bit / 8..).unwrap_or_default();
        let right = match first {
            [b'B', b'Z', b'h', digit @ b'1'..=b'9', ..] => {
                self.level = digit - b'0';
                self.bit += 32;
                self.combined_crc = Some(0);
                self.state = State::Block;
                return Ok(Next::Go);
            }
            [] if complete && self.streams > 0 => false,
            first => first.len() < 4 && b"BZh".starts_with(&first[..first.len().min(3)]),
        };
        match right {
            true => self.out_of_input(complete),
            false if self.streams == 0 => {
                Err(self.damage_error("it does not start with BZh1 to BZh9"))
            }
            false => {
                self.state = State::Done;
                Ok(Next::Go)
            }
        }
    }

    /// The tables of a block, or the end of a stream.
    fn block(&mut self, complete: bool, room: bool) -> Result<Next, StreamError> {
        if !complete && self.rest_bytes() < self.enough.max(11) {
            return Ok(Next::Input);
        }
        let mut bits = Bits::from_bit(&self.buffer, self.bit);
        let magic = u64::from(bits.read(24)) << 24 | u64::from(bits.read(24));
        let crc = bits.read(32);
        if bits.overrun() {
            return self.out_of_input(complete);
        }
        match magic {
            END_MAGIC => {
                self.bit = bits.position_bits() as usize;
                self.state = State::Stream;
                self.streams += 1;
                match self.combined_crc {
                    Some(blocks_crc) if blocks_crc != crc => {
                        Err(self.mismatch("CRC of all blocks", crc, blocks_crc))
                    }
                    _ => Ok(Next::Go),
                }
            }
            BLOCK_MAGIC if !room => Ok(Next::Room),
            BLOCK_MAGIC => {
                let result = self.symbols.tables(&mut bits, self.level);
                if bits.overrun() {
                    if self.rest_bytes() > LONGEST_TABLES {
                        return Err(self.damage_error("tables of a block are too long"));
                    }
                    // Doubling keeps tables that come byte by byte from being decoded each time.
                    self.enough = self.rest_bytes() * 2;
                    return self.out_of_input(complete);
                }
                let origin = result.map_err(|what| self.damage_error(what))?;
                self.block = Block { start: self.position(), crc, origin };
                self.enough = 0;
                self.bit = bits.position_bits() as usize;
                self.state = State::Symbols;
                Ok(Next::Go)
            }
            _ => Err(self.damage_error("neither a block nor the end of the stream")),
        }
    }

    /// The symbols of a block; at their end, its text.
    fn symbols(&mut self, complete: bool) -> Result<Next, StreamError> {
        let mut bits = Bits::from_bit(&self.buffer, self.bit);
        let mut result = Ok(false);
        // A group is begun only if all of it is in the buffer, so that it never has to be resumed.
        while matches!(result, Ok(false))
            && (complete || bits.rest_bits() >= (GROUP * LONGEST_CODE) as u64)
            && !bits.overrun()
        {
            (bits, result) = self.symbols.group(bits);
        }
        if bits.overrun() {
            return self.out_of_input(complete);
        }
        self.bit = bits.position_bits() as usize;
        match result {
            Err(what) => Err(self.damage_error(what)),
            Ok(false) => self.out_of_input(complete),
            Ok(true) => self.finish().map(|()| Next::Go),
        }
    }

    /// The text of a block from its symbols, checked.
    fn finish(&mut self) -> Result<(), StreamError> {
        let Block { start, crc, origin } = self.block;
        let count = self.symbols.count;
        if origin >= count {
            return Err(self.damage_error("the first row of a block is beyond its end"));
        }
        let Symbols { column, tally, .. } = &mut self.symbols;
        unsort(&mut column[..count], tally, origin, &mut self.rows, &mut self.text);
        let text_crc = Runs::default().crc(&self.text);
        if text_crc != crc {
            return Err(self.mismatch("CRC of a block", crc, text_crc));
        }
        self.combined_crc = self.combined_crc.map(|blocks_crc| blocks_crc.rotate_left(1) ^ crc);
        self.runs = Runs::default();
        if let Some(points) = &mut self.points {
            points.push(SeekPoint {
                raw: self.raw,
                compressed: start / 8,
                bits: (start % 8) as u8,
                window: [b'0' + self.level].into(),
            });
        }
        self.state = State::Text;
        Ok(())
    }

    fn mismatch(&self, what: &'static str, expected: u32, found: u32) -> StreamError {
        StreamError::Mismatch { kind: KIND, at: self.position() / 8, what, expected, found }
    }
}

impl Decoder for Bzip2 {
    fn decode(
        &mut self,
        input: &[u8],
        last: bool,
        output: &mut [u8],
    ) -> Result<Progress, StreamError> {
        let mut step = Progress { input_bytes: 0, output_bytes: 0, end: false };
        loop {
            let complete = last && step.input_bytes == input.len();
            let room = step.output_bytes < output.len();
            let next = match self.state {
                State::Stream => self.stream(complete)?,
                State::Block => self.block(complete, room)?,
                State::Symbols => self.symbols(complete)?,
                State::Text => {
                    let count = self.runs.expand(&self.text, &mut output[step.output_bytes..]);
                    step.output_bytes += count;
                    self.raw = self.raw.saturating_add(count as u64);
                    if self.runs.is_done(&self.text) {
                        self.state = State::Block;
                        Next::Go
                    } else {
                        Next::Room
                    }
                }
                State::Done => return Ok(Progress { end: true, ..step }),
            };
            match next {
                Next::Go => {}
                Next::Input if step.input_bytes < input.len() => {
                    step.input_bytes += self.take_in(&input[step.input_bytes..]);
                }
                Next::Input | Next::Room => return Ok(step),
            }
        }
    }

    fn take_points(&mut self) -> Vec<SeekPoint> {
        self.points.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
