//! What is the same for every cutout of one HDU: layout, headers, tables its WCS needs.

use crate::cutout::Placed;
use crate::error::EngineError;
use crate::object::{Object, Selector};
use crate::work::Reading;
use swathe_array::Region;
use swathe_fits::{
    CutHeader, Hdu, Header, Image, Lookup, companions, primary_for_extension, shifted_companion,
};
use swathe_plan::Break;

/// FITS files are made of blocks of this many bytes.
pub(crate) const BLOCK: usize = 2880;
/// A table that a WCS needs is carried along whole, up to this size; real ones are below 10 MB.
const COMPANION_LIMIT: u64 = 256 << 20;

/// All that cutouts of one HDU share.
pub struct Template {
    /// The object.
    pub url: String,
    /// How the user calls it.
    called: String,
    /// Its version.
    pub version: String,
    /// HDU, from 0.
    pub hdu: usize,
    /// The image: type, shape, where its pixels are.
    pub image: Image,
    /// Bytes of the object, where they are known before it is read: not inside a stream.
    pub(crate) content_len: Option<u64>,
    header: CutHeader,
    /// What stands before the image's header: the primary HDU, if the image is an extension.
    before: Vec<u8>,
    companions: Vec<Companion>,
}

/// An extension that the image's WCS refers to.
struct Companion {
    header: Header,
    /// Padded to whole blocks.
    data: Vec<u8>,
    /// Whether it is given in pixels of the image, so that it moves with the cut.
    moves: bool,
}

impl Template {
    pub(crate) fn new(object: &Object, hdu: &Hdu) -> Result<Template, EngineError> {
        let wrong = |source| object.header_error(hdu.index, source);
        let image = hdu.image().map_err(wrong)?;
        let header = CutHeader::new(&image).map_err(wrong)?;
        let needs = companions(&image);
        let mut carried = Vec::new();
        for need in needs {
            let selector = Selector::Name(need.name.clone(), need.version);
            let found = match object.find(&selector) {
                Ok(found) => found,
                // The source lacks the table its own header names: so will the cut.
                Err(EngineError::NoSuchHdu { .. } | EngineError::LostHdus { .. }) => continue,
                Err(error) => return Err(error),
            };
            let read = || read_companion(object, &found, need.kind == Lookup::Image);
            carried.push(object.opening(read)?);
        }
        let before = if image.primary {
            Vec::new()
        } else {
            let primary = object.find(&Selector::Index(0))?;
            primary_for_extension(&primary.header, 1 + carried.len()).to_bytes()
        };
        Ok(Template {
            url: object.url().to_string(),
            called: object.called().to_string(),
            version: object.version(),
            hdu: hdu.index,
            image,
            content_len: object.content.len(),
            header,
            before,
            companions: carried,
        })
    }

    /// Whether the WCS of the image needs other extensions.
    pub fn has_companions(&self) -> bool {
        !self.companions.is_empty()
    }

    /// Bytes of the pixels of a region, without padding.
    ///
    /// # Errors
    /// [`EngineError::Region`] where they cannot be counted.
    pub(crate) fn data_bytes(&self, region: &Region) -> Result<usize, EngineError> {
        let bytes = region.pixels().map(|pixels| pixels.checked_mul(self.image.dtype.size()));
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
        EngineError::Region { url: self.url.clone(), hdu: self.hdu, source }
    }

    /// Of planes `[start, stop)` on an axis, numbered from 0, that are not all there.
    pub(crate) fn planes_error(&self, axis: usize, start: i64, stop: i64) -> EngineError {
        EngineError::Planes {
            url: self.url.clone(),
            hdu: self.hdu,
            axis: axis + 1,
            start,
            stop,
            shape: self.image.shape.clone(),
        }
    }

    /// Append the headers that stand before the pixels of a cutout; gives where the header of
    /// the image itself starts.
    pub(crate) fn write_headers(
        &self,
        placed: &Placed,
        data: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<usize, EngineError> {
        out.extend_from_slice(&self.before);
        let start = out.len();
        let provenance = swathe_fits::Provenance {
            source: &self.called,
            source_version: &self.version,
            fill: placed.fill_text(),
        };
        self.header
            .render(&placed.output, &provenance, data, out)
            .map_err(|source| self.header_error(source))?;
        Ok(start)
    }

    /// Complete a file whose headers and pixels are in `out`: padding, checksums and companions.
    pub(crate) fn complete(
        &self,
        placed: &Placed,
        data: std::ops::Range<usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), EngineError> {
        if self.header.needs_data() {
            let mut headers = Vec::with_capacity(data.start);
            self.write_headers(placed, Some(&out[data.clone()]), &mut headers)?;
            if headers.len() != data.start {
                return Err(EngineError::Internal {
                    place: format!("writing the header of a cut of {}", self.url),
                    message: "its length changed with the checksum".into(),
                });
            }
            out[..data.start].copy_from_slice(&headers);
        }
        out.resize(out.len().next_multiple_of(BLOCK), 0);
        for companion in &self.companions {
            if companion.moves {
                let header = shifted_companion(&companion.header, &placed.output);
                out.extend(header.to_bytes());
            } else {
                out.extend(companion.header.to_bytes());
            }
            out.extend_from_slice(&companion.data);
        }
        Ok(())
    }

    /// A small FITS file with all that the WCS of the whole image needs: the headers, no pixels,
    /// the tables it refers to. Empty where it refers to none.
    pub fn wcs_file(&self) -> Vec<u8> {
        if self.companions.is_empty() {
            return Vec::new();
        }
        let mut out = swathe_fits::minimal_primary().to_bytes();
        for companion in &self.companions {
            out.extend(companion.header.to_bytes());
            out.extend_from_slice(&companion.data);
        }
        out
    }

    fn header_error(&self, source: swathe_fits::FitsError) -> EngineError {
        EngineError::Header { url: self.url.clone(), hdu: self.hdu, source }
    }
}

fn read_companion(object: &Object, hdu: &Hdu, moves: bool) -> Result<Companion, EngineError> {
    if hdu.data_len > COMPANION_LIMIT {
        return Err(EngineError::TooLarge {
            url: object.url().to_string(),
            hdu: hdu.index,
            region: Region::whole(&[hdu.data_len]),
            bytes: hdu.data_len,
            limit: COMPANION_LIMIT,
        });
    }
    let mut data = Vec::new();
    if hdu.data_len > 0 {
        let what = || format!("the table of HDU {}", hdu.index);
        let segments = [hdu.data_start..hdu.data_start + hdu.data_len];
        let mut reading = Reading::default();
        let planned = object.content.plan(&segments, Break::Anywhere, &what, &reading)?;
        object.content.read(planned, &what, &mut reading, &mut |_, piece| {
            data.extend_from_slice(piece);
            Ok(())
        })?;
    }
    data.resize(data.len().next_multiple_of(BLOCK), 0);
    Ok(Companion { header: hdu.header.clone(), data, moves })
}
