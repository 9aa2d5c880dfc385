//! Where bytes come from: the kinds of stores. What they hold, and copies from one to another.
//!
//! Callers block; what waits for a network does so on a runtime of this crate
//! (`docs/design/001-blocking-sources.md`).
#![warn(missing_docs)]

mod bearer;
mod beneath;
mod copy;
mod list;
mod local;
mod open;
mod place;
mod remote;
mod stores;
mod timing;
mod write;

pub use copy::{Copied, Copies, Done, Order};
pub use list::{Entry, Listing};
#[doc(hidden)]
pub use open::open_with_stall;
pub use open::{open, shown};
pub use stores::{Store, Stores};
pub use timing::{Timing, take_timings};
pub use write::rename_each;
