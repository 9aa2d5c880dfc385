//! The header of a cutout: the source's cards, verbatim and in order, with only what a cut
//! changes.

use crate::card::{CARD, Card, format_float};
use crate::checksum;
use crate::error::FitsError;
use crate::header::{BLOCK, Header, end_header};
use crate::image::Image;
use swathe_array::Region;

/// The source of a cutout, for its HISTORY.
#[derive(Clone, Copy, Debug)]
pub struct Provenance<'a> {
    /// The object it was cut from.
    pub source: &'a str,
    /// Its version.
    pub source_version: &'a str,
    /// The value of pixels outside the image, if any.
    pub fill: Option<&'a str>,
}

/// The header of cutouts of one image, prepared once and rendered per region.
#[derive(Clone, Debug)]
pub struct CutHeader {
    cards: Vec<u8>,
    axes: usize,
    edits: Vec<Edit>,
    has_checksums: bool,
}

/// One number that depends on the region.
#[derive(Clone, Debug)]
struct Edit {
    /// Byte of the card to replace; `None` appends one.
    at: Option<usize>,
    keyword: String,
    comment: String,
    axis: usize,
    number: Number,
}

#[derive(Clone, Copy, Debug)]
enum Number {
    /// The length of the axis.
    Length,
    /// This value less the start of the cut. Unchanged if it starts at 0.
    Shifted(f64),
    /// This value and the start of the cut; whole numbers stay so. Unchanged if it starts at 0.
    Added(f64),
    /// This value, once the axis starts elsewhere.
    Constant(f64),
}

impl CutHeader {
    /// Prepare the header of an image.
    ///
    /// # Errors
    /// If NAXISn or a number that has to be changed cannot be read.
    pub fn new(image: &Image) -> Result<CutHeader, FitsError> {
        let header = &image.header;
        let axes = image.layout.shape.len();
        let mut edits = Vec::new();
        let alternates = alternates(header);
        for axis in 0..axes {
            let keyword = format!("NAXIS{}", axis + 1);
            if !header.has(&keyword) {
                return Err(FitsError::Missing { keyword });
            }
            edits.push(edit(header, keyword, axis, Number::Length));
            for alternate in &alternates {
                reference_pixel(header, axis, alternate, &mut edits)?;
            }
            physical(header, axis, &mut edits)?;
            on_plate(header, axis, &mut edits)?;
        }
        let mut cards = Vec::with_capacity(header.cards().len() * CARD);
        for card in header.cards() {
            cards.extend_from_slice(&card.0);
        }
        let has_checksums = header.has("DATASUM") || header.has("CHECKSUM");
        Ok(CutHeader { cards, axes, edits, has_checksums })
    }

    /// Whether the header holds checksums, so that rendering it needs the data.
    pub fn needs_data(&self) -> bool {
        self.has_checksums
    }

    /// Append the header of a cut, in whole blocks. `region` is in pixels of the source, NAXIS1
    /// first. Without `data` checksums are left to be filled in by rendering again; the length
    /// does not change.
    ///
    /// # Errors
    /// [`FitsError::Axes`].
    pub fn render(
        &self,
        region: &Region,
        provenance: &Provenance<'_>,
        data: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<(), FitsError> {
        if region.axes() != self.axes {
            return Err(FitsError::Axes { expected: self.axes, found: region.axes() });
        }
        let start = out.len();
        out.reserve((self.cards.len() + 16 * CARD).next_multiple_of(BLOCK));
        out.extend_from_slice(&self.cards);
        for edit in &self.edits {
            let first = region.start[edit.axis];
            let text = match edit.number {
                Number::Length => region.stop[edit.axis].abs_diff(first).to_string(),
                _ if first == 0 => continue,
                Number::Shifted(value) => format_float(value - first as f64),
                Number::Added(value) => {
                    let text = format_float(value + first as f64);
                    text.strip_suffix(".0").map(str::to_string).unwrap_or(text)
                }
                Number::Constant(value) => format_float(value),
            };
            let card = Card::fixed_format(&edit.keyword, &text, &edit.comment);
            match edit.at {
                Some(at) => out[start + at..start + at + CARD].copy_from_slice(&card.0),
                None => out.extend_from_slice(&card.0),
            }
        }
        history(region, provenance, out);
        end_header(out, start);
        if let Some(data) = data.filter(|_| self.has_checksums) {
            checksum::update(out, start, data);
        }
        Ok(())
    }
}

fn edit(header: &Header, keyword: String, axis: usize, number: Number) -> Edit {
    let at = header.position(&keyword);
    let comment = at.map(|at| header.cards()[at].comment()).unwrap_or_default();
    Edit { at: at.map(|at| at * CARD), keyword, comment, axis, number }
}

/// The WCS versions that a header describes: "", "A" ... "Z".
fn alternates(header: &Header) -> Vec<String> {
    let mut keywords: Vec<String> =
        header.cards().iter().filter_map(|card| alternate(card.keyword())).collect();
    keywords.sort_unstable();
    keywords.dedup();
    keywords
}

/// The version that a WCS keyword such as CRVAL1A or CD1_2 belongs to.
fn alternate(keyword: &[u8]) -> Option<String> {
    const PREFIXES: [&[u8]; 6] = [b"CRPIX", b"CRVAL", b"CTYPE", b"CDELT", b"CD", b"PC"];
    let rest = PREFIXES.iter().find_map(|prefix| keyword.strip_prefix(*prefix))?;
    let (&last, stem) = rest.split_last()?;
    let (stem, letter) = match last {
        b'A'..=b'Z' => (stem, char::from(last).to_string()),
        _ => (rest, String::new()),
    };
    let digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    stem.split(|&byte| byte == b'_').all(digits).then_some(letter)
}

/// CRPIXja: if absent it is 0 (FITS Standard 4.0, section 8.2), and has to be added.
fn reference_pixel(
    header: &Header,
    axis: usize,
    alternate: &str,
    edits: &mut Vec<Edit>,
) -> Result<(), FitsError> {
    let keyword = format!("CRPIX{}{alternate}", axis + 1);
    let value = header.get_float(&keyword)?.unwrap_or(0.0);
    edits.push(edit(header, keyword, axis, Number::Shifted(value)));
    Ok(())
}

/// LTVi and LTMi_i, which lead back to the pixels of the source: physical = (pixel - LTV) / LTM.
fn physical(header: &Header, axis: usize, edits: &mut Vec<Edit>) -> Result<(), FitsError> {
    let keyword = format!("LTV{}", axis + 1);
    let value = header.get_float(&keyword)?.unwrap_or(0.0);
    edits.push(edit(header, keyword, axis, Number::Shifted(value)));
    let keyword = format!("LTM{0}_{0}", axis + 1);
    if !header.has(&keyword) {
        edits.push(edit(header, keyword, axis, Number::Constant(1.0)));
    }
    Ok(())
}

/// CNPIXn: the position of a piece in a plate of the Digitized Sky Survey. Its plate solution
/// (AMDXi, AMDYi) is in pixels of the plate.
fn on_plate(header: &Header, axis: usize, edits: &mut Vec<Edit>) -> Result<(), FitsError> {
    let keyword = format!("CNPIX{}", axis + 1);
    if let Some(value) = header.get_float(&keyword)? {
        edits.push(edit(header, keyword, axis, Number::Added(value)));
    }
    Ok(())
}

fn history(region: &Region, provenance: &Provenance<'_>, out: &mut Vec<u8>) {
    let mut section = String::from("[");
    for (axis, (start, stop)) in region.start.iter().zip(&region.stop).enumerate() {
        let comma = if axis > 0 { "," } else { "" };
        section.push_str(&format!("{comma}{}:{stop}", start + 1));
    }
    section.push(']');
    let version = env!("CARGO_PKG_VERSION");
    add_history(&format!("Swathe {version} cut {section} of"), out);
    add_history(provenance.source, out);
    add_history(&format!("version {}", provenance.source_version), out);
    if let Some(fill) = provenance.fill {
        add_history(&format!("pixels outside the image are {fill}"), out);
    }
}

/// HISTORY cards hold 72 characters of printable ASCII each.
fn add_history(text: &str, out: &mut Vec<u8>) {
    let printable = |c| if matches!(c, ' '..='~') { c as u8 } else { b'?' };
    let mut bytes = text.chars().map(printable).peekable();
    while bytes.peek().is_some() {
        let mut card = [b' '; CARD];
        card[..7].copy_from_slice(b"HISTORY");
        card[8..].iter_mut().zip(bytes.by_ref()).for_each(|(to, from)| *to = from);
        out.extend_from_slice(&card);
    }
}

/// Turn the header of a cut into that of an IMAGE extension of this name.
///
/// # Errors
/// If `header` is none.
pub fn as_extension(header: &[u8], name: &str, data: &[u8]) -> Result<Vec<u8>, FitsError> {
    let crate::HeaderParse::Complete { header, .. } = Header::parse(header)? else {
        return Err(FitsError::Missing { keyword: "END".into() });
    };
    let axes = header.get_int("NAXIS")?.unwrap_or(0).clamp(0, 999) as usize;
    let mandatory = (3 + axes).min(header.cards().len());
    let mut cards = vec![Card::string("XTENSION", "IMAGE", "Image extension")];
    cards.extend_from_slice(header.cards().get(1..mandatory).unwrap_or_default());
    cards.push(Card::fixed_format("PCOUNT", "0", ""));
    cards.push(Card::fixed_format("GCOUNT", "1", ""));
    // 68 characters fit between the quotes.
    let text: String = name.chars().filter(|c| matches!(c, ' '..='~')).take(68).collect();
    cards.push(Card::string("EXTNAME", &text, ""));
    let keywords = ["PCOUNT", "GCOUNT", "EXTEND", "BLOCKED", "EXTNAME", "EXTVER", "EXTLEVEL"];
    cards.extend(
        header.cards()[mandatory..]
            .iter()
            .filter(|card| !keywords.iter().any(|keyword| card.is(keyword))),
    );
    let mut bytes = Header::from_cards(cards).to_bytes();
    checksum::update(&mut bytes, 0, data);
    Ok(bytes)
}
