//! Fields of a coded chunk, read one after the other.

use super::error::FilterError;

/// The rest of a chunk.
pub(super) struct Fields<'a> {
    filter: &'static str,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(filter: &'static str, bytes: &'a [u8]) -> Fields<'a> {
        Fields { filter, rest: bytes }
    }

    /// The next `count` bytes.
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], FilterError> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(FilterError::Short {
            filter: self.filter,
            expected: count as u64,
            found: self.rest.len() as u64,
        })?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FilterError> {
        let bytes = self.take(N)?;
        Ok(bytes.first_chunk().copied().unwrap_or([0; N]))
    }

    /// A big-endian length of 4 bytes.
    pub(super) fn length_be(&mut self) -> Result<usize, FilterError> {
        Ok(u32::from_be_bytes(self.array()?) as usize)
    }

    /// A little-endian length of 4 bytes.
    pub(super) fn length_le(&mut self) -> Result<usize, FilterError> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    /// A big-endian number of 8 bytes.
    pub(super) fn number_be(&mut self) -> Result<u64, FilterError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// A little-endian number of 8 bytes.
    pub(super) fn number_le(&mut self) -> Result<u64, FilterError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

/// A field whose value is not the one it must be, or above the largest.
pub(super) fn corrupt(
    filter: &'static str,
    what: &'static str,
    expected: usize,
    found: u64,
) -> FilterError {
    let found = i64::try_from(found).unwrap_or(i64::MAX);
    FilterError::Corrupt { filter, what, expected: expected as i64, found }
}

/// A stream that breaks the rules of its format.
pub(super) fn damage_error(filter: &'static str, bytes: &[u8], out: &[u8]) -> FilterError {
    FilterError::Stream { filter, expected: out.len() as u64, found: bytes.len() as u64 }
}
