//! Checksums that follow a chunk.

use super::error::FilterError;

/// Bytes of a checksum.
pub(super) const BYTES: usize = 4;

fn split<'a>(filter: &'static str, bytes: &'a [u8]) -> Result<(&'a [u8], u32), FilterError> {
    let (content, sum) = bytes.split_last_chunk::<BYTES>().ok_or(FilterError::Short {
        filter,
        expected: BYTES as u64,
        found: bytes.len() as u64,
    })?;
    Ok((content, u32::from_le_bytes(*sum)))
}

fn copy(filter: &'static str, content: &[u8], out: &mut [u8]) -> Result<usize, FilterError> {
    let length = out.len();
    let out =
        out.get_mut(..content.len()).ok_or(super::wrong_size(filter, length, content.len()))?;
    out.copy_from_slice(content);
    Ok(content.len())
}

/// Check the Fletcher checksum, and copy what it is of.
///
/// HDF5 before 1.6.3 stored it with the bytes of both halves old, on little-endian machines.
pub(super) fn check_fletcher32(bytes: &[u8], out: &mut [u8]) -> Result<usize, FilterError> {
    let (content, expected) = split("fletcher32", bytes)?;
    let found = fletcher32(content);
    let old = (found & 0x00ff_00ff) << 8 | found >> 8 & 0x00ff_00ff;
    if expected != found && expected != old {
        return Err(FilterError::Checksum { filter: "fletcher32", expected, found });
    }
    copy("fletcher32", content, out)
}

/// Check the CRC-32C, and copy what it is of.
pub(super) fn check_crc32c(bytes: &[u8], out: &mut [u8]) -> Result<usize, FilterError> {
    let (content, expected) = split("crc32c", bytes)?;
    let found = crc32c::crc32c(content);
    if expected != found {
        return Err(FilterError::Checksum { filter: "crc32c", expected, found });
    }
    copy("crc32c", content, out)
}

/// The sum of big-endian words of 16 bits, and the sum of these sums, each modulo 65535 but never
/// 0 unless all words are.
fn fletcher32(bytes: &[u8]) -> u32 {
    let reduce = |sum: u64| if sum == 0 { 0 } else { (sum - 1) % 65535 + 1 };
    let (mut sum, mut sum_of_sums) = (0u64, 0u64);
    // After 2^16 words the sums are below 2^33 and 2^49.
    for block in bytes.chunks(1 << 17) {
        let (words, odd) = block.as_chunks::<2>();
        for word in words {
            sum += u64::from(u16::from_be_bytes(*word));
            sum_of_sums += sum;
        }
        if let [last] = odd {
            sum += u64::from(*last) << 8;
            sum_of_sums += sum;
        }
        (sum, sum_of_sums) = (reduce(sum), reduce(sum_of_sums));
    }
    (sum_of_sums << 16 | sum) as u32
}
