//! The names of objects that are being written.

use crate::listing::HIDDEN_PREFIX;

/// Characters of a name that its unfinished file keeps: file systems allow 255 bytes.
const NAME_CHARS: usize = 50;
const SUFFIX: &str = ".part";

/// The hidden name of an object until it is complete. Each object has its own.
pub fn part_name(name: &str) -> String {
    own_part_name(name, crc32fast::hash(name.as_bytes()))
}

/// A hidden name that no other writer of the object has: `mark` is a random number.
pub fn own_part_name(name: &str, mark: u32) -> String {
    let start: String = name.chars().take(NAME_CHARS).collect();
    format!("{HIDDEN_PREFIX}{start}-{mark:08x}{SUFFIX}")
}

/// Whether a name is one that [`part_name`] or [`own_part_name`] gives.
pub fn is_part_name(name: &str) -> bool {
    let inside = name.strip_prefix(HIDDEN_PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    inside.and_then(|inside| inside.rsplit_once('-')).is_some_and(|(start, sum)| {
        start.chars().count() <= NAME_CHARS
            && sum.len() == 8
            && sum.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_parts_are_recognised() {
        let long = "\u{e4}".repeat(120);
        for name in ["a.fits", "a-b", ".hidden", "", &long] {
            let part = part_name(name);
            assert!(is_part_name(&part), "{part}");
            assert!(part.len() <= 255);
        }
        for name in ["a.fits", ".a.part", ".a-0123456.part", ".a-0123456G.part", "a-01234567.part"]
        {
            assert!(!is_part_name(name), "{name}");
        }
    }
}
