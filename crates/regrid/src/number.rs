//! Elements of arrays.

/// An element of an array, as float64.
pub trait Number: Copy + Send + Sync {
    /// Its value. Integers beyond 2^53 are rounded.
    fn number(self) -> f64;
}

macro_rules! numbers {
    ($($kind:ty),*) => {
        $(impl Number for $kind {
            #[inline]
            #[allow(clippy::cast_lossless)] // one text for all types
            fn number(self) -> f64 {
                self as f64
            }
        })*
    };
}
numbers!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);
