"""`swathe predict`: what a job will cost, and how well that was said before."""

from __future__ import annotations

import statistics
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.options import SIZE_FORMS, DecColumn, FileOfAll, Frame, Json, RaColumn, size_of
from swathe.cli.output import print_json, print_table
from swathe.core.format import NOISE_S, seconds_text

if TYPE_CHECKING:
    from swathe.costs.prediction import Prediction

OTHERS = {
    "each piece": "each piece for itself",
    "whole object": "the whole object",
    "decompressed once": "decompressed once",
}
SHOWN_REQUESTS, SHOWN_FAULTS = 4, 5


def predict(
    targets: Annotated[
        Path | None, typer.Option(help="A table, or a text of one target a line; see the README.")
    ] = None,
    file: FileOfAll = None,
    size: Annotated[
        str | None, typer.Option(metavar="S", help=f"Size of targets without: {SIZE_FORMS}.")
    ] = None,
    frame: Frame = None,
    ra: RaColumn = None,
    dec: DecColumn = None,
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
    from swathe.costs.prediction import predict as predict_targets

    found = predict_targets(
        targets,
        stores=store or (),
        workers=workers,
        threads=threads,
        file=file,
        size=size_of(size, None),
        frame=frame,
        ra=ra,
        dec=dec,
    )
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
    low, high = map(seconds_text, found.interval_s)
    typer.echo(
        f"{seconds_text(found.seconds)} ({low} to {high} in 80 of 100 cases), "
        f"{_bytes(found.bytes)} in {found.requests:,} requests"
    )
    rows = []
    for name, cost in found.per_store.items():
        share = f"{found.shares[name]:.0%}" if found.shares else ""
        interval = " to ".join(map(seconds_text, cost.interval_s))
        measured = "" if cost.measured or name.startswith("file://") else "not probed"
        rows.append(
            [
                name,
                seconds_text(cost.seconds),
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
        typer.echo(f"Headers of {_objects(read)} were read: the index lacked them.")
    _show_faults(found)


def _show_faults(found: Prediction) -> None:
    """Say what cannot be read; the job will lack it, but for what another replica has."""
    unused = [name for name, share in found.shares.items() if not share]
    unread = {name: cost.unreadable for name, cost in found.per_store.items()}
    lacking = sum(count for name, count in unread.items() if name not in unused)
    if lacking:
        typer.echo(f"{_objects(lacking)} cannot be read, and will give nothing:", err=True)
    elif found.faults:
        typer.echo("what cannot be read or cut:", err=True)
    for fault in found.faults[:SHOWN_FAULTS]:
        typer.echo(f"  {fault}", err=True)
    if len(found.faults) > SHOWN_FAULTS:
        typer.echo(f"  and {len(found.faults) - SHOWN_FAULTS:,} more, see --json", err=True)
    for name in unused:
        if unread.get(name, 1):
            typer.echo(f"{name} is not used: it lacks what another store has", err=True)


def _explain(how: dict[str, Any]) -> None:
    at_once = how["at_once"]
    beside = f"; with 1/{at_once} of the store, as others are read beside it" * (at_once > 1)
    typer.echo(f"{how['url']}: {how['targets']:,} targets, {how['method']}{beside}")
    for plan in how["plans"]:
        load, reach = plan["load"], plan["reach"]
        if not plan["requests"]:
            # Nothing but, it may be, whether the object is still the same.
            typer.echo(f"    kept here: {_requests(load)} to the store")
            continue
        split = f", larger ones are split at {_bytes(reach['cap_bytes'])}" * _is_split(plan)
        typer.echo(
            f"    {_requests(load)}, {plan['streams']} at a time, {seconds_text(plan['seconds'])}: "
            f"gaps up to {_bytes(reach['gap_bytes'])} are read through{split}"
        )
        ranges = [f"{at['start']}-{at['end'] - 1}" for at in plan["requests"]]
        more = ", ..." if len(ranges) > SHOWN_REQUESTS else ""
        typer.echo(f"    bytes {', '.join(ranges[:SHOWN_REQUESTS])}{more}")
    if how["unpacked"]:
        typer.echo(f"    {_bytes(how['unpacked'])} are unpacked, {seconds_text(how['unpack_s'])}")
    _explain_why(how)


def _explain_why(how: dict[str, Any]) -> None:
    asked = [plan for plan in how["plans"] if plan["requests"]]
    if not asked:
        return
    others = []
    for other in how["instead"]:
        unpacked = f" and {seconds_text(other['unpack_s'])} of unpacking" * (other["unpack_s"] > 0)
        others.append(
            f"{OTHERS[other['how']]}: {_requests(other['load'])}, "
            f"{seconds_text(other['seconds'])}{unpacked}"
        )
    if others:
        took = seconds_text(sum(plan["seconds"] for plan in asked))
        typer.echo(f"    why: reading takes {took}; {'; '.join(others)}")
    elif how["method"] == "decompressed once":
        typer.echo("    why: it was never read to its end, so that no seek points are known yet")


def _is_split(plan: dict[str, Any]) -> bool:
    """Tell whether ranges were divided that touch each other."""
    ranges = plan["requests"]
    return any(one["end"] == other["start"] for one, other in pairwise(ranges))


def _requests(load: dict[str, int]) -> str:
    count = load["requests"]
    return f"{count:,} request{'s' * (count != 1)}, {_bytes(load['bytes'])}"


def _objects(count: int) -> str:
    return f"{count:,} object{'s' * (count != 1)}"


def _show_history(as_json: bool) -> None:
    from swathe.catalog import Catalog

    with Catalog.open() as catalog:
        outcomes = catalog.outcomes()
    errors = [abs(outcome.error) for outcome in outcomes if outcome.error is not None]
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
                seconds_text(outcome.predicted_s),
                seconds_text(outcome.actual_s),
                "" if outcome.error is None else f"{outcome.error:+.0%}",
            ]
            for outcome in outcomes
        ],
    )
    if errors:
        typer.echo(f"Median error of {len(errors)}: {statistics.median(errors):.0%}")
    if short := len(outcomes) - len(errors):
        typer.echo(f"Not judged: {short} that took less than {NOISE_S:g} s.")


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB"
