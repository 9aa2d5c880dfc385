//! How an object would be read, and how else it could be.

use super::Alternative;
use crate::byte_source::ByteSource;
use crate::cutout::PlacedRegion;
use crate::inflate::{StreamReader, Stretch, Unpacking};
use crate::object::Object;
use crate::requests::{INPUT_BYTES, at_hand, local_cap_bytes, local_plan, remote_plan};
use crate::template::Template;
use crate::worker_context::ReadContext;
use std::ops::Range;
use swathe_array::Region;
use swathe_layout::{Chunk, ChunkTable, Rows, Storage};
use swathe_plan::{Break, Compute, Connections, Costs, Load, Plan, Reach, soonest, windows};
use swathe_store_api::{Source, Traffic};

/// How regions of an image are read.
#[derive(Default)]
pub(super) struct Reads {
    pub method: &'static str,
    /// One after the other.
    pub plans: Vec<Plan>,
    /// Bytes that are unpacked, and the seconds that takes.
    pub unpacked_bytes: u64,
    pub unpack_s: f64,
    /// The alternatives; empty if nothing is read from the storage.
    pub instead: Vec<Alternative>,
}

pub(super) fn reads(
    object: &Object,
    template: &Template,
    regions: &[PlacedRegion],
    costs: &Costs,
    connections: Connections,
    opened_bytes: u64,
    compute: &Compute,
) -> Reads {
    let is_tiled = matches!(template.layout.storage, Storage::Chunked(_));
    let (segments, unpacked_bytes, unpack_s) = match &template.layout.storage {
        Storage::Rows(stored) => {
            (vec![rows(template, regions, stored, object.content.gap_bytes())], 0, 0.0)
        }
        Storage::Chunked(table) => {
            let (rounds, decoded_bytes) = tiles(&object.content, template, &**table, regions);
            let byte_s = compute.decode_byte_s(table.codec_name());
            (rounds, decoded_bytes, decoded_bytes as f64 * byte_s)
        }
    };
    let planner = ReadPlanner { source: object.source(), costs, connections };
    match &object.content {
        ByteSource::Plain(_) => {
            let reads = planner.plain(&segments, is_tiled, opened_bytes, unpack_s);
            Reads { unpacked_bytes, ..reads }
        }
        ByteSource::Stream(_) => {
            let Some(reader) = object.content.stream_reader() else {
                return Reads { method: "ranges", ..Reads::default() };
            };
            let reads = planner.stream(&reader, &segments.concat(), object.known_end(), compute);
            reads.with_decoding(unpacked_bytes, unpack_s)
        }
    }
}

impl Reads {
    /// The same, with these bytes that are unpacked after reading, and the seconds that takes.
    fn with_decoding(mut self, bytes: u64, seconds: f64) -> Reads {
        self.unpacked_bytes += bytes;
        self.unpack_s += seconds;
        self.instead.iter_mut().for_each(|other| other.unpack_s += seconds);
        self
    }
}

/// Plans reads of an object.
struct ReadPlanner<'a> {
    source: &'a dyn Source,
    costs: &'a Costs,
    connections: Connections,
}

impl ReadPlanner<'_> {
    /// Read an object as it is stored. `segments`: one list after the other. `is_tiled`: whether
    /// each is read as a whole.
    fn plain(
        &self,
        segments: &[Vec<Range<u64>>],
        is_tiled: bool,
        opened_bytes: u64,
        unpack_s: f64,
    ) -> Reads {
        let at = if is_tiled { Break::BetweenSegments } else { Break::Anywhere };
        let method = if is_tiled { "tiles" } else { "ranges" };
        let rounds: Vec<Vec<Range<u64>>> = segments
            .iter()
            .map(|round| round.iter().filter(|range| range.end > opened_bytes).cloned().collect())
            .collect();
        let plan = |round: &Vec<Range<u64>>| {
            if self.source.is_local() {
                return local_plan(self.source, round, local_cap_bytes(self.source), at);
            }
            self.server_plan(round, at, 0.0)
        };
        let plans: Vec<Plan> = rounds.iter().map(plan).collect();
        let mut instead = Vec::new();
        if plans.iter().any(|plan| !plan.ranges.is_empty()) {
            instead =
                vec![self.each_piece(&rounds, unpack_s), self.whole("whole object", unpack_s)];
        }
        Reads { method, plans, unpack_s, instead, ..Reads::default() }
    }

    /// Read windows of the decompressed data of a stream. `end`: as far as headers were read.
    fn stream(
        &self,
        reader: &StreamReader,
        windows: &[Range<u64>],
        end: u64,
        compute: &Compute,
    ) -> Reads {
        let at = Break::Anywhere;
        let Stretch { ranges, raw, restarts, first } = reader.stretch(windows, end);
        let unpacking = Unpacking::of(reader.kind(), compute);
        let byte_s = if first { unpacking.first_byte_s } else { unpacking.byte_s };
        let plan = if self.source.is_local() {
            local_plan(self.source, &ranges, INPUT_BYTES as u64, at)
        } else {
            self.server_plan(&ranges, at, reader.stored_byte_s())
        };
        let mut instead = Vec::new();
        if !first && !plan.ranges.is_empty() {
            instead.push(self.whole("decompressed once", end as f64 * byte_s));
        }
        Reads {
            method: if first { "decompressed once" } else { "from seek points" },
            plans: vec![plan],
            unpacked_bytes: raw,
            unpack_s: raw as f64 * byte_s + restarts as f64 * unpacking.restart_s,
            instead,
        }
    }

    /// The alternative that reads all of the object.
    fn whole(&self, how: &'static str, unpack_s: f64) -> Alternative {
        let load = Load::single(self.source.stored_bytes());
        Alternative { how, load, read_s: self.seconds(load), unpack_s }
    }

    /// The alternative that reads each segment alone.
    fn each_piece(&self, rounds: &[Vec<Range<u64>>], unpack_s: f64) -> Alternative {
        let alone = Reach { gap_bytes: 0, cap_bytes: 1 };
        let (how, mut load, mut read_s) = ("each piece", Load::default(), 0.0);
        for round in rounds {
            let more = Load::of(&windows(round, alone, Break::BetweenSegments));
            read_s += self.seconds(more);
            load.requests += more.requests;
            load.ranges += more.ranges;
            load.bytes += more.bytes;
            load.largest = load.largest.max(more.largest);
        }
        Alternative { how, load, read_s, unpack_s }
    }

    fn seconds(&self, load: Load) -> f64 {
        soonest(load, self.costs, self.connections)
    }

    /// The plan for a read of a server, or the requests to it if the bytes are cached here.
    fn server_plan(&self, ranges: &[Range<u64>], at: Break, decode_byte_s: f64) -> Plan {
        if let Some((_, Traffic { bytes, requests, .. })) = at_hand(self.source, ranges, at) {
            let load =
                Load { requests, ranges: requests, bytes, largest: bytes, ..Load::default() };
            let read_s = self.costs.seconds(load, 1);
            return Plan { load, streams: 1, read_s, ..Plan::default() };
        }
        remote_plan(ranges, self.costs, at, self.connections, decode_byte_s)
    }
}

/// The byte ranges of the rows of regions, sorted; those close together as one.
fn rows(
    template: &Template,
    regions: &[PlacedRegion],
    stored: &Rows,
    gap_bytes: u64,
) -> Vec<Range<u64>> {
    let image_region = Region::of_shape(&template.layout.shape);
    let mut segments = Vec::new();
    for region in regions {
        let runs = stored.runs(&image_region, &region.output, &region.inside);
        crate::assemble::add_segments(runs, stored, gap_bytes, &mut segments);
    }
    segments.sort_unstable_by_key(|segment| segment.start);
    segments
}

/// The rows of the table of tiles, if their positions are not known, and the ranges of the tiles.
/// Also the bytes they decode to.
fn tiles(
    content: &ByteSource,
    template: &Template,
    table: &dyn ChunkTable,
    regions: &[PlacedRegion],
) -> (Vec<Vec<Range<u64>>>, u64) {
    let grid = table.grid();
    let mut tiles: Vec<u64> =
        regions.iter().flat_map(|region| grid.chunks_for(&region.inside)).collect();
    tiles.sort_unstable();
    tiles.dedup();
    let pixels: u64 = grid.chunk_shape.iter().product();
    let decoded_bytes = tiles.len() as u64 * pixels * template.layout.element_bytes as u64;
    let positions: Option<Vec<Chunk>> = tiles.iter().map(|&tile| table.position(tile)).collect();
    if let Some(chunks) = positions {
        let ranges = chunks.iter().map(|chunk| chunk.offset..chunk.offset + chunk.len);
        let mut data: Vec<Range<u64>> = ranges.filter(|range| !range.is_empty()).collect();
        data.sort_unstable_by_key(|range| range.start);
        return (vec![data], decoded_bytes);
    }
    let entries: Vec<Range<u64>> = tiles.iter().map(|&tile| table.entry_range(tile)).collect();
    let data = known_ranges(content, table, &entries)
        .unwrap_or_else(|| tiles.iter().map(|&tile| table.expected_range(tile)).collect());
    (vec![entries, data], decoded_bytes)
}

/// The ranges of the tiles, as table rows state them, if they can be read without a request.
fn known_ranges(
    content: &ByteSource,
    table: &dyn ChunkTable,
    rows: &[Range<u64>],
) -> Option<Vec<Range<u64>>> {
    let ByteSource::Plain(source) = content else { return None };
    let at = Break::BetweenSegments;
    if !source.is_local() && at_hand(&**source, rows, at)?.1.requests > 0 {
        return None;
    }
    let (mut reading, mut tiles) = (ReadContext::default(), Vec::with_capacity(rows.len()));
    let plan = content.plan(rows, at, &String::new, &reading).ok()?;
    let result = content.read(plan, &String::new, &mut reading, &mut |start, piece| {
        let end = start + piece.len() as u64;
        while let Some(row) = rows.get(tiles.len()).filter(|row| row.end <= end) {
            let bytes = &piece[(row.start - start) as usize..(row.end - start) as usize];
            let lies = table.entry(bytes).ok().map(|entry| entry.offset..entry.offset + entry.len);
            tiles.push(lies);
        }
        Ok(())
    });
    let mut tiles: Vec<Range<u64>> = result.ok().and_then(|()| tiles.into_iter().collect())?;
    tiles.sort_unstable_by_key(|tile| tile.start);
    Some(tiles)
}
