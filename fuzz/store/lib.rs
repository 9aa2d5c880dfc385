//! `swathe-store` as the fuzz targets have it: its files, and no server.

#[path = "../../crates/store/src/error.rs"]
mod error;
#[path = "../../crates/store/src/local.rs"]
mod local;
#[path = "../../crates/store/src/shelf.rs"]
mod shelf;
#[path = "../../crates/store/src/source.rs"]
mod source;

pub use error::StoreError;
pub use shelf::{Shelf, Usage};
pub use source::{Source, Version};

use std::sync::Arc;

/// Open a file.
pub fn open(path: &str) -> Result<Arc<dyn Source>, StoreError> {
    Ok(Arc::new(local::Local::open(path.into())?))
}
