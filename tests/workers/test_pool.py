"""Batches, and the pools that do them: all of them the same way."""

from __future__ import annotations

import pickle
import queue
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swathe
from swathe.catalog import Catalog
from swathe.catalog.records.jobs import ChunkResult
from swathe.core.errors import JobError
from swathe.core.row_record import RowRecord
from swathe.core.row_table import RowTable
from swathe.jobs import Folder, Jobs, Limits, Options
from swathe.workers import LocalPool, Pool, Runner
from swathe.workers.batch import Batch, batch_of
from swathe.workers.dask.in_flight import PendingBatch
from swathe.workers.execute import _BatchRun, run_batch
from swathe.workers.local import READY
from swathe.workers.pool import LANES
from tests.conftest import fits_bytes
from tests.support.catalogs import new_catalog
from tests.support.job_runner import PATIENCE_S, ended
from tests.support.pools import Process, connected, pool_of

WIDTH, HEIGHT = 12, 9


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    """A catalogue in a file: which database it is makes no difference to a pool."""
    url = new_catalog(tmp_path / "catalog.sqlite")
    monkeypatch.setenv("SWATHE_DATABASE", url)
    with Catalog.open(url) as opened:
        yield opened


@pytest.fixture(scope="module")
def cluster() -> Iterator[Process]:
    """A scheduler with one worker."""
    with pool_of(1) as (scheduler, _):
        yield scheduler


@pytest.fixture(params=["local", pytest.param("dask", marks=pytest.mark.more)])
def pool(request: pytest.FixtureRequest, tmp_path: Path, catalog: Catalog) -> Pool:
    """A pool of each kind, not started."""
    place = Folder(tmp_path / "results")
    if request.param == "local":
        return LocalPool(place, 2)
    return connected(request.getfixturevalue("cluster").address, place)


@pytest.fixture
def images(tmp_path: Path, catalog: Catalog) -> list[str]:
    """Images of random pixels in a store."""
    rng = np.random.default_rng(7)
    (tmp_path / "images").mkdir()
    for number in range(3):
        stored = rng.integers(0, 9999, (60, 80)).astype(">i2")
        (tmp_path / "images" / f"{number}.fits").write_bytes(fits_bytes(stored))
    catalog.add_store("images", str(tmp_path / "images"))
    return [f"images:{number}.fits" for number in range(3)]


def targets(images: list[str], count: int) -> dict[str, list[Any]]:
    """Boxes, some of them outside, and a file that is not there."""
    rng = np.random.default_rng(3)
    return {
        "file": [[*images, "images:absent.fits"][row % 4] for row in range(count)],
        "x0": rng.integers(-5, 90, count).tolist(),
        "y0": rng.integers(-5, 60, count).tolist(),
        "width": [WIDTH] * count,
        "height": [HEIGHT] * count,
    }


def batch(images: list[str], rows: int = 40, job: str = "job", **given: Any) -> Batch:
    """A batch that comes from no database."""
    kept = [
        RowRecord(
            number=number,
            position=number,
            result=None,
            id=f"t{number}",
            name=f"t{number}",
            source=images[number % len(images)],
            hdu=None,
            box=(number % 50, number % 30, WIDTH, HEIGHT),
            planes=None,
            sky=None,
        )
        for number in range(rows)
    ]
    return Batch(job=job, first=0, options=Options(), rows=RowTable.of(kept), **given)


def never() -> bool:
    return False


class started:  # noqa: N801 - used like a function
    """A pool at work, and what comes back from it."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.came: queue.SimpleQueue[tuple[int, ChunkResult]] = queue.SimpleQueue()

    def __enter__(self) -> started:
        self.pool.start(lambda number, done: self.came.put((number, done)))
        return self

    def __exit__(self, *raised: object) -> None:
        self.pool.stop(PATIENCE_S)

    def give(self, number: int, batch: Batch, stopped: Callable[[], bool] = never) -> None:
        assert self.pool.wait_for_room(PATIENCE_S)
        self.pool.submit(number, batch, stopped)

    def next(self) -> tuple[int, ChunkResult]:
        return self.came.get(timeout=PATIENCE_S)


# ---- Batches


def test_a_batch_needs_no_database(images: list[str], tmp_path: Path) -> None:
    given = pickle.loads(pickle.dumps(batch(images)))
    done = run_batch(given, Folder(tmp_path / "results"), 1, never)
    assert done.complete
    assert [row.status for row in sorted(done.rows)] == ["ok"] * 40
    made = sorted((tmp_path / "results/job/0000").iterdir())
    assert len(made) == 40
    assert {path.name for path in (tmp_path / "results/job").iterdir()} == {"0000"}


def test_batches_and_what_becomes_of_them_arrive_as_they_were(images: list[str]) -> None:
    given = batch(images, 3)
    assert pickle.loads(pickle.dumps(given)) == given
    none = replace(given, rows=RowTable.of([]))
    assert pickle.loads(pickle.dumps(none)) == none
    for done in (
        ChunkResult(given.rows, 1.5, 2, 3, ["a note"]),
        ChunkResult([], complete=False, failure="why"),
    ):
        assert pickle.loads(pickle.dumps(done)) == done


def test_who_does_a_batch_again_takes_over(images: list[str], tmp_path: Path) -> None:
    place, given = Folder(tmp_path / "results"), batch(images, 300)
    (tmp_path / "results/job/.chunk-00-of-another").mkdir(parents=True)
    (tmp_path / "results/job/.chunk-0-killed").mkdir()
    (tmp_path / "results/job/.chunk-0-killed/5.fits").touch()
    found: list[ChunkResult] = []
    threads = [
        threading.Thread(target=lambda: found.append(run_batch(given, place, 1, never)))
        for _ in "ab"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert any(done.complete for done in found)
    assert [done.failure for done in found] == [None, None]
    alone = run_batch(given, Folder(tmp_path / "alone"), 1, never)
    expected = sorted(alone.rows)
    assert all(sorted(done.rows) == expected for done in found if done.complete)
    made = tmp_path / "results/job"
    assert len(list((made / "0000").iterdir())) == 300
    assert {path.name for path in made.iterdir()} == {"0000", ".chunk-00-of-another"}


def test_a_folder_taken_over_is_no_fault_while_it_is_removed(
    images: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, given = Folder(tmp_path / "results"), batch(images, 30)
    put = _BatchRun._put

    def empty(folder: str, **_: bool) -> None:
        for path in Path(folder).iterdir():
            path.unlink()

    def taken_over(work: _BatchRun) -> None:
        monkeypatch.setattr(_BatchRun, "_put", put)
        with monkeypatch.context() as patch:
            # The other worker has removed the files, and not yet the folder.
            patch.setattr("swathe.workers.execute.shutil.rmtree", empty)
            assert run_batch(given, place, 1, never).complete
        put(work)

    monkeypatch.setattr(_BatchRun, "_put", taken_over)
    done = run_batch(given, place, 1, never)
    assert (list(done.rows), done.complete, done.failure) == ([], False, None)


@pytest.mark.parametrize("late", [False, True])
def test_what_was_taken_over_is_neither_done_nor_a_fault(
    late: bool, images: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was taken for dead may begin after the one that was given its rows."""
    put = _BatchRun._put

    def taken_over(work: _BatchRun) -> None:
        if late:
            put(work)
        shutil.rmtree(work.aside)
        if not late:
            put(work)

    place, given = Folder(tmp_path / "results"), batch(images, 300)
    with monkeypatch.context() as patched:
        patched.setattr(_BatchRun, "_put", taken_over)
        done = run_batch(given, place, 1, never)
    assert (len(done.rows), done.complete, done.failure) == (0, False, None)
    done = run_batch(given, place, 1, never)
    assert (len(done.rows), done.complete, done.failure) == (300, True, None)


def test_a_batch_of_results_has_what_goes_into_them(
    catalog: Catalog, images: list[str], tmp_path: Path
) -> None:
    rng = np.random.default_rng(5)
    cards = [("CTYPE1", "RA---TAN"), ("CTYPE2", "DEC--TAN"), ("CRVAL1", 10.0), ("CRVAL2", 20.0),
             ("CRPIX1", 30.0), ("CRPIX2", 30.0), ("CDELT1", -1e-3), ("CDELT2", 1e-3)]  # fmt: skip
    for number in range(3):
        stored = rng.normal(100, 5, (60, 60)).astype(">f4")
        (tmp_path / "images" / f"{number}.fits").write_bytes(fits_bytes(stored, cards))
    table = {"file": images, "ra": [10.0] * 3, "dec": [20.0] * 3, "size_deg": [0.01] * 3}
    with Jobs(catalog, tmp_path / "results", limits=Limits()) as jobs:
        job = jobs.submit(table, Options(operation="stack"), "me")
        seen = []
        while (chunk := catalog.take_chunk("r", 60.0, lambda _job, _results: 100)) is not None:
            given = pickle.loads(pickle.dumps(batch_of(catalog, chunk)))
            seen.append(given)
            catalog.finish_chunk(chunk, run_batch(given, jobs.place, 1, never))
        assert jobs.job(job.id).phase == "COMPLETED"
    cut, make = seen[:-1], seen[-1]
    assert {row.result for each in cut for row in each.rows} == set(cut[0].results) == {3}
    assert make.makes
    assert [row.id for row in make.inputs[3]] == [row.id for each in cut for row in each.rows]


def test_a_batch_says_what_was_predicted_of_its_rows(
    catalog: Catalog, images: list[str], tmp_path: Path
) -> None:
    box = {"x": [4] * 12, "y": [4] * 12, "height": [3] * 12, "width": [3] * 12}
    table = {"file": images * 4, **box}
    with Jobs(catalog, tmp_path / "results", limits=Limits()) as jobs:
        found = jobs.estimate(table, Options(format="png")).prediction
        assert found is not None
        assert 0 < found.compute_s == sum(cost.compute_s for cost in found.per_store.values())
        jobs.submit(table, Options(format="png"), "me")
        chunk = catalog.take_chunk("r", 60.0, lambda _job, _results: 5)
        assert chunk is not None and chunk.job.predicted is not None
        told = batch_of(catalog, chunk)
        assert told.row_s == pytest.approx((found.compute_s + found.overhead_s) / 12, rel=0.01)
        assert told.row_bytes == pytest.approx(found.bytes / 12)
        # As of a job that an older version has kept.
        old = {key: value for key, value in chunk.job.predicted.items() if key != "compute_s"}
        assert batch_of(catalog, replace(chunk, job=replace(chunk.job, predicted=old))).row_s == 0
        assert batch_of(catalog, replace(chunk, job=replace(chunk.job, predicted=None))).row_s == 0


# ---- Pools


def test_each_batch_comes_back_once(pool: Pool, images: list[str], tmp_path: Path) -> None:
    with started(pool) as at_work:
        for number in range(12):
            at_work.give(number, batch(images, job=f"job{number}"))
        came = dict(at_work.next() for _ in range(12))
    assert sorted(came) == list(range(12))
    alone = run_batch(batch(images, job="alone"), Folder(tmp_path / "alone"), 1, never)
    expected = sorted(row.sha256 for row in alone.rows)
    for number, done in came.items():
        assert done.complete
        assert done.work_s > 0
        assert sorted(row.sha256 for row in done.rows) == expected
        assert len(list((tmp_path / f"results/job{number}/0000").iterdir())) == 40
    assert at_work.came.empty()
    assert pool.status().batches == 0


def test_a_stopped_batch_comes_back_with_what_is_done(pool: Pool, images: list[str]) -> None:
    stopped = threading.Event()
    many = batch(images, 5000)
    rows = RowTable.of([row._replace(box=(0, 0, 2000, 2000)) for row in many.rows])
    with started(pool) as at_work:
        at_work.give(7, replace(many, options=Options(mode="partial"), rows=rows), stopped.is_set)
        at_work.give(8, batch(images, job="other"))
        assert at_work.next()[0] == 8
        stopped.set()
        number, done = at_work.next()
    assert number == 7
    assert not done.complete
    assert done.failure is None
    assert len(done.rows) < 5000


def test_stop_gives_all_back(pool: Pool, images: list[str]) -> None:
    stopped = threading.Event()
    many = batch(images, 5000)
    rows = RowTable.of([row._replace(box=(0, 0, 2000, 2000)) for row in many.rows])
    at_work = started(pool)
    with at_work:
        at_work.give(1, replace(many, options=Options(mode="partial"), rows=rows), stopped.is_set)
        stopped.set()
    assert at_work.next()[0] == 1
    assert at_work.came.empty()


def test_what_cannot_be_written_is_told(pool: Pool, images: list[str], tmp_path: Path) -> None:
    (tmp_path / "results").mkdir(exist_ok=True)
    (tmp_path / "results/job").write_text("in the way")
    with started(pool) as at_work:
        at_work.give(0, batch(images))
        _, done = at_work.next()
    assert not done.complete
    assert str(tmp_path / "results/job") in (done.failure or "")


def test_a_fault_of_ours_is_told(pool: Pool, images: list[str]) -> None:
    given = batch(images)
    # Rows that go into a result which nobody tells.
    rows = [row._replace(result=99, sky=(1.0, 2.0, 0.1)) for row in given.rows]
    with started(pool) as at_work:
        at_work.give(0, replace(given, rows=RowTable.of(rows), options=Options(operation="stack")))
        _, done = at_work.next()
        at_work.give(1, batch(images, job="next"))
        assert at_work.next()[1].complete
    assert done.failure == "internal: KeyError: 99"


class PanicError(BaseException):
    """What would end a thread, as a panic of the engine does."""


def test_what_would_end_a_thread_is_an_error_of_its_rows(
    images: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def panics(*_given: object) -> None:
        raise PanicError("at the disco")

    with started(LocalPool(Folder(tmp_path / "results"), 1)) as at_work:
        with monkeypatch.context() as patch:
            patch.setattr("swathe.workers.execute._BatchRun.run", panics)
            for number in range(4):  # more than there are threads
                at_work.give(number, batch(images, 3))
            done = [at_work.next()[1] for _ in range(4)]
        at_work.give(9, batch(images, 3, job="next"))
        assert {row.status for row in at_work.next()[1].rows} == {"ok"}
    for each in done:
        assert (each.complete, each.failure) == (True, None)
        assert {(row.status, row.reason) for row in each.rows} == {
            ("error", "internal: PanicError: at the disco")
        }


def test_a_lane_that_does_not_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = LocalPool(Folder(tmp_path / "results"), 1)
    go = threading.Event()

    def stuck(*_given: object) -> ChunkResult:
        go.wait()
        return ChunkResult([])

    monkeypatch.setattr("swathe.workers.local.run_batch", stuck)
    at_work = started(pool)
    at_work.__enter__()
    for number in range(LANES + READY):
        at_work.give(number, batch(["images:0.fits"]))
    assert pool.wait_for_room(0.01) == pool.wait_for_room(0.01, "cut") == {"long", "program"}
    told = pool.status()
    (member,) = told.workers
    assert told.batches == member.busy + member.waiting == LANES + READY
    with pytest.raises(JobError, match="still running"):
        pool.stop(0.01)
    go.set()
    assert {at_work.next()[0] for _ in range(LANES + READY)} == set(range(LANES + READY))


def test_jobs_are_those_of_cut_many(
    pool: Pool, catalog: Catalog, images: list[str], tmp_path: Path
) -> None:
    table = targets(images, 200)
    expected = swathe.cut_many(table, tmp_path / "many", progress=False)
    with Jobs(catalog, tmp_path / "results", limits=Limits()) as jobs:
        runner = Runner(jobs, pool)
        runner.start()
        try:
            job = ended(jobs, jobs.submit(table, Options(), "me"))
        finally:
            runner.stop(PATIENCE_S)
        assert job.phase == "COMPLETED"
        rows = jobs.rows(job.id)
    for row, kept in zip(rows, expected, strict=True):
        assert (row.status, row.sha256, row.bytes) == tuple(kept["status", "sha256", "bytes"])
        if row.status == "ok":
            found = tmp_path / "results" / job.id / "0000" / row.name
            assert found.read_bytes() == (tmp_path / "many" / kept["path"]).read_bytes()
    assert {row.status for row in rows} == {"ok", "no-overlap", "missing"}


# ---- Faults of ours that concern one batch


def test_what_cannot_be_kept_ends_no_thread(
    pool: Pool, images: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    came: queue.SimpleQueue[int] = queue.SimpleQueue()

    def back(number: int, _done: ChunkResult) -> None:
        came.put(number)
        if number < 4:  # more than there are threads
            raise PanicError("nowhere to keep it")

    pool.start(back)
    try:
        for number in range(6):
            assert pool.wait_for_room(PATIENCE_S)
            pool.submit(number, batch(images, 3, job=f"job{number}"), never)
        assert {came.get(timeout=PATIENCE_S) for _ in range(6)} == set(range(6))
    finally:
        pool.stop(PATIENCE_S)
    assert sum("its result cannot be saved" in each.getMessage() for each in caplog.records) == 4


def test_a_batch_that_cannot_be_placed_or_carried_fails_alone(
    cluster: Process, tmp_path: Path, images: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = connected(cluster.address, Folder(tmp_path / "results"))
    place, peers = pool._crew.placement.place, pool._sending._peers

    def placed(key: str, *given: Any) -> Any:
        if key.split("-")[2] == "1":
            raise KeyError("no such worker")
        return place(key, *given)

    def asked(flight: PendingBatch) -> Any:
        if flight.number == 2:
            raise ValueError("no such peer")
        return peers(flight)

    def untold() -> bool:
        raise RuntimeError("nobody knows")

    tell = pool._sending._tell_to_stop
    stopped: list[str] = []

    async def tells(client: Any, keys: list[str], workers: list[str]) -> None:
        stopped.extend(key.split("-")[2] for key in keys)
        await tell(client, keys, workers)

    monkeypatch.setattr(pool._sending, "_tell_to_stop", tells)
    monkeypatch.setattr(pool._crew.placement, "place", placed)
    monkeypatch.setattr(pool._sending, "_peers", asked)
    with started(pool) as at_work:
        for number in range(5):
            at_work.give(number, batch(images, job=f"job{number}"))
        done = dict(at_work.next() for _ in range(5))
        slow = replace(batch(images, 400), options=Options(mode="partial"))
        rows = RowTable.of([row._replace(box=(0, 0, 2000, 2000)) for row in slow.rows])
        at_work.give(6, replace(slow, rows=rows), untold)
        done |= [at_work.next()]
    assert stopped == ["6"]
    assert {number: each.failure for number, each in done.items()} == {
        0: None,
        1: "internal: KeyError: 'no such worker'",
        2: "internal: ValueError: no such peer",
        3: None,
        4: None,
        6: "internal: RuntimeError: nobody knows",
    }


@pytest.mark.more
def test_a_fault_in_the_loop_begins_anew(
    cluster: Process,
    tmp_path: Path,
    images: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    pool = connected(cluster.address, Folder(tmp_path / "results"))
    compare, faults = pool._connection._compare, iter([1, 2])
    lost, losses = pool._connection._note_loss, iter([1])

    def loses() -> None:
        if next(losses, None):
            raise KeyError("a batch that nobody knows")
        lost()

    def compared(found: dict[str, Any]) -> None:
        if next(faults, None):
            raise KeyError("a worker that nobody knows")
        compare(found)

    monkeypatch.setattr(pool._connection, "_compare", compared)
    monkeypatch.setattr(pool._connection, "_note_loss", loses)
    with started(pool) as at_work:
        at_work.give(0, batch(images))
        assert at_work.next()[1].complete
        assert pool.status().trouble == ""
    told = [each.getMessage() for each in caplog.records]
    assert sum("next attempt in 0.5 s" in each for each in told) == 1
    assert sum("next attempt in 1 s" in each for each in told) == 1


@pytest.mark.more
def test_a_batch_that_cannot_be_given_again_fails_alone(
    cluster: Process, tmp_path: Path, images: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = connected(cluster.address, Folder(tmp_path / "results"))
    accept, again = pool._sending.accept, pool._sending._again

    def accepted(flight: PendingBatch) -> None:
        accept(flight)
        if flight.number == 2:
            pool._roster.lose_all()

    def given(flight: PendingBatch) -> None:
        if flight.number == 1:
            raise KeyError("no such objects")
        again(flight)

    monkeypatch.setattr(pool._sending, "accept", accepted)
    monkeypatch.setattr(pool._sending, "_again", given)
    with started(pool) as at_work:
        at_work.give(0, batch(images, job="job0"))
        assert at_work.next()[1].complete
        many = batch(images, 2000, job="job1")
        assert pool.wait_for_room(PATIENCE_S)
        pool.submit(1, many, never)
        pool.submit(2, batch(images, job="job2"), never)
        done = dict(at_work.next() for _ in range(2))
    assert done[1].failure == "internal: KeyError: 'no such objects'"
    assert done[2].complete
