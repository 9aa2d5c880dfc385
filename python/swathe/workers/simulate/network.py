"""Simulated storage and links: each carries so much in a second, one transfer after the other.

A transfer takes its turn on every line that it goes over, and is there when the last of them is
done with it and the latency is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class Store:
    """A storage, as seen from each worker.

    Attributes:
        latency_s: of a request.
        stream_bytes_per_s: of one fetch, alone.
        total_bytes_per_s: of all workers together.
        requests_per_s: of all workers together.
        served_bytes_per_s: those that the server works through beside, of all workers together.
        remote: whether it is reached over the workers' links.
    """

    latency_s: float
    stream_bytes_per_s: float
    total_bytes_per_s: float
    requests_per_s: float = inf
    remote: bool = True
    served_bytes_per_s: float = inf

    def served_s(self, size: int) -> float:
        """Give what the server takes for a fetch, while the next one waits."""
        return 1 / self.requests_per_s + size / self.served_bytes_per_s


TIERS = {
    "local": Store(1e-4, 5e8, inf, remote=False),
    "lan": Store(1e-3, 1e8, 1.25e9, 2e4),
    "wan": Store(0.056, 2e7, 1.25e8, 5e3),
}
"""Taken for granted, where no store was measured: each worker has a copy of all on its own disk; a
server on 10 Gb/s; one 56 ms away on 1 Gb/s."""


@dataclass(slots=True)
class Line:
    """Carries so much in a second."""

    per_s: float
    free_at: float = 0.0

    def take(self, now: float, amount: float) -> float:
        """Give when so much is through."""
        self.free_at = max(now, self.free_at) + amount / self.per_s
        return self.free_at


class Wires:
    """The lines that all workers share; also what fetching is predicted to cost.

    Attributes:
        now: the time of predictions.
        to_come: bytes that batches given out will ask the store for.
    """

    def __init__(self, store: Store, link_bytes_per_s: float, peer_latency_s: float) -> None:
        """Take the store, and how workers are linked."""
        self.now = 0.0
        self.to_come = 0
        self._store = store
        self._link_bytes_per_s, self._peer_latency_s = link_bytes_per_s, peer_latency_s
        self._line = Line(store.total_bytes_per_s)
        self._server = Line(1.0)

    def store_s(self, source: str, size: int) -> float:  # noqa: ARG002 - all are in one
        """Predict a fetch from the store, after all that is on its line or soon will be."""
        line_s = max(0.0, self._line.free_at - self.now)
        line_s += (self.to_come + size) / self._store.total_bytes_per_s
        return max(self.alone_s(size), self._store.latency_s + line_s)

    def alone_s(self, size: int) -> float:
        """Say what a fetch from the store takes that is alone."""
        return self._store.latency_s + size / self._store.stream_bytes_per_s

    def peer_s(self, size: int) -> float:
        """Predict a fetch from a peer."""
        return self._peer_latency_s + size / self._link_bytes_per_s

    def from_store(self, down: Line, size: int) -> float:
        """Fetch from the store over the link of a worker; gives when it is there."""
        served_at = self._server.take(self.now, self._store.served_s(size))
        end = max(self._line.take(self.now, size), served_at)
        if self._store.remote:
            end = max(end, down.take(self.now, size))
        return max(end + self._store.latency_s, self.now + self.alone_s(size))

    def from_peer(self, down: Line, up: Line, size: int, ready_at: float) -> float:
        """Fetch from a peer that has it from `ready_at` on; gives when it is there."""
        begin = max(self.now, ready_at)
        return max(down.take(begin, size), up.take(begin, size)) + self._peer_latency_s
