//! A chunk of any filters: the first bytes say how long the JSON of the filters is, which were left
//! out and how many bytes it decodes to; the JSON follows, then the chunk.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use swathe_codecs::chunk::{Filters, Scratch};

/// Bytes before the JSON; `seed.py` writes them.
const HEAD_BYTES: usize = 5;

thread_local! {
    // One for all inputs, as one is for all chunks of a thread.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

fuzz_target!(|bytes: &[u8]| {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else { return };
    let &[text_low, text_high, skips, low, high] = head;
    let text_bytes = usize::from(u16::from_le_bytes([text_low, text_high]));
    let Some((text, chunk)) = rest.split_at_checked(text_bytes) else { return };
    let Ok(filters) = serde_json::from_slice::<Filters>(text) else { return };
    let decoded_bytes = usize::from(u16::from_le_bytes([low, high]));
    let mut out = Vec::new();
    SCRATCH.with_borrow_mut(|scratch| {
        let result = filters.decode(chunk, u32::from(skips), decoded_bytes, scratch, &mut out);
        if result.is_ok() {
            assert_eq!(out.len(), decoded_bytes);
            // Buffers that hold another chunk make no difference.
            let mut again = vec![7; 3];
            let mut fresh = Scratch::default();
            filters
                .decode(chunk, u32::from(skips), decoded_bytes, &mut fresh, &mut again)
                .expect("decoded before");
            assert_eq!(out, again);
        }
    });
});
