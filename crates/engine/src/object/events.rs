//! Events of opening an object, and of reading its headers later.

use super::Object;
use crate::error::EngineError;
use crate::timing::{about, record_end, record_start};
use crate::worker_context::Cancel;
use std::time::Instant;
use swathe_store_api::Stores;

impl Object {
    /// As [`Object::open`], for single cuts: events record that, and headers read later.
    ///
    /// # Errors
    /// As [`Object::open`].
    pub fn open_alone(
        url: &str,
        stores: &Stores,
        fresh: bool,
        cancel: Cancel,
    ) -> Result<Object, EngineError> {
        let object =
            trace_opening(&stores.display_name(url), || Object::open(url, stores, fresh, cancel));
        object.map(|object| Object { tells: true, ..object })
    }

    /// Do what reads headers.
    pub(crate) fn opening<T>(
        &self,
        work: impl FnOnce() -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        if self.tells { trace_opening(self.display_name(), work) } else { work() }
    }
}

/// Open an object, or a part of it, and record that.
fn trace_opening<T>(
    name: &str,
    work: impl FnOnce() -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    let about = about(name);
    record_start("OPEN_START", Instant::now(), &about);
    let result = work();
    record_end(&["OPEN_END"], Instant::now(), &about, None, result.as_ref().err());
    result
}
