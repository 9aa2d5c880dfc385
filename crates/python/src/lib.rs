//! The native half of the Python package: converts arguments, releases the GIL, maps errors.
//! No logic.
#![allow(missing_docs)] // documented in python/swathe/_swathe.pyi

mod batch;
mod buffers;
mod copies;
mod costs;
mod disk_cache;
mod errors;
mod gil;
mod listing;
mod object;
mod stores;
mod trace;

use pyo3::prelude::*;

#[pymodule]
mod _swathe {
    #[pymodule_export]
    use crate::batch::{Batch, Job, Output, Rows, zip_members};
    #[pymodule_export]
    use crate::copies::{Copied, Copies, remove_folder, rename_each};
    #[pymodule_export]
    use crate::costs::{line_s, queue_s, request_s, requests_s};
    #[pymodule_export]
    use crate::disk_cache::{Kept, SimulatedShelf, clear_kept, kept};
    #[pymodule_export]
    use crate::listing::Listing;
    #[pymodule_export]
    use crate::object::{Cutout, HduInfo, Object, Pixels, open, shown};
    #[pymodule_export]
    use crate::stores::{
        Source, Stores, Timing, assumed_costs, blocks_are_at, blocks_described, blocks_of, confine,
        measure, measure_open, measure_restarts, peer_costs, pull_blocks, share_blocks, store_key,
        take_timings,
    };
    #[pymodule_export]
    use crate::trace::{
        Column, Scope, read_ulm, trace_event, trace_forget, trace_is_on, trace_scope, trace_start,
        trace_stop,
    };

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("TRUSTED_S", swathe_store_api::TRUSTED.as_secs_f64())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
