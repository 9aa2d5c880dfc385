//! Predictors of TIFF: elements, or bytes of them, as differences to their left.

use super::error::FilterError;

/// Check the parameters of a predictor whose elements have at least `least` bytes.
pub(super) fn validate(
    filter: &'static str,
    least: u32,
    size: u32,
    samples: u32,
    width: u32,
) -> Result<(), FilterError> {
    let error = |what, expected, found: u32| {
        Err(FilterError::Parameter { filter, what, expected, found: i64::from(found) })
    };
    if ![1, 2, 4, 8].contains(&size) || size < least {
        let expected = if least == 1 { "1, 2, 4 or 8 bytes" } else { "2, 4 or 8 bytes" };
        return error("size of an element", expected, size);
    }
    if samples == 0 || samples > 1 << 16 {
        return error("samples of a pixel", "1 to 65536", samples);
    }
    if width == 0 || width > 1 << 24 {
        return error("pixels of a row", "1 to 16777216", width);
    }
    Ok(())
}

/// Rows of `bytes` and of `out`, which are as long.
fn rows<'a>(
    filter: &'static str,
    [size, samples, width]: [u32; 3],
    bytes: &'a [u8],
    out: &'a mut [u8],
) -> Result<impl Iterator<Item = (&'a [u8], &'a mut [u8])>, FilterError> {
    let row_bytes = size as usize * samples as usize * width as usize;
    if !bytes.len().is_multiple_of(row_bytes) {
        return Err(FilterError::Corrupt {
            filter,
            what: "bytes after the last row",
            expected: 0,
            found: (bytes.len() % row_bytes) as i64,
        });
    }
    Ok(bytes.chunks_exact(row_bytes).zip(out.chunks_exact_mut(row_bytes)))
}

/// Undo differences of elements. `shape`: bytes of an element, samples and pixels.
pub(super) fn sum_horizontal(
    shape: [u32; 3],
    big_endian: bool,
    bytes: &[u8],
    out: &mut [u8],
) -> Result<usize, FilterError> {
    let samples = shape[1] as usize;
    for (row, out) in rows("horizontal", shape, bytes, out)? {
        match (shape[0], big_endian) {
            (1, _) => sum_row(row, samples, out, |[a], [b]| [u8::wrapping_add(a, b)]),
            (2, false) => sum_row(row, samples, out, |a, b| {
                u16::from_le_bytes(a).wrapping_add(u16::from_le_bytes(b)).to_le_bytes()
            }),
            (2, true) => sum_row(row, samples, out, |a, b| {
                u16::from_be_bytes(a).wrapping_add(u16::from_be_bytes(b)).to_be_bytes()
            }),
            (4, false) => sum_row(row, samples, out, |a, b| {
                u32::from_le_bytes(a).wrapping_add(u32::from_le_bytes(b)).to_le_bytes()
            }),
            (4, true) => sum_row(row, samples, out, |a, b| {
                u32::from_be_bytes(a).wrapping_add(u32::from_be_bytes(b)).to_be_bytes()
            }),
            (_, false) => sum_row(row, samples, out, |a, b| {
                u64::from_le_bytes(a).wrapping_add(u64::from_le_bytes(b)).to_le_bytes()
            }),
            (_, true) => sum_row(row, samples, out, |a, b| {
                u64::from_be_bytes(a).wrapping_add(u64::from_be_bytes(b)).to_be_bytes()
            }),
        }
    }
    Ok(bytes.len())
}

fn sum_row<const N: usize>(
    row: &[u8],
    samples: usize,
    out: &mut [u8],
    add: impl Fn([u8; N], [u8; N]) -> [u8; N],
) {
    let (row, out) = (row.as_chunks::<N>().0, out.as_chunks_mut::<N>().0);
    if samples == 1 {
        let mut last = [0; N];
        for (out, element) in out.iter_mut().zip(row) {
            last = add(last, *element);
            *out = last;
        }
        return;
    }
    let first = samples.min(row.len());
    out[..first].copy_from_slice(&row[..first]);
    for i in first..row.len() {
        out[i] = add(out[i - samples], row[i]);
    }
}

/// Undo differences of bytes and put elements together from the planes of their bytes. `shape`:
/// bytes of an element, samples and pixels.
pub(super) fn sum_bytes(
    shape: [u32; 3],
    big_endian: bool,
    bytes: &[u8],
    out: &mut [u8],
) -> Result<usize, FilterError> {
    let [size, samples, width] = shape.map(|number| number as usize);
    let count = samples * width;
    for (row, out) in rows("floating", shape, bytes, out)? {
        for sample in 0..samples {
            let mut sum = 0u8;
            for (byte, plane) in row.chunks_exact(count).enumerate() {
                let byte = if big_endian { byte } else { size - 1 - byte };
                for i in (sample..count).step_by(samples) {
                    sum = sum.wrapping_add(plane[i]);
                    out[i * size + byte] = sum;
                }
            }
        }
    }
    Ok(bytes.len())
}
