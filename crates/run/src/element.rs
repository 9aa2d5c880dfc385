//! The type of the elements of an array.

use crate::Invalid;
use serde_json::{Value, json};

// The bytes of the caller are stored as they are.
const _: () = assert!(cfg!(target_endian = "little"), "elements are stored little-endian");

const TYPES: [(&str, &str, u64); 14] = [
    ("b1", "bool", 1),
    ("i1", "int8", 1),
    ("i2", "int16", 2),
    ("i4", "int32", 4),
    ("i8", "int64", 8),
    ("u1", "uint8", 1),
    ("u2", "uint16", 2),
    ("u4", "uint32", 4),
    ("u8", "uint64", 8),
    ("f2", "float16", 2),
    ("f4", "float32", 4),
    ("f8", "float64", 8),
    ("c8", "complex64", 8),
    ("c16", "complex128", 16),
];

/// A type of numbers that NumPy and Zarr have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element(usize);

impl Element {
    /// The type of a text such as `f4`, `<f4` or `float32`.
    pub fn parse(text: &str) -> Result<Element, Invalid> {
        let short = text.trim_start_matches(['<', '=', '|']);
        let at = TYPES.iter().position(|(code, name, _)| *code == short || *name == text);
        at.map(Element)
            .ok_or_else(|| Invalid::new("type", "one such as f4 or u1", format!("{text:?}")))
    }

    /// Bytes of an element.
    pub fn bytes(self) -> u64 {
        TYPES[self.0].2
    }

    /// Its name in Zarr 3.
    pub fn name(self) -> &'static str {
        TYPES[self.0].1
    }

    /// The value of elements that were not written.
    pub fn fill(self) -> Value {
        match &self.name()[..3] {
            "flo" => json!("NaN"),
            "com" => json!(["NaN", "NaN"]),
            "boo" => json!(false),
            _ => json!(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_names_of_numpy_and_zarr() {
        for text in ["f4", "<f4", "float32"] {
            let element = Element::parse(text).expect("a type");
            assert_eq!((element.name(), element.bytes()), ("float32", 4));
        }
        assert_eq!(Element::parse("u1").expect("a type").fill(), json!(0));
        assert_eq!(Element::parse("c16").expect("a type").fill(), json!(["NaN", "NaN"]));
        for text in ["", ">f4", "f3", "float", "S4"] {
            assert!(Element::parse(text).is_err(), "{text}");
        }
    }
}
