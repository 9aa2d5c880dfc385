"""How long placing takes in a large pool, and what simulated pools say of many clients.

    python benches/simulate.py [--only place|clients] [--smoke]

Placing: 10,000 workers hold 1,000,000 objects; three batches of ten are of 100 objects that a
thousand workers hold each. Half of the threads are at work. What is timed is `Placement.place`, in
seconds of this thread's CPU and on the clock.

Clients: 10,000 cuts of 100 x 100 pixels at random places of 500 frames of 6 MB, one at a time,
each client asking when it has its last; the first time, when nothing is in any cache, and again;
with a scheduler that costs nothing, and with that of Dask. Then a job of 100,000 cuts, ten of each
of 10,000 frames, given out by Dask.
"""

from __future__ import annotations

import gc
import heapq
import platform
import random
import resource
import time
from dataclasses import replace

from harness import options
from swathe.workers.placement.decide import BatchWork, Placement
from swathe.workers.simulate.network import TIERS
from swathe.workers.simulate.simulator import SimulatedPool, Simulation
from swathe.workers.simulate.workload import Crops

SIZE = 6_000_000
HOT = 100
CUT_S = 0.15e-3
"""As docs/benchmarks.md has it, of a plain file."""
CUTS = 10
"""Of each frame in a job."""
DASK_S = 0.002
"""Of its scheduler for each batch, as measured: 490 in a second."""


class Prices:
    """A store 50 ms away, and peers."""

    def store_s(self, source: str, size: int) -> float:  # noqa: ARG002 - all cost the same
        """Return seconds from the store."""
        return 0.05 + size / 1e8

    def peer_s(self, size: int) -> float:
        """Return seconds from a peer."""
        return 0.002 + size / 1e8


def time_placing(workers: int, cached_count: int, decisions: int) -> None:
    """Print how long decisions take."""
    rng = random.Random(1)
    placement = Placement(Prices())
    start_s = time.perf_counter()
    for number in range(workers):
        placement.join(f"w{number}", 1, 10**12)
    for number in range(cached_count):
        hot = number % 10 == 0
        name = f"hot{rng.randrange(HOT)}" if hot else f"o{number}"
        placement.hold(f"w{rng.randrange(workers)}", name, SIZE)
    gc.freeze()
    print(
        f"{workers:,} workers, {cached_count:,} held, told in "
        f"{time.perf_counter() - start_s:.1f} s, "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB; "
        f"{platform.processor() or platform.machine()}"
    )
    print(
        "| objects of a batch | median | 99 % | most | on the clock, 99 % |\n|---|---|---|---|---|"
    )
    now = 0.0
    for objects in (1, 4, 16):
        times, clock = [], []
        ends: list[tuple[float, tuple[int, int]]] = []
        for number in range(decisions):
            now += 2 / workers
            while ends and ends[0][0] < now:
                end, batch = heapq.heappop(ends)
                placement.end(batch, end)
            names = [
                f"hot{rng.randrange(HOT)}"
                if rng.random() < 0.3
                else f"o{rng.randrange(cached_count)}"
                for _ in range(objects)
            ]
            work = BatchWork(dict.fromkeys(names, SIZE), 1.0)
            at, cpu = time.perf_counter(), time.thread_time()
            placed = placement.place((objects, number), work, now)
            times.append(time.thread_time() - cpu)
            clock.append(time.perf_counter() - at)
            if placed is not None:
                heapq.heappush(ends, (now + placed.start_s + 1.0, (objects, number)))
        for end, batch in ends:
            placement.end(batch, end)
        times.sort()
        clock.sort()
        print(
            f"| {objects} | {_us(times, 0.5)} | {_us(times, 0.99)} | {_us(times, 1.0)} "
            f"| {_us(clock, 0.99)} |"
        )


def _us(ordered: list[float], part: float) -> str:
    return f"{1e6 * ordered[min(len(ordered) - 1, int(part * len(ordered)))]:.0f} µs"


def simulate_clients(pools: list[int], frames: int, batches: int) -> None:
    """Print what many clients get from pools of several sizes."""
    print("| store | workers | clients | crops/s, first | p50, p95 | again | p50, p95 | by Dask |")
    print("|---|---|---|---|---|---|---|---|")
    for tier, store in TIERS.items():
        for workers in pools:
            for clients in (1, 10, 100):
                work = Crops("random", frames, batches, 1, CUT_S, 1)
                pool = SimulatedPool(workers, dispatch_s=0.0)
                run = Simulation(pool, store, work, clients, rounds=2, seed=1).run()
                first, again = (
                    f"{each.cuts_per_s:,.0f} | {1e3 * each.p50_s:.3g}, {1e3 * each.p95_s:.3g} ms"
                    for each in run.rounds
                )
                slow = replace(pool, dispatch_s=DASK_S)
                most = Simulation(slow, store, work, clients, rounds=2, seed=1).run().rounds[1]
                print(
                    f"| {tier} | {workers:,} | {clients} | {first} | {again} "
                    f"| {most.cuts_per_s:,.0f} |",
                    flush=True,
                )
    print("\n| store | workers | 100,000 crops, first | again | from the store | from peers |")
    print("|---|---|---|---|---|---|")
    for tier, store in TIERS.items():
        for workers in pools:
            job = Crops("job", 20 * frames, batches, CUTS, CUTS * CUT_S, 1)
            result = Simulation(
                SimulatedPool(workers, dispatch_s=DASK_S), store, job, 0, 2, 1
            ).run()
            first_s, again_s = (each.elapsed_s for each in result.rounds)
            print(
                f"| {tier} | {workers:,} | {first_s:.1f} s | {again_s:.1f} s "
                f"| {result.store_bytes / 1e9:.1f} GB | {result.peer_bytes / 1e9:.1f} GB |",
                flush=True,
            )


def main() -> None:
    """Measure and simulate."""
    arguments = options(__doc__, ("place", "clients")).parse_args()
    parts = arguments.only or ("place", "clients")
    if "place" in parts:
        many = (100, 10_000, 500) if arguments.smoke else (10_000, 1_000_000, 20_000)
        time_placing(*many)
    if "clients" in parts:
        print()
        if arguments.smoke:
            simulate_clients([10], 10, 200)
        else:
            simulate_clients([100, 1_000, 10_000], 500, 10_000)


if __name__ == "__main__":
    main()
