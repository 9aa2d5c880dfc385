//! What can be wrong with a header.

use swathe_layout::LayoutError;

/// A header, or what it promises, that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FitsError {
    /// The bytes do not begin a FITS header.
    #[error("not FITS: expected {expected}, found {found}")]
    NotFits {
        /// The start of a header.
        expected: &'static str,
        /// The bytes there.
        found: String,
    },
    /// A header without end.
    #[error("header has more than {limit} cards and no END")]
    TooManyCards {
        /// Cards allowed.
        limit: usize,
    },
    /// A required keyword is missing.
    #[error("keyword {keyword} is missing")]
    Missing {
        /// The keyword.
        keyword: String,
    },
    /// A keyword has a value it cannot have.
    #[error("keyword {keyword}: expected {expected}, found {found}")]
    Value {
        /// The keyword.
        keyword: String,
        /// The values it may have.
        expected: &'static str,
        /// Its value.
        found: String,
    },
    /// The sizes in a header exceed what can be addressed.
    #[error("data of {what} are too large: {found}")]
    TooLarge {
        /// Of what.
        what: &'static str,
        /// The sizes.
        found: String,
    },
    /// The HDU holds no image.
    #[error("HDU holds {found}, not an image")]
    NotAnImage {
        /// Its content.
        found: String,
    },
    /// The table entry of a tile cannot be right.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A region has another number of axes than the image.
    #[error("region has {found} axes but the image has {expected}")]
    Axes {
        /// Axes of the image.
        expected: usize,
        /// Axes of the region.
        found: usize,
    },
}
