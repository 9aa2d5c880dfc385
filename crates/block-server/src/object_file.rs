//! Objects that are read: no byte leaves before its block was verified, if it has checksums.

use crate::block_sums::{BLOCK_BYTES, BlockSums, whole_blocks};
use crate::disk::{Disk, ObjectStatus};
use crate::error::RequestError;
use crate::object_path::ObjectPath;
use crate::request_record::WorkRecord;
use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::fs::OFlags;
use rustix::io::{Errno, pread, retry_on_intr};
use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes that are read at a time: memory is this for each thread of a disk, and three times this
/// for each answer.
pub(crate) const PIECE_BYTES: usize = 512 << 10;
/// Times that an object is opened again because another took its place meanwhile.
const ATTEMPTS: usize = 8;

/// An object that is open.
#[derive(Debug)]
pub(crate) struct ObjectFile {
    file: File,
    path: ObjectPath,
    disk: Arc<Disk>,
    pub(crate) status: ObjectStatus,
    sums: Option<BlockSums>,
}

/// What a path leads to.
#[derive(Debug)]
pub(crate) enum Target {
    Object(Box<ObjectFile>),
    Folder,
}

impl ObjectFile {
    /// Open what a path leads to; `None`: nothing, or neither a file nor a folder.
    pub(crate) fn open(
        disk: &Arc<Disk>,
        path: &ObjectPath,
    ) -> Result<Option<Target>, RequestError> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            // A pipe that nobody writes to does not hang.
            let Some(file) = disk.open(path, OFlags::RDONLY | OFlags::NONBLOCK)? else {
                return Ok(None);
            };
            let file = File::from(file);
            let metadata = file.metadata().map_err(|error| disk.fail(path, error))?;
            if metadata.is_dir() {
                return Ok(Some(Target::Folder));
            }
            if !metadata.is_file() {
                return Ok(None);
            }
            let status = ObjectStatus::of(&metadata);
            let sums = disk.open_sums(path, status.id)?;
            // Without checksums this may be an object that was just replaced, with its checksums.
            let is_sure = sums.is_some() || last == Some(status.id);
            last = Some(status.id);
            if is_sure {
                let (path, disk) = (path.clone(), disk.clone());
                return Ok(Some(Target::Object(Box::new(ObjectFile {
                    file,
                    path,
                    disk,
                    status,
                    sums,
                }))));
            }
        }
        let text = format!("{path}: it is replaced all the time");
        Err(RequestError::refuse(hyper::StatusCode::SERVICE_UNAVAILABLE, text))
    }

    /// Whether its bytes are verified.
    pub(crate) fn is_verified(&self) -> bool {
        self.sums.is_some()
    }

    /// CRC-32 of all that was written, by the checksums of its blocks; `None` if it has none.
    pub(crate) fn crc32(&self) -> Result<Option<u32>, RequestError> {
        let Some(sums) = &self.sums else { return Ok(None) };
        let crc = sums.crc32(self.status.id.size);
        crc.map(Some).map_err(|error| self.disk.sums_error(&self.path, error))
    }

    fn read_blocks(&self, range: &Range<u64>) -> Result<Vec<u8>, RequestError> {
        let length = (range.end - range.start) as usize;
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let at = range.start + bytes.len() as u64;
            let result = retry_on_intr(|| pread(&self.file, spare_capacity(&mut bytes), at));
            if result.map_err(|error: Errno| self.disk.fail(&self.path, error.into()))? == 0 {
                return Err(RequestError::Damaged {
                    path: self.path.to_string(),
                    disk: self.disk.name.clone(),
                    byte: at,
                    expected: format!("an object of {} bytes", self.status.id.size),
                    found: "its end".into(),
                });
            }
        }
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Read a range, of at most a piece.
    fn read(&self, range: Range<u64>, record: &WorkRecord) -> Result<Bytes, RequestError> {
        let size = self.status.id.size;
        let blocks = match &self.sums {
            Some(_) => whole_blocks(&range, size),
            None => range.clone(),
        };
        let length = (blocks.end - blocks.start) as usize;
        let bytes = record.read(&self.disk.name, length, || self.read_blocks(&blocks))?;
        if let Some(sums) = &self.sums {
            let check = || sums.check(blocks.start / BLOCK_BYTES as u64, &bytes);
            let result = record.verify(length, check);
            result.map_err(|error| self.disk.sums_error(&self.path, error))?;
        }
        self.disk.counts.read_bytes.fetch_add(length as u64, Ordering::Relaxed);
        let start = (range.start - blocks.start) as usize;
        Ok(Bytes::from(bytes).slice(start..start + (range.end - range.start) as usize))
    }
}

/// A part of an answer.
#[derive(Debug)]
pub(crate) enum Segment {
    Text(String),
    Range(Range<u64>),
}

impl Segment {
    pub(crate) fn length(&self) -> u64 {
        match self {
            Segment::Text(text) => text.len() as u64,
            Segment::Range(range) => range.end - range.start,
        }
    }
}

/// An answer that is being read, piece by piece.
#[derive(Debug)]
pub(crate) struct Reading {
    object: ObjectFile,
    segments: VecDeque<Segment>,
    record: Arc<WorkRecord>,
}

impl Reading {
    /// Read segments of an object for a request. Ranges are not empty.
    pub(crate) fn new(
        object: ObjectFile,
        segments: Vec<Segment>,
        record: &Arc<WorkRecord>,
    ) -> Reading {
        Reading { object, segments: segments.into(), record: record.clone() }
    }

    /// Whether all has been read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.segments.is_empty()
    }

    /// Read the next piece; it is empty at the end only.
    pub(crate) fn next_piece(&mut self) -> Result<Bytes, RequestError> {
        let mut piece = Vec::new();
        while let Some(segment) = self.segments.front_mut() {
            let room = PIECE_BYTES.saturating_sub(piece.len());
            match segment {
                Segment::Text(text) if text.len() <= room => {
                    piece.extend_from_slice(text.as_bytes());
                    self.segments.pop_front();
                }
                Segment::Range(_) if room >= BLOCK_BYTES => {
                    let ranges = take_run(&mut self.segments, room as u64);
                    let Some(start) = ranges.first().map(|range| range.start) else { break };
                    let end = ranges.last().map_or(start, |range| range.end);
                    let bytes = self.object.read(start..end, &self.record)?;
                    // Uncopied, where that is all.
                    if ranges.len() == 1
                        && piece.is_empty()
                        && (self.segments.is_empty() || bytes.len() > PIECE_BYTES / 2)
                    {
                        return Ok(bytes);
                    }
                    for range in ranges {
                        let inside = (range.start - start) as usize..(range.end - start) as usize;
                        piece.extend_from_slice(&bytes[inside]);
                    }
                }
                _ => break,
            }
        }
        Ok(piece.into())
    }
}

/// Take the ranges that are read at once: the next one, or `most` bytes of it, and those that follow as
/// long as their blocks do. So the rows of a cut are one read.
fn take_run(segments: &mut VecDeque<Segment>, most: u64) -> Vec<Range<u64>> {
    let block = |at: u64| at / BLOCK_BYTES as u64;
    let mut run: Vec<Range<u64>> = Vec::new();
    while let Some(Segment::Range(next)) = segments.front_mut() {
        match (run.first(), run.last()) {
            (Some(first), Some(last)) => {
                let follows =
                    last.end <= next.start && block(next.start) <= block(last.end - 1) + 1;
                if !follows || next.end - first.start > most {
                    break;
                }
                run.push(next.clone());
            }
            _ => {
                let range = next.start..end_within(next, most);
                run.push(range.clone());
                if range.end < next.end {
                    next.start = range.end;
                    break;
                }
            }
        }
        segments.pop_front();
    }
    run
}

/// The end of the first bytes of a range: of a block, so that none is read twice.
fn end_within(range: &Range<u64>, most: u64) -> u64 {
    match range.end - range.start > most {
        true => (range.start + most) / BLOCK_BYTES as u64 * BLOCK_BYTES as u64,
        false => range.end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_of_a_cut_are_one_read_and_far_ranges_are_not() {
        let row = |number: u64| Segment::Range(4096 * number + 100..4096 * number + 300);
        let mut segments: VecDeque<Segment> = [0, 1, 2, 3, 50, 51].map(row).into();
        assert_eq!(take_run(&mut segments, 1 << 20).len(), 4);
        assert_eq!(take_run(&mut segments, 1 << 20), [204_900..205_100, 208_996..209_196]);
        assert!(segments.is_empty());
    }

    proptest! {
        #[test]
        fn ranges_are_read_in_blocks(start in 0u64..100_000, length in 1u64..100_000, most in 4096u64..20_000) {
            let range = start..start + length;
            let end = end_within(&range, most);
            prop_assert!(end > start && end <= range.end && end - start <= most);
            prop_assert!(end == range.end || end.is_multiple_of(4096));
        }

        #[test]
        fn runs_are_all_ranges_in_order_and_read_no_other_block(
            ranges in prop::collection::vec((0u64..60_000, 1u64..12_000), 1..20),
            most in 4096u64..100_000,
        ) {
            let ranges: Vec<_> = ranges.into_iter().map(|(start, length)| start..start + length).collect();
            let block = |at: u64| at / 4096;
            let mut segments: VecDeque<_> =
                    ranges.iter().cloned().map(Segment::Range).collect();
            let mut runs = Vec::new();
            while !segments.is_empty() {
                let run = take_run(&mut segments, most);
                prop_assert!(run[run.len() - 1].end - run[0].start <= most);
                for pair in run.windows(2) {
                    prop_assert!(pair[0].end <= pair[1].start);
                    prop_assert!(block(pair[1].start) <= block(pair[0].end - 1) + 1);
                }
                runs.extend(run);
            }
            let bytes = |ranges: Vec<Range<u64>>| ranges.into_iter().flatten().collect::<Vec<u64>>();
            prop_assert!(bytes(runs) == bytes(ranges));
        }
    }
}
