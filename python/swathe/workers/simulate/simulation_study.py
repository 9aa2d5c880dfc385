"""Simulate pools of several sizes, on the same workload: `swathe.simulate_pool`."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swathe.core.errors import NoSuchStoreError, SettingsError, StoreSettingsError
from swathe.workers.autoscale.policy import GrowthLimits
from swathe.workers.simulate.network import TIERS, SimulatedStore, Tier
from swathe.workers.simulate.result import SimulationResult
from swathe.workers.simulate.simulator import SimulatedPool, Simulation, StuckError
from swathe.workers.simulate.workload import MOST_BATCHES, Crops, Workload, read_workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("job", "random", "hot")
MOST_WORKERS = 100_000


@dataclass(frozen=True)
class SimulationStudy:
    """Simulated runs of a workload on pools of several sizes.

    Attributes:
        store: the store, as seen from each worker.
        results: the result of each pool, in the order of the sizes.
    """

    store: SimulatedStore
    results: tuple[SimulationResult, ...]


def simulate_pool(
    workers: int | Sequence[int] = (1, 10, 100),
    *,
    workload: str | os.PathLike[str] = "job",
    store: str | None = None,
    tier: Tier | None = None,
    latency_s: float | None = None,
    fetch_bytes_per_s: float | None = None,
    total_bytes_per_s: float | None = None,
    frames: int = 1000,
    batches: int | None = None,
    cuts: int = 10,
    cut_s: float = 0.15e-3,
    threads: int = 1,
    cores: int | None = None,
    cache_bytes: float = 10e9,
    link_bytes_per_s: float = 125e6,
    dispatch_s: float = 2e-3,
    clients: int = 0,
    rounds: int = 1,
    grow: bool = False,
    idle_s: float = 300.0,
    start_s: float = 30.0,
    fails_s: float | None = None,
    walltime_s: float | None = None,
    seed: int = 1,
    plot: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> SimulationStudy:
    """Simulate a pool of workers, with the same placement and autoscaling rules as a real pool.

    Example:
        >>> study = swathe.simulate_pool([2, 4, 8], tier="wan", rounds=10)
        >>> [round(result.cuts_per_s) for result in study.results]
        [165, 329, 672]

    Args:
        workers: number of workers, or several numbers.
        workload: order of cuts from frames of 6 MB: `job` (frame by frame), `random` or `hot` (some
            frames more often). Or a CSV file with the columns object, bytes, compute_s.
        store: name of a store that was probed from this host.
        tier: typical store instead of `store`; by default `lan`.
        latency_s: latency of a request to the store, seconds.
        fetch_bytes_per_s: bandwidth of one worker from the store.
        total_bytes_per_s: bandwidth of all workers together from the store.
        frames: number of frames.
        batches: number of batches per round; by default one per frame.
        cuts: number of cuts per batch.
        cut_s: computing time of a cut, seconds.
        threads: number of threads per worker.
        cores: number of cores that all workers share; by default one per thread.
        cache_bytes: disk cache per worker.
        link_bytes_per_s: network bandwidth per worker, in and out.
        dispatch_s: time of the scheduler per batch, seconds.
        clients: number of clients with one request each in flight; 0: all requests at once.
        rounds: number of passes through the workload.
        grow: whether to autoscale with the queue, up to `workers`.
        idle_s: idle time after which a worker stops, with `grow`, seconds.
        start_s: time that a worker takes to start, seconds.
        fails_s: mean time until a worker fails, seconds; by default never.
        walltime_s: time after which a worker must end, seconds; by default never.
        seed: random seed; the same seed gives the same result.
        plot: picture to draw: a `.png`, `.svg` or `.html` file.
        overwrite: whether an existing picture may be replaced.

    Raises:
        SettingsError: If an argument is invalid, or no batch can ever finish.
        TargetsError: If the file of a workload is invalid.
        NoSuchStoreError: If no store has this name.
        StoreSettingsError: If the store was not probed from this host.
        OutputError: If the picture cannot be written.
    """
    from swathe.costs.plots import plot_path, save

    sizes = [workers] if isinstance(workers, int) else list(workers)
    for size in sizes:
        if not 1 <= size <= MOST_WORKERS:
            raise SettingsError(f"workers: expected 1 to {MOST_WORKERS}, found {size}")
    _check_numbers(1, frames=frames, batches=batches, cuts=cuts, threads=threads, cores=cores)
    _check_numbers(1, rounds=rounds)
    _check_numbers(0, latency_s=latency_s, cut_s=cut_s, cache_bytes=cache_bytes, clients=clients)
    _check_numbers(0, dispatch_s=dispatch_s, idle_s=idle_s, start_s=start_s)
    _check_numbers(1e-3, fails_s=fails_s, walltime_s=walltime_s)
    rates = {"fetch_bytes_per_s": fetch_bytes_per_s, "total_bytes_per_s": total_bytes_per_s}
    _check_numbers(1000, link_bytes_per_s=link_bytes_per_s, **rates)
    picture = None if plot is None else plot_path(plot, overwrite=overwrite)
    simulated_store = _with_costs(
        _store(store, tier), latency_s, fetch_bytes_per_s, total_bytes_per_s
    )
    todo = _workload(workload, frames, batches or frames, cuts, cut_s, seed)
    if todo.count * rounds > MOST_BATCHES:
        raise SettingsError(
            f"batches: expected at most {MOST_BATCHES:,} in all rounds, "
            f"found {todo.count:,} in each of {rounds:,}"
        )
    pool = SimulatedPool(
        1,
        threads=threads,
        cores=cores or inf,
        cache_bytes=round(cache_bytes),
        link_bytes_per_s=link_bytes_per_s,
        dispatch_s=dispatch_s,
        start_s=start_s,
        fails_s=fails_s or inf,
        walltime_s=walltime_s or inf,
    )
    results = []
    with _no_collector():
        for size in sizes:
            limits = GrowthLimits(maximum=size, idle_s=idle_s, start_s=start_s) if grow else None
            sized_pool = replace(pool, workers=size, grow=limits)
            try:
                results.append(
                    Simulation(sized_pool, simulated_store, todo, clients, rounds, seed).run()
                )
            except StuckError as error:
                raise SettingsError(f"{size} workers: {error}") from error
    if picture is not None:
        save(_figure(results), picture, overwrite=overwrite)
    return SimulationStudy(simulated_store, tuple(results))


def _check_numbers(least: float, **numbers: float | None) -> None:
    for name, number in numbers.items():
        if number is not None and not isfinite(number):
            raise SettingsError(f"{name}: expected a finite number, found {number}")
        if number is not None and number < least:
            raise SettingsError(f"{name}: expected at least {least:g}, found {number}")


@contextmanager
def _no_collector() -> Iterator[None]:
    """Switch off garbage collection during the context.

    A simulation makes no reference cycles. Searching for them takes as long as the rest.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _store(name: str | None, tier: Tier | None) -> SimulatedStore:
    if name is None:
        if (tier or "lan") not in TIERS:
            raise SettingsError(f"tier: expected one of {', '.join(TIERS)}, found {tier!r}")
        return TIERS[tier or "lan"]
    if tier is not None:
        raise SettingsError("store: expected a store or a tier, found both")
    return _measured_store(name)


def _with_costs(
    store: SimulatedStore,
    latency_s: float | None,
    fetch_bytes_per_s: float | None,
    total_bytes_per_s: float | None,
) -> SimulatedStore:
    """Return a store with its costs replaced by those that are given."""
    costs: dict[str, Any] = {
        "latency_s": latency_s,
        "stream_bytes_per_s": fetch_bytes_per_s,
        "total_bytes_per_s": total_bytes_per_s,
    }
    return replace(store, **{name: cost for name, cost in costs.items() if cost is not None})


def _measured_store(name: str) -> SimulatedStore:
    """Return a store with the costs measured from this host."""
    from swathe.catalog import Catalog, this_host
    from swathe.costs.cost_model import Costs

    with Catalog.open() as catalog:
        stores = {each.name: each for each in catalog.stores()}
        if name not in stores:
            raise NoSuchStoreError(f"{name}: no such store; see: swathe store list")
        profile = catalog.profile(stores[name].key, this_host())
    if profile is None:
        raise StoreSettingsError(f"{name}: not probed from this host; run: swathe probe {name}")
    costs = Costs.from_dict(profile.costs)
    total = costs.total_bytes_per_s
    return SimulatedStore(
        latency_s=float(costs.request_s(0)),
        stream_bytes_per_s=min(total, costs.streams * costs.stream_bytes_per_s()),
        total_bytes_per_s=total,
        requests_per_s=costs.requests_per_s,
        served_bytes_per_s=costs.served_bytes_per_s or inf,
        remote=not stores[name].kind.is_local,
    )


def _workload(
    workload: str | os.PathLike[str], frames: int, batches: int, cuts: int, cut_s: float, seed: int
) -> Workload:
    if isinstance(workload, str) and workload in KINDS:
        return Crops(workload, frames, batches, cuts, cuts * cut_s, seed)
    path = Path(workload)
    if path.suffix != ".csv":
        raise SettingsError(
            f"workload: expected {', '.join(KINDS)} or a file *.csv, found {str(path)!r}"
        )
    return read_workload(path)


def _figure(results: Sequence[SimulationResult]) -> Figure:
    """Draw cuts per second over time, and against the number of workers."""
    from swathe.costs.plots import figure

    plot, (left, right) = figure(2, "Simulated")
    for result in results:
        times, rates = zip(*result.throughput, strict=True)
        left.step(times, rates, where="post", label=f"{result.workers:,}")
    left.set(xlabel="time, s", ylabel="cuts/s", xscale="symlog", yscale="symlog")
    left.legend(title="workers")
    right.plot(
        [result.workers for result in results], [result.cuts_per_s for result in results], "o-"
    )
    right.set(xlabel="workers", ylabel="cuts/s", xscale="log", yscale="log")
    return plot
