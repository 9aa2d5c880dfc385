//! Which chunk holds what of an array.

use swathe_array::Region;

/// An array divided into chunks, which are numbered with the fastest axis first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkGrid {
    /// Elements of the array along each axis, fastest first.
    pub shape: Vec<u64>,
    /// Elements of a chunk along each axis.
    pub chunk_shape: Vec<u64>,
    /// Whether chunks at the far edges are stored whole, with elements outside the array; else they
    /// are smaller.
    pub is_padded: bool,
}

impl ChunkGrid {
    /// Number of chunks; `None` if they cannot be counted.
    pub fn count(&self) -> Option<u64> {
        let mut axes = self.shape.iter().zip(&self.chunk_shape);
        axes.try_fold(1u64, |count, (&side, &chunk)| count.checked_mul(side.div_ceil(chunk)))
    }

    /// The place of a chunk in the grid, counted in chunks, fastest axis first.
    pub fn place(&self, number: u64) -> impl Iterator<Item = u64> {
        let mut rest = number;
        self.shape.iter().zip(&self.chunk_shape).map(move |(&side, &chunk)| {
            let along = side.div_ceil(chunk);
            let at = rest % along;
            rest /= along;
            at
        })
    }

    /// The elements of a chunk as it is stored.
    pub fn chunk(&self, number: u64) -> Region {
        let mut start = Vec::with_capacity(self.shape.len());
        let mut stop = Vec::with_capacity(self.shape.len());
        let axes = self.shape.iter().zip(&self.chunk_shape);
        for (at, (&side, &chunk)) in self.place(number).zip(axes) {
            let first = at * chunk;
            start.push(first as i64);
            let end = first + chunk;
            stop.push(if self.is_padded { end } else { side.min(end) } as i64);
        }
        Region { start, stop }
    }

    /// The chunks that hold a region, ascending. The region must lie in the array.
    pub fn chunks_for(&self, region: &Region) -> Vec<u64> {
        let mut numbers = vec![0];
        let mut stride = 1;
        for (axis, (&side, &chunk)) in self.shape.iter().zip(&self.chunk_shape).enumerate() {
            let first = region.start[axis].unsigned_abs() / chunk;
            let last = (region.stop[axis] - 1).unsigned_abs() / chunk;
            numbers = (first..=last)
                .flat_map(|at| numbers.iter().map(move |number| number + at * stride))
                .collect();
            stride *= side.div_ceil(chunk);
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A grid and a region of its array.
    fn grid_and_region() -> impl Strategy<Value = (ChunkGrid, Region)> {
        let axis = (1u64..12, 1u64..6).prop_flat_map(|(side, chunk)| {
            (Just(side), Just(chunk), 0..side).prop_flat_map(|(side, chunk, start)| {
                (Just(side), Just(chunk), Just(start), start + 1..=side)
            })
        });
        prop::collection::vec(axis, 1..4).prop_map(|axes| {
            let grid = ChunkGrid {
                shape: axes.iter().map(|axis| axis.0).collect(),
                chunk_shape: axes.iter().map(|axis| axis.1).collect(),
                is_padded: false,
            };
            let region = Region {
                start: axes.iter().map(|axis| axis.2 as i64).collect(),
                stop: axes.iter().map(|axis| axis.3 as i64).collect(),
            };
            (grid, region)
        })
    }

    proptest! {
        #[test]
        fn the_chunks_of_a_region_are_those_that_overlap_it((grid, region) in grid_and_region()) {
            let all = 0..grid.count().unwrap();
            let overlap = |number: &u64| grid.chunk(*number).intersection(&region).is_some();
            prop_assert_eq!(grid.chunks_for(&region), all.filter(overlap).collect::<Vec<_>>());
        }

        #[test]
        fn padded_chunks_are_as_large_as_they_say((grid, _) in grid_and_region()) {
            let padded = ChunkGrid { is_padded: true, ..grid.clone() };
            for number in 0..grid.count().unwrap() {
                let chunk = padded.chunk(number);
                prop_assert_eq!(&chunk.start, &grid.chunk(number).start);
                prop_assert_eq!(&chunk.shape(), &grid.chunk_shape);
            }
        }

        #[test]
        fn chunks_hold_each_element_once((grid, _) in grid_and_region()) {
            let elements = (0..grid.count().unwrap()).map(|number| {
                grid.chunk(number).shape().iter().product::<u64>()
            });
            prop_assert_eq!(elements.sum::<u64>(), grid.shape.iter().product::<u64>());
        }
    }
}
