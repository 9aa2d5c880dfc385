"""Who gives out work: whatever goes wrong with one job, the others are worked on."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
from sqlalchemy import update
from sqlalchemy.exc import DatabaseError, DBAPIError, IntegrityError, OperationalError
from sqlalchemy.orm import Session

from swathe.catalog import Catalog
from swathe.catalog.database_errors import remedy
from swathe.catalog.jobs import leases
from swathe.catalog.records.jobs import Chunk, ChunkResult, JobRecord
from swathe.catalog.tables import JobBlockTable, JobTable
from swathe.core.errors import CatalogError, CatalogSetupError, OutputError
from swathe.core.row_table import RowTable
from swathe.jobs import Job, Jobs, Options
from swathe.portal.app import make_app, open_portal
from swathe.portal.config import config_of
from swathe.workers import LocalPool, Runner, execute
from swathe.workers import runner as dispatch
from swathe.workers.batch import Batch, batch_of
from swathe.workers.execute import run_batch
from swathe.workers.restarting_thread import RestartingThread
from swathe.workers.runner import _StopCheck
from tests.conftest import fits_bytes
from tests.support.catalogs import new_catalog
from tests.support.job_runner import PATIENCE_S, ended, running

COUNT = 20
ROOT = "https://archive.example/dr17"

FULL = OperationalError("UPDATE", {}, sqlite3.OperationalError("database or disk is full"))
MALFORMED = DatabaseError("SELECT", {}, sqlite3.DatabaseError("disk image is malformed"))
BROKEN = IntegrityError("UPDATE", {}, sqlite3.IntegrityError("NOT NULL constraint failed"))


def read_only() -> OperationalError:
    """What SQLite says of a file that may not be written."""
    said = sqlite3.OperationalError("attempt to write a readonly database")
    said.sqlite_errorcode = sqlite3.SQLITE_READONLY
    return OperationalError("UPDATE", {}, said)


READ_ONLY = read_only()


def told_as(error: DBAPIError) -> CatalogError:
    """What is made of it by the catalogue."""
    told = (CatalogError if remedy(error) is None else CatalogSetupError)(str(error.orig))
    told.__cause__ = error
    return told


@pytest.fixture
def table(tmp_path: Path) -> dict[str, list[Any]]:
    """Targets on an image."""
    path = tmp_path / "image.fits"
    path.write_bytes(fits_bytes(np.arange(4800, dtype=">i2").reshape(60, 80)))
    return {
        "file": [str(path)] * COUNT,
        "x0": list(range(COUNT)),
        "y0": [3] * COUNT,
        "width": [12] * COUNT,
        "height": [9] * COUNT,
    }


@pytest.fixture
def two(jobs: Jobs, table: dict[str, list[Any]]) -> tuple[Job, Job]:
    """A job that something goes wrong with, which has its turn first, and another user's."""
    return jobs.submit(table, Options(), "me"), jobs.submit(table, Options(), "you")


class running_with:  # noqa: N801 - used like a function
    """A runner with a pool of its own, as long as the block lasts."""

    def __init__(self, jobs: Jobs, pool: LocalPool) -> None:
        self.runner = Runner(jobs, pool)

    def __enter__(self) -> Runner:
        self.runner.start()
        return self.runner

    def __exit__(self, *raised: object) -> None:
        self.runner.stop(PATIENCE_S)


def assert_one_fails(jobs: Jobs, two: tuple[Job, Job], told: str) -> None:
    """See that the one ends for that reason, and the other is done."""
    bad, good = (ended(jobs, each) for each in two)
    assert bad.phase == "ERROR"
    assert told in (bad.error or "")
    assert (good.phase, good.counts["ok"]) == ("COMPLETED", COUNT)


def wait_for(jobs: Jobs, is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    for _ in range(20 * PATIENCE_S):
        if is_so():
            return
        jobs.pause(0.05)
    raise AssertionError("it does not come to be so")


# ---- What concerns one job


def test_a_job_whose_rows_are_damaged_fails_alone(jobs: Jobs, two: tuple[Job, Job]) -> None:
    number = jobs.catalog.job(two[0].id).number
    with jobs.catalog._writing() as session:
        damage = update(JobBlockTable).where(JobBlockTable.job == number)
        session.execute(damage.values(asked=b"no rows"))
    with running(jobs):
        assert_one_fails(jobs, two, "its rows cannot be leased: JSONDecodeError: ")


def test_a_job_whose_prediction_makes_no_sense_fails_alone(
    jobs: Jobs, two: tuple[Job, Job]
) -> None:
    with jobs.catalog._writing() as session:
        damage = update(JobTable).where(JobTable.id == two[0].id)
        session.execute(damage.values(predicted={"hours": 1}))
    with running(jobs):
        assert_one_fails(jobs, two, "its rows cannot be leased: KeyError: 'median_s'")


def test_a_batch_that_cannot_be_made_fails_its_job(
    jobs: Jobs, two: tuple[Job, Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(catalog: Catalog, chunk: Chunk) -> Batch:
        if chunk.job.id == two[0].id:
            raise AssertionError("no such options")
        return batch_of(catalog, chunk)

    monkeypatch.setattr(dispatch, "batch_of", made)
    with running(jobs):
        assert_one_fails(jobs, two, "internal: AssertionError: no such options")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OutputError("results: the folder is gone"), "results: the folder is gone"),
        (ZeroDivisionError("by nothing"), "internal: ZeroDivisionError: by nothing"),
    ],
)
def test_a_batch_that_a_pool_refuses_fails_its_job(
    jobs: Jobs, two: tuple[Job, Job], error: Exception, told: str
) -> None:
    class Choosy(LocalPool):
        def submit(self, number: int, batch: Batch, stopped: Callable[[], bool]) -> None:
            if batch.job == two[0].id:
                raise error
            super().submit(number, batch, stopped)

    with running_with(jobs, Choosy(jobs.place, 2)):
        assert_one_fails(jobs, two, told)


def test_what_cannot_be_kept_fails_its_job_and_keeps_what_was(
    jobs: Jobs, two: tuple[Job, Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    finish, numbers = Catalog.finish_chunk, count()

    def finished(catalog: Catalog, chunk: Chunk, done: ChunkResult) -> JobRecord | None:
        if chunk.job.id == two[0].id and next(numbers) >= 2:
            raise KeyError("a column")
        return finish(catalog, chunk, done)

    with monkeypatch.context() as patch:
        patch.setattr(Catalog, "finish_chunk", finished)
        patch.setattr(dispatch._Pace, "rows", lambda *_given: 1)
        patch.setattr("swathe.catalog.jobs.leases.end_of_object", lambda _s, _j, at, _most: at)
        with running(jobs):
            assert_one_fails(jobs, two, "internal: KeyError: 'a column'")
    assert jobs.job(two[0].id).counts["ok"] == 2
    again = jobs.resume(two[0].id)
    with running(jobs):
        assert ended(jobs, again).counts["ok"] == COUNT


@pytest.mark.parametrize("error", [FULL, READ_ONLY])
def test_what_is_done_is_kept_when_the_catalogue_is_back(
    jobs: Jobs, two: tuple[Job, Job], monkeypatch: pytest.MonkeyPatch, error: DBAPIError
) -> None:
    finish, back, tries = Catalog.finish_chunk, threading.Event(), []

    def finished(catalog: Catalog, chunk: Chunk, done: ChunkResult) -> JobRecord | None:
        tries.append(done)
        if not back.is_set():
            raise told_as(error)
        return finish(catalog, chunk, done)

    monkeypatch.setattr(Catalog, "finish_chunk", finished)
    monkeypatch.setattr(dispatch, "KEEP_AGAIN_S", 0.01)
    with running(jobs) as runner:
        wait_for(jobs, lambda: len(tries) > 2 * dispatch.TRIES)
        # Nobody looks at the database any more: it is told all the same.
        wait_for(jobs, lambda: "results cannot be saved: " in runner.trouble)
        assert str(error.orig) in runner.trouble
        back.set()
        assert [ended(jobs, each).phase for each in two] == ["COMPLETED"] * 2
        wait_for(jobs, lambda: not runner.trouble)
    # Nothing was done twice.
    assert len({id(done) for done in tries}) == 2
    assert {len(done.rows) for done in tries} == {COUNT}


@pytest.mark.parametrize("error", [MALFORMED, BROKEN])
@pytest.mark.parametrize("where", ["taken", "read", "kept"])
def test_what_the_database_will_never_do_fails_its_job(
    jobs: Jobs,
    two: tuple[Job, Job],
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    error: DBAPIError,
) -> None:
    number = jobs.catalog.job(two[0].id).number
    take, finish = leases._lease_chunk, Catalog.finish_chunk

    def taken(session: Session, job: int, *given: Any) -> Chunk | None:
        if where == "taken" and job == number:
            raise error
        return take(session, job, *given)

    def made(catalog: Catalog, chunk: Chunk) -> Batch:
        if where == "read" and chunk.job.number == number:
            raise told_as(error)
        return batch_of(catalog, chunk)

    def finished(catalog: Catalog, chunk: Chunk, done: ChunkResult) -> JobRecord | None:
        if where == "kept" and chunk.job.number == number:
            raise told_as(error)
        return finish(catalog, chunk, done)

    monkeypatch.setattr(leases, "_lease_chunk", taken)
    monkeypatch.setattr(dispatch, "batch_of", made)
    monkeypatch.setattr(Catalog, "finish_chunk", finished)
    with running(jobs):
        assert_one_fails(jobs, two, str(error.orig))


@pytest.mark.parametrize("error", [FULL, READ_ONLY])
@pytest.mark.parametrize("where", ["taken", "read"])
def test_a_database_that_is_full_or_read_only_fails_no_job(
    jobs: Jobs,
    two: tuple[Job, Job],
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    error: DBAPIError,
) -> None:
    take, numbers = leases._lease_chunk, count()

    def taken(*given: Any) -> Chunk | None:
        if where == "taken" and not next(numbers):
            raise error
        return take(*given)

    def made(catalog: Catalog, chunk: Chunk) -> Batch:
        if where == "read" and not next(numbers):
            raise told_as(error)
        return batch_of(catalog, chunk)

    monkeypatch.setattr(leases, "_lease_chunk", taken)
    monkeypatch.setattr(dispatch, "batch_of", made)
    with running(jobs) as runner:
        wait_for(jobs, lambda: str(error.orig) in runner.trouble)
        assert [ended(jobs, each).counts["ok"] for each in two] == [COUNT] * 2


def test_a_portal_does_not_start_where_nothing_can_be_kept(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    Catalog.open(f"sqlite:///{path}").close()
    url = f"sqlite:///file:{path}?mode=ro&uri=true"
    told = {"catalog": {"database": url}, "results": {"folder": str(tmp_path / "results")}}
    said = "readonly database; the file and its folder must be writable"
    with pytest.raises(CatalogSetupError, match=said), open_portal(config_of(told)):
        raise AssertionError("it was opened")


def test_storages_that_can_never_be_looked_up_fail_a_job_and_others_wait(
    jobs: Jobs, two: tuple[Job, Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a worker has a catalogue of its own that is set up wrongly."""
    cut, tries = execute._BatchRun._cut, count()

    def looked_up(work: execute._BatchRun, rows: RowTable) -> None:
        if work.batch.job == two[0].id:
            raise told_as(READ_ONLY)
        if not next(tries):
            raise told_as(FULL)
        cut(work, rows)

    monkeypatch.setattr(execute._BatchRun, "_cut", looked_up)
    with running(jobs):
        assert_one_fails(jobs, two, str(READ_ONLY.orig))


def test_what_a_pool_cannot_do_at_all_fails_its_job(
    jobs: Jobs, two: tuple[Job, Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    def panics(batch: Batch, *given: Any) -> ChunkResult:
        if batch.job == two[0].id:
            raise PanicError("at the disco")
        return run_batch(batch, *given)

    monkeypatch.setattr("swathe.workers.local.run_batch", panics)
    with running(jobs):
        assert_one_fails(jobs, two, "internal: PanicError: at the disco")


def test_seconds_of_work_are_counted_once_and_waiting_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(dispatch, "time", SimpleNamespace(perf_counter=lambda: now))
    clock, counted = dispatch._Clock(), []
    for _ in "abcd":
        clock.enter(1)
    for now, seconds in ((10.0, 3.0), (11.0, 2.0), (20.0, 1.0), (22.0, 20.0)):  # noqa: B007
        counted.append(clock.add(1, seconds))
        clock.leave(1)
    assert counted == [3.0, 1.0, 1.0, 15.0]
    assert not clock._spans


def test_a_catalogue_that_is_away_stops_no_batch(
    jobs: Jobs, two: tuple[Job, Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    away = [True]

    def state(_jobs: Jobs, _job: str) -> bool:
        if away:
            raise CatalogError("it is away")
        return False

    monkeypatch.setattr(Jobs, "is_executing", state)
    monkeypatch.setattr(dispatch, "IDLE_S", -1.0)  # it looks each time
    stopped = _StopCheck(jobs, two[0].id, threading.Event())
    assert not stopped()
    away.clear()
    assert stopped()


# ---- What concerns none


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Nothing can be taken until this is set."""
    mended, take = threading.Event(), Catalog.take_chunk

    def taken(catalog: Catalog, *given: Any) -> Chunk | None:
        if not mended.is_set():
            raise PanicError(f"what nobody thought of: {ROOT}/1.fits")
        return take(catalog, *given)

    monkeypatch.setattr(Catalog, "take_chunk", taken)
    yield mended
    mended.set()


class PanicError(BaseException):
    """What would end a thread, as a panic of the engine does."""


def test_a_runner_that_was_not_started_says_so(jobs: Jobs) -> None:
    assert Runner(jobs).trouble == "not started"


def test_the_giver_goes_on_and_tells_what_was_wrong(
    jobs: Jobs, two: tuple[Job, Job], broken: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    with running(jobs) as runner:
        wait_for(jobs, lambda: "what nobody thought of" in runner.trouble)
        assert jobs.job(two[0].id).phase == "QUEUED"
        broken.set()
        assert [ended(jobs, each).phase for each in two] == ["COMPLETED"] * 2
        wait_for(jobs, lambda: not runner.trouble)
    assert runner.trouble == "swathe-jobs-giver: not running"
    (record, *_) = [
        each for each in caplog.records if each.name == "swathe.workers.restarting_thread"
    ]
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None and record.exc_info[0] is PanicError


def test_a_portal_tells_that_jobs_are_not_worked_on(
    tmp_path: Path, broken: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = new_catalog(tmp_path / "catalog.sqlite")
    monkeypatch.setenv("SWATHE_DATABASE", database)
    settings = {"catalog": {"database": database}, "results": {"folder": str(tmp_path / "made")}}

    def trouble() -> str:
        return portal.pool_status(None).trouble

    async def visit() -> None:
        app = make_app(portal)
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):

            async def wait_until(is_so: Callable[[], bool]) -> None:
                for _ in range(20 * PATIENCE_S):
                    if is_so():
                        return
                    await asyncio.sleep(0.05)
                raise AssertionError(trouble())

            told = "swathe-jobs-giver: internal: PanicError: what nobody thought of: "
            await wait_until(lambda: told in trouble())
            portal.catalog.add_store("survey", ROOT)
            answer = await client.get("/vo/availability")
            assert answer.status_code == 200
            assert "<vosi:available>false</vosi:available>" in answer.text
            assert (
                f"<vosi:note>jobs are not running: {told}survey:1.fits</vosi:note>" in answer.text
            )
            assert told in (await client.get("/api/pool")).json()["trouble"]
            assert told in (await client.get("/pool")).text
            broken.set()
            await wait_until(lambda: not trouble())
            answer = await client.get("/vo/availability")
            assert "<vosi:available>true</vosi:available>" in answer.text
            assert (await client.get("/api/pool")).json()["trouble"] == ""

    with open_portal(config_of(settings)) as portal:
        asyncio.run(visit())


def test_pauses_grow_while_nothing_succeeds(caplog: pytest.LogCaptureFixture) -> None:
    waited, turns = [], iter("xxx.x!")

    class Impatient(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waited.append(timeout)
            return self.is_set()

    def turn() -> None:
        what = next(turns)
        if what == "!":
            ending.set()
        elif what == "x":
            raise CatalogError("it is away")

    ending = Impatient()
    thread = RestartingThread("a thread", turn, ending)
    assert thread.trouble == "a thread: not running"
    thread.start()
    assert thread.join(PATIENCE_S)
    assert waited == [0.5, 1.0, 2.0, 0.5]
    # What may happen is told without a traceback.
    assert [(each.levelno, each.exc_info) for each in caplog.records] == [
        (logging.WARNING, None)
    ] * 4
