"""The command `swathe simulate`."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import asdict, replace
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from swathe.cli.options import Json, Overwrite, Plot
from swathe.cli.output import print_json, print_table
from swathe.core.errors import NoSuchStoreError, StoreSettingsError
from swathe.core.format import size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.figure import Figure

    from swathe.workers.simulate.network import Store
    from swathe.workers.simulate.result import Result, Round
    from swathe.workers.simulate.workload import Workload

MOST_WORKERS = 100_000
MOST_BATCHES = 10_000_000
KINDS = ("job", "random", "hot")
COLUMNS = (
    *("workers", "cuts/s", "time", "p50", "p95", "own cache", "peers", "store", "in caches"),
    *("worker time", "wasted", "lost"),
)
OF_ROUNDS = ("round", "time", "cuts/s", "p50", "p95", "from the store")


def simulate(
    workers: Annotated[
        str, typer.Option(help="How many: 8, or 2,4,8, or 1..10000: 1, 10, 100, ...")
    ] = "1..100",
    workload: Annotated[
        str,
        typer.Option(
            help="Cuts from frames of 6 MB: job, a frame after the other; random; hot, some more "
            "than others. Or a CSV file with the columns object, bytes, seconds."
        ),
    ] = "job",
    store: Annotated[
        str | None, typer.Option(help="A store that was probed from here; else see --tier.")
    ] = None,
    tier: Annotated[
        str | None, typer.Option(help="local, lan or wan: costs that are taken for granted.")
    ] = None,
    latency_ms: Annotated[
        float | None, typer.Option(min=0, help="Of a request to the store.")
    ] = None,
    fetch_mb_s: Annotated[
        float | None, typer.Option(min=0.001, help="Of one worker from the store.")
    ] = None,
    total_mb_s: Annotated[
        float | None, typer.Option(min=0.001, help="Of all workers from the store.")
    ] = None,
    frames: Annotated[int, typer.Option(min=1, max=1_000_000, help="Objects.")] = 1000,
    batches: Annotated[
        int | None, typer.Option(min=1, max=MOST_BATCHES, help="Of a round; else one a frame.")
    ] = None,
    cuts: Annotated[int, typer.Option(min=1, max=100_000, help="Of each batch.")] = 10,
    cut_ms: Annotated[float, typer.Option(min=0, max=1e6, help="Of computing a cut.")] = 0.15,
    threads: Annotated[int, typer.Option(min=1, max=1000, help="Of each worker.")] = 1,
    cores: Annotated[
        int | None,
        typer.Option(min=1, help="That all workers share; else each thread has its own."),
    ] = None,
    cache_gb: Annotated[float, typer.Option(min=0, help="Of each worker's disk.")] = 10.0,
    link_mb_s: Annotated[
        float, typer.Option(min=0.001, help="Of each worker's link, in and out.")
    ] = 125.0,
    dispatch_ms: Annotated[
        float, typer.Option(min=0, help="Of the scheduler, for each batch.")
    ] = 2.0,
    clients: Annotated[
        int,
        typer.Option(min=0, max=1_000_000, help="Each asks when it has its last; 0: all at once."),
    ] = 0,
    rounds: Annotated[int, typer.Option(min=1, max=10_000, help="Through the workload.")] = 1,
    grow: Annotated[
        bool, typer.Option("--grow", help="With the queue, up to so many workers.")
    ] = False,
    idle_s: Annotated[float, typer.Option(min=0, help="After which one goes.")] = 300.0,
    start_s: Annotated[float, typer.Option(min=0, help="That a worker takes to come.")] = 30.0,
    fails_h: Annotated[
        float | None, typer.Option(min=1e-6, help="Mean time until a worker is lost.")
    ] = None,
    walltime_h: Annotated[
        float | None, typer.Option(min=1e-6, help="After which a worker must end.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")] = 1,
    plot: Plot = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Say how a pool of workers would do, by the very rules by which real ones work."""
    from swathe.workers.autoscale.policy import Limits
    from swathe.workers.simulate.simulator import Pool, Simulation, StuckError

    numbers = (latency_ms, fetch_mb_s, total_mb_s, cut_ms, cache_gb, link_mb_s, dispatch_ms)
    for number in (*numbers, idle_s, start_s, fails_h, walltime_h):
        if number is not None and not isfinite(number):
            raise typer.BadParameter(f"must be finite, not {number}")
    sizes = _sizes(workers)
    at = _changed(_store(store, tier), latency_ms, fetch_mb_s, total_mb_s)
    todo = _workload(workload, frames, batches or frames, cuts, cut_ms, seed)
    if todo.count * rounds > MOST_BATCHES:
        raise typer.BadParameter(
            f"{todo.count:,} batches, {rounds:,} times: more than {MOST_BATCHES:,}"
        )
    pool = Pool(
        1,
        threads=threads,
        cores=inf if cores is None else cores,
        cache_bytes=round(cache_gb * 1e9),
        link_bytes_per_s=link_mb_s * 1e6,
        dispatch_s=dispatch_ms / 1e3,
        start_s=start_s,
        fails_s=inf if fails_h is None else 3600 * fails_h,
        walltime_s=inf if walltime_h is None else 3600 * walltime_h,
    )
    found = []
    with _no_collector():
        for size in sizes:
            limits = Limits(maximum=size, idle_s=idle_s, start_s=start_s) if grow else None
            sized = replace(pool, workers=size, grow=limits)
            try:
                found.append(Simulation(sized, at, todo, clients, rounds, seed).run())
            except StuckError as error:
                raise typer.BadParameter(f"{size} workers: {error}") from error
    if plot is not None:
        from swathe.costs.plots import save

        save(_figure(found), plot, overwrite=overwrite)
    if as_json:
        print_json({"store": _told(at), "results": [asdict(result) for result in found]})
    else:
        _show(found, at)


@contextmanager
def _no_collector() -> Iterator[None]:
    """Collect no garbage meanwhile.

    Nothing made by a simulation refers to itself; to look whether it does takes as long as the
    rest.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _sizes(text: str) -> list[int]:
    """Read how many workers: one number, several, or a range by powers of ten."""
    first, dots, last = text.partition("..")
    parts = [first, last] if dots else text.split(",")
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        raise typer.BadParameter(f"must be N, N,M or N..M, not {text!r}", param_hint="--workers")
    sizes = [int(part) for part in parts]
    for size in sizes:
        if not 1 <= size <= MOST_WORKERS:
            raise typer.BadParameter(
                f"must be 1 to {MOST_WORKERS}, not {size}", param_hint="--workers"
            )
    if not dots:
        return sizes
    low, high = sizes
    if high < low:
        raise typer.BadParameter(f"must ascend, not {text!r}", param_hint="--workers")
    found = []
    while low < high:
        found.append(low)
        low *= 10
    return [*found, high]


def _store(name: str | None, tier: str | None) -> Store:
    from swathe.workers.simulate.network import TIERS

    if name is None:
        if tier not in (None, *TIERS):
            raise typer.BadParameter(
                f"must be local, lan or wan, not {tier!r}", param_hint="--tier"
            )
        return TIERS[tier or "lan"]
    if tier is not None:
        raise typer.BadParameter("give --store or --tier")
    return _measured(name)


def _changed(
    store: Store, latency_ms: float | None, fetch_mb_s: float | None, total_mb_s: float | None
) -> Store:
    """Give a store with what was asked for instead of its own."""
    return replace(
        store,
        latency_s=store.latency_s if latency_ms is None else latency_ms / 1e3,
        stream_bytes_per_s=store.stream_bytes_per_s if fetch_mb_s is None else fetch_mb_s * 1e6,
        total_bytes_per_s=store.total_bytes_per_s if total_mb_s is None else total_mb_s * 1e6,
    )


def _measured(name: str) -> Store:
    """Give a store as it was measured from here."""
    from swathe.catalog import Catalog, this_host
    from swathe.costs.cost_model import Costs
    from swathe.workers.simulate.network import Store

    with Catalog.open() as catalog:
        known = {each.name: each for each in catalog.stores()}
        if name not in known:
            raise NoSuchStoreError(f"there is no store {name!r}")
        kept = catalog.profile(known[name].key, this_host())
    if kept is None:
        raise StoreSettingsError(f"{name}: it was not probed from here: swathe probe {name}")
    costs = Costs.from_dict(kept.costs)
    total = costs.total_bytes_per_s
    return Store(
        latency_s=float(costs.request_s(0)),
        stream_bytes_per_s=min(total, costs.streams * costs.stream_bytes_per_s()),
        total_bytes_per_s=total,
        requests_per_s=costs.requests_per_s,
        served_bytes_per_s=costs.served_bytes_per_s or inf,
        remote=not known[name].url.startswith("file:"),
    )


def _workload(
    text: str, frames: int, batches: int, cuts: int, cut_ms: float, seed: int
) -> Workload:
    from swathe.workers.simulate.workload import Crops, read_workload

    if text in KINDS:
        return Crops(text, frames, batches, cuts, cuts * cut_ms / 1e3, seed)
    path = Path(text)
    if path.suffix != ".csv":
        raise typer.BadParameter(
            f"must be {', '.join(KINDS)} or a file *.csv, not {text!r}", param_hint="--workload"
        )
    return read_workload(path)


def _told(store: Store) -> dict[str, float | bool | None]:
    """Give a store as JSON has it: no infinities."""
    return {name: None if value == inf else value for name, value in asdict(store).items()}


def _show(found: Sequence[Result], store: Store) -> None:
    total = store.total_bytes_per_s
    shared = "each its own" if total == inf else f"{total / 1e6:,.4g} MB/s for all"
    typer.echo(
        f"store: {1e3 * store.latency_s:.3g} ms, {store.stream_bytes_per_s / 1e6:,.4g} MB/s "
        f"for one, {shared}"
    )
    print_table(COLUMNS, [_row(result) for result in found])
    for result in found:
        if len(result.rounds) > 1:
            typer.echo(f"\n{result.workers:,} workers, by round")
            rows = [_round(number, each) for number, each in enumerate(result.rounds, 1)]
            print_table(OF_ROUNDS, rows)


def _row(result: Result) -> tuple[str, ...]:
    return (
        f"{result.workers:,}",
        _rate(result.cuts_per_s),
        _seconds(result.seconds),
        _seconds(result.p50_s),
        _seconds(result.p95_s),
        size_text(result.cache_bytes),
        size_text(result.peer_bytes),
        size_text(result.store_bytes),
        f"{result.hit_rate:.1%}",
        _seconds(result.worker_s),
        f"{result.wasted_s / result.worker_s:.0%}" if result.worker_s else "",
        f"{result.lost:,}",
    )


def _round(number: int, each: Round) -> tuple[str, ...]:
    return (
        f"{number}",
        _seconds(each.seconds),
        _rate(each.cuts_per_s),
        _seconds(each.p50_s),
        _seconds(each.p95_s),
        size_text(each.store_bytes),
    )


def _rate(per_s: float) -> str:
    return f"{per_s:,.0f}" if per_s >= 100 else f"{per_s:.3g}"


def _seconds(seconds: float) -> str:
    return f"{_rate(seconds)} s"


def _figure(found: Sequence[Result]) -> Figure:
    """Draw cuts in a second over time, and against the number of workers."""
    from swathe.costs.plots import figure

    made, (left, right) = figure(2, "Simulated")
    for result in found:
        times, rates = zip(*result.throughput, strict=True)
        left.step(times, rates, where="post", label=f"{result.workers:,}")
    left.set(xlabel="time, s", ylabel="cuts/s", xscale="symlog", yscale="symlog")
    left.legend(title="workers")
    right.plot([result.workers for result in found], [result.cuts_per_s for result in found], "o-")
    right.set(xlabel="workers", ylabel="cuts/s", xscale="log", yscale="log")
    return made
