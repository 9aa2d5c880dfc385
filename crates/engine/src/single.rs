//! One region of one object.

use crate::assemble;
use crate::cutout::{Cutout, Mode, PlacedRegion};
use crate::error::EngineError;
use crate::object::Object;
use crate::selector::Selector;
use crate::template::Template;
use crate::timing::{Stage, record_end, record_start};
use crate::worker_context::{Cancel, WorkerContext};
use std::sync::Arc;
use std::time::Instant;
use swathe_array::Region;
use swathe_layout::Storage;
use swathe_plan::Objective;
use swathe_trace::Ids;

/// A cut that reads and decodes no more than this takes milliseconds, of bzip2 some tenths of a
/// second: nobody stops it.
const BRIEF_BYTES: u64 = 4 << 20;

/// Whether a cut is brief: of a plain file of this host, whose headers or index are known.
pub fn is_brief(object: &Object, selector: &Selector, region: &Region) -> bool {
    if !object.is_local() || object.kind().is_some() {
        return false;
    }
    let Some(template) = object.known_template(selector) else { return false };
    let layout = &template.layout;
    if region.axes() != layout.shape.len() {
        return false;
    }
    let product = |sides: &[u64]| sides.iter().fold(1, |all: u64, &side| all.saturating_mul(side));
    let in_chunks = match (&layout.storage, Region::of_shape(&layout.shape).intersection(region)) {
        (Storage::Chunked(table), Some(inside)) => {
            layout.need(&inside).pieces.saturating_mul(product(&table.grid().chunk_shape))
        }
        _ => 0,
    };
    let elements = product(&region.shape()).max(in_chunks);
    elements.saturating_mul(layout.element_bytes as u64) <= BRIEF_BYTES
}

/// Cut one region.
///
/// # Errors
/// As [`EngineError`] says.
pub fn cut(
    object: &Object,
    selector: &Selector,
    region: &Region,
    mode: Mode,
    fill: Option<f64>,
    objective: Objective,
    cancel: &Cancel,
) -> Result<Cutout, EngineError> {
    let regions = std::slice::from_ref(region);
    let mut cutouts = cut_each(object, selector, regions, mode, fill, objective, cancel)?;
    cutouts.pop().ok_or_else(|| no_cutout(object))
}

/// Cut several regions of one image, planned together: no byte is read twice.
///
/// # Errors
/// As [`EngineError`] says.
pub fn cut_each(
    object: &Object,
    selector: &Selector,
    regions: &[Region],
    mode: Mode,
    fill: Option<f64>,
    objective: Objective,
    cancel: &Cancel,
) -> Result<Vec<Cutout>, EngineError> {
    let about = object.about();
    record_start("CUT_START", Instant::now(), &about);
    object.source().begin_cut();
    let cut = object.template(selector).and_then(|template| {
        let targets = PlacedRegion::each(&template, regions, mode, fill)?;
        cut_regions(object, &template, targets, objective, cancel, &about)
    });
    let sum = |cutouts: &Vec<Cutout>| cutouts.iter().map(|each| each.file.len() as u64).sum();
    let bytes = cut.as_ref().ok().map(sum);
    record_end(&["CUT_END"], Instant::now(), &about, bytes, cut.as_ref().err());
    cut
}

fn cut_regions(
    object: &Object,
    template: &Arc<Template>,
    regions: Vec<PlacedRegion>,
    objective: Objective,
    cancel: &Cancel,
    about: &Ids,
) -> Result<Vec<Cutout>, EngineError> {
    let mut cutouts: Vec<Option<Cutout>> = regions.iter().map(|_| None).collect();
    let mut work = WorkerContext { keeps: true, ..WorkerContext::start(cancel.clone()) };
    work.reading.sharing.objective = objective;
    work.stages.about(about.clone());
    work.reclaim_buffers();
    let regions = regions.into_iter().enumerate().collect();
    let cut = assemble::cut(object, template, regions, &mut work, &mut |at, cutout, _| {
        cutouts[at] = Some(cutout?);
        Ok(())
    });
    object.count(work.traffic());
    cut?;
    work.leave_buffers();
    if object.is_unverified() {
        work.stages.enter(Stage::Read);
    } else {
        work.stages.enter_without_event(Stage::Read);
    }
    object.settle(cancel).inspect_err(|error| work.stages.fail(error))?;
    work.stages.about(Ids::default());
    cutouts.into_iter().map(|cutout| cutout.ok_or_else(|| no_cutout(object))).collect()
}

fn no_cutout(object: &Object) -> EngineError {
    EngineError::Internal {
        place: format!("cutting from {}", object.url()),
        message: "no cutout came out".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{path_in, stores, write_pixel};

    #[test]
    fn a_cut_is_brief_once_its_image_is_known_and_if_it_is_small() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = path_in(&folder, "a.fits");
        write_pixel(&file);
        let object = Object::open(&file, &stores(), false, Cancel::default()).expect("opened");
        let (selector, pixel) = (Selector::Index(0), Region::of_shape(&[1, 1]));
        assert!(!is_brief(&object, &selector, &pixel));
        assert!(object.known_hdu(&selector).is_none());
        object.template(&selector).expect("an image");
        assert_eq!(object.known_hdu(&selector).map(|hdu| hdu.index), Some(0));
        assert!(object.known_hdu(&Selector::Index(1)).is_none());
        assert!(is_brief(&object, &selector, &pixel));
        assert!(!is_brief(&object, &selector, &Region::of_shape(&[1 << 20, 1 << 20])));
        assert!(!is_brief(&object, &selector, &Region::of_shape(&[1])));
    }
}
