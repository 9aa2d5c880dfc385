"""A runner, and waiting for it."""

from __future__ import annotations

from swathe.jobs import Job, Jobs, Result
from swathe.workers import Runner

ENDED = ("COMPLETED", "ERROR", "ABORTED")
PATIENCE_S = 60


class running:  # noqa: N801 - used like a function
    """A runner, as long as the block lasts."""

    def __init__(self, jobs: Jobs) -> None:
        self.runner = Runner(jobs, threads=2)

    def __enter__(self) -> Runner:
        self.runner.start()
        return self.runner

    def __exit__(self, *raised: object) -> None:
        self.runner.stop(PATIENCE_S)


def ended(jobs: Jobs, job: Job) -> Job:
    """The job when it has ended."""
    for _ in range(200):
        if job.phase in ENDED:
            return job
        job = jobs.wait(job.id, job.phase, 5.0)
    raise AssertionError(f"the job does not end: {job}")


def contents_of(result: Result) -> bytes:
    """The bytes of a result."""
    with result.open() as file:
        return file.read()
