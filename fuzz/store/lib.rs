//! `swathe-store` as the fuzz targets have it: its files, and no server.

#[path = "../../crates/store/src/error.rs"]
mod error;
#[path = "../../crates/store/src/local.rs"]
mod local;
mod remote;
#[path = "../../crates/store/src/shelf.rs"]
mod shelf;
#[path = "../../crates/store/src/source.rs"]
mod source;

pub use error::StoreError;
pub use shelf::{Shelf, Usage};
pub use source::{Source, Version, open};
