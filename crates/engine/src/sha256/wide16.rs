//! Sixteen messages at once, in 512-bit registers.

use super::lanes::BLOCK_BYTES;
use std::arch::x86_64::*;

compress_in_lanes!("avx512f,avx512bw", __m512i, 16);

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn from_words(words: &[u32; 16]) -> __m512i {
    // SAFETY: 64 bytes are read, the size of the array; no alignment is needed.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn to_words(vector: __m512i) -> [u32; 16] {
    let mut words = [0; 16];
    // SAFETY: 64 bytes are written, the size of the array; no alignment is needed.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), vector) };
    words
}

/// The block at `start` of every lane, word t of all lanes together in vector t.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn load(blocks: &[&[u8]; 16], start: usize) -> [__m512i; 16] {
    let swap = _mm512_broadcast_i32x4(_mm_set_epi64x(0x0c0d0e0f_08090a0b, 0x04050607_00010203));
    let mut rows = [swap; 16];
    for (row, lane) in rows.iter_mut().zip(blocks) {
        let block = &lane[start..start + BLOCK_BYTES];
        // SAFETY: the slice is 64 bytes long; no alignment is needed.
        let row_bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
        *row = _mm512_shuffle_epi8(row_bytes, swap);
    }
    transpose(rows)
}

/// In four steps: pairs and quads within 128 bits, then the quarters of the registers.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn transpose(rows: [__m512i; 16]) -> [__m512i; 16] {
    let mut quads = rows;
    for first in (0..16).step_by(4) {
        let low01 = _mm512_unpacklo_epi32(rows[first], rows[first + 1]);
        let high01 = _mm512_unpackhi_epi32(rows[first], rows[first + 1]);
        let low23 = _mm512_unpacklo_epi32(rows[first + 2], rows[first + 3]);
        let high23 = _mm512_unpackhi_epi32(rows[first + 2], rows[first + 3]);
        quads[first] = _mm512_unpacklo_epi64(low01, low23);
        quads[first + 1] = _mm512_unpackhi_epi64(low01, low23);
        quads[first + 2] = _mm512_unpacklo_epi64(high01, high23);
        quads[first + 3] = _mm512_unpackhi_epi64(high01, high23);
    }
    // Quarter q of quads[4 i + r] holds word 4 q + r of lanes 4 i to 4 i + 3.
    let mut words = quads;
    for r in 0..4 {
        let even01 = _mm512_shuffle_i32x4::<0b10_00_10_00>(quads[r], quads[4 + r]);
        let odd01 = _mm512_shuffle_i32x4::<0b11_01_11_01>(quads[r], quads[4 + r]);
        let even23 = _mm512_shuffle_i32x4::<0b10_00_10_00>(quads[8 + r], quads[12 + r]);
        let odd23 = _mm512_shuffle_i32x4::<0b11_01_11_01>(quads[8 + r], quads[12 + r]);
        words[r] = _mm512_shuffle_i32x4::<0b10_00_10_00>(even01, even23);
        words[4 + r] = _mm512_shuffle_i32x4::<0b10_00_10_00>(odd01, odd23);
        words[8 + r] = _mm512_shuffle_i32x4::<0b11_01_11_01>(even01, even23);
        words[12 + r] = _mm512_shuffle_i32x4::<0b11_01_11_01>(odd01, odd23);
    }
    words
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn splat(word: u32) -> __m512i {
    _mm512_set1_epi32(word.cast_signed())
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn add(a: __m512i, b: __m512i) -> __m512i {
    _mm512_add_epi32(a, b)
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn right<const N: i32>(a: __m512i) -> __m512i {
    _mm512_ror_epi32::<N>(a)
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn shift<const N: u32>(a: __m512i) -> __m512i {
    _mm512_srli_epi32::<N>(a)
}

// The immediate of a ternary operation is its truth table, read with bits (a, b, c) as index.

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn xor(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0b1001_0110>(a, b, c)
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn choose(e: __m512i, f: __m512i, g: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0b1100_1010>(e, f, g)
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn majority(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0b1110_1000>(a, b, c)
}
