//! `libswathe`: objects of any store as a C program reads and writes files, cuts, the arrays of a run,
//! and events.
//!
//! Only converts arguments, keeps handles and maps errors; the work is that of the crates below, and
//! there is no Python. What a caller owes a function stands in its text, which is also that of
//! `include/swathe.h`.
#![warn(missing_docs)]
#![allow(clippy::missing_safety_doc)] // see above

mod boundary;
mod cut_calls;
mod fault;
mod handles;
mod image_cut;
mod known_stores;
mod object_calls;
mod ranks;
mod reader;
mod run_calls;
mod run_reader;
mod run_writer;
#[cfg(test)]
mod tests;
mod trace_calls;
mod write_threads;
mod writer;

pub use boundary::{sw_error, sw_version};
pub use cut_calls::{SW_PARTIAL, SW_REPLACE, SW_STRICT, SW_TRIM, sw_cut, sw_cut_pixels, sw_image};
pub use object_calls::{
    sw_alloc, sw_close, sw_lseek, sw_open, sw_pread, sw_preadv, sw_range, sw_read, sw_stat,
    sw_write,
};
pub use ranks::sw_ranks;
pub use run_calls::{
    SW_OVERWRITE, sw_run_array, sw_run_begin, sw_run_block, sw_run_end, sw_run_folder, sw_run_open,
    sw_run_read, sw_run_sync, sw_run_write,
};
pub use trace_calls::{sw_trace_close, sw_trace_event, sw_trace_open};
