//! The order for a batch.

use crate::cutout::Mode;
use crate::selector::Selector;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use swathe_plan::Objective;
use swathe_store_api::{Source, Stores};

/// The kinds of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// One file per cutout.
    Folder,
    /// Stored, not compressed: pixels of the sky hardly are.
    Zip,
    /// POSIX tar.
    Tar,
    /// One IMAGE extension per cutout, EXTNAME its name.
    Fits,
    /// None: results are made, hashed and dropped.
    Null,
}

/// One target of a batch.
#[derive(Clone, Debug)]
pub struct Target {
    /// Which of the batch's objects.
    pub file: usize,
    /// Which of the batch's selectors.
    pub hdu: usize,
    /// Which of the batch's ranges of planes.
    pub planes: usize,
    /// First pixel on NAXIS1 and NAXIS2, from 0; then width and height.
    pub pixels: [i64; 4],
    /// Name of its result.
    pub name: String,
    /// The user's name of the object, if it is another one.
    pub id: Option<String>,
}

/// A copy of an object in one of the stores.
#[derive(Clone, Debug)]
pub struct ObjectCopy {
    /// Which of [`Replicas::stores`].
    pub store: usize,
    /// Its URL.
    pub url: String,
}

/// A store that has copies of a batch's objects.
#[derive(Clone, Debug)]
pub struct ReplicaStore {
    /// Its name.
    pub name: String,
    /// Predicted seconds of a target, if all were read from it.
    pub target_s: f64,
}

/// The copies of a batch's objects, and the stores that have them.
#[derive(Clone, Debug)]
pub struct Replicas {
    /// The stores.
    pub stores: Vec<ReplicaStore>,
    /// The copies of each object; first that of [`Job::files`].
    pub copies: Vec<Vec<ObjectCopy>>,
}

/// The order for a batch: its targets and its output.
#[derive(Clone)]
pub struct Job {
    /// URLs of the objects.
    pub files: Vec<String>,
    /// Where else they are, if more than one store has them.
    pub replicas: Option<Replicas>,
    /// HDUs that targets refer to.
    pub selectors: Vec<Selector>,
    /// The targets.
    pub targets: Vec<Target>,
    /// Folder or archive.
    pub output: PathBuf,
    /// Which of those.
    pub kind: OutputKind,
    /// The length of an archive up to its last whole member, if it is continued.
    pub append: Option<u64>,
    /// Whether files of the names of results are replaced.
    pub overwrite: bool,
    /// The treatment of boxes at the edge of an image.
    pub mode: Mode,
    /// Physical value of pixels outside the image.
    pub fill: Option<f64>,
    /// Limit of the bytes of one cutout's pixels, if any. A cutout that is nearly all fill is then
    /// refused.
    pub most_bytes: Option<u64>,
    /// Ranges of planes that targets refer to, each `[start, stop)` on NAXIS3 and the axes behind
    /// it; all on those left out. An image that has not all of them is not cut.
    pub planes: Vec<Vec<(i64, i64)>>,
    /// The objective of plans.
    pub objective: Objective,
    /// Threads that compute. Those that wait for servers are more.
    pub threads: usize,
    /// The storages that are known.
    pub stores: Stores,
    /// Objects that an estimate opened for this batch.
    pub open_sources: OpenSources,
}

/// A source that is open for longer is opened anew: a batch may come to it after hours, and small
/// objects are read without asking their server again.
const OPEN_TIME: Duration = Duration::from_secs(10);

/// Sources that an estimate opened, by URL: each is read once, by the batch that follows.
#[derive(Clone, Default)]
pub struct OpenSources(Arc<Mutex<HashMap<String, OpenSource>>>);

/// A source, and when it was kept.
type OpenSource = (Instant, Arc<dyn Source>);

impl OpenSources {
    pub(crate) fn put(&self, url: &str, source: Arc<dyn Source>) {
        self.lock().insert(url.to_string(), (Instant::now(), source));
    }

    pub(crate) fn take(&self, url: &str) -> Option<Arc<dyn Source>> {
        let (start, source) = self.lock().remove(url)?;
        (start.elapsed() < OPEN_TIME).then_some(source)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, OpenSource>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    /// The URL of a copy of an object.
    pub(crate) fn url(&self, file: usize, copy: usize) -> &str {
        match &self.replicas {
            Some(replicas) if copy > 0 => &replicas.copies[file][copy].url,
            _ => &self.files[file],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{path_in, stores, write_pixel};

    #[test]
    fn sources_stay_open_for_a_short_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = path_in(&folder, "a.fits");
        write_pixel(&file);
        let (open, source) = (OpenSources::default(), stores().open(&file).expect("opened"));
        open.put("new", source.clone());
        assert!(open.take("new").is_some() && open.take("new").is_none());
        let start = Instant::now().checked_sub(OPEN_TIME).expect("a time");
        open.lock().insert("old".into(), (start, source));
        assert!(open.take("old").is_none());
    }
}
