//! What the tests of all decoders use.

use super::{Decoder, StreamError};

/// All output of a decoder, for input and output in pieces of these sizes.
pub(super) fn run(
    decoder: &mut dyn Decoder,
    stream: &[u8],
    input: usize,
    output: usize,
) -> Result<Vec<u8>, StreamError> {
    let (mut at, mut end) = (0, 0);
    let (mut all, mut piece) = (Vec::new(), vec![0; output]);
    loop {
        let last = end == stream.len();
        let step = decoder.decode(&stream[at..end], last, &mut piece)?;
        at += step.input_bytes;
        all.extend_from_slice(&piece[..step.output_bytes]);
        if step.end {
            return Ok(all);
        }
        if step.input_bytes + step.output_bytes == 0 {
            assert!(!last, "neither end nor progress at byte {at} of {}", stream.len());
            end = stream.len().min(end + input);
        }
    }
}
