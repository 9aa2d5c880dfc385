//! What a store costs, as measured from this host, and the time that follows from it.

use crate::many_ranges::{MultiRange, MultiplexCosts, part_of};
use serde::{Deserialize, Serialize};

/// Answers that share a line evenly end about together, so that between rounds one waits first and
/// then others are sent to: of the shorter of these this part is not hidden behind the longer. Nor
/// is a busy server idle then. As measured, see `docs/design/007-cost-model.md`.
pub(crate) const IDLE: f64 = 0.75;

/// What a request and its answer take on the line besides data: of nginx 280 bytes the answer.
const HEAD_BYTES: u64 = 500;
/// Best read size of a file if nobody measured it: it stays in the L2 cache.
const BUFFER_BYTES: u64 = 256 << 10;

/// The measured costs of a store (its profile). Times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Opening one connection.
    pub connect_s: f64,
    /// Learning an object's size and version, beyond an ordinary request.
    pub open_s: f64,
    /// One request on an idle, open connection.
    pub request: Curve,
    /// All streams together.
    pub total_bytes_per_s: f64,
    /// Requests served in a second, however many streams there are: of those sent at the
    /// same time, each waits for those before it.
    pub requests_per_s: f64,
    /// More requests in flight than this were not measured to help.
    pub streams: u32,
    /// Bytes that are best read at a time, one request after the other, if that was measured.
    #[serde(default)]
    pub buffer_bytes: Option<u64>,
    /// Bytes served in a second, beside the time of each request, if the server was seen to take
    /// time for them: it is a busy computer, and works at all requests at once.
    #[serde(default)]
    pub served_bytes_per_s: Option<f64>,
    /// How requests for many ranges are answered, if a probe saw them honoured.
    #[serde(default)]
    pub multi_range: Option<MultiRange>,
    /// How requests on one connection of HTTP/2 are answered, if a probe saw the server speak it.
    #[serde(default)]
    pub multiplexed: Option<MultiplexCosts>,
    /// Its use by others now; not a part of a profile.
    #[serde(skip)]
    pub busy: Busy,
}

/// The parts of the time in which a store works for others: a wait of ours overlaps with that.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Busy {
    /// The line carries bytes of others, 0 to 1.
    pub line: f64,
    /// The server works at requests of others, 0 to 1.
    pub server: f64,
}

impl Busy {
    /// Whether others use nothing.
    pub fn is_idle(&self) -> bool {
        *self == Busy::default()
    }
}

/// Seconds of one request by its bytes: straight lines between measured points, and beyond the
/// last with the slope of the last two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve(Vec<(f64, f64)>);

/// The load of a read: a number of requests, their ranges and bytes, and those of the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Load {
    /// Requests.
    pub requests: u64,
    /// Ranges of all of them.
    pub ranges: u64,
    /// Bytes of all of them, with those beside the data of parts.
    pub bytes: u64,
    /// Bytes of the largest.
    pub largest: u64,
    /// Whether the requests share one connection of HTTP/2.
    pub multiplexed: bool,
}

/// Requests of one size. `streams` of them are in flight at a time, so they go in rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Requests {
    count: f64,
    streams: f64,
    rounds: f64,
}

impl Requests {
    /// `count` requests over `streams` streams.
    pub fn new(count: f64, streams: f64) -> Requests {
        Requests { count, streams, rounds: (count / streams).ceil() }
    }

    /// Seconds of requests whose answers share a line: each round waits, then transfers. After the
    /// first, a part of the shorter of waiting and transfer is hidden behind the longer.
    #[inline]
    pub fn line_s(self, wait_s: f64, sending_s: f64) -> f64 {
        let others = (self.streams - 1.0) / self.count;
        let overlap = (1.0 - IDLE) * (self.rounds - 1.0);
        self.rounds * wait_s + sending_s - overlap * wait_s.min(others * sending_s)
    }

    /// Seconds of requests to a server that makes one wait for another, each `serve_s`. One alone
    /// takes `each_s`. Its part `own_s` does not overlap with serving others. If the server `works`
    /// (it takes time for bytes), requests of earlier rounds make others wait, too.
    #[inline]
    pub fn queue_s(self, each_s: f64, own_s: f64, serve_s: f64, works: bool) -> f64 {
        let earlier = self.rounds - 1.0;
        let earlier_waits = if works { IDLE * earlier * (self.streams - 1.0) } else { 0.0 };
        let waits = self.count - earlier * self.streams - 1.0 + earlier_waits;
        (self.rounds * each_s)
            .max(self.rounds * own_s + waits * serve_s)
            .max(own_s + (self.count - 1.0) * serve_s)
    }
}

/// Costs that no store can have.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("costs of a store: {name} cannot be {value}")]
pub struct CostsError {
    /// Which of them.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
}

impl Curve {
    /// A fixed time and a speed.
    pub fn affine(latency_s: f64, bytes_per_s: f64) -> Curve {
        Curve(vec![(0.0, latency_s), (1e6, latency_s + 1e6 / bytes_per_s)])
    }

    /// Through points of bytes and seconds, at least two, ascending: [`Costs::check`] refuses others.
    pub fn through(points: Vec<(f64, f64)>) -> Curve {
        Curve(points)
    }

    /// Seconds of a request.
    pub fn seconds(&self, bytes: f64) -> f64 {
        let points = &self.0;
        let upper = points.partition_point(|point| point.0 <= bytes);
        let right = upper.clamp(1, points.len() - 1);
        let ((x0, y0), (x1, y1)) = (points[right - 1], points[right]);
        if upper == 0 { y0 } else { y0 + (bytes - x0) * (y1 - y0) / (x1 - x0) }
    }

    /// The same with other multiples of the latency and of the time beyond it.
    pub(crate) fn stretch(&self, latency: f64, beyond: f64) -> Curve {
        let least = self.seconds(0.0);
        let scale =
            |&(bytes, seconds): &(f64, f64)| (bytes, latency * least + beyond * (seconds - least));
        Curve(self.0.iter().map(scale).collect())
    }

    /// Latency and speed, if the time is one straight line.
    fn line(&self) -> Option<(f64, f64)> {
        match self.0[..] {
            [(0.0, latency), (bytes, seconds)] => Some((latency, bytes / (seconds - latency))),
            _ => None,
        }
    }
}

impl Costs {
    /// A local disk before it was probed: `pread` from the page cache, measured on a 2.5 GHz Xeon.
    pub fn local() -> Costs {
        Costs {
            connect_s: 0.0,
            open_s: 10e-6,
            request: Curve::affine(0.45e-6, 13e9),
            total_bytes_per_s: 13e9,
            requests_per_s: 1e7,
            streams: 1,
            buffer_bytes: None,
            served_bytes_per_s: None,
            multi_range: None,
            multiplexed: None,
            busy: Busy::default(),
        }
    }

    /// A server before it was probed: a continental link of 1 Gb/s with streams of 100 Mb/s.
    pub fn remote() -> Costs {
        Costs {
            connect_s: 0.02,
            open_s: 0.0,
            request: Curve::affine(0.02, 12.5e6),
            total_bytes_per_s: 125e6,
            requests_per_s: 2000.0,
            streams: 8,
            buffer_bytes: None,
            served_bytes_per_s: None,
            multi_range: None,
            multiplexed: None,
            busy: Busy::default(),
        }
    }

    /// Refuse costs that no store can have.
    ///
    /// # Errors
    /// Names the first that is impossible.
    pub fn check(&self) -> Result<(), CostsError> {
        let refuse = |name, value| Err(CostsError { name, value });
        for (name, value) in [("connect_s", self.connect_s), ("open_s", self.open_s)] {
            if !(0.0..1e6).contains(&value) {
                return refuse(name, value);
            }
        }
        let speeds = [
            ("total_bytes_per_s", self.total_bytes_per_s),
            ("requests_per_s", self.requests_per_s),
            ("served_bytes_per_s", self.served_bytes_per_s.unwrap_or(1.0)),
        ];
        for (name, value) in speeds {
            if !(1e-6..1e15).contains(&value) {
                return refuse(name, value);
            }
        }
        if !(1..=1024).contains(&self.streams) {
            return refuse("streams", f64::from(self.streams));
        }
        if let Some(bytes) = self.buffer_bytes
            && !(1 << 10..=1 << 30).contains(&bytes)
        {
            return refuse("buffer_bytes", bytes as f64);
        }
        let vectors = self.multi_range.and_then(|multi_range| multi_range.impossible());
        let multiplex = self.multiplexed.and_then(|multiplex| multiplex.impossible());
        if let Some((name, value)) = vectors.or(multiplex) {
            return refuse(name, value);
        }
        if self.request.0.len() < 2 {
            return refuse("request points", self.request.0.len() as f64);
        }
        let (first_bytes, first_s) = self.request.0[0];
        if !(first_bytes >= 0.0 && (1e-9..1e6).contains(&first_s)) {
            return refuse("request", first_s);
        }
        for pair in self.request.0.windows(2) {
            let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
            if !(x1 > x0 && x1 < 1e18 && y1 >= y0 && y1 < 1e6) {
                return refuse("request", y1);
            }
        }
        Ok(())
    }

    /// Seconds until the first byte of a request.
    pub fn latency_s(&self) -> f64 {
        self.request.seconds(0.0)
    }

    /// Seconds that a load takes a server that makes one request wait for another.
    pub fn served_s(&self, load: Load) -> f64 {
        let bytes_s = self.served_bytes_per_s.map_or(0.0, |per_s| load.bytes as f64 / per_s);
        let request_s = match self.multiplexing(load) {
            Some(multiplex) => multiplex.request_s,
            None => 1.0 / self.requests_per_s,
        };
        load.requests as f64 * request_s + bytes_s + self.further_ranges_s(load)
    }

    /// How the requests of a load share a connection, if they do.
    fn multiplexing(&self, load: Load) -> Option<MultiplexCosts> {
        self.multiplexed.filter(|_| load.multiplexed)
    }

    /// Seconds of the server for the ranges of requests after the first of each.
    fn further_ranges_s(&self, load: Load) -> f64 {
        let range_s = self.multi_range.map_or(0.0, |multi_range| multi_range.range_s);
        load.ranges.saturating_sub(load.requests) as f64 * range_s
    }

    /// Seconds to read a load on `streams` open connections; see [`Costs::requests_s`].
    pub fn seconds(&self, load: Load, streams: u32) -> f64 {
        let requests = Requests::new(load.requests as f64, f64::from(streams));
        if let Some(multiplex) = self.multiplexing(load) {
            return self.multiplexed_s(requests, &multiplex, load);
        }
        let ranges_s = self.further_ranges_s(load);
        self.vectors_s(requests, load.bytes as f64, load.largest as f64, ranges_s)
    }

    /// Seconds of requests on open connections, from their total `bytes` and the `largest`:
    /// `max(r t(0) + b / B_total - (1 - i) (r - 1) min(t(0), (k - 1) b / n / B_total),
    /// r t(b / n), r o + (l - 1 + i (r - 1) (k - 1)) s(b / n), o + (n - 1) s(b / n), t(largest))`,
    /// with `r` rounds, `ceil(n / k)`, `l` requests in the last of them, `s` the time to serve
    /// one, `o` as `t(0) + b / n / W`, and `i` as [`IDLE`]; if the server takes no time for
    /// bytes, `o` is `t(b / n)`, and in the third of these `i` is 0
    /// (`docs/design/007-cost-model.md`). While the line is [`Costs::busy`] with others, `t(0)` in
    /// the first of these is less, while the server is, `o`
    /// (`docs/design/023-bytes-in-flight.md`).
    pub fn requests_s(&self, requests: Requests, bytes: f64, largest: f64) -> f64 {
        self.vectors_s(requests, bytes, largest, 0.0)
    }

    /// The same for requests that have more ranges, for which the server takes `ranges_s` in all.
    fn vectors_s(&self, requests: Requests, bytes: f64, largest: f64, ranges_s: f64) -> f64 {
        if requests.count == 0.0 {
            return 0.0;
        }
        let (size, ranges_s) = (bytes / requests.count, ranges_s / requests.count);
        let latency_s = self.latency_s() + ranges_s;
        let each_s = self.request.seconds(size) + ranges_s;
        let byte_s = self.served_bytes_per_s.map(|per_s| 1.0 / per_s);
        let own_s = byte_s.map_or(each_s, |byte_s| latency_s + size * byte_s);
        let serve_s = 1.0 / self.requests_per_s + ranges_s + size * byte_s.unwrap_or(0.0);
        // While an answer is awaited, a busy line or server is not idle.
        let Busy { line, server } = self.busy;
        let own_s = (1.0 - server) * own_s + server * serve_s;
        requests
            .line_s((1.0 - line) * latency_s, bytes / self.total_bytes_per_s)
            .max(requests.queue_s(each_s, own_s, serve_s, byte_s.is_some()))
            .max(self.request.seconds(largest) + ranges_s)
    }

    /// The same for requests that share one connection: none of them is faster than that, nor all
    /// than the line, and their headers take up both (`docs/design/022-http2.md`).
    fn multiplexed_s(&self, requests: Requests, of: &MultiplexCosts, load: Load) -> f64 {
        if requests.count == 0.0 {
            return 0.0;
        }
        let bytes = load.bytes as f64 + requests.count * f64::from(of.header_bytes);
        let size = bytes / requests.count;
        let byte_s = self.served_bytes_per_s.map_or(0.0, |per_s| 1.0 / per_s);
        let each_s = of.latency_s + size / of.bytes_per_s;
        let serve_s = of.request_s + size * byte_s;
        let Busy { line, server } = self.busy;
        let own_s = (1.0 - server) * (of.latency_s + size * byte_s) + server * serve_s;
        requests
            .line_s((1.0 - line) * of.latency_s, bytes / of.bytes_per_s.min(self.total_bytes_per_s))
            .max(requests.queue_s(each_s, own_s, serve_s, self.served_bytes_per_s.is_some()))
            .max(of.latency_s + load.largest as f64 / of.bytes_per_s)
    }

    /// Seconds of what all readers of the store share that a load takes up.
    pub fn work_s(&self, load: Load) -> f64 {
        let header_bytes =
            self.multiplexing(load).map_or(HEAD_BYTES, |of| u64::from(of.header_bytes));
        let bytes = load.bytes + load.requests * header_bytes;
        bytes as f64 / self.total_bytes_per_s + self.served_s(load)
    }

    /// The costs for each of `parts` readers that read at the same time.
    pub fn share(&self, parts: u32) -> Costs {
        let parts = parts.max(1);
        let even = f64::from(parts);
        self.divide(even, even, part_of(self.streams, parts))
    }

    /// A part of the line, a part of the server, and some of the streams.
    pub(crate) fn divide(&self, line: f64, server: f64, streams: u32) -> Costs {
        Costs {
            total_bytes_per_s: self.total_bytes_per_s / line,
            requests_per_s: self.requests_per_s / server,
            served_bytes_per_s: self.served_bytes_per_s.map(|per_s| per_s / server),
            streams,
            multi_range: self.multi_range.map(|multi_range| MultiRange {
                range_s: multi_range.range_s * server,
                ..multi_range
            }),
            multiplexed: self.multiplexed.map(|multiplex| multiplex.divide(line, server)),
            ..self.clone()
        }
    }

    /// The gap that costs as much as another request, in the simplest case: one
    /// stream whose time is a straight line, a range for each request, and no other limit.
    pub fn single_gap(&self) -> Option<u64> {
        let is_single =
            self.streams == 1 && self.multi_range.is_none() && self.multiplexed.is_none();
        let (latency, speed) = self.request.line().filter(|_| is_single)?;
        let is_limited = !self.busy.is_idle()
            || self.total_bytes_per_s < speed
            || self.served_bytes_per_s.is_some_and(|per_s| per_s < speed)
            || self.requests_per_s * latency < 1.0;
        (!is_limited).then_some((latency * speed) as u64)
    }

    /// The gap that costs as much as another request to a store that is read by one stream.
    pub fn gap_bytes(&self) -> u64 {
        self.single_gap().unwrap_or((self.latency_s() * self.stream_bytes_per_s()) as u64)
    }

    /// Bytes in a second of one request, once they come.
    pub(crate) fn stream_bytes_per_s(&self) -> f64 {
        1e6 / (self.request.seconds(1e6) - self.latency_s()).max(1e-9)
    }

    /// Streams that fill the line, of those that were measured to help.
    pub fn filling_streams(&self) -> u32 {
        let streams = (self.total_bytes_per_s / self.stream_bytes_per_s()).ceil();
        (streams.max(1.0) as u32).min(self.streams.max(1))
    }

    /// Bytes that are best read at a time: those that a study chose, or the default.
    pub fn buffer_bytes(&self) -> u64 {
        self.buffer_bytes.unwrap_or(BUFFER_BYTES)
    }

    /// Bytes of a first request for an unknown object: the bytes that arrive in an eighth
    /// of the latency, so that looking for a header costs next to nothing beyond the round trip;
    /// at least the two blocks in which most headers end.
    pub fn first_bytes(&self) -> u64 {
        ((self.latency_s() / 8.0 * self.stream_bytes_per_s()) as u64).clamp(4 * 2880, 64 << 10)
    }
}

#[cfg(test)]
mod tests;
