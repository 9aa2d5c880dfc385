//! Header-data units: their contents and positions.

use crate::card::{Card, Value};
use crate::compressed_image::{self, is_default_name};
use crate::error::FitsError;
use crate::header::{BLOCK, Header};
use crate::image::{Image, axes, dtype};
use serde::{Deserialize, Serialize};
use swathe_layout::{Layout, Rows, Storage};

/// An image of more axes is not cut: regions are boxes of a few dimensions.
const IMAGE_AXES_LIMIT: usize = 16;

/// The content of an HDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HduKind {
    /// An image with pixels.
    Image,
    /// A table with a tile of an image in each row.
    CompressedImage,
    /// A binary or ASCII table.
    Table,
    /// A header without data.
    Empty,
    /// Random groups or a foreign extension.
    Other,
}

impl std::fmt::Display for HduKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            HduKind::Image => "image",
            HduKind::CompressedImage => "compressed image",
            HduKind::Table => "table",
            HduKind::Empty => "empty",
            HduKind::Other => "other",
        })
    }
}

/// A header, its position and that of its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hdu {
    /// Number, from 0.
    pub index: usize,
    /// Its cards.
    pub header: Header,
    /// First byte of the header.
    pub header_start: u64,
    /// First byte of the data.
    pub data_start: u64,
    /// Bytes of data, without padding.
    pub data_len: u64,
    kind: HduKind,
}

impl Hdu {
    /// An HDU from its header of `header_bytes` at `header_start`.
    ///
    /// # Errors
    /// If the sizes in the header are impossible.
    pub fn new(
        index: usize,
        header_start: u64,
        header_bytes: u64,
        header: Header,
    ) -> Result<Hdu, FitsError> {
        let too_large = |found: String| FitsError::TooLarge { what: "the HDU", found };
        let data_start = header_start
            .checked_add(header_bytes)
            .ok_or_else(|| too_large(format!("{header_bytes} bytes of header")))?;
        let (kind, data_len) = measure(&header)?;
        data_start
            .checked_add(data_len)
            .and_then(|end| end.checked_next_multiple_of(BLOCK as u64))
            .filter(|&end| i64::try_from(end).is_ok())
            .ok_or_else(|| too_large(format!("{data_len} bytes")))?;
        Ok(Hdu { index, header, header_start, data_start, data_len, kind })
    }

    /// Start of the next HDU.
    pub fn end(&self) -> u64 {
        (self.data_start + self.data_len).next_multiple_of(BLOCK as u64)
    }

    /// Its content.
    pub fn kind(&self) -> HduKind {
        self.kind
    }

    /// EXTNAME; of a compressed image, one that is not just the name of all such tables.
    pub fn name(&self) -> Option<String> {
        let is_compressed = self.kind == HduKind::CompressedImage;
        let is_name = |card: &&Card| {
            card.is("EXTNAME") && card.has_value() && !(is_compressed && is_default_name(card))
        };
        match self.header.cards().iter().find(is_name)?.value()? {
            Value::Str(name) => Some(name),
            _ => None,
        }
    }

    /// EXTVER.
    pub fn version(&self) -> i64 {
        self.header.get_int("EXTVER").ok().flatten().unwrap_or(1)
    }

    /// The image it holds.
    ///
    /// # Errors
    /// [`FitsError::NotAnImage`], or if the header cannot be understood.
    pub fn image(&self) -> Result<Image, FitsError> {
        match self.kind {
            HduKind::Image => {
                let shape = axes(&self.header, "NAXIS")?;
                check_axes(&shape)?;
                let dtype = dtype(&self.header, "BITPIX")?;
                let storage = Storage::Rows(Rows::contiguous(self.data_start, dtype.size()));
                Ok(Image {
                    dtype,
                    layout: Layout { element_bytes: dtype.size(), shape, storage },
                    header: self.header.clone(),
                    primary: self.header.has("SIMPLE"),
                })
            }
            HduKind::CompressedImage => {
                let image = compressed_image::image(&self.header, self.data_start, self.data_len)?;
                check_axes(&image.layout.shape)?;
                Ok(image)
            }
            HduKind::Empty | HduKind::Table | HduKind::Other => {
                Err(FitsError::NotAnImage { found: self.content() })
            }
        }
    }

    /// Its content, in words.
    pub fn content(&self) -> String {
        match (self.kind, self.header.get_str("XTENSION")) {
            (HduKind::Image, _) => "an image".into(),
            (HduKind::CompressedImage, _) => "a compressed image".into(),
            (HduKind::Table, _) => "a table".into(),
            (HduKind::Empty, _) => "no data".into(),
            (HduKind::Other, Ok(Some(kind))) => format!("an extension of the kind {}", kind.trim()),
            (HduKind::Other, _) => "random groups".into(),
        }
    }
}

fn check_axes(shape: &[u64]) -> Result<(), FitsError> {
    if shape.len() > IMAGE_AXES_LIMIT {
        return Err(FitsError::Value {
            keyword: "NAXIS".into(),
            expected: "at most 16 axes",
            found: shape.len().to_string(),
        });
    }
    Ok(())
}

/// The content of an HDU and its bytes, by its header (FITS Standard 4.0, equations 1 and 2).
fn measure(header: &Header) -> Result<(HduKind, u64), FitsError> {
    let shape = axes(header, "NAXIS")?;
    let extension = header.get_str("XTENSION")?;
    let groups = header.get_bool("GROUPS").ok().flatten() == Some(true)
        && shape.first() == Some(&0)
        && shape.len() > 1;
    let pixels = &shape[usize::from(groups)..];
    let bits = if shape.is_empty() { 8 } else { dtype(header, "BITPIX")?.bitpix() };
    let too_large = || FitsError::TooLarge {
        what: "the HDU",
        found: format!("BITPIX {bits}, NAXISn {shape:?}"),
    };
    let count = |keyword: &str, default: i64| -> Result<u64, FitsError> {
        let value = header.get_int(keyword)?.unwrap_or(default);
        u64::try_from(value).map_err(|_| FitsError::Value {
            keyword: keyword.to_string(),
            expected: "a count from 0",
            found: value.to_string(),
        })
    };
    let array = pixels.iter().try_fold(1u64, |n, &side| {
        // A zero side empties the array, however long the others are.
        if n == 0 || side == 0 { Some(0) } else { n.checked_mul(side) }
    });
    let array = if shape.is_empty() { 0 } else { array.ok_or_else(too_large)? };
    let (groups_of, extra) = if extension.is_some() || groups {
        let groups_of = count("GCOUNT", 1)?;
        if groups_of == 0 && !groups {
            return Err(FitsError::Value {
                keyword: "GCOUNT".into(),
                expected: "1",
                found: "0".into(),
            });
        }
        (groups_of, count("PCOUNT", 0)?)
    } else {
        (1, 0)
    };
    let bytes = array
        .checked_add(extra)
        .and_then(|n| n.checked_mul(groups_of))
        .and_then(|n| n.checked_mul(bits.unsigned_abs() / 8))
        .ok_or_else(too_large)?;
    let kind = match extension.as_deref().map(str::trim) {
        _ if groups => HduKind::Other,
        Some("BINTABLE" | "A3DTABLE") => {
            if header.get_bool("ZIMAGE").ok().flatten() == Some(true) {
                HduKind::CompressedImage
            } else {
                HduKind::Table
            }
        }
        Some("TABLE") => HduKind::Table,
        None | Some("IMAGE" | "IUEIMAGE") if array == 0 => HduKind::Empty,
        None | Some("IMAGE" | "IUEIMAGE") => HduKind::Image,
        Some(_) => HduKind::Other,
    };
    Ok((kind, bytes))
}
