//! Metadata of Zarr 2 that an index of a folder does not show: nginx and Apache leave out names that
//! begin with a dot.

use super::place::Place;
use super::table::Member;
use std::collections::BTreeSet;
use swathe_store_api::{StoreError, ZARR_NAMES};

/// The metadata of all arrays and groups.
const ALL_METADATA: &str = ".zmetadata";
/// Most folders that are asked for metadata.
const MOST_FOLDERS: usize = 1_000;

/// Add metadata that an index hides, if it shows none: each is asked for by its name.
///
/// # Errors
/// As opening an object; one that is missing, or may not be read, is none.
pub(super) fn add(place: &Place, start: &str, members: &mut Vec<Member>) -> Result<(), StoreError> {
    if !place.url.starts_with("http") || members.iter().any(|member| is_metadata(&member.name)) {
        return Ok(());
    }
    let mut found = place.ask(start, vec![ALL_METADATA.to_string()], true)?;
    if found.is_empty() {
        found = place.ask(start, candidates(members), true)?;
    }
    members.append(&mut found);
    Ok(())
}

fn is_metadata(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name == "zarr.json" || ZARR_NAMES.contains(&name)
}

/// Names that metadata may have: in the folder, and in those below that do not number chunks.
fn candidates(members: &[Member]) -> Vec<String> {
    let mut folders = BTreeSet::from([""]);
    for member in members {
        let path = &member.name;
        let ends = path.match_indices('/').map(|(at, _)| at);
        let is_chunk = |end: &usize| {
            let name = path[..*end].rsplit('/').next().unwrap_or_default();
            name.bytes().all(|byte| byte.is_ascii_digit())
        };
        folders.extend(ends.take_while(|end| !is_chunk(end)).map(|end| &path[..end + 1]));
        if folders.len() > MOST_FOLDERS {
            break;
        }
    }
    let names = ZARR_NAMES.iter().filter(|name| **name != ALL_METADATA);
    let names: Vec<&str> = names.copied().collect();
    folders
        .iter()
        .flat_map(|folder| names.iter().map(move |name| format!("{folder}{name}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str) -> Member {
        Member { name: name.into(), size: 1, stamp: String::new() }
    }

    #[test]
    fn folders_are_asked_for_metadata_but_not_those_of_chunks() {
        let names = candidates(&[member("a/0/1"), member("b/c/0.0"), member("0.0")]);
        let folders: Vec<&str> =
            names.iter().filter_map(|name| name.strip_suffix(".zarray")).collect();
        assert_eq!(folders, ["", "a/", "b/", "b/c/"]);
        assert_eq!(names.len(), 12);
        assert!(is_metadata("a/.zgroup") && is_metadata("zarr.json") && !is_metadata("a/.other"));
    }

    #[test]
    fn the_number_of_folders_is_bounded() {
        let members: Vec<Member> = (0..5000).map(|at| member(&format!("x{at}/0"))).collect();
        assert!(candidates(&members).len() <= 3 * (MOST_FOLDERS + 2));
    }
}
