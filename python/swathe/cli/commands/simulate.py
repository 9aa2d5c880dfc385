"""The command `swathe simulate`: simulate a pool of workers."""

from __future__ import annotations

from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from swathe.cli.options import Json, Overwrite, Plot
from swathe.cli.output import print_json, print_table
from swathe.core.errors import SettingsError
from swathe.core.format import number_text, rate_text, seconds_text, size_text
from swathe.core.toml_settings import read_toml, refuse_unknown, value, value_error
from swathe.workers.simulate.network import Tier

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.workers.simulate.network import SimulatedStore
    from swathe.workers.simulate.result import RoundResult, SimulationResult

NO_KEYS = {"file", "plot", "overwrite", "as_json", "return"}
"""Options that are no keys of a settings file."""
COLUMNS = (
    *("workers", "cuts/s", "time", "p50", "p95", "own cache", "peers", "store", "in caches"),
    *("worker time", "wasted", "lost"),
)
OF_ROUNDS = ("round", "time", "cuts/s", "p50", "p95", "from the store")


def _read_file(context: typer.Context, path: Path | None) -> Path | None:
    """Take the keys of [simulate] in a file as defaults of the options.

    Raises:
        SettingsError: If the file cannot be read, or a key is unknown or has another type.
    """
    if path is None:
        return None
    hints = get_type_hints(simulate)
    kinds = {name: _one_type(hints[name]) for name in hints if name not in NO_KEYS}
    try:
        sections = read_toml(path)
        refuse_unknown("section", sections, {"simulate": None})
        keys = sections.get("simulate", {})
        if not isinstance(keys, dict):
            raise value_error("simulate", "a section [simulate]", keys)
        refuse_unknown("key in [simulate]", keys, kinds)
        context.default_map = {
            name: value(f"simulate.{name}", kinds[name], keys[name]) for name in keys
        }
    except SettingsError as error:
        text = str(error)
        raise SettingsError(text if text.startswith(f"{path}: ") else f"{path}: {text}") from error
    return path


def _one_type(hint: Any) -> Any:
    """Return the type of an option's value, without `None`."""
    return get_args(hint)[0] if type(None) in get_args(hint) else hint


def simulate(
    file: Annotated[  # noqa: ARG001 - its callback does the work
        Path | None,
        typer.Argument(
            metavar="FILE.toml",
            callback=_read_file,
            is_eager=True,
            help="Settings file with a section [simulate]. Its keys are the options, as "
            "latency_ms; options override it.",
        ),
    ] = None,
    workers: Annotated[
        str, typer.Option(help="Number of workers: 8, or 2,4,8, or 1..10000 for 1, 10, 100, ...")
    ] = "1..100",
    workload: Annotated[
        str,
        typer.Option(
            help="Order of cuts from frames of 6 MB: job (frame by frame), random, or hot (some "
            "frames "
            "more often). Or a CSV file with the columns object, bytes, compute_s."
        ),
    ] = "job",
    store: Annotated[
        str | None, typer.Option(help="Store that was probed from this host; else see --tier.")
    ] = None,
    tier: Annotated[
        Tier | None,
        typer.Option(help="Typical store instead of --store; by default lan."),
    ] = None,
    latency_ms: Annotated[
        float | None, typer.Option(min=0, help="Latency of a request to the store, ms.")
    ] = None,
    fetch_mb_s: Annotated[
        float | None, typer.Option(min=0.001, help="Bandwidth of one worker from the store, MB/s.")
    ] = None,
    total_mb_s: Annotated[
        float | None,
        typer.Option(min=0.001, help="Bandwidth of all workers together from the store, MB/s."),
    ] = None,
    frames: Annotated[int, typer.Option(min=1, max=1_000_000, help="Number of frames.")] = 1000,
    batches: Annotated[
        int | None,
        typer.Option(min=1, help="Number of batches per round; else one per frame."),
    ] = None,
    cuts: Annotated[int, typer.Option(min=1, max=100_000, help="Number of cuts per batch.")] = 10,
    cut_ms: Annotated[
        float, typer.Option(min=0, max=1e6, help="Computing time of a cut, ms.")
    ] = 0.15,
    threads: Annotated[
        int, typer.Option(min=1, max=1000, help="Number of threads per worker.")
    ] = 1,
    cores: Annotated[
        int | None,
        typer.Option(min=1, help="Number of cores that all workers share; else one per thread."),
    ] = None,
    cache_gb: Annotated[
        float, typer.Option(min=0, max=1e9, help="Disk cache per worker, 10^9 bytes.")
    ] = 10.0,
    link_mb_s: Annotated[
        float, typer.Option(min=0.001, help="Network bandwidth per worker, in and out, MB/s.")
    ] = 125.0,
    dispatch_ms: Annotated[
        float, typer.Option(min=0, help="Time of the scheduler per batch, ms.")
    ] = 2.0,
    clients: Annotated[
        int,
        typer.Option(
            min=0,
            max=1_000_000,
            help="Number of clients with one request each in flight (0 = all requests at once).",
        ),
    ] = 0,
    rounds: Annotated[
        int, typer.Option(min=1, max=10_000, help="Number of passes through the workload.")
    ] = 1,
    grow: Annotated[
        bool, typer.Option("--grow", help="Autoscale with the queue, up to --workers.")
    ] = False,
    idle_s: Annotated[
        float,
        typer.Option(min=0, help="Idle time after which a worker stops, with --grow, seconds."),
    ] = 300.0,
    start_s: Annotated[
        float, typer.Option(min=0, help="Time that a worker takes to start, seconds.")
    ] = 30.0,
    fails_h: Annotated[
        float | None,
        typer.Option(min=1e-6, help="Mean time until a worker fails, hours; else never."),
    ] = None,
    walltime_h: Annotated[
        float | None,
        typer.Option(min=1e-6, help="Time after which a worker must end, hours; else never."),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed; the same seed gives the same result.")
    ] = 1,
    plot: Plot = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Simulate a pool of workers, with the same placement and autoscaling rules as a real pool."""
    from swathe.workers.simulate.simulation_study import simulate_pool

    study = simulate_pool(
        _sizes(workers),
        workload=workload,
        store=store,
        tier=tier,
        latency_s=_times(1e-3, latency_ms),
        fetch_bytes_per_s=_times(1e6, fetch_mb_s),
        total_bytes_per_s=_times(1e6, total_mb_s),
        frames=frames,
        batches=batches,
        cuts=cuts,
        cut_s=cut_ms / 1e3,
        threads=threads,
        cores=cores,
        cache_bytes=cache_gb * 1e9,
        link_bytes_per_s=link_mb_s * 1e6,
        dispatch_s=dispatch_ms / 1e3,
        clients=clients,
        rounds=rounds,
        grow=grow,
        idle_s=idle_s,
        start_s=start_s,
        fails_s=_times(3600, fails_h),
        walltime_s=_times(3600, walltime_h),
        seed=seed,
        plot=plot,
        overwrite=overwrite,
    )
    if as_json:
        results = [asdict(result) for result in study.results]
        print_json({"store": _store_as_dict(study.store), "results": results})
    else:
        _show(study.results, study.store)


def _sizes(text: str) -> list[int]:
    """Parse numbers of workers: one, several, or a range in powers of ten."""
    first, dots, last = text.partition("..")
    parts = [first, last] if dots else text.split(",")
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        raise typer.BadParameter(f"expected N, N,M or N..M, found {text!r}", param_hint="--workers")
    sizes = [int(part) for part in parts]
    if not dots:
        return sizes
    low, high = sizes
    if not 1 <= low <= high:
        raise typer.BadParameter(
            f"expected an ascending range from 1, found {text!r}", param_hint="--workers"
        )
    powers = []
    while low < high:
        powers.append(low)
        low *= 10
    return [*powers, high]


def _times(factor: float, number: float | None) -> float | None:
    return None if number is None else factor * number


def _store_as_dict(store: SimulatedStore) -> dict[str, float | bool | None]:
    """Return a store as a dictionary for JSON, with None for infinity."""
    return {name: None if value == inf else value for name, value in asdict(store).items()}


def _show(results: Sequence[SimulationResult], store: SimulatedStore) -> None:
    total = store.total_bytes_per_s
    limit_text = "no shared limit" if total == inf else f"{rate_text(total)} in total"
    typer.echo(
        f"store: {seconds_text(store.latency_s)}, {rate_text(store.stream_bytes_per_s)} "
        f"per worker, {limit_text}"
    )
    print_table(COLUMNS, [_row(result) for result in results])
    for result in results:
        if len(result.rounds) > 1:
            typer.echo(f"\n{result.workers:,} workers, by round")
            rows = [_round(number, each) for number, each in enumerate(result.rounds, 1)]
            print_table(OF_ROUNDS, rows)


def _row(result: SimulationResult) -> tuple[str, ...]:
    return (
        f"{result.workers:,}",
        number_text(result.cuts_per_s),
        seconds_text(result.elapsed_s),
        seconds_text(result.p50_s),
        seconds_text(result.p95_s),
        size_text(result.cache_bytes),
        size_text(result.peer_bytes),
        size_text(result.store_bytes),
        f"{result.hit_rate:.1%}",
        seconds_text(result.worker_s),
        f"{result.wasted_s / result.worker_s:.0%}" if result.worker_s else "",
        f"{result.lost:,}",
    )


def _round(number: int, each: RoundResult) -> tuple[str, ...]:
    return (
        f"{number}",
        seconds_text(each.elapsed_s),
        number_text(each.cuts_per_s),
        seconds_text(each.p50_s),
        seconds_text(each.p95_s),
        size_text(each.store_bytes),
    )
