"""Workers that give each other what they hold: never anything but what the store has."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest

from conftest import fits_bytes
from pools import Process, command, connected, members, process, ready
from servers import FileServer, nginx
from swathe.catalog import Catalog
from swathe.catalog.work import Done, KeptRow
from swathe.jobs import Folder, Options
from swathe.workers.batches import Batch
from swathe.workers.cluster import DaskPool
from test_workers import started

IMAGES, SIDE, PARTS = 8, 1024, 4
SIZE = IMAGES * 2 * SIDE * SIDE


@dataclass
class Rig:
    """A server with images, and a pool whose workers have a cache each."""

    folder: Path
    server: FileServer
    scheduler: Process
    stack: ExitStack
    given: tuple[str | Path, ...] = ()
    sums: dict[str, list[str]] = field(default_factory=dict)
    count: int = 0

    def put(self, seed: int) -> None:
        """Put images on the server, others with each seed."""
        rng = np.random.default_rng(seed)
        for number in range(IMAGES):
            pixels = rng.integers(0, 9999, (SIDE, SIDE)).astype(">i2")
            new = self.folder / "new.fits"
            new.write_bytes(fits_bytes(pixels))
            os.utime(new, (seed * 1000, seed * 1000))
            new.rename(self.server.folder / f"{number}.fits")
            high = SIDE // PARTS
            for part in range(PARTS):
                cut = pixels[part * high : (part + 1) * high]
                self.sums.setdefault(f"{number}-{part}", []).append(
                    sha256(cut.tobytes()).hexdigest()
                )

    def worker(self, name: str, cache: Path | None = None) -> Process:
        """Start another worker, of one thread."""
        at = ("--cache", cache or self.cache(name), "--cache-gb", "1", "--name", name)
        started = process("worker", self.scheduler.address, "--threads", "1", *at, *self.given)
        return self.stack.enter_context(started)

    def cache(self, name: str) -> Path:
        return self.folder / "caches" / name

    def batches(self) -> list[Batch]:
        """One for each image: all of it."""
        self.count += 1
        high = SIDE // PARTS
        made = []
        for number in range(IMAGES):
            rows = [
                KeptRow(at, at, None, f"{number}-{at}", f"{number}-{at}", f"web:{number}.fits",
                        None, (0, at * high, SIDE, high), None, None)
                for at in range(PARTS)
            ]  # fmt: skip
            job = f"job{self.count}-{number}"
            made.append(Batch(job, 0, Options(), rows, row_bytes=2 * SIDE * SIDE / PARTS))
        return made

    def do(self, at_work: started, times: int = 1) -> list[Done]:
        """Do all images, and see that each cut is just of one of those that were put there."""
        given = [each for _ in range(times) for each in self.batches()]
        for number, each in enumerate(given):
            at_work.give(number, each)
        done = [at_work.next()[1] for _ in given]
        assert all(each.complete and each.failure is None for each in done), done
        assert sum(len(each.rows) for each in done) == len(given) * PARTS
        assert {row.status for each in done for row in each.rows} == {"ok"}
        for each in given:
            for row in each.rows:
                made = self.folder / "results" / each.job / "0000" / f"{row.name}.fits"
                assert sha256(_pixels(made)).hexdigest() in self.sums[row.id], row.id
        return done

    def moved(self) -> int:
        """Bytes that the server has sent since the last call."""
        return sum(request.bytes for request in self.server.requests())


def _pixels(made: Path) -> bytes:
    """The pixels of a cut of known size: after its header."""
    found = made.read_bytes()
    end = next(at for at in range(0, len(found), 80) if found[at : at + 80].rstrip() == b"END")
    start = (end // 2880 + 1) * 2880
    return found[start : start + 2 * SIDE * SIDE // PARTS]


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    """Images on a server."""
    yield from _rig(tmp_path, monkeypatch, ())


def _rig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: tuple[str | Path, ...]
) -> Iterator[Rig]:
    monkeypatch.setenv("SWATHE_DATABASE", f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    monkeypatch.setenv("SWATHE_INDEX_DIR", str(tmp_path / "index"))
    (tmp_path / "nginx").mkdir()
    with ExitStack() as stack:
        server = stack.enter_context(nginx(tmp_path / "nginx"))
        with Catalog.open() as catalog:
            catalog.add_store("web", server.url)
        scheduler = stack.enter_context(process("scheduler", "--port", "0", *given))
        rig = Rig(tmp_path, server, scheduler, stack, given)
        rig.put(1)
        yield rig


@contextmanager
def at_work(rig: Rig, workers: int, **settings: Path) -> Iterator[started]:
    """A pool at work, once so many workers are there."""
    pool = connected(rig.scheduler.address, Folder(rig.folder / "results"), **settings)
    with started(pool) as work:
        members(pool, ready(workers))
        yield work


def pool_of(work: started) -> DaskPool:
    assert isinstance(work.pool, DaskPool)
    return work.pool


def peer_bytes(work: started) -> int:
    return pool_of(work).told().moved.peer_bytes


def notes(done: list[Done]) -> list[str]:
    return [note for each in done for note in each.notes]


def test_ten_rounds_read_the_store_once(rig: Rig) -> None:
    for number in range(3):
        rig.worker(f"w{number}")
    with at_work(rig, 3) as work:
        for _ in range(10):
            assert notes(rig.do(work)) == []
        told = pool_of(work).told()
    asked = rig.moved()
    assert SIZE <= asked <= 1.1 * SIZE
    assert told.moved.batches == 10 * IMAGES
    assert SIZE <= told.moved.store_bytes <= 1.1 * SIZE
    assert told.moved.near >= 0.9 * 9 * IMAGES
    held = {each.object for each in told.held}
    assert held == {f"web:{number}.fits" for number in range(IMAGES)}
    assert all(0.9 * 2 * SIDE**2 < each.bytes < 2.2 * SIDE**2 for each in told.held)


def test_a_worker_that_comes_later_asks_the_others(rig: Rig) -> None:
    rig.worker("w0")
    with at_work(rig, 1) as work:
        rig.do(work)
        rig.moved()
        rig.worker("w1")
        members(pool_of(work), ready(2))
        rig.do(work, 3)
        assert peer_bytes(work) > 0
        assert {each.worker for each in pool_of(work).told().held} == {"w0", "w1"}
        assert rig.moved() < 0.05 * SIZE


def damage(cache: Path) -> None:
    for path in cache.rglob("*"):
        if path.is_file() and path.name != "usage":
            content = bytearray(path.read_bytes())
            content[-100] ^= 1
            path.write_bytes(content)


def test_a_peer_with_damaged_blocks(rig: Rig) -> None:
    rig.worker("w0")
    with at_work(rig, 1) as work:
        rig.do(work)
        damage(rig.cache("w0"))
        rig.worker("w1")
        members(pool_of(work), ready(2))
        done = rig.do(work, 3)
    assert any("sent blocks that are wrong" in note for note in notes(done))


def test_a_peer_that_is_killed(rig: Rig) -> None:
    first = rig.worker("w0")
    with at_work(rig, 1) as work:
        rig.do(work)
        rig.worker("w1")
        members(pool_of(work), ready(2))
        for number, each in enumerate(given := [*rig.batches(), *rig.batches()]):
            if number == 2:
                first.kill()
            work.give(number, each)
        done = [work.next()[1] for _ in given]
        assert all(each.complete for each in done)
        assert {row.status for each in done for row in each.rows} == {"ok"}
        rig.do(work)


def test_objects_that_change_are_never_mixed(rig: Rig) -> None:
    rig.worker("w0")
    with at_work(rig, 1) as work:
        rig.do(work)
        rig.put(2)
        # What is there is trusted for a minute, unless nobody knows which version it was.
        shutil.rmtree(rig.folder / "index")
        rig.worker("w1")
        rig.worker("w2")
        members(pool_of(work), ready(3))
        rig.moved()
        old = peer_bytes(work)
        rig.do(work)
        assert rig.moved() >= SIZE
        for sums in rig.sums.values():
            del sums[0]
        rig.do(work, 3)
        assert peer_bytes(work) >= old


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_full_disk_of_a_worker(rig: Rig) -> None:
    small = rig.folder / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("cannot mount here")
    try:
        rig.worker("w0")
        with at_work(rig, 1) as work:
            rig.do(work)
            rig.worker("w1", small / "cache")
            members(pool_of(work), ready(2))
            rig.do(work, 3)
    finally:
        rig.stack.close()
        subprocess.run(["umount", small], check=True)


def test_strangers_get_nothing(rig: Rig) -> None:
    rig.worker("w0")
    with at_work(rig, 1) as work:
        rig.do(work)
        [worker] = pool_of(work)._workers.values()
        assert worker.peer is not None
        url, token = worker.peer
        assert urlsplit(url).hostname == "127.0.0.1"
        asked = f"{url}/blocks/{'0' * 32}"
        for sent in ({}, {"Authorization": f"Bearer {token[:-1]}x"}, {"Authorization": token}):
            assert httpx.get(asked, headers=sent).status_code == 401
        found = httpx.get(asked, headers={"Authorization": f"Bearer {token}"})
        assert (found.status_code, found.content) == (200, b"\0\0\0\0")
        assert token not in str(pool_of(work).told())


def test_with_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificates = tmp_path / "certificates"
    made = subprocess.run(command("init", certificates), capture_output=True, timeout=60)
    assert made.returncode == 0
    for rig in _rig(tmp_path, monkeypatch, ("--certificates", certificates)):
        rig.worker("w0")
        with at_work(rig, 1, certificates=certificates) as work:
            rig.do(work)
            rig.moved()
            [worker] = pool_of(work)._workers.values()
            assert worker.peer is not None
            url, token = worker.peer
            assert url.startswith("https://")
            with pytest.raises(httpx.TransportError):
                httpx.get(f"{url}/blocks/{'0' * 32}", headers={"Authorization": f"Bearer {token}"},
                          verify=False)  # fmt: skip
            rig.worker("w1")
            members(pool_of(work), ready(2))
            rig.do(work, 3)
            assert peer_bytes(work) > 0
            assert rig.moved() < 0.05 * SIZE
