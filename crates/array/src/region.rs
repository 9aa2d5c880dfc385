//! Pixel boxes and how they overlap arrays and chunks.

use serde::{Deserialize, Serialize};

/// A pixel box `[start, stop)` per axis, fastest axis first. It may lie partly or wholly
/// outside an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Region {
    /// First pixel of each axis.
    pub start: Vec<i64>,
    /// One past the last pixel of each axis.
    pub stop: Vec<i64>,
}

/// Why a box cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegionError {
    /// The box has another number of axes than the array.
    #[error("region has {region} axes but the array has {array}")]
    Axes {
        /// Axes of the box.
        region: usize,
        /// Axes of the array.
        array: usize,
    },
    /// The box is empty or inverted on an axis.
    #[error("region is empty on axis {axis}: [{start}, {stop})")]
    Empty {
        /// Axis, from 0, fastest first.
        axis: usize,
        /// First pixel of the box.
        start: i64,
        /// One past the last pixel of the box.
        stop: i64,
    },
    /// No pixel of the box lies in the array.
    #[error("region {} does not overlap the image of {}", region.in_words(), pixels(shape))]
    NoOverlap {
        /// The box.
        region: Region,
        /// Shape of the array, fastest axis first.
        shape: Vec<u64>,
    },
    /// Part of the box lies outside the array, which this mode does not allow.
    #[error("region {} lies partly outside the image of {}", region.in_words(), pixels(shape))]
    Partial {
        /// The box.
        region: Region,
        /// Shape of the array, fastest axis first.
        shape: Vec<u64>,
    },
    /// The box holds more pixels than can be counted in memory.
    #[error("region {region} is too large")]
    TooLarge {
        /// The box.
        region: Region,
    },
}

/// The part of a box that lies in an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The part inside the array, in array coordinates.
    pub inside: Region,
    /// Whether the whole box is inside.
    pub complete: bool,
}

impl Region {
    /// A box from its corners.
    ///
    /// # Errors
    /// [`RegionError::Axes`] if the corners differ in length, [`RegionError::Empty`] if a
    /// side has no pixel.
    pub fn new(start: Vec<i64>, stop: Vec<i64>) -> Result<Region, RegionError> {
        if start.len() != stop.len() {
            return Err(RegionError::Axes { region: stop.len(), array: start.len() });
        }
        for (axis, (&start, &stop)) in start.iter().zip(&stop).enumerate() {
            if stop <= start || stop.checked_sub(start).is_none() {
                return Err(RegionError::Empty { axis, start, stop });
            }
        }
        Ok(Region { start, stop })
    }

    /// The whole of an array of this shape (no axis may be empty or exceed `i64`).
    pub fn of_shape(shape: &[u64]) -> Region {
        Region {
            start: vec![0; shape.len()],
            stop: shape.iter().map(|&n| i64::try_from(n).unwrap_or(i64::MAX)).collect(),
        }
    }

    /// As a message names it: first and last pixel of each axis, `x 0 to 9, y 5 to 5`.
    fn in_words(&self) -> String {
        let span = |(axis, (start, stop)): (usize, (&i64, &i64))| {
            let last = stop.saturating_sub(1);
            match axis {
                0 => format!("x {start} to {last}"),
                1 => format!("y {start} to {last}"),
                _ => format!("axis {} {start} to {last}", axis + 1),
            }
        };
        let spans: Vec<String> = self.start.iter().zip(&self.stop).enumerate().map(span).collect();
        spans.join(", ")
    }

    /// Number of axes.
    pub fn axes(&self) -> usize {
        self.start.len()
    }

    /// Pixels along each axis.
    pub fn shape(&self) -> Vec<u64> {
        self.start.iter().zip(&self.stop).map(|(&a, &b)| b.abs_diff(a)).collect()
    }

    /// Pixels in the box.
    ///
    /// # Errors
    /// [`RegionError::TooLarge`] if the count exceeds `usize`.
    pub fn pixels(&self) -> Result<usize, RegionError> {
        self.shape()
            .iter()
            .try_fold(1usize, |n, &side| n.checked_mul(usize::try_from(side).ok()?))
            .ok_or_else(|| RegionError::TooLarge { region: self.clone() })
    }

    /// The part of the box in an array of `shape`.
    ///
    /// # Errors
    /// [`RegionError::Axes`] or [`RegionError::NoOverlap`].
    pub fn overlap(&self, shape: &[u64]) -> Result<Overlap, RegionError> {
        if self.axes() != shape.len() {
            return Err(RegionError::Axes { region: self.axes(), array: shape.len() });
        }
        let array_region = Region::of_shape(shape);
        match self.intersection(&array_region) {
            Some(inside) => Ok(Overlap { complete: inside == *self, inside }),
            None => Err(RegionError::NoOverlap { region: self.clone(), shape: shape.to_vec() }),
        }
    }

    /// The pixels in both boxes, if any.
    pub fn intersection(&self, other: &Region) -> Option<Region> {
        let start: Vec<i64> =
            self.start.iter().zip(&other.start).map(|(&a, &b)| a.max(b)).collect();
        let stop: Vec<i64> = self.stop.iter().zip(&other.stop).map(|(&a, &b)| a.min(b)).collect();
        start.iter().zip(&stop).all(|(a, b)| a < b).then_some(Region { start, stop })
    }

    /// How the pixels of `part` lie in two arrays at once: one that holds exactly `self` and one
    /// that holds exactly `to`. `part` must lie in both.
    pub fn runs(&self, to: &Region, part: &Region) -> Runs {
        self.runs_of_axes(to, part, self.axes())
    }

    /// The same, where runs do not go on beyond the first `most_axes` axes.
    pub fn runs_of_axes(&self, to: &Region, part: &Region, most_axes: usize) -> Runs {
        let length = |axis: usize| part.stop[axis].abs_diff(part.start[axis]);
        let spans = |region: &Region, axis: usize| {
            part.start[axis] == region.start[axis] && part.stop[axis] == region.stop[axis]
        };
        // Axes that `part` spans whole in both arrays join into one run with the next axis.
        let mut elements = 1u64;
        let mut run_axes = 0;
        for axis in 0..self.axes() {
            elements *= length(axis);
            run_axes = axis + 1;
            if run_axes == most_axes || !(spans(self, axis) && spans(to, axis)) {
                break;
            }
        }
        let mut runs = Runs { axes: Vec::new(), next: Some(Run { from: 0, to: 0, elements }) };
        let (mut stride_from, mut stride_to) = (1u64, 1u64);
        let (shape_from, shape_to) = (self.shape(), to.shape());
        let (mut from, mut at) = (0u64, 0u64);
        for axis in 0..self.axes() {
            from += part.start[axis].abs_diff(self.start[axis]).saturating_mul(stride_from);
            at += part.start[axis].abs_diff(to.start[axis]).saturating_mul(stride_to);
            if axis >= run_axes {
                runs.axes.push(Stride { at: 0, count: length(axis), stride_from, stride_to });
            }
            stride_from = stride_from.saturating_mul(shape_from[axis]);
            stride_to = stride_to.saturating_mul(shape_to[axis]);
        }
        runs.next = Some(Run { from, to: at, elements });
        runs
    }
}

/// Lengths of axes as a message names them: `2048 x 1489 pixels`.
fn pixels(shape: &[u64]) -> String {
    let lengths: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("{} pixels", lengths.join(" x "))
}

impl std::fmt::Display for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[")?;
        for (axis, (start, stop)) in self.start.iter().zip(&self.stop).enumerate() {
            if axis > 0 {
                write!(f, ", ")?;
            }
            write!(f, "{start}:{stop}")?;
        }
        write!(f, "]")
    }
}

/// Pixels that are contiguous in both arrays: positions and length in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First element in the array copied from.
    pub from: u64,
    /// First element in the array copied to.
    pub to: u64,
    /// Number of elements.
    pub elements: u64,
}

/// Iterator over the [`Run`]s of a box, in ascending order in both arrays.
#[derive(Clone, Debug)]
pub struct Runs {
    axes: Vec<Stride>,
    next: Option<Run>,
}

#[derive(Clone, Debug)]
struct Stride {
    at: u64,
    count: u64,
    stride_from: u64,
    stride_to: u64,
}

impl Iterator for Runs {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let item = self.next.take()?;
        let mut following = item;
        for axis in &mut self.axes {
            following.from += axis.stride_from;
            following.to += axis.stride_to;
            axis.at += 1;
            if axis.at < axis.count {
                self.next = Some(following);
                break;
            }
            following.from -= axis.count * axis.stride_from;
            following.to -= axis.count * axis.stride_to;
            axis.at = 0;
        }
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn region(start: &[i64], stop: &[i64]) -> Region {
        Region::new(start.to_vec(), stop.to_vec()).unwrap()
    }

    #[test]
    fn empty_box_is_refused() {
        assert!(matches!(Region::new(vec![3], vec![3]), Err(RegionError::Empty { axis: 0, .. })));
        assert!(matches!(
            Region::new(vec![i64::MIN], vec![i64::MAX]),
            Err(RegionError::Empty { .. })
        ));
    }

    #[test]
    fn overlap_trims_and_reports() {
        let overlap = region(&[-5, 2], &[3, 4]).overlap(&[10, 10]).unwrap();
        assert_eq!(overlap.inside, region(&[0, 2], &[3, 4]));
        assert!(!overlap.complete);
        assert!(region(&[10, 0], &[12, 4]).overlap(&[10, 10]).is_err());
    }

    #[test]
    fn a_region_outside_is_told_with_the_size_of_the_image() {
        let error = region(&[5000, 5000], &[5005, 5005]).overlap(&[2048, 1489]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "region x 5000 to 5004, y 5000 to 5004 does not overlap the image of 2048 x 1489 pixels"
        );
        let error = region(&[0, 0, -7], &[1, 1, -5]).overlap(&[5, 6, 7]).unwrap_err();
        let message = "region x 0 to 0, y 0 to 0, axis 3 -7 to -6 does not overlap";
        assert!(error.to_string().starts_with(message), "{error}");
    }

    #[test]
    fn whole_rows_join_into_one_run() {
        let part = region(&[0, 2], &[8, 5]);
        let runs: Vec<_> = Region::of_shape(&[8, 6]).runs(&part, &part).collect();
        assert_eq!(runs, [Run { from: 16, to: 0, elements: 24 }]);
        let runs: Vec<_> = Region::of_shape(&[8, 6]).runs_of_axes(&part, &part, 1).collect();
        assert_eq!(
            runs.iter().map(|run| (run.from, run.to)).collect::<Vec<_>>(),
            [(16, 0), (24, 8), (32, 16)]
        );
        assert!(runs.iter().all(|run| run.elements == 8));
    }

    proptest! {
        #[test]
        fn runs_visit_each_pixel_of_the_part_once(
            sides in prop::collection::vec((1u64..6, 0i64..6, 1i64..6), 1..4)
        ) {
            let shape: Vec<u64> = sides.iter().map(|s| s.0).collect();
            let part = region(
                &sides.iter().map(|s| s.1).collect::<Vec<_>>(),
                &sides.iter().map(|s| s.1 + s.2).collect::<Vec<_>>(),
            );
            let Ok(overlap) = part.overlap(&shape) else { return Ok(()) };
            let mut elements = Vec::new();
            let mut length = 0;
            for run in Region::of_shape(&shape).runs(&overlap.inside, &overlap.inside) {
                prop_assert_eq!(run.to, length);
                length += run.elements;
                elements.extend(run.from..run.from + run.elements);
            }
            let total: u64 = shape.iter().product();
            let expected: Vec<u64> = (0..total).filter(|&element| {
                let mut rest = element;
                shape.iter().enumerate().all(|(axis, &side)| {
                    let at = (rest % side) as i64;
                    rest /= side;
                    overlap.inside.start[axis] <= at && at < overlap.inside.stop[axis]
                })
            }).collect();
            prop_assert_eq!(elements, expected);
        }
    }
}
