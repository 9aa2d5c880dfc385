//! Shards of parity: computed from those of data, and lost shards computed from the others.
//!
//! One shard of parity is the exclusive or of the data. More are a Reed-Solomon code over GF(2^8)
//! with a Cauchy matrix: each square submatrix of it has an inverse. Byte `i` of a shard depends only
//! on byte `i` of the others. So a range of a shard can be computed from the same range of others.

use rustfs_erasure_codec::galois_8::ReedSolomon;
use rustfs_erasure_codec::{CodecOptions, MatrixMode};

/// What a record says of the code.
pub(crate) fn code_name(parity: u32) -> &'static str {
    match parity {
        0 => "none",
        1 => "xor",
        _ => "reed-solomon gf(2^8) 0x11d cauchy",
    }
}

/// Computes shards of a row.
pub(crate) struct Parity {
    data: usize,
    parity: usize,
    codec: Option<ReedSolomon>,
}

impl Parity {
    /// For rows of `data` and `parity` shards.
    pub(crate) fn new(data: u32, parity: u32) -> Parity {
        let (data, parity) = (data as usize, parity as usize);
        let codec = (parity > 1).then(|| {
            let options = CodecOptions::builder().matrix_mode(MatrixMode::Cauchy).build();
            let codec = ReedSolomon::with_options(data, parity, options);
            codec.expect("a layout has at most 64 shards, the field 256")
        });
        Parity { data, parity, codec }
    }

    /// The shards of parity of these shards of data, all equally long.
    pub(crate) fn encode(&self, data: &[&[u8]]) -> Vec<Vec<u8>> {
        let length = data.first().map_or(0, |shard| shard.len());
        let mut parity = vec![vec![0; length]; self.parity];
        match &self.codec {
            Some(codec) if length > 0 => {
                codec.encode_sep(data, &mut parity).expect("the shards are of one length");
            }
            _ => parity.iter_mut().for_each(|sum| data.iter().for_each(|shard| xor(sum, shard))),
        }
        parity
    }

    /// Compute the shards that are wanted: `shards` are as many as there is data, or more, all
    /// equally long; the others are `None`.
    pub(crate) fn rebuild(&self, shards: &mut [Option<Vec<u8>>], targets: &[usize]) {
        let present: Vec<usize> = (0..shards.len()).filter(|&at| shards[at].is_some()).collect();
        debug_assert!(present.len() >= self.data, "{} of {}", present.len(), self.data);
        let length = present.first().map_or(0, |&at| shards[at].as_ref().map_or(0, Vec::len));
        match &self.codec {
            Some(codec) if length > 0 => {
                let is_wanted: Vec<bool> =
                    (0..shards.len()).map(|at| targets.contains(&at)).collect();
                codec.reconstruct_some(shards, &is_wanted).expect("enough shards of one length");
            }
            _ => {
                for &at in targets {
                    let mut sum = vec![0; length];
                    let others = present.iter().filter(|&&other| other != at);
                    others
                        .filter_map(|&other| shards[other].as_ref())
                        .for_each(|other| xor(&mut sum, other));
                    shards[at] = Some(sum);
                }
            }
        }
    }
}

fn xor(sum: &mut [u8], shard: &[u8]) {
    sum.iter_mut().zip(shard).for_each(|(sum, byte)| *sum ^= byte);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shards(data: usize, length: usize, seed: u64) -> Vec<Vec<u8>> {
        let mut state = seed | 1;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u8
        };
        (0..data).map(|_| (0..length).map(|_| next()).collect()).collect()
    }

    proptest! {
        #[test]
        fn any_loss_of_as_many_shards_as_parity_is_rebuilt(
            data in 1usize..9,
            parity in 0usize..5,
            length in 0usize..300,
            seed: u64,
        ) {
            let code = Parity::new(data as u32, parity as u32);
            let mut all = shards(data, length, seed);
            let views: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
            let extra = code.encode(&views);
            all.extend(extra);
            // Lost: a run that begins somewhere, around the end.
            let start = seed as usize % all.len();
            let lost: Vec<usize> = (0..parity).map(|at| (start + at) % all.len()).collect();
            let mut rest: Vec<Option<Vec<u8>>> = all.iter().cloned().map(Some).collect();
            lost.iter().for_each(|&at| rest[at] = None);
            code.rebuild(&mut rest, &lost);
            for at in lost {
                prop_assert_eq!(rest[at].as_ref(), Some(&all[at]));
            }
        }
    }

    /// Print the rates of one core, a line of JSON for each code: a benchmark.
    #[test]
    #[ignore = "prints rates"]
    fn parity_rates() {
        const ROUNDS: usize = 41;
        for (data, parity) in [(4, 1), (4, 2), (8, 3)] {
            let code = Parity::new(data, parity);
            let bytes = data as usize * (1 << 20);
            let mut all = shards(data as usize, 1 << 20, 5);
            let mut seconds = [Vec::new(), Vec::new()];
            for _ in 0..ROUNDS {
                let views: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
                let begin = std::time::Instant::now();
                let extra = std::hint::black_box(code.encode(std::hint::black_box(&views)));
                seconds[0].push(begin.elapsed().as_secs_f64());
                let mut rest: Vec<Option<Vec<u8>>> = all.drain(..).map(Some).collect();
                rest.extend(extra.into_iter().map(Some));
                let first = rest[0].take();
                let begin = std::time::Instant::now();
                code.rebuild(std::hint::black_box(&mut rest), &[0]);
                seconds[1].push(begin.elapsed().as_secs_f64());
                assert_eq!(rest[0], first);
                all.extend(rest.into_iter().take(data as usize).flatten());
            }
            let [encode, rebuild] = seconds.map(|mut times| {
                times.sort_by(f64::total_cmp);
                bytes as f64 / times[ROUNDS / 2] / 1e9
            });
            println!(
                "{{\"data\": {data}, \"parity\": {parity}, \"encode_gb_per_s\": {encode:.3}, \
                 \"rebuild_gb_per_s\": {rebuild:.3}}}"
            );
        }
    }

    #[test]
    fn the_code_stays_what_objects_were_written_with() {
        let data: [&[u8]; 3] = [b"first", b"other", b"third"];
        assert_eq!(Parity::new(3, 1).encode(&data), [[125, 117, 115, 100, 98]]);
        let sums = Parity::new(3, 2).encode(&data);
        assert_eq!(sums, GOLDEN);
    }

    /// Of the code of the first version: other values would mean that no stripe can be rebuilt.
    const GOLDEN: [[u8; 5]; 2] = [[239, 117, 115, 20, 113], [105, 85, 181, 40, 226]];
}
