//! Merging of segments into windows that are read at once.

use std::ops::Range;

/// Where a window that grew to its cap may be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Anywhere: the bytes are copied out as they come.
    Anywhere,
    /// Only between segments: each segment (a compressed tile) is needed whole.
    BetweenSegments,
}

/// How far merging may go, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// A gap up to this long is read through rather than skipped.
    pub gap_bytes: u64,
    /// A window does not grow beyond this, but for a single segment that may not be broken.
    pub cap_bytes: u64,
}

/// Merge `segments`, sorted by their start, into disjoint ascending windows that cover them.
/// Segments may overlap; no byte is in two windows. Linear in segments and windows.
pub fn windows(segments: &[Range<u64>], reach: Reach, at: Break) -> Vec<Range<u64>> {
    let cap = reach.cap_bytes.max(1);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for segment in segments.iter().filter(|segment| segment.start < segment.end) {
        let start = match merged.last_mut() {
            Some(last) if segment.end <= last.end => continue,
            Some(last) if segment.start <= last.end.saturating_add(reach.gap_bytes) => {
                let fits = segment.end - last.start <= cap;
                if fits || (at == Break::BetweenSegments && segment.start < last.end) {
                    last.end = segment.end;
                    continue;
                }
                match at {
                    Break::Anywhere => {
                        let full = last.start.saturating_add(cap);
                        if full > segment.start {
                            last.end = last.end.max(full.min(segment.end));
                        }
                        last.end.max(segment.start)
                    }
                    Break::BetweenSegments => segment.start,
                }
            }
            _ => segment.start,
        };
        push(&mut merged, start..segment.end, cap, at);
    }
    merged
}

fn push(merged: &mut Vec<Range<u64>>, window: Range<u64>, cap: u64, at: Break) {
    if at == Break::BetweenSegments {
        merged.push(window);
        return;
    }
    // Into parts of the same size: the last should not come much earlier than the others.
    let parts = (window.end - window.start).div_ceil(cap);
    let size = (window.end - window.start).div_ceil(parts);
    let mut start = window.start;
    while start < window.end {
        let end = window.end.min(start.saturating_add(size));
        merged.push(start..end);
        start = end;
    }
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
        assert_eq!(windows(&[0..45], REACH, Break::Anywhere), [0..15, 15..30, 30..45]);
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
            let merged = windows(&segments, Reach { gap_bytes, cap_bytes }, at);
            for pair in merged.windows(2) {
                prop_assert!(pair[0].end <= pair[1].start);
            }
            for segment in segments.iter().filter(|s| s.start < s.end) {
                let covered: u64 = merged.iter()
                    .map(|w| w.end.min(segment.end).saturating_sub(w.start.max(segment.start)))
                    .sum();
                prop_assert_eq!(covered, segment.end - segment.start);
                if !anywhere {
                    prop_assert!(merged.iter().any(|w| w.start <= segment.start && segment.end <= w.end));
                }
            }
            if anywhere {
                prop_assert!(merged.iter().all(|w| w.end - w.start <= cap_bytes));
            }
        }
    }
}
