//! Seek points and the table of them.

use super::StreamKind;
use serde::{Deserialize, Serialize};

/// A position where decoding can start, with what the decoder needs to start there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeekPoint {
    /// Offset of its first byte, in the decompressed data.
    pub raw: u64,
    /// Offset of the first byte it needs, in the compressed data.
    pub compressed: u64,
    /// Bits of that byte to skip, from the end the format reads first.
    pub bits: u8,
    /// The data before it that the decoder needs, in a form of its own (compressed).
    #[serde(with = "serde_bytes")]
    pub window: Box<[u8]>,
}

impl SeekPoint {
    /// Bytes it takes when stored: three numbers of up to 5 bytes, a length and the window.
    fn bytes(&self) -> usize {
        self.window.len() + 14
    }
}

/// The seek points of one stream known so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeekTable {
    /// The format.
    pub kind: StreamKind,
    /// In ascending order, without repeats.
    pub points: Vec<SeekPoint>,
    /// Bytes of the decompressed data, once its end was seen.
    pub raw_len: Option<u64>,
}

impl SeekTable {
    /// A table of no points.
    pub fn new(kind: StreamKind) -> SeekTable {
        SeekTable { kind, points: Vec::new(), raw_len: None }
    }

    /// The last point at or before an offset in the decompressed data.
    pub fn nearest(&self, raw: u64) -> Option<&SeekPoint> {
        let after = self.points.partition_point(|point| point.raw <= raw);
        after.checked_sub(1).map(|index| &self.points[index])
    }

    /// Bytes it takes when stored, closely.
    pub fn bytes(&self) -> usize {
        self.points.iter().map(SeekPoint::bytes).sum()
    }

    /// Add points, in ascending order; those not beyond the last one known are skipped.
    pub fn extend(&mut self, points: Vec<SeekPoint>) {
        for point in points {
            if self.points.last().is_none_or(|last| last.raw < point.raw) {
                self.points.push(point);
            }
        }
    }

    /// Drop points, evenly, until the table takes at most `max_bytes`.
    pub fn thin(&mut self, max_bytes: usize) {
        while self.bytes() > max_bytes && !self.points.is_empty() {
            // Of n points keep as many as fit, spread over all of them.
            let keep = (self.points.len() * max_bytes / self.bytes()).min(self.points.len() - 1);
            let count = self.points.len();
            let mut index = 0;
            self.points.retain(|_| {
                let is_retained = (index + 1) * keep / count > index * keep / count;
                index += 1;
                is_retained
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(raw: u64, window: usize) -> SeekPoint {
        SeekPoint { raw, compressed: raw / 2, bits: 3, window: vec![0; window].into() }
    }

    fn table(points: u64, window: usize) -> SeekTable {
        let mut table = SeekTable::new(StreamKind::Gzip);
        table.extend((0..points).map(|i| point(i * 100, window)).collect());
        table
    }

    #[test]
    fn nearest_is_at_or_before() {
        let table = table(5, 0);
        assert_eq!(table.nearest(0).unwrap().raw, 0);
        assert_eq!(table.nearest(99).unwrap().raw, 0);
        assert_eq!(table.nearest(100).unwrap().raw, 100);
        assert_eq!(table.nearest(u64::MAX).unwrap().raw, 400);
        assert!(SeekTable::new(StreamKind::Gzip).nearest(7).is_none());
    }

    #[test]
    fn known_points_are_not_repeated() {
        let mut table = table(5, 0);
        table.extend(vec![point(300, 0), point(400, 0), point(450, 0)]);
        assert_eq!(
            table.points.iter().map(|p| p.raw).collect::<Vec<_>>(),
            [0, 100, 200, 300, 400, 450]
        );
    }

    #[test]
    fn thinning_keeps_points_spread_and_within_the_bytes() {
        let mut table = table(100, 1000);
        table.thin(10_500);
        assert!(table.bytes() <= 10_500);
        assert!(table.points.len() >= 9, "{}", table.points.len());
        let gaps: Vec<u64> = table.points.windows(2).map(|w| w[1].raw - w[0].raw).collect();
        assert!(gaps.iter().max().unwrap() <= &(2 * gaps.iter().min().unwrap()), "{gaps:?}");
        table.thin(0);
        assert!(table.points.is_empty());
    }
}
