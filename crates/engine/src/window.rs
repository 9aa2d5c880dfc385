//! Small windows of an array of a local file that stays open.

use crate::cutout::{Cutout, Mode};
use crate::error::EngineError;
use crate::object::Object;
use crate::selector::Selector;
use crate::single::{cut, is_brief};
use crate::template::Template;
use crate::worker_context::Cancel;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use swathe_array::Region;
use swathe_plan::Objective;

/// What changes when a local file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    /// Kind of file, and permissions.
    pub mode: u32,
    /// Number of its file system.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// When it was written last, in nanoseconds since 1970.
    pub modified_ns: i128,
}

impl FileState {
    fn of(file: &Metadata) -> FileState {
        let modified_ns = i128::from(file.mtime()) * 1_000_000_000 + i128::from(file.mtime_nsec());
        let (mode, device, inode) = (file.mode(), file.dev(), file.ino());
        FileState { mode, device, inode, size: file.size(), modified_ns }
    }
}

/// Cuts brief windows of one array, each after a look whether the file at its path is still the one
/// that was opened: all in one call, so that a caller with one lock for all its threads gives
/// it away once for each window.
pub struct WindowReader {
    object: Arc<Object>,
    selector: Selector,
    template: Arc<Template>,
    file: PathBuf,
    state: FileState,
}

impl WindowReader {
    /// Of an array by its path in a file that was opened in this state.
    ///
    /// # Errors
    /// As [`Object::template`].
    pub fn new(
        object: Arc<Object>,
        array: String,
        file: PathBuf,
        state: FileState,
    ) -> Result<WindowReader, EngineError> {
        let selector = Selector::Array(array);
        let template = object.template(&selector)?;
        Ok(WindowReader { object, selector, template, file, state })
    }

    /// The region of a box `x0, y0, width, height` on the plane of the array; `None` if it is not
    /// within the array, or the cut is not brief.
    pub fn region(&self, [x0, y0, width, height]: [i64; 4]) -> Option<Region> {
        let shape = &self.template.layout.shape;
        let mut region = Region::of_shape(shape);
        for (&axis, first, length) in
            [(&self.template.plane[0], x0, width), (&self.template.plane[1], y0, height)]
        {
            let last = first.checked_add(length).filter(|&last| 0 <= first && first < last)?;
            if last > *region.stop.get(axis)? {
                return None;
            }
            (region.start[axis], region.stop[axis]) = (first, last);
        }
        is_brief(&self.object, &self.selector, &region).then_some(region)
    }

    /// Cut a region; `None` if the file is another one by now.
    ///
    /// # Errors
    /// As [`EngineError`] says.
    pub fn cut(
        &self,
        region: &Region,
        objective: Objective,
    ) -> Result<Option<Cutout>, EngineError> {
        let is_same =
            std::fs::metadata(&self.file).is_ok_and(|now| FileState::of(&now) == self.state);
        if !is_same {
            return Ok(None);
        }
        let cancel = Cancel::default();
        cut(&self.object, &self.selector, region, Mode::Strict, None, objective, &cancel).map(Some)
    }
}
