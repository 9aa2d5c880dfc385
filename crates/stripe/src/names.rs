//! The names of what a striped object is made of, on its servers.
//!
//! The record of `dr17/a.fits` is `dr17/a.fits.stripe`. A part is `dr17/a.fits.stripe.3-9f0c.6098304.2`:
//! generation and writer, bytes of the object, and which part it is. So a listing of a server shows
//! all objects with their sizes, and no version writes over the parts of another.

use crate::record_format::Generation;

const SUFFIX: &str = ".stripe";

/// What a file of a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// The record of an object.
    Record {
        /// The object.
        path: String,
    },
    /// A part of one.
    Part {
        /// The object.
        path: String,
        /// Its version.
        generation: Generation,
        /// Bytes of the object.
        size: u64,
        /// Which part, from 0.
        part: u32,
    },
    /// Nothing of a stripe.
    Other,
}

/// The name of a server for a text: that of a store has a colon at its end.
pub(crate) fn bare_name(server: &str) -> &str {
    server.trim_end_matches(':')
}

/// The path of an object's record.
pub(crate) fn record_path(path: &str) -> String {
    format!("{path}{SUFFIX}")
}

/// The path of a part.
pub(crate) fn part_path(path: &str, generation: &Generation, size: u64, part: u32) -> String {
    format!("{path}{SUFFIX}.{generation}.{size}.{part}")
}

/// A path beside the parts, for room that is reserved: nothing is written under it.
pub(crate) fn room_path(path: &str) -> String {
    format!("{path}{SUFFIX}.room")
}

/// What a file is, by its path.
pub(crate) fn kind_of(path: &str) -> FileKind {
    if let Some(object) = path.strip_suffix(SUFFIX) {
        return match object.is_empty() || object.ends_with('/') {
            true => FileKind::Other,
            false => FileKind::Record { path: object.to_string() },
        };
    }
    part_of(path).unwrap_or(FileKind::Other)
}

fn part_of(path: &str) -> Option<FileKind> {
    let (rest, part) = path.rsplit_once('.')?;
    let (rest, size) = rest.rsplit_once('.')?;
    let (rest, generation) = rest.rsplit_once('.')?;
    let (number, writer) = generation.split_once('-')?;
    let object = rest.strip_suffix(SUFFIX)?;
    let is_writer = !writer.is_empty() && writer.bytes().all(|byte| byte.is_ascii_hexdigit());
    if object.is_empty() || object.ends_with('/') || !is_writer {
        return None;
    }
    // "+5" is a number for Rust, and no name that is written.
    if [number, size, part].iter().any(|text| !text.bytes().all(|byte| byte.is_ascii_digit())) {
        return None;
    }
    let generation = Generation { number: number.parse().ok()?, writer: writer.to_string() };
    let (size, part) = (size.parse().ok()?, part.parse().ok()?);
    Some(FileKind::Part { path: object.to_string(), generation, size, part })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_names() {
        let generation = Generation { number: 3, writer: "9f0c".into() };
        for path in ["a", "d/a.fits", "x.stripe", "x.stripe.3-9f.7.1", "a.b.c.d"] {
            let object = path.to_string();
            assert_eq!(kind_of(&record_path(path)), FileKind::Record { path: object.clone() });
            let part =
                FileKind::Part { path: object, generation: generation.clone(), size: 9, part: 2 };
            assert_eq!(kind_of(&part_path(path, &generation, 9, 2)), part);
        }
        for path in [
            "a.fits",
            "",
            ".stripe",
            "d/.stripe",
            "a.stripe.3-9f.7",
            "a.stripe.3-9x.7.1",
            "a.stripe.+3-9f.7.1",
        ] {
            assert_eq!(kind_of(path), FileKind::Other, "{path}");
        }
    }
}
