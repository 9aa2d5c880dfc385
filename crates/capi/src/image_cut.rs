//! Boxes of the image of an open object: as FITS files, or as pixels in the memory of the caller.

use crate::fault::Fault;
use crate::known_stores::known_stores;
use crate::reader::Reader;
use crate::writer::Writer;
use std::os::unix::fs::MetadataExt;
use swathe_array::Region;
use swathe_engine::{Cancel, Cutout, Mode, Selector, Template};
use swathe_plan::Objective;

/// A box of an image: the first pixel on NAXIS1 and NAXIS2, from 0, then width and height; and all
/// planes.
pub(crate) struct ImageBox<'a> {
    pub(crate) hdu: Option<&'a str>,
    pub(crate) pixels: [i64; 4],
    pub(crate) mode: Mode,
}

/// The pixels that a cutout will have.
pub(crate) struct CutoutShape {
    pub(crate) region: Region,
    pub(crate) bitpix: i64,
    pub(crate) bytes: usize,
    pub(crate) bzero: f64,
    pub(crate) bscale: f64,
}

/// Which HDU a text means: the first with an image, a number from 0, or a name and perhaps a version.
fn selector_of(hdu: Option<&str>) -> Result<Selector, Fault> {
    let Some(text) = hdu else { return Ok(Selector::FirstImage) };
    if let Ok(index) = text.parse() {
        return Ok(Selector::Index(index));
    }
    match text.split_once(',') {
        None if text.trim().is_empty() => {
            Err(Fault::invalid("hdu: expected a number from 0, NAME or NAME,VERSION, found none"))
        }
        None => Ok(Selector::Name(text.to_string(), None)),
        Some((name, version)) => match version.trim().parse() {
            Ok(version) => Ok(Selector::Name(name.to_string(), Some(version))),
            Err(_) => {
                let text =
                    format!("hdu: expected NAME,VERSION with a whole number, found {text:?}");
                Err(Fault::invalid(text))
            }
        },
    }
}

impl ImageBox<'_> {
    fn region(&self, template: &Template) -> Result<Region, Fault> {
        let [x, y, width, height] = self.pixels;
        let shape = &template.layout.shape;
        if shape.len() < 2 {
            let (url, part) = (&template.url, &template.part);
            let text = format!("{url}, {part}: expected two axes or more, found {}", shape.len());
            return Err(Fault::invalid(text));
        }
        let mut region = Region::of_shape(shape);
        let sides = [("width", x, width), ("height", y, height)];
        for (axis, (name, start, length)) in sides.into_iter().enumerate() {
            if length <= 0 {
                let text = format!("pixels: expected a {name} of 1 or more, found {length}");
                return Err(Fault::invalid(text));
            }
            let stop = start.checked_add(length).ok_or_else(|| {
                Fault::invalid(format!(
                    "pixels: expected an end below 2^63, found {start}+{length}"
                ))
            })?;
            (region.start[axis], region.stop[axis]) = (start, stop);
        }
        Ok(region)
    }

    /// The shape of the cutout, without its pixels.
    pub(crate) fn shape(&self, reader: &Reader) -> Result<CutoutShape, Fault> {
        let object = reader.object()?;
        let template = object.template(&selector_of(self.hdu)?);
        let template = template.map_err(|error| reader.engine_fault(error))?;
        let region = self.region(&template)?;
        let (url, part) = (template.url.clone(), template.part.clone());
        let fail = |source| {
            let (url, part) = (url.clone(), part.clone());
            Fault::from(swathe_engine::EngineError::Region { url, part, source })
        };
        let overlap = region.overlap(&template.layout.shape).map_err(fail)?;
        if self.mode == Mode::Strict && !overlap.complete {
            let shape = template.layout.shape.clone();
            return Err(fail(swathe_array::RegionError::Partial { region, shape }));
        }
        let region = if self.mode == Mode::Partial { region } else { overlap.inside };
        shape_of(&template, region)
    }

    fn cut(&self, reader: &Reader) -> Result<Cutout, Fault> {
        let fail = |error| reader.engine_fault(error);
        let (object, selector) = (reader.object()?, selector_of(self.hdu)?);
        let template = object.template(&selector).map_err(fail)?;
        let region = self.region(&template)?;
        let (objective, cancel) = (Objective::Auto, Cancel::default());
        swathe_engine::cut(&object, &selector, &region, self.mode, None, objective, &cancel)
            .map_err(fail)
    }

    /// Cut to a FITS file: a path, or an object of a store.
    pub(crate) fn write(&self, reader: &Reader, to: &str, replaces: bool) -> Result<(), Fault> {
        let stores = known_stores()?;
        let identity = |name: &str| {
            let metadata = stores.file_of(name)?.metadata().ok()?;
            Some((metadata.dev(), metadata.ino()))
        };
        if identity(to).is_some_and(|file| identity(&reader.name) == Some(file)) {
            let text = format!("{to}: expected another file than the one that is read");
            return Err(Fault::invalid(text));
        }
        let cutout = self.cut(reader)?;
        let mut writer = Writer::open(to, libc::O_WRONLY | libc::O_CREAT | truncation(replaces))?;
        writer.write(&cutout.file)?;
        writer.close()
    }

    /// Cut into memory of at least as many bytes as the shape says: pixels as they are stored,
    /// before BSCALE and BZERO, in the byte order of this machine.
    pub(crate) fn fill(&self, reader: &Reader, buffer: &mut [u8]) -> Result<CutoutShape, Fault> {
        let cutout = self.cut(reader)?;
        let shape = shape_of(&cutout.template, cutout.region.clone())?;
        let pixel_bytes = shape.bitpix.unsigned_abs() as usize / 8;
        let buffer = buffer.get_mut(..shape.bytes).ok_or_else(|| too_small(&shape))?;
        to_native_order(cutout.data(), buffer, pixel_bytes);
        Ok(shape)
    }
}

fn truncation(replaces: bool) -> libc::c_int {
    if replaces { libc::O_TRUNC } else { 0 }
}

/// The error for memory that is too small for the pixels.
pub(crate) fn too_small(shape: &CutoutShape) -> Fault {
    let text = format!("length: expected at least {} bytes for the pixels", shape.bytes);
    Fault::new(libc::ERANGE, text)
}

fn shape_of(template: &Template, region: Region) -> Result<CutoutShape, Fault> {
    let image = template.image()?;
    let (dtype, header) = (image.dtype, &image.header);
    let number = |keyword: &str, default: f64| {
        let value = header.get_float(keyword).map_err(|error| {
            Fault::new(libc::EBADMSG, format!("{}, {}: {error}", template.url, template.part))
        })?;
        Ok::<f64, Fault>(value.unwrap_or(default))
    };
    let (bzero, bscale) = (number("BZERO", 0.0)?, number("BSCALE", 1.0)?);
    let bytes = region.pixels().ok().and_then(|pixels| pixels.checked_mul(dtype.size()));
    let bytes = bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or_else(|| {
        Fault::new(libc::EFBIG, format!("pixels: expected fewer, found {region}"))
    })?;
    Ok(CutoutShape { region, bitpix: dtype.bitpix(), bytes, bzero, bscale })
}

/// Copy big-endian numbers of a size to the byte order of this machine.
fn to_native_order(from: &[u8], to: &mut [u8], size: usize) {
    fn swap<const N: usize>(from: &[u8], to: &mut [u8]) {
        for (from, to) in from.chunks_exact(N).zip(to.chunks_exact_mut(N)) {
            to.copy_from_slice(from);
            if cfg!(target_endian = "little") {
                to.reverse();
            }
        }
    }
    match size {
        2 => swap::<2>(from, to),
        4 => swap::<4>(from, to),
        8 => swap::<8>(from, to),
        _ => to.copy_from_slice(from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hdus_are_numbers_names_and_versions() {
        let selector = |text| selector_of(Some(text)).map_err(|fault| fault.errno);
        assert_eq!(selector_of(None).expect("the first"), Selector::FirstImage);
        assert_eq!(selector("0"), Ok(Selector::Index(0)));
        assert_eq!(selector("SCI"), Ok(Selector::Name("SCI".into(), None)));
        assert_eq!(selector("SCI,2"), Ok(Selector::Name("SCI".into(), Some(2))));
        assert_eq!(selector("SCI,x"), Err(libc::EINVAL));
        assert_eq!(selector(" "), Err(libc::EINVAL));
    }

    #[test]
    fn numbers_of_every_size_change_their_order() {
        let from: Vec<u8> = (1..=16).collect();
        for size in [1, 2, 4, 8] {
            let mut to = vec![0; 16];
            to_native_order(&from, &mut to, size);
            let expected: Vec<u8> = from
                .chunks(size)
                .flat_map(|number| {
                    let mut number = number.to_vec();
                    if cfg!(target_endian = "little") {
                        number.reverse();
                    }
                    number
                })
                .collect();
            assert_eq!(to, expected, "{size}");
        }
    }
}
