"""Killing the process that works on a job loses nothing, and does nothing twice."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy

import swathe
from swathe.catalog import Catalog
from swathe.jobs import Jobs, Limits, Options, result_store_by_name
from tests.conftest import fits_bytes
from tests.jobs.test_reduce import write_swath
from tests.support.cloud_servers import forget_credentials
from tests.support.job_runner import PATIENCE_S, check_each, contents_of, ended, running
from tests.support.servers import s3s_fs

KILLS = int(os.environ.get("SWATHE_TEST_KILLS", "3"))
"""How often each job is killed; SWATHE_TEST_KILLS=100 for a night."""
ROWS = 1500
REDUCTION: dict[str, Any] = {
    "operation": "reduce",
    "array": "lst",
    "grid": "5deg",
    "statistics": "mean,std",
}
WORKER = Path(__file__).parents[1] / "support" / "run_until_killed.py"


@pytest.fixture
def table(tmp_path: Path) -> dict[str, list[Any]]:
    """Many targets on some files, one of which is not there."""
    rng = np.random.default_rng(11)
    names = []
    for number in range(12):
        path = tmp_path / f"image{number}.fits"
        path.write_bytes(fits_bytes(rng.integers(0, 9999, (200, 300)).astype(">i2")))
        names.append(str(path))
    names.append(str(tmp_path / "absent.fits"))
    return {
        "id": [f"t{row}" for row in range(ROWS)],
        "file": [names[number] for number in rng.integers(0, len(names), ROWS)],
        "x0": rng.integers(-20, 320, ROWS).tolist(),
        "y0": rng.integers(-20, 220, ROWS).tolist(),
        "width": [40] * ROWS,
        "height": [30] * ROWS,
    }


@contextmanager
def worker(url: str, scratch: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that works on jobs; killed in the end, whatever it is doing."""
    paths = [str(Path(swathe.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        [sys.executable, WORKER, url, "results:jobs", scratch],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def slow_down(url: str, job_id: str) -> None:
    """Make chunks small: they are sized by what the job was predicted to take."""
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        predicted = '{"median_s": 300, "interval_s": [1, 2], "bytes": 1, "requests": 1, "root": ""}'
        connection.execute(
            sqlalchemy.text("UPDATE jobs SET predicted = :told WHERE id = :id"),
            {"told": predicted, "id": job_id},
        )
    engine.dispose()


@pytest.fixture(params=["folder", "bucket"])
def jobs(
    request: pytest.FixtureRequest,
    catalog: Catalog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Jobs]:
    """Jobs whose results are in `tmp_path / "bucket/jobs"`, which a server may stand before."""
    (tmp_path / "bucket").mkdir()
    with ExitStack() as stack:
        if request.param == "bucket":
            forget_credentials(monkeypatch)
            server = stack.enter_context(s3s_fs(tmp_path))
            for name, value in server.environment.items():
                monkeypatch.setenv(name, value)
            catalog.add_store("results", "s3://bucket")
        else:
            catalog.add_store("results", str(tmp_path / "bucket"))
        place = result_store_by_name(catalog, "results:jobs", tmp_path / "scratch")
        yield stack.enter_context(Jobs(catalog, place, limits=Limits()))


def test_killed_jobs_are_finished_by_others(
    jobs: Jobs, url: str, table: dict[str, list[Any]], tmp_path: Path
) -> None:
    expected = swathe.cut_many(table, tmp_path / "many", progress=False)
    job = jobs.submit(table, Options(), "me")
    slow_down(url, job.id)
    random.seed(5)
    left = []
    for _ in range(KILLS):
        with worker(url, tmp_path / "scratch"):
            before = jobs.job(job.id).counts["waiting"]
            limit = time.monotonic() + PATIENCE_S
            while jobs.job(job.id).counts["waiting"] == before and time.monotonic() < limit:
                time.sleep(0.02)
            time.sleep(random.random() * 0.1)
        left.append(jobs.job(job.id).counts["waiting"])
        if left[-1] == 0:
            break
    assert 0 < left[0] < ROWS, "the process was to be killed in the middle"
    with running(jobs):
        job = ended(jobs, jobs.job(job.id))
    assert job.phase == "COMPLETED"

    check_each(jobs, job, expected, tmp_path / "bucket/jobs" / job.id, tmp_path / "many")


def test_killed_reduction_is_that_of_reduce(jobs: Jobs, url: str, tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    files = [write_swath(tmp_path / f"g{number % 7}.h5", number) for number in range(40, 0, -1)]
    job = jobs.submit({"file": files}, Options.from_mapping(REDUCTION), "me")
    slow_down(url, job.id)
    left = []
    for _ in range(KILLS):
        with worker(url, tmp_path / "scratch"):
            before = jobs.job(job.id).counts["waiting"]
            limit = time.monotonic() + PATIENCE_S
            while jobs.job(job.id).counts["waiting"] == before and time.monotonic() < limit:
                time.sleep(0.02)
        left.append(jobs.job(job.id).counts["waiting"])
        if left[-1] == 0:
            break
    assert 0 < left[0] < len(files), "the process was to be killed in the middle"
    with running(jobs):
        job = ended(jobs, jobs.job(job.id))
    assert job.counts["ok"] == len(files) + 1
    given = {name: value for name, value in REDUCTION.items() if name != "operation"}
    swathe.reduce(files, **given).write(tmp_path / "expected.nc")
    result = contents_of(jobs.result(job.id, "reduce.nc"))
    assert result == (tmp_path / "expected.nc").read_bytes()
