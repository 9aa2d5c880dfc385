"""Granules that have another version than a list asks for, and those that are made local again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from swathe import _swathe
from swathe.catalog import Catalog
from swathe.jobs import Jobs
from tests.jobs.test_algorithm import options_of, source_of, tables, texts, working
from tests.jobs.test_reduce import options_of as reduce_options
from tests.jobs.test_reduce import write_swath
from tests.support.job_runner import ended, running

__all__ = ["texts"]


def version_of(path: str) -> str:
    version: str = _swathe.Stores("[]").open(path).version
    return version


def test_an_algorithm_does_not_run_on_another_version(
    jobs: Jobs, catalog: Catalog, texts: list[str], tmp_path: Path
) -> None:
    catalog.add_algorithm("lines", "1", source_of(), "me")
    versions = [version_of(texts[0]), version_of(texts[1]), ""]
    Path(texts[1]).unlink()
    Path(texts[1]).write_text("a later text")
    table = {"file": texts[:3], "object_version": versions}
    with working(jobs):
        job = ended(jobs, jobs.submit(table, options_of(tmp_path / "title.txt"), "me"))
    assert list(tables(jobs, job)) == ["t0.txt", "t2.txt"]
    reason = f"expected version {versions[1]}, found {version_of(texts[1])}: it was replaced"
    failed = jobs.rows(job.id, status="error")
    assert len(failed) == 2 and all(reason in row.reason for row in failed)


def test_a_grid_has_no_granule_of_another_version(
    jobs: Jobs, catalog: Catalog, tmp_path: Path
) -> None:
    files = [write_swath(tmp_path / f"g{number}.h5", number) for number in range(2)]
    versions = [version_of(files[0]), "5 etag:other"]
    table = {"file": files, "group": ["one", "other"], "object_version": versions}
    with running(jobs):
        job = ended(jobs, jobs.submit(table, reduce_options(), "me"))
    rows = jobs.rows(job.id)
    assert [row.name for row in rows if row.status == "ok" and row.name] == ["one.nc"]
    assert rows[0].status == "ok"
    assert rows[1].reason == (
        f"{files[1]}: expected version 5 etag:other, found {version_of(files[1])}: it was replaced"
    )


def test_granules_that_are_lost_are_made_local_again(
    jobs: Jobs,
    catalog: Catalog,
    texts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where a worker is killed, and its folder is emptied."""
    catalog.add_algorithm("lines", "1", source_of(), "me")
    with monkeypatch.context() as patch:
        # The groups are not worked on.
        patch.setattr("swathe.catalog.jobs.leases._are_inputs_done", lambda *_: False)
        job = jobs.submit({"file": texts}, options_of(tmp_path / "title.txt"), "me")
        with working(jobs):
            while jobs.job(job.id).counts["ok"] < len(texts):
                jobs.pause(0.05)
    (inputs,) = tmp_path.glob(f"**/{job.id}/.inputs")
    shutil.rmtree(inputs)
    Path(texts[3]).unlink()
    with working(jobs):
        job = ended(jobs, job)
    assert list(tables(jobs, job)) == [f"t{number}.txt" for number in range(3)]
    (failed,) = jobs.rows(job.id, status="error")
    assert "no longer exist and cannot be cut again" in failed.reason
    assert "not found" in failed.reason
