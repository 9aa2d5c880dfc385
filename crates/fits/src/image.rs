//! Images: their axes, the type of their pixels, and their layout.

use crate::error::FitsError;
use crate::header::Header;
use swathe_array::DType;
use swathe_layout::Layout;

/// More axes than any image has; the standard allows 999.
const AXES_LIMIT: i64 = 999;

/// An image: how its pixels are stored, and its header.
#[derive(Clone, Debug)]
pub struct Image {
    /// Type of its stored pixels.
    pub dtype: DType,
    /// Where they lie, NAXIS1 first.
    pub layout: Layout,
    /// Its header, as if it were not compressed.
    pub header: Header,
    /// Whether it is, or was before compression, the primary HDU.
    pub primary: bool,
}

/// The pixel type that BITPIX (or ZBITPIX) names.
pub(crate) fn dtype(header: &Header, keyword: &str) -> Result<DType, FitsError> {
    let bitpix = require(header, keyword)?;
    DType::from_bitpix(bitpix).ok_or_else(|| FitsError::Value {
        keyword: keyword.to_string(),
        expected: "8, 16, 32, 64, -32 or -64",
        found: bitpix.to_string(),
    })
}

pub(crate) fn require(header: &Header, keyword: &str) -> Result<i64, FitsError> {
    header.get_int(keyword)?.ok_or_else(|| FitsError::Missing { keyword: keyword.to_string() })
}

/// The lengths of the axes: NAXIS and NAXISn, or ZNAXIS and ZNAXISn.
pub(crate) fn axes(header: &Header, prefix: &str) -> Result<Vec<u64>, FitsError> {
    let count = require(header, prefix)?;
    if !(0..=AXES_LIMIT).contains(&count) {
        return Err(FitsError::Value {
            keyword: prefix.to_string(),
            expected: "0 to 999",
            found: count.to_string(),
        });
    }
    (1..=count)
        .map(|axis| {
            let keyword = format!("{prefix}{axis}");
            let length = require(header, &keyword)?;
            u64::try_from(length).map_err(|_| FitsError::Value {
                keyword,
                expected: "a length from 0",
                found: length.to_string(),
            })
        })
        .collect()
}
