//! The bytes as an answer with several ranges: nothing but what was requested comes out.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::ops::Range;
use swathe_store_api::Multipart;

const SIZE: u64 = 1000;
const RANGES: [Range<u64>; 4] = [10..30, 40..41, 41..60, 900..1000];

fuzz_target!(|input: &[u8]| {
    // The first line is the Content-Type, or the Content-Range of a single range; its first byte
    // says how large the chunks are.
    let Some((&step, input)) = input.split_first() else { return };
    let end = input.iter().position(|&byte| byte == b'\n').unwrap_or(input.len());
    let (first, body) = input.split_at(end);
    let Ok(first) = std::str::from_utf8(first) else { return };
    let many = Multipart::new(first, RANGES.to_vec(), SIZE);
    let Ok(mut parts) = many.or_else(|_| Multipart::single(first, RANGES.to_vec(), SIZE)) else {
        return;
    };
    let mut counts = [0; RANGES.len()];
    for chunk in body.get(1..).unwrap_or_default().chunks(usize::from(step).max(1)) {
        let result = parts.feed(chunk, &mut |number, data| counts[number] += data.len() as u64);
        if result.is_err() {
            return;
        }
        for (count, range) in counts.iter().zip(&RANGES) {
            assert!(*count <= range.end - range.start);
            assert!(!parts.is_complete() || *count == range.end - range.start);
        }
    }
    assert!(parts.parts() as usize <= RANGES.len());
});
