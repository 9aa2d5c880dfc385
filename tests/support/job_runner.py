"""A runner, and waiting for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from astropy.table import Table

import swathe
from swathe.jobs import Job, Jobs, Result
from swathe.workers import Runner

ENDED = ("COMPLETED", "ERROR", "ABORTED")
PATIENCE_S = 120


class running:  # noqa: N801 - used like a function
    """A runner, as long as the block lasts."""

    def __init__(self, jobs: Jobs) -> None:
        self.runner = Runner(jobs, threads=2)

    def __enter__(self) -> Runner:
        self.runner.start()
        return self.runner

    def __exit__(self, *exception: object) -> None:
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


def targets(images: list[str], count: int = 60) -> dict[str, list[Any]]:
    """Boxes all over the first three images, some of them partly or wholly outside."""
    rng = np.random.default_rng(3)
    return {
        "id": [f"t{row}" for row in range(count)],
        "file": [images[row % 3] for row in range(count)],
        "x0": rng.integers(-5, 90, count).tolist(),
        "y0": rng.integers(-5, 60, count).tolist(),
        "width": [12] * count,
        "height": [9] * count,
    }


def check(jobs: Jobs, job: Job, table: dict[str, list[Any]], folder: Path) -> None:
    """See that a job in a folder is done, each row once, as `cut_many` does it."""
    count = len(table["id"])
    assert job.phase == "COMPLETED"
    assert job.counts["ok"] == count
    expected = swathe.cut_many(table, folder / "many", progress=False)
    rows = jobs.rows(job.id, limit=count)
    assert [row.id for row in rows] == table["id"]
    folder_of_job = folder / "results" / job.id
    for row, expected_row in zip(rows, expected, strict=True):
        assert (row.status, row.sha256) == (expected_row["status"], expected_row["sha256"])
        content = (folder_of_job / "0000" / row.name).read_bytes()
        assert content == (folder / "many" / expected_row["path"]).read_bytes()
    assert len([path for path in folder_of_job.rglob("*") if path.is_file()]) == count
    assert {path.name for path in folder_of_job.iterdir()} == {"0000"}
    assert job.bytes == sum(row.bytes for row in rows)


def check_each(jobs: Jobs, job: Job, expected: Table, made: Path, many: Path) -> None:
    """See that a job has each row and each result once, in `made`, as `cut_many` has in `many`."""
    count = len(expected)
    rows = [row for start in range(0, count, 1000) for row in jobs.rows(job.id, start=start)]
    assert [row.number for row in rows] == list(range(count))
    statuses = expected["status"].tolist()
    assert job.counts == {"waiting": 0} | {
        status: statuses.count(status) for status in ("ok", "no-overlap", "missing", "error")
    }
    for row, expected_row in zip(rows, expected, strict=True):
        assert (row.id, row.status, row.sha256) == (
            expected_row["id"],
            expected_row["status"],
            expected_row["sha256"],
        )
        if row.status == "ok":
            content = (made / f"{row.number // 1000:04}" / row.name).read_bytes()
            assert content == (many / expected_row["path"]).read_bytes()
    assert job.bytes == sum(row.bytes for row in rows)
    assert len([path for path in made.rglob("*") if path.is_file()]) == statuses.count("ok")
    folders = {f"{start // 1000:04}" for start in range(0, count, 1000)}
    assert {path.name for path in made.iterdir()} == folders
