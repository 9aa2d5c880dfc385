//! Objects on HTTP(S) and WebDAV servers, in buckets, and on XRootD's through their HTTP door.
//!
//! All are read with plain HTTP requests. object_store's HTTP store speaks WebDAV, has no room
//! for a query and does not keep the server's words; its stores of buckets are used for what is
//! hard, to find credentials and sign. So every answer passes the same checks, which are here. Buckets
//! are written to by its stores, and other servers by requests of ours.

mod answer;
mod bucket;
mod dating;
mod limiter;
mod object;
mod patience;
mod putting;
mod reading;
mod shown;
mod silence;
mod target;
mod told;
mod webdav;

pub(crate) use bucket::{Bucket, Cloud, Settings as BucketSettings};
pub(crate) use object::Remote;
pub(crate) use patience::{Failure, Patience};
pub(crate) use putting::Putting;
pub(crate) use shown::{percent_decode, percent_encode, shown};
pub(crate) use silence::Stall;
pub(crate) use webdav::remove;

/// Connections that are open to the store of this key.
pub(crate) fn connections(store: &str) -> u32 {
    limiter::of(store).connections()
}
