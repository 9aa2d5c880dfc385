"""The threads that do the work of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swathe.jobs.service import Jobs


class Runner:
    """Works on jobs, a second or so at a time, fairly between users and their jobs."""

    def __init__(self, jobs: Jobs, *, threads: int | None = None) -> None:
        """Take whose jobs; `threads` of the engine, by default as many as there are cores."""

    def start(self) -> None:
        """Start the threads. What dead runners had taken is worked on again."""
        raise NotImplementedError

    def stop(self, timeout_s: float = 30.0) -> None:
        """End the threads, within a second or so; rows not done are given back.

        Raises:
            JobError: where a thread does not end in time.
        """
        raise NotImplementedError
