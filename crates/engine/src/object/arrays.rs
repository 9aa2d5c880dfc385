//! Arrays of an object that is not FITS.

use super::{Object, lock};
use crate::error::EngineError;
use crate::folder::member_names;
use crate::part::Part;
use crate::selector::Selector;
use crate::template::{Head, Template};
use crate::worker_context::{Cancel, ReadContext};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use swathe_chunk_index::{Array, ArrayStorage, ChunkIndex};
use swathe_plan::Break;
use swathe_store_api::Traffic;

/// Of a file on a disk of this host.
const LOCAL_BLOCK_BYTES: u64 = 16 << 10;
/// Others are read in blocks of at least this size,
const LEAST_BLOCK_BYTES: u64 = 64 << 10;
/// and at most this.
const MOST_BLOCK_BYTES: u64 = 4 << 20;

impl Object {
    /// Bytes of the (decompressed) object; fewer than `length` only at its end.
    ///
    /// # Errors
    /// If they cannot be read, or the stream they lie in is damaged.
    pub fn read_at(&self, at: u64, length: usize, cancel: &Cancel) -> Result<Bytes, EngineError> {
        let first = self.first();
        match at.checked_add(length as u64) {
            Some(end) if end <= first.len() as u64 => Ok(first.slice(at as usize..end as usize)),
            _ => {
                let bytes = self.content.peek(at, length, cancel)?;
                if self.is_local() && self.kind.is_none() {
                    // Servers and streams count for themselves.
                    let size = bytes.len() as u64;
                    self.count(Traffic { bytes: size, requests: 1, ..Traffic::default() });
                }
                Ok(bytes)
            }
        }
    }

    /// The bytes of ranges of the (decompressed) object, which ascend and do not overlap, in the
    /// requests that cost least.
    ///
    /// # Errors
    /// If they cannot be read, end after the object, or the stream they lie in is damaged.
    pub fn read_ranges(
        &self,
        ranges: &[Range<u64>],
        cancel: &Cancel,
    ) -> Result<Vec<Vec<u8>>, EngineError> {
        let mut reading = ReadContext { cancel: cancel.clone(), ..ReadContext::default() };
        let what = || "what describes its arrays".to_string();
        let plan = self.content.plan(ranges, Break::BetweenSegments, &what, &reading)?;
        let mut parts = Vec::with_capacity(ranges.len());
        let result = self.content.read(plan, &what, &mut reading, &mut |at, piece| {
            let end = at + piece.len() as u64;
            let is_in = |range: &&Range<u64>| at <= range.start && range.end <= end;
            while let Some(range) = ranges.get(parts.len()).filter(is_in) {
                let part = (range.start - at) as usize..(range.end - at) as usize;
                parts.push(piece[part].to_vec());
            }
            Ok(())
        });
        self.count(reading.traffic);
        result?;
        if parts.len() < ranges.len() {
            let (place, message) = ("reading ranges".into(), "expected them in order".into());
            return Err(EngineError::Internal { place, message });
        }
        Ok(parts)
    }

    /// The first bytes of the (decompressed) object that are in memory since it was opened.
    pub fn first(&self) -> Bytes {
        if self.kind.is_none() { self.source.first() } else { Bytes::new() }
    }

    /// Whether it is a file of FITS, as far as that is known without a read.
    pub fn is_fits(&self) -> Option<bool> {
        if !lock(&self.walk).hdus.is_empty() {
            return Some(true);
        }
        match self.chunk_index() {
            Some(_) => Some(false),
            None => self.begins_as_fits,
        }
    }

    /// Bytes of the decompressed object. A stream is read to its end to find them.
    ///
    /// # Errors
    /// As [`Object::settle`].
    pub fn content_len(&self, cancel: &Cancel) -> Result<u64, EngineError> {
        match (self.content.len(), self.content.stream_reader()) {
            (Some(length), _) => Ok(length),
            (None, Some(mut reader)) => reader.content_len(cancel),
            (None, None) => Ok(self.size()),
        }
    }

    /// Bytes that are best read at once by a reader that asks for few: as many as take the time of
    /// a request.
    pub fn block_bytes(&self) -> u64 {
        if self.is_local() && self.kind.is_none() {
            return LOCAL_BLOCK_BYTES;
        }
        self.content.gap_bytes().clamp(LEAST_BLOCK_BYTES, MOST_BLOCK_BYTES).next_power_of_two()
    }

    /// Its arrays, if they are known.
    pub fn chunk_index(&self) -> Option<Arc<ChunkIndex>> {
        lock(&self.chunks).clone()
    }

    /// Take what its format's library said of its arrays, and keep it.
    ///
    /// # Errors
    /// [`EngineError::ChunkIndex`] if that cannot be.
    pub fn set_chunk_index(&self, bytes: &[u8]) -> Result<Arc<ChunkIndex>, EngineError> {
        let index = ChunkIndex::parse(bytes.into())
            .map_err(|source| EngineError::ChunkIndex { url: self.url().to_string(), source })?;
        let index = Arc::new(index);
        *lock(&self.chunks) = Some(index.clone());
        lock(&self.walk).has_news = true;
        self.settle(&Cancel::default())?;
        Ok(index)
    }

    /// The members of a folder of a server, if it can be read again without being listed: with all
    /// chunks of its arrays, so that none can be added unnoticed.
    pub(super) fn members_to_keep(&self) -> Option<serde_bytes::ByteBuf> {
        let is_whole = |array: &Array| match &array.storage {
            ArrayStorage::Object(layout) => layout.is_whole(),
            ArrayStorage::Index | ArrayStorage::Refused { .. } => true,
            ArrayStorage::Library { .. } => false,
        };
        let index = self.chunk_index()?;
        let keeps = self.can_be_assumed() && index.arrays().iter().all(is_whole);
        let members = keeps.then(|| self.source.members()).flatten()?;
        Some(members.to_vec().into())
    }

    /// The members of a folder, as it was opened, whose names begin with a prefix; none of another object.
    pub fn member_names(&self, prefix: &str) -> Vec<String> {
        self.source.members().map(|table| member_names(table, prefix)).unwrap_or_default()
    }

    /// The template to cut from an array, by its path; by default the only one with a plane.
    pub(super) fn array_template(
        &self,
        index: &ChunkIndex,
        path: &str,
    ) -> Result<Arc<Template>, EngineError> {
        let key = Selector::Array(path.to_string());
        if let Some(template) = lock(&self.templates).get(&key) {
            return Ok(template.clone());
        }
        let wrong = |why: String| EngineError::NoArray {
            url: self.url().to_string(),
            path: path.to_string(),
            why,
        };
        let number = match path {
            "" => only_array(index),
            path => index.find(path),
        };
        let number = number.ok_or_else(|| wrong(paths(index)))?;
        let array = &index.arrays()[number];
        let layout = match &array.storage {
            ArrayStorage::Object(layout) => layout.clone(),
            ArrayStorage::Index => return Err(wrong("it lies in the index".into())),
            ArrayStorage::Library { why } | ArrayStorage::Refused { why } => {
                return Err(wrong(why.clone()));
            }
        };
        let template = Arc::new(Template {
            url: self.url().to_string(),
            name: self.display_name().to_string(),
            version: self.version(),
            part: Part::array(number, &array.path),
            layout,
            plane: array.plane,
            content_len: self.content.len(),
            is_folder: self.source.members().is_some(),
            head: Head::Npy { dtype: array.dtype.clone(), fill: array.fill.clone() },
        });
        lock(&self.templates).insert(key, template.clone());
        Ok(template)
    }
}

/// The only array with a plane.
fn only_array(index: &ChunkIndex) -> Option<usize> {
    let has_plane = |array: &Array| match &array.storage {
        ArrayStorage::Object(layout) => layout.shape.len() > 1,
        _ => false,
    };
    let arrays = index.arrays().iter().enumerate();
    let mut planes = arrays.filter(|(_, array)| has_plane(array)).map(|(number, _)| number);
    planes.next().filter(|_| planes.next().is_none())
}

/// The first of the arrays that there are.
fn paths(index: &ChunkIndex) -> String {
    const MOST_PATHS: usize = 12;
    let mut paths: Vec<&str> =
        index.arrays().iter().take(MOST_PATHS).map(|array| &*array.path).collect();
    if index.arrays().len() > MOST_PATHS {
        paths.push("...");
    }
    if paths.is_empty() {
        "there is none".into()
    } else {
        format!("there are {}", paths.join(", "))
    }
}
