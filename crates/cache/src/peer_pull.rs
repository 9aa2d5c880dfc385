//! Blocks that are fetched from other workers before anybody reads them: copies of what many want,
//! and what one that leaves hands over.

use crate::BlockCache;
use crate::cell::{Cells, ObjectDescription, OpenedObject};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PullResult {
    /// Bytes that were sent.
    pub bytes: u64,
    /// Blocks that were in order, and are here.
    pub blocks: u64,
}

impl BlockCache {
    /// What others must know to pull an object that this process has opened under this very name.
    pub fn described(self: &Arc<BlockCache>, object: &str) -> Option<ObjectDescription> {
        self.cells(object).map(|cells| cells.described())
    }

    /// Fetch from peers what they are told to have of an object and is not here, for so long at
    /// most. Each block is checked as when it is asked for to be read. Nothing is done where the
    /// object is known here at another version, or the disk takes nothing.
    ///
    /// `peers`: URL and token of each, the first is asked first. `only`: nobody else will have it:
    /// it is worth what its store asks for it.
    pub fn pull(
        self: &Arc<BlockCache>,
        object: &str,
        told: &ObjectDescription,
        peers: Vec<(String, String)>,
        limit: Duration,
        only: bool,
    ) -> PullResult {
        let until = Instant::now() + limit.min(LONGEST);
        let wanted = Arc::new(OpenedObject::as_described(object, told));
        if !self.takes() {
            return PullResult::default();
        }
        match self.cells(object) {
            Some(known) if !known.opened().is_same(&wanted) => return PullResult::default(),
            Some(_) => {}
            None => self.note_opened(&wanted),
        }
        if !only {
            self.have(object, peers.clone());
        }
        let cells = Cells::of(self.clone(), wanted).only(only);
        let before = cells.here(&told.cells);
        let lacking = cells.lacking(&told.cells);
        let moved = self.peers.pull(&cells, lacking, peers, until);
        let blocks = cells.here(&told.cells).saturating_sub(before);
        PullResult { bytes: moved.bytes, blocks }
    }

    /// What other workers cost of late: seconds until an answer begins, and bytes per second;
    /// `None` before enough came of them.
    pub fn peer_costs(&self) -> Option<(f64, f64)> {
        self.peers.costs()
    }
}

/// More than anybody may ask for.
const LONGEST: Duration = Duration::from_secs(86_400);
