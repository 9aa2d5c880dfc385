"""Workers that go: others get what only they hold, and nothing is wrong where they cannot."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from swathe.catalog import Catalog
from swathe.catalog.reservations import ReservationRecord
from swathe.jobs import Folder
from swathe.workers.autoscale.policy import GrowthLimits
from swathe.workers.autoscale.pool import GrowingPool
from swathe.workers.autoscale.providers.provider import Processes, worker_command
from swathe.workers.batch import Batch
from swathe.workers.pool import HandOver, Pool
from tests.support.caching_pools import IMAGES, SIZE, Rig, at_work, notes, pool_of, rig_of
from tests.support.growing_pools import PREFIX, WatchProvider
from tests.support.pools import PATIENCE_S, Process, connected, members, ready
from tests.support.servers import proxy
from tests.workers.test_pool import started

LITTLE = 0.05 * SIZE
"""What opening the objects again may read."""


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    """Images on a server."""
    yield from rig_of(tmp_path, monkeypatch)


def handed(pool: Pool, is_so: Callable[[HandOver], bool]) -> HandOver:
    """The last hand-over, once something is so of it."""
    until = time.monotonic() + PATIENCE_S
    while True:
        found = pool.status().hand_overs
        if found and is_so(found[-1]):
            return found[-1]
        assert time.monotonic() < until, pool.status()
        time.sleep(0.005)


def ended(each: HandOver) -> bool:
    return each.state not in ("finishing", "handing over")


def end(worker: Process) -> None:
    """Tell a worker to end, and wait until it has."""
    worker.process.send_signal(signal.SIGTERM)
    assert worker.process.wait(PATIENCE_S) == 0


@contextmanager
def one_holds_all(rig: Rig, **settings: float) -> Iterator[tuple[started, Process, Process]]:
    """A pool at work, one worker that holds all images, and one that came later."""
    first = rig.worker("w0")
    with at_work(rig, 1, **settings) as work:
        rig.do(work)
        second = rig.worker("w1")
        members(pool_of(work), ready(2))
        rig.moved()
        yield work, first, second


def test_one_that_is_told_to_end_hands_over(rig: Rig) -> None:
    with one_holds_all(rig) as (work, first, _):
        # What it has is done first.
        given = rig.batches()
        for number, each in enumerate(given):
            work.give(number, each)
        end(first)
        assert all(work.next()[1].complete for _ in given)
        told = handed(work.pool, ended)
        assert (told.worker, told.state, told.heirs) == ("w0", "done", ("w1",))
        # The other has asked for some of them itself, for its own batches.
        assert told.objects >= 1
        assert told.blocks >= 1
        assert 0 < told.bytes == work.pool.status().moved.handed_bytes
        assert told.bytes <= 1.1 * told.alone_bytes
        assert 0 < told.elapsed_s <= told.limit_s
        members(pool_of(work), ready(1))
        held = work.pool.status().held
        assert {(each.worker, each.object) for each in held} == {
            ("w1", f"web:{number}.fits") for number in range(IMAGES)
        }
        # Until then the other may have read from the store what a busy peer was slow to give.
        rig.moved()
        assert notes(rig.do(work)) == []
        assert rig.moved() < LITTLE


def test_one_whose_time_is_over_hands_over(rig: Rig) -> None:
    # Nothing is started while it lives, which may take long.
    rig.worker("w1")
    rig.worker_given = ("--lifetime", "30s")
    rig.worker("w0")
    with at_work(rig, 2) as work:
        rig.do(work)
        told = handed(work.pool, ended)
        assert (told.worker, told.state, told.heirs) == ("w0", "done", ("w1",))
        members(pool_of(work), ready(1))
        rig.moved()
        rig.do(work)
        assert rig.moved() < LITTLE


def test_what_is_cheaper_to_fetch_again_is_refused(rig: Rig) -> None:
    with one_holds_all(rig) as (work, first, _):
        pool_of(work)._crew.rates.of_stores({"web": (1e-6, 1e12)})
        end(first)
        told = handed(work.pool, ended)
        assert (told.state, told.bytes) == ("gave nothing", 0)
        assert told.refused.startswith(f"{IMAGES} objects, ")
        assert told.refused.endswith(": cheaper to fetch again")
        rig.do(work)
        assert rig.moved() >= SIZE


@pytest.mark.parametrize("who", ["leaver", "heir"])
def test_one_that_is_killed_in_the_middle_harms_nothing(
    rig: Rig,
    who: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("swathe.workers.dask.replication.GROUP", 1)
    with one_holds_all(rig) as (work, first, second):
        first.process.send_signal(signal.SIGTERM)
        handed(work.pool, lambda each: each.objects > 0 or ended(each))
        (first if who == "leaver" else second).kill()
        told = handed(work.pool, ended)
        assert told.state in ("done", "broken off")
        if who == "heir":
            assert first.process.wait(PATIENCE_S) == 0
            rig.worker("w2")
        members(pool_of(work), ready(1))
        assert notes(rig.do(work)) == []


def test_those_that_are_not_needed_hand_over(rig: Rig) -> None:
    command = worker_command(rig.scheduler.address, None, 1, 0.0, rig.folder / "grown")
    provider = WatchProvider(Processes(command))
    hand_over_when_let_go(rig, provider, "processes")
    assert len(provider.names) == 2


def hand_over_when_let_go(rig: Rig, provider: WatchProvider, kind: str) -> None:
    """See that of two workers the one that goes gives what it holds to the one that stays."""
    limits = GrowthLimits(minimum=1, maximum=2, spare=0, idle_s=2.0, start_s=1.0, hand_over_s=0.0)
    wanted = [reserved(2)]
    pool = GrowingPool(
        connected(rig.scheduler.address, Folder(rig.folder / "results")),
        provider,
        limits,
        kind=kind,
        prefix=PREFIX,
        threads=1,
        waiting=list,
        reservations=lambda: wanted,
    )
    with caching(), started(pool) as work:
        members(pool, ready(2))  # type: ignore[arg-type]
        rig.do(work)
        assert len({each.worker for each in pool.status().held}) == 2
        rig.moved()
        wanted.clear()
        told = handed(pool, ended)
        assert (told.state, told.refused, len(told.heirs)) == ("done", "", 1)
        assert 0 < told.objects < IMAGES
        members(pool, ready(1))  # type: ignore[arg-type]
        assert rig.moved() == 0
        rig.do(work)
        assert rig.moved() < LITTLE
        assert pool.status().moved.handed_bytes == told.bytes > 0


@contextmanager
def caching() -> Iterator[None]:
    """Workers that are started have caches, and who is wanted is looked at often."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("swathe.workers.autoscale.pool.LOOK_S", 0.2)
        patch.setenv("SWATHE_CACHE_BYTES", str(10**9))
        yield


def reserved(workers: int) -> ReservationRecord:
    """So many workers, now."""
    now, hour = datetime.now(UTC), timedelta(hours=1)
    return ReservationRecord(1, now - hour, now + hour, workers)


def test_hot_objects_are_copied_in_advance(rig: Rig) -> None:
    with one_holds_all(rig) as (work, *_):
        pool = pool_of(work)
        address = next(at for at, each in pool._crew.workers.items() if each.name == "w1")
        pool._loop.call_soon_threadsafe(pool._spreading.copy, "web:3.fits", address)
        # One at a time for each worker: the second is not made, and may be wanted again.
        pool._loop.call_soon_threadsafe(pool._spreading.copy, "web:4.fits", address)
        # That it holds it is noted before.
        seconds_until(lambda: pool.status().moved.copies > 0, time.monotonic())
        told = pool.status().moved
        assert {each.object for each in pool.status().held if each.worker == "w1"} == {"web:3.fits"}
        assert (told.copies, told.handed_bytes) == (1, 0)
        assert SIZE / IMAGES <= told.copied_bytes < 1.1 * SIZE / IMAGES
        assert rig.moved() == 0
        assert pool.status().peer_bytes_per_s > 0
        rig.do(work)
        assert rig.moved() < LITTLE


def test_a_hot_object_spreads(rig: Rig) -> None:
    """Behind a store that is far: all have it, and it was read from there once."""
    with (
        proxy(rig.server.url, rtt_ms=56, shared_bytes_per_s=20 * 10**6) as far,
        Catalog.open() as catalog,
    ):
        catalog.remove_store("web")
        catalog.add_store("web", far.url)
        rig.worker("w0")
        with at_work(rig, 1) as work:
            other, _, _, hot, *_ = rig.batches()
            work.give(0, hot)
            assert work.next()[1].complete
            for number in range(1, 4):
                rig.worker(f"w{number}")
            members(pool_of(work), ready(4))
            # Whoever does its first batch takes long to begin with it.
            for number in range(100, 130):
                work.give(number, replace(other, job=f"other{number}"))
            assert all(work.next()[1].complete for _ in range(100, 130))
            seconds_until(lambda: spread_over(work, other) == 4, time.monotonic())
            rig.moved()
            begun = time.monotonic()
            for number in range(1, 61):
                work.give(number, replace(hot, job=f"hot{number}"))
            spread_s = seconds_until(lambda: spread_over(work, hot) == 4, begun)
            done = [work.next()[1] for _ in range(60)]
            assert all(each.complete for each in done)
            logging.getLogger(__name__).info("on 4 workers after %.2f s", spread_s)
            # Others open it, and read nothing of it there.
            assert rig.moved() < 0.1 * SIZE / IMAGES


def spread_over(work: started, batch: Batch) -> int:
    """How many workers hold the object of a batch."""
    return sum(each.object == batch.rows[0].source for each in work.pool.status().held)


def seconds_until(is_so: Callable[[], bool], begun: float) -> float:
    """How long it took until something was so."""
    while not is_so():
        assert time.monotonic() - begun < PATIENCE_S
        time.sleep(0.01)
    return time.monotonic() - begun
