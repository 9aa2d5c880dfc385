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

    fn damaged(&self, what: &'static str) -> StreamError {
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
            return Err(self.damaged("no gzip header where a member should start"));
        }
        let Some(fixed) = input.get(..10) else { return Ok(None) };
        let flags = fixed[3];
        if flags & 0xe0 != 0 {
            return Err(self.damaged("reserved flags set in a gzip header"));
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
                    Err(self.damaged("a gzip header without end"))
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
                let (consumed, pause) =
                    self.inflate.run(input, last, target).map_err(|what| self.damaged(what))?;
                if let (Some(points), Some(window)) = (&mut self.points, self.inflate.take_window())
                {
                    points.complete(&window);
                }
                match pause {
                    Pause::Done => self.phase = Phase::Trailer,
                    Pause::Block => self.point(consumed),
                    Pause::Input if self.inflate.pending().is_empty() && consumed == 0 => {
                        return Ok(None);
                    }
                    Pause::Input | Pause::Full => {}
                }
                Ok(Some(consumed))
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

    /// Make a seek point of the block that begins after `consumed` more bytes, if one is due.
    fn point(&mut self, consumed: usize) {
        let bits_kept = self.inflate.bits_kept();
        let bit = (self.compressed + consumed as u64) * 8 - u64::from(bits_kept);
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
        let mut step = Progress { consumed: 0, produced: 0, end: false };
        loop {
            step.produced += self.hand_out(&mut output[step.produced..]);
            if !self.inflate.pending().is_empty() {
                return Ok(step);
            }
            if matches!(self.phase, Phase::End) {
                step.end = true;
                return Ok(step);
            }
            let rest = &input[step.consumed..];
            match self.advance(rest, last, output.len() - step.produced)? {
                Some(consumed) => {
                    step.consumed += consumed;
                    self.compressed += consumed as u64;
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
mod tests {
    use super::*;
    use crate::stream::testing::run;
    use libdeflater::{CompressionLvl, Compressor};
    use proptest::prelude::*;

    /// Sky-like data: noise in the low bytes, a constant in the high ones, some of it repeated.
    fn image(bytes: usize, seed: u32) -> Vec<u8> {
        let mut random = seed | 1;
        let mut data = Vec::with_capacity(bytes + 2);
        while data.len() < bytes {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if random >> 28 == 0 && data.len() > 40_000 {
                let back = 1 + (random >> 8) as usize % 32_768;
                let length = (random as usize % 300).min(back);
                let from = data.len() - back;
                data.extend_from_within(from..from + length);
            }
            data.extend([4, 60 + (random >> 26) as u8]);
        }
        data.truncate(bytes);
        data
    }

    fn member(data: &[u8], level: i32) -> Vec<u8> {
        let mut compressor = Compressor::new(CompressionLvl::new(level).unwrap());
        let mut packed = vec![0; compressor.gzip_compress_bound(data.len())];
        let length = compressor.gzip_compress(data, &mut packed).unwrap();
        packed.truncate(length);
        packed
    }

    /// The data, and the seek points passed.
    fn decode(
        decoder: &mut Gzip,
        input: &[u8],
        piece: usize,
        room: usize,
    ) -> Result<(Vec<u8>, Vec<SeekPoint>), StreamError> {
        let data = run(decoder, input, piece, room)?;
        Ok((data, decoder.take_points()))
    }

    fn decode_whole(input: &[u8]) -> Result<(Vec<u8>, Vec<SeekPoint>), StreamError> {
        decode(&mut Gzip::start(true), input, 128 << 10, 256 << 10)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn any_pieces_give_the_data(
            bytes in prop_oneof![0usize..300, 0usize..400_000],
            seed in any::<u32>(),
            level in 0i32..=12,
            piece in prop_oneof![1usize..40, 1usize..100_000],
            room in prop_oneof![1usize..300, 1000usize..300_000],
        ) {
            // Tiny pieces of long data would only take long.
            let bytes = bytes.min(500 * piece).min(500 * room);
            let data = image(bytes, seed);
            let packed = member(&data, level);
            let (got, _) = decode(&mut Gzip::start(true), &packed, piece, room).unwrap();
            prop_assert!(got == data);
        }

        #[test]
        fn random_bytes_and_repeats_come_back(
            data in prop::collection::vec(prop_oneof![any::<u8>(), Just(7u8)], 0..5000),
            copies in 1usize..20,
            level in 0i32..=12,
        ) {
            let data = data.repeat(copies);
            let (got, _) = decode_whole(&member(&data, level)).unwrap();
            prop_assert!(got == data);
        }

        #[test]
        fn damage_gives_an_error_or_the_data_but_no_panic(
            at in any::<prop::sample::Index>(),
            flip in 1u8..=255,
            level in 0i32..=12,
        ) {
            let data = image(70_000, 5);
            let mut packed = member(&data, level);
            let at = at.index(packed.len());
            packed[at] ^= flip;
            if let Ok((got, _)) = decode_whole(&packed) {
                // Only in what the header says beside the data.
                prop_assert!(at < 10 && got == data, "byte {at}");
            }
        }

        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0];
            packed.extend(bytes);
            let _ = decode_whole(&packed);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn any_seek_point_gives_what_follows_whatever_the_pieces(
            sizes in prop::collection::vec(1000usize..700_000, 1..5),
            seed in any::<u32>(),
            level in 1i32..=12,
            (piece, room) in (1000usize..100_000, 1000usize..300_000),
        ) {
            let parts: Vec<_> = sizes.iter().map(|&bytes| image(bytes, seed)).collect();
            let packed: Vec<_> = parts.iter().flat_map(|part| member(part, level)).collect();
            let data = parts.concat();
            let (got, points) = decode_whole(&packed).unwrap();
            prop_assert!(got == data);
            let (_, in_pieces) = decode(&mut Gzip::start(true), &packed, piece, room).unwrap();
            prop_assert!(points == in_pieces);
            for point in &points {
                let mut decoder = Gzip::resume(point, true).unwrap();
                let rest = &packed[point.compressed as usize..];
                let (tail, more) = decode(&mut decoder, rest, piece, room).unwrap();
                prop_assert!(tail == data[point.raw as usize..], "point at {}", point.raw);
                // The windows of these were read from what the first one gave.
                for point in more {
                    let mut decoder = Gzip::resume(&point, false).unwrap();
                    let rest = &packed[point.compressed as usize..];
                    let (tail, _) = decode(&mut decoder, rest, piece, room).unwrap();
                    prop_assert!(tail == data[point.raw as usize..], "point at {}", point.raw);
                }
            }
        }
    }

    #[test]
    fn every_seek_point_gives_what_follows() {
        let data = image(6_000_000, 1);
        let packed = [member(&data[..4_000_000], 6), member(&data[4_000_000..], 1)].concat();
        let (got, points) = decode_whole(&packed).unwrap();
        assert!(got == data);
        assert!(points.len() >= 5, "{}", points.len());
        let used_bytes: usize = points.iter().map(|point| point.window.len() + 14).sum();
        assert!(used_bytes * 100 <= packed.len() * 8, "{used_bytes} of {}", packed.len());
        for point in &points {
            let mut decoder = Gzip::resume(point, false).unwrap();
            let rest = &packed[point.compressed as usize..];
            let (tail, _) = decode(&mut decoder, rest, 10_000, 50_000).unwrap();
            assert!(tail == data[point.raw as usize..], "point at {}", point.raw);
        }
    }

    #[test]
    fn cut_off_anywhere_is_an_error() {
        for level in [0, 6] {
            let packed = member(&image(1000, 3), level);
            for end in 0..packed.len() {
                let error = decode_whole(&packed[..end]).unwrap_err();
                assert!(matches!(error, StreamError::CutOff { .. }), "cut at {end}: {error}");
            }
        }
    }

    #[test]
    fn every_part_of_a_header_is_skipped() {
        let data = image(5000, 9);
        let plain = member(&data, 6);
        let mut packed = vec![0x1f, 0x8b, 8, 0x1f, 1, 2, 3, 4, 0, 3];
        packed.extend([3, 0, b'a', 0, b'c']); // extra field with a zero in it
        packed.extend(b"name.fits\0a comment\0");
        packed.extend([0x12, 0x34]); // header checksum
        packed.extend(&plain[10..]);
        for piece in [1, 100_000] {
            let (got, _) = decode(&mut Gzip::start(true), &packed, piece, 4096).unwrap();
            assert!(got == data);
        }
    }

    #[test]
    fn members_follow_each_other_and_zeros_the_last() {
        let (one, two) = (image(100_000, 1), image(5, 2));
        let mut packed = [member(&one, 6), member(&two, 6), member(b"", 6)].concat();
        packed.extend([0; 3000]);
        let (got, _) = decode(&mut Gzip::start(true), &packed, 1000, 1000).unwrap();
        assert!(got == [one, two].concat());
        packed.extend(b"junk");
        let error = decode_whole(&packed).unwrap_err();
        assert!(error.to_string().contains("no gzip header"), "{error}");
    }

    #[test]
    fn a_fixed_block_is_read() {
        // Python: zlib.compressobj(9, 31, -15, 9, zlib.Z_FIXED) of b"swathe swathe swathe".
        let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
        packed.extend([0x2b, 0x2e, 0x4f, 0x2c, 0xc9, 0x48, 0x55, 0x28, 0x46, 0xa6, 0x00]);
        let data = b"swathe swathe swathe";
        packed.extend(crc32fast::hash(data).to_le_bytes());
        packed.extend((data.len() as u32).to_le_bytes());
        assert_eq!(decode_whole(&packed).unwrap().0, data);
    }

    #[test]
    fn a_wrong_length_or_checksum_is_told() {
        let packed = member(b"some data", 6);
        for (back, what) in [(1, "length"), (5, "checksum")] {
            let mut packed = packed.clone();
            let at = packed.len() - back;
            packed[at] ^= 1;
            let error = decode_whole(&packed).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn damaged_seek_points_are_refused() {
        let good = SeekPoint { raw: 9, compressed: 5, bits: 1, window: Box::default() };
        let windows: [&[u8]; 4] = [&[], &[1], &[9, 0, 1, 2], &[1, 0x80]];
        for window in windows {
            let point = SeekPoint { window: window.into(), ..good.clone() };
            assert!(Gzip::resume(&point, false).is_err(), "{window:?}");
        }
        let point = SeekPoint { bits: 8, window: [0, 0].into(), ..good };
        assert!(Gzip::resume(&point, false).is_err());
    }
}
