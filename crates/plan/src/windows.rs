//! Merging of segments into windows that are read at once.

use std::ops::Range;

/// Where a window at its cap may be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Anywhere: the bytes are copied out as they come.
    Anywhere,
    /// Only between segments: each segment (a compressed tile) is needed whole.
    BetweenSegments,
}

/// How far merging may go, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Reach {
    /// A gap up to this long is read through rather than skipped.
    pub gap_bytes: u64,
    /// A window does not grow beyond this, but for a single segment that may not be broken.
    pub cap_bytes: u64,
}

/// Merge `segments`, sorted by their start, into disjoint ascending windows that cover them.
/// Segments may overlap; no byte is in two windows. Linear in segments and windows.
///
/// A window beyond the cap is broken up; a gap at the break is left out.
pub fn windows(segments: &[Range<u64>], reach: Reach, at: Break) -> Vec<Range<u64>> {
    let mut windows = Vec::new();
    each_window(segments, reach, at, &mut |window| windows.push(window));
    windows
}

/// Give each window to `take`.
pub(crate) fn each_window(
    segments: &[Range<u64>],
    reach: Reach,
    at: Break,
    take: &mut impl FnMut(Range<u64>),
) {
    let cap = reach.cap_bytes.max(1);
    let mut rest = segments;
    while let Some(first) = rest.first() {
        let mut end = first.end;
        let count = rest
            .iter()
            .take_while(|segment| {
                let joins = segment.start <= end.saturating_add(reach.gap_bytes);
                end = if joins { end.max(segment.end) } else { end };
                joins
            })
            .count();
        let (group, others) = rest.split_at(count);
        let bytes = end.saturating_sub(first.start);
        match at {
            _ if bytes == 0 => {}
            _ if bytes <= cap => take(first.start..end),
            Break::Anywhere => fill(group, cap, take),
            Break::BetweenSegments => gather(group, cap, take),
        }
        rest = others;
    }
}

/// Cover `group` by windows of up to `size` bytes, each from the end of the last or, if that is
/// in a gap, from the next segment: no others of that size are fewer.
fn fill(group: &[Range<u64>], size: u64, take: &mut impl FnMut(Range<u64>)) {
    let mut window = group[0].start..group[0].start;
    for segment in group {
        while segment.end > window.end {
            let full = window.start.saturating_add(size);
            if segment.start < full {
                window.end = segment.end.min(full);
            }
            if segment.end > window.end {
                take(window.clone());
                let start = window.end.max(segment.start);
                window = start..start;
            }
        }
    }
    take(window);
}

/// Cover `group` by windows that hold whole segments, as many as fit into `cap`. Segments that
/// overlap stay together.
fn gather(group: &[Range<u64>], cap: u64, take: &mut impl FnMut(Range<u64>)) {
    let mut window = group[0].clone();
    for segment in &group[1..] {
        let fits = segment.end.saturating_sub(window.start) <= cap;
        if fits || segment.start < window.end || window.is_empty() {
            window.end = window.end.max(segment.end);
        } else {
            take(std::mem::replace(&mut window, segment.clone()));
        }
    }
    take(window);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REACH: Reach = Reach { gap_bytes: 4, cap_bytes: 20 };

    #[test]
    fn short_gaps_are_read_through() {
        assert_eq!(windows(&[0..2, 6..8, 13..15], REACH, Break::Anywhere), [0..8, 13..15]);
    }

    #[test]
    fn long_segment_is_split_only_where_allowed() {
        assert_eq!(windows(&[0..45], REACH, Break::Anywhere), [0..20, 20..40, 40..45]);
        assert_eq!(windows(std::slice::from_ref(&(0..45)), REACH, Break::BetweenSegments), [0..45]);
    }

    #[test]
    fn a_full_window_is_closed() {
        assert_eq!(windows(&[0..15, 16..30], REACH, Break::BetweenSegments), [0..15, 16..30]);
    }

    proptest! {
        #[test]
        fn windows_cover_all_and_overlap_nowhere(
            mut segments in prop::collection::vec((0u64..400, 0u64..40), 0..40),
            gap_bytes in 0u64..30, cap_bytes in 1u64..60, anywhere: bool,
        ) {
            segments.sort_unstable();
            let segments: Vec<_> = segments.iter().map(|&(a, n)| a..a + n).collect();
            let at = if anywhere { Break::Anywhere } else { Break::BetweenSegments };
            let ranges = windows(&segments, Reach { gap_bytes, cap_bytes }, at);
            for pair in ranges.windows(2) {
                prop_assert!(pair[0].end <= pair[1].start);
            }
            for segment in segments.iter().filter(|s| s.start < s.end) {
                let segment_bytes: u64 = ranges.iter()
                    .map(|w| w.end.min(segment.end).saturating_sub(w.start.max(segment.start)))
                    .sum();
                prop_assert_eq!(segment_bytes, segment.end - segment.start);
                if !anywhere {
                    prop_assert!(ranges.iter().any(|w| w.start <= segment.start && segment.end <= w.end));
                }
            }
            if anywhere {
                prop_assert!(ranges.iter().all(|w| w.end - w.start <= cap_bytes));
            }
        }
    }
}
