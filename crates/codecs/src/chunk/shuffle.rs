//! Shuffle: the planes of the bytes of elements, put together again.

use super::error::FilterError;

/// Elements whose bytes are put together at a time: one vector of each plane.
const BLOCK: usize = 16;

/// Check the size of an element.
pub(super) fn validate(filter: &'static str, size: u32) -> Result<(), FilterError> {
    if (1..=1 << 16).contains(&size) {
        return Ok(());
    }
    let (what, expected) = ("size of an element", "1 to 65536 bytes");
    Err(FilterError::Parameter { filter, what, expected, found: i64::from(size) })
}

/// Undo a shuffle. Bytes after the last whole element were not shuffled. `out` is as long as
/// `bytes`.
pub(super) fn unshuffle(bytes: &[u8], size: usize, out: &mut [u8]) {
    let count = bytes.len() / size.max(1);
    let (planes, rest) = bytes.split_at(count * size);
    let (elements, out_rest) = out[..bytes.len()].split_at_mut(count * size);
    out_rest.copy_from_slice(rest);
    match size {
        0 | 1 => elements.copy_from_slice(planes),
        2 => interleave::<2>(planes, count, elements),
        4 => interleave::<4>(planes, count, elements),
        8 => interleave::<8>(planes, count, elements),
        _ => {
            for (byte, plane) in planes.chunks_exact(count.max(1)).enumerate() {
                for (element, value) in elements.chunks_exact_mut(size).zip(plane) {
                    element[byte] = *value;
                }
            }
        }
    }
}

/// Interleave `N` planes of `count` bytes.
fn interleave<const N: usize>(planes: &[u8], count: usize, out: &mut [u8]) {
    let planes: [&[u8]; N] = std::array::from_fn(|plane| &planes[plane * count..][..count]);
    let elements = out.as_chunks_mut::<N>().0;
    let (blocks, rest) = elements.as_chunks_mut::<BLOCK>();
    for (i, block) in blocks.iter_mut().enumerate() {
        let parts: [[u8; BLOCK]; N] = std::array::from_fn(|plane| {
            planes[plane][i * BLOCK..].first_chunk().copied().unwrap_or_default()
        });
        for (k, element) in block.iter_mut().enumerate() {
            *element = std::array::from_fn(|plane| parts[plane][k]);
        }
    }
    for (k, element) in rest.iter_mut().enumerate() {
        *element = planes.map(|plane| plane[count - count % BLOCK + k]);
    }
}
