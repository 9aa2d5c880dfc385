"""Waits for changes of jobs, by this process or by others."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from swathe.catalog import Catalog
    from swathe.catalog.records.jobs import Phase

LOOK_S = 0.5
"""Seconds after which changes by other processes are noticed."""


class JobChanges:
    """Wakes threads that wait for a change of a job. Safe to share between threads."""

    def __init__(self, catalog: Catalog) -> None:
        """Take the database of the jobs."""
        self._catalog = catalog
        self._news = threading.Condition()
        self._count = 0
        self._has_deletions = False
        self.is_closed = False

    def close(self) -> None:
        """Wake all waiting threads, and let none wait from now on."""
        self.is_closed = True
        self.wake()

    def wake(self) -> None:
        """Wake all waiting threads: something changed."""
        with self._news:
            self._count += 1
            self._news.notify_all()

    def note_deletion(self) -> None:
        """Wake all waiting threads: a job is deleted."""
        self._has_deletions = True
        self.wake()

    def pause(self, timeout_s: float) -> None:
        """Wait for something to change."""
        with self._news:
            self._news.wait(timeout_s)

    def await_deletion(self, timeout_s: float, should_stop: Callable[[], bool]) -> None:
        """Wait until a job is deleted here, or for a time, or until stopped."""
        with self._news:
            self._news.wait_for(
                lambda: self._has_deletions or self.is_closed or should_stop(), timeout_s
            )
            self._has_deletions = False

    def await_state(
        self, job_id: str, timeout_s: float, is_so: Callable[[Phase, int], bool]
    ) -> int:
        """Wait until `is_so` holds for phase and change counter of a job, or for a time.

        Returns:
            The change counter.

        Raises:
            NoSuchJobError: If there is no such job.
        """
        limit = time.monotonic() + timeout_s
        while True:
            with self._news:
                snapshot = self._count
            phase, changes = self._catalog.job_state(job_id)
            seconds_left = limit - time.monotonic()
            if is_so(phase, changes) or seconds_left <= 0 or self.is_closed:
                return changes
            with self._news:
                if self._count == snapshot:
                    self._news.wait(min(seconds_left, LOOK_S))
