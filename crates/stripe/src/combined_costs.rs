//! What a striped object costs to read, from what each of its servers does.

use crate::layout::Layout;
use swathe_plan::{Costs, Curve};

/// Sizes at which the time of a request is reckoned.
const SIZES: [f64; 8] = [0.0, 4e3, 64e3, 512e3, 2e6, 8e6, 32e6, 128e6];

/// The costs of an object over servers with these: each has an even part of it, and all are waited
/// for.
pub(crate) fn combine(servers: &[&Costs], layout: Layout) -> Costs {
    let Some(&first) = servers.first() else { return Costs::remote() };
    if servers.iter().all(|costs| costs.single_gap().is_some()) {
        let slowest = |costs: &&&Costs| (costs.request.seconds(1e6) * 1e12) as u64;
        return servers
            .iter()
            .max_by_key(slowest)
            .map_or_else(Costs::local, |&costs| costs.clone());
    }
    let count = f64::from(layout.parts()).min(servers.len() as f64);
    let most = |of: fn(&Costs) -> f64| servers.iter().map(|costs| of(costs)).fold(0.0, f64::max);
    let least =
        |of: fn(&Costs) -> f64| servers.iter().map(|costs| of(costs)).fold(f64::INFINITY, f64::min);
    let points = SIZES.map(|bytes| {
        let blocks = (bytes / layout.block_bytes as f64).clamp(1.0, count);
        let seconds = servers.iter().map(|costs| costs.request.seconds(bytes / blocks));
        (bytes, seconds.fold(0.0, f64::max))
    });
    let connections = (least(|costs| f64::from(costs.streams)) * count).clamp(1.0, 1024.0);
    let vectors: Option<Vec<_>> = servers.iter().map(|costs| costs.multi_range).collect();
    let multi_range = vectors.and_then(|all| all.into_iter().min_by_key(|of| of.ranges));
    Costs {
        connect_s: most(|costs| costs.connect_s),
        // The record, then the parts.
        open_s: most(|costs| costs.open_s + costs.latency_s()),
        request: Curve::through(points.to_vec()),
        total_bytes_per_s: least(|costs| costs.total_bytes_per_s) * count,
        requests_per_s: least(|costs| costs.requests_per_s) * count,
        streams: connections as u32,
        buffer_bytes: servers.iter().filter_map(|costs| costs.buffer_bytes).max(),
        served_bytes_per_s: servers
            .iter()
            .filter_map(|costs| costs.served_bytes_per_s)
            .min_by(f64::total_cmp)
            .map(|per_s| per_s * count),
        multi_range,
        multiplexed: None,
        busy: first.busy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        Layout::new(1 << 30, 1 << 20, 3, 1)
    }

    #[test]
    fn servers_add_up_and_the_slowest_is_waited_for() {
        let slow = Costs { connect_s: 0.1, ..Costs::remote() };
        let fast = Costs { total_bytes_per_s: 2.0 * slow.total_bytes_per_s, ..Costs::remote() };
        let all = combine(&[&fast, &slow, &fast, &fast], layout());
        all.check().expect("possible costs");
        assert_eq!((all.connect_s, all.total_bytes_per_s), (0.1, 4.0 * slow.total_bytes_per_s));
        let large = all.request.seconds(100e6) / slow.request.seconds(100e6);
        assert!((0.2..0.3).contains(&large), "{large}");
        assert_eq!(all.request.seconds(1000.0), slow.request.seconds(1000.0));
        assert_eq!(all.streams, 32);
    }

    #[test]
    fn folders_are_read_as_files_are() {
        let all = combine(&[&Costs::local(); 4], layout());
        all.check().expect("possible costs");
        assert_eq!(all.streams, 1);
        assert!(all.single_gap().is_some());
    }
}
