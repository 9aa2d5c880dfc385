//! One object that is written part after part, and verified when it has its name.

use bytes::Bytes;
use std::ops::Range;
use swathe_store_api::{Comparison, Failure, PartSums, Room, Sink, StoreError, Stores, Version};

/// Objects are moved in parts of this size: a bucket of Amazon's wants at least 5 MiB.
pub const PART_BYTES: u64 = 8 << 20;
/// Most parts of an object in a bucket: those of large objects are larger.
pub const MOST_PARTS: u64 = 10_000;
/// Parts of one object that are in memory when it is read back.
const STREAMS: u32 = 2;

/// An object that is being written. Dropped before it is finished, it leaves nothing behind that can
/// be seen.
pub struct ObjectWriter {
    stores: Stores,
    object: String,
    sink: Box<dyn Sink>,
    sums: PartSums,
    part_bytes: u64,
    bytes: u64,
}

impl ObjectWriter {
    /// Begin to write an object of `size` bytes in parts of `part_bytes`. A size of 0 is unknown if
    /// the store [`takes_any_size`](swathe_store_api::Store::takes_any_size), and if it comes
    /// `in_parts`.
    ///
    /// # Errors
    /// As [`Stores::create`].
    pub fn create(
        stores: &Stores,
        object: &str,
        size: u64,
        in_parts: bool,
        part_bytes: u64,
    ) -> Result<ObjectWriter, StoreError> {
        Ok(ObjectWriter::new(stores, object, stores.create(object, size, in_parts)?, part_bytes))
    }

    /// The same, in room that was reserved.
    ///
    /// # Errors
    /// As [`Stores::fill`].
    pub fn fill(
        stores: &Stores,
        object: &str,
        room: Box<dyn Room>,
        size: u64,
        part_bytes: u64,
    ) -> Result<ObjectWriter, StoreError> {
        let sink = stores.fill(object, room, size, size > part_bytes)?;
        Ok(ObjectWriter::new(stores, object, sink, part_bytes))
    }

    fn new(stores: &Stores, object: &str, sink: Box<dyn Sink>, part_bytes: u64) -> ObjectWriter {
        let (stores, object) = (stores.clone(), object.to_string());
        let sums = PartSums::new(sink.part_algorithm());
        ObjectWriter { stores, object, sink, sums, part_bytes, bytes: 0 }
    }

    /// Write the next part; all but the last have the same size.
    ///
    /// # Errors
    /// As [`Sink::write`].
    pub fn write(&mut self, part: Bytes) -> Result<(), Failure> {
        self.sums.add(&part);
        let bytes = part.len() as u64;
        self.sink.write(part)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Reserve room for `bytes` bytes in all.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] if the store cannot; else as [`Sink::reserve`].
    pub fn reserve(&mut self, bytes: u64) -> Result<(), StoreError> {
        if self.sink.reserve(bytes)? {
            return Ok(());
        }
        let url = self.stores.display_name(&self.object);
        Err(StoreError::Unsupported { url, why: "its store cannot reserve room".into() })
    }

    /// Give the object its name. It is not verified yet.
    ///
    /// # Errors
    /// As [`Sink::finish`].
    pub fn finish(self, replaces: bool) -> Result<UnverifiedObject, Failure> {
        let ObjectWriter { stores, object, sink, sums, part_bytes, bytes } = self;
        let comparison = sink.finish(&sums, part_bytes, replaces)?;
        Ok(UnverifiedObject { stores, object, sums, part_bytes, bytes, comparison })
    }
}

/// An object under its name, as yet not compared with what was written.
pub struct UnverifiedObject {
    stores: Stores,
    object: String,
    sums: PartSums,
    part_bytes: u64,
    bytes: u64,
    comparison: Comparison,
}

/// A verified object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedObject {
    /// The version it has.
    pub version: Version,
    /// Whether it was read back, as the store reports no checksum.
    pub read_back: bool,
    /// Warnings of its store, as when not all of its parts could be written.
    pub notes: Vec<String>,
}

impl UnverifiedObject {
    /// Compare the object with what was written: its length, and the checksums of its parts. One that
    /// differs is removed. `None` if `is_stopped` said so.
    ///
    /// # Errors
    /// [`StoreError::Differs`]; else as reading has it.
    pub fn verify(
        self,
        is_stopped: impl Fn() -> bool,
    ) -> Result<Option<VerifiedObject>, StoreError> {
        let source = self.stores.open(&self.object)?;
        let version = source.version().clone();
        if version.size != self.bytes {
            let (expected, found) = (format!("{} bytes", self.bytes), version.size.to_string());
            let url = source.url().to_string();
            let error = StoreError::Differs { url, expected, found };
            // What its sink compared before it had its name was replaced by another writer since.
            let is_compared = self.comparison != Comparison::Missing;
            return Err(if is_compared { error } else { self.refuse(error) });
        }
        let is_to_read = self.comparison == Comparison::Missing
            && self.sums.etag().is_none_or(|etag| version.tag.trim_matches('"') != etag);
        if is_to_read {
            let mut sums = self.sums.anew();
            // Short parts are read several at a time.
            let read_bytes = PART_BYTES.max(self.part_bytes) / self.part_bytes * self.part_bytes;
            for bytes in source.fetch(parts(self.bytes, read_bytes), STREAMS) {
                bytes?.chunks(self.part_bytes as usize).for_each(|part| sums.add(part));
                if is_stopped() {
                    return Ok(None);
                }
            }
            if let Err(error) = self.sums.check(source.url(), &sums, self.part_bytes) {
                return Err(self.refuse(error));
            }
        }
        let read_back = is_to_read || self.comparison == Comparison::ReadBack;
        Ok(Some(VerifiedObject { version, read_back, notes: source.take_notes() }))
    }

    fn refuse(&self, error: StoreError) -> StoreError {
        match self.stores.remove(&self.object) {
            Ok(()) => error,
            Err(also) => also,
        }
    }
}

/// The length of the parts that an object of this size is written to a bucket in.
pub fn part_bytes(size: u64) -> u64 {
    PART_BYTES.max(size.div_ceil(MOST_PARTS).next_multiple_of(1 << 20))
}

/// The parts of an object.
pub(crate) fn parts(size: u64, part_bytes: u64) -> Vec<Range<u64>> {
    let count = size.div_ceil(part_bytes);
    (0..count).map(|n| n * part_bytes..((n + 1) * part_bytes).min(size)).collect()
}
