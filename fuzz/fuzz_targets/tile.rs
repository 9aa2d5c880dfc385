//! A tile of every codec: the first bytes say which, its parameters and shape; the rest is it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use swathe_array::DType;
use swathe_codecs::tile::{Codec, Dither, Encoding, Quantize, Scratch, TileCodec, TileInput};

/// Bytes before the tile's own; `seed.py` writes them.
const HEAD_BYTES: usize = 12;
/// Most pixels of a tile: what one of a few bytes may hold is a question for `cut`.
const MOST_PIXELS: u64 = 1 << 18;

thread_local! {
    // One for all inputs, as one is for all tiles of a thread.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

fuzz_target!(|bytes: &[u8]| {
    let Some((head, tile)) = bytes.split_first_chunk::<HEAD_BYTES>() else { return };
    let &[kind, dtype, quantize, block, pixel_bytes, column, scale, part, x, x_high, y, z] = head;
    let codec = match kind % 6 {
        0 => Codec::Rice { block: usize::from(block), bytes_per_pixel: usize::from(pixel_bytes) },
        1 => Codec::Gzip1,
        2 => Codec::Gzip2,
        3 => Codec::Plio,
        4 => Codec::Hcompress { smooth: block % 2 == 1 },
        _ => Codec::None,
    };
    let dtypes = [DType::U8, DType::I16, DType::I32, DType::I64, DType::F32, DType::F64];
    let dithers = [Dither::None, Dither::Subtractive1, Dither::Subtractive2];
    let codec = TileCodec {
        codec,
        dtype: dtypes[usize::from(dtype % 6)],
        quantize: quantize.checked_sub(1).map(|way| Quantize {
            dither: dithers[usize::from(way % 3)],
            seed: 1 + u32::from(way) * 39,
        }),
    };
    let shape: &[u64] = &[u64::from(x) | u64::from(x_high) << 8, u64::from(y), u64::from(z)];
    let pixels: u64 = shape.iter().product();
    if pixels > MOST_PIXELS {
        return;
    }
    let input = TileInput {
        bytes: tile,
        encoding: [Encoding::Codec, Encoding::Gzip, Encoding::Uncompressed]
            [usize::from(column % 3)],
        shape: if z == 1 { &shape[..2] } else { shape },
        tile: u64::from(part),
        scale: f64::from(scale) / 16.0,
        zero: -1.0,
        blank: (scale % 2 == 1).then_some(-2147483648),
    };
    let pixels = pixels as usize;
    let size = codec.dtype.size();
    SCRATCH.with_borrow_mut(|scratch| {
        let mut whole = Vec::new();
        let result = codec.decode(&input, pixels, scratch, &mut whole);
        assert!(codec.decode(&input, pixels + 1, scratch, &mut Vec::new()).is_err());
        if result.is_err() {
            return;
        }
        assert!(whole.len() >= pixels * size);
        // The beginning alone is that of the whole.
        let need = pixels * usize::from(part) / 255;
        let mut part_of_tile = Vec::new();
        codec.decode(&input, need, scratch, &mut part_of_tile).expect("the whole tile was decoded");
        assert_eq!(part_of_tile[..need * size], whole[..need * size]);
    });
});
