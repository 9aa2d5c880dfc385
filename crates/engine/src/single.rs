//! One region of one object.

use crate::assemble;
use crate::cutout::{Cutout, Mode, Placed};
use crate::error::EngineError;
use crate::object::{Object, Selector};
use crate::work::{Cancel, Work};
use swathe_array::Region;

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
    cancel: &Cancel,
) -> Result<Cutout, EngineError> {
    let template = object.template(selector)?;
    let placed = Placed::new(&template, region, mode, fill)?;
    let mut finished = None;
    let mut work = Work { keeps: true, ..Work::start(cancel.clone()) };
    assemble::cut(object, &template, vec![(0, placed)], &mut work, &mut |_, cutout, _| {
        finished = Some(cutout);
        Ok(())
    })?;
    object.settle(cancel)?;
    finished.unwrap_or_else(|| {
        Err(EngineError::Internal {
            place: format!("cutting {region} of {}", object.url()),
            message: "no cutout came out".into(),
        })
    })
}
