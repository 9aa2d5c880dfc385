"""What workers hold, in the catalogue: as they told last, little of it, and not for ever."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from swathe.catalog import Catalog
from swathe.catalog.worker_replicas import WorkerReplicas
from swathe.portal.save_worker_replicas import Replicas
from swathe.workers.pool import HeldObject, Member, PoolStatus
from tests.support.fits_frames import Runner
from tests.support.portals import wait_until
from tests.support.servers import free_port

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
TOLD = WorkerReplicas("dask://host:1", NOON, 2, 3, 60, [])


@pytest.fixture
def catalog(url: str) -> Iterator[Catalog]:
    with Catalog.open(url) as catalog:
        yield catalog


def test_what_is_kept_is_what_was_told_last(catalog: Catalog) -> None:
    assert catalog.worker_replicas() == []
    first = {("w0", "web:a"): 10, ("w0", "web:b"): 20, ("w1", "web:a"): 30}
    catalog.keep_replicas("p", TOLD, {}, first)
    [found] = catalog.worker_replicas()
    rows = [("w1", "web:a", 30), ("w0", "web:b", 20), ("w0", "web:a", 10)]
    assert found == replace(TOLD, replicas=rows)
    then = {("w0", "web:a"): 11, ("w1", "web:a"): 30}
    later = replace(TOLD, told_at=NOON + timedelta(seconds=5), held=2, bytes=41)
    catalog.keep_replicas("p", later, first, then)
    [found] = catalog.worker_replicas()
    assert found == replace(later, replicas=[("w1", "web:a", 30), ("w0", "web:a", 11)])
    assert catalog.worker_replicas(limit=1)[0].replicas == [("w1", "web:a", 30)]


def test_pools_are_kept_apart_and_forgotten(catalog: Catalog) -> None:
    now = datetime.now(UTC)
    long = "https://archive.example/" + "é" * 3000
    for number, pool in enumerate("abc"):
        told = replace(TOLD, address=pool, told_at=now - timedelta(seconds=100 * number))
        catalog.keep_replicas(pool, told, {}, {("w0", long): number + 1})
    assert [each.address for each in catalog.worker_replicas()] == ["a", "b", "c"]
    catalog.forget_replicas(older_s=150.0)
    catalog.forget_replicas("b")
    catalog.forget_replicas("b")
    [found] = catalog.worker_replicas()
    assert (found.address, found.replicas) == ("a", [("w0", long, 1)])
    # What was forgotten meanwhile is written anew, whatever it was thought to be.
    catalog.keep_replicas("b", TOLD, {("w0", "gone"): 1, ("w0", "x"): 2}, {("w0", "x"): 2})
    assert catalog.worker_replicas()[-1].replicas == [("w0", "x", 2)]


class Telling:
    """A pool that only tells."""

    def __init__(self) -> None:
        self.now = PoolStatus("dask", "dask://host:1", "", 0, [Member("w0", "host", 1, 0)], [])

    def status(self) -> PoolStatus:
        return self.now


def test_a_portal_keeps_what_its_pool_tells(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swathe.portal.save_worker_replicas.EVERY_S", 0.05)
    monkeypatch.setattr("swathe.portal.save_worker_replicas.MOST_REPLICAS", 3)
    dead = replace(TOLD, address="dead", told_at=datetime.now(UTC) - timedelta(hours=1))
    catalog.keep_replicas("dead", dead, {}, {("w9", "web:old"): 1})
    pool = Telling()

    def kept() -> list[tuple[str, str, int]]:
        return [row for each in catalog.worker_replicas() for row in each.replicas]

    with Replicas(catalog, pool):  # type: ignore[arg-type]
        wait_until(lambda: [each.address for each in catalog.worker_replicas()] == [TOLD.address])
        assert kept() == []
        held = [HeldObject("w0", f"web:{number}", 10 * number) for number in range(1, 6)]
        pool.now = replace(pool.now, held=held)
        largest = [("w0", "web:5", 50), ("w0", "web:4", 40), ("w0", "web:3", 30)]
        wait_until(lambda: kept() == largest)
        [found] = catalog.worker_replicas()
        assert (found.workers, found.held, found.bytes) == (1, 5, 150)
        at = found.told_at
        pool.now = replace(pool.now, held=held[:1], workers=[])
        wait_until(lambda: kept() == [("w0", "web:1", 10)])
        assert catalog.worker_replicas()[0].told_at > at
    assert catalog.worker_replicas() == []


def test_status_without_a_portal_is_of_the_catalogue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("swathe.client.connection.time", SimpleNamespace(sleep=lambda _s: None))
    run = Runner(monkeypatch, capsys)
    url = f"sqlite:///{tmp_path}/catalog.sqlite"
    config = tmp_path / "swathe.toml"
    config.write_text(f'[catalog]\ndatabase = "{url}"\n')
    portal = f"http://127.0.0.1:{free_port()}"
    asked = ("pool", "status", "--url", portal, "--config", config)
    assert portal in run(*asked, code=3)
    with Catalog.open(url) as catalog:
        catalog.keep_replicas("p", TOLD, {}, {("w0", "web:a"): 10, ("w1", "web:b"): 20})
    shown, said = run.told(*asked)
    assert "dask://host:1 at 2026-11-20T12:00:00Z: 2 workers" in shown
    assert "web:b" in shown
    assert "and 1 more" in shown
    assert "last recorded in the catalogue" in said
    [found] = run.json(*asked)["kept"]
    assert found["replicas"] == [["w1", "web:b", 20], ["w0", "web:a", 10]]
