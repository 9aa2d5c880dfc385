//! The pace of a store in a run: actual seconds for each predicted second.

/// The weight of older units when one more is done.
const AGING: f64 = 0.7;

/// Sums over the units done; the newest counts most, and one unit as predicted counts from the start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    actual_s: f64,
    predicted_s: f64,
}

impl Pace {
    /// As predicted; `unit_s`: predicted seconds of a usual unit.
    pub fn from_prediction(unit_s: f64) -> Pace {
        let unit_s = unit_s.max(1e-9);
        Pace { actual_s: unit_s, predicted_s: unit_s }
    }

    /// Actual seconds for each predicted second.
    pub fn ratio(self) -> f64 {
        self.actual_s / self.predicted_s
    }

    /// The pace after one more unit.
    #[must_use]
    pub fn after(self, actual_s: f64, predicted_s: f64) -> Pace {
        Pace {
            actual_s: AGING * self.actual_s + actual_s.max(0.0),
            predicted_s: AGING * self.predicted_s + predicted_s.max(0.0),
        }
    }

    /// The pace if a unit that is still read ended now: it may be slow already, never fast.
    #[must_use]
    pub fn beside(self, actual_s: f64, predicted_s: f64) -> Pace {
        let after = self.after(actual_s, predicted_s);
        if after.ratio() > self.ratio() { after } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_units_count_more() {
        let mut pace = Pace::from_prediction(2.0);
        assert_eq!(pace.ratio(), 1.0);
        for _ in 0..20 {
            pace = pace.after(4.0, 4.0);
        }
        assert!((pace.ratio() - 1.0).abs() < 1e-9);
        let mut ratios = vec![1.0];
        for _ in 0..10 {
            pace = pace.after(12.0, 4.0);
            ratios.push(pace.ratio());
        }
        assert!(ratios.windows(2).all(|pair| pair[0] < pair[1]), "{ratios:?}");
        assert!(ratios[1] > 1.5 && ratios[3] > 2.0 && ratios[10] > 2.9, "{ratios:?}");
    }

    #[test]
    fn a_unit_that_lasts_counts_before_it_ends_and_only_against_its_store() {
        let pace = Pace::from_prediction(1.0);
        assert_eq!(pace.beside(0.1, 1.0).ratio(), 1.0);
        assert!(pace.beside(5.0, 1.0).ratio() > 3.0);
        assert!(pace.beside(1e6, 1.0).ratio() > 1e5);
        assert!(Pace::from_prediction(0.0).after(0.0, 0.0).ratio().is_finite());
    }
}
