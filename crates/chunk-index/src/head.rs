//! The JSON of an index, as far as it concerns positions; the rest is for those who show it.

use serde::Deserialize;
use swathe_codecs::chunk::Filter;

/// What the JSON says.
#[derive(Deserialize)]
pub(crate) struct Head {
    pub format: String,
    pub arrays: Vec<ArrayHead>,
    /// Rows of the columns.
    pub chunks: u64,
}

/// An array. Axes are listed from the slowest.
#[derive(Deserialize)]
pub(crate) struct ArrayHead {
    pub name: String,
    pub dtype: serde_json::Value,
    pub element_bytes: usize,
    pub shape: Vec<u64>,
    pub dims: Vec<String>,
    pub fill: Option<String>,
    pub storage: StorageHead,
}

/// Positions of its elements.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum StorageHead {
    Contiguous { offset: u64 },
    Chunks { chunk_shape: Vec<u64>, is_padded: bool, filters: Vec<Filter>, first: u64, count: u64 },
    Regular { offset: u64, chunk_shape: Vec<u64>, strides: Vec<u64> },
    Inline {},
    Library { why: String },
    Refused { why: String },
}
