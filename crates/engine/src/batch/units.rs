//! How a batch is divided: which targets a thread takes at once, and their positions.

use super::objects::OpenError;
use crate::cutout::PlacedRegion;
use crate::error::EngineError;
use crate::job::{Job, Target};
use crate::template::Template;
use std::collections::{HashMap, VecDeque};
use swathe_array::{Region, RegionError};

/// Targets of one object that a thread takes at once: few enough that threads share the work on
/// one object, many enough that what they share is read once.
const UNIT_TARGETS: usize = 256;
/// Pixels being assembled by one thread, unless one cutout alone is larger.
const UNIT_BYTES: usize = 32 << 20;
/// Threads that wait for servers at the same time; each may hold [`UNIT_BYTES`].
const WAITING_THREADS: usize = 16;

/// Why a unit is not read from the store that the division gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// Its store was behind: actual seconds for a hundred predicted ones.
    Behind { percent: u64 },
    /// Its store failed.
    Failed,
}

/// A unit's way from one store to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Move {
    pub from: usize,
    pub to: usize,
    pub reason: Reason,
}

/// Some targets of one HDU of one object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unit {
    pub file: usize,
    pub hdu: usize,
    pub targets: Vec<usize>,
    /// Whether other units hold targets of the same HDU.
    pub is_part: bool,
    /// Its place in the order of the list.
    pub number: usize,
    /// Which copy of the object it is read from; 0 is that of the job's file.
    pub copy: usize,
    /// Predicted seconds for that copy.
    pub seconds: f64,
    /// The copies that could not be read.
    pub failed_copies: Vec<usize>,
    /// Why they could not be read.
    pub(super) failure: Option<OpenError>,
    /// The store it came from, if it was moved since it was begun last.
    pub(super) last_move: Option<Move>,
}

/// How many threads read this number of units from the stores of some objects: as many as may
/// compute, or, if servers are read, as many as can use their streams; each waits most of the time.
/// Not more of those than take the units in as few rounds: the rest would be planned with a small
/// share, which would leave most of the line idle.
pub(crate) fn workers<'a>(
    job: &Job,
    files: impl IntoIterator<Item = &'a String>,
    units: usize,
) -> usize {
    let units = units.max(1);
    let streams = |file: &String| job.stores.server_of(file).map(|(_, costs)| costs.streams);
    let most = files.into_iter().filter_map(streams).max().unwrap_or(1);
    let rounds = units.div_ceil(WAITING_THREADS.min(most as usize));
    job.threads.max(units.div_ceil(rounds)).clamp(1, units)
}

/// Group targets by object and HDU, in the order the objects first appear, each group from the
/// first image row to the last of each range of planes.
pub(crate) fn divide(job: &Job) -> Vec<Unit> {
    let mut groups: Vec<Unit> = Vec::new();
    let mut number: HashMap<(usize, usize), usize> = HashMap::new();
    for (target, Target { file, hdu, .. }) in job.targets.iter().enumerate() {
        let group = *number.entry((*file, *hdu)).or_insert_with(|| {
            groups.push(Unit { file: *file, hdu: *hdu, ..Unit::default() });
            groups.len() - 1
        });
        groups[group].targets.push(target);
    }
    let mut units = Vec::new();
    for Unit { file, hdu, mut targets, .. } in groups {
        targets.sort_by_key(|&target| {
            let Target { planes, pixels, .. } = &job.targets[target];
            (*planes, pixels[1], target)
        });
        let is_part = targets.len() > UNIT_TARGETS;
        for part in targets.chunks(UNIT_TARGETS) {
            let (number, targets) = (units.len(), part.to_vec());
            units.push(Unit { file, hdu, targets, is_part, number, ..Unit::default() });
        }
    }
    units
}

/// A target on its image.
pub(crate) fn place(
    job: &Job,
    template: &Template,
    target: usize,
) -> Result<PlacedRegion, EngineError> {
    let Target { pixels: [x, y, width, height], planes, .. } = job.targets[target];
    let planes = &job.planes[planes];
    let shape = &template.layout.shape;
    let overflow = |axis, start, size: i64| {
        template.region_error(RegionError::Empty { axis, start, stop: start.wrapping_add(size) })
    };
    // All of the axes that are not named; an image without planes gets two.
    let mut start = vec![0; shape.len().max(2)];
    let mut stop: Vec<i64> =
        shape.iter().map(|&length| i64::try_from(length).unwrap_or(i64::MAX)).collect();
    stop.resize(start.len(), 1);
    for (&axis, (first, length)) in template.plane.iter().zip([(x, width), (y, height)]) {
        start[axis] = first;
        stop[axis] = first.checked_add(length).ok_or_else(|| overflow(axis, first, length))?;
    }
    let others =
        (0..shape.len().max(2 + planes.len())).filter(|axis| !template.plane.contains(axis));
    for (axis, &(first, last)) in others.zip(planes) {
        // Whatever the mode: planes outside the image are a mistake.
        let length = shape.get(axis).map_or(0, |&length| i64::try_from(length).unwrap_or(i64::MAX));
        if !(0 <= first && first < last && last <= length) {
            return Err(template.planes_error(axis, first, last));
        }
        (start[axis], stop[axis]) = (first, last);
    }
    let region = Region::new(start, stop).map_err(|error| template.region_error(error))?;
    PlacedRegion::new(template, &region, job.mode, job.fill, job.most_bytes)
}

/// Take from the front what fits in memory at once, at least one.
pub(super) fn take_part(
    regions: &mut VecDeque<(usize, PlacedRegion)>,
) -> Vec<(usize, PlacedRegion)> {
    let mut bytes = 0;
    let mut part = Vec::new();
    while let Some((_, next)) = regions.front() {
        bytes += next.bytes;
        if !part.is_empty() && bytes > UNIT_BYTES {
            break;
        }
        part.extend(regions.pop_front());
    }
    part
}
