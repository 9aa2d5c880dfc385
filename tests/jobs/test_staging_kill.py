"""A portal that is killed while objects come from tape: the next one goes on, with its requests."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import sqlalchemy

from swathe.catalog import Catalog
from swathe.jobs import Jobs, Limits, Options, result_store_by_name
from swathe.stores.staging.model_library import sample_library
from tests.jobs.test_kill import worker
from tests.support.job_runner import PATIENCE_S, ended, running

NAMES = [f"frame-{number:04}.fits" for number in range(1, 5)]


def test_killed_while_staging_goes_on_with_the_same_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = sample_library(tmp_path / "tape", objects=4, media=2, drives=1, scale=0.1)
    url = f"sqlite:///{tmp_path}/catalog.sqlite"
    monkeypatch.setenv("SWATHE_DATABASE", url)
    (tmp_path / "bucket").mkdir()
    table = {"file": [f"tape:{name}" for name in NAMES], "x0": [1] * 4, "y0": [2] * 4}
    table |= {"width": [30] * 4, "height": [40] * 4}
    engine = sqlalchemy.create_engine(url)

    def requests() -> int:
        with engine.connect() as connection:
            query = sqlalchemy.text("SELECT count(*) FROM stage_requests")
            return int(connection.execute(query).scalar_one())

    with Catalog.open(url) as catalog:
        options = {"staging": "command", "staging_command": str(library.program)}
        catalog.add_store("tape", str(library.disk), "tape", options)
        catalog.add_store("results", str(tmp_path / "bucket"))
        place = result_store_by_name(catalog, "results:jobs", tmp_path / "scratch")
        with Jobs(catalog, place, limits=Limits()) as jobs:
            job = jobs.submit(table, Options(), "me")
            limit = time.monotonic() + 5 * PATIENCE_S
            with worker(url, tmp_path / "scratch"):
                while time.monotonic() < limit:
                    states = {file.state for file in catalog.stage_files("tape")}
                    if states and "waiting" not in states:
                        break
                    time.sleep(0.02)
            assert jobs.job(job.id).counts["waiting"] > 0, "it was to be killed while staging"
            count = requests()
            assert count == 1, "it was to be killed after it had asked"
            with running(jobs):
                job = ended(jobs, jobs.job(job.id))
                while time.monotonic() < limit:
                    pins = catalog.stage_pins("tape", "")
                    if not pins and not list(library.disk.glob("*.fits")):
                        break
                    time.sleep(0.05)
            assert (job.phase, job.counts["ok"], requests()) == ("COMPLETED", 4, count)
            files = [path for path in (tmp_path / "bucket/jobs").rglob("*") if path.is_file()]
            assert (len(files), pins, list(library.disk.glob("*.fits"))) == (4, [], [])
    engine.dispose()
