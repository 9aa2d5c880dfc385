//! The contract between what keeps objects and what reads them: sources of bytes, their versions,
//! what was moved, and errors. It makes no request and opens no file itself.
#![warn(missing_docs)]

mod error;
mod measured;
mod source;

pub use error::StoreError;
pub use measured::Measured;
pub use source::{Fetched, Moved, Source, TRUSTED, Traffic, Version};
