"""`swathe predict`: what a job will cost, and how well that was said before."""

from __future__ import annotations

import statistics
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.commands.options import Json
from swathe.commands.output import print_json, print_table

if TYPE_CHECKING:
    from swathe.catalog import Outcome
    from swathe.predict import Prediction

SHOWN_REQUESTS = 4


def predict(
    targets: Annotated[
        Path | None, typer.Option(help="A table (CSV, ECSV, VOTable, Parquet); see the README.")
    ] = None,
    store: Annotated[
        list[str] | None,
        typer.Option(help="A replica: a store in which the files lie; may be given several times."),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, max=100_000, help="Machines like this one that share the work.")
    ] = 1,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads; by default as many as cores.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show how objects are read.")] = False,
    history: Annotated[
        bool, typer.Option("--history", help="Show what became of the last predictions.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what cutting targets will cost, without reading a pixel."""
    if history:
        _show_history(as_json)
        return
    if targets is None:
        raise typer.BadParameter("give --targets, or --history")
    from swathe.predict import predict as predict_targets

    found = predict_targets(targets, stores=store or (), workers=workers, threads=threads)
    if as_json:
        told = asdict(found)
        del told["beside_s"]  # of jobs of a portal
        if not explain:
            del told["explained"]
        print_json(told)
        return
    _show(found)
    if explain:
        for how in found.explained:
            _explain(how)


def _show(found: Prediction) -> None:
    low_s, high_s = found.interval_s
    typer.echo(
        f"{_seconds(found.seconds)} ({_seconds(low_s)} to {_seconds(high_s)} in 80 of 100 cases), "
        f"{_bytes(found.bytes)} in {found.requests:,} requests"
    )
    rows = []
    for name, cost in found.per_store.items():
        share = f"{found.shares[name]:.0%}" if found.shares else ""
        interval = " to ".join(map(_seconds, cost.interval_s))
        measured = "" if cost.measured or name.startswith("file://") else "not probed"
        rows.append(
            [
                name,
                _seconds(cost.seconds),
                interval,
                _bytes(cost.bytes),
                f"{cost.requests:,}",
                f"{cost.objects:,}",
                f"{cost.targets:,}",
                share,
                measured,
            ]
        )
    titles = ["store", "time", "80 %", "bytes", "requests", "objects", "targets", "share", ""]
    print_table(titles, rows)
    read = sum(cost.headers_read for cost in found.per_store.values())
    if read:
        typer.echo(f"Headers of {read:,} objects were read: the index lacked them.")


def _explain(how: dict[str, Any]) -> None:
    typer.echo(f"{how['url']}: {how['targets']} targets, {how['method']}")
    for plan in how["plans"]:
        load, reach = plan["load"], plan["reach"]
        typer.echo(
            f"    {load['requests']:,} requests, {_bytes(load['bytes'])}, {plan['streams']} at a "
            f"time, {_seconds(plan['seconds'])}: gaps up to {_bytes(reach['gap_bytes'])} are read "
            f"through, the largest request is {_bytes(load['largest'])}"
        )
        ranges = [f"{at['start']}-{at['end'] - 1}" for at in plan["requests"]]
        more = ", ..." if len(ranges) > SHOWN_REQUESTS else ""
        typer.echo(f"    bytes {', '.join(ranges[:SHOWN_REQUESTS])}{more}")
    if how["unpacked"]:
        typer.echo(f"    {_bytes(how['unpacked'])} are unpacked")


def _show_history(as_json: bool) -> None:
    from swathe.catalog import Catalog

    with Catalog.open() as catalog:
        outcomes = catalog.outcomes()
    errors = [abs(_error(outcome)) for outcome in outcomes if outcome.actual_s > 0]
    if as_json:
        rows = [{**asdict(outcome), "at": outcome.at.isoformat()} for outcome in outcomes]
        print_json(
            {"outcomes": rows, "median_error": statistics.median(errors) if errors else None}
        )
        return
    if not outcomes:
        typer.echo("nothing was predicted yet")
        return
    print_table(
        ["when (UTC)", "what", "targets", "store", "predicted", "took", "error"],
        [
            [
                outcome.at.strftime("%Y-%m-%d %H:%M:%S"),
                outcome.summary,
                f"{outcome.targets:,}",
                outcome.root,
                _seconds(outcome.predicted_s),
                _seconds(outcome.actual_s),
                f"{_error(outcome):+.0%}" if outcome.actual_s else "",
            ]
            for outcome in outcomes
        ],
    )
    if errors:
        typer.echo(f"Median error of {len(errors)}: {statistics.median(errors):.0%}")


def _error(outcome: Outcome) -> float:
    return outcome.predicted_s / outcome.actual_s - 1


def _seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 120 else f"{seconds / 60:,.1f} min"


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB"
