//! What servers of HTTP do with many ranges: in one request, or in many on one connection.

use serde::{Deserialize, Serialize};

/// How a server answers a request for many ranges.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MultiRange {
    /// Most ranges of one request.
    pub ranges: u32,
    /// Bytes of the longest `Range` header.
    pub header_bytes: u32,
    /// The server's time for each range after the first, seconds.
    pub range_s: f64,
    /// Bytes that each part has beside its data: boundary and headers.
    pub part_bytes: u32,
    /// Ranges with a gap up to this are answered as one part.
    pub gap_bytes: u32,
}

impl MultiRange {
    /// Largest number of ranges in a request for bytes before `end`.
    pub fn most_ranges(&self, end: u64) -> u32 {
        let digits = end.checked_ilog10().unwrap_or(0) + 1;
        // `bytes=`, and for each range two numbers, a dash and a comma.
        let fitting = self.header_bytes.saturating_sub(6) / (2 * digits + 2);
        self.ranges.min(fitting).max(1)
    }

    /// The first of its numbers that is impossible.
    pub(crate) fn impossible(&self) -> Option<(&'static str, f64)> {
        let numbers = [
            ("multi_range.ranges", f64::from(self.ranges), 2.0, 1e5),
            ("multi_range.header_bytes", f64::from(self.header_bytes), 64.0, 1e6),
            ("multi_range.range_s", self.range_s, 0.0, 10.0),
            ("multi_range.part_bytes", f64::from(self.part_bytes), 0.0, 1e5),
            ("multi_range.gap_bytes", f64::from(self.gap_bytes), 0.0, 1e9),
        ];
        first_outside(&numbers)
    }
}

/// The first number, with its name, that is not between its least and its most.
fn first_outside(numbers: &[(&'static str, f64, f64, f64)]) -> Option<(&'static str, f64)> {
    let outside = numbers.iter().find(|(_, value, least, most)| !(least..=most).contains(&value));
    outside.map(|&(name, value, ..)| (name, value))
}

/// How a server answers requests that share one connection of HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MultiplexCosts {
    /// Most requests in flight on the connection.
    pub requests: u32,
    /// Seconds until the first byte of an answer, if nothing else is on the connection.
    pub latency_s: f64,
    /// The server's time for each further request, seconds.
    pub request_s: f64,
    /// Bytes in a second of the connection.
    pub bytes_per_s: f64,
    /// Bytes of each answer beside its data: headers and frames.
    pub header_bytes: u32,
}

impl MultiplexCosts {
    /// A part of the line, and a part of the server.
    pub(crate) fn divide(self, line: f64, server: f64) -> MultiplexCosts {
        MultiplexCosts {
            requests: part_of(self.requests, line.max(server).ceil() as u32),
            request_s: self.request_s * server,
            bytes_per_s: self.bytes_per_s / line,
            ..self
        }
    }

    /// The first of its numbers that is impossible.
    pub(crate) fn impossible(&self) -> Option<(&'static str, f64)> {
        let numbers = [
            ("multiplexed.requests", f64::from(self.requests), 2.0, 1e5),
            ("multiplexed.latency_s", self.latency_s, 1e-9, 1e6),
            ("multiplexed.request_s", self.request_s, 0.0, 10.0),
            ("multiplexed.bytes_per_s", self.bytes_per_s, 1e-6, 1e15),
            ("multiplexed.header_bytes", f64::from(self.header_bytes), 0.0, 1e6),
        ];
        first_outside(&numbers)
    }
}

/// Connections to a storage that are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Connections that carry one request at a time.
    pub streams: u32,
    /// Whether the one that many requests share is.
    pub multiplexed: bool,
}

impl Connections {
    /// All that reading can use, as of a file.
    pub const ALL: Connections = Connections { streams: u32::MAX, multiplexed: true };

    /// The share of each of `parts` readers.
    pub fn part(self, parts: u32) -> Connections {
        Connections { streams: part_of(self.streams, parts), ..self }
    }
}

impl From<u32> for Connections {
    fn from(streams: u32) -> Connections {
        Connections { streams, multiplexed: false }
    }
}

/// The part of all streams, or open connections, that each of `parts` readers may use: twice its
/// even part, for not all use theirs at the same time (`docs/design/007-cost-model.md`).
pub fn part_of(count: u32, parts: u32) -> u32 {
    count.div_ceil(parts.max(1)).saturating_mul(2).min(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_holds_fewer_ranges_of_a_large_object() {
        let multi_range = MultiRange {
            ranges: 200,
            header_bytes: 7000,
            range_s: 2e-3,
            part_bytes: 100,
            gap_bytes: 0,
        };
        assert_eq!([9, 1 << 20, u64::MAX].map(|end| multi_range.most_ranges(end)), [200, 200, 166]);
        let short = MultiRange { header_bytes: 64, ..multi_range };
        assert_eq!([9, 1 << 20, u64::MAX].map(|end| short.most_ranges(end)), [14, 3, 1]);
    }

    #[test]
    fn readers_may_use_streams_that_others_leave() {
        assert_eq!([1, 2, 3, 10, 64, 1000].map(|parts| part_of(64, parts)), [64, 64, 44, 14, 2, 2]);
        assert_eq!((part_of(0, 1), part_of(u32::MAX, 1)), (0, u32::MAX));
    }
}
