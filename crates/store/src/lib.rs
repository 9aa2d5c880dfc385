//! The kinds of stores: folders, servers, buckets. Their contents, and copies between them.
//!
//! Callers block; what waits for a network does so on a runtime of this crate
//! (`docs/design/001-blocking-sources.md`).
#![warn(missing_docs)]

mod bearer;
mod copy;
mod folder_walk;
mod local;
mod local_listing;
mod local_room;
mod local_store;
mod object_writer;
mod open;
mod place;
mod redact;
mod remote;
mod server_copies;
mod store_folders;
mod timing;
mod write;

pub use copy::{Copies, CopyOrder, CopyOutcome, CopyResult, CopyRoute};
pub use local_store::free_and_total;
pub use object_writer::{
    MOST_PARTS, ObjectWriter, PART_BYTES, UnverifiedObject, VerifiedObject, part_bytes,
};
pub use open::{connect, connect_others_by, no_such_scheme, open, redact_url, stores};
#[doc(hidden)]
pub use open::{connect_with_stall, open_with_stall};
pub use redact::{percent_decode, percent_encode};
pub use server_copies::copy_within_server;
pub use store_folders::{Refusal, StoreFolders, sync_folder};
pub use timing::{Timing, received_bytes, take_timings};
pub use write::rename_each;
