//! The objects of a batch: each copy is opened once, and stays open until the last unit is done.

use super::lock;
use crate::error::EngineError;
use crate::job::Job;
use crate::object::Object;
use crate::worker_context::Cancel;
use std::sync::{Arc, Mutex};
use swathe_store_api::StoreError;

/// By their numbers in the batch.
pub(super) struct Objects {
    objects: Vec<BatchObject>,
}

/// An object while units of it are left.
struct BatchObject {
    unit_count: Mutex<usize>,
    copies: Vec<Mutex<Slot>>,
    /// The copy that was opened first and has not changed since: its number, length and URL.
    first: Mutex<Option<(usize, u64, String)>>,
}

/// A copy of an object.
#[derive(Default)]
struct Slot {
    object: Option<Result<Arc<Object>, OpenError>>,
    /// Whether the index is known to be behind.
    fresh: bool,
}

/// Why an object could not be opened, or read.
#[derive(Clone, Debug)]
pub(super) struct OpenError {
    /// Whether it does not exist.
    pub missing: bool,
    /// Whether its store failed with this object.
    pub is_of_store: bool,
    /// Whether its store may fail with other objects, too.
    pub is_of_whole_store: bool,
    pub message: String,
}

impl OpenError {
    pub fn of(error: &EngineError) -> OpenError {
        OpenError {
            missing: error.is_missing(),
            is_of_store: error.is_of_store(),
            is_of_whole_store: error.is_of_whole_store(),
            message: error.to_string(),
        }
    }

    /// The same for one of the targets.
    pub fn to_error(&self) -> EngineError {
        EngineError::Shared { missing: self.missing, message: self.message.clone() }
    }

    /// Another copy failed, too.
    #[must_use]
    pub fn and(self, other: OpenError) -> OpenError {
        OpenError {
            missing: self.missing && other.missing,
            message: format!("{}; its copy: {}", self.message, other.message),
            ..other
        }
    }
}

impl Objects {
    /// The number of units left for each, and that of its copies.
    pub fn new(units: Vec<usize>, copies: impl Fn(usize) -> usize) -> Objects {
        let object = |(number, unit_count)| BatchObject {
            unit_count: Mutex::new(unit_count),
            copies: (0..copies(number)).map(|_| Mutex::default()).collect(),
            first: Mutex::default(),
        };
        Objects { objects: units.into_iter().enumerate().map(object).collect() }
    }

    /// A copy of an object, opened once for all units. Copies of another length are not opened.
    pub fn open(
        &self,
        number: usize,
        copy: usize,
        job: &Job,
        cancel: &Cancel,
    ) -> Result<Arc<Object>, OpenError> {
        let BatchObject { copies, first, .. } = &self.objects[number];
        let mut slot = lock(&copies[copy]);
        let fresh = slot.fresh;
        let open = || {
            let url = job.url(number, copy);
            let source = job.open_sources.take(url).filter(|_| !fresh);
            let object = match source {
                Some(source) => {
                    let name = job.stores.is_named(url).then(|| url.to_string());
                    // It may have changed since, and then it is opened anew.
                    Object::of_source(source, name, &job.stores, cancel.clone())?.of_before()
                }
                None => Object::open(url, &job.stores, fresh, cancel.clone())?,
            };
            let url = object.display_name().to_string();
            let mut first = lock(first);
            let (_, size, first_url) = first.get_or_insert((copy, object.size(), url.clone()));
            if object.size() != *size {
                return Err(EngineError::Store(StoreError::Differs {
                    url,
                    expected: format!("{size} bytes as in {first_url}"),
                    found: format!("{} bytes", object.size()),
                }));
            }
            Ok(Arc::new(object))
        };
        slot.object.get_or_insert_with(|| open().map_err(|error| OpenError::of(&error))).clone()
    }

    /// Forget a copy that was opened at a version it no longer has.
    pub fn forget(&self, number: usize, copy: usize, stale: &Object) {
        let BatchObject { copies, first, .. } = &self.objects[number];
        // Its new version may have another length.
        lock(first).take_if(|(open_copy, ..)| *open_copy == copy);
        let mut slot = lock(&copies[copy]);
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
        let BatchObject { unit_count, copies, .. } = &self.objects[number];
        let mut count = lock(unit_count);
        *count -= 1;
        if *count > 0 {
            return Vec::new();
        }
        drop(count);
        let mut notes = Vec::new();
        for copy in copies {
            let Some(Ok(object)) = lock(copy).object.take() else { continue };
            let result = object.settle(cancel).err();
            let damage = result.filter(|error| !matches!(error, EngineError::Interrupted));
            notes.extend(damage.iter().map(EngineError::to_string));
            notes.extend(object.take_notes());
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{ObjectCopy, OutputKind, ReplicaStore, Replicas};
    use crate::testing::{job, path_in, write_pixel};

    #[test]
    fn only_damage_is_noted_when_an_object_is_closed() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = path_in(&folder, "cut-short.fits.gz");
        let job = job(&file, "out", OutputKind::Folder);
        std::fs::write(&file, [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]).expect("written");
        for (is_interrupted, notes) in [(false, 1), (true, 0)] {
            let (objects, cancel) = (Objects::new(vec![1], |_| 1), Cancel::default());
            objects.open(0, 0, &job, &cancel).expect("opened");
            if is_interrupted {
                cancel.cancel();
            }
            let warnings = objects.release(0, &cancel);
            assert_eq!(warnings.len(), notes, "{warnings:?}");
        }
    }

    #[test]
    fn a_copy_of_another_length_is_not_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = ["a.fits", "b.fits", "c.fits"].map(|name| path_in(&folder, name));
        files.iter().for_each(write_pixel);
        std::fs::write(&files[1], [b' '; 2880]).expect("written");
        let copy = |store: usize| ObjectCopy { store, url: files[store].clone() };
        let store = |name: &str| ReplicaStore { name: name.into(), target_s: 1.0 };
        let job = Job {
            replicas: Some(Replicas {
                stores: ["a", "b", "c"].map(store).into(),
                copies: vec![(0..3).map(copy).collect()],
            }),
            ..job(&files[0], "out", OutputKind::Folder)
        };
        let (objects, cancel) = (Objects::new(vec![1], |_| 3), Cancel::default());
        objects.open(0, 0, &job, &cancel).expect("opened");
        let error = objects.open(0, 1, &job, &cancel).map(|_| ()).expect_err("another length");
        assert!(error.is_of_store && !error.is_of_whole_store && !error.missing, "{error:?}");
        assert!(error.message.contains("expected 5760 bytes as in"), "{}", error.message);
        assert!(error.message.ends_with("a.fits, found 2880 bytes"), "{}", error.message);
        let third = objects.open(0, 2, &job, &cancel).expect("opened");
        // Replaced during the run.
        let first = objects.open(0, 0, &job, &cancel).expect("open");
        std::fs::write(
            &files[0],
            [std::fs::read(&files[0]).expect("read"), vec![0; 2880]].concat(),
        )
        .expect("written");
        objects.forget(0, 2, &third);
        objects.forget(0, 0, &first);
        assert_eq!(objects.open(0, 0, &job, &cancel).expect("the new one").size(), 8640);
        assert!(objects.open(0, 2, &job, &cancel).is_err());
        let missing = OpenError::of(&EngineError::Store(StoreError::NotFound {
            url: "x".into(),
            why: String::new(),
        }));
        assert!(missing.clone().and(missing.clone()).missing && !missing.and(error).missing);
    }
}
