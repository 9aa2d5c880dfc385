"""Measured fetch costs: of stores by their profiles, of workers by their reports.

Each worker reports the median time of its latest answers from other workers. The median of the
latest reports counts, so that one slow link or one faulty worker has little weight. The module also
compares the actual times of batches with their predictions.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from math import isfinite
from statistics import median

Speed = tuple[float, float]
"""Seconds per request, and bytes per second."""

USUAL_SPEED: Speed = 0.05, 50e6
"""Assumed for stores that were never probed."""
NEAR: Speed = 0.001, 100e6
"""Assumed for workers, before enough has been fetched between them."""
TELLERS = 64
"""Latest reports that count."""
NEWEST = 0.3
"""Weight of a job's latest batch against all earlier ones."""
MOST_PACES = 1000
"""Jobs whose pace is remembered: those with the latest results."""
SLOWEST, FASTEST = (60.0, 1e3), (1e-6, 1e12)
"""Slowest and fastest plausible link; a report outside is wrong."""


class Rates:
    """Fetch costs. For one thread."""

    def __init__(self) -> None:
        """Start with the assumed values."""
        self._stores: Mapping[str, Speed] = {}
        self._reports: OrderedDict[str, Speed] = OrderedDict()
        self._peer = NEAR

    def of_stores(self, stores: Mapping[str, Speed]) -> None:
        """Take the measured costs of stores, by name."""
        self._stores = stores

    def learn(self, worker: str, speed: Speed | None) -> None:
        """Take a worker's report on others; an implausible one is ignored."""
        if speed is None:
            return
        pairs = zip(SLOWEST, speed, FASTEST, strict=True)
        if not all(isfinite(each) and min(a, b) <= each <= max(a, b) for a, each, b in pairs):
            return
        self._reports[worker] = speed
        self._reports.move_to_end(worker)
        if len(self._reports) > TELLERS:
            self._reports.popitem(last=False)
        self._weigh()

    def forget(self, worker: str) -> None:
        """Forget the report of a lost worker; the last remaining report is kept."""
        if len(self._reports) > 1 and self._reports.pop(worker, None) is not None:
            self._weigh()

    def _weigh(self) -> None:
        seconds, rates = zip(*self._reports.values(), strict=True)
        self._peer = median(seconds), median(rates)

    @property
    def peer(self) -> Speed:
        """Cost of other workers."""
        return self._peer

    def store_s(self, source: str, size: int) -> float:
        """Return the seconds to fetch from the object's store."""
        request_s, bytes_per_s = self._stores.get(source.partition(":")[0], USUAL_SPEED)
        return request_s + size / bytes_per_s

    def peer_s(self, size: int) -> float:
        """Return the seconds to fetch from another worker."""
        request_s, bytes_per_s = self._peer
        return request_s + size / bytes_per_s


class ComputeRates:
    """Measured pace of jobs: seconds per row, or per predicted second.

    For one thread.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._of_job: OrderedDict[str, float] = OrderedDict()
        self._of_any: float | None = None

    def learn(self, job: str, amount: float, seconds: float) -> None:
        """Take the seconds of a batch with `amount` rows or predicted seconds."""
        if not amount:
            return
        pace = seconds / amount
        before = self._of_job.pop(job, pace)
        self._of_job[job] = before + NEWEST * (pace - before)
        every = self._of_any or pace
        self._of_any = every + NEWEST * (pace - every)
        if len(self._of_job) > MOST_PACES:
            self._of_job.popitem(last=False)

    def of_job(self, job: str) -> float | None:
        """Return the pace of this job; `None` if none of its batches is back."""
        return self._of_job.get(job)

    def expected_s(self, job: str, predicted_s: float) -> float:
        """Estimate the seconds of a batch by the pace of its job, or of the latest jobs."""
        pace = self._of_job.get(job, self._of_any)
        return predicted_s if pace is None else predicted_s * pace
