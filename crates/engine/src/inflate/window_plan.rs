//! What windows of a stream need: which compressed bytes, where to start, how much to decode.

use super::StreamReader;
use crate::decoded_cache::BLOCK_BYTES;
use crate::error::EngineError;
use crate::worker_context::Cancel;
use std::ops::Range;
use std::time::Instant;
use swathe_codecs::stream::StreamKind;
use swathe_plan::Compute;

/// The costs of decoding a stream on this host.
#[derive(Clone, Copy)]
pub(crate) struct Unpacking {
    kind: StreamKind,
    /// Seconds for each byte decompressed.
    pub byte_s: f64,
    /// The same, while seek points are recorded on the way.
    pub first_byte_s: f64,
    /// Starting at a seek point.
    pub restart_s: f64,
}

impl Unpacking {
    pub(crate) fn of(kind: StreamKind, compute: &Compute) -> Unpacking {
        let &Compute { gzip_byte_s, gzip_first_byte_s, bzip2_byte_s, restart_s, .. } = compute;
        let (byte_s, first_byte_s) = match kind {
            StreamKind::Bzip2 => (bzip2_byte_s, bzip2_byte_s),
            StreamKind::Gzip | StreamKind::Compress => (gzip_byte_s, gzip_first_byte_s),
        };
        Unpacking { kind, byte_s, first_byte_s, restart_s }
    }

    /// Decompressed bytes between windows that are decoded rather than skipped, so that both are
    /// handed on as one: in gzip those closer than starting at a seek point takes. In bzip2 whole
    /// blocks are decoded in any case, in compress everything is. Fewer than are cached together in
    /// memory, so that no block outside all windows is decoded.
    pub(crate) fn gap_bytes(&self) -> u64 {
        let skipping = match self.kind {
            StreamKind::Gzip => (self.restart_s / self.byte_s) as u64,
            StreamKind::Bzip2 | StreamKind::Compress => u64::MAX,
        };
        skipping.min(BLOCK_BYTES - 1)
    }
}

/// The bytes to read and to inflate for some windows.
pub(crate) struct Stretch {
    /// Compressed ranges, ascending.
    pub ranges: Vec<Range<u64>>,
    /// Bytes that are decompressed.
    pub raw: u64,
    /// How often decoding starts at a seek point.
    pub restarts: u64,
    /// Whether it is the first time, so that all is.
    pub first: bool,
}

impl StreamReader {
    /// The stretch for these windows, sorted by start. `end`: of the decompressed data, if
    /// its headers state it.
    pub(crate) fn stretch(&self, windows: &[Range<u64>], end: u64) -> Stretch {
        let first = self.is_unfinished();
        if first {
            let last = windows.iter().map(|window| window.end).max().unwrap_or(0);
            let size = self.source.len();
            return Stretch { ranges: vec![0..size], raw: end.max(last), restarts: 0, first };
        }
        let (mut raw, mut restarts, mut at) = (0, 0, None);
        for window in windows {
            let point = self.table.nearest(window.start).map_or(0, |point| point.raw);
            // From where the last window ended, unless a seek point is nearer.
            let stands = at.filter(|&at| !self.is_worth(point, at));
            restarts += u64::from(stands.is_none() && point > 0);
            raw += window.end.saturating_sub(stands.unwrap_or(point));
            at = at.max(Some(window.end));
        }
        let ranges = windows.iter().map(|window| self.compressed_range(window));
        // A file is read only as far as it is needed; that end lies between two points.
        let shorten = |(range, window): (Range<u64>, &Range<u64>)| {
            let last = self.table.nearest(window.end).map_or((0, 0), |p| (p.raw, p.compressed));
            let share = (window.end - last.0) as f64
                / (self.next_raw(window.end).saturating_sub(last.0)).max(1) as f64;
            let position = last.1 as f64 + share * range.end.saturating_sub(last.1) as f64;
            range.start..(position as u64).clamp(range.start, range.end)
        };
        let ranges = if self.source.is_local() {
            ranges.zip(windows).map(shorten).collect()
        } else {
            ranges.collect()
        };
        Stretch { ranges, raw, restarts, first }
    }

    /// Whether to start at a point rather than to decode from `at` to it.
    pub(super) fn is_worth(&self, point: u64, at: u64) -> bool {
        match self.table.kind {
            // Otherwise no block is decoded in vain.
            StreamKind::Bzip2 => self.next_raw(at) < point,
            StreamKind::Gzip | StreamKind::Compress => {
                point > at.saturating_add(self.unpacking.gap_bytes())
            }
        }
    }

    /// Seconds of decoding for each byte as stored, as far as is known.
    pub(crate) fn stored_byte_s(&self) -> f64 {
        let Unpacking { byte_s, first_byte_s, .. } = self.unpacking;
        let (raw, stored_bytes, byte_s) = match (self.table.raw_len, self.table.points.last()) {
            (Some(raw), _) => (raw, self.source.len(), byte_s),
            (None, Some(point)) => (point.raw, point.compressed, first_byte_s),
            (None, None) => (0, 0, first_byte_s),
        };
        byte_s * (raw as f64 / stored_bytes.max(1) as f64).max(1.0)
    }

    /// Seconds that starting at each seek point takes, its first byte included.
    pub(crate) fn measure_restarts(&mut self, cancel: &Cancel) -> Result<Vec<f64>, EngineError> {
        self.finish(cancel)?;
        let points: Vec<u64> = self.table.points.iter().map(|point| point.raw).collect();
        let measure = |at: u64| {
            let began = Instant::now();
            self.peek(at, 1, cancel)?;
            Ok(began.elapsed().as_secs_f64())
        };
        // Backwards: none is come to from the one before.
        points.into_iter().rev().map(measure).collect()
    }

    /// The first seek point at or after an offset, or the end, in the decompressed data.
    fn next_raw(&self, raw: u64) -> u64 {
        let index = self.table.points.partition_point(|point| point.raw < raw);
        self.table.points.get(index).map_or(self.table.raw_len.unwrap_or(raw), |point| point.raw)
    }

    /// The range of the object that a window needs.
    pub(super) fn compressed_range(&self, window: &Range<u64>) -> Range<u64> {
        let size = self.source.len();
        let point = self.table.nearest(window.start);
        let start = match (&self.running, point) {
            (Some(running), point)
                if self.chunk_at <= window.start
                    && point.is_none_or(|point| !self.is_worth(point.raw, self.chunk_end())) =>
            {
                running.next
            }
            (_, Some(point)) => point.compressed,
            (_, None) => 0,
        };
        let index = self.table.points.partition_point(|point| point.raw < window.end);
        let end = match self.table.points.get(index) {
            // Its first bits are the last of what lies before.
            Some(point) if !self.is_unfinished() => (point.compressed + 1).min(size),
            _ => size,
        };
        start.min(end)..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_decoded_while_that_is_sooner_than_to_start_anew() {
        let gap_bytes = |kind, restart_s| {
            let gzip_byte_s = 2f64.powi(-30);
            let compute = Compute { gzip_byte_s, restart_s, ..Compute::default() };
            Unpacking::of(kind, &compute).gap_bytes()
        };
        assert_eq!(gap_bytes(StreamKind::Gzip, 2f64.powi(-20)), 1024);
        assert_eq!(gap_bytes(StreamKind::Gzip, 0.0), 0);
        // Blocks of memory between windows stay undecoded, whatever else would be sooner.
        assert_eq!(gap_bytes(StreamKind::Gzip, 1.0), BLOCK_BYTES - 1);
        assert_eq!(gap_bytes(StreamKind::Bzip2, 0.0), BLOCK_BYTES - 1);
    }
}
