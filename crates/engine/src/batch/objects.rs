//! The objects of a batch: each is opened once, and kept while units of it are left.

use super::cutting::Shared;
use super::units::Unit;
use super::{Job, lock};
use crate::error::EngineError;
use crate::object::Object;
use std::sync::Arc;

/// An object while units of it are left.
pub(super) struct Slot {
    pub units_left: usize,
    pub opened: Option<Result<Arc<Object>, String>>,
    missing: bool,
    /// Whether the index is known to be behind.
    fresh: bool,
}

impl Slot {
    pub fn new(units_left: usize) -> Slot {
        Slot { units_left, opened: None, missing: false, fresh: false }
    }
}

impl Shared {
    /// The object, opened once for all its units.
    pub fn open(&self, file: usize) -> Result<Arc<Object>, (bool, String)> {
        let mut slot = lock(&self.files[file]);
        if slot.opened.is_none() {
            let Job { files, stores, .. } = &self.job;
            let opened = Object::open(&files[file], stores, slot.fresh, self.cancel.clone());
            slot.missing = opened.as_ref().is_err_and(EngineError::is_missing);
            slot.opened = Some(opened.map(Arc::new).map_err(|error| error.to_string()));
        }
        match &slot.opened {
            Some(Ok(object)) => Ok(object.clone()),
            Some(Err(message)) => Err((slot.missing, message.clone())),
            None => Err((false, "not opened".into())),
        }
    }

    /// Forget an object that was opened at a version it no longer has.
    pub fn open_again(&self, file: usize, stale: &Object) {
        let mut slot = lock(&self.files[file]);
        slot.fresh = true;
        if let Some(Ok(object)) = &slot.opened
            && std::ptr::eq(&**object, stale)
        {
            slot.opened = None;
        }
    }

    /// Close the object after its last unit, and keep what was learnt of it.
    pub fn release(&self, unit: &Unit) {
        let mut slot = lock(&self.files[unit.file]);
        slot.units_left -= 1;
        if slot.units_left > 0 {
            return;
        }
        if let Some(Ok(object)) = slot.opened.take() {
            drop(slot);
            if let Err(error) = object.settle(&self.cancel)
                && !matches!(error, EngineError::Interrupted)
            {
                lock(&self.notes).push(error.to_string());
            }
            lock(&self.notes).extend(object.take_notes());
        }
    }
}
