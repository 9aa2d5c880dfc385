//! What was found of striped objects and their servers.

use serde::Serialize;
use swathe_store_api::Space;

/// The state of a part or of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PieceState {
    /// All of it is there.
    Whole,
    /// It is not there.
    Missing,
    /// It is not what was written.
    Damaged,
    /// It is of an older version.
    Outdated,
    /// Its server cannot be asked.
    Unreachable,
}

/// What was found of a part, or of a record.
#[derive(Clone, Debug, Serialize)]
pub struct PieceReport {
    /// The server, as `NAME:folder/`.
    pub server: String,
    /// Its state.
    pub state: PieceState,
    /// Why, if it is not whole, or that it is on another server than it was written to.
    pub why: Option<String>,
    /// The bytes at which ranges that differ begin, up to 100. A range is what one checksum is of,
    /// 512 bytes to 1 MiB; `why` says how many.
    pub damage_starts: Vec<u64>,
}

/// What was found of an object.
#[derive(Clone, Debug, Serialize)]
pub struct ObjectReport {
    /// Its path in the store.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Number of its version.
    pub generation: u64,
    /// Writer of its version.
    pub writer: String,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Parts that are needed.
    pub data: u32,
    /// Parts beyond these.
    pub parity: u32,
    /// Its parts, in their order.
    pub parts: Vec<PieceReport>,
    /// Its records, by server.
    pub records: Vec<PieceReport>,
    /// Whether all of it can be read.
    pub is_readable: bool,
}

/// What could not be rebuilt.
#[derive(Clone, Debug, Serialize)]
pub struct RepairFailure {
    /// The server.
    pub server: String,
    /// Why not.
    pub why: String,
}

/// What was rebuilt of an object.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RepairReport {
    /// Servers that a part was written to.
    pub rebuilt_parts: Vec<String>,
    /// Servers that a record was written to.
    pub rebuilt_records: Vec<String>,
    /// Bytes read for that.
    pub bytes_read: u64,
    /// Bytes written.
    #[serde(rename = "bytes_written")]
    pub written_bytes: u64,
    /// What could not be rebuilt.
    #[serde(rename = "failed")]
    pub failures: Vec<RepairFailure>,
}

impl RepairReport {
    /// Add what is on a server that cannot be asked: once for each server.
    pub(crate) fn fail(&mut self, piece: &PieceReport) {
        if self.failures.iter().any(|failure| failure.server == piece.server) {
            return;
        }
        let why = piece.why.as_deref().unwrap_or("no answer");
        let why = format!("unreachable: {why}");
        self.failures.push(RepairFailure { server: piece.server.clone(), why });
    }
}

/// The state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ServerState {
    /// It could be listed.
    #[serde(rename = "reachable")]
    Reachable,
    /// Its folder does not exist or is empty, though other servers have objects.
    #[serde(rename = "missing")]
    Missing,
    /// It said nothing in time.
    #[serde(rename = "no answer")]
    Silent,
    /// It could not be listed for another reason.
    #[serde(rename = "unreachable")]
    Unreachable,
}

/// A server of a striped store.
#[derive(Clone, Debug, Serialize)]
pub struct ServerReport {
    /// Its name, `NAME:folder/`.
    pub server: String,
    /// Its URL.
    pub url: String,
    /// Whether it could be listed.
    pub is_reachable: bool,
    /// The same in more words.
    pub state: ServerState,
    /// Why not.
    pub why: Option<String>,
    /// Another server that is the same place.
    pub same_as: Option<String>,
    /// Parts on it.
    pub parts: u64,
    /// Records on it.
    pub records: u64,
    /// Bytes of both.
    pub bytes: u64,
    /// Room on it, if it tells.
    pub space: Option<Space>,
    /// Why that could not be asked.
    pub space_error: Option<String>,
}

/// Reads around parts that were late, in this process.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HedgeReport {
    /// How often others were asked.
    pub tries: u64,
    /// How often they were quicker.
    pub wins: u64,
    /// Bytes asked for in addition.
    pub extra_bytes: u64,
    /// Bytes asked for because they were needed.
    pub read_bytes: u64,
}

/// A part that no record names.
#[derive(Clone, Debug, Serialize)]
pub struct Leftover {
    /// The server.
    pub server: String,
    /// The file on it.
    pub path: String,
    /// Bytes.
    pub bytes: Option<u64>,
    /// Whether it is of a version that was replaced, rather than of a write that did not end.
    pub is_replaced: bool,
    /// Whether it was removed now.
    pub is_removed: bool,
}
