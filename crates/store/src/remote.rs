//! Objects on HTTP(S) and WebDAV servers, in buckets, and on XRootD's through their HTTP door.
//!
//! All are read with plain HTTP requests. object_store's HTTP store speaks WebDAV, has no room
//! for a query and does not keep the server's words; its stores of buckets are used for what is
//! hard, to find credentials and sign. So every answer passes the same checks, which are here. Buckets
//! are written to by its stores, and other servers by requests of ours.

mod answer;
mod attempt;
mod bucket;
mod dating;
mod endpoint;
mod http_store;
mod limiter;
mod object;
mod patience;
mod putting;
mod reading;
mod server_key;
mod silence;
mod target;
mod told;
mod webdav;

pub(crate) use bucket::{BucketStore, Cloud};
pub(crate) use http_store::HttpStore;
pub(crate) use patience::Patience;
pub(crate) use silence::Stall;
