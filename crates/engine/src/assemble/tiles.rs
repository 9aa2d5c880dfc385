//! Tiles of an image, each decoded once for all regions that need it.

use super::{CutoutSink, PendingRegion};
use crate::byte_source::ByteSource;
use crate::decoded_cache::{DecodedCache, Piece};
use crate::error::EngineError;
use crate::template::Template;
use crate::timing::Stage;
use crate::worker_context::WorkerContext;
use std::ops::Range;
use std::sync::Arc;
use swathe_array::{Region, Run};
use swathe_layout::{Chunk, ChunkTable, Scratch};
use swathe_plan::Break;

/// A tile that some regions need.
struct TileNeed {
    tile: u64,
    /// Which of the sorted (tile, job) pairs.
    pairs: Range<usize>,
}

/// Cut regions out of an image of tiles.
pub(super) fn from_tiles(
    content: &ByteSource,
    table: &dyn ChunkTable,
    template: &Arc<Template>,
    jobs: &mut [PendingRegion],
    work: &mut WorkerContext,
    sink: &mut CutoutSink<'_>,
) -> Result<(), EngineError> {
    let mut pairs: Vec<(u64, usize)> = Vec::new();
    let mut rest_tiles = vec![0usize; jobs.len()];
    for (job, PendingRegion { region, .. }) in jobs.iter().enumerate() {
        let tiles = table.grid().chunks_for(&region.inside);
        rest_tiles[job] = tiles.len();
        pairs.extend(tiles.into_iter().map(|tile| (tile, job)));
    }
    pairs.sort_unstable();
    let needs = group(&pairs);
    let entries = read_entries(content, table, template, &needs, work)?;
    let mut tiles = Tiles { table, template, jobs, rest_tiles };
    let memory = work.reading.memory.clone();
    let mut order: Vec<usize> = Vec::with_capacity(needs.len());
    for (index, need) in needs.iter().enumerate() {
        match memory.as_ref().and_then(|memory| memory.get(tiles.piece(need.tile))) {
            Some(pixels) => {
                tiles.deliver(need.tile, &pixels, &pairs[need.pairs.clone()], work, sink)?
            }
            None if entries[index].len == 0 => {
                content.confirm_absence()?;
                tiles.fill(need.tile, &pairs[need.pairs.clone()], work, sink)?
            }
            None => order.push(index),
        }
    }
    order.sort_by_key(|&index| entries[index].offset);
    let segments: Vec<Range<u64>> = order
        .iter()
        .map(|&index| entries[index].offset..entries[index].offset + entries[index].len)
        .collect();
    if let Some(end) = content.len()
        && let Some(at) = segments.iter().position(|segment| segment.end > end)
    {
        let tile = needs[order[at]].tile;
        return Err(template.truncation(tile, table.grid(), segments[at].clone(), end));
    }
    let mut next = 0;
    let what = || template.part.pieces();
    work.stages.enter(Stage::Plan);
    let plan = content.plan(&segments, Break::BetweenSegments, &what, &work.reading)?;
    work.stages.note_plan(plan.note());
    let mut reading = std::mem::take(&mut work.reading);
    work.stages.enter(Stage::Read);
    let result = content.read(plan, &what, &mut reading, &mut |at, piece| {
        let end = at + piece.len() as u64;
        work.stages.add_bytes(piece.len() as u64);
        while let Some(segment) = segments.get(next).filter(|segment| segment.end <= end) {
            let bytes = &piece[(segment.start - at) as usize..(segment.end - at) as usize];
            let TileNeed { tile, pairs: ref range } = needs[order[next]];
            let takers = &pairs[range.clone()];
            let entry = &entries[order[next]];
            next += 1;
            work.stages.enter(Stage::Decode);
            work.stages.add_bytes(bytes.len() as u64);
            let mut pixels = std::mem::take(&mut work.tile);
            tiles.decode(
                tile,
                entry,
                bytes,
                takers,
                memory.as_ref(),
                &mut work.codec,
                &mut pixels,
            )?;
            tiles.deliver(tile, &pixels, takers, work, sink)?;
            work.tile = pixels;
        }
        if next < segments.len() {
            work.stages.enter(Stage::Read);
        } else {
            work.stages.enter_without_event(Stage::Read);
        }
        Ok(())
    });
    work.reading = reading;
    result
}

/// The tiles of an image, and the regions they are decoded for.
struct Tiles<'a> {
    table: &'a dyn ChunkTable,
    template: &'a Arc<Template>,
    jobs: &'a mut [PendingRegion],
    /// How many tiles each region still lacks.
    rest_tiles: Vec<usize>,
}

impl Tiles<'_> {
    fn piece(&self, tile: u64) -> Piece {
        Piece::Tile { part: self.template.part.number(), tile }
    }

    /// Decode a tile: all of it if it can be cached, else as far as the regions need it.
    #[allow(clippy::too_many_arguments)] // all of them are one tile's
    fn decode(
        &self,
        tile: u64,
        entry: &Chunk,
        bytes: &[u8],
        takers: &[(u64, usize)],
        memory: Option<&DecodedCache>,
        scratch: &mut Scratch,
        pixels: &mut Vec<u8>,
    ) -> Result<(), EngineError> {
        let Tiles { table, template, .. } = self;
        let size = template.layout.element_bytes;
        let region = table.grid().chunk(tile);
        let count = last_element(&region, &region);
        let memory = memory.filter(|_| DecodedCache::takes(count.saturating_mul(size)));
        let inside = |&(_, job): &(u64, usize)| region.intersection(&self.jobs[job].region.inside);
        let parts = takers.iter().filter_map(inside);
        let need = parts.map(|part| last_element(&region, &part)).max().unwrap_or(0);
        // If a tile is damaged further on, the part that is needed may still be right.
        if let Some(memory) = memory
            && table.decode(tile, entry, bytes, count, scratch, pixels).is_ok()
        {
            memory.put(self.piece(tile), &pixels[..count * size]);
            return Ok(());
        }
        table.decode(tile, entry, bytes, need, scratch, pixels).map_err(|source| {
            EngineError::Tile {
                url: template.url.clone(),
                part: template.part.clone(),
                piece: template.part.piece(tile, table.grid()),
                source,
            }
        })
    }

    /// Copy the pixels of a tile into all regions that need it; those that lack no other are done.
    fn deliver(
        &mut self,
        tile: u64,
        pixels: &[u8],
        takers: &[(u64, usize)],
        work: &mut WorkerContext,
        sink: &mut CutoutSink<'_>,
    ) -> Result<(), EngineError> {
        let size = self.template.layout.element_bytes;
        self.hand_over(tile, takers, work, sink, &mut |run, to_pixels| {
            let length = run.elements as usize * size;
            let (from, to) = (run.from as usize * size, run.to as usize * size);
            to_pixels[to..to + length].copy_from_slice(&pixels[from..from + length]);
        })
    }

    /// The same for a tile that is not stored.
    fn fill(
        &mut self,
        tile: u64,
        takers: &[(u64, usize)],
        work: &mut WorkerContext,
        sink: &mut CutoutSink<'_>,
    ) -> Result<(), EngineError> {
        let (size, fill) = (self.template.layout.element_bytes, self.table.fill());
        if fill.iter().all(|&byte| byte == 0) {
            // Cutouts begin with zeros, or with what stands outside the array.
            return self.hand_over(tile, takers, work, sink, &mut |run, to_pixels| {
                let to = run.to as usize * size;
                to_pixels[to..to + run.elements as usize * size].fill(0);
            });
        }
        self.hand_over(tile, takers, work, sink, &mut |run, to_pixels| {
            let to = run.to as usize * size;
            let run_pixels = &mut to_pixels[to..to + run.elements as usize * size];
            run_pixels.chunks_exact_mut(size).for_each(|pixel| pixel.copy_from_slice(fill));
        })
    }

    fn hand_over(
        &mut self,
        tile: u64,
        takers: &[(u64, usize)],
        work: &mut WorkerContext,
        sink: &mut CutoutSink<'_>,
        copy: &mut dyn FnMut(&Run, &mut [u8]),
    ) -> Result<(), EngineError> {
        work.stages.count(Stage::Assemble);
        let region = self.table.grid().chunk(tile);
        for &(_, number) in takers {
            let job = &mut self.jobs[number];
            let output = job.region.output.clone();
            work.begin(job.id, work.stages.read_since());
            if let Some(part) = region.intersection(&job.region.inside) {
                let partial = job.partial(self.template, &mut work.spare)?;
                let to_pixels = &mut partial.file[partial.data.clone()];
                for run in region.runs(&output, &part) {
                    copy(&run, to_pixels);
                }
            }
            self.rest_tiles[number] -= 1;
            if self.rest_tiles[number] == 0 {
                work.stages.enter(Stage::Assemble);
                let id = job.id;
                let cutout = job.finish(self.template, &mut work.spare);
                sink(id, cutout, work)?;
                work.stages.enter_without_event(Stage::Assemble);
            }
        }
        Ok(())
    }
}

fn group(pairs: &[(u64, usize)]) -> Vec<TileNeed> {
    let mut needs = Vec::new();
    let mut start = 0;
    for chunk in pairs.chunk_by(|a, b| a.0 == b.0) {
        needs.push(TileNeed { tile: chunk[0].0, pairs: start..start + chunk.len() });
        start += chunk.len();
    }
    needs
}

/// The table rows of the needed tiles: position and scaling of each.
fn read_entries(
    content: &ByteSource,
    table: &dyn ChunkTable,
    template: &Template,
    needs: &[TileNeed],
    work: &mut WorkerContext,
) -> Result<Vec<Chunk>, EngineError> {
    let positions: Option<Vec<Chunk>> =
        needs.iter().map(|need| table.position(need.tile)).collect();
    if let Some(entries) = positions {
        return Ok(entries);
    }
    let segments: Vec<Range<u64>> = needs.iter().map(|need| table.entry_range(need.tile)).collect();
    let mut entries = Vec::with_capacity(needs.len());
    let what = || format!("the table of tiles in {}", template.part);
    work.stages.enter(Stage::Plan);
    let plan = content.plan(&segments, Break::BetweenSegments, &what, &work.reading)?;
    work.stages.note_plan(plan.note());
    work.stages.enter(Stage::Read);
    content.read(plan, &what, &mut work.reading, &mut |at, piece| {
        work.stages.add_bytes(piece.len() as u64);
        let end = at + piece.len() as u64;
        while let Some(segment) = segments.get(entries.len()).filter(|s| s.end <= end) {
            let row = &piece[(segment.start - at) as usize..(segment.end - at) as usize];
            let entry = table.entry(row).map_err(|error| template.layout_error(error))?;
            entries.push(entry);
        }
        Ok(())
    })?;
    Ok(entries)
}

/// One past the last element of `part` in a tile.
fn last_element(tile: &Region, part: &Region) -> usize {
    let mut stride = 1u64;
    let mut last = 0;
    for axis in 0..tile.axes() {
        last += (part.stop[axis] - 1).abs_diff(tile.start[axis]) * stride;
        stride *= tile.stop[axis].abs_diff(tile.start[axis]);
    }
    last as usize + 1
}
