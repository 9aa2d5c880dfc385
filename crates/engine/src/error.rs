//! What can go wrong with a cut, in terms of what a caller can do about it.

use crate::part::Part;
use swathe_array::{Region, RegionError};
use swathe_chunk_index::IndexError;
use swathe_codecs::stream::StreamError;
use swathe_fits::FitsError;
use swathe_layout::DecodeError;
use swathe_store_api::StoreError;

/// Errors of the engine. Each names the object, and the HDU or tile if one is meant.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The object could not be opened or read.
    #[error(transparent)]
    Store(StoreError),
    /// The object has no bytes.
    #[error("{url}: is empty")]
    Empty {
        /// The object.
        url: String,
    },
    /// The object ends before something its headers promise.
    #[error("{url}: ends at byte {end}, but {what} needs bytes {start} to {stop}")]
    Truncated {
        /// The object.
        url: String,
        /// The part of the object that was read.
        what: String,
        /// Length of the (decompressed) object.
        end: u64,
        /// First byte of the read.
        start: u64,
        /// One past the last byte of the read.
        stop: u64,
    },
    /// The object's compression is damaged.
    #[error("{url}: {source}")]
    Stream {
        /// The object.
        url: String,
        /// The decoder's error.
        source: StreamError,
    },
    /// A header is damaged, or says something impossible or unsupported.
    #[error("{url}, HDU {hdu}: {source}")]
    Header {
        /// The object.
        url: String,
        /// HDU, from 0.
        hdu: usize,
        /// The error of its header.
        source: FitsError,
    },
    /// A compressed tile or chunk is damaged.
    #[error("{url}, {part}, {piece}: {source}")]
    Tile {
        /// The object.
        url: String,
        /// The array.
        part: Part,
        /// Its name: a tile by its number, from 0, a chunk by its place in the grid.
        piece: String,
        /// The decoder's error.
        source: DecodeError,
    },
    /// The file has no such HDU.
    #[error("{url}: no HDU {selector}; {found}")]
    NoSuchHdu {
        /// The object.
        url: String,
        /// The requested HDU.
        selector: String,
        /// The HDUs of the file.
        found: String,
    },
    /// The HDU that is meant holds something else.
    #[error("{url}: HDU {hdu} holds {found}, not an image{images}")]
    NotAnImage {
        /// The object.
        url: String,
        /// HDU, from 0.
        hdu: usize,
        /// Its content.
        found: String,
        /// The HDUs with images, with a separator; may be empty.
        images: String,
    },
    /// The object has no such array, or one that is not read so.
    #[error("{url}: no array {path}: {why}")]
    NoArray {
        /// The object.
        url: String,
        /// The requested path.
        path: String,
        /// What there is instead.
        why: String,
    },
    /// What a format's library said of an object cannot be.
    #[error("{url}: {source}")]
    ChunkIndex {
        /// The object.
        url: String,
        /// Why not.
        source: IndexError,
    },
    /// What is asked for needs the header of a FITS image.
    #[error("{url}, {part}: expected an image of a FITS file")]
    NotFits {
        /// The object.
        url: String,
        /// The array.
        part: Part,
    },
    /// The file is damaged before this HDU could be reached.
    #[error("{url}: cannot look for HDU {selector}: {why}")]
    LostHdus {
        /// The object.
        url: String,
        /// The requested HDU.
        selector: String,
        /// Why not.
        why: String,
    },
    /// The box does not fit the image.
    #[error("{url}, {part}: {source}")]
    Region {
        /// The object.
        url: String,
        /// The array.
        part: Part,
        /// Why not.
        source: RegionError,
    },
    /// The image does not have all the requested planes.
    #[error(
        "{url}, {part}: planes {start}:{stop} of NAXIS{axis} are not within the image of shape \
         {shape:?}"
    )]
    Planes {
        /// The object.
        url: String,
        /// The array.
        part: Part,
        /// Axis, as FITS numbers them: 3 or more.
        axis: usize,
        /// First requested plane, from 0.
        start: i64,
        /// One past the last requested plane.
        stop: i64,
        /// Shape of the image, NAXIS1 first.
        shape: Vec<u64>,
    },
    /// The requested fill value cannot be stored in the pixels outside the image.
    #[error("{url}, {part}: cannot fill with {fill}: {why}")]
    Fill {
        /// The object.
        url: String,
        /// The array.
        part: Part,
        /// The value.
        fill: f64,
        /// Why not.
        why: String,
    },
    /// The cutout is larger than allowed.
    #[error("{url}, {part}: cutout {region} of {bytes} bytes exceeds the limit of {limit} bytes")]
    TooLarge {
        /// The object.
        url: String,
        /// The array.
        part: Part,
        /// The box.
        region: Region,
        /// Bytes of its pixels.
        bytes: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// Nearly all of the cutout would be fill.
    #[error(
        "{url}, {part}: cutout {region} of {bytes} bytes lies mostly outside the image, which has \
         {inside_bytes} bytes of it: give a smaller box, or mode trim"
    )]
    MostlyOutside {
        /// The object.
        url: String,
        /// The array.
        part: Part,
        /// The box.
        region: Region,
        /// Bytes of its pixels.
        bytes: u64,
        /// Bytes of those within the image.
        inside_bytes: u64,
    },
    /// The memory for the cutout could not be had.
    #[error("{url}, {part}: no memory for cutout {region}: {bytes} bytes wanted")]
    Memory {
        /// The object.
        url: String,
        /// The array.
        part: Part,
        /// The box.
        region: Region,
        /// Bytes of its pixels and headers.
        bytes: u64,
    },
    /// The cutout would need more rows or tiles than can be listed in memory.
    #[error("{url}, {part}: cutout {region} needs {found} {what}, the limit is {limit}")]
    TooMany {
        /// The object.
        url: String,
        /// The array.
        part: Part,
        /// The box.
        region: Region,
        /// Rows or tiles.
        what: &'static str,
        /// How many.
        found: u64,
        /// How many are allowed.
        limit: u64,
    },
    /// A result could not be written.
    #[error("{path}: cannot write: {source}")]
    Output {
        /// The file or archive.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// A file with the name of a result exists, and replacing it was not requested.
    #[error("{path}: exists already; give --overwrite to replace it")]
    OutputExists {
        /// The file.
        path: String,
    },
    /// A result would take the place of a file that is read.
    #[error("{path}: cannot write: it is the source {source_path}; give another name")]
    OutputIsSource {
        /// The file.
        path: String,
        /// By which name it is read.
        source_path: String,
    },
    /// The output kind cannot store this result.
    #[error("{path}: {why}")]
    OutputKind {
        /// The file or archive.
        path: String,
        /// Why not.
        why: String,
    },
    /// An error that was already reported, of an object that many targets share.
    #[error("{message}")]
    Shared {
        /// Whether the object does not exist.
        missing: bool,
        /// The text of that error.
        message: String,
    },
    /// The work was cancelled.
    #[error("interrupted")]
    Interrupted,
    /// A fault of Swathe itself.
    #[error("internal error in {place}: {message}")]
    Internal {
        /// The work that failed.
        place: String,
        /// The message of the fault.
        message: String,
    },
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> EngineError {
        match error {
            StoreError::Interrupted { .. } => EngineError::Interrupted,
            error => EngineError::Store(error),
        }
    }
}

impl EngineError {
    /// Whether the object does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(
            self,
            EngineError::Store(StoreError::NotFound { .. })
                | EngineError::Shared { missing: true, .. }
        )
    }

    /// Whether the store failed, so that another copy of the object may be readable.
    pub(crate) fn is_of_store(&self) -> bool {
        matches!(self, EngineError::Store(error) if !matches!(error, StoreError::Exists { .. }))
    }

    /// Whether the store may fail with other objects, too.
    pub(crate) fn is_of_whole_store(&self) -> bool {
        use StoreError::{Forbidden, Io, Network};
        matches!(self, EngineError::Store(Forbidden { .. } | Io { .. } | Network { .. }))
    }

    /// Whether the box has no pixel in the image.
    pub fn is_no_overlap(&self) -> bool {
        matches!(self, EngineError::Region { source: RegionError::NoOverlap { .. }, .. })
    }

    /// The status of a target with this error, in the manifest.
    pub fn status(&self) -> &'static str {
        match self {
            error if error.is_missing() => "missing",
            error if error.is_no_overlap() => "no-overlap",
            _ => "error",
        }
    }

    /// `RESULT` of an event that ended so.
    pub fn result(&self) -> &'static str {
        match self {
            EngineError::Interrupted => "cancelled",
            error => error.status(),
        }
    }
}
