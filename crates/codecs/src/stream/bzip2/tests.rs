use super::code::{NO_SYMBOL, Table};
use super::symbols::{TOO_LONG, to_front};
use super::*;
use crate::stream::UntilError;
use crate::stream::testing::run;
use proptest::prelude::*;
use std::io::Write;

/// Written with Python 3's bz2 module (libbz2 1.0.8).
const EMPTY: &str = "425a683917724538509000000000";
const LETTER_A: &str = "425a683931415926535919939b6b00000001002000200021184682ee48a70a120332736d60";
/// As many letters z.
const LETTERS_Z: [(usize, &str); 9] = [
    (3, "425a6839314159265359816b118c000001008000102000308c1418bb9229c284840b588c60"),
    (4, "425a68393141592653597815fa2300000240804000001020002100820b1772453850907815fa23"),
    (5, "425a6839314159265359ad8f582500000240802000001020002100820b177245385090ad8f5825"),
    (255, "425a68393141592653599887a2e80000000080801000082000210082831772453850909887a2e8"),
    (258, "425a6839314159265359db9c35c6000001808080100008200021008297177245385090db9c35c6"),
    (
        259,
        "425a6839314159265359d82ccdf2000002c080c00000100008200020aa6d4198c5478bb9229c28486c1666f900",
    ),
    (
        260,
        "425a68393141592653596597df2b000002c080a00000100008200020aa6d4198c5478bb9229c284832cbef9580",
    ),
    (
        263,
        "425a68393141592653596d297592000002c080840000100008200020aa6d4198c5478bb9229c28483694bac900",
    ),
    (
        300,
        "425a6839314159265359654ed8310000029080802000100008200020aa6d4198c5478bb9229c284832a76c1880",
    ),
];
const CARD: &str = concat!(
    "425a6831314159265359589c47cb00000c3f8040004000800203264c002f279c0020004114f4d1a8f5326468",
    "f4daa14000d0326419124ea8f1e717752e8d2d8be2d9ee6118090cc9202c2b30de947e747f8bb9229c28482c",
    "4e23e580"
);
const CARD_TEXT: &[u8] = b"SIMPLE  =                    T / file does conform to FITS standard";
/// "BITPIX" at level 9, then "NAXIS" at level 1.
const TWO: &str = concat!(
    "425a68393141592653595ba5992400000006001020444020002183419a02605c5dc914e142416e966490",
    "425a683131415926535949fbe8d4000001060020210840200030cd00c1a500e2ee48a70a12093f7d1a80"
);

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

fn compress(level: u32, data: &[u8]) -> Vec<u8> {
    let mut to = ::bzip2::write::BzEncoder::new(Vec::new(), ::bzip2::Compression::new(level));
    to.write_all(data).unwrap();
    to.finish().unwrap()
}

/// Bytes without order, the same each time.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..count).map(|_| next()).collect()
}

fn decode_all(stream: &[u8]) -> Result<Vec<u8>, StreamError> {
    run(&mut Bzip2::start(false), stream, 128 << 10, 64 << 10)
}

#[test]
fn decodes_golden_streams() {
    assert_eq!(decode_all(&bytes(EMPTY)).unwrap(), b"");
    assert_eq!(decode_all(&bytes(LETTER_A)).unwrap(), b"a");
    for (count, stream) in LETTERS_Z {
        assert_eq!(decode_all(&bytes(stream)).unwrap(), vec![b'z'; count], "{count}");
    }
    assert_eq!(decode_all(&bytes(CARD)).unwrap(), CARD_TEXT);
    assert_eq!(decode_all(&bytes(TWO)).unwrap(), b"BITPIXNAXIS");
}

#[test]
fn what_follows_a_stream_is_ignored_but_for_streams() {
    let with = |more: &[u8]| decode_all(&[&bytes(CARD), more].concat());
    for more in [&b"\0\0\0\0\0"[..], b"\0", b"BZip", b"BZh0", b"x"] {
        assert_eq!(with(more).unwrap(), CARD_TEXT, "{more:?}");
    }
    for more in [&b"B"[..], b"BZ", b"BZh", b"BZh9", b"BZh91AY"] {
        assert!(matches!(with(more), Err(StreamError::CutOff { .. })), "{more:?}");
    }
    assert!(matches!(with(b"BZh9 and more text"), Err(StreamError::Damaged { .. })));
}

#[test]
fn every_cut_is_noticed() {
    for stream in [bytes(CARD), bytes(EMPTY), compress(1, &noise(3000))] {
        for cut in 0..stream.len() {
            let at = cut as u64;
            let result = decode_all(&stream[..cut]);
            assert_eq!(result, Err(StreamError::CutOff { kind: KIND, at }), "{cut}");
        }
    }
}

#[test]
fn what_is_no_bzip2_is_refused() {
    let is_refused = |bytes: &[u8]| matches!(decode_all(bytes), Err(StreamError::Damaged { .. }));
    assert!(is_refused(b"SIMPLE  = "));
    assert!(is_refused(b"x"));
    assert!(is_refused(b"BZh0"));
    let mut stream = bytes(LETTER_A);
    stream[14] |= 0x80;
    assert!(decode_all(&stream).unwrap_err().to_string().contains("randomised"));
}

#[test]
fn wrong_checksums_are_noticed() {
    let mut block = bytes(LETTER_A);
    block[10] ^= 1;
    let result = decode_all(&block).unwrap_err();
    assert!(matches!(result, StreamError::Mismatch { what: "CRC of a block", .. }), "{result}");
    let mut all = bytes(EMPTY);
    all[13] ^= 1;
    let result = decode_all(&all).unwrap_err();
    assert!(matches!(result, StreamError::Mismatch { expected: 1, found: 0, .. }), "{result}");
}

#[test]
fn no_block_is_longer_than_its_level() {
    for data in [noise(110_000), [b"ab".repeat(60_000), noise(10)].concat()] {
        let mut stream = compress(2, &data);
        stream[3] = b'1';
        let result = decode_all(&stream).unwrap_err();
        assert!(matches!(result, StreamError::Damaged { what: TOO_LONG, .. }), "{result}");
    }
}

#[test]
fn endless_tables_are_refused() {
    // Not randomised, origin 0, one byte, two codes, one selector, length 5; then up and down.
    let (one, origin) = ("1000000000000000", "0".repeat(24));
    let bits = ["0", &origin, one, one, "010", "000000000000001", "0", "00101"].concat();
    let bits = bits + &"1011".repeat(200_000);
    let tables = bits
        .as_bytes()
        .chunks_exact(8)
        .map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | (bit & 1)));
    let stream: Vec<u8> = bytes("425a683931415926535900000000").into_iter().chain(tables).collect();
    let result = decode_all(&stream).unwrap_err();
    assert!(result.to_string().contains("too long"), "{result}");
}

#[test]
fn room_for_the_data_alone_suffices_to_see_the_end() {
    let mut output = [0; 11];
    let step = Bzip2::start(false).decode(&bytes(TWO), true, &mut output).unwrap();
    assert_eq!((&output, step.output_bytes, step.end), (b"BITPIXNAXIS", 11, true));
}

#[test]
fn decoding_resumes_at_every_block() {
    let data = [noise(230_000), vec![0; 25_000_000], b"tail".repeat(50_000)].concat();
    let stream = [compress(1, &data[..300_000]), compress(2, &data[300_000..])].concat();
    let mut decoder = Bzip2::start(true);
    assert!(run(&mut decoder, &stream, 70_000, 1 << 20).unwrap() == data);
    let points = decoder.take_points();
    assert!(points.len() > 6, "{}", points.len());
    assert_eq!((points[0].raw, points[0].compressed, points[0].bits), (0, 4, 0));
    assert!(points.is_sorted_by_key(|point| point.raw));
    for (index, point) in points.iter().enumerate() {
        let mut decoder = Bzip2::resume(point, true).unwrap();
        let rest = &stream[point.compressed as usize..];
        assert!(run(&mut decoder, rest, 70_000, 1 << 20).unwrap() == data[point.raw as usize..]);
        assert_eq!(decoder.take_points(), points[index..]);
    }
    assert!(Bzip2::start(false).take_points().is_empty());
}

#[test]
fn damaged_seek_points_are_refused() {
    let right = SeekPoint { raw: 0, compressed: 4, bits: 0, window: (*b"9").into() };
    for wrong in [
        SeekPoint { bits: 8, ..right.clone() },
        SeekPoint { window: (*b"0").into(), ..right.clone() },
        SeekPoint { window: (*b"").into(), ..right.clone() },
        SeekPoint { window: (*b"11").into(), ..right.clone() },
    ] {
        assert!(matches!(Bzip2::resume(&wrong, true), Err(StreamError::SeekPoint { .. })));
    }
    let far_point = SeekPoint { raw: u64::MAX, compressed: u64::MAX, bits: 7, ..right };
    let result = run(&mut Bzip2::resume(&far_point, true).unwrap(), &noise(1000), 100, 100);
    assert!(matches!(result, Err(StreamError::Damaged { .. })));
}

#[test]
fn codes_are_built_and_checked() {
    let mut table = Table::new();
    assert!(table.build(&[1, 1, 1]).is_err());
    assert!(table.build(&[1, 2, 3, 3]).is_ok());
    // As long as can be: 1, 2, ... 19, 20, 20, with the last two all ones but for one bit.
    let lengths: Vec<u8> = (1..=20).chain([20]).collect();
    table.build(&lengths).unwrap();
    for symbol in 0..=20 {
        let word: u64 = [!(!0 >> symbol), !0 << 44][usize::from(symbol == 20)];
        let bytes = word.to_be_bytes();
        let mut bits = Bits::new(&bytes);
        bits.refill();
        assert_eq!(table.symbol(&mut bits), symbol);
        assert_eq!(bits.position_bits(), u64::from(lengths[symbol]));
    }
    table.build(&[2, 2, 20]).unwrap();
    let mut bits = Bits::new(&[0xff; 8]);
    bits.refill();
    assert_eq!(table.symbol(&mut bits), NO_SYMBOL);
}

#[test]
fn moves_to_front_as_a_list_does() {
    let mut list: [u8; 256] = std::array::from_fn(|i| i as u8);
    let mut plain = list.to_vec();
    for index in noise(5000).into_iter().map(usize::from) {
        let byte = plain.remove(index);
        plain.insert(0, byte);
        assert_eq!(to_front(&mut list, index), byte);
        assert_eq!(list[..], plain[..]);
    }
}

/// Data of runs around the limits of the run-length code, noise, and repeats.
fn data() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        (any::<u8>(), 0usize..600).prop_map(|(byte, count)| vec![byte; count]),
        prop::collection::vec(any::<u8>(), 0..2000),
        (prop::collection::vec(any::<u8>(), 1..9), 0usize..9000)
            .prop_map(|(bytes, times)| bytes.repeat(times)),
    ];
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pieces_of_any_size_give_the_same(
        data in data(), level in 1u32..=9, input in 1usize..3000, output in 1usize..3000,
    ) {
        let half = data.len() / 2;
        let stream = [compress(level, &data[..half]), compress(1, &data[half..])].concat();
        prop_assert!(decode_all(&stream).unwrap() == data);
        prop_assert!(run(&mut Bzip2::start(true), &stream, input, output).unwrap() == data);
    }

    #[test]
    fn flips_give_an_error_or_the_same(
        data in data(), flips in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..4),
    ) {
        let mut stream = compress(1, &data);
        for (at, bit) in flips {
            let at = at.index(stream.len());
            stream[at] ^= 1u8 << bit;
        }
        let mut decoder = UntilError::new(Bzip2::start(true));
        match run(&mut decoder, &stream, 1000, 1000) {
            Ok(result) => prop_assert!(result == data),
            // Of no more use, but to do no harm.
            Err(error) => {
                prop_assert_eq!(decoder.decode(&stream, false, &mut [0; 9]), Err(error));
            }
        }
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        let head = b"BZh9\x31\x41\x59\x26\x53\x59";
        prop_assert!(decode_all(&[&head[..], &bytes].concat()).is_err());
    }

    #[test]
    fn unsorts_any_column(
        (seed, alphabet, count) in (any::<u8>(), 1u8..=255, prop_oneof![1usize..100, 16_000usize..30_000]),
        origin in any::<prop::sample::Index>(), is_sorted in any::<bool>(),
    ) {
        let mut column: Vec<u8> =
            noise(count).into_iter().map(|byte| byte.wrapping_mul(seed) % alphabet).collect();
        if is_sorted {
            column.sort();
        }
        let origin = origin.index(count);
        let mut tally = [0; 256];
        column.iter().for_each(|byte| tally[usize::from(*byte)] += 1);
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|row| column[*row]);
        let mut row = origin;
        let want: Vec<u8> = (0..count).map(|_| {
            row = order[row];
            column[row]
        }).collect();
        let mut text = Vec::new();
        unsort(&mut column, &tally, origin, &mut Vec::new(), &mut text);
        prop_assert!(text == want);
    }
}
