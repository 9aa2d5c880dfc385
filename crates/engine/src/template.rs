//! The parts that every cutout of one array shares: layout, headers, tables its WCS needs.

use crate::error::EngineError;
use crate::part::Part;
use std::ops::Range;
use swathe_array::Region;
use swathe_fits::{CutHeader, Header, Image, shifted_companion};
use swathe_layout::{ChunkGrid, DecodeError, Layout};

/// FITS files consist of blocks of this many bytes.
pub(crate) const BLOCK: usize = 2880;

/// All that cutouts of one array share.
pub struct Template {
    /// The object.
    pub url: String,
    /// How the user calls it.
    pub(crate) name: String,
    /// Its version.
    pub version: String,
    /// The array.
    pub part: Part,
    /// Its shape, and where its elements lie.
    pub layout: Layout,
    /// The axes of its planes, x and y, numbered from the fastest.
    pub plane: [usize; 2],
    /// Length of the object, if it is known before it is read: not inside a stream.
    pub(crate) content_len: Option<u64>,
    /// Whether the object is a folder: its bytes are no places in a file.
    pub(crate) is_folder: bool,
    pub(crate) head: Head,
}

/// What stands around the pixels of a cutout.
pub(crate) enum Head {
    /// The HDUs of a FITS file.
    Fits(Box<FitsHead>),
    /// The head of a `.npy` file: elements are of this type of NumPy, and `fill` outside the array.
    Npy { dtype: String, fill: Vec<u8> },
}

/// The headers and tables of a cutout of an image.
pub(crate) struct FitsHead {
    pub(crate) image: Image,
    pub(crate) header: CutHeader,
    /// The primary HDU of the cutout, if the image is an extension; else empty.
    pub(crate) primary: Vec<u8>,
    pub(crate) companions: Vec<Companion>,
}

/// Append the head of a `.npy` file, version 1.0, of an array in C order. `shape`: fastest first.
fn npy_head(dtype: &str, shape: &[u64], out: &mut Vec<u8>) {
    const ALIGNMENT: usize = 64;
    let sides: String = shape.iter().rev().map(|side| format!("{side}, ")).collect();
    let mut text = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({sides}), }}");
    // Magic, version and length take ten bytes, and the text ends with a line feed.
    let length = (10 + text.len() + 1).next_multiple_of(ALIGNMENT) - 10;
    text.push_str(&" ".repeat(length - 1 - text.len()));
    text.push('\n');
    out.extend_from_slice(b"\x93NUMPY\x01\x00");
    out.extend_from_slice(&(length as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// An extension that the image's WCS refers to.
pub(crate) struct Companion {
    pub(crate) header: Header,
    /// Padded to whole blocks.
    pub(crate) data: Vec<u8>,
    /// Whether its unit is pixels of the image, so that it moves with the cut.
    pub(crate) moves: bool,
}

impl Template {
    /// The image: type of its pixels and header.
    ///
    /// # Errors
    /// [`EngineError::NotFits`] for an array of another format.
    pub fn image(&self) -> Result<&Image, EngineError> {
        match &self.head {
            Head::Fits(head) => Ok(&head.image),
            Head::Npy { .. } => {
                Err(EngineError::NotFits { url: self.url.clone(), part: self.part.clone() })
            }
        }
    }

    /// Whether the WCS of the image needs other extensions.
    pub fn has_companions(&self) -> bool {
        !self.companions().is_empty()
    }

    fn companions(&self) -> &[Companion] {
        match &self.head {
            Head::Fits(head) => &head.companions,
            Head::Npy { .. } => &[],
        }
    }

    /// Bytes of the pixels of a region, without padding.
    ///
    /// # Errors
    /// [`EngineError::Region`] if they cannot be counted.
    pub(crate) fn data_bytes(&self, region: &Region) -> Result<usize, EngineError> {
        let bytes = region.pixels().map(|pixels| pixels.checked_mul(self.layout.element_bytes));
        match bytes {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => {
                Err(self
                    .region_error(swathe_array::RegionError::TooLarge { region: region.clone() }))
            }
            Err(error) => Err(self.region_error(error)),
        }
    }

    pub(crate) fn region_error(&self, source: swathe_array::RegionError) -> EngineError {
        EngineError::Region { url: self.url.clone(), part: self.part.clone(), source }
    }

    /// For planes `[start, stop)` on an axis, numbered from 0, that are partly outside.
    pub(crate) fn planes_error(&self, axis: usize, start: i64, stop: i64) -> EngineError {
        EngineError::Planes {
            url: self.url.clone(),
            part: self.part.clone(),
            axis: axis + 1,
            start,
            stop,
            shape: self.layout.shape.clone(),
        }
    }

    /// Append the headers that stand before the pixels of a region's cutout, which is filled with
    /// `fill` outside the image; returns where the header of the image starts.
    pub(crate) fn write_headers(
        &self,
        region: &Region,
        fill: Option<&str>,
        data: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<usize, EngineError> {
        let head = match &self.head {
            Head::Fits(head) => head,
            Head::Npy { dtype, .. } => {
                npy_head(dtype, &region.shape(), out);
                return Ok(0);
            }
        };
        out.extend_from_slice(&head.primary);
        let start = out.len();
        let provenance =
            swathe_fits::Provenance { source: &self.name, source_version: &self.version, fill };
        head.header
            .render(region, &provenance, data, out)
            .map_err(|source| self.header_error(source))?;
        Ok(start)
    }

    /// Complete a file whose headers and pixels are in `out`: padding, checksums and companions.
    pub(crate) fn complete(
        &self,
        region: &Region,
        fill: Option<&str>,
        data: std::ops::Range<usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), EngineError> {
        let Head::Fits(head) = &self.head else { return Ok(()) };
        if head.header.needs_data() {
            let mut headers = Vec::with_capacity(data.start);
            self.write_headers(region, fill, Some(&out[data.clone()]), &mut headers)?;
            if headers.len() != data.start {
                return Err(EngineError::Internal {
                    place: format!("writing the header of a cut of {}", self.url),
                    message: "its length changed with the checksum".into(),
                });
            }
            out[..data.start].copy_from_slice(&headers);
        }
        out.resize(out.len().next_multiple_of(BLOCK), 0);
        for companion in &head.companions {
            if companion.moves {
                let header = shifted_companion(&companion.header, region);
                out.extend(header.to_bytes());
            } else {
                out.extend(companion.header.to_bytes());
            }
            out.extend_from_slice(&companion.data);
        }
        Ok(())
    }

    /// A small FITS file with all that the WCS of the whole image needs: the headers, no pixels,
    /// the tables it refers to. Empty if it refers to none.
    pub fn wcs_file(&self) -> Vec<u8> {
        let companions = self.companions();
        if companions.is_empty() {
            return Vec::new();
        }
        let mut out = swathe_fits::minimal_primary().to_bytes();
        for companion in companions {
            out.extend(companion.header.to_bytes());
            out.extend_from_slice(&companion.data);
        }
        out
    }

    /// The error for a tile or chunk whose bytes `start` to `stop` end after the object does, at `end`.
    pub(crate) fn truncation(
        &self,
        piece: u64,
        grid: &ChunkGrid,
        range: Range<u64>,
        end: u64,
    ) -> EngineError {
        let (url, part, piece) =
            (self.url.clone(), self.part.clone(), self.part.piece(piece, grid));
        if self.is_folder {
            return EngineError::Tile { url, part, piece, source: DecodeError::Torn };
        }
        let what = format!("{piece} of {part}");
        EngineError::Truncated { url, what, end, start: range.start, stop: range.end }
    }

    /// The error for a table entry of a chunk that cannot be right.
    pub(crate) fn layout_error(&self, source: swathe_layout::LayoutError) -> EngineError {
        self.header_error(source.into())
    }

    pub(crate) fn header_error(&self, source: swathe_fits::FitsError) -> EngineError {
        EngineError::Header { url: self.url.clone(), hdu: self.part.number(), source }
    }
}
