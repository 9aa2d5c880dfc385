//! Room on the disks of a store.

use serde::{Deserialize, Serialize};

/// Room of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// Bytes that can be written.
    pub free_bytes: u64,
    /// Bytes that there are in all, if that is known.
    pub total_bytes: Option<u64>,
    /// Its disks, if its server tells them apart.
    pub disks: Vec<DiskSpace>,
}

/// Room of one disk of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskSpace {
    /// Its number, which no other disk has; empty if its server does not tell.
    #[serde(default)]
    pub id: String,
    /// What its server calls it.
    pub name: String,
    /// Whether it is there.
    pub is_up: bool,
    /// Bytes that can be written; 0 if it is missing.
    pub free_bytes: u64,
    /// Bytes that there are in all; 0 if it is missing.
    pub total_bytes: u64,
}

impl Space {
    /// That of a server with these disks.
    pub fn of_disks(disks: Vec<DiskSpace>) -> Space {
        let sum =
            |bytes: fn(&DiskSpace) -> u64| disks.iter().map(bytes).fold(0, u64::saturating_add);
        let free_bytes = sum(|disk| disk.free_bytes);
        let total_bytes = Some(sum(|disk| disk.total_bytes));
        Space { free_bytes, total_bytes, disks }
    }
}
