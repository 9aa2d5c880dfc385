//! DATASUM and CHECKSUM (FITS Standard 4.0, section 4.4.2.7 and appendix J).

use crate::card::Card;

/// The ones-complement sum of big-endian 32-bit words, onto `sum`. Bytes that do not fill a word
/// count as if zeros followed.
pub fn datasum(bytes: &[u8], sum: u32) -> u32 {
    let words = bytes.chunks_exact(4);
    let mut rest = [0; 4];
    rest[..words.remainder().len()].copy_from_slice(words.remainder());
    let total = words
        .map(|word| u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]])))
        .fold(0u64, |total, word| {
            // 2^32 words fit before the sum could overflow; larger data carry on the way.
            let total = total + word;
            if total >> 62 != 0 { (total & 0xffff_ffff) + (total >> 32) } else { total }
        });
    let mut total = total + u64::from(u32::from_be_bytes(rest)) + u64::from(sum);
    while total >> 32 != 0 {
        total = (total & 0xffff_ffff) + (total >> 32);
    }
    total as u32
}

/// The 16 characters whose own sum brings that of their HDU to minus zero.
pub fn encode(sum: u32) -> String {
    const EXCLUDED_BYTES: [u8; 13] =
        [0x3a, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f, 0x40, 0x5b, 0x5c, 0x5d, 0x5e, 0x5f, 0x60];
    let value = !sum;
    let mut ascii = [0u8; 16];
    for (index, byte) in value.to_be_bytes().into_iter().enumerate() {
        let quarter = byte / 4 + b'0';
        let mut four = [quarter + byte % 4, quarter, quarter, quarter];
        while four.iter().any(|character| EXCLUDED_BYTES.contains(character)) {
            for pair in [0, 2] {
                if EXCLUDED_BYTES.contains(&four[pair]) || EXCLUDED_BYTES.contains(&four[pair + 1])
                {
                    four[pair] += 1;
                    four[pair + 1] -= 1;
                }
            }
        }
        for (position, character) in four.into_iter().enumerate() {
            ascii[4 * position + index] = character;
        }
    }
    // The value begins in column 12 of its card, so it is turned by one byte.
    ascii.rotate_right(1);
    ascii.iter().map(|&byte| char::from(byte)).collect()
}

/// Put the checksums that a header has in order for its data. The header takes the blocks from
/// `start`; `data` is the data unit, padded or not.
pub(crate) fn update(bytes: &mut [u8], start: usize, data: &[u8]) {
    let sum = datasum(data, 0);
    set(bytes, start, "DATASUM", &sum.to_string());
    if set(bytes, start, "CHECKSUM", "0000000000000000") {
        let checksum = datasum(&bytes[start..], sum);
        set(bytes, start, "CHECKSUM", &encode(checksum));
    }
}

/// Set a string keyword in place; false if it is absent.
fn set(bytes: &mut [u8], start: usize, keyword: &str, value: &str) -> bool {
    let cards = bytes[start..].chunks_exact_mut(80);
    for card_bytes in cards {
        let Ok(text) = <[u8; 80]>::try_from(&*card_bytes) else { continue };
        let card = Card(text);
        if card.is(keyword) && card.has_value() {
            card_bytes.copy_from_slice(&Card::string(keyword, value, &card.comment()).0);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_sum_is_encoded_as_in_the_standard() {
        // FITS Standard 4.0, appendix J.5.
        assert_eq!(encode(868_229_149), "hcHjjc9ghcEghc9g");
    }

    #[test]
    fn sum_carries_around() {
        assert_eq!(datasum(&[0xff; 8], 0), 0xffff_ffff);
        assert_eq!(datasum(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 2], 0), 2);
    }
}
