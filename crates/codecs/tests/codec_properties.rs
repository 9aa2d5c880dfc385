//! Tiles coded by small encoders of their own, from the standard's description, decode to the
//! original pixels; any bytes at all decode to pixels or an error.

use proptest::prelude::*;
use swathe_array::DType;
use swathe_codecs::tile::{
    Codec, CodecError, Dither, Encoding, Quantize, Scratch, TileCodec, TileInput,
};

const TYPES: [DType; 6] = [DType::U8, DType::I16, DType::I32, DType::I64, DType::F32, DType::F64];

fn decode(
    codec: Codec,
    dtype: DType,
    bytes: &[u8],
    pixels: usize,
    need: usize,
) -> Result<Vec<u8>, CodecError> {
    let codec = TileCodec { codec, dtype, quantize: None };
    let mut out = Vec::new();
    codec.decode(&input(bytes, &[pixels as u64]), need, &mut Scratch::default(), &mut out)?;
    out.truncate(need * dtype.size());
    Ok(out)
}

fn input<'a>(bytes: &'a [u8], shape: &'a [u64]) -> TileInput<'a> {
    let encoding = Encoding::Codec;
    TileInput { bytes, encoding, shape, tile: 0, scale: 0.5, zero: 3.0, blank: Some(-7) }
}

/// Bits, most significant first.
#[derive(Default)]
struct Writer {
    bits: Vec<bool>,
}

impl Writer {
    fn put(&mut self, value: u64, count: u32) {
        self.bits.extend((0..count).rev().map(|bit| value >> bit & 1 == 1));
    }

    fn bytes(&self) -> Vec<u8> {
        let byte = |bits: &[bool]| {
            bits.iter().enumerate().fold(0, |byte, (at, bit)| byte | u8::from(*bit) << (7 - at))
        };
        self.bits.chunks(8).map(byte).collect()
    }
}

/// RICE_1 with the set split level for each block, raised if its unary part would be long.
fn rice(pixels: &[i32], width: u32, block: usize, levels: &[u32]) -> Vec<u8> {
    let (bits, level_bits, plain) = match width {
        1 => (8, 3, 6),
        2 => (16, 4, 14),
        _ => (32, 5, 25),
    };
    let mask = if bits == 32 { u32::MAX } else { (1 << bits) - 1 };
    let mut writer = Writer::default();
    let mut last = pixels[0] as u32 & mask;
    writer.put(last.into(), bits);
    for (pixels, level) in pixels.chunks(block).zip(levels.iter().cycle()) {
        let codes: Vec<u32> = pixels
            .iter()
            .map(|pixel| {
                let difference = (*pixel as u32).wrapping_sub(last) << (32 - bits);
                last = *pixel as u32;
                let value = difference as i32 >> (32 - bits);
                ((value << 1) ^ (value >> 31)) as u32 & mask
            })
            .collect();
        let most = codes.iter().copied().max().unwrap_or(0);
        if most == 0 {
            writer.put(0, level_bits);
            continue;
        }
        let level = (level % (plain + 1)..).find(|level| *level >= plain || most >> level < 3000);
        let level = level.unwrap().min(plain);
        writer.put(u64::from(level) + 1, level_bits);
        for value in codes {
            if level == plain {
                writer.put(value.into(), bits);
            } else {
                (0..value >> level).for_each(|_| writer.put(0, 1));
                writer.put(1, 1);
                writer.put(u64::from(value) & ((1 << level) - 1), level);
            }
        }
    }
    writer.bytes()
}

/// Smooth pixels with steps, of the range a width holds.
fn pixels(width: u32) -> impl Strategy<Value = Vec<i32>> {
    let bits = 8 * width;
    let step = prop_oneof![8 => -3i64..4, 4 => -300i64..300, 1 => any::<i32>().prop_map(i64::from)];
    let narrow = move |value: i64| match bits {
        8 => i32::from(value as u8),
        16 => i32::from(value as i16),
        _ => value as i32,
    };
    prop::collection::vec(step, 1..300).prop_map(move |steps| {
        let add = |value: &mut i64, step| {
            *value = value.wrapping_add(step);
            Some(narrow(*value))
        };
        steps.into_iter().scan(0i64, add).collect()
    })
}

/// Pixels in the bytes of an uncompressed image.
fn big_endian(pixels: &[i32], dtype: DType) -> Vec<u8> {
    let bytes = |value: &i32| i64::from(*value).to_be_bytes()[8 - dtype.size()..].to_vec();
    pixels.iter().flat_map(bytes).collect()
}

/// PLIO_1 of non-negative pixels, with the later form of its header.
fn plio(pixels: &[i32], early: bool) -> Vec<u8> {
    let mut words: Vec<u16> = if early { vec![0; 3] } else { vec![0, 7, 0, 0, 0, 0, 0] };
    let (mut high, mut zeros) = (1, 0);
    for run in pixels.chunk_by(|a, b| a == b) {
        let (value, mut rest) = (run[0], run.len());
        if value == 0 {
            zeros = rest;
            continue;
        }
        let change = value - high;
        high = value;
        if change != 0 && zeros == 0 && rest == 1 && change.abs() < 4096 {
            let code = if change > 0 { 6 } else { 7 };
            words.push(code << 12 | change.unsigned_abs() as u16);
            continue;
        }
        match change {
            0 => {}
            1..4096 => words.push(2 << 12 | change as u16),
            -4095..0 => words.push(3 << 12 | -change as u16),
            _ => words.extend([1 << 12 | (value & 4095) as u16, (value >> 12) as u16]),
        }
        while zeros >= 4095 {
            words.push(4095);
            zeros -= 4095;
        }
        if rest == 1 && zeros > 0 {
            words.push(5 << 12 | (zeros + 1) as u16);
        } else {
            words.extend((zeros > 0).then_some(zeros as u16));
            while rest > 0 {
                let part = rest.min(4095);
                words.push(4 << 12 | part as u16);
                rest -= part;
            }
        }
        zeros = 0;
    }
    let length = words.len();
    if early {
        words[2] = length as u16;
    } else {
        (words[3], words[4]) = ((length % 32768) as u16, (length / 32768) as u16);
    }
    words.into_iter().flat_map(u16::to_be_bytes).collect()
}

fn codecs() -> impl Strategy<Value = Codec> {
    let rice = (0usize..70, 0usize..9)
        .prop_map(|(block, bytes_per_pixel)| Codec::Rice { block, bytes_per_pixel });
    let widths = prop::sample::select(vec![1, 2, 4])
        .prop_map(|bytes_per_pixel| Codec::Rice { block: 32, bytes_per_pixel });
    let smooth = any::<bool>().prop_map(|smooth| Codec::Hcompress { smooth });
    let others = prop::sample::select(vec![Codec::Gzip1, Codec::Gzip2, Codec::Plio, Codec::None]);
    prop_oneof![rice, widths, smooth, others]
}

/// Any bytes, or ones that begin as an HCOMPRESS_1 or PLIO_1 tile of `rows` rows of 16 does.
fn any_bytes(rows: u8) -> impl Strategy<Value = Vec<u8>> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..600);
    let hcompress = (bytes(), any::<[u8; 8]>(), 0u8..70).prop_map(move |(rest, sum, planes)| {
        let mut all = vec![0xdd, 0x99, 0, 0, 0, rows, 0, 0, 0, 16, 0, 0, 0, planes];
        all.extend(sum);
        all.extend([planes, planes / 2, 3, 0xff]);
        all.extend(rest);
        all
    });
    let plio = bytes().prop_map(|rest| {
        let mut all = vec![0, 0, 0, 0, 0, 0];
        all[5] = (3 + rest.len() / 2).min(255) as u8;
        all.extend(rest);
        all
    });
    prop_oneof![bytes(), hcompress, plio]
}

proptest! {
    #[test]
    fn rice_decodes_what_was_coded(
        (width, pixels) in prop::sample::select(vec![1u32, 2, 4])
            .prop_flat_map(|width| (Just(width), pixels(width))),
        block in 1usize..50,
        levels in prop::collection::vec(0u32..26, 1..6),
        part in 0.0f64..1.0,
    ) {
        let bytes = rice(&pixels, width, block, &levels);
        let codec = Codec::Rice { block, bytes_per_pixel: width as usize };
        for dtype in [DType::U8, DType::I16, DType::I32, DType::I64] {
            let want = big_endian(&pixels, dtype);
            let need = (pixels.len() as f64 * part) as usize;
            for need in [pixels.len(), need] {
                let output = decode(codec, dtype, &bytes, pixels.len(), need).unwrap();
                prop_assert_eq!(&output, &want[..need * dtype.size()]);
            }
        }
        let cut = decode(codec, DType::I32, &bytes[..bytes.len() - 1], pixels.len(), pixels.len());
        prop_assert!(matches!(cut, Err(CodecError::Short { .. })), "{cut:?}");
    }

    #[test]
    fn plio_decodes_what_was_coded(
        runs in prop::collection::vec(
            (prop_oneof![Just(0), 1..9i32, 0..1 << 24], prop_oneof![1..4usize, 1..9000usize]),
            1..12,
        ),
        early: bool,
    ) {
        let runs = runs.into_iter().flat_map(|(value, count)| std::iter::repeat_n(value, count));
        let pixels: Vec<i32> = runs.collect();
        let bytes = plio(&pixels, early);
        for dtype in [DType::U8, DType::I16, DType::I32] {
            let want = big_endian(&pixels, dtype);
            for need in [pixels.len(), pixels.len() / 3] {
                let output = decode(Codec::Plio, dtype, &bytes, pixels.len(), need).unwrap();
                prop_assert!(output == want[..need * dtype.size()]);
            }
        }
    }

    #[test]
    fn any_bytes_give_pixels_or_an_error(
        codec in codecs(),
        dtype in prop::sample::select(TYPES.to_vec()),
        dither in prop::sample::select(vec![
            None, Some(Dither::None), Some(Dither::Subtractive1), Some(Dither::Subtractive2),
        ]),
        seed: u32,
        encoding in prop::sample::select(vec![
            Encoding::Codec, Encoding::Codec, Encoding::Gzip, Encoding::Uncompressed,
        ]),
        tile: u64,
        (rows, bytes) in (0u8..40).prop_flat_map(|rows| (Just(rows), any_bytes(rows))),
        part in 0.0f64..1.01,
    ) {
        let quantize = dither.map(|dither| Quantize { dither, seed });
        let codec = TileCodec { codec, dtype, quantize };
        let shape = [16, u64::from(rows)];
        let input = TileInput { encoding, tile, ..input(&bytes, &shape) };
        let need = (f64::from(rows) * 16.0 * part) as usize;
        let mut out = Vec::new();
        if codec.decode(&input, need, &mut Scratch::default(), &mut out).is_ok() {
            prop_assert!(out.len() >= need * dtype.size());
        }
    }
}

/// Quantised floats from NOCOMPRESS integers: the formula, in the order of the standard.
#[test]
fn special_integers_are_blank_and_exact_zero() {
    let integers = [5i32, -7, -2_147_483_646, -2_147_483_647];
    let bytes: Vec<u8> = integers.iter().flat_map(|value| value.to_be_bytes()).collect();
    let values = |dither| {
        let quantize = Some(Quantize { dither, seed: 1 });
        let codec = TileCodec { codec: Codec::None, dtype: DType::F64, quantize };
        let mut out = Vec::new();
        codec.decode(&input(&bytes, &[4]), 4, &mut Scratch::default(), &mut out).unwrap();
        out.as_chunks().0.iter().map(|value| f64::from_be_bytes(*value)).collect::<Vec<f64>>()
    };
    let plain = values(Dither::None);
    assert_eq!((plain[0], plain[2]), (5.5, -2_147_483_646.0 * 0.5 + 3.0));
    assert!(plain[1].is_nan());
    for dither in [Dither::Subtractive1, Dither::Subtractive2] {
        let output = values(dither);
        assert!((output[0] - 5.5).abs() <= 0.25 && output[0] != 5.5);
        assert!(output[1].is_nan());
        assert_eq!(output[2] == 0.0, dither == Dither::Subtractive2);
        assert!(output[3] < -1e9);
    }
}

#[test]
fn floats_that_were_not_quantised_are_raw_in_the_other_columns() {
    let bytes: Vec<u8> = [1.5f32, -0.0, f32::NAN].iter().flat_map(|v| v.to_be_bytes()).collect();
    let quantize = Some(Quantize { dither: Dither::Subtractive1, seed: 1 });
    let codec = Codec::Rice { block: 32, bytes_per_pixel: 4 };
    let codec = TileCodec { codec, dtype: DType::F32, quantize };
    let mut gzip_bytes = vec![0; 200];
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
    let size = compressor.gzip_compress(&bytes, &mut gzip_bytes).unwrap();
    let (mut scratch, mut out) = (Scratch::default(), Vec::new());
    for (encoding, tile) in
        [(Encoding::Uncompressed, &bytes[..]), (Encoding::Gzip, &gzip_bytes[..size])]
    {
        let input = TileInput { encoding, ..input(tile, &[3]) };
        codec.decode(&input, 3, &mut scratch, &mut out).unwrap();
        assert_eq!(out, bytes);
    }
}
