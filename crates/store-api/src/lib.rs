//! The contract between what keeps objects and what reads or writes them: stores and sources of
//! bytes, versions, what was moved, errors, and which store an object is in. It makes no request and
//! opens no file itself.
#![warn(missing_docs)]

mod checksum;
mod content_digest;
mod error;
mod failure;
mod interrupt;
mod listing;
mod memory;
mod multipart;
mod part_name;
mod part_sums;
mod server_copy;
mod settings;
mod source;
mod space;
mod store;
mod stores;
mod timing;

pub use checksum::{Checksum, compare_checksums};
pub use content_digest::{CONTENT_DIGEST, ContentDigest, WANT_CONTENT_DIGEST};
pub use error::{DAMAGE_HEADER, StoreError, VERIFICATION_HEADER};
pub use failure::{Failure, Retry};
pub use interrupt::Interrupt;
pub use listing::{
    Entry, HIDDEN_PREFIX, LONGEST_PATH_BYTES, ListItem, ListOptions, Listing, ZARR_NAMES,
    is_hidden, is_hidden_name,
};
pub use memory::MemoryStore;
pub use multipart::{JOINED_HEADER, Multipart, MultipartError, parse_content_range};
pub use part_name::{is_part_name, own_part_name, part_name};
pub use part_sums::{CRC32_HEADER, PartAlgorithm, PartSums};
pub use server_copy::{CopyRefusal, ServerCopy};
pub use settings::{PlaceDescription, StoreDescription, StoreSettings, StripePlace};
pub use source::{PROVEN_BYTES, Pieces, Source, TRUST, Traffic, TrafficCount, Version};
pub use space::{DiskSpace, Space};
pub use store::{
    Comparison, CopySource, ObjectName, Room, Sink, Store, cannot_remove, cannot_write,
};
pub use stores::{Connect, Layer, Stores};
pub use timing::{MultiplexTiming, RequestTiming, VectorTiming, measure_reads};
