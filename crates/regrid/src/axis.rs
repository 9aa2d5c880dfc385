//! Edges of rows or columns, and the row or column of a coordinate.

use std::f64::consts::PI;

/// Ascending edges of cells side by side.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    edges: Vec<f64>,
    per_degree: f64,
    is_even: bool,
}

/// How the cell of a coordinate is guessed: `(value - start) * per_degree`, rounded down. The guess
/// is right if that number is further than `slack` from a whole one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guess {
    pub(crate) start: f64,
    pub(crate) per_degree: f64,
    pub(crate) slack: f64,
    pub(crate) last: f64,
}

impl Axis {
    /// Cells of the same size. Edges of whole parts of a degree are the nearest numbers to their decimal
    /// values: there the product of a bound and the number of cells is exact.
    pub(crate) fn regular(start: f64, end: f64, cells: usize) -> Axis {
        let number = cells as f64;
        let edge = |at: usize| (start * number + at as f64 * (end - start)) / number;
        let inner = (1..cells).map(edge);
        Axis::of([start].into_iter().chain(inner).chain([end]).collect(), true)
    }

    /// Rows around Gaussian latitudes: edges midway between them, and the poles.
    pub(crate) fn gaussian(number: usize) -> Axis {
        let latitudes = gaussian_latitudes(number);
        let between = latitudes.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0);
        Axis::of([-90.0].into_iter().chain(between).chain([90.0]).collect(), false)
    }

    fn of(edges: Vec<f64>, is_even: bool) -> Axis {
        let cells = edges.len() - 1;
        let per_degree = cells as f64 / (edges[cells] - edges[0]);
        Axis { edges, per_degree, is_even }
    }

    /// The guess of cells; none if they differ in size.
    pub(crate) fn guess(&self) -> Option<Guess> {
        let (cells, start) = (self.cells() as f64, self.edges[0]);
        // An edge is rounded four times; a turned coordinate, their difference and the product once
        // each. All are at most 720 degrees, so 2^-50 of that, in cells, is beyond their sum.
        let slack = (cells + 720.0 * self.per_degree) / f64::from(1 << 25) / f64::from(1 << 25);
        let guess = Guess { start, per_degree: self.per_degree, slack, last: cells - 1.0 };
        self.is_even.then_some(guess)
    }

    pub(crate) fn cells(&self) -> usize {
        self.edges.len() - 1
    }

    pub(crate) fn edges(&self) -> &[f64] {
        &self.edges
    }

    /// The cell with `edges[cell] <= value < edges[cell + 1]`: a guess, mended by the edges
    /// themselves, since a quotient may be rounded over an edge.
    #[inline]
    pub(crate) fn cell(&self, value: f64) -> Option<usize> {
        let cells = self.cells();
        // Comparison of a NaN is false, and a NaN has no cell.
        if !(value >= self.edges[0] && value < self.edges[cells]) {
            return None;
        }
        let mut cell = (((value - self.edges[0]) * self.per_degree) as usize).min(cells - 1);
        while value < self.edges[cell] {
            cell -= 1;
        }
        while value >= self.edges[cell + 1] {
            cell += 1;
        }
        Some(cell)
    }
}

/// The `2 * number` latitudes in degrees, from the south: roots of the Legendre polynomial of that
/// degree, as sines of latitudes, by Newton's method.
#[must_use]
pub fn gaussian_latitudes(number: usize) -> Vec<f64> {
    let degree = 2 * number;
    let mut latitudes = vec![0.0; degree];
    for at in 0..number {
        let mut root = (PI * (at as f64 + 0.75) / (degree as f64 + 0.5)).cos();
        for _ in 0..10 {
            let (value, slope) = legendre(degree, root);
            let step = value / slope;
            root -= step;
            if step.abs() < 1e-15 {
                break;
            }
        }
        latitudes[degree - 1 - at] = root.asin().to_degrees();
        latitudes[at] = -latitudes[degree - 1 - at];
    }
    latitudes
}

/// The Legendre polynomial and its derivative, by the recurrence of Bonnet.
fn legendre(degree: usize, x: f64) -> (f64, f64) {
    let (mut before, mut value) = (1.0, x);
    for k in 2..=degree {
        let k = k as f64;
        (before, value) = (value, ((2.0 * k - 1.0) * x * value - (k - 1.0) * before) / k);
    }
    (value, degree as f64 * (x * value - before) / (x * x - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_the_nearest_numbers_to_their_decimal_values() {
        for (cells, digits) in
            [(3600, 1), (1800, 1), (36_000, 2), (720, 1), (1440, 2), (360_000, 3)]
        {
            let axis = Axis::regular(-180.0, 180.0, cells);
            let step = 360.0 / cells as f64;
            for (at, &edge) in axis.edges().iter().enumerate() {
                let decimal = format!("{:.digits$}", -180.0 + step * at as f64);
                assert_eq!(edge, decimal.parse::<f64>().expect("a number"), "{cells} {at}");
                let cell = (at < cells).then_some(at);
                assert_eq!(axis.cell(edge), cell, "{cells} {at}");
            }
        }
        for (start, end, cells) in [(0.1, 0.7, 7), (-33.33, 12.1, 901), (1e-9, 90.0, 12)] {
            let axis = Axis::regular(start, end, cells);
            assert_eq!((axis.edges()[0], axis.edges()[cells]), (start, end));
            assert!(axis.edges().windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
