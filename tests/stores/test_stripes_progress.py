"""Repairs and rebalances of striped stores are seen while they run, and when they were stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import swathe
from swathe.catalog import Catalog, stripe_work
from swathe.catalog.records.stripes import StripeWork
from swathe.core.errors import CatalogError, NoSuchStoreError
from swathe.stores import stripe_progress, stripes
from tests.support.block_servers import block_server
from tests.support.fits_frames import Runner
from tests.support.portals import wait_until
from tests.support.servers import proxy
from tests.support.stripes import add_stripe

OBJECTS = 3


@pytest.fixture
def disks(run: Runner, tmp_path: Path) -> list[Path]:
    """Folders of the store `wide` with three objects, whose parts on the first are lost."""
    folders = add_stripe(tmp_path, servers=3)
    paths = [tmp_path / f"object-{number}" for number in range(OBJECTS)]
    for path in paths:
        path.write_bytes(bytes(range(256)) * 100)
    run("put", *paths, "wide:")
    for part in folders[0].glob("*.stripe.*"):
        part.unlink()
    return folders


@contextmanager
def paused_after_one(
    monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]
) -> Iterator[StripeWork]:
    """Run work on objects in a thread, which waits after the first; yield what status says."""
    going_on, each_object = threading.Event(), stripes._each_object

    def each_slowly(*arguments: Any) -> Iterator[Any]:
        for number, outcome in enumerate(each_object(*arguments)):
            if number == 1:
                going_on.wait(60)
            yield outcome

    monkeypatch.setattr(stripes, "_each_object", each_slowly)
    monkeypatch.setattr(stripe_progress, "INTERVAL_S", 0.02)
    thread = threading.Thread(target=work)
    thread.start()
    try:
        wait_until(lambda: [each.done for each in current_work()] == [1])
        yield current_work()[0]
    finally:
        going_on.set()
        thread.join()


def current_work() -> list[StripeWork]:
    return swathe.stores.stripe_status("wide", count=False).work


def test_a_repair_is_seen_while_it_runs(
    disks: list[Path], run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    began_at = datetime.now(UTC)
    reports = []

    def repair() -> None:
        reports.append(swathe.stores.repair_stripes("wide", threads=1, progress=False))

    with paused_after_one(monkeypatch, repair) as work:
        assert (work.kind, work.place, work.is_running) == ("repair", "wide", True)
        assert (work.objects, work.done, work.failed) == (OBJECTS, 1, 0)
        # Its shortest part; which one is on the first server depends on the name.
        assert (work.written_bytes or 0) >= 9_216
        assert work.total_bytes == OBJECTS * 25_600
        assert 25_600 <= (work.done_bytes or 0) <= work.total_bytes
        assert work.bytes_per_s is not None and work.left_s is not None
        assert began_at <= work.began_at <= work.told_at
        text = run("stripe", "status", "wide")
        assert f"repair of wide on {work.host}, process {work.pid}, since " in text
        assert "1 of 3 objects done, " in text and "stopped" not in text
        assert " kiB done at " in text.replace("KiB", "kiB") and " left\n" in text
        answer = run.json("stripe", "status", "wide")["work"]
        assert [(each["done"], each["is_running"]) for each in answer] == [(1, True)]
    assert reports[0].repairs == OBJECTS and not reports[0].notes
    assert current_work() == []


def test_a_rebalance_is_seen_while_it_runs(
    disks: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    swathe.stores.repair_stripes("wide", progress=False)

    def rebalance() -> None:
        swathe.stores.rebalance_stripes("wide:", threads=1, progress=False)

    with paused_after_one(monkeypatch, rebalance) as work:
        assert (work.kind, work.place, work.written_bytes) == ("rebalance", "wide:", None)
        assert (work.objects, work.done, work.is_running) == (OBJECTS, 1, True)
        assert (work.total_bytes, work.done_bytes) == (OBJECTS * 25_600, 25_600)
    assert current_work() == []


def test_one_large_object_shows_how_far_it_is(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its part is written through a slow link."""
    # More than what waits in memory to be sent: some 26 MiB of a part.
    size = 96 << 20
    for name in ("disk-a", "disk-b", "disk-c"):
        (tmp_path / name).mkdir()
    with block_server(tmp_path / "disk-c") as running, proxy(running.url) as link:
        for name in ("disk-a", "disk-b"):
            swathe.stores.add(name, str(tmp_path / name))
        swathe.stores.add("disk-c", link.url.replace("http", "dav", 1) + "/")
        swathe.stores.add("wide", "striped:", over=["disk-a", "disk-b", "disk-c"], parity=1)
        (tmp_path / "large").write_bytes(bytes(range(256)) * (size // 256))
        run("put", tmp_path / "large", "wide:")
        (part,) = (tmp_path / "disk-c").glob("*.stripe.*")
        part.unlink()
        link.set(upload_bytes_per_s=16_000_000)
        monkeypatch.setattr(stripe_progress, "INTERVAL_S", 0.02)
        thread = threading.Thread(
            target=lambda: swathe.stores.repair_stripes("wide", progress=False)
        )
        thread.start()
        seen: list[StripeWork] = []

        def is_under_way() -> bool:
            seen.extend(each for each in current_work() if 0 < (each.done_bytes or 0) < size)
            return any((each.written_bytes or 0) > 0 for each in seen)

        try:
            wait_until(is_under_way)
            work = seen[-1]
            assert (work.done, work.objects, work.total_bytes) == (0, 1, size)
        finally:
            thread.join()
    assert current_work() == []


def test_a_repair_that_is_interrupted_is_stopped_until_the_next(
    disks: list[Path], run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    each_object = stripes._each_object

    def interrupt(*arguments: Any) -> Iterator[Any]:
        yield next(each_object(*arguments))
        raise KeyboardInterrupt

    monkeypatch.setattr(stripes, "_each_object", interrupt)
    with pytest.raises(KeyboardInterrupt):
        swathe.stores.repair_stripes("wide", threads=1, progress=False)
    (work,) = current_work()
    assert (work.done, work.is_running) == (1, False)
    assert "1 of 3 objects done, " in run("stripe", "status", "wide")
    assert "; stopped, last told " in run("stripe", "status", "wide")
    monkeypatch.setattr(stripes, "_each_object", each_object)
    report = swathe.stores.repair_stripes("wide", progress=False)
    # Threads may have done others before it was stopped.
    assert report.skipped >= 1 and report.repairs + report.skipped == OBJECTS
    assert current_work() == []


KILLED = """
import sys, time
import swathe
from swathe.stores import stripe_progress, stripes
stripe_progress.INTERVAL_S = 0.02
each_object = stripes._each_object

def each_slowly(*arguments):
    yield next(each_object(*arguments))
    time.sleep(600)

stripes._each_object = each_slowly
swathe.stores.repair_stripes("wide", threads=1, progress=False)
"""


def test_a_repair_that_is_killed_is_stopped(disks: list[Path], run: Runner) -> None:
    process = subprocess.Popen([sys.executable, "-c", KILLED])
    try:
        wait_until(lambda: [each.done for each in current_work()] == [1])
        (work,) = current_work()
        assert (work.pid, work.is_running) == (process.pid, True)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    (work,) = current_work()
    assert (work.pid, work.done, work.is_running) == (process.pid, 1, False)
    assert "stopped" in run("stripe", "status", "wide")


def test_work_of_another_machine_is_stopped_when_it_is_silent(
    disks: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Catalog.open() as catalog:
        with monkeypatch.context() as there:
            there.setattr(stripe_work, "this_host", lambda: "elsewhere")
            # No process of this machine has this number.
            number = catalog.begin_stripe_work("wide", "repair", "wide", 2**22 + 1, 7)
        assert [each.is_running for each in catalog.stripe_work("wide")] == [True]
        catalog.tell_stripe_work(number, 3, 1, 500)
        (work,) = catalog.stripe_work("wide")
        assert (work.host, work.done, work.failed, work.written_bytes) == ("elsewhere", 3, 1, 500)
        # Other work does not end it; work that is silent does not count.
        other = catalog.begin_stripe_work("wide", "rebalance", "wide:x", 1, 7)
        assert len(catalog.stripe_work("wide")) == 2
        catalog.end_stripe_work(other)
        monkeypatch.setattr(stripe_work, "SILENCE", timedelta(seconds=-60))
        assert [each.is_running for each in catalog.stripe_work("wide")] == [False]
        with pytest.raises(NoSuchStoreError):
            catalog.begin_stripe_work("narrow", "repair", "narrow", 1, 7)
        catalog.remove_store("wide")
        catalog.tell_stripe_work(number, 4, 1, 600)
        assert catalog.stripe_work("wide") == []


def test_a_repair_goes_on_if_the_catalogue_cannot_be_written(
    disks: list[Path], run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise CatalogError("read-only")

    monkeypatch.setattr(Catalog, "begin_stripe_work", refuse)
    report = swathe.stores.repair_stripes("wide", progress=False)
    assert report.repairs == OBJECTS
    assert report.notes == ["status could not always show its progress: read-only"]
    _, err = run.told("stripe", "repair", "wide")
    assert "note: status could not always show its progress: read-only" in err


def test_the_catalogue_is_written_when_there_is_progress(
    disks: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stripe_progress.INTERVAL_S < 2 < stripe_progress.IDLE_S < stripe_work.SILENCE.seconds
    told: list[int] = []
    asked: list[None] = []
    now = stripe_progress.Progress(0, 0, 0, 0)

    def tell(catalog: Catalog, number: int, done: int, *_: object, **__: object) -> None:
        told.append(done)

    def progress() -> stripe_progress.Progress:
        asked.append(None)
        return now

    monkeypatch.setattr(stripe_progress, "INTERVAL_S", 0.001)
    monkeypatch.setattr(Catalog, "tell_stripe_work", tell)
    with stripe_progress.ProgressRecord("wide", "repair", "wide", [1, 1], progress):
        wait_until(lambda: len(asked) > 5)
        assert told == [0]
        now = stripe_progress.Progress(1, 0, 0, 1)
        wait_until(lambda: told == [0, 1])
        # Without progress it says so now and then.
        monkeypatch.setattr(stripe_progress, "IDLE_S", 0.0)
        wait_until(lambda: len(told) > 3)
    assert set(told) == {0, 1}
