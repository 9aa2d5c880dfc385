//! Element types as stored, before any scaling.

use serde::{Deserialize, Serialize};

/// The type of one stored element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DType {
    /// Unsigned 8-bit integer.
    U8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
}

impl DType {
    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            DType::U8 => 1,
            DType::I16 => 2,
            DType::I32 | DType::F32 => 4,
            DType::I64 | DType::F64 => 8,
        }
    }

    /// Whether the type is a floating-point one.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64)
    }

    /// The type of a FITS image with this BITPIX (FITS Standard 4.0, table 8).
    pub const fn from_bitpix(bitpix: i64) -> Option<DType> {
        match bitpix {
            8 => Some(DType::U8),
            16 => Some(DType::I16),
            32 => Some(DType::I32),
            64 => Some(DType::I64),
            -32 => Some(DType::F32),
            -64 => Some(DType::F64),
            _ => None,
        }
    }

    /// The BITPIX of a FITS image of this type.
    pub const fn bitpix(self) -> i64 {
        match self {
            DType::U8 => 8,
            DType::I16 => 16,
            DType::I32 => 32,
            DType::I64 => 64,
            DType::F32 => -32,
            DType::F64 => -64,
        }
    }
}
