//! A gzip, bzip2 or compress stream, decoded in pieces, and again from the seek points found.

#![no_main]

use libfuzzer_sys::fuzz_target;
use swathe_codecs::stream::{self, Decoder, SeekPoint, StreamError, StreamKind};

/// Bytes before the stream's own: the kind, and a seed for the sizes of pieces.
const HEAD_BYTES: usize = 2;
/// Decoding stops here.
const MOST_BYTES: usize = 3 << 20;
/// Seek points decoding is resumed at.
const RESTARTS: usize = 3;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[kind, seed], input)) = bytes.split_first_chunk::<HEAD_BYTES>() else { return };
    let kinds = [StreamKind::Gzip, StreamKind::Bzip2, StreamKind::Compress];
    let kind = kinds[usize::from(kind % 3)];
    let whole = decode(stream::start(kind, true), input, Pieces { state: 0 });
    let pieces = decode(stream::start(kind, true), input, Pieces { state: u64::from(seed) });
    agree(&whole, &pieces, 0);
    // After a seek point, some of a stream's checksums cannot be told; from its start all can.
    if let (Some(Err(error)), Some(Ok(()))) = (&whole.end, &pieces.end) {
        panic!("a damaged stream is sound when decoded in pieces: {error}");
    }
    let step = (whole.points.len() / RESTARTS).max(1);
    for point in whole.points.iter().step_by(step) {
        let raw = point.raw as usize;
        assert!(raw <= whole.out.len() && point.compressed as usize <= input.len());
        let decoder = stream::resume(kind, point, false).expect("the decoder made this point");
        let tail = decode(decoder, &input[point.compressed as usize..], Pieces { state: 0 });
        agree(&whole, &tail, raw);
    }
    // A point of another stream, as a damaged index might give.
    let strange = SeekPoint {
        raw: 0,
        compressed: 0,
        bits: seed % 16,
        window: input[..input.len().min(64)].into(),
    };
    if let Ok(decoder) = stream::resume(kind, &strange, true) {
        decode(decoder, input, Pieces { state: 0 });
    }
});

/// What came out of a stream.
struct Decoding {
    out: Vec<u8>,
    points: Vec<SeekPoint>,
    /// Whether it ended, was damaged, or was too long.
    end: Option<Result<(), StreamError>>,
}

/// Both hold the same data, as far as both go. Errors may be noticed at other bytes.
fn agree(whole: &Decoding, other: &Decoding, from: usize) {
    let expected = &whole.out[from..];
    let common = expected.len().min(other.out.len());
    assert!(expected[..common] == other.out[..common], "other data from byte {from}");
    if let (Some(Ok(())), Some(Ok(()))) = (&whole.end, &other.end) {
        assert_eq!(expected.len(), other.out.len());
    }
    if let (Some(Ok(())), Some(Err(error))) = (&whole.end, &other.end) {
        panic!("a sound stream is damaged when decoded otherwise, from {from}: {error}");
    }
}

/// Sizes of pieces of input and output.
struct Pieces {
    /// 0: as large as can be.
    state: u64,
}

impl Pieces {
    fn next(&mut self, most: usize) -> usize {
        if self.state == 0 {
            return most;
        }
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        // Mostly small, some large.
        let bits = (self.state >> 59) % 17;
        ((self.state >> 33) as usize & ((1 << bits) - 1)).min(most)
    }
}

fn decode(mut decoder: Box<dyn Decoder>, input: &[u8], mut pieces: Pieces) -> Decoding {
    let mut decoding = Decoding { out: Vec::new(), points: Vec::new(), end: None };
    let mut buffer = vec![0; 1 << 16];
    let (mut start, mut end) = (0, 0);
    let mut idle = 0;
    while decoding.out.len() < MOST_BYTES {
        let last = end == input.len();
        let room = pieces.next(buffer.len()).max(1);
        let step = match decoder.decode(&input[start..end], last, &mut buffer[..room]) {
            Ok(step) => step,
            Err(error) => {
                decoding.end = Some(Err(error));
                break;
            }
        };
        assert!(step.input_bytes <= end - start && step.output_bytes <= room);
        start += step.input_bytes;
        decoding.out.extend_from_slice(&buffer[..step.output_bytes]);
        decoding.points.extend(decoder.take_points());
        if step.end {
            decoding.end = Some(Ok(()));
            break;
        }
        if step.input_bytes == 0 && step.output_bytes == 0 {
            idle += 1;
            assert!(!last || idle < 4, "no progress with all input at byte {start}");
            end = input.len().min(end + pieces.next(1 << 16).max(1));
        } else {
            idle = 0;
        }
    }
    assert!(decoding.points.is_sorted_by(|a, b| a.raw <= b.raw));
    decoding
}
