"""Counts of the work of a runner, since it started."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

from swathe.core.row_table import RowTable

if TYPE_CHECKING:
    from swathe.catalog.records.jobs import ChunkResult, JobRecord


class RunnerCounts:
    """Rows and jobs that ended, and seconds of work. Any thread may count and read."""

    def __init__(self) -> None:
        """Start at zero."""
        self._lock = threading.Lock()
        self._rows: Counter[str] = Counter()
        self._jobs: Counter[str] = Counter()
        self._work_s = 0.0

    def add(self, result: ChunkResult, job: JobRecord) -> None:
        """Count a saved result, and its job if that ended with it."""
        rows = RowTable.of(result.rows).counts()
        with self._lock:
            self._rows.update(rows)
            self._work_s += result.work_s
            if job.phase in ("COMPLETED", "ERROR"):
                self._jobs[job.phase] += 1

    @property
    def rows(self) -> dict[str, int]:
        """Return the number of rows by status."""
        with self._lock:
            return {name: self._rows[name] for name in ("ok", "no-overlap", "missing", "error")}

    @property
    def jobs(self) -> dict[str, int]:
        """Return the number of jobs by the phase that they ended in."""
        with self._lock:
            return {name: self._jobs[name] for name in ("COMPLETED", "ERROR")}

    @property
    def work_s(self) -> float:
        """Return the seconds of work."""
        with self._lock:
            return self._work_s
