"""Simulated stores and links: each has a rate, and serves one transfer after the other.

A transfer takes its turn on every line of its path. It arrives when the last line is done and the
latency has passed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal, TypeAlias


@dataclass(frozen=True)
class SimulatedStore:
    """A store, as seen from each worker.

    Attributes:
        latency_s: latency of a request.
        stream_bytes_per_s: rate of a single fetch.
        total_bytes_per_s: rate of all workers together.
        requests_per_s: request rate of all workers together.
        served_bytes_per_s: server throughput in addition to requests, for all workers together.
        remote: whether it is reached over the workers' links.
    """

    latency_s: float
    stream_bytes_per_s: float
    total_bytes_per_s: float
    requests_per_s: float = inf
    remote: bool = True
    served_bytes_per_s: float = inf

    def served_s(self, size: int) -> float:
        """Return the server's time for a fetch, during which the next one waits."""
        return 1 / self.requests_per_s + size / self.served_bytes_per_s


Tier: TypeAlias = Literal["local", "lan", "wan"]
TIERS: dict[Tier, SimulatedStore] = {
    "local": SimulatedStore(1e-4, 5e8, inf, remote=False),
    "lan": SimulatedStore(1e-3, 1e8, 1.25e9, 2e4),
    "wan": SimulatedStore(0.056, 2e7, 1.25e8, 5e3),
}
"""Assumed if no store was measured: a copy on each worker's own disk; a server on 10 Gb/s; a server
56 ms away on 1 Gb/s."""


@dataclass(slots=True)
class NetworkLink:
    """A line with a rate."""

    per_s: float
    free_at: float = 0.0

    def take(self, now: float, amount: float) -> float:
        """Return when this amount has passed."""
        self.free_at = max(now, self.free_at) + amount / self.per_s
        return self.free_at


class Network:
    """The lines shared by all workers; also the predicted fetch costs.

    Attributes:
        now: time of predictions.
        coming_bytes: bytes that sent batches will request from the store.
    """

    def __init__(
        self, store: SimulatedStore, link_bytes_per_s: float, peer_latency_s: float
    ) -> None:
        """Take the store, and the workers' links."""
        self.now = 0.0
        self.coming_bytes = 0
        self._store = store
        self._link_bytes_per_s, self._peer_latency_s = link_bytes_per_s, peer_latency_s
        self._line = NetworkLink(store.total_bytes_per_s)
        self._server = NetworkLink(1.0)

    def store_s(self, source: str, size: int) -> float:  # noqa: ARG002 - all are in one
        """Predict a fetch from the store, after all current and expected traffic."""
        line_s = max(0.0, self._line.free_at - self.now)
        line_s += (self.coming_bytes + size) / self._store.total_bytes_per_s
        return max(self.alone_s(size), self._store.latency_s + line_s)

    def alone_s(self, size: int) -> float:
        """Return the seconds of a fetch from the store without other traffic."""
        return self._store.latency_s + size / self._store.stream_bytes_per_s

    def peer_s(self, size: int) -> float:
        """Predict a fetch from a peer."""
        return self._peer_latency_s + size / self._link_bytes_per_s

    def from_store(self, down: NetworkLink, size: int) -> float:
        """Fetch from the store over a worker's link; return the time of arrival."""
        served_at = self._server.take(self.now, self._store.served_s(size))
        end = max(self._line.take(self.now, size), served_at)
        if self._store.remote:
            end = max(end, down.take(self.now, size))
        return max(end + self._store.latency_s, self.now + self.alone_s(size))

    def from_peer(self, down: NetworkLink, up: NetworkLink, size: int, ready_at: float) -> float:
        """Fetch from a peer that has it from `ready_at` on; return the time of arrival."""
        begin = max(self.now, ready_at)
        return max(down.take(begin, size), up.take(begin, size)) + self._peer_latency_s
