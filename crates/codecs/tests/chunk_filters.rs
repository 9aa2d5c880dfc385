//! Chunks of small encoders decode to the original bytes; any bytes decode to as many as asked for,
//! or to an error. The encoders of other libraries are in `tests/arrays/test_filters.py`.

use libdeflater::{CompressionLvl, Compressor};
use proptest::prelude::*;
use swathe_codecs::chunk::{Filter, FilterError, Filters, Scratch};

/// Filters of every kind, as JSON.
const EVERY_KIND: [&str; 29] = [
    r#"{"name": "deflate"}"#,
    r#"{"name": "gzip"}"#,
    r#"{"name": "rawdeflate", "from": 2, "size": 90}"#,
    r#"{"name": "bits", "size": 2, "bits": 12, "signed": true, "big_endian": true}"#,
    r#"{"name": "bits", "size": 1, "bits": 8, "signed": false, "big_endian": false}"#,
    r#"{"name": "shuffle", "size": 4}"#,
    r#"{"name": "shuffle", "size": 3}"#,
    r#"{"name": "fletcher32"}"#,
    r#"{"name": "crc32c"}"#,
    r#"{"name": "horizontal", "size": 2, "samples": 3, "width": 2, "big_endian": true}"#,
    r#"{"name": "floating", "size": 4, "samples": 2, "width": 1, "big_endian": false}"#,
    r#"{"name": "lzw"}"#,
    r#"{"name": "packbits"}"#,
    r#"{"name": "lzf"}"#,
    r#"{"name": "lz4", "framing": "hdf5"}"#,
    r#"{"name": "lz4", "framing": "asdf"}"#,
    r#"{"name": "lz4", "framing": "zarr"}"#,
    r#"{"name": "zstd"}"#,
    r#"{"name": "bzip2"}"#,
    r#"{"name": "bitshuffle", "size": 2, "block": 8, "codec": "none"}"#,
    r#"{"name": "bitshuffle", "size": 2, "block": 8, "codec": "lz4"}"#,
    r#"{"name": "bitshuffle", "size": 2, "block": 0, "codec": "zstd"}"#,
    r#"{"name": "blosc"}"#,
    r#"{"name": "szip", "options": 160, "block": 4, "bits": 12, "scanline": 10}"#,
    r#"{"name": "szip", "options": 132, "block": 8, "bits": 32, "scanline": 8}"#,
    r#"{"name": "scaleoffset", "values": [2, 0, 20, 0, 2, 1, 0, 1, 7]}"#,
    r#"{"name": "scaleoffset", "values": [0, 2, 10, 1, 4, 1, 1, 0]}"#,
    r#"{"name": "nbit", "values": [8, 0, 10, 1, 4, 0, 17, 3]}"#,
    r#"{"name": "nbit", "values": [12, 0, 5, 3, 8, 1, 0, 2, 6, 1, 2, 1, 7, 2]}"#,
];

fn filters(each: &[&str]) -> Filters {
    serde_json::from_str(&format!("[{}]", each.join(","))).unwrap()
}

fn decode(
    filters: &Filters,
    bytes: &[u8],
    skips: u32,
    size: usize,
) -> Result<Vec<u8>, FilterError> {
    let mut out = vec![9; 5];
    filters.decode(bytes, skips, size, &mut Scratch::default(), &mut out)?;
    Ok(out)
}

fn shuffle(data: &[u8], size: usize) -> Vec<u8> {
    let (whole, rest) = data.split_at(data.len() / size * size);
    let planes = (0..size).flat_map(|byte| whole.iter().skip(byte).step_by(size));
    planes.chain(rest).copied().collect()
}

fn deflate(data: &[u8]) -> Vec<u8> {
    let mut compressor = Compressor::new(CompressionLvl::default());
    let mut out = vec![0; compressor.zlib_compress_bound(data.len())];
    let size = compressor.zlib_compress(data, &mut out).unwrap();
    out.truncate(size);
    out
}

proptest! {
    #[test]
    fn filters_are_undone_from_the_last(
        data in prop::collection::vec(any::<u8>(), 0..900),
        size in 1usize..20,
        skips in 0u32..4,
    ) {
        let filters = Filters::new(vec![
            Filter::Shuffle { size: size as u32 },
            Filter::Deflate,
        ]).unwrap();
        prop_assert_eq!(filters.name(), "shuffle+deflate");
        let mut stored = data.clone();
        if skips & 1 == 0 {
            stored = shuffle(&stored, size);
        }
        if skips & 2 == 0 {
            stored = deflate(&stored);
        }
        prop_assert_eq!(decode(&filters, &stored, skips, data.len()).unwrap(), data.clone());
        let is_longer = decode(&filters, &stored, skips, data.len() + 1);
        prop_assert!(is_longer.is_err());
    }

    #[test]
    fn a_chunk_is_taken_out_of_a_stream_of_deflate(
        data in prop::collection::vec(any::<u8>(), 1..900),
        from in 0usize..900,
        length in 0usize..900,
    ) {
        let stream = deflate(&data);
        let raw = &stream[2..stream.len() - 4];
        let size = data.len() as u64;
        let filters = Filters::new(vec![Filter::RawDeflate { from: from as u64, size }]);
        prop_assert_eq!(filters.is_ok(), from <= data.len());
        if let Ok(filters) = filters {
            let part = data.get(from..from + length).map(<[u8]>::to_vec);
            prop_assert_eq!(decode(&filters, raw, 0, length).ok(), part);
        }
    }

    #[test]
    fn bits_that_do_not_count_get_the_sign(
        values in prop::collection::vec(any::<i16>(), 0..90),
        bits in 1u32..=16,
        signed in any::<bool>(),
    ) {
        for big_endian in [false, true] {
            let filters =
                Filters::new(vec![Filter::Bits { size: 2, bits, has_sign: signed, big_endian }]).unwrap();
            let stored: Vec<u8> = values
                .iter()
                .flat_map(|of| if big_endian { of.to_be_bytes() } else { of.to_le_bytes() })
                .collect();
            let decoded = decode(&filters, &stored, 0, stored.len()).unwrap();
            for (value, bytes) in values.iter().zip(decoded.as_chunks::<2>().0) {
                let low = i32::from(*value as u16) & ((1 << bits) - 1);
                let is_negative = signed && low >> (bits - 1) == 1;
                let expected = if is_negative { low - (1 << bits) } else { low } as u16;
                let of = if big_endian { u16::from_be_bytes } else { u16::from_le_bytes };
                prop_assert_eq!(of(*bytes), expected);
            }
        }
    }

    #[test]
    fn any_bytes_are_an_error_or_as_long_as_asked_for(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        kinds in prop::collection::vec(prop::sample::select(&EVERY_KIND[..]), 1..4),
        skips in 0u32..8,
        size in prop::sample::select(vec![0usize, 1, 8, 12, 40, 80, 300, 4096]),
    ) {
        if let Ok(out) = decode(&filters(&kinds), &bytes, skips, size) {
            prop_assert_eq!(out.len(), size);
        }
    }

    #[test]
    fn any_values_of_hdf5_are_errors_or_decode(
        values in prop::collection::vec(prop_oneof![0u32..9, any::<u32>()], 0..14),
        bytes in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        for filter in [
            Filter::Nbit { values: values.clone() },
            Filter::ScaleOffset { values: values.clone() },
        ] {
            if let Ok(filters) = Filters::new(vec![filter]) {
                let _ = decode(&filters, &bytes, 0, 64);
            }
        }
        if let &[options, block, bits, scanline, ..] = &values[..]
            && let Ok(filters) = Filters::new(vec![Filter::Szip { options, block, bits, scanline }])
        {
            let _ = decode(&filters, &bytes, 0, 64);
        }
    }
}

#[test]
fn filters_read_back_from_their_json() {
    for kind in EVERY_KIND {
        let one = filters(&[kind]);
        let text = serde_json::to_string(&one).unwrap();
        assert_eq!(serde_json::from_str::<Filters>(&text).unwrap(), one);
        assert!(text.contains(&format!("\"name\":\"{}\"", one.name())));
    }
    assert_eq!(Filters::default().name(), "none");
}

#[test]
fn chunks_without_filters_have_their_size() {
    let none = Filters::default();
    assert_eq!(decode(&none, b"abc", 0, 3).unwrap(), b"abc");
    let error = decode(&none, b"abc", 0, 4).unwrap_err();
    assert_eq!(error, FilterError::Size { filter: "none", expected: 4, found: 3 });
}
