"""Jobs: what is submitted is done once, in fair turns, whoever dies; and can be fetched."""

from __future__ import annotations

import io
import itertools
import os
import shutil
import tarfile
import threading
import tracemalloc
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from astropy.io import fits
from astropy.table import Table
from sqlalchemy import event

import swathe
from swathe import _swathe
from swathe.catalog import Catalog, this_host
from swathe.catalog.records.jobs import Chunk, ChunkResult, JobRecord, PastJob
from swathe.core.errors import (
    AccessError,
    JobError,
    LimitError,
    NoSuchJobError,
    NoSuchResultError,
    OutputError,
    SourceError,
    TargetsError,
)
from swathe.jobs import Job, Jobs, Limits, Options
from swathe.jobs.archives import PART, SPOOL_BYTES, in_file
from swathe.jobs.estimate import overhead_s
from swathe.jobs.quota import REMOVAL_S
from swathe.jobs.types import ArchiveKind
from swathe.operations.registry import operations
from swathe.workers import Runner
from swathe.workers.batch import Batch, batch_of
from swathe.workers.runner import _is_dead
from tests.conftest import fits_bytes
from tests.support.job_runner import PATIENCE_S, contents_of, ended, running, targets


@pytest.fixture
def images(tmp_path: Path) -> list[str]:
    """Three images and a cube of random pixels."""
    rng = np.random.default_rng(7)
    shapes = [(60, 80), (60, 80), (90, 40), (5, 30, 30)]
    paths = []
    for number, shape in enumerate(shapes):
        path = tmp_path / f"image{number}.fits"
        path.write_bytes(fits_bytes(rng.integers(0, 9999, shape).astype(">i2")))
        paths.append(str(path))
    return paths


# ---- Running


def test_results_are_those_of_cut_many(
    jobs: Jobs, runner: Runner, images: list[str], tmp_path: Path
) -> None:
    table = targets(images)
    table["file"][5] = str(tmp_path / "absent.fits")
    table["width"][6] = 0
    expected = swathe.cut_many(table, tmp_path / "many", progress=False)
    job = ended(jobs, jobs.submit(table, Options(), "me", name="mine"))

    assert job.phase == "COMPLETED"
    assert (job.rows, job.owner, job.name, job.error) == (60, "me", "mine", None)
    statuses = expected["status"].tolist()
    assert job.counts == {"waiting": 0} | {
        status: statuses.count(status) for status in ("ok", "no-overlap", "missing", "error")
    }
    assert {"ok", "no-overlap", "missing", "error"} <= set(statuses)
    rows = jobs.rows(job.id)
    assert [row.number for row in rows] == list(range(60))
    for row, kept in zip(rows, expected, strict=True):
        assert (row.id, row.status, row.bytes) == (kept["id"], kept["status"], kept["bytes"])
        assert (row.source, row.sha256, row.reason) == (
            kept["source"],
            kept["sha256"],
            kept["reason"],
        )
        if row.status == "ok":
            found = jobs.result(job.id, row.name)
            assert contents_of(found) == (tmp_path / "many" / kept["path"]).read_bytes()
            assert found.size == row.bytes
            assert found.media_type == "application/fits"
            assert Path(found.file).parent.name == "0000"
        else:
            assert row.name == ""
    assert job.bytes == sum(row.bytes for row in rows)
    manifest = Table.read(
        b"".join(jobs.manifest(job.id)).decode(), format="ascii.ecsv", fill_values=[]
    )
    assert manifest.colnames == expected.colnames
    for name in expected.colnames:
        assert list(map(str, manifest[name].tolist())) == list(map(str, expected[name].tolist()))
    left = {path.name for path in (jobs.folder(job.id)).iterdir()}
    assert left == {"0000"}


def test_a_long_list_is_predicted_in_parts_of_whole_objects(
    jobs: Jobs, images: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [images[row % len(images)] for row in range(30)]
    box = {"x0": [5] * 30, "y0": [5] * 30, "width": [9] * 30, "height": [9] * 30}
    at_once = jobs.estimate({"file": files, **box}, Options()).prediction
    monkeypatch.setattr("swathe.jobs.estimate.PREDICTED_ROWS", 4)
    in_parts = jobs.estimate({"file": files, **box}, Options()).prediction
    assert at_once is not None and in_parts is not None
    assert (in_parts.bytes, in_parts.requests) == (at_once.bytes, at_once.requests)


def test_prediction_stands_beside_what_it_cost(
    jobs: Jobs, runner: Runner, images: list[str], catalog: Catalog
) -> None:
    job = jobs.submit(targets(images), Options(), "me")
    assert job.predicted is not None
    assert set(job.predicted) == {"median_s", "interval_s", "bytes", "requests"}
    job = ended(jobs, job)
    assert job.predicted is not None
    assert job.actual is not None
    assert job.actual["work_s"] > 0
    assert job.actual["bytes"] > 0
    for _ in range(10 * PATIENCE_S):
        if outcomes := catalog.outcomes():
            break
        jobs.pause(0.1)
    assert [outcome.targets for outcome in outcomes] == [job.counts["ok"]]
    assert outcomes[0].predicted_bytes == job.predicted["bytes"]


def test_planes_may_differ_by_row(jobs: Jobs, runner: Runner, images: list[str]) -> None:
    table = {
        "file": [images[3]] * 6,
        "x0": [1] * 6,
        "y0": [2] * 6,
        "width": [3] * 6,
        "height": [4] * 6,
        "planes": ["1:3", "", "4:5", "3:1", "4:6", "1:3,0:1"],
    }
    job = ended(jobs, jobs.submit(table, Options(planes=(0, 4)), "me"))
    shapes = [
        fits.getdata(jobs.result(job.id, row.name).file).shape
        for row in jobs.rows(job.id, status="ok")
    ]
    assert shapes == [(2, 4, 3), (4, 4, 3), (1, 4, 3)]
    wrong, outside, axis = jobs.rows(job.id, status="error")
    assert [wrong.number, outside.number, axis.number] == [3, 4, 5]
    assert "3:1" in wrong.reason
    assert outside.reason.startswith(images[3])
    assert "planes 4:6 of NAXIS3 are not within the image of shape [30, 30, 5]" in outside.reason
    assert "planes 0:1 of NAXIS4 are not within the image of shape [30, 30, 5]" in axis.reason


@pytest.mark.parametrize("kind", ["npy", "png"])
def test_results_in_other_formats(
    jobs: Jobs, runner: Runner, images: list[str], tmp_path: Path, kind: Any
) -> None:
    table = targets(images, 12)
    job = ended(jobs, jobs.submit(table, Options(format=kind), "me"))
    for row in jobs.rows(job.id, status="ok"):
        box = tuple(table[name][row.number] for name in ("x0", "y0", "width", "height"))
        cutout = swathe.cut(table["file"][row.number], box=box)
        cutout.write(tmp_path / f"expected.{kind}", overwrite=True)
        found = jobs.result(job.id, row.name)
        assert contents_of(found) == (tmp_path / f"expected.{kind}").read_bytes()
        assert found.name.endswith(f".{kind}")
    assert job.counts["ok"] > 3


def test_a_job_waits_until_it_is_started(jobs: Jobs, runner: Runner, images: list[str]) -> None:
    job = jobs.submit(targets(images), Options(), "me", start=False)
    assert job.phase == "PENDING"
    assert jobs.wait(job.id, "PENDING", 0.7).phase == "PENDING"
    with pytest.raises(JobError, match="not started"):
        jobs.archive(job.id, "zip")
    assert jobs.start(job.id).phase == "QUEUED"
    assert ended(jobs, job).phase == "COMPLETED"
    assert jobs.start(job.id).phase == "COMPLETED"


def test_a_job_of_which_nothing_works_is_in_error(
    jobs: Jobs, runner: Runner, tmp_path: Path
) -> None:
    table = {"file": [str(tmp_path / "absent.fits")], "x0": [1], "y0": [1]}
    job = ended(jobs, jobs.submit(table | {"width": [3], "height": [3]}, Options(), "me"))
    assert job.phase == "ERROR"
    assert job.error is not None
    assert "absent.fits" in job.error


def test_an_empty_job_is_done_at_once(jobs: Jobs, images: list[str]) -> None:
    table: dict[str, list[Any]] = {name: [] for name in ("file", "x0", "y0", "width", "height")}
    job = jobs.submit(table, Options(), "me")
    assert (job.phase, job.rows, job.predicted) == ("COMPLETED", 0, None)
    with zipfile.ZipFile(io.BytesIO(b"".join(jobs.archive(job.id, "zip")))) as archive:
        assert archive.namelist() == ["manifest.ecsv"]


def test_failed_rows_are_done_again(
    jobs: Jobs, runner: Runner, images: list[str], tmp_path: Path
) -> None:
    table = targets(images, 30)
    late = tmp_path / "late.fits"
    table["file"][4] = table["file"][20] = str(late)
    table["width"][9] = -1
    job = ended(jobs, jobs.submit(table, Options(), "me"))
    assert job.counts["missing"] == 2
    first = {row.number: row for row in jobs.rows(job.id)}
    late.write_bytes(Path(images[0]).read_bytes())
    job = ended(jobs, jobs.resume(job.id))
    assert job.phase == "COMPLETED"
    assert job.counts["missing"] == 0
    second = {row.number: row for row in jobs.rows(job.id)}
    assert second[4].status in ("ok", "no-overlap")
    # What the list itself had wrong stays wrong, and what was done is not done again.
    assert second[9] == first[9]
    assert all(second[row] == first[row] for row in first if row not in (4, 20))
    assert sum(job.counts.values()) == job.rows
    assert job.bytes == sum(row.bytes for row in second.values())


def test_cancel_keeps_what_is_done_and_resume_does_the_rest(
    jobs: Jobs, images: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe.workers.runner.FIRST_CHUNK", 7)
    monkeypatch.setattr("swathe.workers.runner.MOST_GROWTH", 1.0)
    monkeypatch.setattr("swathe.catalog.jobs.leases.LARGEST_CHUNK", 7)
    job = jobs.submit(targets(images, 200), Options(), "me")
    # Else all might be done before it is cancelled.
    given, go_on = itertools.count(), threading.Event()

    def made(catalog: Catalog, chunk: Chunk) -> Batch:
        assert next(given) < 5 or go_on.wait(PATIENCE_S)
        return batch_of(catalog, chunk)

    monkeypatch.setattr("swathe.workers.runner.batch_of", made)
    with running(jobs):
        seen = 0
        while jobs.job(job.id).counts["waiting"] == 200:
            seen = jobs.wait_for_change(job.id, seen, 5.0)
        stopped = jobs.cancel(job.id)
        assert stopped.phase == "ABORTED"
        assert stopped.ended_at is not None
        go_on.set()
    left = jobs.job(job.id).counts["waiting"]
    assert 0 < left < 200
    assert jobs.cancel(job.id).phase == "ABORTED"
    with running(jobs):
        job = jobs.resume(job.id)
        with pytest.raises(JobError, match="expected a job that has ended"):
            jobs.resume(job.id)
        job = ended(jobs, job)
    assert job.phase == "COMPLETED"
    assert job.counts["waiting"] == 0


def test_results_that_cannot_be_written_end_the_job(
    jobs: Jobs, runner: Runner, images: list[str]
) -> None:
    job = jobs.submit(targets(images), Options(), "me", start=False)
    folder = jobs.folder(job.id)
    folder.write_text("in the way")
    job = ended(jobs, jobs.start(job.id))
    assert job.phase == "ERROR"
    assert job.error is not None
    assert str(folder) in job.error
    folder.unlink()
    assert ended(jobs, jobs.resume(job.id)).phase == "COMPLETED"


# ---- Turns


def no_size(_job: JobRecord, _of_results: bool) -> int:
    return 10


def test_users_take_turns_and_so_do_their_jobs(
    jobs: Jobs, catalog: Catalog, images: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe.catalog.jobs.leases.LARGEST_CHUNK", 10)
    long = jobs.submit(targets(images, 1000), Options(), "busy")
    other = jobs.submit(targets(images, 100), Options(), "busy")
    short = jobs.submit(targets(images, 20), Options(), "quick")
    names = {long.id: "long", other.id: "other", short.id: "short"}
    turns = []
    for _ in range(8):
        chunk = catalog.take_chunk("r", 60.0, no_size)
        assert chunk is not None
        turns.append(names[chunk.job.id])
    assert turns == ["long", "short", "other", "short", "long", "other", "long", "other"]


def test_rows_of_one_object_stay_together(jobs: Jobs, catalog: Catalog, images: list[str]) -> None:
    job = jobs.submit(targets(images, 60), Options(), "me")
    sources = []
    while chunk := catalog.take_chunk("r", 60.0, no_size):
        sources.append({row.source for row in catalog.chunk_rows(chunk)})
    assert sources == [{images[0]}, {images[1]}, {images[2]}]
    assert jobs.job(job.id).phase == "EXECUTING"


def test_chunks_of_the_dead_go_to_others(jobs: Jobs, catalog: Catalog, images: list[str]) -> None:
    jobs.submit(targets(images, 60), Options(), "me")
    gone = f"{this_host()} 999999999 123 x"
    here = Runner(jobs)._name
    assert _is_dead(gone)
    assert not _is_dead(here)
    assert not _is_dead("elsewhere 999999999 123 x")
    dead = catalog.take_chunk(gone, 60.0, no_size)
    alive = catalog.take_chunk(here, 60.0, no_size)
    late = catalog.take_chunk("elsewhere 1 1 x", -1.0, no_size)
    assert dead is not None
    assert alive is not None
    assert late is not None
    assert catalog.take_chunk(here, 60.0, no_size) is None
    catalog.renew_leases(here, 60.0)
    assert catalog.free_chunks(_is_dead) == 2
    again = [catalog.take_chunk(here, 60.0, no_size) for _ in range(3)]
    firsts = [chunk and chunk.first for chunk in again]
    assert firsts == [dead.first, late.first, None]
    # Who was taken for dead may not mark rows any more.
    rows = catalog.chunk_rows(dead)
    assert catalog.finish_chunk(dead, ChunkResult(rows)) is None
    assert catalog.job(dead.job.id).counts["waiting"] == 60


# ---- Limits and access


def test_limits_of_a_user(catalog: Catalog, tmp_path: Path, images: list[str]) -> None:
    def with_limits(**limits: Any) -> Jobs:
        return Jobs(catalog, tmp_path / "results", limits=Limits(**limits))

    few = targets(images, 10)
    with pytest.raises(LimitError, match="may have 9 rows, not 10") as raised:
        with_limits(rows_per_job=9).submit(few, Options(), "me")
    assert raised.value.retry_after_s is None
    jobs = with_limits(jobs=2)
    first = jobs.submit(few, Options(), "me", start=False)
    jobs.submit(few, Options(), "me")
    with pytest.raises(LimitError, match="2 are allowed") as raised:
        jobs.submit(few, Options(), "me")
    assert raised.value.retry_after_s is not None
    assert jobs.start(first.id).phase == "QUEUED"
    jobs.submit(few, Options(), "another")
    jobs.cancel(first.id)
    jobs.submit(few, Options(), "me")
    with pytest.raises(LimitError, match="2 are allowed"):
        jobs.resume(first.id)
    with pytest.raises(LimitError, match="30 rows waiting"):
        with_limits(rows_waiting=29).submit(few, Options(), "me")
    with pytest.raises(LimitError, match="delete some"):
        with_limits(result_bytes=0).submit(few, Options(), "me")


def test_job_that_comes_to_more_than_is_allowed_is_ended(
    catalog: Catalog, tmp_path: Path, images: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe.workers.runner.FIRST_CHUNK", 20)
    monkeypatch.setattr("swathe.workers.runner.MOST_GROWTH", 1.0)
    table = targets(images, 400)
    table["x0"], table["y0"] = [1] * 400, [1] * 400
    # Many, as none is divided over chunks.
    for copy in range(40):
        shutil.copy(images[0], tmp_path / f"copy{copy}.fits")
    table["file"] = [str(tmp_path / f"copy{row % 40}.fits") for row in range(400)]
    limits = Limits(result_bytes=300 * 5760)
    with Jobs(catalog, tmp_path / "results", limits=limits) as jobs:
        first = jobs.submit({name: values[:150] for name, values in table.items()}, Options(), "me")
        with running(jobs):
            assert ended(jobs, first).phase == "COMPLETED"
            job = ended(jobs, jobs.submit(table, Options(), "me"))
            assert job.phase == "ERROR"
            assert job.error is not None
            assert "are allowed: delete some, and resume the job" in job.error
            # What was done stays; what was in the making may still come.
            assert 150 <= job.counts["ok"] < 400
            with pytest.raises(LimitError, match="delete some"):
                jobs.resume(job.id)
            jobs.delete(first.id)
            while catalog.usage_of("me").deleted_bytes:
                jobs.pause(0.05)
            assert ended(jobs, jobs.resume(job.id)).counts["ok"] > job.counts["ok"]


def test_files_that_may_not_be_read(catalog: Catalog, tmp_path: Path, images: list[str]) -> None:
    def allowed(file: str) -> None:
        if file == images[1]:
            raise AccessError(f"{file}: may not be read")

    with Jobs(catalog, tmp_path / "r", limits=Limits(), check_source=allowed) as jobs:
        with running(jobs):
            job = ended(jobs, jobs.submit(targets(images), Options(), "me"))
        assert job.phase == "COMPLETED"
        for row in jobs.rows(job.id):
            assert (row.source == images[1]) == ("may not be read" in row.reason)
        only = {name: values[1:2] for name, values in targets(images).items()}
        with pytest.raises(AccessError, match="may not be read"):
            jobs.submit(only, Options(), "me")
        sky = {"file": images[1:2], "ra": [1.0], "dec": [2.0], "size_deg": [0.1]}
        with pytest.raises(AccessError, match="may not be read"):
            jobs.submit(sky, Options(), "me")


def test_secrets_in_urls_are_not_kept(jobs: Jobs) -> None:
    table = {"file": ["https://me:secret@a.example/x.fits"], "x0": [1], "y0": [1]}
    with pytest.raises(AccessError, match="no URL with credentials") as raised:
        jobs.submit(table | {"width": [3], "height": [3]}, Options(), "me")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ("targets.csv", TargetsError),
        (Path("targets.csv"), TargetsError),
        (7, TargetsError),
        ({"file": ["a"], "x": [1]}, TargetsError),
        ({"x": [1], "y": [1], "height": [1], "width": [1]}, TargetsError),
        ({"file": ["a", "b"], "x0": [1]}, TargetsError),
    ],
)
def test_lists_that_make_no_sense(jobs: Jobs, table: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        jobs.submit(table, Options(), "me")
    assert jobs.list() == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"colour": 1}, "unknown option 'colour'"),
        (
            {"operation": "mow"},
            "option operation: expected one of cut, algorithm, mse, reduce, rgb, stack, volren",
        ),
        ({"mode": ["trim"]}, "option mode"),
        ({"mode": "partial", "fill": "x"}, "option fill: a number, not 'x'"),
        ({"mode": "partial", "fill": 10**400}, "option fill: a finite number"),
        ({"mode": "partial", "fill": float("nan")}, "option fill: a finite number, not nan"),
        ({"fill": 1}, "option fill: goes with mode partial"),
        ({"planes": "5:2"}, "option planes"),
        ({"planes": [1, 2, 3]}, "option planes"),
        ({"planes": 7}, "option planes"),
        ({"format": "gif"}, "option format"),
        ({"format": "rgb", "bands": ["g", "r"]}, "bands: expected three, red first, found 2"),
        ({"bands": [1]}, "option bands"),
        ({"bands": ["x"] * 101}, "option bands"),
        ({"dataset": ""}, "option dataset"),
        ({"time": 5}, "option time"),
        ({"time": [9, 5]}, "option time"),
        (
            {"operation": "stack", "format": "png"},
            "format: expected fits for operation stack, found 'png'",
        ),
        ({"stack": "sum"}, "option stack"),
    ],
)
def test_options_that_make_no_sense(given: dict[str, Any], message: str) -> None:
    with pytest.raises(JobError, match=message):
        Options.from_mapping(given)


def test_options_come_back_as_they_were() -> None:
    given = {
        "mode": "partial",
        "fill": -1.5,
        "planes": "2:9",
        "format": "rgb",
        "bands": "i,r,g",
        "time": ["2005-09-21T00:00:00", 53700],
        "dataset": None,
    }
    options = Options.from_mapping(given)
    assert options.planes == (2, 9)
    assert options.bands == ("i", "r", "g")
    assert options.time == (53634.0, 53700.0)
    assert Options.from_mapping(options.as_dict()) == options


# ---- Looking and changing


def test_jobs_are_listed(jobs: Jobs, images: list[str]) -> None:
    table = targets(images, 3)
    made = [jobs.submit(table, Options(), owner) for owner in ("a", "b", "a")]
    jobs.cancel(made[0].id)
    ids = [job.id for job in made]
    assert [job.id for job in jobs.list()] == ids[::-1]
    assert [job.id for job in jobs.list("a")] == [ids[2], ids[0]]
    assert [job.id for job in jobs.list(phases=["ABORTED"])] == ids[:1]
    assert [job.id for job in jobs.list(last=1)] == ids[2:]
    assert [job.id for job in jobs.list(after=made[1].created_at)] == ids[2:]
    assert all(len(job_id) == 22 for job_id in ids)


def test_unknown_jobs(jobs: Jobs) -> None:
    calls: list[Callable[[str], Any]] = [
        jobs.job,
        jobs.rows,
        jobs.start,
        jobs.cancel,
        jobs.resume,
        jobs.delete,
        lambda job: jobs.set_expiry(job, datetime.now(UTC)),
        lambda job: jobs.set_name(job, "x"),
        lambda job: jobs.result(job, "x"),
        lambda job: jobs.archive(job, "zip"),
        jobs.manifest,
        lambda job: jobs.wait(job, "QUEUED", 1.0),
        lambda job: jobs.wait_for_change(job, 0, 1.0),
    ]
    for call in calls:
        for unknown in ("nothing", "no\0thing", "../x", ""):
            with pytest.raises(NoSuchJobError, match="there is no job"):
                call(unknown)


def test_parameters_and_names_are_kept(jobs: Jobs, images: list[str]) -> None:
    given = [("POS", "CIRCLE 1 2 3"), ("POS", "x\0y"), ("RUNID", "ü")]
    job = jobs.submit(targets(images, 3), Options(), "me", name="a\0b", parameters=given)
    assert job.parameters == [("POS", "CIRCLE 1 2 3"), ("POS", "xy"), ("RUNID", "ü")]
    assert job.name == "ab"
    assert jobs.set_name(job.id, "other").name == "other"
    assert jobs.job(job.id).name == "other"


def test_expiry_is_kept_within_limits_and_deletes_all(
    catalog: Catalog, tmp_path: Path, images: list[str]
) -> None:
    limits = Limits(default_s=100, longest_s=1000)
    with Jobs(catalog, tmp_path / "r", limits=limits) as jobs:
        with running(jobs):
            job = ended(jobs, jobs.submit(targets(images), Options(), "me"))
        assert job.expires_at == job.created_at + timedelta(seconds=100)
        far = datetime.now(UTC) + timedelta(days=999)
        assert jobs.set_expiry(job.id, far).expires_at == job.created_at + timedelta(seconds=1000)
        assert jobs.folder(job.id).is_dir()
        jobs.tidy()
        assert jobs.folder(job.id).is_dir()
        jobs.set_expiry(job.id, datetime.now(UTC) - timedelta(seconds=1))
        (tmp_path / "r" / "other").mkdir()
        jobs.tidy()
        assert [path.name for path in (tmp_path / "r").iterdir()] == ["other"]
        with pytest.raises(NoSuchJobError):
            jobs.job(job.id)


def test_a_job_deleted_while_it_runs_leaves_nothing(
    jobs: Jobs, images: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe.catalog.jobs.leases.LARGEST_CHUNK", 50)
    job = jobs.submit(targets(images, 3000), Options(), "me")
    with running(jobs):
        jobs.wait(job.id, "QUEUED", PATIENCE_S)
        jobs.delete(job.id)
    assert jobs.list() == []
    # What a batch makes after the first removal is removed when nobody can be at work any more.
    monkeypatch.setattr("swathe.jobs.service.GRACE_S", 0)
    jobs.tidy()
    assert list(jobs.folder(job.id).parent.iterdir()) == []


def test_a_job_deleted_while_turns_are_sorted_is_passed_over(
    jobs: Jobs, catalog: Catalog, images: list[str]
) -> None:
    if catalog._engine.dialect.name == "sqlite":
        pytest.skip("nobody else writes meanwhile")
    job = jobs.submit(targets(images, 3), Options(), "me")
    looks: list[str] = []

    def delete(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "max(" in statement and "served_at" in statement:
            looks.append(statement)
            jobs.delete(job.id)

    event.listen(catalog._engine, "before_cursor_execute", delete)
    try:
        assert catalog.take_chunk("somebody", 10.0, lambda _job, _results: 1) is None
    finally:
        event.remove(catalog._engine, "before_cursor_execute", delete)
    assert len(looks) == 1


def test_a_job_that_cannot_be_removed_holds_up_no_other(
    jobs: Jobs, catalog: Catalog, images: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [jobs.submit(targets(images, 3), Options(), "me") for _ in range(3)]
    removed = []

    def remove(job: str, _stopped: Callable[[], bool]) -> bool:
        if job == made[1].id:
            raise OutputError(f"{job}: it is held")
        removed.append(job)
        return True

    monkeypatch.setattr(jobs.place, "remove", remove)
    for job in made:
        jobs.delete(job.id)
    for _ in range(2):
        with pytest.raises(OutputError, match="it is held"):
            jobs.tidy()
    assert removed == [made[0].id, made[2].id]
    monkeypatch.setattr("swathe.jobs.service.GRACE_S", -1.0)
    with pytest.raises(OutputError, match="it is held"):
        jobs.tidy()
    assert [job.id for job in catalog.deleted_jobs()] == [made[1].id]


class SlowRemover:
    """Removes a folder only when it is let."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.check = threading.Event()
        self._remove = _swathe.remove_folder
        monkeypatch.setattr(_swathe, "remove_folder", self)

    def __call__(self, path: str) -> None:
        assert self.check.wait(PATIENCE_S)
        self._remove(path)


def test_deleted_results_count_for_their_owner_until_they_are_removed(
    catalog: Catalog, tmp_path: Path, images: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    remover = SlowRemover(monkeypatch)
    # The deletion itself begins the removal, not the next round.
    monkeypatch.setattr("swathe.workers.runner.RENEW_S", 10.0 * PATIENCE_S)
    few = targets(images, 30)
    with Jobs(catalog, tmp_path / "results", limits=Limits(result_bytes=1)) as jobs:
        with running(jobs):
            job = ended(jobs, jobs.submit(few, Options(), "me"))
            waiting = jobs.submit(few, Options(), "other", start=False)
            jobs.delete(job.id)
            held = catalog.usage_of("me")
            assert (held.bytes, held.deleted_bytes) == (0, job.bytes)
            assert job.bytes > 0
            with pytest.raises(LimitError, match="wait until these are removed") as raised:
                jobs.submit(few, Options(), "me")
            assert raised.value.retry_after_s == REMOVAL_S
            assert jobs.start(waiting.id).phase == "QUEUED"  # others are not held up
            assert catalog.removal_backlog() == (1, job.bytes)
            remover.check.set()
            while catalog.usage_of("me").deleted_bytes:
                jobs.pause(0.05)
            assert ended(jobs, jobs.submit(few, Options(), "me")).counts["ok"] > 0
        assert catalog.removal_backlog() == (0, 0)


def test_only_what_is_to_be_removed_is_looked_at_again(
    jobs: Jobs, images: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deletions are remembered for ten minutes; a user may make thousands meanwhile."""
    removed: list[str] = []

    def remove(job: str, _stopped: Callable[[], bool]) -> bool:
        removed.append(job)
        return True

    monkeypatch.setattr(jobs.place, "remove", remove)
    first, second = (jobs.submit(targets(images, 3), Options(), "me").id for _ in range(2))
    jobs.delete(first)
    jobs.tidy()
    jobs.delete(second)
    over = datetime.now(UTC) - timedelta(minutes=10)
    assert [job.id for job in jobs.catalog.deleted_jobs(over)] == [second]
    jobs.tidy()
    assert removed == [first, second]
    monkeypatch.setattr("swathe.jobs.service.GRACE_S", -1.0)
    jobs.tidy()
    assert removed == [first, second, first, second]
    assert jobs.catalog.deleted_jobs() == []


def test_results_of_deleted_jobs_end_no_job(
    catalog: Catalog, tmp_path: Path, images: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    remover = SlowRemover(monkeypatch)
    few = targets(images, 30)
    limits = Limits(result_bytes=200_000)
    with Jobs(catalog, tmp_path / "results", limits=limits) as jobs, running(jobs):
        job = ended(jobs, jobs.submit(few, Options(), "me"))
        assert 100_000 < job.bytes < 200_000
        second = jobs.submit(few, Options(), "me", start=False)
        jobs.delete(job.id)
        second = ended(jobs, jobs.start(second.id))
        assert (second.phase, second.error) == ("COMPLETED", None)
        remover.check.set()


def test_jobs_wait_while_removal_is_behind(
    catalog: Catalog,
    tmp_path: Path,
    images: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    remover = SlowRemover(monkeypatch)
    few = targets(images, 30)
    limits = Limits(removal_bytes=100_000)
    with Jobs(catalog, tmp_path / "results", limits=limits) as jobs, running(jobs) as runner:
        job = ended(jobs, jobs.submit(few, Options(), "me"))
        waiting = jobs.submit(few, Options(), "other", start=False)
        jobs.delete(job.id)
        assert job.bytes > 100_000
        with pytest.raises(LimitError, match="1 deleted jobs are not removed yet") as raised:
            jobs.submit(few, Options(), "another")
        assert raised.value.retry_after_s
        jobs.start(waiting.id)
        while not runner.lag:
            jobs.pause(0.05)
        # Nothing of it is done, for some turns of the runner.
        for _ in range(3):
            jobs.pause(1.0)
            assert jobs.job(waiting.id).phase == "QUEUED"
        assert "jobs wait: the results of 1 deleted jobs" in caplog.text
        remover.check.set()
        assert ended(jobs, jobs.job(waiting.id)).phase == "COMPLETED"
        assert runner.lag == ""
        assert "jobs continue" in caplog.text


def test_results_that_come_after_all_are_recorded_and_removed(
    jobs: Jobs, catalog: Catalog, images: list[str], tmp_path: Path
) -> None:
    """A worker may still write when the deletion of its job is forgotten."""
    job = jobs.submit(targets(images, 3), Options(), "me")
    jobs.delete(job.id)
    catalog.forget_deletion(job.id)
    jobs.folder(job.id).mkdir()
    jobs.remove_orphan(job.id)
    assert [(each.id, each.removed) for each in catalog.deleted_jobs()] == [(job.id, False)]
    jobs.tidy()
    assert list((tmp_path / "results").iterdir()) == []


def test_changes_are_told(jobs: Jobs, images: list[str]) -> None:
    job = jobs.submit(targets(images, 3), Options(), "me", start=False)
    seen = jobs.wait_for_change(job.id, 0, PATIENCE_S)
    assert jobs.wait_for_change(job.id, seen, 0.01) == seen
    assert jobs.wait_for_change(job.id, seen, PATIENCE_S, should_stop=lambda: True) == seen
    later = threading.Timer(0.1, lambda: jobs.set_name(job.id, "new"))
    later.start()
    assert jobs.wait_for_change(job.id, seen, PATIENCE_S) > seen
    later.join()


# ---- Fetching


@pytest.fixture
def done(jobs: Jobs, images: list[str]) -> Job:
    with running(jobs):
        return ended(jobs, jobs.submit(targets(images), Options(), "me"))


def contents(jobs: Jobs, job: Job) -> dict[str, bytes]:
    """Name and bytes of each result, in the user's order."""
    names = [row.name for row in jobs.rows(job.id, status="ok")]
    return {name: contents_of(jobs.result(job.id, name)) for name in names}


def test_zip(jobs: Jobs, done: Job) -> None:
    with zipfile.ZipFile(io.BytesIO(b"".join(jobs.archive(done.id, "zip")))) as archive:
        assert archive.testzip() is None
        found = {name: archive.read(name) for name in archive.namelist()}
        kinds = {member.compress_type for member in archive.infolist()}
    assert kinds == {zipfile.ZIP_STORED}
    assert list(found)[-1] == "manifest.ecsv"
    assert found.pop("manifest.ecsv") == b"".join(jobs.manifest(done.id))
    assert list(found.items()) == list(contents(jobs, done).items())


def test_tar(jobs: Jobs, done: Job) -> None:
    with tarfile.open(fileobj=io.BytesIO(b"".join(jobs.archive(done.id, "tar")))) as archive:
        members = [(each.name, archive.extractfile(each)) for each in archive]
        found = {name: file.read() for name, file in members if file is not None}
    assert list(found)[-1] == "manifest.ecsv"
    del found["manifest.ecsv"]
    assert list(found.items()) == list(contents(jobs, done).items())


def test_one_fits_file_of_all(jobs: Jobs, done: Job) -> None:
    expected = contents(jobs, done)
    with fits.open(io.BytesIO(b"".join(jobs.archive(done.id, "fits"))), checksum=True) as hdus:
        hdus.verify("exception")
        assert [f"{hdu.name.lower()}.fits" for hdu in hdus[1:]] == list(expected)
        for hdu, whole in zip(hdus[1:], expected.values(), strict=True):
            with fits.open(io.BytesIO(whole)) as single:
                assert np.array_equal(hdu.data, single[0].data)
                changed = ("SIMPLE", "XTENSION", "PCOUNT", "GCOUNT", "EXTNAME", "CHECKSUM")
                kept, cards = (
                    [str(card) for card in header.cards if card.keyword not in changed]
                    for header in (hdu.header, single[0].header)
                )
                assert kept == cards


def test_an_archive_follows_the_work_to_its_end(jobs: Jobs, images: list[str]) -> None:
    job = jobs.submit(targets(images, 200), Options(), "me")
    parts: list[bytes] = []
    reader = threading.Thread(target=lambda: parts.extend(jobs.archive(job.id, "tar")))
    reader.start()
    with running(jobs):
        reader.join(PATIENCE_S)
        assert not reader.is_alive()
    job = jobs.job(job.id)
    assert job.phase == "COMPLETED"
    with tarfile.open(fileobj=io.BytesIO(b"".join(parts))) as archive:
        assert archive.getnames() == [*contents(jobs, job), "manifest.ecsv"]


def test_who_follows_a_job_that_waits_reads_its_next_row_alone(
    jobs: Jobs, catalog: Catalog, images: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = jobs.submit(targets(images, 200), Options(), "me")
    read: list[int] = []
    rows_of = catalog.job_rows

    def job_rows(number: int, **asked: Any) -> Any:
        read.append(asked["limit"])
        return rows_of(number, **asked)

    monkeypatch.setattr(catalog, "job_rows", job_rows)
    jobs.close()
    with pytest.raises(JobError, match="could not be completed"):
        list(jobs.archive(job.id, "tar"))
    assert read == [1]
    jobs.cancel(job.id)
    list(jobs._done_rows(job.id))
    assert read == [1, 5000, 5000]


def test_an_archive_of_a_cancelled_job_holds_what_is_done(jobs: Jobs, images: list[str]) -> None:
    job = jobs.submit(targets(images), Options(), "me")
    jobs.cancel(job.id)
    with tarfile.open(fileobj=io.BytesIO(b"".join(jobs.archive(job.id, "tar")))) as archive:
        assert archive.getnames() == ["manifest.ecsv"]


def test_no_other_results_are_given(jobs: Jobs, done: Job) -> None:
    name = next(row.name for row in jobs.rows(done.id, status="ok"))
    found = jobs.result(done.id, name)
    assert found.etag == f'"{found.sha256[:32]}"'
    failed = next(row for row in jobs.rows(done.id) if row.status != "ok")
    wrong = [
        "",
        ".",
        "..",
        "../" + name,
        "0000/" + name,
        name.upper(),
        name.removesuffix(".fits"),
        name + "/",
        name + "\0",
        "x" * 10_000,
        f"{failed.id}.fits",
        "manifest.ecsv",
    ]
    for other in wrong:
        with pytest.raises(NoSuchResultError):
            jobs.result(done.id, other)
    Path(found.file).unlink()
    with pytest.raises(NoSuchResultError, match="no longer exists"):
        jobs.result(done.id, name)


def test_small_results_are_sent_together(jobs: Jobs, done: Job) -> None:
    """A part of an answer costs the portal as much as reading several results."""
    archive = b"".join(jobs.archive(done.id, "tar"))
    assert len(list(jobs.archive(done.id, "tar"))) == -(-len(archive) // PART)


def test_a_long_manifest_in_an_archive_is_in_a_file_meanwhile(
    jobs: Jobs, done: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe.jobs.archives.SPOOL_BYTES", 10)
    expected = b"".join(jobs.manifest(done.id))
    with tarfile.open(fileobj=io.BytesIO(b"".join(jobs.archive(done.id, "tar")))) as archive:
        member = archive.extractfile("manifest.ecsv")
        assert member is not None and member.read() == expected
    with zipfile.ZipFile(io.BytesIO(b"".join(jobs.archive(done.id, "zip")))) as packed:
        assert packed.read("manifest.ecsv") == expected


def test_of_a_long_manifest_little_is_in_memory() -> None:
    tracemalloc.start()
    try:
        with in_file(bytes(PART) for _ in range(5 * SPOOL_BYTES // PART)) as file:
            assert file.tell() == 5 * SPOOL_BYTES
        assert tracemalloc.get_traced_memory()[1] < 3 * SPOOL_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("change", [-2880, 2880])
@pytest.mark.parametrize("kind", ["tar", "fits"])
def test_an_archive_ends_at_a_result_of_another_length(
    jobs: Jobs, done: Job, kind: ArchiveKind, change: int
) -> None:
    """Else what follows it would stand in the wrong place, and nobody would know."""
    name = next(row.name for row in jobs.rows(done.id, status="ok"))
    file = Path(jobs.result(done.id, name).file)
    os.truncate(file, file.stat().st_size + change)
    with pytest.raises(SourceError, match=r"expected a result of \d+ bytes, found"):
        list(jobs.archive(done.id, kind))


def test_names_are_safe_and_unique(jobs: Jobs, runner: Runner, images: list[str]) -> None:
    ids = ["../up", "a b", "A B", "a b", ".x", "", "ü", "n\0l"]
    table = {name: values[:1] * len(ids) for name, values in targets(images).items()}
    table |= {"id": ids, "x0": [0] * len(ids), "y0": [0] * len(ids)}
    job = ended(jobs, jobs.submit(table, Options(), "me"))
    names = [row.name for row in jobs.rows(job.id)]
    assert job.counts["ok"] == len(ids)
    assert len({name.lower() for name in names}) == len(ids)
    for name, other in itertools.pairwise(names):
        assert jobs.result(job.id, name).file != jobs.result(job.id, other).file


# ---- What jobs take beside the engine


PNG = Options(format="png").results.file_format


def past(rows: int, outside_s: float, engine_s: float = 1.0) -> PastJob:
    return PastJob("cut", "png", rows, outside_s + engine_s, engine_s)


def test_time_beside_the_engine_is_learned() -> None:
    done = [past(rows, 0.5 + 0.01 * rows) for rows in (1, 3, 10, 40, 200, 1000, 1000, 4000)]
    for rows, expected in ((1, 0.51), (100, 1.5), (10_000, 100.5)):
        median, low, high = overhead_s(done, PNG, rows)
        assert median == pytest.approx(expected, rel=0.1)
        assert low <= median <= high


def test_odd_times_beside_the_engine_change_little() -> None:
    done = [past(rows, 0.5 + 0.01 * rows) for rows in (1, 10, 100, 1000, 1, 10, 100, 1000)]
    plain, _, high = overhead_s(done, PNG, 100)
    # The first of a process; one whose prediction was far too long.
    median, low, higher = overhead_s([past(1, 30.0), past(100, -500.0), *done], PNG, 100)
    assert median == pytest.approx(plain, rel=0.3)
    assert 0 <= low < median < higher
    assert higher > high


def test_time_beside_the_engine_is_taken_for_granted_at_first() -> None:
    for made in [each for kind in operations().values() for each in kind.formats]:
        median, low, high = overhead_s([], made, 100)
        assert median == pytest.approx(made.job_s + 100 * made.row_s)
        assert low < median < high
    nothing, low, high = overhead_s([past(0, 0.0)] * 5, PNG, 0)
    assert 0 <= low <= nothing <= high < 1


def test_jobs_teach_what_jobs_like_them_take(jobs: Jobs, images: list[str]) -> None:
    table = targets(images, 30)
    options = Options(format="png")
    before = jobs.estimate(table, options).prediction
    assert before is not None
    assert 0 < before.overhead_s < before.median_s
    with running(jobs):
        done = [ended(jobs, jobs.submit(table, options, "me")) for _ in range(3)]
    kept = jobs.catalog.past_jobs(10)
    assert [(job.operation, job.format) for job in kept] == [("cut", "png")] * 3
    assert [job.rows for job in kept] == [job.counts["ok"] for job in reversed(done)]
    assert all(0 < job.engine_s < job.work_s for job in kept)
    after = jobs.estimate(table, options).prediction
    assert after is not None
    assert after.overhead_s != before.overhead_s
    # Of another kind nothing was learned.
    others = jobs.estimate(table, Options(format="npy")).prediction
    assert others is not None
    assert others.overhead_s == pytest.approx(
        overhead_s([], Options(format="npy").results.file_format, 30)[0]
    )
