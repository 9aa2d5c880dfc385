//! A run to read: the group that a run has written to a store.

use crate::fault::Fault;
use crate::known_stores::known_stores;
use crate::reader::open_fault;
use std::ops::Range;
use swathe_run::{ArrayMetadata, NODE, Sharding, shard_name, strides};
use swathe_store_api::{Source, Stores};

/// Bytes of the metadata of a group, at most.
const MOST_METADATA: u64 = 64 << 20;

/// A run that is open to be read by any number of threads.
pub(crate) struct RunReader {
    stores: Stores,
    folder: String,
    /// The metadata of the group.
    group: Vec<u8>,
}

impl RunReader {
    /// Open the group in a folder.
    pub(crate) fn open(folder: &str) -> Result<RunReader, Fault> {
        let stores = known_stores()?;
        let folder = folder.trim_end_matches('/').to_string();
        let group = read_group(&stores, &folder)?;
        Ok(RunReader { stores, folder, group })
    }

    /// The description of an array as it is now.
    fn array(&self, name: &str) -> Result<ArrayMetadata, Fault> {
        let read = |group: &[u8]| {
            ArrayMetadata::read(group, name)
                .map_err(|error| Fault::new(libc::ENXIO, format!("{}: {error}", self.folder)))
        };
        let array = read(&self.group)?;
        match array.changes() {
            true => read(&read_group(&self.stores, &self.folder)?),
            false => Ok(array),
        }
    }

    /// Read a box of an array at an iteration: from `start`, of lengths `shape`, in C order.
    pub(crate) fn read(
        &self,
        name: &str,
        iteration: u64,
        start: &[u64],
        shape: &[u64],
        buffer: &mut [u8],
    ) -> Result<(), Fault> {
        let label = format!("{}, array {name}", self.folder);
        let array = self.array(name)?;
        let axes = start.iter().zip(shape).zip(&array.shape);
        let is_inside = start.len() == array.shape.len()
            && axes.clone().all(|((at, length), end)| {
                at.checked_add(*length).is_some_and(|stop| stop <= *end)
            });
        if !is_inside {
            let expected = format!("a box within {:?}", array.shape);
            let text = format!("{label}: expected {expected}, found {shape:?} from {start:?}");
            return Err(Fault::new(libc::EDOM, text));
        }
        let bytes = shape.iter().product::<u64>() * array.element.bytes();
        if buffer.len() as u64 != bytes {
            let text = format!("{label}: expected memory of {bytes} bytes, found {}", buffer.len());
            return Err(Fault::invalid(text));
        }
        let slot = array.slot(iteration).ok_or_else(|| {
            let text = format!("{label}: expected an iteration that is written, found {iteration}");
            Fault::new(libc::ENOENT, text)
        })?;
        let target: Vec<Range<u64>> =
            start.iter().zip(shape).map(|(&at, length)| at..at + length).collect();
        for place in places(&target, &array.sharding.shard_shape) {
            let shard = format!("{}/{}", self.folder, shard_name(name, slot, &place));
            let region = array.sharding.region(&place);
            let reader = ShardReader { array: &array, name: &shard, region: &region };
            let source = self
                .stores
                .open(&shard)
                .map_err(|error| open_fault(&self.stores, &shard, error))?;
            reader.read(&*source, &target, buffer)?;
        }
        if array.changes() && self.array(name)?.slot(iteration) != Some(slot) {
            let text = format!("{label}: iteration {iteration} was replaced while it was read");
            return Err(Fault::new(libc::ESTALE, text));
        }
        Ok(())
    }
}

/// The metadata of the group in a folder.
fn read_group(stores: &Stores, folder: &str) -> Result<Vec<u8>, Fault> {
    let name = format!("{folder}/{NODE}");
    let source = stores.open(&name).map_err(|error| open_fault(stores, &name, error))?;
    if source.len() > MOST_METADATA {
        let text =
            format!("{name}: expected at most {MOST_METADATA} bytes, found {}", source.len());
        return Err(Fault::new(libc::EBADMSG, text));
    }
    let mut group = vec![0; source.len() as usize];
    source.read_exact_at(0, &mut group)?;
    Ok(group)
}

/// A shard of a dump.
struct ShardReader<'a> {
    array: &'a ArrayMetadata,
    name: &'a str,
    region: &'a [Range<u64>],
}

impl ShardReader<'_> {
    /// Read what it has of the box `target` of the array into the elements of that box.
    fn read(
        &self,
        source: &dyn Source,
        target: &[Range<u64>],
        buffer: &mut [u8],
    ) -> Result<(), Fault> {
        let sharding = &self.array.sharding;
        let fault = |found: String| {
            Fault::new(libc::EBADMSG, format!("{}: expected a shard, found {found}", self.name))
        };
        let index_bytes = sharding.index_bytes();
        let Some(index_start) = source.len().checked_sub(index_bytes) else {
            return Err(fault(format!("{} bytes", source.len())));
        };
        let mut index = vec![0; index_bytes as usize];
        source.read_exact_at(index_start, &mut index)?;
        let chunks =
            sharding.read_index(&index, source.len()).map_err(|error| fault(error.to_string()))?;
        // Relative to the shard, whose first chunk begins with it.
        let within: Vec<Range<u64>> = target
            .iter()
            .zip(self.region)
            .map(|(target, region)| {
                let (start, end) = (target.start.max(region.start), target.end.min(region.end));
                start - region.start..end - region.start
            })
            .collect();
        let steps = strides(&sharding.chunks_of_shard());
        let (mut places_of_chunks, mut ranges) = (Vec::new(), Vec::new());
        for place in places(&within, &sharding.chunk_shape) {
            let number: u64 = place.iter().zip(&steps).map(|(at, step)| at * step).sum();
            let range = chunks.get(number as usize).cloned().flatten();
            ranges.push(range.ok_or_else(|| fault(format!("no chunk {place:?}")))?);
            places_of_chunks.push(place);
        }
        let mut contents: Vec<Vec<u8>> =
            ranges.iter().map(|_| vec![0; sharding.chunk_bytes() as usize]).collect();
        swathe_engine::read_ranges(source, &ranges, &mut contents)?;
        for (place, content) in places_of_chunks.iter().zip(&contents) {
            self.copy_chunk(sharding, place, content, target, buffer);
        }
        Ok(())
    }

    /// Copy what a chunk has of the box `target`.
    fn copy_chunk(
        &self,
        sharding: &Sharding,
        place: &[u64],
        content: &[u8],
        target: &[Range<u64>],
        buffer: &mut [u8],
    ) {
        let size = self.array.element.bytes();
        let starts: Vec<u64> = (0..place.len())
            .map(|axis| self.region[axis].start + place[axis] * sharding.chunk_shape[axis])
            .collect();
        let overlap: Vec<Range<u64>> = (0..place.len())
            .map(|axis| {
                let end = (starts[axis] + sharding.chunk_shape[axis]).min(target[axis].end);
                starts[axis].max(target[axis].start)..end
            })
            .collect();
        let lengths: Vec<u64> = target.iter().map(|span| span.end - span.start).collect();
        let (from_steps, to_steps) = (strides(&sharding.chunk_shape), strides(&lengths));
        swathe_run::for_each_row(&overlap, |row, length| {
            let axes = 0..row.len();
            let from: u64 =
                axes.clone().map(|axis| (row[axis] - starts[axis]) * from_steps[axis]).sum();
            let to: u64 = axes.map(|axis| (row[axis] - target[axis].start) * to_steps[axis]).sum();
            let (from, to, length) =
                ((from * size) as usize, (to * size) as usize, (length * size) as usize);
            buffer[to..][..length].copy_from_slice(&content[from..][..length]);
        });
    }
}

/// The places, in a grid of boxes of lengths `widths`, of those that a box touches.
fn places(of: &[Range<u64>], widths: &[u64]) -> Vec<Vec<u64>> {
    if of.iter().any(|span| span.is_empty()) {
        return Vec::new();
    }
    let mut places = vec![Vec::new()];
    for (span, width) in of.iter().zip(widths) {
        let (first, last) = (span.start / width, (span.end - 1) / width);
        places = places
            .iter()
            .flat_map(|place| (first..=last).map(move |at| [&place[..], &[at]].concat()))
            .collect();
    }
    places
}
