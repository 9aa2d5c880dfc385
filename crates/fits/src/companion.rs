//! Extensions that an image's WCS refers to, and the primary HDU before an extension.

use crate::card::{Card, Value, format_float};
use crate::header::Header;
use crate::image::Image;
use std::collections::HashSet;
use swathe_array::Region;

/// The kind of an extension to which a WCS refers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// An image of distortions, in pixels of the image (CPDIS, D2IM).
    Image,
    /// A table of coordinates (-TAB).
    Table,
}

/// An extension that is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompanionRef {
    /// Its EXTNAME.
    pub name: String,
    /// Its EXTVER.
    pub version: Option<i64>,
    /// Its kind.
    pub kind: Lookup,
}

/// The extensions that the WCS of an image refers to, each once.
pub fn companions(image: &Image) -> Vec<CompanionRef> {
    let header = &image.header;
    let mut needs: Vec<CompanionRef> = Vec::new();
    let mut add = |name: &str, version: Option<i64>, kind| {
        let need = CompanionRef { name: name.to_string(), version, kind };
        if !needs.contains(&need) {
            needs.push(need);
        }
    };
    for axis in 1..=image.layout.shape.len() {
        for (keyword, record, name) in [("CPDIS", "DP", "WCSDVARR"), ("D2IMDIS", "D2IM", "D2IMARR")]
        {
            let kind = header.get_str(&format!("{keyword}{axis}")).ok().flatten();
            if kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("lookup")) {
                let version = record_value(header, &format!("{record}{axis}"), "EXTVER");
                add(name, Some(version.unwrap_or(1)), Lookup::Image);
            }
        }
    }
    if header.has("AXISCORR") {
        add("D2IMARR", Some(1), Lookup::Image);
    }
    let mut keywords = HashSet::new();
    for card in header.cards().iter().filter(|card| card.has_value()) {
        // PSi_0a names the table of a -TAB axis.
        let keyword = String::from_utf8_lossy(card.keyword()).into_owned();
        let Some((axis, alternate)) = keyword.strip_prefix("PS").and_then(tab_axis) else {
            continue;
        };
        // Of a repeated keyword the first counts; an axis that is none is nobody's.
        let is_axis =
            axis.parse().is_ok_and(|axis: usize| (1..=image.layout.shape.len()).contains(&axis));
        if !is_axis || !keywords.insert(keyword.clone()) {
            continue;
        }
        let kind = header.get_str(&format!("CTYPE{axis}{alternate}")).ok().flatten();
        if !kind.is_some_and(|kind| kind.trim_end().ends_with("-TAB")) {
            continue;
        }
        let version = header.get_int(&format!("PV{axis}_1{alternate}")).ok().flatten();
        if let Some(Value::Str(name)) = header.value(&keyword) {
            add(&name, Some(version.unwrap_or(1)), Lookup::Table);
        }
    }
    needs
}

/// The axis and the alternate WCS of `i_0a`.
fn tab_axis(rest: &str) -> Option<(&str, &str)> {
    let (axis, rest) = rest.split_once('_')?;
    let alternate = rest.strip_prefix('0')?;
    (alternate.len() <= 1).then_some((axis, alternate))
}

/// A field of record-valued cards: `DP1 = 'EXTVER: 2.0'` or `DP1.EXTVER = 2.0`.
fn record_value(header: &Header, record: &str, field: &str) -> Option<i64> {
    let prefix = format!("{field}:");
    let name = format!("{record}.{field}");
    header.cards().iter().find_map(|card| {
        let number = if card.is(record) {
            match card.value()? {
                Value::Str(text) => text.strip_prefix(&prefix)?.trim().parse::<f64>().ok()?,
                _ => return None,
            }
        } else {
            let text = String::from_utf8_lossy(&card.0).into_owned();
            let text = text.strip_prefix("HIERARCH ").unwrap_or(&text).trim_start();
            let rest = text.strip_prefix(&name)?.trim_start().strip_prefix('=')?;
            rest.split('/').next()?.trim().parse::<f64>().ok()?
        };
        Some(number as i64)
    })
}

/// The header of a lookup image that moves with a cut: its unit is pixels of the image, so its
/// reference value moves by where the cut starts.
pub fn shifted_companion(header: &Header, region: &Region) -> Header {
    let mut new_header = header.clone();
    for (axis, &start) in region.start.iter().enumerate().filter(|&(_, &start)| start != 0) {
        let keyword = format!("CRVAL{}", axis + 1);
        let Some(value) = header.get_float(&keyword).ok().flatten() else { continue };
        if let Some(at) = header.position(&keyword) {
            let card = &mut new_header.cards_mut()[at];
            *card = card.with_number(&format_float(value - start as f64));
        }
    }
    // The data are as they were; the header's own checksum is not.
    new_header.cards_mut().retain(|card| !card.is("CHECKSUM"));
    new_header
}

/// The primary header that stands before a cut of an extension: the source's own if it has no
/// data, a minimal one otherwise. `extensions` follow it.
pub fn primary_for_extension(primary: &Header, extensions: usize) -> Header {
    if primary.get_int("NAXIS").ok().flatten() != Some(0) || !primary.has("SIMPLE") {
        return minimal_primary();
    }
    let mut header = primary.clone();
    let count = header.get_int("NEXTEND").ok().flatten();
    if count.is_some_and(|count| count != extensions as i64) {
        if let Some(at) = header.position("NEXTEND") {
            let card = &mut header.cards_mut()[at];
            *card = card.with_number(&extensions.to_string());
        }
        if header.has("CHECKSUM") {
            let mut bytes = header.to_bytes();
            crate::checksum::update(&mut bytes, 0, &[]);
            if let Ok(crate::HeaderParse::Complete { header: new, .. }) = Header::parse(&bytes) {
                header = new;
            }
        }
    }
    header
}

/// A primary header without data.
pub fn minimal_primary() -> Header {
    Header::from_cards(vec![
        Card::fixed_format("SIMPLE", "T", "conforms to FITS standard"),
        Card::fixed_format("BITPIX", "8", "array data type"),
        Card::fixed_format("NAXIS", "0", "number of array dimensions"),
        Card::fixed_format("EXTEND", "T", ""),
    ])
}
