//! Paths of objects and folders, as requests name them: checked before any disk sees them.

use crate::error::RequestError;
use hyper::StatusCode;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use swathe_store_api::{LONGEST_PATH_BYTES, is_part_name, part_name};

/// Our folder on a disk.
pub(crate) const OWN_FOLDER: &str = ".swathe";

/// The page of metrics.
pub(crate) const METRICS: &str = "/metrics";

/// Whether no object or folder may have a name: it is that of the server's own folder on a disk, or
/// of an object that is being written, or `.` or `..`. All other names are kept, those that begin with a dot, too.
pub(crate) fn is_reserved_name(name: &[u8]) -> bool {
    matches!(name, b"." | b"..") || name == OWN_FOLDER.as_bytes() || is_upload_name(name)
}

/// Whether a name is that of an object that is being written.
fn is_upload_name(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(is_part_name)
}

/// A path from the root of a disk on: names between single slashes, none of them reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectPath {
    bytes: Vec<u8>,
    /// Whether it ended with a slash.
    pub(crate) names_folder: bool,
    /// Whether it is the hidden name of an object that is being written.
    pub(crate) is_part: bool,
}

impl ObjectPath {
    /// The path in a URL: decoded once.
    ///
    /// # Errors
    /// With status 400 if it is no path of a file; with 404 if a name of it is reserved.
    pub(crate) fn parse(url_path: &str) -> Result<ObjectPath, RequestError> {
        let bad = |why: &str| {
            let text =
                format!("{url_path}: expected the path of an object or a folder, found {why}");
            RequestError::refuse(StatusCode::BAD_REQUEST, text)
        };
        let bytes = decode(url_path).ok_or_else(|| bad("a % without two hexadecimal digits"))?;
        if bytes.first() != Some(&b'/') {
            return Err(bad("no / at its beginning"));
        }
        if bytes.contains(&0) {
            return Err(bad("a null character"));
        }
        let names_folder = bytes.last() == Some(&b'/');
        let names: Vec<&[u8]> =
            bytes.split(|&byte| byte == b'/').filter(|n| !n.is_empty()).collect();
        if names.iter().any(|name| matches!(*name, b"." | b"..")) {
            return Err(bad("the name . or .."));
        }
        let path = names.join(&b'/');
        if path == METRICS.trim_start_matches('/').as_bytes() {
            return Err(bad("that of the page of metrics"));
        }
        if path.len() > LONGEST_PATH_BYTES {
            return Err(bad(&format!("more than {LONGEST_PATH_BYTES} bytes")));
        }
        let is_part = !names_folder && names.last().is_some_and(|name| is_upload_name(name));
        let visible = if is_part { &names[..names.len() - 1] } else { &names[..] };
        if visible.iter().any(|name| is_reserved_name(name)) {
            return Err(RequestError::NotFound { path: url_path.to_string() });
        }
        Ok(ObjectPath { bytes: path, names_folder, is_part })
    }

    /// The path of the root.
    pub(crate) fn root() -> ObjectPath {
        ObjectPath { bytes: Vec::new(), names_folder: true, is_part: false }
    }

    /// The path of an entry of this folder.
    pub(crate) fn child(&self, name: &[u8]) -> ObjectPath {
        let mut bytes = self.bytes.clone();
        if !bytes.is_empty() {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name);
        ObjectPath { bytes, names_folder: false, is_part: is_upload_name(name) }
    }

    pub(crate) fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.bytes))
    }

    pub(crate) fn is_root(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The folder that it is in.
    pub(crate) fn folder(&self) -> &Path {
        self.as_path().parent().unwrap_or(Path::new(""))
    }

    /// Its last name; empty for the root.
    pub(crate) fn name(&self) -> &OsStr {
        self.as_path().file_name().unwrap_or_default()
    }

    /// What its disk is chosen by: an object and the hidden name it is written under have the same.
    pub(crate) fn placement_key(&self) -> Vec<u8> {
        let name = self.name().to_string_lossy();
        let part = if self.is_part { name.into_owned() } else { part_name(&name) };
        [self.folder().as_os_str().as_bytes(), b"/", part.as_bytes()].concat()
    }

    /// The path in a URL, from the root of the server on, without a slash at its end.
    pub(crate) fn url_path(&self) -> String {
        self.bytes.split(|&byte| byte == b'/').filter(|name| !name.is_empty()).fold(
            String::new(),
            |mut url, name| {
                url.push('/');
                encode(name, &mut url);
                url
            },
        )
    }
}

impl fmt::Display for ObjectPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "/{}", String::from_utf8_lossy(&self.bytes))
    }
}

/// The bytes that a text in percent encoding stands for.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || Some((rest.next()? as char).to_digit(16)? as u8);
                digit()? << 4 | digit()?
            }
            byte => byte,
        });
    }
    Some(bytes)
}

/// Append a name in percent encoding.
pub(crate) fn encode(name: &[u8], url: &mut String) {
    for &byte in name {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            url.push(byte as char);
        } else {
            url.push_str(&format!("%{byte:02X}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(url_path: &str) -> Result<String, u16> {
        let path = ObjectPath::parse(url_path).map_err(|error| error.status().as_u16())?;
        Ok(path.as_path().display().to_string())
    }

    #[test]
    fn paths_are_decoded_once() {
        for (url_path, path) in [
            ("/", ""),
            ("/a/b.fits", "a/b.fits"),
            ("//a//b/", "a/b"),
            ("/a%20b", "a b"),
            ("/a%2520b", "a%20b"),
            ("/a%2Fb", "a/b"),
            ("/a..b", "a..b"),
            ("/a/.hidden", "a/.hidden"),
            ("/a.zarr/.zarray.stripe", "a.zarr/.zarray.stripe"),
            ("/.swathe-2/disk", ".swathe-2/disk"),
            ("/run/.a.fits-0123abcd.part", "run/.a.fits-0123abcd.part"),
        ] {
            assert_eq!(text(url_path).as_deref(), Ok(path), "{url_path}");
        }
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        for (url_path, status) in [
            ("*", 400),
            ("a", 400),
            ("/..", 400),
            ("/a/../b", 400),
            ("/a/%2e%2E/b", 400),
            ("/a%2f..%2fb", 400),
            ("/./a", 400),
            ("/a%00b", 400),
            ("/a%", 400),
            ("/a%2", 400),
            ("/a%gg", 400),
            ("/.swathe/disk", 404),
            ("/%2eswathe/disk", 404),
            ("/a/.swathe", 404),
            ("/.a-0123abcd.part/b", 404),
            ("/.a-0123abcd.part/", 404),
        ] {
            assert_eq!(text(url_path), Err(status), "{url_path}");
        }
        assert_eq!(text(&format!("/{}", "a".repeat(LONGEST_PATH_BYTES + 1))), Err(400));
    }

    #[test]
    fn an_object_and_its_part_have_one_place() {
        let long = "n".repeat(200);
        for name in ["a.fits", &long] {
            let path = ObjectPath::parse(&format!("/run/{name}")).unwrap();
            let part = ObjectPath::parse(&format!("/run/{}", part_name(name))).unwrap();
            assert!(part.is_part && !path.is_part);
            assert_eq!(path.placement_key(), part.placement_key());
        }
    }

    proptest! {
        #[test]
        fn encoded_paths_come_back(names in prop::collection::vec("[^/\0.][^/\0]{0,8}|[.][a-z]{1,8}", 1..4)) {
            let path = names.iter().fold(ObjectPath::parse("/").unwrap(), |path, name| {
                path.child(name.as_bytes())
            });
            prop_assert_eq!(ObjectPath::parse(&path.url_path()).unwrap(), path);
        }

        #[test]
        fn no_path_panics(url_path in ".{0,40}") {
            let _ = ObjectPath::parse(&url_path);
        }
    }
}
