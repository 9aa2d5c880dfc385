//! Counts of each value in each cell, for the mode.

use crate::RegridError;
use std::collections::HashMap;

/// Most different values that a variable may have if its mode is asked for.
pub const MOST_VALUES: usize = 256;
const LARGEST: f64 = 9_007_199_254_740_992.0; // 2^53

/// Values by their numbers, and pixels of each number in each slot.
#[derive(Debug, Default, Clone)]
pub(crate) struct Values {
    values: Vec<i64>,
    numbers: HashMap<i64, u8>,
    counts: Vec<Vec<(u8, u64)>>,
}

impl Values {
    /// Give numbers to values. On an error no value has a new number.
    pub(crate) fn learn(
        &mut self,
        values: impl Iterator<Item = (usize, f64)>,
    ) -> Result<(), RegridError> {
        let count = self.values.len();
        let result = self.learn_each(values);
        if result.is_err() {
            for value in self.values.drain(count..) {
                self.numbers.remove(&value);
            }
        }
        result
    }

    fn learn_each(
        &mut self,
        values: impl Iterator<Item = (usize, f64)>,
    ) -> Result<(), RegridError> {
        let mut last = None;
        for (pixel, value) in values {
            if last == Some(value) {
                continue;
            }
            if value.fract() != 0.0 || value.abs() > LARGEST {
                return Err(RegridError::NotInteger { pixel, value });
            }
            last = Some(value);
            if !self.numbers.contains_key(&(value as i64)) {
                let number = u8::try_from(self.values.len());
                let number = number.map_err(|_| RegridError::TooManyValues)?;
                self.numbers.insert(value as i64, number);
                self.values.push(value as i64);
            }
        }
        Ok(())
    }

    /// Count a value that has a number.
    pub(crate) fn count(&mut self, slot: usize, value: i64, pixels: u64) {
        let Some(&number) = self.numbers.get(&value) else { return };
        if self.counts.len() <= slot {
            self.counts.resize_with(slot + 1, Vec::new);
        }
        let counts = &mut self.counts[slot];
        match counts.iter_mut().find(|(other, _)| *other == number) {
            Some((_, count)) => *count += pixels,
            None => counts.push((number, pixels)),
        }
    }

    /// Values of a slot with their counts.
    pub(crate) fn of(&self, slot: usize) -> impl Iterator<Item = (i64, u64)> + '_ {
        let counts = self.counts.get(slot).into_iter().flatten();
        counts.map(|&(number, count)| (self.values[usize::from(number)], count))
    }

    /// All values that have a number.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.values.iter().map(|&value| (0, value as f64))
    }

    /// The most frequent value of a slot; of several the smallest.
    pub(crate) fn mode(&self, slot: usize) -> Option<i64> {
        self.of(slot).max_by_key(|&(value, count)| (count, std::cmp::Reverse(value))).map(|it| it.0)
    }
}
