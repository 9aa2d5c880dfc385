//! Open, lay out, select, fetch, decode, assemble, write: cutouts of one region or many.
//!
//! Knows layouts, plans and the contract of stores, and no network. Threads, no async: [`swathe_store_api::Source`] hides that.
#![warn(missing_docs)]

mod assemble;
mod batch;
mod byte_source;
mod cutout;
mod decoded_cache;
mod error;
mod estimate;
mod folder;
mod index_entry;
mod inflate;
mod job;
mod object;
mod output;
mod part;
mod prefetch;
mod range_read;
mod requests;
mod selector;
mod sha256;
mod single;
mod template;
#[cfg(test)]
mod testing;
mod timing;
mod turn;
mod window;
mod worker_context;

pub use batch::{Batch, ResultFile, Row, Summary};
pub use cutout::{Cutout, Mode};
pub use error::EngineError;
pub use estimate::{Alternative, Estimate, ReadExplanation, estimate};
pub use job::{Job, ObjectCopy, OpenSources, OutputKind, ReplicaStore, Replicas, Target};
pub use object::Object;
pub use output::{Member, Members, Output, members, part_path};
pub use part::Part;
pub use range_read::read_ranges;
pub use selector::Selector;
pub use single::{cut, cut_each, is_brief};
pub use template::Template;
pub use timing::{STAGES, Stage, Stages};
pub use turn::Turn;
pub use window::{FileState, WindowReader};
pub use worker_context::{Cancel, WorkerContext};
