"""What a target costs through a pool, beyond cutting it.

    python benches/workers.py [--smoke] [--rows N] [--rounds N] [--output FILE]

The same targets, cuts of 100 x 100 pixels at random from the plain frames of a sample survey in the
page cache, in turns: by `swathe.cut_many` with two threads; as batches through `LocalPool`; as
batches through `DaskPool`, one scheduler and one worker with two threads. Batches are made
beforehand, and what comes back is not kept: that is the catalogue's part, whichever pool it is, and
is measured by `benches/portal.py --only job`.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from astropy.table import Table

import swathe
from report import machine
from swathe.catalog import Catalog
from swathe.catalog.work import Done, KeptRow
from swathe.jobs import Folder, Options
from swathe.sample import make_sample
from swathe.workers import LocalPool, Pool
from swathe.workers.batches import Batch
from swathe.workers.cluster import DaskPool
from swathe.workers.security import read_address

THREADS = 2
SIDE = 100
MEMORY_DISK = Path("/dev/shm")
"""Where results go, if it is there: else it is the disk that is measured."""
PATIENCE_S = 300.0


def targets(sample: Path, rows: int) -> dict[str, list[Any]]:
    """Give targets on plain frames, those of one frame together as a job has them."""
    listed = Table.read(sample / "targets.csv", format="ascii.csv")
    listed = listed[[name.endswith(".fit") for name in listed["file"]]]
    names = ("file", "x", "y")
    columns = {name: (listed[name].tolist() * (rows // len(listed) + 1))[:rows] for name in names}
    order = sorted(range(rows), key=columns["file"].__getitem__)
    return {name: [values[row] for row in order] for name, values in columns.items()}


def batches(columns: dict[str, list[Any]], of: int) -> list[Batch]:
    """Give them as batches of about so many rows, each frame in as few as can be."""
    made: list[list[KeptRow]] = [[]]
    for number, (file, x, y) in enumerate(zip(*columns.values(), strict=True)):
        if len(made[-1]) >= of:
            made.append([])
        corner = (round(x) - SIDE // 2, round(y) - SIDE // 2)
        made[-1].append(
            KeptRow(number, number, None, str(number), str(number), f"survey:{file}", None,
                    (*corner, SIDE, SIDE), None, None)
        )  # fmt: skip
    return [Batch(f"job{at}", at, Options(), rows) for at, rows in enumerate(made)]


@contextmanager
def process(*given: str) -> Iterator[str]:
    """Run a process of a pool; gives its address."""
    command = [sys.executable, "-m", "swathe.cli", "pool", *given, "--json"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert started.stdout is not None
        told: dict[str, str] = json.loads(started.stdout.readline())
        yield next(iter(told.values()))
    finally:
        started.terminate()
        started.wait()


def through(pool: Pool, came: queue.SimpleQueue[Done], given: list[Batch]) -> float:
    """Do batches; gives the seconds."""
    begun = time.perf_counter()
    for number, batch in enumerate(given):
        assert pool.wanted(PATIENCE_S)
        pool.give(number, batch, lambda: False)
    done = [came.get(timeout=PATIENCE_S) for _ in given]
    seconds = time.perf_counter() - begun
    assert all(each.complete and each.failure is None for each in done)
    assert {row.status for each in done for row in each.rows} == {"ok"}
    return seconds


def directly(columns: dict[str, list[Any]], sample: Path, folder: Path) -> float:
    """Do the same by `cut_many`."""
    size = [SIDE] * len(columns["file"])
    table = columns | {"height": size, "width": size}
    table["file"] = [str(sample / name) for name in columns["file"]]
    begun = time.perf_counter()
    manifest = swathe.cut_many(table, folder, threads=THREADS, progress=False)
    seconds = time.perf_counter() - begun
    assert manifest.meta["ok"] == len(size)
    return seconds


def measured(sample: Path, folder: Path, rows: int, of: int, rounds: int) -> dict[str, Any]:
    """Measure all three in turns."""
    columns = targets(sample, rows)
    given = batches(columns, of)
    place = Folder(folder / "results")
    seconds: dict[str, list[float]] = {"cut_many": [], "local": [], "dask": []}
    came: dict[str, queue.SimpleQueue[Done]] = {}
    with (
        process("scheduler", "--port", "0") as scheduler,
        process("worker", scheduler, "--threads", str(THREADS)),
    ):
        pools: dict[str, Pool] = {
            "local": LocalPool(place, THREADS),
            "dask": DaskPool(read_address(scheduler), place),
        }
        for name, pool in pools.items():
            came[name] = queue.SimpleQueue()
            pool.start(lambda _number, done, into=came[name]: into.put(done))  # type: ignore[misc]  # a default binds it
        try:
            for number in range(rounds + 1):
                found = {"cut_many": directly(columns, sample, folder / "direct")}
                shutil.rmtree(folder / "direct")
                for name, pool in pools.items():
                    found[name] = through(pool, came[name], given)
                    shutil.rmtree(folder / "results")
                    (folder / "results").mkdir()
                for name, each in found.items():
                    if number:  # the first is to warm up
                        seconds[name].append(each)
        finally:
            for pool in pools.values():
                pool.stop(PATIENCE_S)
    middle = {name: statistics.median(each) for name, each in seconds.items()}
    for name, each in middle.items():
        beyond = (each - middle["cut_many"]) / rows * 1e6
        print(
            f"{of:>6} rows a batch  {name:10} {each:8.2f} s {1e6 * each / rows:8.1f} us a target, "
            f"{each / middle['cut_many']:5.2f} times cut_many ({beyond:+.1f} us)",
            flush=True,
        )
    return {"rows": rows, "batch": of, "seconds": seconds, "median_s": middle}


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="a little of everything")
    parser.add_argument("--rows", type=int, default=50_000, help="targets")
    parser.add_argument("--rounds", type=int, default=5, help="each is measured so often")
    parser.add_argument("--frames", type=int, default=60, help="of the sample")
    parser.add_argument("--sample", type=Path, default=Path("build/sample"), help="where it is")
    parser.add_argument("--output", type=Path, default=Path("build/bench-workers.json"))
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.rows, arguments.rounds, arguments.frames = 500, 1, 1
    sample = arguments.sample.absolute()
    make_sample(sample, arguments.frames, 1, 2000)
    place = MEMORY_DISK if MEMORY_DISK.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="swathe-bench-", dir=place) as name:
        folder = Path(name)
        os.environ["SWATHE_DATABASE"] = f"sqlite:///{folder}/catalog.sqlite"
        with Catalog.open() as catalog:
            catalog.add_store("survey", str(sample))
        results = [
            measured(sample, folder, arguments.rows, of, arguments.rounds) for of in (5000, 500)
        ]
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps({"machine": machine(), "results": results}, indent=1))
    print(f"\n{arguments.output}")


if __name__ == "__main__":
    main()
