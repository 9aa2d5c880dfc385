//! Reading inside a gzip, bzip2 or compress stream: forward from the decoder's position, or
//! from the nearest seek point.

mod window_plan;

use crate::error::EngineError;
use crate::prefetch::Prefetch;
use crate::requests::INPUT_BYTES;
use crate::timing::{about, record_end, record_events};
use crate::worker_context::{Cancel, PieceReceiver};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use swathe_codecs::stream::{self, Decoder, SeekTable, StreamError, StreamKind};
use swathe_plan::{Compute, Sharing};
use swathe_store_api::{Source, Traffic};
pub(crate) use window_plan::{Stretch, Unpacking};

/// Compressed bytes of a server that stay in memory after they were decoded: a restart may enter
/// the block that the decoder has begun, and nothing is requested twice.
const LOOK_BACK_BYTES: usize = 64 << 10;
/// Decompressed bytes handed on at a time: small enough to stay in the L2 cache.
pub(crate) const OUTPUT_BYTES: usize = 256 << 10;

/// A decompressing reader of one object.
pub(crate) struct StreamReader {
    source: Arc<dyn Source>,
    /// Its name in events.
    name: String,
    table: SeekTable,
    unpacking: Unpacking,
    /// Whether points were added since the last call.
    has_new_points: bool,
    running: Option<RunningDecoder>,
    /// The decoder that reads a gzip stream for the first time, laid aside while another decodes
    /// earlier bytes, and its position.
    aside: Option<(RunningDecoder, u64)>,
    /// The damage it met.
    damage: Option<StreamError>,
    chunk: Vec<u8>,
    /// Offset of `chunk` in the decompressed data.
    chunk_at: u64,
    /// Compressed bytes on their way from a server.
    ahead: Option<Prefetch>,
    traffic: Traffic,
}

struct RunningDecoder {
    decoder: Box<dyn Decoder>,
    input: Vec<u8>,
    input_at: usize,
    next: u64,
    is_over: bool,
    /// Whether it has seen all bytes before, and so can check the checksum.
    is_whole: bool,
}

impl StreamReader {
    /// A reader with the seek points known so far.
    pub(crate) fn new(
        source: Arc<dyn Source>,
        name: &str,
        table: SeekTable,
        compute: &Compute,
    ) -> StreamReader {
        StreamReader {
            source,
            name: name.to_string(),
            unpacking: Unpacking::of(table.kind, compute),
            table,
            has_new_points: false,
            running: None,
            aside: None,
            damage: None,
            chunk: Vec::new(),
            chunk_at: 0,
            ahead: None,
            traffic: Traffic::default(),
        }
    }

    /// The format.
    pub(crate) fn kind(&self) -> StreamKind {
        self.table.kind
    }

    /// Gaps between windows up to this are decoded rather than skipped.
    pub(crate) fn gap_bytes(&self) -> u64 {
        self.unpacking.gap_bytes()
    }

    /// The object, as users may see it.
    pub(crate) fn url(&self) -> &str {
        self.source.url()
    }

    /// All seek points known.
    pub(crate) fn table(&self) -> SeekTable {
        self.table.clone()
    }

    /// Whether the end of the data was never reached.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.table.raw_len.is_none()
    }

    /// Whether seek points were added since the last call.
    pub(crate) fn take_has_new_points(&mut self) -> bool {
        std::mem::take(&mut self.has_new_points)
    }

    /// Traffic of the storage since the last call.
    pub(crate) fn take_traffic(&mut self) -> Traffic {
        let mut traffic = std::mem::take(&mut self.traffic);
        traffic.add(self.source.take_traffic());
        traffic
    }

    /// Prepare to decode these windows, which ascend: the bytes they need of an object on a server
    /// are requested now, by a plan of their own.
    pub(crate) fn expect(
        &mut self,
        windows: &[Range<u64>],
        sharing: Sharing,
    ) -> Result<(), EngineError> {
        if self.source.is_local() {
            return Ok(());
        }
        if self.is_unfinished() && self.ahead.is_some() {
            // All the rest is on its way: it will be inflated to the end.
            return Ok(());
        }
        let ranges: Vec<Range<u64>> =
            windows.iter().map(|window| self.compressed_range(window)).collect();
        self.ahead = Some(Prefetch::start(&*self.source, &ranges, sharing, self.stored_byte_s()));
        Ok(())
    }

    /// Up to `max` bytes from `start`; fewer only at the end of the data.
    pub(crate) fn peek(
        &mut self,
        start: u64,
        max: usize,
        cancel: &Cancel,
    ) -> Result<Vec<u8>, EngineError> {
        let mut bytes = Vec::new();
        let end = start.saturating_add(max as u64);
        self.stream(start..end, cancel, &mut |_, piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Hand on the bytes of `range` in ascending pieces; returns where the data ended if that was
    /// before the end of the range.
    pub(crate) fn stream(
        &mut self,
        range: Range<u64>,
        cancel: &Cancel,
        sink: &mut PieceReceiver<'_>,
    ) -> Result<Option<u64>, EngineError> {
        let mut at = range.start;
        while at < range.end {
            if !self.holds(at) {
                self.go_to(at, range.end, cancel)?;
                if !self.holds(at) {
                    return Ok(Some(self.chunk_end()));
                }
            }
            let first = (at - self.chunk_at) as usize;
            let last = (range.end.min(self.chunk_end()) - self.chunk_at) as usize;
            sink(at, &self.chunk[first..last])?;
            at = self.chunk_at + last as u64;
        }
        Ok(None)
    }

    /// Read a gzip stream to its end, so that all seek points are known and its checksums hold.
    pub(crate) fn finish(&mut self, cancel: &Cancel) -> Result<(), EngineError> {
        if self.table.raw_len.is_some() {
            return Ok(());
        }
        if let Some(damage) = &self.damage {
            return Err(stream_error(&*self.source, damage.clone()));
        }
        if !self.running.as_ref().is_some_and(|running| running.is_whole) && !self.take_up(u64::MAX)
        {
            self.running = Some(RunningDecoder::at(stream::start(self.table.kind, true), 0, true));
            (self.chunk_at, self.ahead) = (0, None);
            self.chunk.clear();
        }
        self.expect(&[self.chunk_end()..u64::MAX], Sharing::default())?;
        while self.advance(u64::MAX, cancel)? {}
        Ok(())
    }

    /// Length of the decompressed data, after [`StreamReader::finish`].
    pub(crate) fn content_len(&mut self, cancel: &Cancel) -> Result<u64, EngineError> {
        self.finish(cancel)?;
        Ok(self.table.raw_len.unwrap_or_else(|| self.chunk_end()))
    }

    /// Go on with the decoder that was laid aside, if it stands at or before an offset.
    fn take_up(&mut self, at: u64) -> bool {
        let Some((running, stands)) = self.aside.take_if(|(_, stands)| *stands <= at) else {
            return false;
        };
        (self.running, self.chunk_at) = (Some(running), stands);
        self.chunk.clear();
        true
    }

    fn chunk_end(&self) -> u64 {
        self.chunk_at + self.chunk.len() as u64
    }

    fn holds(&self, at: u64) -> bool {
        self.chunk_at <= at && at < self.chunk_end()
    }

    /// Make `chunk` hold the byte at `at`, unless the data ends before it. Bytes up to `end` will
    /// be needed, perhaps none beyond.
    fn go_to(&mut self, at: u64, end: u64, cancel: &Cancel) -> Result<(), EngineError> {
        if self.holds(at) {
            return Ok(());
        }
        let point = self.table.nearest(at);
        let jump = match (&self.running, point) {
            (Some(_), Some(point)) => {
                at < self.chunk_at || self.is_worth(point.raw, self.chunk_end())
            }
            (Some(_), None) => at < self.chunk_at,
            (None, _) => true,
        };
        if !jump {
            return self.reach(at, end, cancel);
        }
        let about = about(&self.name);
        let from = self.running.is_some().then(|| self.chunk_end());
        let point = point.map_or(0, |point| point.raw);
        // What begins at the beginning looks for nothing.
        let is_told = swathe_trace::is_on() && (from.is_some() || point > 0);
        if is_told {
            record_events(&["SEEK_START"], Instant::now(), &about, None, |record| {
                from.iter().for_each(|from| _ = record.number("FROM", *from));
                record.number("TO", at).number("POINT", point);
            });
        }
        let result = self.restart(at).and_then(|()| self.reach(at, end, cancel));
        if is_told {
            // A decoder that failed has no chunk left, so its position is unknown.
            let decoded_bytes = result.is_ok().then(|| self.chunk_end().saturating_sub(point));
            record_end(&["SEEK_END"], Instant::now(), &about, decoded_bytes, result.as_ref().err());
        }
        result
    }

    /// Decode on until `chunk` holds the byte at `at`.
    fn reach(&mut self, at: u64, end: u64, cancel: &Cancel) -> Result<(), EngineError> {
        while !self.holds(at) && self.advance(end, cancel)? {}
        Ok(())
    }

    fn restart(&mut self, at: u64) -> Result<(), EngineError> {
        if self.take_up(at) {
            return Ok(());
        }
        let first = self.table.raw_len.is_none();
        let (decoder, raw, next) = match self.table.nearest(at) {
            Some(point) => {
                let decoder = stream::resume(self.table.kind, point, first)
                    .map_err(|source| stream_error(&*self.source, source))?;
                (decoder, point.raw, point.compressed)
            }
            None => (stream::start(self.table.kind, first), 0, 0),
        };
        let stands = self.chunk_end();
        let mut new = RunningDecoder::at(decoder, next, next == 0 && self.aside.is_none());
        if let Some(mut old) = self.running.take() {
            let stays = first && old.is_whole && self.table.kind == StreamKind::Gzip;
            new.input = if stays { old.input.clone() } else { std::mem::take(&mut old.input) };
            // What was fetched beyond the new start is needed now: it would not come a second time.
            let start = old.next - new.input.len() as u64;
            if (start..old.next).contains(&next) {
                new.input.drain(..(next - start) as usize);
                new.next = old.next;
            } else {
                new.input.clear();
            }
            if stays {
                new.is_whole = false;
                self.aside = Some((old, stands));
            }
        }
        self.running = Some(new);
        self.chunk.clear();
        self.chunk_at = raw;
        Ok(())
    }

    /// Replace the chunk by the one that follows it, up to `end`; false at the end of the data.
    fn advance(&mut self, end: u64, cancel: &Cancel) -> Result<bool, EngineError> {
        cancel.check()?;
        let has_more = self.decode_chunk(end);
        if let Err(error) = &has_more {
            if let EngineError::Stream { source, .. } = error
                && self.running.as_ref().is_some_and(|running| running.is_whole)
            {
                self.damage = Some(source.clone());
            }
            self.ahead = None;
            self.running = None;
            self.chunk.clear();
        }
        has_more
    }

    fn decode_chunk(&mut self, end: u64) -> Result<bool, EngineError> {
        let Some(running) = &mut self.running else { return Ok(false) };
        if running.is_over {
            return Ok(false);
        }
        self.chunk_at += self.chunk.len() as u64;
        let length = end.saturating_sub(self.chunk_at).clamp(1, OUTPUT_BYTES as u64) as usize;
        self.chunk.resize(length, 0);
        let mut count = 0;
        while count < length && !running.is_over {
            let last = running.next >= self.source.len();
            let step = running
                .decoder
                .decode(&running.input[running.input_at..], last, &mut self.chunk[count..])
                .map_err(|source| stream_error(&*self.source, source))?;
            running.input_at += step.input_bytes;
            count += step.output_bytes;
            running.is_over = step.end;
            let needs_input = running.input_at == running.input.len();
            if step.input_bytes == 0 && step.output_bytes == 0 && !step.end && !needs_input && last
            {
                return Err(EngineError::Internal {
                    place: format!("inflating {}", self.source.url()),
                    message: format!("no progress at byte {}", self.chunk_at + count as u64),
                });
            }
            if !step.end
                && !last
                && (needs_input || (step.input_bytes == 0 && step.output_bytes == 0))
            {
                let bytes = running.fetch(&*self.source, self.ahead.as_mut())?;
                if self.source.is_local() {
                    self.traffic.add(Traffic { bytes, requests: 1, ..Traffic::default() });
                }
            }
        }
        self.chunk.truncate(count);
        let points = running.decoder.take_points();
        let (is_over, is_whole) = (running.is_over, running.is_whole);
        if self.table.raw_len.is_none() {
            self.has_new_points |= !points.is_empty() || is_over;
            self.table.extend(points);
            if is_over && (is_whole || self.table.kind != StreamKind::Gzip) {
                self.table.raw_len = Some(self.chunk_end());
            }
        }
        Ok(count > 0)
    }
}

impl RunningDecoder {
    fn at(decoder: Box<dyn Decoder>, next: u64, is_whole: bool) -> RunningDecoder {
        RunningDecoder { decoder, input: Vec::new(), input_at: 0, next, is_over: false, is_whole }
    }

    /// Fetch the compressed bytes that follow; returns how many.
    fn fetch(
        &mut self,
        source: &dyn Source,
        ahead: Option<&mut Prefetch>,
    ) -> Result<u64, EngineError> {
        // A decoder may have begun a block that a restart will enter.
        let tail_bytes = if source.is_local() { 0 } else { LOOK_BACK_BYTES };
        let spent_bytes = self.input_at.saturating_sub(tail_bytes);
        self.input.drain(..spent_bytes);
        self.input_at -= spent_bytes;
        let tail = self.input.len();
        if let Some(piece) = ahead.and_then(|ahead| ahead.take(self.next)).transpose()? {
            self.input.extend_from_slice(&piece);
        } else {
            let first = source.first().len() as u64;
            // The bytes that came with opening are in memory already.
            let end = if self.next < first { first } else { self.next + INPUT_BYTES as u64 };
            let more = (end.min(source.len()) - self.next) as usize;
            self.input.resize(tail + more, 0);
            source.read_exact_at(self.next, &mut self.input[tail..])?;
        }
        let more = (self.input.len() - tail) as u64;
        self.next += more;
        Ok(more)
    }
}

fn stream_error(source: &dyn Source, error: StreamError) -> EngineError {
    EngineError::Stream { url: source.url().to_string(), source: error }
}
