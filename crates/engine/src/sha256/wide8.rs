//! Eight messages at once, in 256-bit registers.

use std::arch::x86_64::*;

compress_in_lanes!("avx2", __m256i, 8);

#[target_feature(enable = "avx2")]
#[inline]
fn from_words(words: &[u32; 8]) -> __m256i {
    // SAFETY: 32 bytes are read, the size of the array; no alignment is needed.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
fn to_words(vector: __m256i) -> [u32; 8] {
    let mut words = [0; 8];
    // SAFETY: 32 bytes are written, the size of the array; no alignment is needed.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), vector) };
    words
}

/// The block at `start` of every lane, word t of all lanes together in vector t.
#[target_feature(enable = "avx2")]
#[inline]
fn load(blocks: &[&[u8]; 8], start: usize) -> [__m256i; 16] {
    let [a, b, c, d, e, f, g, h] = transpose(half_blocks(blocks, start));
    let [i, j, k, l, m, n, o, p] = transpose(half_blocks(blocks, start + 32));
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
}

#[target_feature(enable = "avx2")]
#[inline]
fn half_blocks(blocks: &[&[u8]; 8], start: usize) -> [__m256i; 8] {
    let half = _mm_set_epi64x(0x0c0d0e0f_08090a0b, 0x04050607_00010203);
    let swap = _mm256_broadcastsi128_si256(half);
    let mut rows = [swap; 8];
    for (row, lane) in rows.iter_mut().zip(blocks) {
        let half = &lane[start..start + 32];
        // SAFETY: the slice is 32 bytes long; no alignment is needed.
        let row_bytes = unsafe { _mm256_loadu_si256(half.as_ptr().cast()) };
        *row = _mm256_shuffle_epi8(row_bytes, swap);
    }
    rows
}

/// In three steps: pairs and quads within 128 bits, then the halves of the registers.
#[target_feature(enable = "avx2")]
#[inline]
fn transpose(rows: [__m256i; 8]) -> [__m256i; 8] {
    let mut quads = rows;
    for first in [0, 4] {
        let low01 = _mm256_unpacklo_epi32(rows[first], rows[first + 1]);
        let high01 = _mm256_unpackhi_epi32(rows[first], rows[first + 1]);
        let low23 = _mm256_unpacklo_epi32(rows[first + 2], rows[first + 3]);
        let high23 = _mm256_unpackhi_epi32(rows[first + 2], rows[first + 3]);
        quads[first] = _mm256_unpacklo_epi64(low01, low23);
        quads[first + 1] = _mm256_unpackhi_epi64(low01, low23);
        quads[first + 2] = _mm256_unpacklo_epi64(high01, high23);
        quads[first + 3] = _mm256_unpackhi_epi64(high01, high23);
    }
    let mut words = quads;
    for r in 0..4 {
        words[r] = _mm256_permute2x128_si256::<0x20>(quads[r], quads[4 + r]);
        words[4 + r] = _mm256_permute2x128_si256::<0x31>(quads[r], quads[4 + r]);
    }
    words
}

#[target_feature(enable = "avx2")]
#[inline]
fn splat(word: u32) -> __m256i {
    _mm256_set1_epi32(word.cast_signed())
}

#[target_feature(enable = "avx2")]
#[inline]
fn add(a: __m256i, b: __m256i) -> __m256i {
    _mm256_add_epi32(a, b)
}

/// Bits moved right by N and those moved left by 32 - N never overlap.
#[target_feature(enable = "avx2")]
#[inline]
fn right<const N: i32>(a: __m256i) -> __m256i {
    let left = _mm256_sll_epi32(a, _mm_cvtsi32_si128(32 - N));
    _mm256_or_si256(_mm256_srli_epi32::<N>(a), left)
}

#[target_feature(enable = "avx2")]
#[inline]
fn shift<const N: i32>(a: __m256i) -> __m256i {
    _mm256_srli_epi32::<N>(a)
}

#[target_feature(enable = "avx2")]
#[inline]
fn xor(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
    _mm256_xor_si256(_mm256_xor_si256(a, b), c)
}

#[target_feature(enable = "avx2")]
#[inline]
fn choose(e: __m256i, f: __m256i, g: __m256i) -> __m256i {
    _mm256_xor_si256(_mm256_and_si256(_mm256_xor_si256(f, g), e), g)
}

#[target_feature(enable = "avx2")]
#[inline]
fn majority(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
    let either = _mm256_and_si256(_mm256_or_si256(a, b), c);
    _mm256_or_si256(_mm256_and_si256(a, b), either)
}
