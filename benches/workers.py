"""What a target costs through a pool, beyond cutting it.

    python benches/workers.py [--smoke] [--only PART] [--rows N] [--rounds N]

The same targets, cuts of 100 x 100 pixels at random from the plain frames of a sample survey in the
page cache, in turns: by `swathe.cut_many` with two threads; as batches through `LocalPool`; as
batches through `DaskPool`, one scheduler and one worker with two threads. Batches are made
beforehand, and what comes back is not kept: that is the catalogue's part, whichever pool it is, and
is measured by `benches/portal.py --only job`.

And how data diffuse to workers: ten rounds over whole frames of a server behind a link of 56 ms and
160 Mb/s (the WAN of 2005), by workers of one thread that have a cache each, all on this machine.
"""

from __future__ import annotations

import queue
import shutil
import statistics
import time
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import swathe
from harness import (
    FRAMES,
    HEIGHT,
    WIDTH,
    in_folder,
    options,
    running,
    save,
    survey,
    survey_targets,
    work_folder,
)
from swathe.catalog import Catalog
from swathe.catalog.records.jobs import ChunkResult
from swathe.core.row_record import RowRecord
from swathe.core.row_table import RowTable
from swathe.jobs import Folder, Options
from swathe.workers import LocalPool, Pool
from swathe.workers.batch import Batch
from swathe.workers.dask.pool import DaskPool
from swathe.workers.dask.tls import read_address
from tests.support.servers import nginx, proxy

THREADS = 2
SIDE = 100
PATIENCE_S = 300.0
WORKERS = 4
ROUNDS = 10
RTT_MS, BYTES_PER_S = 56, 20_000_000
PARTS = 4
"""Cuts that make up a frame."""


def batches(columns: dict[str, list[Any]], of: int) -> list[Batch]:
    """Return targets as batches of about `of` rows; a frame is divided as little as possible."""
    groups: list[list[RowRecord]] = [[]]
    for number, (file, x, y) in enumerate(
        zip(columns["file"], columns["x"], columns["y"], strict=True)
    ):
        if len(groups[-1]) >= of:
            groups.append([])
        corner = (round(x) - SIDE // 2, round(y) - SIDE // 2)
        groups[-1].append(
            RowRecord(number, number, None, str(number), str(number), f"survey:{file}", None,
                    (*corner, SIDE, SIDE), None, None)
        )  # fmt: skip
    return [Batch(f"job{at}", at, Options(), RowTable.of(rows)) for at, rows in enumerate(groups)]


def process(*words: str) -> AbstractContextManager[tuple[str, Any]]:
    """Run a process of a pool; yield its address, and itself."""
    return running("-m", "swathe.cli", "pool", *words, "--json")


def time_batches(
    pool: Pool, arrivals: queue.SimpleQueue[ChunkResult], batches: list[Batch]
) -> float:
    """Run batches; return the seconds."""
    start_s = time.perf_counter()
    for number, batch in enumerate(batches):
        assert pool.wait_for_room(PATIENCE_S)
        pool.submit(number, batch, lambda: False)
    results = [arrivals.get(timeout=PATIENCE_S) for _ in batches]
    seconds = time.perf_counter() - start_s
    assert all(each.complete and each.failure is None for each in results)
    assert {row.status for each in results for row in each.rows} == {"ok"}
    return seconds


def time_cut_many(columns: dict[str, list[Any]], sample: Path, folder: Path) -> float:
    """Run the same by `cut_many`; return the seconds."""
    table = in_folder(columns, sample)
    start_s = time.perf_counter()
    manifest = swathe.cut_many(table, folder, threads=THREADS, progress=False)
    seconds = time.perf_counter() - start_s
    assert manifest.meta["ok"] == len(table["file"])
    return seconds


def time_pools(sample: Path, folder: Path, rows: int, of: int, rounds: int) -> dict[str, Any]:
    """Measure all three in turns."""
    columns = survey_targets(sample, rows, together=True)
    batches_of_pool = batches(columns, of)
    place = Folder(folder / "results")
    seconds: dict[str, list[float]] = {"cut_many": [], "local": [], "dask": []}
    arrivals: dict[str, queue.SimpleQueue[ChunkResult]] = {}
    with (
        process("scheduler", "--port", "0") as (scheduler, _),
        process("worker", scheduler, "--threads", str(THREADS)),
    ):
        pools: dict[str, Pool] = {
            "local": LocalPool(place, THREADS),
            "dask": DaskPool(read_address(scheduler), place),
        }
        for name, pool in pools.items():
            arrivals[name] = queue.SimpleQueue()
            pool.start(lambda _number, result, into=arrivals[name]: into.put(result))  # type: ignore[misc]  # a default binds it
        try:
            for pool in pools.values():
                # A worker joins by a file in the folder of results, which each round removes.
                assert pool.wait_for_room(PATIENCE_S)
            for number in range(rounds + 1):
                times = {"cut_many": time_cut_many(columns, sample, folder / "direct")}
                shutil.rmtree(folder / "direct")
                for name, pool in pools.items():
                    times[name] = time_batches(pool, arrivals[name], batches_of_pool)
                    shutil.rmtree(folder / "results")
                    (folder / "results").mkdir()
                for name, each in times.items():
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


def predicted_row_s(frame: Path) -> float:
    """Return the seconds of computing that a job is predicted to take for each part of a frame."""
    columns = {
        "file": [str(frame)] * PARTS,
        "x": [WIDTH / 2] * PARTS,
        "y": [(part + 0.5) * HEIGHT / PARTS for part in range(PARTS)],
        "height": [HEIGHT // PARTS] * PARTS,
        "width": [WIDTH] * PARTS,
    }
    return swathe.predict(columns, threads=1).compute_s / PARTS


def frames_of(names: list[str], number: int, row_s: float) -> list[Batch]:
    """Return a batch for each frame that cuts all of it, with what is predicted for each part."""
    frames = []
    high = HEIGHT // PARTS
    row_bytes = 2 * WIDTH * high
    for at, name in enumerate(names):
        rows = RowTable.of([
            RowRecord(part, part, None, str(part), str(part), f"far:{name}", None,
                    (0, part * high, WIDTH, high), None, None)
            for part in range(PARTS)
        ])  # fmt: skip
        job = f"job{number}-{at}"
        frames.append(Batch(job, 0, Options(), rows, row_bytes=row_bytes, row_s=row_s))
    return frames


def diffusion(sample: Path, folder: Path, workers: int, rounds: int) -> dict[str, Any]:
    """Measure rounds over the same frames, far away at first."""
    place = Folder(folder / "results")
    (folder / "nginx").mkdir()
    with ExitStack() as stack:
        server = stack.enter_context(nginx(folder / "nginx"))
        names = sorted(path.name for path in sample.rglob("*.fit"))
        row_s = predicted_row_s(next(sample.rglob("*.fit")))
        for path in sample.rglob("*.fit"):
            (server.folder / path.name).symlink_to(path)
        size = sum(path.stat().st_size for path in sample.rglob("*.fit"))
        link = {"rtt_ms": RTT_MS, "shared_bytes_per_s": BYTES_PER_S}
        far = stack.enter_context(proxy(server.url, **link))
        with Catalog.open() as catalog:
            catalog.add_store("far", far.url)
        scheduler, _ = stack.enter_context(process("scheduler", "--port", "0"))
        for number in range(workers):
            cache = ("--cache", str(folder / f"cache{number}"), "--cache-size", "2GB")
            worker = ("worker", scheduler, "--threads", "1", "--name", f"w{number}")
            stack.enter_context(process(*worker, *cache))
        pool, arrivals = DaskPool(read_address(scheduler), place), queue.SimpleQueue[ChunkResult]()
        pool.start(lambda _number, result: arrivals.put(result))
        try:
            until = time.monotonic() + PATIENCE_S
            while sum(each.cache_bytes > 0 for each in pool.status().workers) < workers:
                assert time.monotonic() < until, pool.status()
                time.sleep(0.1)
            seconds, traffic = [], []
            for number in range(rounds):
                seconds.append(time_batches(pool, arrivals, frames_of(names, number, row_s)))
                traffic.append(asdict(pool.status().moved))
                shutil.rmtree(folder / "results")
                (folder / "results").mkdir()
        finally:
            pool.stop(PATIENCE_S)
    later = statistics.median(seconds[1:])
    first, last = traffic[0], traffic[-1]
    near = (last["near"] - first["near"]) / (last["batches"] - first["batches"])
    figures = {
        "workers": workers,
        "bytes": size,
        "seconds": seconds,
        "times_faster": seconds[0] / later,
        "near": near,
        "store_over_size": last["store_bytes"] / size,
        "peer_over_size": last["peer_bytes"] / size,
        "moved": last,
    }
    print(
        f"{workers} workers, {size / 1e6:.0f} MB at {RTT_MS} ms: first round {seconds[0]:.2f} s, "
        f"later ones {later:.2f} s, {figures['times_faster']:.1f} times faster; "
        f"{near:.0%} of later batches on a holder; "
        f"from the store {figures['store_over_size']:.3f} times, "
        f"from peers {figures['peer_over_size']:.3f} times the size",
        flush=True,
    )
    return figures


def main() -> None:
    """Run what is asked for."""
    parser = options(__doc__, ("cost", "diffusion"))
    parser.add_argument("--rows", type=int, default=50_000, help="targets")
    parser.add_argument("--rounds", type=int, default=5, help="each is measured so often")
    arguments = parser.parse_args()
    parts = arguments.only or ("cost", "diffusion")
    rows, rounds = (500, 1) if arguments.smoke else (arguments.rows, arguments.rounds)
    sample = survey(3 if arguments.smoke else FRAMES)
    results: dict[str, Any] = {}
    with work_folder() as folder:
        with Catalog.open() as catalog:
            catalog.add_store("survey", str(sample))
        if "cost" in parts:
            results["cost"] = [time_pools(sample, folder, rows, of, rounds) for of in (5000, 500)]
        if "diffusion" in parts:
            results["diffusion"] = diffusion(
                sample, folder, WORKERS, 2 if arguments.smoke else ROUNDS
            )
    save("workers", results)


if __name__ == "__main__":
    main()
