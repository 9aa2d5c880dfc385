//! Pixels of many regions of one image, read together: every byte is read, and every tile
//! decoded, once for all regions that need it.

mod tiles;

use crate::byte_source::ByteSource;
use crate::cutout::{Cutout, PlacedRegion};
use crate::decoded_cache::DecodedCache;
use crate::error::EngineError;
use crate::object::Object;
use crate::template::Template;
use crate::timing::Stage;
use crate::worker_context::{SpareBuffers, WorkerContext};
use std::ops::Range;
use std::sync::Arc;
use swathe_array::{Region, Run, Runs};
use swathe_layout::{Rows, Storage};
use swathe_plan::Break;
use tiles::from_tiles;

/// Takes each finished cutout, with the number of its region. Its error ends the reading.
pub(crate) type CutoutSink<'a> = dyn FnMut(usize, Result<Cutout, EngineError>, &mut WorkerContext) -> Result<(), EngineError>
    + 'a;

/// Cut the placed regions of an image. Each is finished as soon as its last pixel is decoded.
///
/// # Errors
/// The error that stopped the work; regions not yet passed to `sink` are not cut.
pub(crate) fn cut(
    object: &Object,
    template: &Arc<Template>,
    regions: Vec<(usize, PlacedRegion)>,
    work: &mut WorkerContext,
    sink: &mut CutoutSink<'_>,
) -> Result<(), EngineError> {
    work.reading.memory = if work.keeps { DecodedCache::of(object.source())? } else { None };
    let mut jobs: Vec<PendingRegion> = regions
        .into_iter()
        .map(|(id, region)| PendingRegion { id, region, state: State::Waiting })
        .collect();
    let cut = match &template.layout.storage {
        Storage::Rows(rows) => from_rows(&object.content, rows, template, &mut jobs, work, sink),
        Storage::Chunked(table) => {
            from_tiles(&object.content, &**table, template, &mut jobs, work, sink)
        }
    };
    if let Err(error) = &cut {
        work.stages.fail(error);
    }
    cut
}

/// One region on its way to a cutout.
struct PendingRegion {
    id: usize,
    region: PlacedRegion,
    state: State,
}

enum State {
    Waiting,
    Partial(PartialCutout),
    Finished,
}

struct PartialCutout {
    file: Vec<u8>,
    header_start: usize,
    data: Range<usize>,
}

impl PendingRegion {
    /// The buffer, allocated at the first pixel: headers written, pixels outside the image filled.
    fn partial(
        &mut self,
        template: &Template,
        spare: &mut SpareBuffers,
    ) -> Result<&mut PartialCutout, EngineError> {
        if let State::Waiting = self.state {
            let mut file = spare.take();
            let expected = self.region.bytes + 16 * crate::template::BLOCK;
            file.try_reserve(expected).map_err(|_| EngineError::Memory {
                url: template.url.clone(),
                part: template.part.clone(),
                region: self.region.output.clone(),
                bytes: expected as u64,
            })?;
            let header_start = template.write_headers(
                &self.region.output,
                self.region.fill_text(),
                None,
                &mut file,
            )?;
            let data = file.len()..file.len() + self.region.bytes;
            file.resize(data.end, 0);
            self.region.prefill(&mut file[data.clone()]);
            self.state = State::Partial(PartialCutout { file, header_start, data });
        }
        match &mut self.state {
            State::Partial(partial) => Ok(partial),
            _ => Err(EngineError::Internal {
                place: format!("cutting {} of {}", self.region.output, template.url),
                message: "a finished cutout was given more pixels".into(),
            }),
        }
    }

    fn finish(
        &mut self,
        template: &Arc<Template>,
        spare: &mut SpareBuffers,
    ) -> Result<Cutout, EngineError> {
        self.partial(template, spare)?;
        let State::Partial(mut partial) = std::mem::replace(&mut self.state, State::Finished)
        else {
            unreachable!("partial() left the job in that state")
        };
        template.complete(
            &self.region.output,
            self.region.fill_text(),
            partial.data.clone(),
            &mut partial.file,
        )?;
        Ok(Cutout {
            template: template.clone(),
            region: self.region.output.clone(),
            header: partial.header_start..partial.data.start,
            data: partial.data,
            file: partial.file,
        })
    }
}

/// A region of a contiguous array that pixels are being copied into.
struct Sweep {
    job: usize,
    runs: Runs,
    run: Option<Run>,
    first: u64,
}

fn from_rows(
    content: &ByteSource,
    rows: &Rows,
    template: &Arc<Template>,
    jobs: &mut [PendingRegion],
    work: &mut WorkerContext,
    sink: &mut CutoutSink<'_>,
) -> Result<(), EngineError> {
    work.stages.enter(Stage::Plan);
    let image_region = Region::of_shape(&template.layout.shape);
    let gap_bytes = content.gap_bytes();
    let mut sweeps = Vec::with_capacity(jobs.len());
    let mut segments = Vec::new();
    for (job, PendingRegion { region, .. }) in jobs.iter().enumerate() {
        let mut runs = rows.runs(&image_region, &region.output, &region.inside);
        add_segments(runs.clone(), rows, gap_bytes, &mut segments);
        let run = runs.next();
        let first = rows.byte(run.map_or(0, |run| run.from));
        sweeps.push(Sweep { job, runs, run, first });
    }
    segments.sort_unstable_by_key(|segment: &Range<u64>| segment.start);
    sweeps.sort_by_key(|sweep| std::cmp::Reverse(sweep.first));
    let mut active: Vec<Sweep> = Vec::new();
    let what = || template.part.what();
    let plan = content.plan(&segments, Break::Anywhere, &what, &work.reading)?;
    work.stages.note_plan(plan.note());
    let mut reading = std::mem::take(&mut work.reading);
    work.stages.enter(Stage::Read);
    let result = content.read(plan, &what, &mut reading, &mut |at, piece| {
        work.stages.add_bytes(piece.len() as u64);
        work.stages.enter(Stage::Assemble);
        let end = at + piece.len() as u64;
        while sweeps.last().is_some_and(|sweep| sweep.first < end) {
            active.extend(sweeps.pop());
        }
        let mut next = 0;
        while next < active.len() {
            let sweep = &mut active[next];
            let job = &mut jobs[sweep.job];
            work.begin(job.id, work.stages.read_since());
            let partial = job.partial(template, &mut work.spare)?;
            let pixels = &mut partial.file[partial.data.clone()];
            if copy_piece(sweep, pixels, at, piece, rows) {
                let id = job.id;
                let cutout = job.finish(template, &mut work.spare);
                active.swap_remove(next);
                sink(id, cutout, work)?;
                work.stages.enter(Stage::Assemble);
            } else {
                next += 1;
            }
        }
        if sweeps.is_empty() && active.is_empty() {
            work.stages.enter_without_event(Stage::Read);
        } else {
            work.stages.enter(Stage::Read);
        }
        Ok(())
    });
    work.reading = reading;
    result
}

/// The byte ranges of runs; rows so close that the gap between them is read through anyway come
/// out as one.
pub(crate) fn add_segments(runs: Runs, rows: &Rows, gap_bytes: u64, to: &mut Vec<Range<u64>>) {
    let first = to.len();
    for run in runs {
        let start = rows.byte(run.from);
        let end = start + run.elements * rows.element_bytes;
        match to[first..].last_mut() {
            Some(last) if start <= last.end.saturating_add(gap_bytes) => last.end = end,
            _ => to.push(start..end),
        }
    }
}

/// Copy what `piece` holds of a region; true when its last pixel was copied.
fn copy_piece(sweep: &mut Sweep, pixels: &mut [u8], at: u64, piece: &[u8], rows: &Rows) -> bool {
    let end = at + piece.len() as u64;
    while let Some(run) = sweep.run {
        let start = rows.byte(run.from);
        let stop = start + run.elements * rows.element_bytes;
        let (from, until) = (start.max(at), stop.min(end));
        if from < until {
            let source = &piece[(from - at) as usize..(until - at) as usize];
            let to = (run.to * rows.element_bytes + (from - start)) as usize;
            pixels[to..to + source.len()].copy_from_slice(source);
        }
        if stop > end {
            return false;
        }
        sweep.run = sweep.runs.next();
    }
    true
}

#[cfg(test)]
mod tests;
