"""Real pools for the tests: scheduler and workers in processes of their own, on free ports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from astropy.table import Table

import swathe
from swathe.catalog import Catalog
from swathe.jobs import Jobs, Limits, ResultStore
from swathe.workers.dask.pool import DaskPool
from swathe.workers.dask.tls import read_address
from swathe.workers.pool import Member
from tests.support.catalogs import new_catalog

PATIENCE_S = 120.0
"""Much longer than anything takes: machines may be slow, and busy with other things."""
ROWS = 200
ROWS_EACH = 5


@dataclass
class Process:
    """A scheduler or a worker."""

    address: str
    process: subprocess.Popen[str]

    def kill(self) -> None:
        """End it as a power cut does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=PATIENCE_S)


def command(*arguments: str | Path) -> list[str]:
    """What starts `swathe pool ...`."""
    return [sys.executable, "-m", "swathe.cli", "pool", *map(str, arguments)]


SLOW = Path(__file__).parent / "slow_worker.py"


class Hold:
    """While it is closed, slow workers do one batch each, and are busy with the next until then."""

    def __init__(self, path: Path) -> None:
        """Take the file by which they know."""
        self.path = path

    def close(self) -> None:
        """Hold those that are begun from now on."""
        self.path.touch()

    def open(self) -> None:
        """Let them go on."""
        self.path.unlink(missing_ok=True)


def environment() -> dict[str, str]:
    """That of workers: they have no catalogue."""
    paths = [str(Path(swathe.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    values = {
        "PYTHONPATH": os.pathsep.join(paths),
        "SWATHE_DATABASE": "sqlite:////none/none.sqlite",
    }
    return os.environ | values


@contextmanager
def process(*arguments: str | Path, hold: Hold | None = None) -> Iterator[Process]:
    """A process of a pool, once it has told its address; with a hold it is a slow worker."""
    words = command(*arguments, "--json")
    if hold is not None:
        words[1:3] = [str(SLOW), "0", str(hold.path)]
    child = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        assert child.stdout is not None
        line = child.stdout.readline()
        if not line:
            raise AssertionError(child.communicate(timeout=PATIENCE_S)[1])
        yield Process(next(iter(json.loads(line).values())), child)
    finally:
        child.terminate()
        try:
            child.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            raise


@contextmanager
def pool_of(
    workers: int = 1,
    *options: str | Path,
    worker: Sequence[str | Path] = (),
    hold: Hold | None = None,
) -> Iterator[tuple[Process, list[Process]]]:
    """A scheduler, and workers with two threads each; all are `given` the same, workers more."""
    with ExitStack() as stack:
        first = stack.enter_context(process("scheduler", "--port", "0", *options))
        arguments = ("worker", first.address, "--threads", "2", *options, *worker)
        names = [f"w{number}" for number in range(workers)]
        yield (
            first,
            [stack.enter_context(process(*arguments, "--name", name, hold=hold)) for name in names],
        )


def connected(address: str, place: ResultStore, **settings: Any) -> DaskPool:
    """A pool of the workers of a scheduler, not started."""
    return DaskPool(read_address(address), place, **settings)


def members(pool: DaskPool, are: Callable[[list[Member]], bool]) -> list[Member]:
    """The workers of a pool, once something is so of them."""
    until = time.monotonic() + PATIENCE_S
    while not are(members_now := list(pool.status().workers)):
        assert time.monotonic() < until, (members_now, pool.status())
        time.sleep(0.05)
    return members_now


def ready(count: int) -> Callable[[list[Member]], bool]:
    """So many workers have joined."""
    return lambda members_now: (
        sum(not each.refused for each in members_now) == count == len(members_now)
    )


def many_targets(survey: Path, rows: int = ROWS) -> dict[str, list[Any]]:
    """The targets of a sample survey, several times over."""
    read = Table.read(survey / "targets.csv", format="ascii.csv")
    columns = {name: read[name].tolist() * (rows // len(read)) for name in read.colnames}
    columns["file"] = [f"survey:{name}" for name in columns["file"]]
    columns["id"] = [f"t{row}" for row in range(rows)]
    return columns


def small_chunks(monkeypatch: pytest.MonkeyPatch, rows: int = ROWS_EACH) -> None:
    """Have jobs divided in many chunks, of so many rows."""
    monkeypatch.setattr("swathe.workers.runner.FIRST_CHUNK", rows)
    monkeypatch.setattr("swathe.workers.runner.MOST_GROWTH", 1.0)
    monkeypatch.setattr("swathe.catalog.jobs.leases.LARGEST_CHUNK", rows)


@pytest.fixture
def survey_jobs(survey: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    """Jobs on a survey, whose chunks are small: there are many of them."""
    small_chunks(monkeypatch)
    url = new_catalog(tmp_path / "catalog.sqlite")
    monkeypatch.setenv("SWATHE_DATABASE", url)
    with Catalog.open(url) as catalog:
        catalog.add_store("survey", str(survey))
        with Jobs(catalog, tmp_path / "results", limits=Limits()) as jobs:
            yield jobs


@pytest.fixture(scope="module")
def lone_scheduler() -> Iterator[Process]:
    """A scheduler, and no worker."""
    with process("scheduler", "--port", "0") as scheduler:
        yield scheduler
