//! The arrays of a run: how they are divided over ranks, cut into shards, and described as Zarr 3.
//! Pure: it reads and writes nothing. Python's `swathe.runs` computes the same; a test compares what
//! both write.
#![warn(missing_docs)]

mod element;
mod exchange;
mod metadata;
mod pattern;
mod settings;
mod shards;

pub use element::Element;
pub use exchange::{Exchange, Piece};
pub use metadata::{ArrayMetadata, GroupMetadata, NODE, shard_name};
pub use pattern::{Division, Pattern};
pub use settings::{ArraySettings, Mode, SLOTS, check_iterations, check_name};
pub use shards::{Sharding, for_each_row, strides};

/// An argument, or a description, that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);

impl Invalid {
    fn new(what: &str, expected: &str, found: impl std::fmt::Display) -> Invalid {
        // What a caller or a file gave may be long.
        let found: String = found.to_string().chars().take(80).collect();
        Invalid(format!("{what}: expected {expected}, found {found}"))
    }
}
