//! Which disk an object belongs on: by a hash of its path, and in proportion to what the disks hold.
//!
//! Rendezvous hashing: each disk draws a number for the object, the best comes first. A disk that is
//! added takes its share from all others, and no object changes between those.

/// The order of disks for an object, as numbers of `disks`: id and capacity of each.
pub(crate) fn order(key: &[u8], disks: &[(u64, u64)]) -> Vec<usize> {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let draw = |&(id, capacity): &(u64, u64)| {
        // Between 0 and 1, neither of them.
        let uniform = ((mix(hash ^ mix(id)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        -uniform.ln() / capacity.max(1) as f64
    };
    let draws: Vec<f64> = disks.iter().map(draw).collect();
    let mut order: Vec<usize> = (0..disks.len()).collect();
    order.sort_by(|&a, &b| draws[a].total_cmp(&draws[b]));
    order
}

/// Spread the bits of a number over all of it (the last steps of SplitMix64).
fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn firsts(disks: &[(u64, u64)]) -> Vec<u64> {
        let first =
            |number: u32| disks[order(format!("run/f{number}.fits").as_bytes(), disks)[0]].0;
        (0..10_000).map(first).collect()
    }

    #[test]
    fn disks_get_objects_in_proportion_to_their_size() {
        let of_each = firsts(&[(11, 1000), (12, 1000), (13, 2000)]);
        let share = |id| of_each.iter().filter(|&&first| first == id).count();
        for (id, expected) in [(11, 2500), (12, 2500), (13, 5000)] {
            assert!(share(id).abs_diff(expected) < 300, "{id}: {}", share(id));
        }
    }

    #[test]
    fn a_new_disk_moves_nothing_between_the_others() {
        let (before, after) = (firsts(&[(1, 7), (2, 7)]), firsts(&[(2, 7), (3, 7), (1, 7)]));
        assert!(before.iter().zip(&after).all(|(before, after)| before == after || *after == 3));
        assert!(after.contains(&3));
    }

    #[test]
    fn the_order_has_each_disk_once() {
        let disks: Vec<(u64, u64)> = (0..9).map(|id| (id, id)).collect();
        let mut numbers = order(b"a", &disks);
        numbers.sort();
        assert_eq!(numbers, (0..9).collect::<Vec<_>>());
        assert_eq!(order(b"a", &[]), Vec::<usize>::new());
    }
}
