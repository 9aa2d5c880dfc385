//! Open, lay out, select, fetch, decode, assemble, write: cutouts of one region or many.
//!
//! The only crate that knows the others. Threads, no async: [`swathe_store_api::Source`] hides that.
#![warn(missing_docs)]

mod ahead;
mod assemble;
mod batch;
mod content;
mod cutout;
mod error;
mod estimate;
mod inflate;
mod kept;
mod memory;
mod object;
mod output;
mod sha256;
mod single;
mod stages;
mod template;
#[cfg(test)]
mod testing;
mod work;

pub use batch::{Batch, Job, Row, Summary, Target, Written};
pub use cutout::{Cutout, Mode};
pub use error::EngineError;
pub use estimate::{Estimate, Explained, Instead, estimate};
pub use object::{Object, Selector};
pub use output::{Member, Output, OutputKind, members, unfinished};
pub use single::cut;
pub use stages::{STAGES, Stage, Stages};
pub use template::Template;
pub use work::{Cancel, Work};
