//! The runs that are left in a text.

/// The state of expanding a text. After four equal bytes a text has the number of those that
/// follow; this never reaches from one block into the next.
#[derive(Default)]
pub(super) struct Runs {
    /// Next byte of the text.
    at: usize,
    /// Up to here the text is as it is to be.
    plain: usize,
    /// How often the byte before comes again, once `at` is at `plain`.
    again: usize,
}

impl Runs {
    pub(super) fn is_done(&self, text: &[u8]) -> bool {
        self.at == text.len() && self.again == 0
    }

    /// Fills `out` from the text, as far as it reaches; returns the bytes filled.
    pub(super) fn expand(&mut self, text: &[u8], out: &mut [u8]) -> usize {
        let mut out_at = 0;
        while out_at < out.len() {
            let room = &mut out[out_at..];
            if self.at < self.plain {
                let bytes = (self.plain - self.at).min(room.len());
                room[..bytes].copy_from_slice(&text[self.at..self.at + bytes]);
                self.at += bytes;
                out_at += bytes;
                if self.at < self.plain {
                    break;
                }
                // The number after a run, which the search below left out.
                if self.again > 0 {
                    self.again -= 1;
                    self.at += 1;
                }
            } else if self.again > 0 {
                let bytes = self.again.min(room.len());
                room[..bytes].fill(text[self.plain - 1]);
                self.again -= bytes;
                out_at += bytes;
            } else if self.at < text.len() {
                let four = text[self.at..].windows(4).position(|four| {
                    let four = u32::from_ne_bytes([four[0], four[1], four[2], four[3]]);
                    four == four.rotate_left(8)
                });
                self.plain = four.map_or(text.len(), |four| self.at + four + 4);
                // One too many, so that a number of 0 differs from no number at all.
                self.again = text.get(self.plain).map_or(0, |again| usize::from(*again) + 1);
            } else {
                break;
            }
        }
        out_at
    }

    /// The CRC of the whole text: bits in the other order than everyone's, hence the reversals.
    pub(super) fn crc(&mut self, text: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        let mut bytes = [0; 4096];
        loop {
            let count = self.expand(text, &mut bytes);
            if count == 0 {
                return hasher.finalize().reverse_bits();
            }
            bytes.iter_mut().for_each(|byte| *byte = byte.reverse_bits());
            hasher.update(&bytes[..count]);
        }
    }
}
