//! Images stored as tables of compressed tiles (FITS Standard 4.0, section 10.1).

use crate::card::{Card, Value};
use crate::error::FitsError;
use crate::header::Header;
use crate::image::{Image, axes, dtype, require};
use crate::tile_table::{Descriptor, ParameterSource, TileTable};
use std::sync::Arc;
use swathe_codecs::tile::{Codec, Dither, Encoding, Quantize, TileCodec};
use swathe_layout::{ChunkGrid, Layout, Storage};

/// A column of the table.
struct Column {
    name: String,
    at: usize,
    form: u8,
    array_form: u8,
}

/// The image in a compressed table with data at `data_start`.
pub(crate) fn image(header: &Header, data_start: u64, data_len: u64) -> Result<Image, FitsError> {
    let shape = axes(header, "ZNAXIS")?;
    if shape.is_empty() || shape.contains(&0) {
        return Err(FitsError::NotAnImage { found: "a compressed image without pixels".into() });
    }
    let dtype = dtype(header, "ZBITPIX")?;
    let tile_shape = tile_shape(header, &shape)?;
    let table = axes(header, "NAXIS")?;
    let &[row_bytes, rows] = &table[..] else {
        return Err(FitsError::Value {
            keyword: "NAXIS".into(),
            expected: "2 axes of a table",
            found: table.len().to_string(),
        });
    };
    let grid = ChunkGrid { shape: shape.clone(), chunk_shape: tile_shape, is_padded: false };
    if grid.count() != Some(rows) {
        return Err(FitsError::Value {
            keyword: "NAXIS2".into(),
            expected: "one row per tile",
            found: format!(
                "{rows} rows for tiles of {:?} in an image of {shape:?}",
                grid.chunk_shape
            ),
        });
    }
    let columns = columns(header, row_bytes)?;
    let find = |name: &str| columns.iter().find(|column| column.name.eq_ignore_ascii_case(name));
    let number = |name: &str, keyword: &str| -> Result<ParameterSource, FitsError> {
        Ok(match (find(name), header.get_float(keyword)?) {
            (Some(column), _) => ParameterSource::Column { at: column.at, form: column.form },
            (None, Some(value)) => ParameterSource::Constant(value),
            (None, None) => ParameterSource::Absent,
        })
    };
    let (scale, zero) = (number("ZSCALE", "ZSCALE")?, number("ZZERO", "ZZERO")?);
    let mut blank = number("ZBLANK", "ZBLANK")?;
    let is_quantised = dtype.is_float() && !matches!(scale, ParameterSource::Absent);
    if !is_quantised {
        blank = ParameterSource::Absent;
    }
    let data = [
        ("COMPRESSED_DATA", Encoding::Codec),
        ("GZIP_COMPRESSED_DATA", Encoding::Gzip),
        ("UNCOMPRESSED_DATA", Encoding::Uncompressed),
    ];
    let data: Vec<_> = data
        .iter()
        .filter_map(|&(name, encoding)| Some((encoding, descriptor(find(name)?)?)))
        .collect();
    if data.is_empty() {
        return Err(FitsError::Missing { keyword: "TTYPEn = 'COMPRESSED_DATA'".into() });
    }
    let heap_at = heap_offset(header, row_bytes.saturating_mul(rows))?;
    let table = TileTable {
        codec: tile_codec(header, dtype, is_quantised)?,
        grid,
        rows,
        row_bytes,
        table_start: data_start,
        heap_start: data_start + heap_at.min(data_len),
        heap_len: data_len.saturating_sub(heap_at),
        columns: data,
        scale,
        zero,
        blank,
    };
    let (header, primary) = image_header(header);
    let storage = Storage::Chunked(Arc::new(table));
    let layout = Layout { element_bytes: dtype.size(), shape, storage };
    Ok(Image { dtype, layout, header, primary })
}

/// The offset of the heap in the data, behind the rows of the table.
fn heap_offset(header: &Header, table_bytes: u64) -> Result<u64, FitsError> {
    let Some(at) = header.get_int("THEAP")? else { return Ok(table_bytes) };
    u64::try_from(at).ok().filter(|&at| at >= table_bytes).ok_or_else(|| FitsError::Value {
        keyword: "THEAP".into(),
        expected: "an offset behind the table",
        found: at.to_string(),
    })
}

fn tile_shape(header: &Header, shape: &[u64]) -> Result<Vec<u64>, FitsError> {
    (1..=shape.len())
        .map(|axis| {
            let keyword = format!("ZTILE{axis}");
            // By default a tile is a row.
            let default = if axis == 1 { shape[0] as i64 } else { 1 };
            let length = header.get_int(&keyword)?.unwrap_or(default);
            u64::try_from(length).ok().filter(|&length| length > 0).ok_or(FitsError::Value {
                keyword,
                expected: "a length from 1",
                found: length.to_string(),
            })
        })
        .collect()
}

fn tile_codec(
    header: &Header,
    dtype: swathe_array::DType,
    is_quantised: bool,
) -> Result<TileCodec, FitsError> {
    let name = header
        .get_str("ZCMPTYPE")?
        .ok_or_else(|| FitsError::Missing { keyword: "ZCMPTYPE".into() })?;
    let parameter = |keyword: &str, default: i64| -> Result<i64, FitsError> {
        for number in 1..=99 {
            let Some(name) = header.get_str(&format!("ZNAME{number}"))? else { break };
            if name.trim().eq_ignore_ascii_case(keyword) {
                let value = header.get_float(&format!("ZVAL{number}"))?;
                return Ok(value.map_or(default, |value| value as i64));
            }
        }
        Ok(default)
    };
    let codec = match name.trim() {
        "RICE_1" | "RICE_ONE" => {
            let value = |name: &str, default: i64| -> Result<usize, FitsError> {
                let value = parameter(name, default)?;
                usize::try_from(value).ok().filter(|&value| value > 0).ok_or(FitsError::Value {
                    keyword: name.into(),
                    expected: "a number from 1",
                    found: value.to_string(),
                })
            };
            Codec::Rice { block: value("BLOCKSIZE", 32)?, bytes_per_pixel: value("BYTEPIX", 4)? }
        }
        "GZIP_1" => Codec::Gzip1,
        "GZIP_2" => Codec::Gzip2,
        "PLIO_1" => Codec::Plio,
        "HCOMPRESS_1" => Codec::Hcompress { smooth: parameter("SMOOTH", 0)? != 0 },
        "NOCOMPRESS" => Codec::None,
        _ => {
            return Err(FitsError::Value {
                keyword: "ZCMPTYPE".into(),
                expected: "RICE_1, GZIP_1, GZIP_2, PLIO_1, HCOMPRESS_1 or NOCOMPRESS",
                found: name,
            });
        }
    };
    let quantize = if is_quantised { Some(quantize(header)?) } else { None };
    Ok(TileCodec { codec, dtype, quantize })
}

fn quantize(header: &Header) -> Result<Quantize, FitsError> {
    let method = header.get_str("ZQUANTIZ")?.unwrap_or_else(|| "NO_DITHER".into());
    let dither = match method.trim() {
        "NO_DITHER" | "NONE" | "" => Dither::None,
        "SUBTRACTIVE_DITHER_1" => Dither::Subtractive1,
        "SUBTRACTIVE_DITHER_2" => Dither::Subtractive2,
        _ => {
            return Err(FitsError::Value {
                keyword: "ZQUANTIZ".into(),
                expected: "NO_DITHER, SUBTRACTIVE_DITHER_1 or SUBTRACTIVE_DITHER_2",
                found: method,
            });
        }
    };
    let seed = header.get_int("ZDITHER0")?.unwrap_or(1);
    let seed =
        u32::try_from(seed).ok().filter(|seed| (1..=10_000).contains(seed)).ok_or_else(|| {
            FitsError::Value {
                keyword: "ZDITHER0".into(),
                expected: "1 to 10000",
                found: seed.to_string(),
            }
        })?;
    Ok(Quantize { dither, seed })
}

fn columns(header: &Header, row_bytes: u64) -> Result<Vec<Column>, FitsError> {
    let fields = require(header, "TFIELDS")?;
    if !(0..=999).contains(&fields) {
        return Err(FitsError::Value {
            keyword: "TFIELDS".into(),
            expected: "0 to 999",
            found: fields.to_string(),
        });
    }
    let mut columns = Vec::new();
    let mut at = 0u64;
    for field in 1..=fields {
        let keyword = format!("TFORM{field}");
        let text = header
            .get_str(&keyword)?
            .ok_or_else(|| FitsError::Missing { keyword: keyword.clone() })?;
        let (width, form, array_form) = column_form(&text).ok_or_else(|| FitsError::Value {
            keyword: keyword.clone(),
            expected: "a binary table format",
            found: text.clone(),
        })?;
        let name = header.get_str(&format!("TTYPE{field}"))?.unwrap_or_default();
        let end = at.checked_add(width).filter(|&end| end <= row_bytes);
        let Some(end) = end else {
            return Err(FitsError::Value {
                keyword,
                expected: "columns that fit in NAXIS1 bytes",
                found: text,
            });
        };
        columns.push(Column { name: name.trim().to_string(), at: at as usize, form, array_form });
        at = end;
    }
    Ok(columns)
}

/// Bytes, type and element type of a column such as `1PB(2048)` or `D`.
fn column_form(text: &str) -> Option<(u64, u8, u8)> {
    let text = text.trim().as_bytes();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let repeat: u64 = match digits {
        0 => 1,
        _ => std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?,
    };
    let form = *text.get(digits)?;
    let each = match form {
        b'L' | b'B' | b'A' => 1,
        b'X' => return Some((repeat.div_ceil(8), form, 0)),
        b'I' => 2,
        b'J' | b'E' => 4,
        b'K' | b'D' | b'C' | b'P' => 8,
        b'M' | b'Q' => 16,
        _ => return None,
    };
    let array_form = text.get(digits + 1).copied().unwrap_or(b'B');
    Some((repeat.checked_mul(each)?, form, array_form))
}

fn descriptor(column: &Column) -> Option<Descriptor> {
    let wide = match column.form {
        b'P' => false,
        b'Q' => true,
        _ => return None,
    };
    let element_bytes = match column.array_form {
        b'I' => 2,
        b'J' | b'E' => 4,
        b'K' | b'D' => 8,
        _ => 1,
    };
    Some(Descriptor { at: column.at, wide, element_bytes })
}

/// The header of the image as it was before compression, and whether it was the primary HDU.
/// Cards of the table and of the compression go; those that stand for an image's take its place.
fn image_header(table: &Header) -> (Header, bool) {
    let primary = table.has("ZSIMPLE");
    let mut cards = Vec::with_capacity(table.cards().len());
    let stood_for = |card: &Card, keyword: &str| {
        let mut image = *card;
        image.0[..8].copy_from_slice(Card::from_text(keyword).0[..8].as_ref());
        image
    };
    match (table.card("ZSIMPLE"), table.card("ZTENSION")) {
        (Some(card), _) => cards.push(stood_for(card, "SIMPLE")),
        (None, Some(card)) => cards.push(stood_for(card, "XTENSION")),
        (None, None) => cards.push(Card::string("XTENSION", "IMAGE", "Image extension")),
    }
    let mandatory = |from: &str, to: &str, cards: &mut Vec<Card>| {
        if let Some(card) = table.card(from) {
            cards.push(stood_for(card, to));
        }
    };
    mandatory("ZBITPIX", "BITPIX", &mut cards);
    mandatory("ZNAXIS", "NAXIS", &mut cards);
    for axis in 1..=table.get_int("ZNAXIS").ok().flatten().unwrap_or(0).clamp(0, 999) {
        mandatory(&format!("ZNAXIS{axis}"), &format!("NAXIS{axis}"), &mut cards);
    }
    if !primary {
        cards.push(table.card("ZPCOUNT").map_or_else(
            || Card::fixed_format("PCOUNT", "0", ""),
            |card| stood_for(card, "PCOUNT"),
        ));
        cards.push(table.card("ZGCOUNT").map_or_else(
            || Card::fixed_format("GCOUNT", "1", ""),
            |card| stood_for(card, "GCOUNT"),
        ));
    }
    let (has_checksum, has_datasum) = (table.has("ZHECKSUM"), table.has("ZDATASUM"));
    for card in table.cards() {
        match String::from_utf8_lossy(card.keyword()).as_ref() {
            "ZEXTEND" if primary => cards.push(stood_for(card, "EXTEND")),
            "ZBLOCKED" if primary => cards.push(stood_for(card, "BLOCKED")),
            "ZHECKSUM" => cards.push(stood_for(card, "CHECKSUM")),
            "ZDATASUM" => cards.push(stood_for(card, "DATASUM")),
            "CHECKSUM" if !has_checksum => cards.push(*card),
            "DATASUM" if !has_datasum => cards.push(*card),
            "EXTNAME" if is_default_name(card) => {}
            keyword if is_of_table(keyword) => {}
            _ => cards.push(*card),
        }
    }
    cards.extend(missing_blank(table));
    (Header::from_cards(cards), primary)
}

/// Whether a card names the table as compressors do by default.
pub(crate) fn is_default_name(card: &Card) -> bool {
    matches!(card.value(), Some(Value::Str(name)) if name.trim_end() == "COMPRESSED_IMAGE")
}

/// The BLANK of integers with only ZBLANK in the header; as astropy, the least number if that is
/// a column.
fn missing_blank(table: &Header) -> Option<Card> {
    let bits = table.get_int("ZBITPIX").ok().flatten().filter(|bits| (8..=64).contains(bits))?;
    if table.has("BLANK") {
        return None;
    }
    let zblank = table.get_int("ZBLANK").ok().flatten();
    let in_column = || {
        let is_blank = |card: &Card| {
            card.keyword().starts_with(b"TTYPE")
                && matches!(card.value(), Some(Value::Str(name)) if name.trim_end() == "ZBLANK")
        };
        table.cards().iter().any(is_blank).then_some(-1i64 << (bits - 1))
    };
    let blank = zblank.or_else(in_column)?;
    Some(Card::fixed_format("BLANK", &blank.to_string(), "pixels without a value"))
}

/// Whether a keyword belongs to the table or to the compression, not to the image.
fn is_of_table(keyword: &str) -> bool {
    const KEYWORDS: [&str; 27] = [
        "XTENSION", "SIMPLE", "BITPIX", "NAXIS", "PCOUNT", "GCOUNT", "TFIELDS", "THEAP", "ZIMAGE",
        "ZSIMPLE", "ZTENSION", "ZEXTEND", "ZBLOCKED", "ZPCOUNT", "ZGCOUNT", "ZBITPIX", "ZNAXIS",
        "ZCMPTYPE", "ZMASKCMP", "ZQUANTIZ", "ZDITHER0", "ZSCALE", "ZZERO", "ZBLANK", "CHECKSUM",
        "DATASUM", "FZALGOR",
    ];
    const INDEXED_KEYWORDS: [&str; 15] = [
        "NAXIS", "TTYPE", "TFORM", "TUNIT", "TDISP", "TNULL", "TDIM", "TSCAL", "TZERO", "ZNAXIS",
        "ZTILE", "ZNAME", "ZVAL", "ZCTYP", "ZFORM",
    ];
    let has_index = |prefix: &str| {
        keyword.strip_prefix(prefix).is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    KEYWORDS.contains(&keyword) || INDEXED_KEYWORDS.iter().any(|prefix| has_index(prefix))
}
