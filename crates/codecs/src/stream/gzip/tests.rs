use super::*;
use crate::stream::testing::run;
use libdeflater::{CompressionLvl, Compressor};
use proptest::prelude::*;

/// Sky-like data: noise in the low bytes, a constant in the high ones, some of it repeated.
fn image(bytes: usize, seed: u32) -> Vec<u8> {
    let mut random = seed | 1;
    let mut data = Vec::with_capacity(bytes + 2);
    while data.len() < bytes {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if random >> 28 == 0 && data.len() > 40_000 {
            let back = 1 + (random >> 8) as usize % 32_768;
            let length = (random as usize % 300).min(back);
            let from = data.len() - back;
            data.extend_from_within(from..from + length);
        }
        data.extend([4, 60 + (random >> 26) as u8]);
    }
    data.truncate(bytes);
    data
}

fn member(data: &[u8], level: i32) -> Vec<u8> {
    let mut compressor = Compressor::new(CompressionLvl::new(level).unwrap());
    let mut stream = vec![0; compressor.gzip_compress_bound(data.len())];
    let length = compressor.gzip_compress(data, &mut stream).unwrap();
    stream.truncate(length);
    stream
}

/// The data, and the seek points passed.
fn decode(
    decoder: &mut Gzip,
    input: &[u8],
    piece: usize,
    room: usize,
) -> Result<(Vec<u8>, Vec<SeekPoint>), StreamError> {
    let data = run(decoder, input, piece, room)?;
    Ok((data, decoder.take_points()))
}

fn decode_whole(input: &[u8]) -> Result<(Vec<u8>, Vec<SeekPoint>), StreamError> {
    decode(&mut Gzip::start(true), input, 128 << 10, 256 << 10)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_pieces_give_the_data(
        bytes in prop_oneof![0usize..300, 0usize..400_000],
        seed in any::<u32>(),
        level in 0i32..=12,
        piece in prop_oneof![1usize..40, 1usize..100_000],
        room in prop_oneof![1usize..300, 1000usize..300_000],
    ) {
        // Tiny pieces of long data would only take long.
        let bytes = bytes.min(500 * piece).min(500 * room);
        let data = image(bytes, seed);
        let stream = member(&data, level);
        let (output, _) = decode(&mut Gzip::start(true), &stream, piece, room).unwrap();
        prop_assert!(output == data);
    }

    #[test]
    fn random_bytes_and_repeats_come_back(
        data in prop::collection::vec(prop_oneof![any::<u8>(), Just(7u8)], 0..5000),
        copies in 1usize..20,
        level in 0i32..=12,
    ) {
        let data = data.repeat(copies);
        let (output, _) = decode_whole(&member(&data, level)).unwrap();
        prop_assert!(output == data);
    }

    #[test]
    fn damage_gives_an_error_or_the_data_but_no_panic(
        at in any::<prop::sample::Index>(),
        flip in 1u8..=255,
        level in 0i32..=12,
    ) {
        let data = image(70_000, 5);
        let mut stream = member(&data, level);
        let at = at.index(stream.len());
        stream[at] ^= flip;
        if let Ok((output, _)) = decode_whole(&stream) {
            // Only in what the header says beside the data.
            prop_assert!(at < 10 && output == data, "byte {at}");
        }
    }

    #[test]
    fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let mut stream = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0];
        stream.extend(bytes);
        let _ = decode_whole(&stream);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_seek_point_gives_what_follows_whatever_the_pieces(
        sizes in prop::collection::vec(1000usize..700_000, 1..5),
        seed in any::<u32>(),
        level in 1i32..=12,
        (piece, room) in (1000usize..100_000, 1000usize..300_000),
    ) {
        let parts: Vec<_> = sizes.iter().map(|&bytes| image(bytes, seed)).collect();
        let stream: Vec<_> = parts.iter().flat_map(|part| member(part, level)).collect();
        let data = parts.concat();
        let (output, points) = decode_whole(&stream).unwrap();
        prop_assert!(output == data);
        let (_, in_pieces) = decode(&mut Gzip::start(true), &stream, piece, room).unwrap();
        prop_assert!(points == in_pieces);
        for point in &points {
            let mut decoder = Gzip::resume(point, true).unwrap();
            let rest = &stream[point.compressed as usize..];
            let (tail, more) = decode(&mut decoder, rest, piece, room).unwrap();
            prop_assert!(tail == data[point.raw as usize..], "point at {}", point.raw);
            // The windows of these were read from what the first one gave.
            for point in more {
                let mut decoder = Gzip::resume(&point, false).unwrap();
                let rest = &stream[point.compressed as usize..];
                let (tail, _) = decode(&mut decoder, rest, piece, room).unwrap();
                prop_assert!(tail == data[point.raw as usize..], "point at {}", point.raw);
            }
        }
    }
}

#[test]
fn every_seek_point_gives_what_follows() {
    let data = image(6_000_000, 1);
    let stream = [member(&data[..4_000_000], 6), member(&data[4_000_000..], 1)].concat();
    let (output, points) = decode_whole(&stream).unwrap();
    assert!(output == data);
    assert!(points.len() >= 5, "{}", points.len());
    let used_bytes: usize = points.iter().map(|point| point.window.len() + 14).sum();
    assert!(used_bytes * 100 <= stream.len() * 8, "{used_bytes} of {}", stream.len());
    for point in &points {
        let mut decoder = Gzip::resume(point, false).unwrap();
        let rest = &stream[point.compressed as usize..];
        let (tail, _) = decode(&mut decoder, rest, 10_000, 50_000).unwrap();
        assert!(tail == data[point.raw as usize..], "point at {}", point.raw);
    }
}

#[test]
fn cut_off_anywhere_is_an_error() {
    for level in [0, 6] {
        let stream = member(&image(1000, 3), level);
        for end in 0..stream.len() {
            let error = decode_whole(&stream[..end]).unwrap_err();
            assert!(matches!(error, StreamError::CutOff { .. }), "cut at {end}: {error}");
        }
    }
}

#[test]
fn every_part_of_a_header_is_skipped() {
    let data = image(5000, 9);
    let plain = member(&data, 6);
    let mut stream = vec![0x1f, 0x8b, 8, 0x1f, 1, 2, 3, 4, 0, 3];
    stream.extend([3, 0, b'a', 0, b'c']); // extra field with a zero in it
    stream.extend(b"name.fits\0a comment\0");
    stream.extend([0x12, 0x34]); // header checksum
    stream.extend(&plain[10..]);
    for piece in [1, 100_000] {
        let (output, _) = decode(&mut Gzip::start(true), &stream, piece, 4096).unwrap();
        assert!(output == data);
    }
}

#[test]
fn members_follow_each_other_and_zeros_the_last() {
    let (one, two) = (image(100_000, 1), image(5, 2));
    let mut stream = [member(&one, 6), member(&two, 6), member(b"", 6)].concat();
    stream.extend([0; 3000]);
    let (output, _) = decode(&mut Gzip::start(true), &stream, 1000, 1000).unwrap();
    assert!(output == [one, two].concat());
    stream.extend(b"junk");
    let error = decode_whole(&stream).unwrap_err();
    assert!(error.to_string().contains("no gzip header"), "{error}");
}

#[test]
fn a_fixed_block_is_read() {
    // Python: zlib.compressobj(9, 31, -15, 9, zlib.Z_FIXED) of b"swathe swathe swathe".
    let mut stream = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    stream.extend([0x2b, 0x2e, 0x4f, 0x2c, 0xc9, 0x48, 0x55, 0x28, 0x46, 0xa6, 0x00]);
    let data = b"swathe swathe swathe";
    stream.extend(crc32fast::hash(data).to_le_bytes());
    stream.extend((data.len() as u32).to_le_bytes());
    assert_eq!(decode_whole(&stream).unwrap().0, data);
}

#[test]
fn a_wrong_length_or_checksum_is_told() {
    let stream = member(b"some data", 6);
    for (back, what) in [(1, "length"), (5, "checksum")] {
        let mut stream = stream.clone();
        let at = stream.len() - back;
        stream[at] ^= 1;
        let error = decode_whole(&stream).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn damaged_seek_points_are_refused() {
    let good = SeekPoint { raw: 9, compressed: 5, bits: 1, window: Box::default() };
    let windows: [&[u8]; 4] = [&[], &[1], &[9, 0, 1, 2], &[1, 0x80]];
    for window in windows {
        let point = SeekPoint { window: window.into(), ..good.clone() };
        assert!(Gzip::resume(&point, false).is_err(), "{window:?}");
    }
    let point = SeekPoint { bits: 8, window: [0, 0].into(), ..good };
    assert!(Gzip::resume(&point, false).is_err());
}
