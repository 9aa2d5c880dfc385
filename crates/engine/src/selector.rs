//! Which HDU of an object is meant, and what a message says if it has none such.

use std::sync::Arc;
use swathe_fits::{Hdu, HduKind};

/// HDUs or names that a message lists.
const LISTED_HDUS: usize = 12;

/// Which HDU is meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    /// The first HDU with an image.
    FirstImage,
    /// By number, from 0.
    Index(usize),
    /// By EXTNAME (any case) and EXTVER, if set.
    Name(String, Option<i64>),
    /// An array of a file that is not FITS, by its path.
    Array(String),
}

impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Selector::FirstImage => write!(f, "with an image"),
            Selector::Index(index) => write!(f, "{index}"),
            Selector::Array(path) => write!(f, "with the array {path:?}"),
            Selector::Name(name, None) => write!(f, "named {name:?}"),
            Selector::Name(name, Some(version)) => write!(f, "named {name:?}, version {version}"),
        }
    }
}

impl Selector {
    /// Whether it selects an HDU.
    pub(crate) fn matches(&self, hdu: &Hdu) -> bool {
        match self {
            Selector::FirstImage => is_image(hdu),
            Selector::Index(index) => hdu.index == *index,
            Selector::Name(name, version) => is_named(hdu, name, *version),
            Selector::Array(_) => false,
        }
    }
}

fn is_named(hdu: &Hdu, name: &str, version: Option<i64>) -> bool {
    let own = hdu.name();
    let matches = match own.as_deref().map(str::trim) {
        Some(own) => own.eq_ignore_ascii_case(name.trim()),
        None => hdu.index == 0 && name.trim().eq_ignore_ascii_case("PRIMARY"),
    };
    matches && version.is_none_or(|version| hdu.version() == version)
}

pub(crate) fn is_image(hdu: &Hdu) -> bool {
    matches!(hdu.kind(), HduKind::Image | HduKind::CompressedImage)
}

/// The HDUs of the file, for the message that one is missing.
pub(crate) fn list_hdus(hdus: &[Arc<Hdu>], selector: &Selector) -> String {
    match selector {
        Selector::Name(..) => {
            let names = hdus.iter().filter_map(|hdu| {
                let name = hdu.name()?;
                Some(format!("{:?} ({})", name.trim(), hdu.index))
            });
            match list(names) {
                Some(names) => format!("the named ones are {names}"),
                None => format!("none has a name: {}", describe_hdus(hdus)),
            }
        }
        Selector::Index(_) | Selector::FirstImage | Selector::Array(_) => describe_hdus(hdus),
    }
}

/// All HDUs, and what each is.
fn describe_hdus(hdus: &[Arc<Hdu>]) -> String {
    let each = hdus.iter().map(|hdu| {
        let name = hdu.name().map(|name| format!(" {}", name.trim())).unwrap_or_default();
        format!("{}{name} ({})", hdu.index, hdu.kind())
    });
    match (hdus, list(each)) {
        ([only], _) => format!("there is only HDU 0 ({})", only.kind()),
        (_, Some(each)) => format!("there are HDUs 0 to {}: {each}", hdus.len() - 1),
        (_, None) => "there is none".to_string(),
    }
}

/// Numbers of HDUs as a message names them: `HDUs 0, 3`; `None` for an empty list.
pub(crate) fn numbers(of: impl Iterator<Item = usize>) -> Option<String> {
    let all: Vec<String> = of.map(|index| index.to_string()).collect();
    let noun = if all.len() == 1 { "HDU" } else { "HDUs" };
    list(all.into_iter()).map(|numbers| format!("{noun} {numbers}"))
}

/// The first of some texts; `None` for an empty list.
fn list(mut texts: impl Iterator<Item = String>) -> Option<String> {
    let first: Vec<String> = texts.by_ref().take(LISTED_HDUS).collect();
    let more = if texts.next().is_some() { ", ..." } else { "" };
    (!first.is_empty()).then(|| format!("{}{more}", first.join(", ")))
}
