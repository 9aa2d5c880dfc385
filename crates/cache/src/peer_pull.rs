//! Blocks that are fetched from other workers before anybody reads them: copies of what many want,
//! and what one that leaves hands over.

use crate::BlockCache;
use crate::cell::{Cells, ObjectDescription, OpenedObject};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The result of a pull.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PullResult {
    /// Bytes that were sent.
    pub bytes: u64,
    /// Blocks that were in order, and are here.
    pub blocks: u64,
}

impl BlockCache {
    /// The description of an object that this process has opened under this name: peers need it to
    /// pull the object.
    pub fn describe(self: &Arc<BlockCache>, object: &str) -> Option<ObjectDescription> {
        self.cells(object).map(|cells| cells.describe())
    }

    /// Fetch the cells of an object that peers should have and that are not cached, for a limited
    /// time. Each block is checked as when it is fetched for reading. Nothing is done if the
    /// object is cached at another version, or the disk takes nothing.
    ///
    /// `peers`: URL and token of each, the first is tried first. `only`: nobody else will have it:
    /// it is worth the costs of its store.
    pub fn pull(
        self: &Arc<BlockCache>,
        object: &str,
        description: &ObjectDescription,
        peers: Vec<(String, String)>,
        limit: Duration,
        only: bool,
    ) -> PullResult {
        let until = Instant::now() + limit.min(LONGEST);
        let own_object = Arc::new(OpenedObject::from_description(object, description));
        if !self.takes() {
            return PullResult::default();
        }
        match self.cells(object) {
            Some(cells) if !cells.object().is_same(&own_object) => return PullResult::default(),
            Some(_) => {}
            None => self.note_object(&own_object),
        }
        if !only {
            self.set_peers(object, peers.clone());
        }
        let cells = Cells::of(self.clone(), own_object).only(only);
        let cells_before = cells.cached_count(&description.cells);
        let lacking = cells.lacking(&description.cells);
        let traffic = self.peers.pull(&cells, lacking, peers, until);
        let blocks = cells.cached_count(&description.cells).saturating_sub(cells_before);
        PullResult { bytes: traffic.bytes, blocks }
    }

    /// Recent costs of other workers: seconds until an answer begins, and bytes per second;
    /// `None` if the answers are too few.
    pub fn peer_costs(&self) -> Option<(f64, f64)> {
        self.peers.costs()
    }
}

/// More than anybody may ask for.
const LONGEST: Duration = Duration::from_secs(86_400);
