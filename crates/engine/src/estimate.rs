//! What a batch will cost, from headers and kept layouts alone: no pixel is read.

use crate::batch::{Job, Unit, divide, place, workers};
use crate::content::{CAPS, Content, at_hand};
use crate::cutout::Placed;
use crate::error::EngineError;
use crate::inflate::Stretch;
use crate::object::Object;
use crate::template::Template;
use crate::work::Cancel;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use swathe_array::Region;
use swathe_fits::stream::StreamKind;
use swathe_fits::{Storage, TileTable};
use swathe_plan::{Break, Compute, Costs, Load, Plan, Task, finish_s, plan};
use swathe_store::{Source, Traffic};

/// Objects looked into at the same time.
const LOOKERS: usize = 16;
/// What an answer takes on the line besides its body: of nginx 280 bytes, of others some more.
const ANSWER_BYTES: u64 = 300;

/// What the part of a batch that one storage serves is expected to cost.
#[derive(Clone, Debug, Serialize)]
pub struct Estimate {
    /// Of the storage, as its key has it.
    pub root: String,
    /// Whether its costs were measured.
    pub measured: bool,
    /// Objects.
    pub objects: usize,
    /// Targets.
    pub targets: usize,
    /// Objects whose headers were read because the index lacked them.
    pub headers_read: usize,
    /// Objects looked into; the others are taken to be like them.
    pub looked_into: usize,
    /// Expected to be asked of the storage.
    pub traffic: Traffic,
    /// Expected seconds.
    pub seconds: f64,
    /// Of these, what computing takes, over all threads.
    pub compute_s: f64,
    /// How some objects will be read.
    pub explained: Vec<Explained>,
}

/// How one object will be read.
#[derive(Clone, Debug, Serialize)]
pub struct Explained {
    /// The object.
    pub url: String,
    /// Targets.
    pub targets: usize,
    /// How: plain ranges, tiles, from seek points, or decompressed once.
    pub method: &'static str,
    /// The requests, one plan for each time what was read says what to read next.
    pub plans: Vec<Plan>,
    /// Bytes that are decompressed or decoded.
    pub unpacked: u64,
}

/// What is expected of one unit.
#[derive(Clone, Debug, Default)]
struct Expected {
    task: Task,
    /// Seconds until pixels begin to come.
    lead_s: f64,
    /// Requests in flight.
    streams: u32,
    traffic: Traffic,
    header_read: bool,
    explained: Option<Explained>,
}

/// Expect what a batch costs, storage by storage. Of each storage at most `most` units are looked
/// into, spread over all. Headers the index lacks are read, and kept. `machines`: how many like this
/// one share the work, and the storages.
///
/// # Errors
/// Only where nothing can be expected at all; an object that cannot be read is expected to fail.
pub fn estimate(
    job: &Job,
    compute: &Compute,
    most: usize,
    machines: usize,
    cancel: &Cancel,
) -> Result<Vec<Estimate>, EngineError> {
    let units = divide(job);
    let mut by_root: BTreeMap<String, Vec<&Unit>> = BTreeMap::new();
    let roots: Vec<String> = job.files.iter().map(|file| job.stores.locate(file).0.key()).collect();
    for unit in &units {
        by_root.entry(roots[unit.file].clone()).or_default().push(unit);
    }
    let workers = workers(job).saturating_mul(machines).clamp(1, units.len().max(1));
    let cores = job.threads.saturating_mul(machines);
    by_root
        .into_iter()
        .map(|(root, units)| {
            let (store, _) = job.stores.locate(&job.files[units[0].file]);
            let looked_into = spread(units.len(), most);
            let found = look(&looked_into, |index| {
                expect(job, units[index], compute, &store.costs, workers, cancel)
            });
            cancel.check()?;
            let all: Vec<&Expected> =
                (0..units.len()).map(|index| &found[index * found.len() / units.len()]).collect();
            let tasks: Vec<Task> = all.iter().map(|expected| expected.task).collect();
            let mut traffic = Traffic::default();
            all.iter().for_each(|expected| traffic.add(expected.traffic));
            let mut files: Vec<usize> = units.iter().map(|unit| unit.file).collect();
            files.sort_unstable();
            files.dedup();
            let waits = tasks.iter().any(|task| task.wait_s > 0.0);
            // Those that are lacking when the first objects are read are opened together.
            let open = job.stores.connections(&job.files[units[0].file]);
            let needed: u32 = all.iter().take(workers).map(|expected| expected.streams).sum();
            let needed = needed.min(store.costs.streams);
            let connect_s = if waits && open < needed { store.costs.connect_s } else { 0.0 };
            let line_s = if waits { line_s(&all, &store.costs, workers) } else { 0.0 };
            let compute_s: f64 = tasks.iter().map(|task| task.compute_s).sum();
            let served_s = if job.stores.is_served_here(&job.files[units[0].file]) {
                // The server computes too: what it takes for a request, or a byte, was measured
                // together with ours.
                let (requests, bytes) = (traffic.requests as f64, traffic.bytes as f64);
                let moved_s = (requests / store.costs.requests_per_s)
                    .max(bytes / store.costs.total_bytes_per_s);
                let ours_s = requests * compute.request_s + bytes * compute.received_byte_s;
                moved_s + (compute_s - ours_s).max(0.0) / cores as f64
            } else {
                0.0
            };
            Ok(Estimate {
                root,
                measured: store.measured,
                objects: files.len(),
                targets: units.iter().map(|unit| unit.targets.len()).sum(),
                headers_read: found.iter().filter(|expected| expected.header_read).count(),
                looked_into: found.len(),
                traffic,
                seconds: compute.job_s
                    + connect_s
                    + finish_s(&tasks, workers, cores).max(line_s).max(served_s),
                compute_s,
                explained: found.into_iter().filter_map(|expected| expected.explained).collect(),
            })
        })
        .collect()
}

/// Seconds until all that was asked for has come through the one line, however the parts overlap,
/// and the last of it is cut.
fn line_s(all: &[&Expected], costs: &Costs, workers: usize) -> f64 {
    let bytes: u64 = all
        .iter()
        .map(|expected| expected.traffic.bytes + expected.traffic.requests * ANSWER_BYTES)
        .sum();
    // The line is idle until the first of the parts that are begun together have been answered.
    let leads = all.iter().take(workers).map(|expected| expected.lead_s);
    let lead_s = leads.fold(f64::INFINITY, f64::min);
    let compute_s: f64 = all.iter().map(|expected| expected.task.compute_s).sum();
    lead_s + bytes as f64 / costs.total_bytes_per_s + compute_s / all.len() as f64
}

/// At most `most` numbers below `count`, evenly spread.
fn spread(count: usize, most: usize) -> Vec<usize> {
    let taken = count.min(most.max(1));
    (0..taken).map(|index| index * count / taken).collect()
}

/// What is expected of each of these units, several looked into at the same time.
fn look(units: &[usize], expect: impl Fn(usize) -> Expected + Sync) -> Vec<Expected> {
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<Expected>> = Mutex::new(vec![Expected::default(); units.len()]);
    std::thread::scope(|scope| {
        for _ in 0..LOOKERS.min(units.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&unit) = units.get(at) else { break };
                    let expected = expect(unit);
                    found.lock().unwrap_or_else(PoisonError::into_inner)[at] = expected;
                }
            });
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn expect(
    job: &Job,
    unit: &Unit,
    compute: &Compute,
    costs: &Costs,
    workers: usize,
    cancel: &Cancel,
) -> Expected {
    let targets = unit.targets.len();
    let waits = job.stores.server_of(&job.files[unit.file]).is_some();
    let share = costs.share(workers as u32);
    let opening = if waits {
        let first = costs.first_bytes();
        let wait_s = costs.open_s + share.request.seconds(first as f64);
        (Traffic { bytes: first, requests: 1, ..Traffic::default() }, wait_s)
    } else {
        (Traffic::default(), 0.0)
    };
    let failed = || Expected {
        task: Task { wait_s: opening.1, compute_s: compute.object_s },
        lead_s: opening.1,
        streams: 1,
        traffic: opening.0,
        ..Expected::default()
    };
    let Ok(object) = Object::open(&job.files[unit.file], &job.stores, false, cancel.clone()) else {
        return failed();
    };
    let header_read = !object.is_assumed() && waits;
    let Ok(template) = object.template(&job.selectors[unit.hdu]) else { return failed() };
    // Kept for the batch, which then need not ask again. Of a stream the first read does that.
    let kept = object.kind().is_none() && object.settle(cancel).is_ok();
    let placed: Vec<Placed> =
        unit.targets.iter().filter_map(|&target| place(job, &template, target).ok()).collect();
    let asked_anew = waits && !(object.is_assumed() || kept && object.can_be_assumed());
    // They come with the answer to that.
    let opened_bytes = if asked_anew { object.source().first().len() as u64 } else { 0 };
    // At least the one that the object was, or will be, opened on.
    let connected = (object.connections() / workers as u32).max(1);
    let (method, plans, unpacked, unpack_s) =
        reads(&object, &template, &placed, &share, connected, opened_bytes, compute);

    let mut expected = Expected { header_read, ..Expected::default() };
    let pixels: usize = placed.iter().map(|placed| placed.bytes).sum();
    expected.task.compute_s = compute.object_s
        + placed.len() as f64 * compute.cut_s
        + pixels as f64 * compute.byte_s
        + unpack_s;
    // That all threads share the line is seen to when their parts are put together.
    let alone = Costs { total_bytes_per_s: costs.total_bytes_per_s, ..share };
    let read_s: f64 = plans.iter().map(|plan| alone.seconds(plan.load, plan.streams)).sum();
    if waits {
        expected.task.wait_s = read_s;
        let rounds = plans.iter().filter(|plan| plan.load.requests > 0).count();
        expected.lead_s = rounds as f64 * costs.latency_s();
        expected.streams = plans.iter().map(|plan| plan.streams).max().unwrap_or(1);
        if asked_anew {
            expected.traffic = opening.0;
            expected.task.wait_s += opening.1;
            expected.lead_s += costs.open_s + costs.latency_s();
        }
    } else {
        // Copied from the page cache by the thread itself.
        expected.task.compute_s += read_s;
    }
    for plan in &plans {
        let traffic =
            Traffic { bytes: plan.load.bytes, requests: plan.load.requests, ..Traffic::default() };
        expected.traffic.add(traffic);
    }
    if waits {
        expected.task.compute_s += expected.traffic.requests as f64 * compute.request_s
            + expected.traffic.bytes as f64 * compute.received_byte_s;
    }
    let url = object.url().to_string();
    expected.explained = Some(Explained { url, targets, method, plans, unpacked });
    expected
}

/// How regions of an image are read: the method, the plans one after the other, the bytes that are
/// unpacked, and the seconds that takes.
fn reads(
    object: &Object,
    template: &Template,
    placed: &[Placed],
    costs: &Costs,
    connected: u32,
    opened_bytes: u64,
    compute: &Compute,
) -> (&'static str, Vec<Plan>, u64, f64) {
    let (segments, decoded, mut unpack_s) = match &template.image.storage {
        Storage::Contiguous { offset } => {
            (vec![rows(template, placed, *offset, object.content.gap_bytes())], 0, 0.0)
        }
        Storage::Tiles(table) => {
            let (rounds, decoded) = tiles(template, table, placed);
            let codec = table.codec.codec.name();
            let byte_s = compute.tile_byte_s.get(codec).copied().unwrap_or(compute.gzip_byte_s);
            (rounds, decoded, decoded as f64 * byte_s)
        }
    };
    let tiled = segments.len() > 1;
    let at = if tiled { Break::BetweenSegments } else { Break::Anywhere };
    match &object.content {
        Content::Plain(_) => {
            let plans = segments
                .iter()
                .map(|round| {
                    let rest: Vec<Range<u64>> =
                        round.iter().filter(|range| range.end > opened_bytes).cloned().collect();
                    read_plan(object.source(), &rest, costs, at, connected)
                })
                .collect();
            (if tiled { "tiles" } else { "ranges" }, plans, decoded, unpack_s)
        }
        Content::Stream(_) => {
            let wanted: Vec<Range<u64>> = segments.concat();
            let end = object.known_end();
            let Some(reader) = object.content.stream_reader() else {
                return ("ranges", Vec::new(), 0, 0.0);
            };
            let Stretch { ranges, raw, first } = reader.stretch(&wanted, end);
            unpack_s += raw as f64
                * match object.kind() {
                    Some(StreamKind::Bzip2) => compute.bzip2_byte_s,
                    _ if first => compute.gzip_first_byte_s,
                    _ => compute.gzip_byte_s,
                };
            let plans =
                vec![read_plan(object.source(), &ranges, costs, Break::Anywhere, connected)];
            let method = if first { "decompressed once" } else { "from seek points" };
            (method, plans, raw + decoded, unpack_s)
        }
    }
}

/// The plan for a read, or what it asks where the bytes are kept here.
fn read_plan(
    source: &dyn Source,
    ranges: &[Range<u64>],
    costs: &Costs,
    at: Break,
    connected: u32,
) -> Plan {
    if !source.is_local()
        && let Some((_, Traffic { bytes, requests, .. })) = at_hand(source, ranges, at)
    {
        let load = Load { requests, bytes, largest: bytes };
        return Plan { load, streams: 1, seconds: costs.seconds(load, 1), ..Plan::default() };
    }
    plan(ranges, costs, CAPS, at, connected)
}

/// The byte ranges of the rows of regions, sorted; those close together as one.
fn rows(template: &Template, placed: &[Placed], offset: u64, gap_bytes: u64) -> Vec<Range<u64>> {
    let size = template.image.dtype.size() as u64;
    let whole = Region::whole(&template.image.shape);
    let mut segments = Vec::new();
    for placed in placed {
        let runs = whole.runs(&placed.output, &placed.inside);
        crate::assemble::add_segments(runs, offset, size, gap_bytes, &mut segments);
    }
    segments.sort_unstable_by_key(|segment| segment.start);
    segments
}

/// The rows of the table of tiles, and about where the tiles lie: as if all were of the same
/// length, in order. Also the bytes they decode to.
fn tiles(template: &Template, table: &TileTable, placed: &[Placed]) -> (Vec<Vec<Range<u64>>>, u64) {
    let shape = &template.image.shape;
    let mut needed: Vec<u64> =
        placed.iter().flat_map(|placed| table.rows_for(shape, &placed.inside)).collect();
    needed.sort_unstable();
    needed.dedup();
    let average = table.heap_len / table.rows.max(1);
    let range = |start: u64, bytes: u64, tile: u64| {
        start.saturating_add(tile * bytes)..start.saturating_add((tile + 1) * bytes)
    };
    let entries =
        needed.iter().map(|&tile| range(table.table_start, table.row_bytes, tile)).collect();
    let data = needed.iter().map(|&tile| range(table.heap_start, average, tile)).collect();
    let pixels: u64 = table.tile_shape.iter().product();
    let decoded = needed.len() as u64 * pixels * template.image.dtype.size() as u64;
    (vec![entries, data], decoded)
}
