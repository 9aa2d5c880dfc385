//! Open, lay out, select, fetch, decode, assemble, write: cutouts of one region or many.
//!
//! Knows layouts, plans and the contract of stores, and no network. Threads, no async: [`swathe_store_api::Source`] hides that.
#![warn(missing_docs)]

mod ahead;
mod assemble;
mod batch;
mod content;
mod cutout;
mod error;
mod estimate;
mod inflate;
mod job;
mod kept;
mod memory;
mod object;
mod output;
mod requests;
mod sha256;
mod single;
mod stages;
mod template;
#[cfg(test)]
mod testing;
mod work;

pub use batch::{Batch, Row, Summary, Written};
pub use cutout::{Cutout, Mode};
pub use error::EngineError;
pub use estimate::{Estimate, Explained, Instead, estimate};
pub use job::{Job, OutputKind, Target};
pub use object::{Object, Selector};
pub use output::{Member, Output, members, unfinished};
pub use single::cut;
pub use stages::{STAGES, Stage, Stages};
pub use template::Template;
pub use work::{Cancel, Work};
