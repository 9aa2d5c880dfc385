//! Deals messages out to the lanes of a vector and collects the digests.

use sha2::digest::generic_array::GenericArray;

pub(super) const BLOCK_BYTES: usize = 64;

/// FIPS 180-4, 5.3.3.
const INITIAL: [u32; 8] = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

/// With this many messages or fewer left, one by one is at least as fast: a block costs about
/// 900 cycles, in 16 lanes together or alone in `sha2`.
pub(super) const NARROW: usize = 1;

/// A message on its way: whole blocks straight from the caller's bytes, then the padded end.
struct Lane<'a> {
    message: usize,
    whole: &'a [u8],
    padding: [u8; 2 * BLOCK_BYTES],
    padding_bytes: usize,
}

impl<'a> Lane<'a> {
    /// Pads as in FIPS 180-4, 5.1.1: a one bit, zeros, the length in bits.
    fn new(message: usize, bytes: &'a [u8]) -> Self {
        let (whole, rest) = bytes.split_at(bytes.len() - bytes.len() % BLOCK_BYTES);
        let padding_bytes = (rest.len() + 9).next_multiple_of(BLOCK_BYTES);
        let mut padding = [0; 2 * BLOCK_BYTES];
        let bits = (bytes.len() as u64).wrapping_mul(8);
        // Right-aligned, so that the rest is always the end of the buffer.
        let start = padding.len() - padding_bytes;
        padding[start..start + rest.len()].copy_from_slice(rest);
        padding[start + rest.len()] = 0x80;
        padding[2 * BLOCK_BYTES - 8..].copy_from_slice(&bits.to_be_bytes());
        Self { message, whole, padding, padding_bytes }
    }

    /// The bytes that come next and lie together; empty when the message is done.
    fn next(&self) -> &[u8] {
        if self.whole.is_empty() {
            &self.padding[self.padding.len() - self.padding_bytes..]
        } else {
            self.whole
        }
    }

    fn advance(&mut self, bytes: usize) {
        if self.whole.is_empty() {
            self.padding_bytes -= bytes;
        } else {
            self.whole = &self.whole[bytes..];
        }
    }
}

/// The state of `LANES` messages: eight words, each for every lane.
pub(super) type States<const LANES: usize> = [[u32; LANES]; 8];

/// Hashes with `compress`, which takes the state and equally long runs of blocks of all lanes.
///
/// A lane whose message is done takes the next one at once; the longest go first, so that the
/// lanes end close to each other.
pub(super) fn digests<const LANES: usize>(
    messages: &[&[u8]],
    compress: impl Fn(&mut States<LANES>, &[&[u8]; LANES]),
) -> Vec<[u8; 32]> {
    let mut order: Vec<usize> = (0..messages.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(messages[index].len()));
    let mut queue = order.into_iter();

    let mut digests = vec![[0; 32]; messages.len()];
    let mut states: States<LANES> = [[0; LANES]; 8];
    let mut lanes: [Option<Lane>; LANES] = [const { None }; LANES];
    loop {
        for (index, lane) in lanes.iter_mut().enumerate() {
            if lane.is_none()
                && let Some(message) = queue.next()
            {
                *lane = Some(Lane::new(message, messages[message]));
                (0..8).for_each(|word| states[word][index] = INITIAL[word]);
            }
        }
        let active = lanes.iter().flatten().count();
        if active <= NARROW {
            break;
        }
        let run = lanes.iter().flatten().map(|lane| lane.next().len()).min().unwrap_or(0);
        // Lanes without a message repeat the work of another; nobody reads their state.
        let spare = lanes.iter().flatten().next().map_or(&[][..], |lane| &lane.next()[..run]);
        let blocks: [&[u8]; LANES] = std::array::from_fn(|index| {
            lanes[index].as_ref().map_or(spare, |lane| &lane.next()[..run])
        });
        compress(&mut states, &blocks);
        for (index, slot) in lanes.iter_mut().enumerate() {
            let Some(lane) = slot else { continue };
            lane.advance(run);
            if lane.next().is_empty() {
                digests[lane.message] = digest(&states.map(|word| word[index]));
                *slot = None;
            }
        }
    }
    for (index, slot) in lanes.iter_mut().enumerate() {
        if let Some(lane) = slot {
            digests[lane.message] = finish_alone(states.map(|word| word[index]), lane);
        }
    }
    digests
}

fn finish_alone(mut state: [u32; 8], lane: &mut Lane) -> [u8; 32] {
    while !lane.next().is_empty() {
        let run = lane.next().len();
        for block in lane.next().chunks_exact(BLOCK_BYTES) {
            sha2::compress256(&mut state, std::slice::from_ref(GenericArray::from_slice(block)));
        }
        lane.advance(run);
    }
    digest(&state)
}

fn digest(state: &[u32; 8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (word, out) in state.iter().zip(bytes.chunks_exact_mut(4)) {
        out.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}
