//! Reads of one object come one after another, and nobody knows how many will come. Is it better to
//! read ranges each time, or to fetch the whole object once? This is the ski rental problem, with
//! measured costs (`docs/design/021-one-after-another.md`).

/// The whole is fetched beside further reads once these took this part of its time: the smaller it
/// is, the less a long series waits, and the more often a short one moves bytes for nothing.
const START: f64 = 0.25;
/// A read takes at most this many times its seconds while the whole object is fetched: the fetch
/// uses no more streams than fill the line, so one more stream has at least half of its speed.
pub const MOST_SLOWDOWN: f64 = 2.0;

/// How to do one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Read its ranges.
    Ranges,
    /// Read its ranges, while the whole object is fetched beside it.
    RangesBesideWhole,
    /// Wait for the whole object.
    Whole,
}

/// The reads of one object so far. All seconds are predicted, by the same costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RentOrBuy {
    spent_s: f64,
}

impl RentOrBuy {
    /// Choose for a read whose ranges take `read_s`, of an object that takes `whole_s`. `rest_s`:
    /// seconds until the whole object is there, if it is being fetched.
    ///
    /// As long as the fetch takes at most `whole_s` of the line, and a read beside it at most
    /// [`MOST_SLOWDOWN`] times its seconds, all reads together wait at most twice the shorter of the
    /// seconds of all ranges and `whole_s`.
    pub fn choose(&mut self, read_s: f64, whole_s: f64, rest_s: Option<f64>) -> Choice {
        let spent_s = self.spent_s + read_s;
        let is_sooner = rest_s.is_some_and(|rest_s| rest_s <= MOST_SLOWDOWN * read_s);
        if is_sooner || spent_s > whole_s {
            return Choice::Whole;
        }
        self.spent_s = spent_s;
        if rest_s.is_some() || spent_s >= START * whole_s {
            Choice::RangesBesideWhole
        } else {
            Choice::Ranges
        }
    }

    /// Read ranges in any case: the whole object cannot be fetched.
    pub fn spend(&mut self, read_s: f64) {
        self.spent_s += read_s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Seconds that reads wait in all, if each of them beside the fetch is slowed by its factor, and
    /// the fetch makes the least progress: what the line carries for reads, it does not for it.
    fn waited_s(reads: &[(f64, f64)], whole_s: f64) -> f64 {
        let mut rule = RentOrBuy::default();
        let mut rest_s: Option<f64> = None;
        let mut waited_s = 0.0;
        for &(read_s, slower) in reads {
            if rest_s.is_some_and(|rest_s| rest_s <= 0.0) {
                break;
            }
            match rule.choose(read_s, whole_s, rest_s) {
                Choice::Ranges => waited_s += read_s,
                Choice::RangesBesideWhole => {
                    waited_s += slower * read_s;
                    let rest = rest_s.unwrap_or(whole_s);
                    rest_s = Some(rest - (slower - 1.0) * read_s);
                }
                Choice::Whole => {
                    waited_s += rest_s.unwrap_or(whole_s);
                    rest_s = Some(0.0);
                }
            }
        }
        waited_s
    }

    #[test]
    fn the_whole_is_fetched_beside_reads_and_at_last_awaited() {
        let mut rule = RentOrBuy::default();
        let choices: Vec<Choice> =
            (0..6).map(|read| rule.choose(0.19, 1.0, (read > 1).then_some(0.9))).collect();
        let both = Choice::RangesBesideWhole;
        assert_eq!(choices, [Choice::Ranges, both, both, both, both, Choice::Whole]);
        // What comes soon is awaited.
        assert_eq!(RentOrBuy::default().choose(0.1, 1.0, Some(0.15)), Choice::Whole);
        let mut rule = RentOrBuy::default();
        rule.spend(0.9);
        assert_eq!(rule.choose(0.2, 1.0, None), Choice::Whole);
    }

    proptest! {
        #[test]
        fn no_series_waits_more_than_twice_the_cheaper_way(
            reads in prop::collection::vec((1e-4f64..1.0, 1.0..MOST_SLOWDOWN), 1..400),
            scale in 1e-3f64..1.0,
        ) {
            let reads: Vec<(f64, f64)> = reads.iter().map(|(s, slow)| (s * scale, *slow)).collect();
            let ranges_s: f64 = reads.iter().map(|(read_s, _)| read_s).sum();
            let waited_s = waited_s(&reads, 1.0);
            prop_assert!(waited_s <= 2.0 * ranges_s.min(1.0) + 1e-9, "{waited_s} {ranges_s}");
        }
    }
}
