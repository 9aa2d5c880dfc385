"""A large job, while workers are killed all the time, and the scheduler in the middle.

SWATHE_TEST_MANY=1 does 20,000 targets.
"""

from __future__ import annotations

import itertools
import os
import random
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import swathe
from swathe.jobs import Jobs, Options
from tests.support.job_runner import check_each, ended
from tests.support.pools import Process, many_targets, members, process, ready, survey_jobs
from tests.support.portals import wait_until
from tests.support.servers import free_port
from tests.workers.test_dask import running

TARGETS = 20_000 if os.environ.get("SWATHE_TEST_MANY") else 4000
WORKERS = 3
KILL_ROWS = 500
"""A worker is killed each time this many more rows are done, so that slow ones do some first."""


jobs = survey_jobs


def test_each_row_is_done_once_whoever_is_killed(jobs: Jobs, survey: Path, tmp_path: Path) -> None:
    table = many_targets(survey, TARGETS)
    expected = swathe.cut_many(table, tmp_path / "many", progress=False)
    rng, numbers, port = random.Random(5), itertools.count(), str(free_port())
    with ExitStack() as stack:

        def another() -> Process:
            given = ("worker", scheduler.address, "--threads", "2", "--name", f"w{next(numbers)}")
            return stack.enter_context(process(*given))

        def left() -> int:
            return jobs.job(job.id).counts["waiting"]

        def are_left(rows: int) -> bool:
            return left() <= rows

        scheduler = stack.enter_context(process("scheduler", "--port", port))
        workers = [another() for _ in range(WORKERS)]
        pool = stack.enter_context(running(jobs, scheduler.address))
        members(pool, ready(WORKERS))
        job = jobs.submit(table, Options(), "me")
        wait_until(lambda: left() < TARGETS)
        kills, schedulers = 0, 1
        for rows in range(TARGETS - KILL_ROWS, 0, -KILL_ROWS):
            wait_until(partial(are_left, rows))
            at = rng.randrange(WORKERS)
            workers[at].kill()
            kills += 1
            workers[at] = another()
            if schedulers == 1 and left() < TARGETS // 2:
                scheduler.kill()
                scheduler = stack.enter_context(process("scheduler", "--port", port))
                schedulers += 1
        job = ended(jobs, job)
    assert kills >= 2
    assert schedulers == 2
    assert job.phase == "COMPLETED"
    check_each(jobs, job, expected, tmp_path / "results" / job.id, tmp_path / "many")
