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
use swathe_plan::Objective;
use swathe_trace::Ids;

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
    let about = object.about();
    record_start("CUT_START", Instant::now(), &about);
    object.source().begin_cut();
    let cut = object.template(selector).and_then(|template| {
        let region = PlacedRegion::new(&template, region, mode, fill, None)?;
        cut_region(object, &template, region, objective, cancel, &about)
    });
    let bytes = cut.as_ref().ok().map(|cutout| cutout.file.len() as u64);
    record_end(&["CUT_END"], Instant::now(), &about, bytes, cut.as_ref().err());
    cut
}

fn cut_region(
    object: &Object,
    template: &Arc<Template>,
    region: PlacedRegion,
    objective: Objective,
    cancel: &Cancel,
    about: &Ids,
) -> Result<Cutout, EngineError> {
    let mut result = None;
    let mut work = WorkerContext { keeps: true, ..WorkerContext::start(cancel.clone()) };
    work.reading.sharing.objective = objective;
    work.stages.about(about.clone());
    work.reclaim_buffers();
    assemble::cut(object, template, vec![(0, region)], &mut work, &mut |_, cutout, _| {
        result = Some(cutout);
        Ok(())
    })?;
    work.leave_buffers();
    if object.is_unverified() {
        work.stages.enter(Stage::Read);
    } else {
        work.stages.enter_without_event(Stage::Read);
    }
    object.settle(cancel).inspect_err(|error| work.stages.fail(error))?;
    work.stages.about(Ids::default());
    result.unwrap_or_else(|| {
        Err(EngineError::Internal {
            place: format!("cutting from {}", object.url()),
            message: "no cutout came out".into(),
        })
    })
}
