//! Short ranges of servers that prove what they send, and what happens where one does not.

use crate::testing::{TestStripe, bytes_of, flip};
use proptest::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use swathe_store_api::Source;

fn proving(servers: usize, parity: u32) -> TestStripe {
    let stripe = TestStripe::new(servers, parity, true);
    stripe.behaviours.iter().for_each(|behaviour| set(&behaviour.is_proving));
    stripe
}

fn set(flag: &AtomicBool) {
    flag.store(true, Ordering::Relaxed);
}

fn proven_bytes(stripe: &TestStripe) -> u64 {
    let each = stripe.behaviours.iter();
    each.map(|behaviour| behaviour.proven_bytes.load(Ordering::Relaxed)).sum()
}

fn assert_reads(source: &dyn Source, expected: &[u8], requests: &[Range<u64>]) {
    let pieces: Result<Vec<_>, _> = source.fetch(requests.to_vec(), 2).collect();
    let pieces = pieces.expect("read");
    assert_eq!(pieces.len(), requests.len());
    for (piece, range) in pieces.iter().zip(requests) {
        assert!(piece[..] == expected[range.start as usize..range.end as usize], "{range:?}");
    }
}

/// Rows of a cut: short, ascending, apart.
fn rows(size: u64) -> impl Strategy<Value = Vec<Range<u64>>> {
    (0..size / 2, 1u64..3000, 0u64..9000, 1usize..40).prop_map(
        move |(start, length, gap, count)| {
            let starts = (0..count as u64).map(|row| start + row * (length + gap));
            starts.map(|start| start..(start + length)).take_while(|row| row.end <= size).collect()
        },
    )
}

/// What may be wrong with a server.
#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    Dead,
    Unproven,
    Damaged,
    Flipped,
    Changed,
    Gone,
}

fn fault() -> impl Strategy<Value = Fault> {
    use Fault::*;
    prop::sample::select(vec![None, Dead, Unproven, Damaged, Flipped, Changed, Gone])
}

fn inflict(stripe: &TestStripe, server: usize, fault: Fault) {
    let (behaviour, part) = (&stripe.behaviours[server], stripe.part(server));
    match fault {
        Fault::None => {}
        Fault::Dead => stripe.kill(server, true),
        Fault::Unproven => set(&behaviour.lacks_proof),
        Fault::Damaged => set(&behaviour.finds_damage),
        // A server that does not verify sends bytes that are not what was written.
        Fault::Flipped => {
            set(&behaviour.lacks_proof);
            (0..60_000).step_by(997).for_each(|at| flip(&part, at));
        }
        Fault::Changed => {
            let bytes = std::fs::read(&part).expect("read");
            std::fs::remove_file(&part).expect("removed");
            std::fs::write(&part, bytes).expect("written");
        }
        Fault::Gone => std::fs::remove_file(part).expect("removed"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn rows_are_right_whatever_is_wrong_with_one_server(
        rows in rows(200_001), fault in fault(), server in 0usize..4, is_late in any::<bool>(),
    ) {
        prop_assume!(!rows.is_empty());
        let stripe = proving(4, 1);
        let bytes = bytes_of(200_001, 3);
        stripe.put("a", &bytes, false).expect("written");
        let source = stripe.open("a").expect("open");
        if is_late {
            assert_reads(&*source, &bytes, &rows);
        }
        inflict(&stripe, server, fault);
        assert_reads(&*source, &bytes, &rows);
        assert_reads(&*source, &bytes, &rows);
        assert_reads(&*stripe.open("a").expect("open"), &bytes, &rows);
    }
}

#[test]
fn short_ranges_have_proof() {
    let stripe = proving(3, 1);
    let bytes = bytes_of(400_000, 5);
    stripe.put("a", &bytes, false).expect("written");
    let source = stripe.open("a").expect("open");
    assert_reads(&*source, &bytes, &[1001..1201]);
    assert_eq!(proven_bytes(&stripe), 200, "not the bytes around them");
    // A piece of each row of blocks is on this server: its ranges are still short.
    assert!(stripe.get("a").expect("read") == bytes);
    let plain = TestStripe::new(3, 1, true);
    plain.put("a", &bytes, false).expect("written");
    assert!(plain.get("a").expect("read") == bytes);
    assert_eq!(proven_bytes(&plain), 0);
}

#[test]
fn a_late_server_that_proves_is_read_around() {
    let stripe = proving(4, 1);
    let bytes = bytes_of(200_000, 9);
    stripe.put("a", &bytes, false).expect("written");
    let source = stripe.open("a").expect("open");
    let rows: Vec<Range<u64>> = (0..60).map(|row| row * 3001..row * 3001 + 200).collect();
    assert_reads(&*source, &bytes, &rows);
    set(&stripe.behaviours[1].is_hanging);
    assert_reads(&*source, &bytes, &rows);
    stripe.behaviours[1].is_hanging.store(false, Ordering::Relaxed);
}

#[test]
fn too_many_servers_without_proof_are_read_all_the_same() {
    let stripe = proving(3, 0);
    let bytes = bytes_of(100_000, 9);
    stripe.put("a", &bytes, false).expect("written");
    stripe.behaviours.iter().for_each(|behaviour| set(&behaviour.lacks_proof));
    let source = stripe.open("a").expect("open");
    assert_reads(&*source, &bytes, &[5..77, 30_000..30_001, 99_000..100_000]);
    assert_eq!(proven_bytes(&stripe), 0);
}
