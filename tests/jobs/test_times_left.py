"""Time left of jobs that run: in their views, on their page and in their events."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest
from astropy.io import fits

from swathe.catalog.records.jobs import ChunkResult
from swathe.jobs import Options
from swathe.jobs.times_left import TimesLeft
from swathe.portal.app import make_app, open_portal
from swathe.portal.config import config_of
from tests.support.portals import database_in

PREDICTED = {"median_s": 100.0, "interval_s": [50.0, 200.0]}


def test_a_running_job_shows_its_time_left_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This test takes the place of the runner.
    monkeypatch.setattr("swathe.workers.runner.Runner.start", lambda _runner: None)
    image = tmp_path / "a.fits"
    fits.PrimaryHDU(np.zeros((50, 50), np.int16)).writeto(image)
    columns = {"x0": [0] * 20, "y0": [0] * 20, "width": [5] * 20, "height": [5] * 20}
    settings = {
        "catalog": {"database": database_in(tmp_path)},
        "results": {"folder": str(tmp_path / "results")},
    }
    with open_portal(config_of(settings)) as portal:
        jobs, catalog = portal.jobs, portal.jobs.catalog
        catalog.add_store("own", str(tmp_path))
        job = jobs.submit({"file": ["own:a.fits"] * 20, **columns}, Options(), "anonymous")
        assert job.left is None
        chunk = catalog.take_chunk("r", 60.0, lambda _job, _results: 10)
        assert chunk is not None
        rows = [row._replace(status="missing") for row in catalog.chunk_rows(chunk)]
        record = catalog.finish_chunk(chunk, ChunkResult(rows[:10], work_s=30.0, complete=False))
        assert record is not None
        jobs.note_progress(record)
        left = jobs.job(job.id).left
        assert left is not None
        low_s, high_s = left["interval_s"]
        assert 0 < low_s < left["median_s"] < high_s

        async def ask(path: str) -> str:
            transport = httpx.ASGITransport(make_app(portal))
            async with httpx.AsyncClient(
                transport=transport, base_url="http://localhost"
            ) as asking:
                return (await asking.get(path)).text

        # The stream of events ends with the job.
        text = asyncio.run(ask(f"/jobs/{job.id}"))
        assert " left (0:" in text
        assert '"left":{"median_s":' in asyncio.run(ask(f"/api/jobs/{job.id}"))
        jobs.cancel(job.id)
        assert jobs.job(job.id).left is None
        assert '"left":null' in asyncio.run(ask(f"/api/jobs/{job.id}/events"))


def test_what_was_done_before_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.catalog.test_blocks import job_of, shuffled

    now = 1000.0
    monkeypatch.setattr("swathe.jobs.times_left.time.monotonic", lambda: now)
    rows = shuffled()
    job = replace(job_of(rows), phase="EXECUTING", predicted=PREDICTED, number=1)
    times = TimesLeft()
    left = times.of(job)
    assert left is not None
    assert left.median_s == pytest.approx(100)
    half = len(rows) // 2
    counts = job.counts | {"waiting": len(rows) - half, "ok": half}
    # Another process sees first that half was done in twice the predicted time.
    left = TimesLeft().of(replace(job, counts=counts, work_s=100.0))
    assert left is not None
    assert 60 < left.median_s < 101
    assert times.of(replace(job, predicted=None)) is None
    assert times.of(replace(job, phase="COMPLETED")) is None
