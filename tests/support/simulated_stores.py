"""Stores of known costs, simulated: what a probe measures without a network and without a clock."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from swathe import _swathe
from swathe.costs.probing.probe_schedule import OPENING_BYTES
from swathe.costs.probing.resolve_target import ProbeTarget

PART_BYTES = 100
"""What each part of an answer with many ranges has beside its data."""


@dataclass(frozen=True)
class VectorTiming:
    """What `_swathe.measure_vector` tells of a request."""

    refusal: str | None
    parts: int
    is_ordered: bool
    bytes: int
    seconds: float


@dataclass(frozen=True)
class MultiplexTiming:
    """What `_swathe.measure_multiplexed` tells of requests."""

    refusal: str | None
    bytes: int
    header_bytes: int
    first_byte_s: float
    seconds: float


@dataclass(frozen=True)
class Timing:
    """What `_swathe.measure` tells of one request."""

    bytes: int
    start_s: float
    first_byte_s: float
    end_s: float


def place(root: str = "http://simulated") -> ProbeTarget:
    """Where a simulated store would be."""
    return ProbeTarget(root, f"{root}/o", (f"{root}/o",))


@dataclass
class SimulatedStore:
    """Requests wait `latency_s`, then share a line; each may have its own narrower one.

    Attributes
    ----------
    served_bytes_per_s
        The server is a busy computer: it works at all requests at once, and serves so many of
        their bytes in a second, beside what each request takes. None: it does one after the other.
    noise
        Relative, half of it in each request and half in each call.
    outliers
        Part of the calls (of requests, where these go one after the other) that take 2 to 10
        times as long.
    vector_ranges
        Most ranges of a request; with more, the server sends the whole object.
    shared_requests
        Most requests in flight on a connection of HTTP/2; 0: the server does not speak it.
    clock_s, bytes_moved, calls
        What measuring has used so far.

    """

    latency_s: float = 0.02
    stream_bytes_per_s: float = 5e7
    total_bytes_per_s: float = 2e8
    requests_per_s: float = 1e9
    served_bytes_per_s: float | None = None
    connect_s: float = 0.04
    open_s: float = 0.0
    noise: float = 0.0
    outliers: float = 0.0
    object_bytes: int = 1 << 30
    vector_ranges: int = 1
    shared_requests: int = 0
    shared_request_s: float = 0.0
    range_s: float = 0.0
    is_merging: bool = False
    seed: int = 0
    clock_s: float = 0.0
    bytes_moved: int = 0
    calls: list[tuple[str, list[tuple[int, int]], int, bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def measure(
        self,
        url: str,
        requests: Sequence[tuple[int, int]],
        streams: int,
        *,
        fresh: bool = False,
        stores: _swathe.Stores | None = None,
    ) -> list[Timing]:
        """As `_swathe.measure`."""
        self.measure_open(url)
        return self.read(url, requests, streams, fresh=fresh)

    def read(
        self, url: str, requests: Sequence[tuple[int, int]], streams: int, *, fresh: bool
    ) -> list[Timing]:
        """Read ranges of an open object."""
        self.calls.append((url, list(requests), streams, fresh))
        sizes = [length for _offset, length in requests]
        self.bytes_moved += sum(sizes)
        if streams == 1:
            timings, now = [], 0.0
            for size in sizes:
                slower = self._slower()
                start = now + (self.connect_s * slower if fresh else 0)
                _, first, end = self._run([size], 1, slower)[0]
                timings.append(Timing(size, now, start + first, start + end))
                now = start + end
        else:
            ran = self._run(sizes, streams, self._slower())
            timings = [Timing(size, *times) for size, times in zip(sizes, ran, strict=True)]
        self.clock_s += max(timing.end_s for timing in timings)
        return timings

    def open_source(self, url: str, stores: _swathe.Stores | None = None) -> SimulatedSource:
        """As `_swathe.open_source`."""
        self.measure_open(url)
        return SimulatedSource(self, url)

    def measure_vector(self, ranges: Sequence[tuple[int, int]], limit_s: float) -> VectorTiming:
        """As `_swathe.Source.measure_vector`."""
        count, rows = len(ranges), sum(length for _, length in ranges)
        if count > self.vector_ranges:
            return VectorTiming("answer 200 OK", 0, True, 0, self.latency_s)
        span = ranges[-1][0] + ranges[-1][1] - ranges[0][0]
        parts, size = (1, span) if self.is_merging else (count, rows)
        size += parts * PART_BYTES
        rate = min(self.stream_bytes_per_s, self.total_bytes_per_s)
        seconds = self.latency_s + (count - 1) * self.range_s + size / rate
        self.clock_s += min(seconds, limit_s)
        if seconds > limit_s:
            return VectorTiming(f"no whole answer in {limit_s} s", 0, True, 0, limit_s)
        self.bytes_moved += size
        return VectorTiming(None, parts, True, size, seconds)

    def measure_multiplexed(
        self, ranges: Sequence[tuple[int, int]], streams: int, limit_s: float
    ) -> MultiplexTiming:
        """As `_swathe.Source.measure_multiplexed`."""
        if not self.shared_requests:
            return MultiplexTiming("no HTTP/2", 0, 0, 0.0, self.latency_s)
        count, size = len(ranges), sum(length for _, length in ranges)
        rounds = -(-count // min(streams, self.shared_requests))
        total_bytes = size + count * PART_BYTES
        rate = min(self.stream_bytes_per_s, self.total_bytes_per_s)
        served_s = (count - 1) * self.shared_request_s
        seconds = (rounds * self.latency_s + served_s + total_bytes / rate) * self._slower()
        self.clock_s += min(seconds, limit_s)
        if seconds > limit_s:
            return MultiplexTiming(f"no whole answer in {limit_s} s", 0, 0, 0.0, limit_s)
        self.bytes_moved += total_bytes
        return MultiplexTiming(None, size, PART_BYTES, self.latency_s, seconds)

    def measure_open(self, url: str, stores: _swathe.Stores | None = None) -> tuple[float, int]:
        """As `_swathe.measure_open`."""
        first_bytes = min(OPENING_BYTES, self.object_bytes)
        self.bytes_moved += first_bytes
        rate = min(self.stream_bytes_per_s, self.total_bytes_per_s)
        seconds = (self.latency_s + self.open_s + first_bytes / rate) * self._slower()
        self.clock_s += seconds
        return seconds, self.object_bytes

    def _slower(self) -> float:
        factor = float(np.exp(self.rng.normal(0, self.noise * 0.7)))
        return factor * (self.rng.uniform(2, 10) if self.rng.random() < self.outliers else 1)

    def _run(
        self, sizes: list[int], streams: int, slower: float
    ) -> list[tuple[float, float, float]]:
        """Start, first byte and end of each request, in seconds."""
        own = np.exp(self.rng.normal(0, self.noise * 0.7, len(sizes))).tolist()
        starts, firsts, ends = ([0.0] * len(sizes) for _ in range(3))
        waiting: list[tuple[float, int]] = []  # first byte at, request
        serving: list[tuple[float, int]] = []  # ends when so much was worked at each, request
        moving: list[tuple[float, int]] = []  # ends when a stream has moved so many bytes, request
        now = total_bytes = work_s = free_at = 0.0
        todo = iter(range(len(sizes)))

        def start(at: float) -> None:
            nonlocal free_at
            request = next(todo, None)
            if request is not None:
                starts[request] = at
                first = at + self.latency_s * own[request] * slower
                if self.served_bytes_per_s is None:
                    first = max(first, free_at)
                    free_at = first + slower / self.requests_per_s
                heapq.heappush(waiting, (first, request))

        for _ in range(streams):
            start(0.0)

        def move(request: int) -> None:
            firsts[request] = now
            heapq.heappush(moving, (total_bytes + sizes[request] * own[request], request))

        while waiting or serving or moving:
            rate = self.stream_bytes_per_s
            if moving:
                rate = min(rate, self.total_bytes_per_s / len(moving)) / slower
            begins_at = waiting[0][0] if waiting else np.inf
            served_at = now + (serving[0][0] - work_s) * len(serving) if serving else np.inf
            ends_at = now + (moving[0][0] - total_bytes) / rate if moving else np.inf
            then = min(begins_at, served_at, ends_at)
            work_s += (then - now) / len(serving) if serving else 0
            total_bytes += (then - now) * rate if moving else 0
            now = then
            if then == begins_at:
                _, request = heapq.heappop(waiting)
                if self.served_bytes_per_s is None:
                    move(request)
                else:
                    work = 1 / self.requests_per_s + sizes[request] / self.served_bytes_per_s
                    heapq.heappush(serving, (work_s + work * own[request] * slower, request))
            elif then == served_at:
                work_s, request = heapq.heappop(serving)
                move(request)
            else:
                total_bytes, request = heapq.heappop(moving)
                ends[request] = now
                start(now)
        return list(zip(starts, firsts, ends, strict=True))


@dataclass(frozen=True)
class SimulatedSource:
    """An open object of a simulated store."""

    store: SimulatedStore
    url: str

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.store.object_bytes

    @property
    def opened_bytes(self) -> int:
        """Bytes that came with opening it."""
        return min(OPENING_BYTES, self.size)

    def measure(
        self, requests: Sequence[tuple[int, int]], streams: int, *, fresh: bool = False
    ) -> list[Timing]:
        """As `_swathe.Source.measure`."""
        return self.store.read(self.url, requests, streams, fresh=fresh)

    def measure_vector(self, ranges: Sequence[tuple[int, int]], limit_s: float) -> VectorTiming:
        """As `_swathe.Source.measure_vector`."""
        return self.store.measure_vector(ranges, limit_s)

    def measure_multiplexed(
        self, ranges: Sequence[tuple[int, int]], streams: int, limit_s: float
    ) -> MultiplexTiming:
        """As `_swathe.Source.measure_multiplexed`."""
        return self.store.measure_multiplexed(ranges, streams, limit_s)


def random_store(seed: int) -> SimulatedStore:
    """A store at random: RTT 0.05 to 300 ms, 1 to 1000 MB/s a stream, noise 1 to 20 %."""
    rng = np.random.default_rng(seed)
    latency = float(np.exp(rng.uniform(np.log(5e-5), np.log(0.3))))
    stream = float(np.exp(rng.uniform(np.log(1e6), np.log(1e9))))
    return SimulatedStore(
        latency_s=latency,
        stream_bytes_per_s=stream,
        total_bytes_per_s=stream * float(rng.choice([1, 2, 5, 20, 100])),
        requests_per_s=float(rng.choice([3, 20, 1000])) / latency,
        connect_s=2 * latency,
        open_s=0.0,
        noise=float(np.exp(rng.uniform(np.log(0.01), np.log(0.2)))),
        outliers=0.05,
        seed=seed,
    )


def busy_store(seed: int) -> SimulatedStore:
    """A busy computer nearby: RTT 0.2 to 5 ms, 20 to 200 us a request, 0.5 to 5 GB/s besides."""
    rng = np.random.default_rng(seed)
    latency = float(np.exp(rng.uniform(np.log(2e-4), np.log(5e-3))))
    bytes_per_s = float(np.exp(rng.uniform(np.log(5e8), np.log(5e9))))
    return SimulatedStore(
        latency_s=latency,
        stream_bytes_per_s=bytes_per_s * float(rng.choice([0.5, 1, 4])),
        total_bytes_per_s=bytes_per_s * float(rng.choice([0.5, 1, 8])),
        requests_per_s=float(np.exp(rng.uniform(np.log(5e3), np.log(5e4)))),
        served_bytes_per_s=bytes_per_s,
        connect_s=2 * latency,
        noise=float(np.exp(rng.uniform(np.log(0.01), np.log(0.1)))),
        outliers=0.05,
        seed=seed,
    )
