"""Time left of jobs that run, from their progress as this process saw it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from swathe.catalog.records.jobs import count_finished_rows
from swathe.costs.time_left import TimeLeftModel
from swathe.jobs.staging_progress import is_staging

if TYPE_CHECKING:
    from swathe.catalog.records.jobs import JobRecord
    from swathe.costs.time_left import TimeLeft

MOST_JOBS = 1000
"""Number of jobs whose progress is remembered; the oldest are forgotten."""


class TimesLeft:
    """Times left by job. Threads may share it."""

    def __init__(self) -> None:
        """Begin without any job."""
        self._lock = threading.Lock()
        self._models: dict[int, tuple[TimeLeftModel, float]] = {}

    def of(self, job: JobRecord) -> TimeLeft | None:
        """Take the progress of a job, and return its time left.

        Returns:
            `None` unless the job is executing and was predicted, and nothing is to come from tape.
        """
        with self._lock:
            if job.phase != "EXECUTING" or job.predicted is None or is_staging(job.staging):
                self._models.pop(job.number, None)
                return None
            now = time.monotonic()
            if job.number not in self._models:
                while len(self._models) >= MOST_JOBS:
                    del self._models[next(iter(self._models))]
                # What was done before this process saw it took that time.
                self._models[job.number] = (TimeLeftModel.of(job.predicted), now - job.work_s)
            model, begun_s = self._models[job.number]
            model.update(now - begun_s, count_finished_rows(job.counts) / max(job.rows, 1))
            return model.left(now - begun_s)
