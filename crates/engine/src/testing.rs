//! What the tests of several modules use.

use crate::cutout::Mode;
use crate::job::{Job, OpenSources, OutputKind};
use std::path::{Path, PathBuf};
use swathe_plan::Objective;
use swathe_store_api::Stores;

/// A path in a folder, as text.
pub(crate) fn path_in(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

/// Files of this machine, and servers.
pub(crate) fn stores() -> Stores {
    swathe_store::stores(Vec::new())
}

/// Write a FITS file of one pixel.
pub(crate) fn write_pixel(path: impl AsRef<Path>) {
    let cards = ["SIMPLE  = T", "BITPIX  = 8", "NAXIS   = 2", "NAXIS1  = 1", "NAXIS2  = 1", "END"];
    let header: String = cards.iter().map(|card| format!("{card:80}")).collect();
    std::fs::write(path, format!("{header:5760}")).expect("written");
}

/// A batch of one object, as yet without targets.
pub(crate) fn job(file: &str, output: impl Into<PathBuf>, kind: OutputKind) -> Job {
    Job {
        files: vec![file.into()],
        replicas: None,
        selectors: Vec::new(),
        targets: Vec::new(),
        output: output.into(),
        kind,
        append: None,
        overwrite: false,
        mode: Mode::Trim,
        fill: None,
        most_bytes: None,
        planes: vec![Vec::new()],
        objective: Objective::Auto,
        threads: 1,
        stores: stores(),
        open_sources: OpenSources::default(),
    }
}
