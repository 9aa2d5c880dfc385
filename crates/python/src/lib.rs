//! The native half of the Python package: converts arguments, releases the GIL, maps errors.
//! No logic.
#![allow(missing_docs)] // documented in python/swathe/_swathe.pyi

mod batch;
mod block_peers;
mod block_server;
mod buffers;
mod chunk;
mod copies;
mod costs;
mod disk_cache;
mod errors;
mod gil;
mod listing;
mod object;
mod python_errors;
mod python_source;
mod python_store;
mod python_writes;
mod reduction;
mod source;
mod stores;
mod trace;
mod window;

use pyo3::prelude::*;

#[pymodule]
mod _swathe {
    #[pymodule_export]
    use crate::batch::{Batch, Job, Output, Rows, ZipMembers};
    #[pymodule_export]
    use crate::block_peers::{
        cached_bytes, describe_blocks, peer_costs, pull_blocks, set_block_peers, share_blocks,
    };
    #[pymodule_export]
    use crate::block_server::serve_disks;
    #[pymodule_export]
    use crate::chunk::{crc32c, decode_chunk};
    #[pymodule_export]
    use crate::copies::{Copies, CopyOutcome, remove_folder, rename_each};
    #[pymodule_export]
    use crate::costs::{line_s, queue_s, request_s, requests_s};
    #[pymodule_export]
    use crate::disk_cache::{CacheUsage, SimulatedCache, cache_usage, clear_cache};
    #[pymodule_export]
    use crate::listing::Listing;
    #[pymodule_export]
    use crate::object::{Cutout, HduInfo, Object, Pixels, open, redact_url};
    #[pymodule_export]
    use crate::reduction::{Reduction, latitudes};
    #[pymodule_export]
    use crate::source::{
        MultiplexTiming, Source, Timing, VectorTiming, measure_restarts, received_bytes,
        take_timings,
    };
    #[pymodule_export]
    use crate::stores::{
        RepairProgress, StoreKind, Stores, assumed_costs, confine, measure, measure_open,
        open_source, store_key,
    };
    #[pymodule_export]
    use crate::trace::{
        Column, RotatingFile, Scope, clock_reply, read_ulm, trace_event, trace_forget, trace_is_on,
        trace_scope, trace_start, trace_stop, ulm_line,
    };

    #[pymodule_export]
    use crate::window::WindowReader;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        swathe_store::connect_others_by(crate::python_store::connect);
        module.add("LONGEST_PATH_BYTES", swathe_store_api::LONGEST_PATH_BYTES)?;
        module.add("HIDDEN", swathe_store_api::HIDDEN_PREFIX)?;
        module.add("TRUSTED_S", swathe_store_api::TRUST.as_secs_f64())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
