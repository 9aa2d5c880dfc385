//! Whole compressed images, decoded tile by tile, against plain copies and golden sums.

mod fits_tables;

use std::path::PathBuf;

use swathe_codecs::tile::{CodecError, Scratch, TileInput};

/// The real test files, or nothing if they are not installed.
fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("SWATHE_TEST_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    if folder.join("compressed").is_dir() {
        return Some(folder.join("compressed"));
    }
    println!("skipped: no test data in {}", folder.display());
    None
}

/// Pixels of a compressed image as an uncompressed one stores them.
fn pixels(file: &[u8], hdu: &fits_tables::Hdu) -> Vec<u8> {
    let image = fits_tables::Image::new(hdu).unwrap();
    let size = image.codec.dtype.size();
    let shape: Vec<usize> = image.shape.iter().map(|axis| *axis as usize).collect();
    let mut all = vec![0; shape.iter().product::<usize>() * size];
    let (mut scratch, mut out) = (Scratch::default(), Vec::new());
    for tile in image.read(file, hdu) {
        let row = tile.input.shape[0] as usize;
        let need = tile.input.shape.iter().product::<u64>() as usize;
        image.codec.decode(&tile.input, need, &mut scratch, &mut out).unwrap();
        for (line, bytes) in out[..need * size].chunks_exact(row * size).enumerate() {
            let (mut rest, mut at, mut step) = (line, tile.start[0], shape[0]);
            let axes = shape.iter().zip(tile.input.shape).zip(&tile.start);
            for ((whole, along), start) in axes.skip(1) {
                let along = *along as usize;
                at += (start + rest % along) * step;
                rest /= along;
                step *= whole;
            }
            all[at * size..][..bytes.len()].copy_from_slice(bytes);
        }
    }
    all
}

/// Pixels of the compressed image in this file.
fn decode_image(file: &[u8]) -> Vec<u8> {
    let hdus = fits_tables::hdus(file);
    let hdu = hdus.iter().find(|hdu| fits_tables::Image::new(hdu).is_some()).unwrap();
    pixels(file, hdu)
}

#[test]
fn lossless_copies_equal_the_plain_image() {
    let Some(data) = data() else { return };
    let read = |name: &str| std::fs::read(data.join(name)).unwrap();
    for (plain, copies) in [
        ("m13.fits", &["m13_rice.fits", "m13_gzip.fits", "m13_hcomp.fits", "m13_plio.fits"][..]),
        ("ngc1316_plain_checksum.fits", &["ngc1316_rice_comp.fits"]),
    ] {
        let plain = read(plain);
        let range = fits_tables::hdus(&plain)[0].data.clone();
        for copy in copies {
            assert!(decode_image(&read(copy)) == plain[range.clone()], "{copy}");
        }
    }
}

/// CRC-32 of the pixels of astropy 8.0.2 and cfitsio 4.2 for the images that have no plain
/// copy; NaN as 7fc00000 or 7ff8000000000000.
#[test]
fn quantised_and_other_images_equal_astropy_and_cfitsio() {
    let Some(data) = data() else { return };
    for (name, sums) in ASTROPY {
        let file = std::fs::read(data.join(name)).unwrap();
        let hdus = fits_tables::hdus(&file);
        let checksums: Vec<u32> = hdus
            .iter()
            .filter(|hdu| fits_tables::Image::new(hdu).is_some())
            .map(|hdu| crc32fast::hash(&pixels(&file, hdu)))
            .collect();
        assert_eq!(checksums, sums, "{name}");
    }
}

const ASTROPY: [(&str, &[u32]); 6] = [
    ("compressed_float_bzero.fits", &[0xde45376f]),
    ("compressed_with_nan.fits", &[0x9fd9e9db]),
    ("decam_ksb_staticmask_ood_v1.fits.fz", &[0x89b0472e, 0x15e98904, 0x442efe1c, 0xf0a3cb30]),
    ("m13real_rice.fits", &[0x93dee62f]),
    ("test_gzip_compressed_image.fits.fz", &[0x688fa2e3]),
    ("test_rice_dither2_seed42.fits.fz", &[0x3145e31d]),
];

/// Generated with every codec, pixel type, quantisation and tiling (golden/make.py).
#[test]
fn golden_images_equal_what_astropy_and_cfitsio_read() {
    let sums = include_str!("golden/sums.txt");
    let file = golden_images();
    let hdus = fits_tables::hdus(&file);
    let images = hdus.iter().filter(|hdu| fits_tables::Image::new(hdu).is_some());
    let mut count = 0;
    for (hdu, line) in images.zip(sums.lines()) {
        let (sum, name) = line.split_once(' ').unwrap();
        let pixels = pixels(&file, hdu);
        assert_eq!(format!("{:08x}", crc32fast::hash(&pixels)), sum, "{name}");
        count += 1;
    }
    assert_eq!(count, sums.lines().count());
}

/// images.fits, which is stored compressed: most of it is header blocks.
fn golden_images() -> Vec<u8> {
    let gzip_bytes = include_bytes!("golden/images.fits.gz");
    let size = u32::from_le_bytes(*gzip_bytes.last_chunk().unwrap());
    let mut file = vec![0; size as usize];
    libdeflater::Decompressor::new().gzip_decompress(gzip_bytes, &mut file).unwrap();
    file
}

/// Every tile of the golden images.
fn each_tile(mut check: impl FnMut(&fits_tables::Image, &TileInput<'_>)) {
    let file = golden_images();
    for hdu in fits_tables::hdus(&file) {
        let Some(image) = fits_tables::Image::new(&hdu) else { continue };
        for tile in image.read(&file, &hdu) {
            check(&image, &tile.input);
        }
    }
}

#[test]
fn leading_pixels_equal_those_of_the_whole_tile() {
    let mut scratch = Scratch::default();
    each_tile(|image, input| {
        let (mut all, mut some) = (Vec::new(), Vec::new());
        let pixels = input.shape.iter().product::<u64>() as usize;
        let size = image.codec.dtype.size();
        image.codec.decode(input, pixels, &mut scratch, &mut all).unwrap();
        for need in [0, 1, pixels / 3, pixels / 2 + 1, pixels - 1] {
            image.codec.decode(input, need, &mut scratch, &mut some).unwrap();
            assert!(some.len() >= need * size);
            assert!(some[..need * size] == all[..need * size], "{:?} {need}", image.codec);
        }
    });
}

#[test]
fn shortened_and_flipped_tiles_never_panic() {
    let mut scratch = Scratch::default();
    let mut out = Vec::new();
    let mut random = 1u32;
    each_tile(|image, input| {
        let pixels = input.shape.iter().product::<u64>() as usize;
        let mut try_bytes = |bytes: &[u8]| {
            let input = TileInput { bytes, ..*input };
            image.codec.decode(&input, pixels, &mut scratch, &mut out)
        };
        for length in (0..input.bytes.len()).step_by(1 + input.bytes.len() / 20) {
            let _ = try_bytes(&input.bytes[..length]);
        }
        let mut bytes = input.bytes.to_vec();
        for _ in 0..40 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let bit = random as usize >> 8;
            bytes[bit / 8 % input.bytes.len()] ^= 1 << (bit % 8);
            let _ = try_bytes(&bytes);
        }
    });
}

#[test]
fn more_pixels_than_a_tile_may_have_are_refused() {
    each_tile(|image, input| {
        let mut out = Vec::new();
        let shape = [1 << 20, 1 << 20];
        let input = TileInput { shape: &shape, ..*input };
        let result = image.codec.decode(&input, 10, &mut Scratch::default(), &mut out);
        assert!(matches!(result, Err(CodecError::Pixels { .. })));
        assert_eq!(out.capacity(), 0);
    });
}
