"""What a worker has to do, and when it is predicted to be free.

What its threads do ends when that was predicted as it was begun; what is behind takes its seconds
from then on. So a batch that ends early or late moves all behind it, once. There is no clock here:
times are seconds of the caller's.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from itertools import islice

LEAST_S, MOST_S = 0.05, 1.0
"""What a batch counts for in what is placed: the seconds it takes, within these bounds. So there
are many of quick ones, though no more than can be looked after, and some of long ones all the same.
"""


@dataclass(slots=True)
class Queue:
    """The batches of a worker.

    Attributes:
        threads: that do one each.
        ahead: so many it is sent at most, those placed first; the others are parked.
        batches: predicted seconds of each, in the order in which they were placed.
        running: those that threads have, and when each is predicted to end.
        behind_s: seconds of the others.
        placed: what all count for.
    """

    threads: int
    ahead: int
    batches: dict[Hashable, float] = field(default_factory=dict)
    running: dict[Hashable, float] = field(default_factory=dict)
    behind_s: float = 0.0
    placed: float = 0.0

    @property
    def sent(self) -> int:
        """How many batches it was sent."""
        return min(len(self.batches), self.ahead)

    @property
    def is_free(self) -> bool:
        """Whether a thread has nothing to do."""
        return len(self.batches) < self.threads

    def put(self, batch: Hashable, seconds: float, now: float) -> bool:
        """Add a batch; tells whether it is parked."""
        self.batches[batch] = seconds
        self.behind_s += seconds
        self.placed += _counted(seconds)
        self._run_next(now)
        return len(self.batches) > self.ahead

    def begin(self, batch: Hashable, now: float) -> None:
        """Note that a thread has begun with a batch."""
        if batch not in self.running:
            self.behind_s -= self.batches[batch]
        self.running[batch] = now + self.batches[batch]

    def remove(self, batch: Hashable, now: float) -> list[Hashable]:
        """Take a batch out; gives the parked ones that are to be sent now."""
        sent = set(islice(self.batches, self.ahead))
        seconds = self.batches.pop(batch)
        self.placed = self.placed - _counted(seconds) if self.batches else 0.0
        if self.running.pop(batch, None) is None:
            self.behind_s -= seconds
        self._run_next(now)
        return [each for each in islice(self.batches, self.ahead) if each not in sent]

    def wait_s(self, now: float) -> float:
        """Give the seconds until a thread is free."""
        if self.is_free:
            return 0.0
        # One that is late is expected to be late by as much again.
        return _free_after([abs(end - now) for end in self.running.values()], self.behind_s)

    def free_at(self) -> float:
        """Give when a thread is free, of one that has a batch for each."""
        return _free_after(self.running.values(), self.behind_s)

    def _run_next(self, now: float) -> None:
        """Take the next batch to be begun, where a thread is free; `begin` may correct that."""
        if len(self.running) < self.threads:
            for batch in self.batches:
                if batch not in self.running:
                    self.begin(batch, now)
                    break
        if len(self.running) == len(self.batches):
            self.behind_s = 0.0  # but for rounding


def _counted(seconds: float) -> float:
    return min(max(seconds, LEAST_S), MOST_S)


def _free_after(ends: Iterable[float], behind_s: float) -> float:
    """Say when a thread is free for more, where all share what is behind."""
    first, *later = sorted(ends)
    for threads, end in enumerate(later, 1):
        if behind_s <= threads * (end - first):
            return first + behind_s / threads
        behind_s -= threads * (end - first)
        first = end
    return first + behind_s / (1 + len(later))
