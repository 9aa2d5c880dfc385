"""What fetching costs, as measured: from stores by their profiles, from workers by what they tell.

Each worker tells what its last answers from other workers took, by their median; what counts is the
median of those that told last. So neither one slow link nor one worker that errs has much weight.
And what batches take, as they came back, beside what was predicted of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from math import isfinite
from statistics import median

Speed = tuple[float, float]
"""Seconds of a request, and bytes per second."""

UNMEASURED: Speed = 0.05, 50e6
"""Of storages that were never probed."""
NEAR: Speed = 0.001, 100e6
"""Of workers, before any has fetched enough from another."""
TELLERS = 64
"""Workers whose word counts: those that told last."""
NEWEST = 0.3
"""What the last batch of a job counts, against all before."""
PACED = 1000
"""Jobs whose rows are known: those that came back last."""
SLOWEST, FASTEST = (60.0, 1e3), (1e-6, 1e12)
"""No link is slower, or faster: what was told is wrong."""


class Rates:
    """What fetching costs. For one thread."""

    def __init__(self) -> None:
        """Begin with what is taken for granted."""
        self._stores: Mapping[str, Speed] = {}
        self._told: OrderedDict[str, Speed] = OrderedDict()
        self._peer = NEAR

    def of_stores(self, stores: Mapping[str, Speed]) -> None:
        """Take what was measured of stores, by their names."""
        self._stores = stores

    def learn(self, worker: str, told: Speed | None) -> None:
        """Take what a worker tells of others; nothing where it cannot be."""
        if told is None:
            return
        pairs = zip(SLOWEST, told, FASTEST, strict=True)
        if not all(isfinite(each) and min(a, b) <= each <= max(a, b) for a, each, b in pairs):
            return
        self._told[worker] = told
        self._told.move_to_end(worker)
        if len(self._told) > TELLERS:
            self._told.popitem(last=False)
        self._weigh()

    def forget(self, worker: str) -> None:
        """Forget what a worker told that is gone; the last word of all of them is kept."""
        if len(self._told) > 1 and self._told.pop(worker, None) is not None:
            self._weigh()

    def _weigh(self) -> None:
        seconds, rates = zip(*self._told.values(), strict=True)
        self._peer = median(seconds), median(rates)

    @property
    def peer(self) -> Speed:
        """What other workers cost."""
        return self._peer

    def store_s(self, source: str, size: int) -> float:
        """Give the seconds that fetching takes from the store that an object is in."""
        request_s, bytes_per_s = self._stores.get(source.partition(":")[0], UNMEASURED)
        return request_s + size / bytes_per_s

    def peer_s(self, size: int) -> float:
        """Give the seconds that fetching takes from another worker."""
        request_s, bytes_per_s = self._peer
        return request_s + size / bytes_per_s


class ComputeRates:
    """What jobs take, as the batches that came back took: for each row, or each second predicted.

    For one thread.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._of_job: OrderedDict[str, float] = OrderedDict()
        self._of_any: float | None = None

    def learn(self, job: str, amount: float, seconds: float) -> None:
        """Take what a batch took, of so many rows, or predicted seconds."""
        if not amount:
            return
        pace = seconds / amount
        before = self._of_job.pop(job, pace)
        self._of_job[job] = before + NEWEST * (pace - before)
        every = self._of_any or pace
        self._of_any = every + NEWEST * (pace - every)
        if len(self._of_job) > PACED:
            self._of_job.popitem(last=False)

    def of_job(self, job: str) -> float | None:
        """Give the pace of this very job; `None` where no batch of it is back."""
        return self._of_job.get(job)

    def expected_s(self, job: str, predicted_s: float) -> float:
        """Say what a batch will take, by the pace of its job, or of those that came back last."""
        pace = self._of_job.get(job, self._of_any)
        return predicted_s if pace is None else predicted_s * pace
