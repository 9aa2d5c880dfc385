"""Granules that have another version than a list asks for, and those that are made local again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from swathe import _swathe
from swathe.catalog import Catalog
from swathe.catalog.records.jobs import ChunkResult
from swathe.jobs import Job, Jobs, Options, ResultStore
from swathe.workers import execute, local
from swathe.workers.batch import Batch
from tests.jobs.test_algorithm import options_of, source_of, tables, texts, working
from tests.jobs.test_reduce import options_of as reduce_options
from tests.jobs.test_reduce import write_swath
from tests.support.job_runner import ended, running
from tests.support.servers import nginx

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


def with_lost_inputs(
    jobs: Jobs, table: dict[str, list[str]], options: Options, monkeypatch: pytest.MonkeyPatch
) -> Job:
    """A job whose granules were read, and are lost before its groups are made.

    As where a worker is killed, and its folder is emptied.
    """
    with monkeypatch.context() as patch:
        # The groups are not worked on.
        patch.setattr("swathe.catalog.jobs.leases._are_inputs_done", lambda *_: False)
        job = jobs.submit(table, options, "me")
        with working(jobs):
            while jobs.job(job.id).counts["ok"] < len(table["file"]):
                jobs.pause(0.05)
    shutil.rmtree(jobs.place.scratch(job.id) / ".inputs")
    return job


def test_granules_that_are_lost_are_made_local_again(
    jobs: Jobs,
    catalog: Catalog,
    texts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    catalog.add_algorithm("lines", "1", source_of(), "me")
    options = options_of(tmp_path / "title.txt")
    job = with_lost_inputs(jobs, {"file": texts}, options, monkeypatch)
    Path(texts[3]).unlink()
    with working(jobs):
        job = ended(jobs, job)
    assert list(tables(jobs, job)) == [f"t{number}.txt" for number in range(3)]
    (failed,) = jobs.rows(job.id, status="error")
    assert "no longer exist and cannot be cut again" in failed.reason
    assert "not found" in failed.reason


@pytest.mark.parametrize("operation", ["algorithm", "reduce"])
def test_rows_wait_if_a_batch_stops_while_granules_are_made_local_again(
    jobs: Jobs,
    catalog: Catalog,
    texts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    operation: str,
) -> None:
    if operation == "algorithm":
        catalog.add_algorithm("lines", "1", source_of("day"), "me")
        table = {"file": texts[:3], "start": ["2005-05-01"] * 3}
        options = options_of(tmp_path / "title.txt")
    else:
        table = {"file": [write_swath(tmp_path / f"g{number}.h5", number) for number in range(3)]}
        options = reduce_options()
    job = with_lost_inputs(jobs, table, options, monkeypatch)
    inputs = jobs.place.scratch(job.id) / ".inputs"
    results: list[ChunkResult] = []
    run_batch = execute.run_batch

    def stopped_once(
        batch: Batch, place: ResultStore, threads: int, should_stop: Callable[[], bool], *rest: Any
    ) -> ChunkResult:
        """The first batch is to stop as soon as a granule is there again."""
        is_first = not results

        def stops() -> bool:
            return (is_first and any(inputs.glob("*/*"))) or should_stop()

        results.append(run_batch(batch, place, threads, stops, *rest))
        return results[-1]

    monkeypatch.setattr(local, "run_batch", stopped_once)
    with working(jobs):
        job = ended(jobs, job)
    assert (len(results[0].rows), results[0].complete, results[0].failure) == (0, False, None)
    assert (job.phase, job.counts["ok"]) == ("COMPLETED", 4)


def test_copies_of_another_version_are_not_used(
    jobs: Jobs,
    catalog: Catalog,
    texts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    catalog.add_algorithm("lines", "1", source_of(), "me")
    with nginx(tmp_path) as server:
        for path in (*map(Path, texts), tmp_path / "title.txt"):
            shutil.copy(path, server.folder)
        catalog.add_store("web", server.url)
        table = {"file": [f"web:t{number}.txt" for number in range(2)]}
        options = options_of(tmp_path / "title.txt")
        job = with_lost_inputs(jobs, table, options, monkeypatch)
        (server.folder / "t1.txt").write_text("a later text")
        with working(jobs):
            job = ended(jobs, job)
            for _ in range(2):
                assert list(tables(jobs, job)) == ["t0.txt"]
                (failed,) = jobs.rows(job.id, status="error")
                assert "cannot be cut again: expected version 6 " in failed.reason
                assert "found 12 " in failed.reason and "it was replaced" in failed.reason
                # A later try does not find the copy either.
                job = ended(jobs, jobs.resume(job.id))


def test_a_grid_is_not_made_of_another_version(
    jobs: Jobs, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [write_swath(tmp_path / f"g{number}.h5", number) for number in range(2)]
    job = with_lost_inputs(jobs, {"file": files}, reduce_options(), monkeypatch)
    Path(files[1]).unlink()
    write_swath(tmp_path / "g1.h5", 7)
    with running(jobs):
        job = ended(jobs, job)
    (failed,) = jobs.rows(job.id, status="error")
    assert f"found {version_of(files[1])}: it was replaced" in failed.reason
