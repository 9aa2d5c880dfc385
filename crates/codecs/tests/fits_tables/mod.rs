//! Just enough FITS to take the tiles out of a compressed image: independent of the crate's own
//! header and table reading, so that codec tests stand alone.

use std::collections::HashMap;

use swathe_array::DType;
use swathe_codecs::tile::{Codec, Dither, Encoding, Quantize, TileCodec, TileInput};

/// One header: keyword to value, quotes and comment taken off.
pub type Cards = HashMap<String, String>;

/// A header and the position of its data.
pub struct Hdu {
    pub cards: Cards,
    pub data: std::ops::Range<usize>,
}

/// All HDUs of a file.
pub fn hdus(file: &[u8]) -> Vec<Hdu> {
    let mut hdus = Vec::new();
    let mut at = 0;
    while at + 2880 <= file.len() {
        let mut cards = Cards::new();
        loop {
            let card = String::from_utf8_lossy(&file[at..at + 80]).into_owned();
            at += 80;
            if card.starts_with("END     ") {
                break;
            }
            if card.as_bytes()[8] == b'=' {
                cards.insert(card[..8].trim().to_owned(), value(&card[10..]));
            }
        }
        at = at.next_multiple_of(2880);
        let elements = (1..=int(&cards, "NAXIS").unwrap_or(0))
            .map(|axis| int(&cards, &format!("NAXIS{axis}")).unwrap() as usize)
            .reduce(|all, axis| all * axis)
            .unwrap_or(0);
        let size = elements * int(&cards, "BITPIX").unwrap().unsigned_abs() as usize / 8
            + int(&cards, "PCOUNT").unwrap_or(0) as usize;
        hdus.push(Hdu { cards, data: at..at + size });
        at += size.next_multiple_of(2880);
    }
    hdus
}

fn value(text: &str) -> String {
    match text.trim_start().strip_prefix('\'') {
        Some(text) => text.split('\'').next().unwrap_or_default().trim_end().to_owned(),
        None => text.split('/').next().unwrap_or_default().trim().to_owned(),
    }
}

/// An integer keyword.
pub fn int(cards: &Cards, name: &str) -> Option<i64> {
    cards.get(name)?.parse().ok()
}

/// A tile and its place in the image.
pub struct Tile<'a> {
    pub input: TileInput<'a>,
    /// First pixel along each axis.
    #[allow(dead_code, reason = "the timing example needs no places")]
    pub start: Vec<usize>,
}

/// A compressed image.
pub struct Image {
    pub codec: TileCodec,
    /// Pixels along each axis, fastest first.
    pub shape: Vec<u64>,
    tile: Vec<u64>,
    shapes: Vec<Vec<u64>>,
}

impl Image {
    /// The image in this HDU, if it is a compressed one.
    pub fn new(hdu: &Hdu) -> Option<Image> {
        let cards = &hdu.cards;
        if cards.get("ZIMAGE")? != "T" {
            return None;
        }
        let parameter = |name: &str| {
            (1..).map_while(|i| Some((cards.get(&format!("ZNAME{i}"))?, i))).find_map(|(key, i)| {
                (key == name).then(|| cards[&format!("ZVAL{i}")].parse::<f64>().unwrap() as i64)
            })
        };
        let codec = match cards["ZCMPTYPE"].as_str() {
            "RICE_1" | "RICE_ONE" => Codec::Rice {
                block: parameter("BLOCKSIZE").unwrap_or(32) as usize,
                bytes_per_pixel: parameter("BYTEPIX").unwrap_or(4) as usize,
            },
            "GZIP_1" => Codec::Gzip1,
            "GZIP_2" => Codec::Gzip2,
            "PLIO_1" => Codec::Plio,
            "HCOMPRESS_1" => Codec::Hcompress { smooth: parameter("SMOOTH").unwrap_or(0) != 0 },
            _ => Codec::None,
        };
        let dither = match cards.get("ZQUANTIZ").map(String::as_str) {
            Some("SUBTRACTIVE_DITHER_1") => Dither::Subtractive1,
            Some("SUBTRACTIVE_DITHER_2") => Dither::Subtractive2,
            _ => Dither::None,
        };
        let seed = int(cards, "ZDITHER0").unwrap_or(1) as u32;
        let quantize = column(cards, "ZSCALE").map(|_| Quantize { dither, seed });
        let dtype = DType::from_bitpix(int(cards, "ZBITPIX")?)?;
        let axes = 1..=int(cards, "ZNAXIS")?;
        let shape: Vec<u64> =
            axes.clone().map(|i| int(cards, &format!("ZNAXIS{i}")).unwrap() as u64).collect();
        let tile: Vec<u64> = axes
            .map(|i| match int(cards, &format!("ZTILE{i}")) {
                Some(size) => size as u64,
                None if i == 1 => shape[0],
                None => 1,
            })
            .collect();
        let mut image =
            Image { codec: TileCodec { codec, dtype, quantize }, shape, tile, shapes: Vec::new() };
        image.shapes = (0..image.tiles()).map(|row| image.place(row).1).collect();
        Some(image)
    }

    fn tiles(&self) -> usize {
        self.shape.iter().zip(&self.tile).map(|(n, t)| n.div_ceil(*t) as usize).product()
    }

    /// Start and shape of a tile.
    fn place(&self, mut row: usize) -> (Vec<usize>, Vec<u64>) {
        let axes = self.shape.iter().zip(&self.tile).map(|(n, t)| {
            let along = n.div_ceil(*t) as usize;
            let start = row % along * *t as usize;
            row /= along;
            (start, (*t).min(n - start as u64))
        });
        axes.unzip()
    }

    /// Every tile, in the order of the table.
    pub fn read<'a>(&'a self, file: &'a [u8], hdu: &Hdu) -> Vec<Tile<'a>> {
        let cards = &hdu.cards;
        let data = &file[hdu.data.clone()];
        let row_bytes = int(cards, "NAXIS1").unwrap() as usize;
        let rows = int(cards, "NAXIS2").unwrap() as usize;
        let heap = int(cards, "THEAP").map_or(row_bytes * rows, |at| at as usize);
        let columns = [
            ("COMPRESSED_DATA", Encoding::Codec),
            ("GZIP_COMPRESSED_DATA", Encoding::Gzip),
            ("UNCOMPRESSED_DATA", Encoding::Uncompressed),
        ];
        let one = |row: usize| {
            let fields = &data[row * row_bytes..][..row_bytes];
            let float = |name: &str| {
                let (at, _) = column(cards, name)?;
                Some(f64::from_be_bytes(fields[at..at + 8].try_into().unwrap()))
            };
            let (bytes, encoding) = columns
                .into_iter()
                .find_map(|(name, encoding)| {
                    let (at, form) = column(cards, name)?;
                    let (count, offset) = descriptor(&fields[at..], &form);
                    let bytes = &data[heap + offset..][..count * item(&form)];
                    (count > 0).then_some((bytes, encoding))
                })
                .unwrap_or((&[], Encoding::Codec));
            let blank = match column(cards, "ZBLANK") {
                Some((at, _)) => {
                    Some(i32::from_be_bytes(fields[at..at + 4].try_into().unwrap()).into())
                }
                None => int(cards, "ZBLANK"),
            };
            let input = TileInput {
                bytes,
                encoding,
                shape: &self.shapes[row],
                tile: row as u64,
                scale: float("ZSCALE").unwrap_or(1.0),
                zero: float("ZZERO").unwrap_or(0.0),
                blank,
            };
            Tile { input, start: self.place(row).0 }
        };
        (0..rows).map(one).collect()
    }
}

/// Count and offset of a variable-length array.
fn descriptor(field: &[u8], form: &str) -> (usize, usize) {
    if form.contains('Q') {
        let word = |at: usize| i64::from_be_bytes(field[at..at + 8].try_into().unwrap()) as usize;
        (word(0), word(8))
    } else {
        let word = |at: usize| i32::from_be_bytes(field[at..at + 4].try_into().unwrap()) as usize;
        (word(0), word(4))
    }
}

/// Bytes of one element of a variable-length array of this TFORM.
fn item(form: &str) -> usize {
    let letter = form.trim_start_matches(|c: char| c.is_ascii_digit()).chars().nth(1);
    match letter {
        Some('I') => 2,
        Some('J' | 'E') => 4,
        Some('K' | 'D') => 8,
        _ => 1,
    }
}

/// Offset within a row, and TFORM, of the column of this name.
fn column(cards: &Cards, name: &str) -> Option<(usize, String)> {
    let mut at = 0;
    for i in 1..=int(cards, "TFIELDS")? {
        let form = cards[&format!("TFORM{i}")].clone();
        if cards.get(&format!("TTYPE{i}")).is_some_and(|value| value == name) {
            return Some((at, form));
        }
        let letters = form.trim_start_matches(|c: char| c.is_ascii_digit());
        let repeat: usize = form[..form.len() - letters.len()].parse().unwrap_or(1);
        at += repeat
            * match letters.chars().next() {
                Some('Q') => 16,
                Some('P' | 'K' | 'D') => 8,
                Some('J' | 'E') => 4,
                Some('I') => 2,
                _ => 1,
            };
    }
    None
}
