//! gzip members (RFC 1952), with seek points at the starts of deflate blocks.

use super::inflate::{CUT_OFF, Inflate, Pause};
use super::window::{WINDOW_BYTES, Window};
use super::{Decoder, Progress, SeekPoint, StreamError, StreamKind};

/// A member's header is refused when longer: its longest part of fixed size has 64 KiB.
const HEADER_LIMIT: usize = 192 << 10;
/// Seek points never take more than this share of the compressed bytes before them, in thousandths.
/// The index may have 80, but a point costs the first read as much as inflating 50 KB, and more of
/// them gained later cuts nothing that could be measured.
const SHARE: u64 = 48;
/// Bytes of a seek point besides its window.
const POINT_BYTES: u64 = 14;
/// Seek points are not closer than this, on any host: inflating it takes about as long
/// as starting at one. And the window of one must be out of the reach of matches before the next is
/// begun.
const CLOSEST_RAW: u64 = 64 << 10;
const _: () = assert!(CLOSEST_RAW >= WINDOW_BYTES as u64);
/// Nor closer than this part of what lies before: 256 points in the first such stretch, then
/// ever sparser, so that the table of the longest stream stays in memory.
const CLOSEST_PART: u64 = 256;

/// The position of the decoder in a member.
enum Phase {
    Header,
    Blocks,
    Trailer,
    /// After a member: another or padding may follow.
    After,
    End,
}

/// Checksum and length of a member from its start.
struct Check {
    crc: crc32fast::Hasher,
    bytes: u32,
}

/// A decoder of gzip streams.
pub(super) struct Gzip {
    phase: Phase,
    inflate: Inflate,
    /// `None` in a member that was entered in its middle.
    check: Option<Check>,
    /// Offset in the compressed data of what comes next.
    compressed: u64,
    /// Offset in the decompressed data of what was handed out.
    raw: u64,
    /// Bits of the next byte to skip, after a resume.
    skip: u8,
    points: Option<Points>,
}

/// The making of seek points.
struct Points {
    points: Vec<SeekPoint>,
    /// The one begun last, until its window is complete.
    point_start: Option<PointStart>,
    last_raw: u64,
    /// Bytes that all points take.
    used_bytes: u64,
    /// Bytes of the last one; before the first, a window is assumed to shrink to a
    /// quarter.
    last: u64,
}

/// Whether a seek point is at this position.
struct PointStart {
    raw: u64,
    /// In the compressed data.
    bit: u64,
}

impl Gzip {
    pub(super) fn start(points: bool) -> Gzip {
        Gzip {
            phase: Phase::Header,
            inflate: Inflate::new(),
            check: None,
            compressed: 0,
            raw: 0,
            skip: 0,
            points: points.then(|| Points::new(0, 0)),
        }
    }

    pub(super) fn resume(point: &SeekPoint, points: bool) -> Result<Gzip, StreamError> {
        let fail = |what| StreamError::SeekPoint { kind: StreamKind::Gzip, what };
        if point.bits > 7 {
            return Err(fail("bits out of range"));
        }
        let mut inflate = Inflate::new();
        inflate.restart_with(&point.window).map_err(fail)?;
        Ok(Gzip {
            phase: Phase::Blocks,
            inflate,
            check: None,
            compressed: point.compressed,
            raw: point.raw,
            skip: point.bits,
            points: points.then(|| Points::new(point.raw, point.compressed)),
        })
    }

    fn damage_error(&self, what: &'static str) -> StreamError {
        let (kind, at) = (StreamKind::Gzip, self.compressed);
        if what == CUT_OFF {
            StreamError::CutOff { kind, at }
        } else {
            StreamError::Damaged { kind, at, what }
        }
    }

    /// Read a member's header; `None` if the input ends inside it.
    fn header(&self, input: &[u8]) -> Result<Option<usize>, StreamError> {
        const TEXT: [u8; 2] = [1 << 3, 1 << 4]; // a name, a comment
        const MAGIC: [u8; 3] = [0x1f, 0x8b, 8]; // 8: deflate
        if input.iter().zip(&MAGIC).any(|(found, expected)| found != expected) {
            return Err(self.damage_error("no gzip header where a member should start"));
        }
        let Some(header) = input.get(..10) else { return Ok(None) };
        let flags = header[3];
        if flags & 0xe0 != 0 {
            return Err(self.damage_error("reserved flags set in a gzip header"));
        }
        let mut at = 10;
        if flags & 1 << 2 != 0 {
            let Some(length) = input.get(at..at + 2) else { return Ok(None) };
            at += 2 + usize::from(u16::from_le_bytes([length[0], length[1]]));
        }
        for text in TEXT {
            if flags & text != 0 {
                let rest = input.get(at..).unwrap_or_default();
                let Some(length) = rest.iter().position(|&byte| byte == 0) else { return Ok(None) };
                at += length + 1;
            }
        }
        if flags & 1 << 1 != 0 {
            at += 2;
        }
        Ok((at <= input.len()).then_some(at))
    }

    /// Check the trailer of a member.
    fn trailer(&mut self, trailer: [u8; 8]) -> Result<(), StreamError> {
        let Some(check) = self.check.take() else { return Ok(()) };
        let [a, b, c, d, e, f, g, h] = trailer;
        let pairs = [
            ("checksum", u32::from_le_bytes([a, b, c, d]), check.crc.finalize()),
            ("length", u32::from_le_bytes([e, f, g, h]), check.bytes),
        ];
        for (what, expected, found) in pairs {
            if expected != found {
                let (kind, at) = (StreamKind::Gzip, self.compressed);
                return Err(StreamError::Mismatch { kind, at, what, expected, found });
            }
        }
        Ok(())
    }

    /// Output inflated bytes; returns how many.
    fn hand_out(&mut self, output: &mut [u8]) -> usize {
        let pending = self.inflate.pending();
        let count = pending.len().min(output.len());
        output[..count].copy_from_slice(&pending[..count]);
        if let Some(check) = &mut self.check {
            check.crc.update(&output[..count]);
            check.bytes = check.bytes.wrapping_add(count as u32);
        }
        self.inflate.hand_out(count);
        self.raw += count as u64;
        count
    }

    /// Work on `input` once, towards `target` bytes of output; returns the bytes consumed, or `None`
    /// if more are needed.
    fn advance(
        &mut self,
        input: &[u8],
        last: bool,
        target: usize,
    ) -> Result<Option<usize>, StreamError> {
        match self.phase {
            Phase::Header => match self.header(input)? {
                Some(bytes) => {
                    self.inflate.restart();
                    self.check = Some(Check { crc: crc32fast::Hasher::new(), bytes: 0 });
                    self.phase = Phase::Blocks;
                    Ok(Some(bytes))
                }
                None if input.len() > HEADER_LIMIT => {
                    Err(self.damage_error("a gzip header without end"))
                }
                None => Ok(None),
            },
            Phase::Blocks if self.skip > 0 => {
                let Some(&byte) = input.first() else { return Ok(None) };
                self.inflate.skip_into(byte, self.skip.into());
                self.skip = 0;
                Ok(Some(1))
            }
            Phase::Blocks => {
                let (input_bytes, pause) = self
                    .inflate
                    .run(input, last, target)
                    .map_err(|what| self.damage_error(what))?;
                if let (Some(points), Some(window)) = (&mut self.points, self.inflate.take_window())
                {
                    points.complete(&window);
                }
                match pause {
                    Pause::Done => self.phase = Phase::Trailer,
                    Pause::Block => self.point(input_bytes),
                    Pause::Input if self.inflate.pending().is_empty() && input_bytes == 0 => {
                        return Ok(None);
                    }
                    Pause::Input | Pause::Full => {}
                }
                Ok(Some(input_bytes))
            }
            Phase::Trailer => {
                let Some(trailer) = input.first_chunk::<8>() else { return Ok(None) };
                self.trailer(*trailer)?;
                self.phase = Phase::After;
                Ok(Some(8))
            }
            // Some writers pad to a block of a tape or disk with zeros.
            Phase::After => match input.iter().position(|&byte| byte != 0) {
                None if last => {
                    self.phase = Phase::End;
                    Ok(Some(input.len()))
                }
                None if input.is_empty() => Ok(None),
                None => Ok(Some(input.len())),
                Some(zeros) => {
                    self.phase = Phase::Header;
                    Ok(Some(zeros))
                }
            },
            Phase::End => Ok(Some(0)),
        }
    }

    /// Make a seek point of the block that begins after `input_bytes` more bytes, if one is due.
    fn point(&mut self, input_bytes: usize) {
        let buffered_bits = self.inflate.buffered_bits();
        let bit = (self.compressed + input_bytes as u64) * 8 - u64::from(buffered_bits);
        let raw = self.raw + self.inflate.pending().len() as u64;
        if let Some(points) = &mut self.points
            && points.is_due(raw, bit / 8)
        {
            points.begin(raw, bit);
            self.inflate.open_window();
        }
    }
}

impl Points {
    fn new(raw: u64, compressed: u64) -> Points {
        Points {
            points: Vec::new(),
            point_start: None,
            last_raw: raw,
            // The points before the one resumed at have had their share.
            used_bytes: compressed * SHARE / 1000,
            last: WINDOW_BYTES as u64 / 4,
        }
    }

    /// Whether a point is due here.
    fn is_due(&self, raw: u64, compressed: u64) -> bool {
        let closest = CLOSEST_RAW.max(raw / CLOSEST_PART);
        (self.used_bytes + self.last) * 1000 <= compressed * SHARE && raw >= self.last_raw + closest
    }

    fn begin(&mut self, raw: u64, bit: u64) {
        self.point_start = Some(PointStart { raw, bit });
        self.last_raw = raw;
    }

    /// Keep the point begun last, now that all that uses its window is known.
    fn complete(&mut self, window: &Window) {
        let Some(PointStart { raw, bit }) = self.point_start.take() else { return };
        let (compressed, bits) = (bit / 8, (bit % 8) as u8);
        let point = SeekPoint { raw, compressed, bits, window: window.pack() };
        self.last = point.window.len() as u64 + POINT_BYTES;
        self.used_bytes += self.last;
        self.points.push(point);
    }
}

impl Decoder for Gzip {
    fn decode(
        &mut self,
        input: &[u8],
        last: bool,
        output: &mut [u8],
    ) -> Result<Progress, StreamError> {
        let mut step = Progress { input_bytes: 0, output_bytes: 0, end: false };
        loop {
            step.output_bytes += self.hand_out(&mut output[step.output_bytes..]);
            if !self.inflate.pending().is_empty() {
                return Ok(step);
            }
            if matches!(self.phase, Phase::End) {
                step.end = true;
                return Ok(step);
            }
            let rest = &input[step.input_bytes..];
            match self.advance(rest, last, output.len() - step.output_bytes)? {
                Some(input_bytes) => {
                    step.input_bytes += input_bytes;
                    self.compressed += input_bytes as u64;
                }
                None if last => {
                    let (kind, at) = (StreamKind::Gzip, self.compressed + rest.len() as u64);
                    return Err(StreamError::CutOff { kind, at });
                }
                None => return Ok(step),
            }
        }
    }

    fn take_points(&mut self) -> Vec<SeekPoint> {
        self.points.as_mut().map(|points| std::mem::take(&mut points.points)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
