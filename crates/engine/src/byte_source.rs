//! The decompressed bytes of an object, from any store and any compression.

use crate::decoded_cache::{self, BLOCK_BYTES, DecodedCache, Piece};
use crate::error::EngineError;
use crate::inflate::{OUTPUT_BYTES, StreamReader};
use crate::requests::{ReadRequests, current_costs, local_cap_bytes, local_plan, remote_requests};
use crate::timing::PlanNote;
use crate::worker_context::{Cancel, PieceReceiver, ReadContext};
use bytes::Bytes;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use swathe_plan::{Break, Reach, windows};
use swathe_store_api::{Source, Traffic};

/// How segments will be read.
pub(crate) struct ReadPlan {
    requests: ReadRequests,
    at: Break,
}

impl ReadPlan {
    /// The fields of its event.
    pub(crate) fn note(&self) -> PlanNote {
        let ReadRequests { load, seconds, factors, .. } = self.requests;
        PlanNote { load, seconds, factors }
    }
}

/// The bytes of an object after any whole-file decompression.
pub(crate) enum ByteSource {
    /// As stored.
    Plain(Arc<dyn Source>),
    /// Inside a gzip, bzip2 or compress stream.
    Stream(Box<Mutex<StreamReader>>),
}

impl ByteSource {
    /// The reader inside a stream.
    pub(crate) fn stream_reader(&self) -> Option<MutexGuard<'_, StreamReader>> {
        match self {
            ByteSource::Plain(_) => None,
            ByteSource::Stream(reader) => Some(lock(reader)),
        }
    }

    /// Length in bytes, if it is known before the bytes are read.
    pub(crate) fn len(&self) -> Option<u64> {
        match self {
            ByteSource::Plain(source) => Some(source.len()),
            ByteSource::Stream(_) => None,
        }
    }

    /// Check that a chunk that was not there is still not there.
    pub(crate) fn confirm_absence(&self) -> Result<(), EngineError> {
        match self {
            ByteSource::Plain(source) => Ok(source.confirm_absence()?),
            ByteSource::Stream(_) => Ok(()),
        }
    }

    /// Gaps up to this are read through in any case, so that the bytes
    /// on both sides need not be told apart.
    pub(crate) fn gap_bytes(&self) -> u64 {
        match self {
            ByteSource::Plain(source) => current_costs(&**source).0.single_gap().unwrap_or(0),
            ByteSource::Stream(reader) => lock(reader).gap_bytes(),
        }
    }

    /// Up to `max` bytes from `start`; fewer only at the end of the object.
    pub(crate) fn peek(
        &self,
        start: u64,
        max: usize,
        cancel: &Cancel,
    ) -> Result<Bytes, EngineError> {
        match self {
            ByteSource::Plain(source) => {
                let start = start.min(source.len());
                let end = source.len().min(start.saturating_add(max as u64));
                let mut bytes = vec![0; (end - start) as usize];
                source.read_exact_at(start, &mut bytes)?;
                Ok(bytes.into())
            }
            ByteSource::Stream(reader) => Ok(lock(reader).peek(start, max, cancel)?.into()),
        }
    }

    /// Decide how to read segments, sorted by start. With [`Break::BetweenSegments`] no segment
    /// will be spread over two pieces.
    pub(crate) fn plan(
        &self,
        segments: &[Range<u64>],
        at: Break,
        what: &dyn Fn() -> String,
        reading: &ReadContext,
    ) -> Result<ReadPlan, EngineError> {
        let requests = match self {
            ByteSource::Plain(source) => {
                check_end(&**source, segments, what)?;
                if source.is_local() {
                    local_plan(&**source, segments, local_cap_bytes(&**source), at).into()
                } else {
                    remote_requests(&**source, segments, reading.sharing, at, 0.0)
                }
            }
            ByteSource::Stream(_) => {
                let (gap_bytes, cap_bytes) = (self.gap_bytes(), OUTPUT_BYTES as u64);
                ReadRequests::of_one_thread(windows(segments, Reach { gap_bytes, cap_bytes }, at))
            }
        };
        Ok(ReadPlan { requests, at })
    }

    /// Read as planned; each piece goes to `sink` in ascending order.
    pub(crate) fn read(
        &self,
        ReadPlan { requests, at }: ReadPlan,
        what: &dyn Fn() -> String,
        reading: &mut ReadContext,
        sink: &mut PieceReceiver<'_>,
    ) -> Result<(), EngineError> {
        match self {
            ByteSource::Plain(source) if source.is_local() => {
                read_local(&**source, requests, reading, sink)
            }
            ByteSource::Plain(source) => read_remote(&**source, requests, reading, sink),
            ByteSource::Stream(reader) => {
                let windows = requests.ranges;
                let mut reader = lock(reader);
                let is_whole = at == Break::BetweenSegments;
                let result = match &reading.memory {
                    Some(memory) if decoded_cache::takes_blocks_of(&windows) => {
                        read_windows(&mut reader, &windows, is_whole, memory, what, reading, sink)
                    }
                    _ => {
                        reader.expect(&windows, reading.sharing)?;
                        read_stream(&mut reader, &windows, is_whole, what, &reading.cancel, sink)
                    }
                };
                reading.add(reader.take_traffic());
                result
            }
        }
    }
}

fn lock(reader: &Mutex<StreamReader>) -> MutexGuard<'_, StreamReader> {
    // A reader left by a panicking thread restarts at a seek point, as after any error.
    reader.lock().unwrap_or_else(PoisonError::into_inner)
}

fn check_end(
    source: &dyn Source,
    segments: &[Range<u64>],
    what: &dyn Fn() -> String,
) -> Result<(), EngineError> {
    match segments.iter().find(|segment| segment.end > source.len()) {
        Some(segment) => Err(truncation(source.url(), what(), source.len(), segment)),
        None => Ok(()),
    }
}

fn truncation(url: &str, what: String, end: u64, window: &Range<u64>) -> EngineError {
    EngineError::Truncated {
        url: url.to_string(),
        what,
        end,
        start: window.start,
        stop: window.end,
    }
}

fn read_local(
    source: &dyn Source,
    ReadRequests { ranges, load, .. }: ReadRequests,
    reading: &mut ReadContext,
    sink: &mut PieceReceiver<'_>,
) -> Result<(), EngineError> {
    reading.add(Traffic { bytes: load.bytes, requests: load.requests, ..Traffic::default() });
    let ReadContext { scratch, cancel, .. } = reading;
    if scratch.len() < load.largest as usize {
        scratch.resize(load.largest as usize, 0);
    }
    for range in ranges {
        cancel.check()?;
        let piece = &mut scratch[..(range.end - range.start) as usize];
        source.read_exact_at(range.start, piece)?;
        sink(range.start, piece)?;
    }
    Ok(())
}

fn read_remote(
    source: &dyn Source,
    requests: ReadRequests,
    reading: &mut ReadContext,
    sink: &mut PieceReceiver<'_>,
) -> Result<(), EngineError> {
    let starts: Vec<u64> = requests.ranges.iter().map(|range| range.start).collect();
    let result = starts.into_iter().zip(requests.fetch(source)).try_for_each(|(at, piece)| {
        reading.cancel.check()?;
        sink(at, &piece?)
    });
    reading.add(source.take_traffic());
    result
}

/// Read from blocks of the stream; those in memory are not decoded again.
fn read_windows(
    reader: &mut StreamReader,
    windows: &[Range<u64>],
    is_whole: bool,
    memory: &DecodedCache,
    what: &dyn Fn() -> String,
    reading: &ReadContext,
    sink: &mut PieceReceiver<'_>,
) -> Result<(), EngineError> {
    let mut missing: Vec<u64> = windows.iter().flat_map(decoded_cache::blocks_of).collect();
    missing.dedup();
    missing.retain(|&number| memory.get(Piece::Block(number)).is_none());
    if !missing.is_empty() {
        let missing: Vec<Range<u64>> = missing.into_iter().map(decoded_cache::range_of).collect();
        reader.expect(&missing, reading.sharing)?;
    }
    let mut last: Option<(u64, Arc<[u8]>)> = None;
    let mut buffer = Vec::new();
    for (index, window) in windows.iter().enumerate() {
        buffer.clear();
        for number in decoded_cache::blocks_of(window) {
            let latest =
                last.take().filter(|(latest, _)| *latest == number).map(|(_, block)| block);
            let start = decoded_cache::range_of(number).start;
            let block = match latest.or_else(|| memory.get(Piece::Block(number))) {
                Some(block) => block,
                None => match reader.peek(start, BLOCK_BYTES as usize, &reading.cancel) {
                    Ok(bytes) => memory.put(Piece::Block(number), &bytes),
                    Err(EngineError::Interrupted) => return Err(EngineError::Interrupted),
                    // If a block is damaged further on, the part that is needed may still be right.
                    Err(_) => {
                        let mut rest = windows[index..].to_vec();
                        if !is_whole {
                            // What lies before was handed on.
                            rest[0].start = window.start.max(start);
                        }
                        return read_stream(reader, &rest, is_whole, what, &reading.cancel, sink);
                    }
                },
            };
            let end = start + block.len() as u64;
            let (from, to) = (window.start.max(start), window.end.min(start + BLOCK_BYTES));
            if end < to {
                return Err(truncation(reader.url(), what(), end, window));
            }
            let piece = &block[(from - start) as usize..(to - start) as usize];
            if is_whole && window.end - window.start > piece.len() as u64 {
                buffer.extend_from_slice(piece);
            } else {
                sink(from, piece)?;
            }
            last = Some((number, block));
        }
        if !buffer.is_empty() {
            sink(window.start, &buffer)?;
        }
    }
    Ok(())
}

fn read_stream(
    reader: &mut StreamReader,
    windows: &[Range<u64>],
    is_whole: bool,
    what: &dyn Fn() -> String,
    cancel: &Cancel,
    sink: &mut PieceReceiver<'_>,
) -> Result<(), EngineError> {
    let mut buffer = Vec::new();
    for window in windows {
        buffer.clear();
        let data_end = reader.stream(window.clone(), cancel, &mut |offset, piece| {
            let complete = piece.len() as u64 == window.end - window.start;
            if is_whole && !complete {
                buffer.extend_from_slice(piece);
                return Ok(());
            }
            sink(offset, piece)
        })?;
        if let Some(end) = data_end {
            return Err(truncation(reader.url(), what(), end, window));
        }
        if !buffer.is_empty() {
            sink(window.start, &buffer)?;
        }
    }
    Ok(())
}
