"""Pools whose workers are hosts of their own, and what `swathe simulate` says of the same.

    python benches/hosts.py [--smoke] [--only linear|rounds|hot] [--workers 2,4,8] [--draws N]

Each worker has a network namespace, and in it a link of its own (56 ms, 4 MB/s) to the same server;
between workers, links are as fast as this machine is. So more workers are more bandwidth, as in a
cluster, though all share the two cores of this machine: what is read is what takes the time.
Scheduler, workers and pool show each other certificates. Needs root, iproute2 and nginx.

- linear: whole frames, once, from nothing: 2, 4, 8 workers should take half the time each.
- rounds: the same frames five times, with caches of which four hold all of them.
- hot: 20 batches for each frame there is, the n-th frame in proportion to 1/n, with the same
  caches. What a cache throws out early decides what all do later, so that the same batches take
  times that differ by a third: several draws are compared, by the sum of their seconds.

The simulation is given the link, the caches, the batches, the cores; the seconds that a batch takes
a worker that has all of it, and those of processors that it takes with all that is done for it,
measured at the start; and the seconds that were predicted, as for a job. It is run several times,
with batches that each take up to a tenth more or less, as they do: what counts is the median run.

Results are removed as they come, or new memory for them would be what is measured.
"""

from __future__ import annotations

import os
import queue
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from harness import FRAMES, options, save, survey, work_folder
from swathe.catalog import Catalog, this_host
from swathe.catalog.records.jobs import ChunkResult
from swathe.core.host import cores
from swathe.costs.cost_model import Costs
from swathe.jobs import Folder
from swathe.workers.batch import Batch
from swathe.workers.dask.certificates import make_certificates
from swathe.workers.dask.pool import DaskPool
from swathe.workers.dask.tls import read_address
from swathe.workers.pool import TrafficCounts
from swathe.workers.simulate.network import SimulatedStore
from swathe.workers.simulate.simulator import SimulatedPool, Simulation
from swathe.workers.simulate.workload import SimulatedBatch as Simulated
from tests.support.namespaces import Host, bridge, host
from tests.support.servers import nginx, proxy_program
from workers import (
    PARTS,
    PATIENCE_S,
    RTT_MS,
    frames_of,
    predicted_row_s,
    process,
    time_batches,
)

BYTES_PER_S = 4_000_000
BRIDGE, NETWORK = "swathe-bench", "198.18.0"
"""Of those set aside for measurements (RFC 2544)."""
PORT = 8000
DISPATCH_S = 0.002
NEAR_BYTES_PER_S = 1e9
BLOCK_BYTES = 1 << 18
"""What workers keep, and throw out, together."""
CACHE_TIMES = 4
"""So many caches hold all frames."""
LARGE = 10 << 30
TURN_MS = 4
"""In which a link sends: with a thousand bytes at a time, links would take most of two cores."""
VARIES = 0.1
RUNS = 9
"""Of the simulation, in which the seconds of batches vary so much."""
USED_FRAMES = 24
DRAWS = 5
TURNS, EACH = 5, 10
"""How often batches are measured, and how many of each frame at a time."""


@dataclass(frozen=True)
class Case:
    """What is done: names of frames for each round, and what a cache may hold."""

    name: str
    rounds: Sequence[Sequence[str]]
    cache_bytes: int


@dataclass(frozen=True)
class PoolRun:
    """Seconds of each round, and bytes of all."""

    seconds: Sequence[float]
    store_bytes: int
    peer_bytes: int
    on_holder: float


@dataclass(frozen=True)
class BatchCost:
    """What a batch takes a worker that has all it needs.

    Attributes:
        seconds: on the clock.
        core_s: of processors, also of the scheduler, and of who gives it.
        predicted_s: of the clock, as for a job.
    """

    seconds: float
    core_s: float
    predicted_s: float


def link_costs() -> Costs:
    """Return what a probe of a link would find: the simulation is told the same."""
    rtt_s = RTT_MS / 1e3
    request = ((0, rtt_s), (1_000_000, rtt_s + 1_000_000 / BYTES_PER_S))
    return Costs(rtt_s, rtt_s, request, BYTES_PER_S, 100 / rtt_s, 4)


@contextmanager
def link(on: Host, server: str) -> Iterator[None]:
    """Run the proxy on a host, as its link to the server."""
    command = on.running(str(proxy_program()), "--upstream", server)
    command += ["--listen", str(PORT), "--rtt-ms", str(RTT_MS)]
    command += ["--shared-bytes-per-s", str(BYTES_PER_S), "--turn-ms", str(TURN_MS)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as running:
        assert running.stdout is not None
        assert running.stdin is not None
        if not running.stdout.readline().startswith("listening"):
            raise RuntimeError(f"{on.name}: the proxy did not start")
        yield
        running.stdin.close()


@contextmanager
def worker(on: Host, scheduler: str, certificates: Path, cache: Path, most: int) -> Iterator[None]:
    """Run a worker on a host."""
    command = on.running(sys.executable, "-m", "swathe.cli", "pool", "worker", scheduler)
    command += ["--threads", "1", "--name", on.name, "--certificates", str(certificates)]
    command += ["--cache", str(cache), "--cache-size", f"{most}"]
    # Hosts do not share what they know of objects.
    own = os.environ | {"SWATHE_INDEX_DIR": f"{cache}-index"}
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=own)
    try:
        yield
    finally:
        running.terminate()
        with suppress(subprocess.TimeoutExpired):
            running.wait(60)
        running.kill()
        running.wait()


@contextmanager
def pool_of(workers: int, case: Case, server: str, folder: Path) -> Iterator[Any]:
    """Run a pool of `workers` hosts; yield the pool and the queue of its results."""
    with ExitStack() as stack:
        stack.enter_context(bridge(BRIDGE, NETWORK))
        certificates = folder / "certificates"
        make_certificates(certificates)
        command = ["scheduler", "--host", f"{NETWORK}.1", "--port", "0"]
        command += ["--certificates", str(certificates)]
        scheduler, _ = stack.enter_context(process(*command))
        for number in range(workers):
            on = stack.enter_context(host(BRIDGE, NETWORK, number))
            stack.enter_context(link(on, server))
            cache = folder / f"cache-{number}"
            stack.enter_context(worker(on, scheduler, certificates, cache, case.cache_bytes))
        results, arrivals = folder / "results", queue.SimpleQueue[ChunkResult]()
        pool = DaskPool(read_address(scheduler), Folder(results), certificates=certificates)

        def take(number: int, result: ChunkResult) -> None:
            arrivals.put(result)
            for path in results.glob(f"*-{number}"):
                shutil.rmtree(path)

        pool.start(take)
        try:
            until = time.monotonic() + PATIENCE_S
            while sum(each.cache_bytes > 0 for each in pool.status().workers) < workers:
                if time.monotonic() > until:
                    raise RuntimeError(f"not all workers came: {pool.status()}")
                time.sleep(0.1)
            yield pool, arrivals
        finally:
            pool.stop(PATIENCE_S)


def run_case(case: Case, workers: int, server: str, folder: Path, row_s: float) -> PoolRun:
    """Run it."""
    with pool_of(workers, case, server, folder) as (pool, arrivals):
        seconds = [
            time_batches(pool, arrivals, frame_batches(names, turn, row_s))
            for turn, names in enumerate(case.rounds)
        ]
        traffic: TrafficCounts = pool.status().moved
    return PoolRun(seconds, traffic.store_bytes, traffic.peer_bytes, traffic.near / traffic.batches)


def frame_batches(names: Sequence[str], turn: int, row_s: float) -> list[Batch]:
    """Return a batch that cuts all of each frame, with results of its own."""
    return [
        replace(batch, job=f"{batch.job}-{at}")
        for at, batch in enumerate(frames_of(list(names), turn, row_s))
    ]


@dataclass(frozen=True)
class Turns:
    """Batches that differ from round to round, for the simulation."""

    turns: Sequence[Sequence[Simulated]]

    @property
    def count(self) -> int:
        """Batches of a round."""
        return len(self.turns[0])

    @property
    def mean_s(self) -> float:
        """Mean seconds of a batch."""
        return self.turns[0][0].compute_s

    def batches(self, turn: int) -> Iterator[Simulated]:
        """Return those of a round."""
        return iter(self.turns[turn])


def simulate_case(case: Case, workers: int, frame_bytes: int, of: BatchCost) -> list[PoolRun]:
    """Simulate it several times; the median run is in the middle."""
    blocks = -(-frame_bytes // BLOCK_BYTES)
    store = SimulatedStore(RTT_MS / 1e3, BYTES_PER_S, float("inf"), remote=False)
    pool = SimulatedPool(
        workers,
        cores=cores(),
        core_s=of.core_s / of.seconds,
        cache_bytes=case.cache_bytes,
        link_bytes_per_s=NEAR_BYTES_PER_S,
        dispatch_s=DISPATCH_S,
        prediction_ratio=of.predicted_s / of.seconds,
    )
    times = []
    for seed in range(RUNS):
        rng = random.Random(seed)
        turns = []
        for names in case.rounds:
            took = [of.seconds * rng.uniform(1 - VARIES, 1 + VARIES) for _ in names]
            turns.append(
                [
                    Simulated(name, (1 << blocks) - 1, frame_bytes // blocks, PARTS, seconds)
                    for name, seconds in zip(names, took, strict=True)
                ]
            )
        result = Simulation(pool, store, Turns(turns), 0, len(turns), seed).run()
        seconds = [each.elapsed_s for each in result.rounds]
        times.append(PoolRun(seconds, result.store_bytes, result.peer_bytes, result.on_holder))
    return sorted(times, key=lambda each: sum(each.seconds))


def cases(names: Sequence[str], size: int, draws: int) -> list[Case]:
    """Return what is compared; those of the same name together."""
    weights = [1 / (1 + at) for at in range(len(names))]
    small = int(1.05 * size / CACHE_TIMES)
    hot = [
        Case("hot", [random.Random(draw).choices(names, weights, k=20 * len(names))], small)
        for draw in range(1, draws + 1)
    ]
    return [Case("linear", [names], LARGE), Case("rounds", [names] * 5, small), *hot]


def main() -> None:
    """Measure and compare."""
    parser = options(__doc__, ("linear", "rounds", "hot"))
    parser.add_argument("--workers", default="2,4,8")
    parser.add_argument("--draws", type=int, default=DRAWS, help="of hot objects")
    arguments = parser.parse_args()
    frames, counts = USED_FRAMES, [int(each) for each in arguments.workers.split(",")]
    if arguments.smoke:
        frames, counts = 3, [2]
    files = sorted(survey(3 if arguments.smoke else FRAMES).rglob("*.fit"))[:frames]
    size = files[0].stat().st_size
    with ExitStack() as stack:
        folder = stack.enter_context(work_folder())
        (folder / "nginx").mkdir()
        server = stack.enter_context(nginx(folder / "nginx", "0.0.0.0"))
        for path in files:
            (server.folder / path.name).symlink_to(path)
        upstream = f"{NETWORK}.1:{server.url.rpartition(':')[2]}"
        with Catalog.open() as catalog:
            root = f"http://127.0.0.1:{PORT}"
            catalog.add_store("far", root)
            catalog.put_profile(root, this_host(), link_costs().as_dict(), {}, datetime.now(UTC))
        groups: dict[str, list[Case]] = {}
        for case in cases([path.name for path in files], size * len(files), arguments.draws):
            if case.name in (arguments.only or (case.name,)):
                groups.setdefault(case.name, []).append(case)
        row_s = predicted_row_s(files[0])
        of = one_batch([path.name for path in files[:4]], upstream, folder / "first", row_s)
        print(f"a batch of a frame that is there takes {1e3 * of.seconds:.0f} ms", end=", ")
        print(f"{1e3 * of.core_s:.0f} ms of processors; ", end="")
        print(f"{1e3 * of.predicted_s:.0f} ms were predicted\n")
        print("| case | workers | seconds | simulated | ratio | store / size | simulated | peers |")
        print("|---|---|---|---|---|---|---|---|")
        runs = []
        for name, of_name in groups.items():
            for workers in counts:
                at = folder / f"{name}-{workers}"
                real = [
                    run_case(case, workers, upstream, at / str(draw), row_s)
                    for draw, case in enumerate(of_name)
                ]
                simulations = [simulate_case(case, workers, size, of) for case in of_name]
                runs.append({"case": name, "workers": workers, "real": real, "said": simulations})
                show(name, workers, real, simulations, size * len(files))
    save("hosts", {"batch": of, "found": runs})


def show(
    case: str,
    workers: int,
    real: Sequence[PoolRun],
    simulations: Sequence[Sequence[PoolRun]],
    size: int,
) -> None:
    """Print a line: sums over what was drawn, and what each took."""
    middle = [runs[RUNS // 2] for runs in simulations]
    real_s, said_s = ([sum(each.seconds) for each in every] for every in (real, middle))
    total = size * len(real)

    def sums(every: Sequence[float]) -> str:
        each = f" ({', '.join(f'{one:.1f}' for one in every)})" if len(every) > 1 else ""
        return f"{sum(every):.1f}{each}"

    stores, peers = (
        [sum(getattr(each, kind) for each in every) / total for every in (real, middle)]
        for kind in ("store_bytes", "peer_bytes")
    )
    print(
        f"| {case} | {workers} | {sums(real_s)} | {sums(said_s)} "
        f"| {sum(real_s) / sum(said_s):.2f} | {stores[0]:.2f} | {stores[1]:.2f} "
        f"| {peers[0]:.2f}, {peers[1]:.2f} |",
        flush=True,
    )


def one_batch(names: Sequence[str], server: str, folder: Path, row_s: float) -> BatchCost:
    """Measure what a worker takes for a batch that needs nothing from the server."""
    with pool_of(1, Case("first", [names], LARGE), server, folder) as (pool, arrivals):
        time_batches(pool, arrivals, frame_batches(names, 0, row_s))
        seconds, begun_s = [], cpu_s()
        for turn in range(1, TURNS + 1):
            batches = frame_batches(list(names) * EACH, turn, row_s)
            seconds.append(time_batches(pool, arrivals, batches) / len(batches))
        core_s = (cpu_s() - begun_s) / (TURNS * EACH * len(names))
    return BatchCost(statistics.median(seconds), core_s, PARTS * row_s)


def cpu_s() -> float:
    """Return the processor seconds of this process and those that it runs."""
    this = psutil.Process()
    times = [each.cpu_times() for each in (this, *this.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))


if __name__ == "__main__":
    main()
