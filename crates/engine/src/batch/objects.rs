//! The objects of a batch: each is opened once, and stays open until its last unit is done.

use super::lock;
use crate::error::EngineError;
use crate::object::Object;
use crate::worker_context::Cancel;
use std::sync::{Arc, Mutex};
use swathe_store_api::Stores;

/// By their numbers in the batch.
pub(super) struct Objects {
    slots: Vec<Mutex<Slot>>,
}

/// An object while units of it are left.
#[derive(Default)]
struct Slot {
    unit_count: usize,
    object: Option<Result<Arc<Object>, String>>,
    missing: bool,
    /// Whether the index is known to be behind.
    fresh: bool,
}

impl Objects {
    /// The number of units left for each.
    pub fn new(units: Vec<usize>) -> Objects {
        let slot = |unit_count| Mutex::new(Slot { unit_count, ..Slot::default() });
        Objects { slots: units.into_iter().map(slot).collect() }
    }

    /// The object, opened once for all its units; else whether it is missing, and why it is not
    /// open.
    pub fn open(
        &self,
        number: usize,
        url: &str,
        stores: &Stores,
        cancel: &Cancel,
    ) -> Result<Arc<Object>, (bool, String)> {
        let mut slot = lock(&self.slots[number]);
        if slot.object.is_none() {
            let object = Object::open(url, stores, slot.fresh, cancel.clone());
            slot.missing = object.as_ref().is_err_and(EngineError::is_missing);
            slot.object = Some(object.map(Arc::new).map_err(|error| error.to_string()));
        }
        match &slot.object {
            Some(Ok(object)) => Ok(object.clone()),
            Some(Err(message)) => Err((slot.missing, message.clone())),
            None => Err((false, "not opened".into())),
        }
    }

    /// Forget an object that was opened at a version it no longer has.
    pub fn forget(&self, number: usize, stale: &Object) {
        let mut slot = lock(&self.slots[number]);
        slot.fresh = true;
        if let Some(Ok(object)) = &slot.object
            && std::ptr::eq(&**object, stale)
        {
            slot.object = None;
        }
    }

    /// Close the object after its last unit, and write its index entry. Returns the warnings
    /// for the user.
    pub fn release(&self, number: usize, cancel: &Cancel) -> Vec<String> {
        let mut slot = lock(&self.slots[number]);
        slot.unit_count -= 1;
        if slot.unit_count > 0 {
            return Vec::new();
        }
        let Some(Ok(object)) = slot.object.take() else { return Vec::new() };
        drop(slot);
        let result = object.settle(cancel).err();
        let damage = result.filter(|error| !matches!(error, EngineError::Interrupted));
        let mut notes: Vec<String> = damage.iter().map(EngineError::to_string).collect();
        notes.extend(object.take_notes());
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{path_in, stores};

    #[test]
    fn only_damage_is_noted_when_an_object_is_closed() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = path_in(&folder, "cut-short.fits.gz");
        std::fs::write(&file, [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]).expect("written");
        for (is_interrupted, notes) in [(false, 1), (true, 0)] {
            let (objects, cancel) = (Objects::new(vec![1]), Cancel::default());
            objects.open(0, &file, &stores(), &cancel).expect("opened");
            if is_interrupted {
                cancel.cancel();
            }
            let warnings = objects.release(0, &cancel);
            assert_eq!(warnings.len(), notes, "{warnings:?}");
        }
    }
}
