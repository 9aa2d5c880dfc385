//! Edges of rows or columns, and the row or column of a coordinate.

use std::f64::consts::PI;

/// Ascending edges of cells side by side.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    edges: Vec<f64>,
    per_degree: f64,
}

impl Axis {
    /// Cells of the same size. Each edge is rounded once, so the last one is `end`.
    pub(crate) fn regular(start: f64, end: f64, cells: usize) -> Axis {
        let edges = (0..=cells).map(|at| start + (at as f64 * (end - start)) / cells as f64);
        Axis::of(edges.collect())
    }

    /// Rows around Gaussian latitudes: edges midway between them, and the poles.
    pub(crate) fn gaussian(number: usize) -> Axis {
        let latitudes = gaussian_latitudes(number);
        let between = latitudes.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0);
        Axis::of([-90.0].into_iter().chain(between).chain([90.0]).collect())
    }

    fn of(edges: Vec<f64>) -> Axis {
        let cells = edges.len() - 1;
        let per_degree = cells as f64 / (edges[cells] - edges[0]);
        Axis { edges, per_degree }
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
