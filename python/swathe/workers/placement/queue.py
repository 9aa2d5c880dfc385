"""Queue of a worker, and when it is predicted to be free.

A running batch ends when that was predicted at its start. Each waiting batch takes its predicted
seconds after that. So a batch that ends early or late moves all waiting ones, once. There is no
clock here: times are seconds of the caller's.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from itertools import islice

LEAST_S, MOST_S = 0.05, 1.0
"""Bounds for the weight of a batch among the placed ones: its seconds, within these. So many quick
batches are placed, but no more than can be managed, and at least some long ones."""


@dataclass(slots=True)
class Queue:
    """The batches of a worker.

    Attributes:
        threads: number of threads, one batch each.
        ahead: batches in flight at most, in order of placement; the others are parked.
        batches: predicted seconds of each, in order of placement.
        running: running batches, and the predicted end of each.
        behind_s: seconds of the others.
        sum_s: sum of the weights.
    """

    threads: int
    ahead: int
    batches: dict[Hashable, float] = field(default_factory=dict)
    running: dict[Hashable, float] = field(default_factory=dict)
    behind_s: float = 0.0
    sum_s: float = 0.0

    @property
    def sent_count(self) -> int:
        """Number of batches sent to it."""
        return min(len(self.batches), self.ahead)

    @property
    def is_free(self) -> bool:
        """Whether a thread is free."""
        return len(self.batches) < self.threads

    def put(self, batch: Hashable, seconds: float, now: float) -> bool:
        """Add a batch; return whether it is parked."""
        self.batches[batch] = seconds
        self.behind_s += seconds
        self.sum_s += _clip(seconds)
        self._run_next(now)
        return len(self.batches) > self.ahead

    def begin(self, batch: Hashable, now: float) -> None:
        """Note that a thread has begun a batch."""
        if batch not in self.running:
            self.behind_s -= self.batches[batch]
        self.running[batch] = now + self.batches[batch]

    def remove(self, batch: Hashable, now: float) -> list[Hashable]:
        """Remove a batch; return the parked ones to send now."""
        sent_batches = set(islice(self.batches, self.ahead))
        seconds = self.batches.pop(batch)
        self.sum_s = self.sum_s - _clip(seconds) if self.batches else 0.0
        if self.running.pop(batch, None) is None:
            self.behind_s -= seconds
        self._run_next(now)
        return [each for each in islice(self.batches, self.ahead) if each not in sent_batches]

    def wait_s(self, now: float) -> float:
        """Return the seconds until a thread is free."""
        if self.is_free:
            return 0.0
        # A late batch is expected to need as much time again.
        return _free_after([abs(end - now) for end in self.running.values()], self.behind_s)

    def free_at(self) -> float:
        """Return when a thread is free; each thread has a batch."""
        return _free_after(self.running.values(), self.behind_s)

    def _run_next(self, now: float) -> None:
        """Start the next batch on a free thread; `begin` may correct that."""
        if len(self.running) < self.threads:
            for batch in self.batches:
                if batch not in self.running:
                    self.begin(batch, now)
                    break
        if len(self.running) == len(self.batches):
            self.behind_s = 0.0  # rounding


def _clip(seconds: float) -> float:
    return min(max(seconds, LEAST_S), MOST_S)


def _free_after(ends: Iterable[float], behind_s: float) -> float:
    """Return when a thread is free for more, if all share the waiting work."""
    first, *rest = sorted(ends)
    for threads, end in enumerate(rest, 1):
        if behind_s <= threads * (end - first):
            return first + behind_s / threads
        behind_s -= threads * (end - first)
        first = end
    return first + behind_s / (1 + len(rest))
