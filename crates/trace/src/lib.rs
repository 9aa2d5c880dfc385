//! Events: written as ULM lines, read as columns.
//!
//! Knows nothing of the other crates; they may all depend on it.
#![warn(missing_docs)]

mod clock_reply;
mod columns;
mod date;
mod destination;
mod fields;
mod file;
mod lifeline;
mod memory;
mod open_sink;
mod recorder;
mod ring;
mod scope;
mod sender;
mod session;
mod sink;
#[doc(hidden)]
pub mod testing;
mod ulm;
mod writer;

pub use clock_reply::ClockReply;
pub use columns::{DamagedLine, DictColumn, EventTable, Field, Numbers, ReadError, read};
pub use destination::{Destination, DestinationError};
pub use fields::{Ids, Record};
pub use file::RotatingFile;
pub use lifeline::{LIFELINE_HEADER, Lifeline};
pub use recorder::{Counts, Level, StartError, event, events_at, forget, is_on, start, stop};
pub use scope::Scope;
pub use ulm::{LINE_BYTES, Line, UlmError, is_key, parse, parse_fields};
