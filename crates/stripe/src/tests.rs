//! Objects of a striped store, with what may happen to its servers.

mod test_folders;
mod test_records;
mod test_upkeep;
mod test_writes;

use crate::testing::{BLOCK, TestStripe, bytes_of, flip};
use std::fs;
use std::ops::Range;
use std::sync::atomic::Ordering;
use swathe_store_api::{Source, Store, StoreError};

const SHAPES: [(usize, u32); 6] = [(1, 0), (2, 1), (4, 0), (5, 1), (5, 2), (8, 3)];

fn ranges(size: u64, seed: u64) -> Vec<Range<u64>> {
    let numbers = bytes_of(40, seed);
    let at = |byte: u8| size * u64::from(byte) / 256;
    numbers
        .chunks(2)
        .map(|pair| at(pair[0]).min(at(pair[1]))..at(pair[0]).max(at(pair[1])))
        .collect()
}

fn assert_reads(source: &dyn Source, expected: &[u8], seed: u64) {
    let requests = ranges(expected.len() as u64, seed);
    let pieces: Result<Vec<_>, _> = source.fetch(requests.clone(), 2).collect();
    for (piece, range) in pieces.expect("read").iter().zip(requests) {
        assert!(piece[..] == expected[range.start as usize..range.end as usize], "{range:?}");
    }
}

#[test]
fn what_is_written_is_read() {
    for is_remote in [false, true] {
        for (servers, parity) in SHAPES {
            let stripe = TestStripe::new(servers, parity, is_remote);
            for size in [0, 1, 4096, 100_000, 1_000_001] {
                let bytes = bytes_of(size, servers as u64);
                stripe.put("d.bin", &bytes, true).expect("written");
                let source = stripe.open("d.bin").expect("open");
                assert_eq!(source.len(), size as u64);
                assert_reads(&*source, &bytes, size as u64);
                assert!(stripe.get("d.bin").expect("read") == bytes);
            }
            for server in 0..servers {
                assert_eq!(
                    stripe.files(server, false).len(),
                    1,
                    "the parts of older versions are gone"
                );
            }
        }
    }
}

#[test]
fn a_server_that_cannot_be_connected_to_is_left_out_without_a_hedge() {
    let stripe = TestStripe::new(4, 1, true);
    let bytes = bytes_of(300_000, 7);
    stripe.put("a", &bytes, false).expect("written");
    let source = stripe.open("a").expect("open");
    let behaviour = &stripe.behaviours[2];
    behaviour.is_hanging.store(true, Ordering::Relaxed);
    behaviour.is_unreachable.store(true, Ordering::Relaxed);
    let mut buffer = vec![0; bytes.len()];
    source.read_exact_at(0, &mut buffer).expect("rebuilt");
    assert!(buffer == bytes);
    let servers = stripe.store.servers.iter();
    let silent: Vec<bool> = servers.map(|server| server.is_silent()).collect();
    assert_eq!(silent, [false, false, true, false]);
}

#[test]
fn a_server_without_which_too_few_are_left_is_waited_for() {
    let stripe = TestStripe::new(3, 0, true);
    let bytes = bytes_of(50_000, 7);
    stripe.put("a", &bytes, false).expect("written");
    stripe.behaviours[1].is_unreachable.store(true, Ordering::Relaxed);
    stripe.behaviours[1].delay_ms.store(150, Ordering::Relaxed);
    assert!(stripe.get("a").expect("read") == bytes);
}

#[test]
fn impossible_reads_are_errors() {
    let stripe = TestStripe::new(3, 1, false);
    stripe.put("a", &bytes_of(1000, 1), false).expect("written");
    let source = stripe.open("a").expect("open");
    let mut pieces = source.fetch(vec![0..10, 990..1001, 0..5], 1);
    assert_eq!(pieces.next().map(|piece| piece.expect("read").len()), Some(10));
    let error = pieces.next().expect("an error").expect_err("too long");
    assert!(matches!(error, StoreError::ShortRead { start: 990, expected: 11, found: 10, .. }));
    assert!(pieces.next().is_none());
    assert!(matches!(stripe.open("b"), Err(StoreError::NotFound { .. })));
    for path in
        ["", "d/", "../a", "a/../b", "x\0", ".swathe-stripe", ".swathe-stripe/x", &"n".repeat(200)]
    {
        assert!(matches!(stripe.open(path), Err(StoreError::Unsupported { .. })), "{path:?}");
    }
}

#[test]
fn any_servers_may_be_lost_up_to_parity() {
    for (servers, parity) in SHAPES.into_iter().filter(|(_, parity)| *parity > 0) {
        for first in 0..servers {
            let stripe = TestStripe::new(servers, parity, first % 2 == 0);
            let bytes = bytes_of(300_000, 7);
            stripe.put("a", &bytes, false).expect("written");
            for lost in 0..parity as usize {
                let server = (first + lost) % servers;
                if first % 3 == 0 {
                    fs::remove_file(stripe.part(server)).expect("removed");
                } else {
                    stripe.kill(server, true);
                }
            }
            match stripe.open("a") {
                Ok(source) => {
                    assert_reads(&*source, &bytes, first as u64);
                    assert!(stripe.get("a").expect("read") == bytes);
                }
                // With half of the servers silent no version is sure.
                Err(error) => {
                    assert!(first % 3 != 0 && 2 * parity as usize > servers, "{error}");
                }
            }
        }
    }
}

#[test]
fn too_many_lost_servers_are_named_and_the_rest_is_read() {
    [false, true].into_iter().for_each(read_without_two);
}

fn read_without_two(is_remote: bool) {
    let stripe = TestStripe::new(5, 1, is_remote);
    let bytes = bytes_of(40 * BLOCK as usize, 3);
    stripe.put("a", &bytes, false).expect("written");
    for server in [1, 3] {
        fs::remove_file(stripe.part(server)).expect("removed");
    }
    let source = stripe.open("a").expect("open");
    let error =
        source.fetch(vec![0..bytes.len() as u64], 1).next().expect("one").expect_err("lost");
    let text = error.to_string();
    assert!(
        text.contains("found 3 parts") && text.contains("s1:") && text.contains("s3:"),
        "{text}"
    );
    // In the first row shards 0 and 2 are on servers 2 and 4, shard 1 is on server 3.
    let mut block = vec![0; BLOCK as usize];
    for shard in [0, 2] {
        source.read_exact_at(shard * BLOCK, &mut block).expect("intact");
        assert!(block[..] == bytes[(shard * BLOCK) as usize..((shard + 1) * BLOCK) as usize]);
    }
    assert!(source.read_exact_at(BLOCK, &mut block).is_err());
}

#[test]
fn bytes_that_are_not_what_was_written_are_rebuilt() {
    for (servers, parity) in [(2, 1), (5, 2)] {
        let stripe = TestStripe::new(servers, parity, false);
        let bytes = bytes_of(300_000, 5);
        stripe.put("a", &bytes, false).expect("written");
        for at in 0..parity as usize {
            (0..7).for_each(|flips| flip(&stripe.part(at), 9_000 * flips + at));
        }
        let source = stripe.open("a").expect("open");
        assert_reads(&*source, &bytes, 8);
        assert!(stripe.get("a").expect("read") == bytes);
        let notes = source.take_notes();
        assert!(
            notes.iter().any(|note| note.contains("s0:") && note.contains("stripe check")),
            "{notes:?}"
        );
    }
}

#[test]
fn without_parity_wrong_bytes_are_an_error() {
    let stripe = TestStripe::new(3, 0, false);
    let bytes = bytes_of(100_000, 5);
    stripe.put("a", &bytes, false).expect("written");
    flip(&stripe.part(1), 5000);
    let error = stripe.get("a").expect_err("damaged");
    assert!(matches!(error, StoreError::Differs { .. }), "{error}");
    assert!(error.to_string().contains("s1:"), "{error}");
}

#[test]
fn a_late_part_is_read_around() {
    let stripe = TestStripe::new(5, 1, true);
    let bytes = bytes_of(600_000, 4);
    stripe.put("a", &bytes, false).expect("written");
    // Warm: parts are open.
    let source = stripe.open("a").expect("open");
    assert_reads(&*source, &bytes, 1);
    stripe.behaviours[2].delay_ms.store(300, Ordering::Relaxed);
    assert_reads(&*source, &bytes, 2);
    let [tries, wins, extra, read] = stripe.store.hedges.counts();
    assert!(tries > 0 && wins > 0 && wins <= tries, "{tries} {wins}");
    assert!(extra <= (1 << 20) + read / 20, "{extra} of {read}");
}

#[test]
fn a_slow_server_is_left_out_by_its_costs() {
    let mut stripe = TestStripe::new(5, 1, true);
    let bytes = bytes_of(4_000_000, 4);
    stripe.put("a", &bytes, false).expect("written");
    let store = &stripe.store;
    let servers = store.servers.iter().enumerate().map(|(number, server)| {
        let store = server.store().clone();
        let mut settings = store.settings().clone();
        if number == 1 {
            settings.costs.total_bytes_per_s /= 50.0;
            settings.costs.request = swathe_plan::Curve::affine(1e-4, 1e6);
        }
        let slower = crate::testing::with_settings(&stripe, number, settings);
        std::sync::Arc::new(crate::server::Server::new(slower, ""))
    });
    let servers = servers.collect();
    stripe.store =
        crate::striped_store::StripedStore::of_servers(store.settings().clone(), servers);
    let source = stripe.open("a").expect("open");
    assert_reads(&*source, &bytes, 1);
    assert!(stripe.get("a").expect("read") == bytes);
    let [slow, other] =
        [1, 0].map(|server: usize| stripe.behaviours[server].read_bytes.load(Ordering::Relaxed));
    assert!(5 * slow < other, "{slow} of {other}");
}
