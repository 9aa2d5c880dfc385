//! Regions placed on an image, and the pixels cut from it.

use crate::error::EngineError;
use crate::template::{Head, Template};
use std::ops::Range;
use std::sync::Arc;
use swathe_array::{DType, Region, RegionError};
use swathe_layout::{Need, Storage};

/// The treatment of a box that lies partly outside the image (as astropy's `Cutout2D`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Only the part inside is cut.
    Trim,
    /// Pixels outside are filled.
    Partial,
    /// An error.
    Strict,
}

/// A cutout larger than this is refused rather than attempted, unless `SWATHE_MAX_CUTOUT_BYTES`
/// says otherwise, or a job allows less: damaged headers ask for terabytes.
const DEFAULT_LIMIT_BYTES: u64 = 8 << 30;
/// If a job has a limit, a cutout may have this many times the bytes that come from the image,
const MOST_FILL: u64 = 64;
/// or these, whatever comes from it.
const HARMLESS_BYTES: u64 = 16 << 20;

fn limit_bytes() -> u64 {
    static LIMIT: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *LIMIT.get_or_init(|| {
        let set = std::env::var("SWATHE_MAX_CUTOUT_BYTES").ok();
        set.and_then(|text| text.parse().ok()).unwrap_or(DEFAULT_LIMIT_BYTES)
    })
}

/// A region placed on an image.
#[derive(Clone, Debug)]
pub(crate) struct PlacedRegion {
    /// The pixels to read.
    pub inside: Region,
    /// The pixels of the cutout; those not `inside` are filled.
    pub output: Region,
    /// Bytes of the pixels of the cutout.
    pub bytes: usize,
    fill: Option<Fill>,
}

#[derive(Clone, Debug)]
struct Fill {
    bytes: Vec<u8>,
    text: String,
}

impl PlacedRegion {
    /// Place a box on the image.
    ///
    /// # Errors
    /// [`EngineError::Region`], [`EngineError::Fill`] or [`EngineError::TooLarge`].
    pub(crate) fn new(
        template: &Template,
        region: &Region,
        mode: Mode,
        fill: Option<f64>,
        most_bytes: Option<u64>,
    ) -> Result<PlacedRegion, EngineError> {
        let shape = &template.layout.shape;
        let overlap = region.overlap(shape).map_err(|error| template.region_error(error))?;
        let partial = !overlap.complete;
        if partial && mode == Mode::Strict {
            return Err(template.region_error(RegionError::Partial {
                region: region.clone(),
                shape: shape.clone(),
            }));
        }
        let is_filled = partial && mode == Mode::Partial;
        let output = if is_filled { region.clone() } else { overlap.inside.clone() };
        let bytes = template.data_bytes(&output)?;
        let limit = most_bytes.unwrap_or(u64::MAX).min(limit_bytes());
        if bytes as u64 > limit {
            return Err(EngineError::TooLarge {
                url: template.url.clone(),
                part: template.part.clone(),
                region: output,
                bytes: bytes as u64,
                limit,
            });
        }
        if is_filled && most_bytes.is_some() {
            check_fill(template, &output, bytes as u64, &overlap.inside)?;
        }
        check_pieces(template, &overlap.inside)?;
        let fill = is_filled.then(|| Fill::new(template, fill)).transpose()?;
        Ok(PlacedRegion { inside: overlap.inside, output, bytes, fill })
    }

    /// Place several boxes whose cutouts are together no larger than one may be.
    ///
    /// # Errors
    /// As [`PlacedRegion::new`].
    pub(crate) fn each(
        template: &Template,
        regions: &[Region],
        mode: Mode,
        fill: Option<f64>,
    ) -> Result<Vec<PlacedRegion>, EngineError> {
        let mut rest = limit_bytes();
        let place = |region| {
            let one = PlacedRegion::new(template, region, mode, fill, None)?;
            let bytes = one.bytes as u64;
            rest = rest.checked_sub(bytes).ok_or_else(|| EngineError::TooLarge {
                url: template.url.clone(),
                part: template.part.clone(),
                region: one.output.clone(),
                bytes: bytes.saturating_add(limit_bytes() - rest),
                limit: limit_bytes(),
            })?;
            Ok(one)
        };
        regions.iter().map(place).collect()
    }

    pub(crate) fn fill_text(&self) -> Option<&str> {
        self.fill.as_ref().map(|fill| fill.text.as_str())
    }

    /// Set every pixel of an empty cutout to its fill value before the image's are copied in.
    pub(crate) fn prefill(&self, pixels: &mut [u8]) {
        if let Some(fill) = &self.fill {
            for pixel in pixels.chunks_exact_mut(fill.bytes.len()) {
                pixel.copy_from_slice(&fill.bytes);
            }
        }
    }
}

/// Refuse a cutout that is nearly all fill.
fn check_fill(
    template: &Template,
    output: &Region,
    bytes: u64,
    inside: &Region,
) -> Result<(), EngineError> {
    let inside_bytes = template.data_bytes(inside)? as u64;
    if bytes <= HARMLESS_BYTES.max(inside_bytes.saturating_mul(MOST_FILL)) {
        return Ok(());
    }
    Err(EngineError::MostlyOutside {
        url: template.url.clone(),
        part: template.part.clone(),
        region: output.clone(),
        bytes,
        inside_bytes,
    })
}

/// A cut may need at most this many rows or tiles: the list of them fits in memory.
const PIECES_LIMIT: u64 = 1 << 24;

/// Look, before any is listed, at how many rows or tiles a region needs, and whether the last of
/// them lies in the object.
fn check_pieces(template: &Template, inside: &Region) -> Result<(), EngineError> {
    let Need { pieces, what, last, start, stop } = template.layout.need(inside);
    if pieces > PIECES_LIMIT {
        return Err(EngineError::TooMany {
            url: template.url.clone(),
            part: template.part.clone(),
            region: inside.clone(),
            what,
            found: pieces,
            limit: PIECES_LIMIT,
        });
    }
    match (template.content_len, &template.layout.storage) {
        (Some(end), Storage::Chunked(table)) if stop > end && table.position(last).is_some() => {
            Err(template.truncation(last, table.grid(), start..stop, end))
        }
        (Some(end), _) if stop > end => Err(EngineError::Truncated {
            url: template.url.clone(),
            what: template.part.what(),
            end,
            start,
            stop,
        }),
        _ => Ok(()),
    }
}

/// Integers of 64 bits end below it: conversion would saturate instead of failing.
const TWO_63: f64 = 9_223_372_036_854_775_808.0;

impl Fill {
    /// The element that the file itself names, since a value is not yet converted to its type.
    fn of_array(
        template: &Template,
        element: &[u8],
        value: Option<f64>,
    ) -> Result<Fill, EngineError> {
        match value {
            None => {
                Ok(Fill { bytes: element.to_vec(), text: "the fill value of the array".into() })
            }
            Some(fill) => Err(EngineError::Fill {
                url: template.url.clone(),
                part: template.part.clone(),
                fill,
                why: "only the fill value of the array itself can be stored".into(),
            }),
        }
    }

    /// The stored form of a physical fill value. By default NaN for floats, BLANK for integers
    /// that declare one, and otherwise physical 0.
    fn new(template: &Template, value: Option<f64>) -> Result<Fill, EngineError> {
        let image = match &template.head {
            Head::Fits(head) => &head.image,
            Head::Npy { fill, .. } => return Fill::of_array(template, fill, value),
        };
        let (dtype, header) = (image.dtype, &image.header);
        let wrong = |fill: f64, why: String| EngineError::Fill {
            url: template.url.clone(),
            part: template.part.clone(),
            fill,
            why,
        };
        let number = |keyword: &str, default: f64| -> Result<f64, EngineError> {
            let value =
                header.get_float(keyword).map_err(|source| template.header_error(source))?;
            Ok(value.unwrap_or(default))
        };
        let (zero, scale) = (number("BZERO", 0.0)?, number("BSCALE", 1.0)?);
        if dtype.is_float() {
            let value = value.unwrap_or(f64::NAN);
            return Ok(Fill { bytes: store(dtype, (value - zero) / scale, 0), text: text(value) });
        }
        let blank = header.get_int("BLANK").ok().flatten();
        let (pixel, text) = match (value, blank) {
            (None, Some(blank)) => (blank, format!("BLANK ({blank})")),
            (Some(value), Some(blank)) if value.is_nan() => (blank, format!("BLANK ({blank})")),
            _ => {
                let value = value.unwrap_or(0.0);
                let exact = (value - zero) / scale;
                if !(-TWO_63..TWO_63).contains(&exact) || (scale == 1.0 && exact.fract() != 0.0) {
                    return Err(wrong(value, "integer pixels cannot hold it".into()));
                }
                (exact.round() as i64, text(value))
            }
        };
        let range = match dtype {
            DType::U8 => 0..=i64::from(u8::MAX),
            DType::I16 => i64::from(i16::MIN)..=i64::from(i16::MAX),
            DType::I32 => i64::from(i32::MIN)..=i64::from(i32::MAX),
            _ => i64::MIN..=i64::MAX,
        };
        if !range.contains(&pixel) {
            let why = format!(
                "it would be stored as {pixel}, outside {} to {} of BITPIX {}",
                range.start(),
                range.end(),
                dtype.bitpix()
            );
            return Err(wrong(value.unwrap_or(0.0), why));
        }
        Ok(Fill { bytes: store(dtype, 0.0, pixel), text })
    }
}

fn text(value: f64) -> String {
    if value.is_nan() { "NaN".into() } else { value.to_string() }
}

fn store(dtype: DType, float: f64, integer: i64) -> Vec<u8> {
    match dtype {
        DType::U8 => vec![integer as u8],
        DType::I16 => (integer as i16).to_be_bytes().to_vec(),
        DType::I32 => (integer as i32).to_be_bytes().to_vec(),
        DType::I64 => integer.to_be_bytes().to_vec(),
        DType::F32 => (float as f32).to_be_bytes().to_vec(),
        DType::F64 => float.to_be_bytes().to_vec(),
    }
}

/// Pixels, header and provenance of a region: a complete FITS file in memory.
pub struct Cutout {
    /// Its image.
    pub template: Arc<Template>,
    /// The pixels it covers.
    pub region: Region,
    /// The file.
    pub file: Vec<u8>,
    /// The image's header in the file.
    pub header: Range<usize>,
    /// The stored, big-endian pixels in the file.
    pub data: Range<usize>,
}

impl Cutout {
    /// The header of the image, padded to whole blocks.
    pub fn header(&self) -> &[u8] {
        &self.file[self.header.clone()]
    }

    /// The stored pixels, big-endian, fastest axis first.
    pub fn data(&self) -> &[u8] {
        &self.file[self.data.clone()]
    }
}
