"""Result of a simulated run."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

BINS = 50
"""Number of bins of the throughput."""


@dataclass(frozen=True)
class RoundResult:
    """One pass through the workload."""

    elapsed_s: float
    cuts_per_s: float
    p50_s: float
    p95_s: float
    store_bytes: int


@dataclass(frozen=True)
class SimulationResult:
    """Result of a run.

    Attributes:
        elapsed_s: from the first request to the last finished batch.
        p50_s, p95_s: percentiles of the response time: with clients since the request, else since
            the batch was sent.
        cache_bytes, peer_bytes, store_bytes: bytes from the worker's own disk, a peer, or the
            store.
        hit_rate: fraction of all bytes that came from a cache, own or a peer's.
        on_holder: fraction of batches, among those whose object was cached by some worker, that
            were placed on such a worker.
        worker_s: seconds in which workers existed. `computing_s` and `fetching_s` of them were
            useful, `lost_s` went to work done again, `wasted_s` is the rest.
        most_workers: largest number at one time.
        lost: workers that failed or reached their walltime.
        throughput: (time, cuts per second), from start to end.
    """

    workers: int
    batches: int
    cuts: int
    elapsed_s: float
    cuts_per_s: float
    p50_s: float
    p95_s: float
    cache_bytes: int
    peer_bytes: int
    store_bytes: int
    hit_rate: float
    on_holder: float
    worker_s: float
    computing_s: float
    fetching_s: float
    lost_s: float
    wasted_s: float
    most_workers: int
    lost: int
    rounds: tuple[RoundResult, ...]
    throughput: tuple[tuple[float, float], ...]


@dataclass
class Tally:
    """Counters of a run."""

    done_at: array[float] = field(default_factory=lambda: array("d"))
    cuts: array[int] = field(default_factory=lambda: array("l"))
    responses: array[float] = field(default_factory=lambda: array("d"))
    rounds: list[RoundResult] = field(default_factory=list)
    cache_bytes: int = 0
    peer_bytes: int = 0
    store_bytes: int = 0
    of_cache: int = 0
    on_holder: int = 0
    worker_s: float = 0.0
    computing_s: float = 0.0
    fetching_s: float = 0.0
    lost_s: float = 0.0
    most_workers: int = 0
    losses: int = 0

    def result(self, workers: int, threads: int, end: float) -> SimulationResult:
        """Return the summary."""
        cuts = sum(self.cuts)
        total = self.cache_bytes + self.peer_bytes + self.store_bytes
        used_s = (self.computing_s + self.fetching_s + self.lost_s) / threads
        p50_s, p95_s = responses(self.responses)
        return SimulationResult(
            workers=workers,
            batches=len(self.cuts),
            cuts=cuts,
            elapsed_s=end,
            cuts_per_s=cuts / end if end else 0.0,
            p50_s=p50_s,
            p95_s=p95_s,
            cache_bytes=self.cache_bytes,
            peer_bytes=self.peer_bytes,
            store_bytes=self.store_bytes,
            hit_rate=1 - self.store_bytes / total,
            on_holder=self.on_holder / self.of_cache if self.of_cache else 1.0,
            worker_s=self.worker_s,
            computing_s=self.computing_s / threads,
            fetching_s=self.fetching_s / threads,
            lost_s=self.lost_s / threads,
            wasted_s=max(0.0, self.worker_s - used_s),
            most_workers=self.most_workers,
            lost=self.losses,
            rounds=tuple(self.rounds),
            throughput=tuple(self.throughput(end)),
        )

    def throughput(self, end: float) -> Iterator[tuple[float, float]]:
        """Yield cuts per second, in intervals of equal length."""
        width = end / BINS or 1.0
        counts = [0] * BINS
        for at, cuts in zip(self.done_at, self.cuts, strict=True):
            counts[min(BINS - 1, int(at / width))] += cuts
        for number, count in enumerate(counts):
            yield number * width, count / width


def responses(seconds: array[float]) -> tuple[float, float]:
    """Return the median and the 95th percentile."""
    sorted_s = sorted(seconds)
    return sorted_s[len(sorted_s) // 2], sorted_s[int(0.95 * len(sorted_s))]
