"""Images on a server, and pools whose workers have caches: for tests of what goes between them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swathe.catalog import Catalog
from swathe.catalog.records.jobs import ChunkResult
from swathe.core.row_record import RowRecord
from swathe.core.row_table import RowTable
from swathe.jobs import Folder, Options
from swathe.workers.batch import Batch
from swathe.workers.dask.pool import DaskPool
from tests.conftest import fits_bytes
from tests.support.catalogs import new_catalog
from tests.support.pools import Process, connected, members, process, ready
from tests.support.servers import FileServer, nginx
from tests.workers.test_pool import started

LOOPBACK = "127.0.0.1"
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
    worker_given: tuple[str | Path, ...] = ()
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
        at = ("--cache", cache or self.cache(name), "--cache-size", "1GB", "--name", name)
        worker_process = process(
            "worker", self.scheduler.address, "--threads", "1", *at, *self.given, *self.worker_given
        )
        return self.stack.enter_context(worker_process)

    def cache(self, name: str) -> Path:
        return self.folder / "caches" / name

    def batches(self) -> list[Batch]:
        """One for each image: all of it."""
        self.count += 1
        high = SIDE // PARTS
        groups = []
        for number in range(IMAGES):
            rows = RowTable.of([
                RowRecord(at, at, None, f"{number}-{at}", f"{number}-{at}", f"web:{number}.fits",
                        None, (0, at * high, SIDE, high), None, None)
                for at in range(PARTS)
            ])  # fmt: skip
            job = f"job{self.count}-{number}"
            groups.append(Batch(job, 0, Options(), rows, row_bytes=2 * SIDE * SIDE / PARTS))
        return groups

    def do(self, at_work: started, times: int = 1) -> list[ChunkResult]:
        """Do all images, and see that each cut is just of one of those that were put there."""
        batches = [each for _ in range(times) for each in self.batches()]
        for number, each in enumerate(batches):
            at_work.give(number, each)
        results = [at_work.next()[1] for _ in batches]
        assert all(each.complete and each.failure is None for each in results), results
        assert sum(len(each.rows) for each in results) == len(batches) * PARTS
        assert {row.status for each in results for row in each.rows} == {"ok"}
        for each in batches:
            for row in each.rows:
                path = self.folder / "results" / each.job / "0000" / f"{row.name}.fits"
                assert sha256(_pixels(path)).hexdigest() in self.sums[row.id], row.id
        return results

    def moved(self) -> int:
        """Bytes that the server has sent since the last call."""
        return sum(request.bytes for request in self.server.requests())


def _pixels(path: Path) -> bytes:
    """The pixels of a cut of known size: after its header."""
    content = path.read_bytes()
    end = next(at for at in range(0, len(content), 80) if content[at : at + 80].rstrip() == b"END")
    start = (end // 2880 + 1) * 2880
    return content[start : start + 2 * SIDE * SIDE // PARTS]


def rig_of(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: tuple[str | Path, ...] = (),
    address: str = LOOPBACK,
) -> Iterator[Rig]:
    """Images on a server, and a scheduler, at an address; all processes are `given` the same."""
    monkeypatch.setenv("SWATHE_DATABASE", new_catalog(tmp_path / "catalog.sqlite"))
    monkeypatch.setenv("SWATHE_INDEX_DIR", str(tmp_path / "index"))
    (tmp_path / "nginx").mkdir()
    with ExitStack() as stack:
        listens = LOOPBACK if address == LOOPBACK else "0.0.0.0"
        server = stack.enter_context(nginx(tmp_path / "nginx", listens))
        with Catalog.open() as catalog:
            catalog.add_store("web", server.url.replace(LOOPBACK, address))
        at = ("--host", address, "--port", "0")
        scheduler = stack.enter_context(process("scheduler", *at, *given))
        rig = Rig(tmp_path, server, scheduler, stack, given)
        rig.put(1)
        yield rig


@contextmanager
def at_work(rig: Rig, workers: int, **settings: Any) -> Iterator[started]:
    """A pool at work, once so many workers are there."""
    pool = connected(rig.scheduler.address, Folder(rig.folder / "results"), **settings)
    with started(pool) as work:
        members(pool, ready(workers))
        yield work


def pool_of(work: started) -> DaskPool:
    """The pool that is at work."""
    assert isinstance(work.pool, DaskPool)
    return work.pool


def peer_bytes(work: started) -> int:
    """What workers have read from each other."""
    return pool_of(work).status().moved.peer_bytes


def notes(results: list[ChunkResult]) -> list[str]:
    """What was noted about batches."""
    return [note for each in results for note in each.notes]
