//! Objects on HTTP(S) and WebDAV servers, in buckets, and on XRootD's through their HTTP door.
//!
//! All are read with plain HTTP requests. object_store's HTTP store speaks WebDAV, has no room
//! for a query and does not keep the server's words; its stores of buckets are used for what is
//! hard, to find credentials and sign. So every answer passes the same checks, which are here. Buckets
//! are written to by its stores, and other servers by requests of ours.

mod attempt;
mod bucket;
mod checksums;
mod copy_markers;
mod copy_progress;
mod endpoint;
mod flights;
mod hidden_object;
mod http_listing;
mod http_store;
mod index_page;
mod limiter;
mod line_turns;
mod link_meter;
mod multiplexed_read;
mod object_reader;
mod propfind_version;
mod range_request;
mod remote_object;
mod request_events;
mod request_target;
mod response;
mod retry;
mod server_key;
mod shared_fetch;
mod shared_opening;
mod stall_timeout;
mod vector_request;
mod webdav;
mod webdav_copy;
mod webdav_listing;
mod webdav_put;
mod webdav_room;

pub(crate) use bucket::{BucketStore, Cloud};
pub(crate) use http_store::HttpStore;
pub(crate) use retry::RetryState;
pub(crate) use stall_timeout::StallLimits;
