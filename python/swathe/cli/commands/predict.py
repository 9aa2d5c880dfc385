"""The command `swathe predict`: predict the cost of a job, and compare past predictions."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.options import (
    DecColumn,
    FileOfAll,
    Frame,
    Json,
    Mode,
    Objective,
    Planes,
    RaColumn,
    TargetSize,
    planes_of,
    size_of,
)
from swathe.cli.output import print_json, print_table, print_text
from swathe.core.format import NOISE_S, count_text, moment_text, seconds_text, size_text

if TYPE_CHECKING:
    from swathe.costs.prediction import Prediction

OTHERS = {
    "each piece": "each piece separately",
    "whole object": "the whole object",
    "decompressed once": "decompressed once",
}
PARTS = "reading and cutting, by store:"
WHOLE_STORES = (
    "reading and cutting, if one store alone were used; "
    "share is the part of each in the cheapest mixture, which the total is for:"
)
OTHER = "other"
"""Name of work of several stores, and of results that are made, as pictures."""
SHOWN_REQUESTS, SHOWN_FAULTS, SHOWN_OUTCOMES = 4, 5, 100


def predict(
    targets: Annotated[
        Path | None,
        typer.Option(
            help="List of targets: a table, or a text file with one target "
            "per line; see docs/cutting.md."
        ),
    ] = None,
    file: FileOfAll = None,
    size: TargetSize = None,
    frame: Frame = None,
    ra: RaColumn = None,
    dec: DecColumn = None,
    store: Annotated[
        list[str] | None,
        typer.Option(help="Store with a replica of the files; may be repeated."),
    ] = None,
    mode: Mode = "trim",
    planes: Planes = None,
    machines: Annotated[
        int,
        typer.Option(
            min=1, max=100_000, help="Number of machines like this one that share the work."
        ),
    ] = 1,
    threads: Annotated[
        int | None,
        typer.Option(min=1, max=1024, help="Number of threads; else the number of cores."),
    ] = None,
    objective: Objective = "auto",
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Format of the results: fits, npy, png, nc, ...; by default that of their source.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder or archive that `swathe cut` will write; it may exist."
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the read plan of each object.")
    ] = False,
    history: Annotated[
        bool, typer.Option("--history", help="Compare past predictions with the time taken.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Predict the cost of cutting targets, without reading a pixel."""
    if history:
        _show_history(as_json)
        return
    if targets is None:
        raise typer.BadParameter("expected --targets or --history, found neither")
    from swathe.costs.predict_list import predict as predict_targets

    prediction = predict_targets(
        targets,
        stores=store or (),
        mode=mode,
        planes=planes_of(planes),
        machines=machines,
        threads=threads,
        objective=objective,
        format=file_format,
        output=output,
        file=file,
        size=size_of(size),
        frame=frame,
        ra=ra,
        dec=dec,
    )
    if as_json:
        fields = asdict(prediction)
        del fields["model_s"]
        if not explain:
            del fields["explained"]
        print_json(fields)
        return
    _show(prediction)
    if explain:
        for how in prediction.explained:
            _explain(how)


def _show(prediction: Prediction) -> None:
    low, high = map(seconds_text, prediction.interval_s)
    typer.echo(
        f"total: {seconds_text(prediction.median_s)} ({low} to {high} in 80 of 100 cases), "
        f"{size_text(prediction.bytes)} in {count_text(prediction.requests, 'request')}"
    )
    if prediction.overhead_s:
        reading_s = prediction.median_s - prediction.overhead_s
        typer.echo(
            f"  of this {seconds_text(reading_s)} for reading and cutting, "
            f"{seconds_text(prediction.overhead_s)} for list, results and manifest"
        )
    if prediction.per_store:
        _show_stores(prediction)
    for note in prediction.staging:
        print_text(note)
    for note in prediction.notes[:SHOWN_FAULTS]:
        print_text(f"the interval is wide: {note}")
    if len(prediction.notes) > SHOWN_FAULTS:
        typer.echo(f"  and {len(prediction.notes) - SHOWN_FAULTS:,} more reasons, see --json")
    _show_faults(prediction)


def _show_stores(prediction: Prediction) -> None:
    """Print a table of the stores, and how many headers were read."""
    typer.echo(WHOLE_STORES if prediction.shares else PARTS)
    notes = {
        name: "" if cost.measured or cost.is_local else "not probed"
        for name, cost in prediction.per_store.items()
    }
    titles = ["store", "time", "80 of 100 cases", "bytes", "requests", "objects", "targets"]
    titles += ["share"] * bool(prediction.shares) + [""] * any(notes.values())
    rows = []
    for name, cost in prediction.per_store.items():
        row = [
            name,
            seconds_text(cost.median_s),
            " to ".join(map(seconds_text, cost.interval_s)),
            size_text(cost.bytes),
            f"{cost.requests:,}",
            f"{cost.objects:,}",
            f"{cost.targets:,}",
        ]
        if prediction.shares:
            row.append(f"{prediction.shares[name]:.0%}")
        rows.append([*row, notes[name]][: len(titles)])
    print_table(titles, rows)
    read = sum(cost.headers_read for cost in prediction.per_store.values())
    if read:
        objects = count_text(read, "object")
        typer.echo(f"Headers of {objects} were read, as they were not in the index.")


def _show_faults(prediction: Prediction) -> None:
    """Print the files that cannot be read, which the job will lack unless a replica has them."""
    idle_stores = [name for name, share in prediction.shares.items() if not share]
    unread = {name: cost.unreadable for name, cost in prediction.per_store.items()}
    lacking_count = sum(count for name, count in unread.items() if name not in idle_stores)
    if lacking_count:
        objects = count_text(lacking_count, "object")
        typer.echo(f"{objects} cannot be read, and will have no result:", err=True)
    elif prediction.faults:
        typer.echo("these cannot be read or cut:", err=True)
    for fault in prediction.faults[:SHOWN_FAULTS]:
        print_text(f"  {fault}", err=True)
    if len(prediction.faults) > SHOWN_FAULTS:
        typer.echo(f"  and {len(prediction.faults) - SHOWN_FAULTS:,} more, see --json", err=True)
    for name in idle_stores:
        if unread.get(name, 1):
            typer.echo(
                f"{name} is not used: files that another store has cannot be read from it", err=True
            )


def _explain(how: dict[str, Any]) -> None:
    at_once = how["at_once"]
    beside = f"; with 1/{at_once} of the store's bandwidth, as others are read in parallel" * (
        at_once > 1
    )
    busy = f", as others use {how['line_busy']:.0%} of the line" * (how["line_busy"] > 0)
    print_text(
        f"{how['url']}: {how['targets']:,} targets, {how['method']}{beside}; "
        f"planned for {how['objective']}{busy}"
    )
    for plan in how["plans"]:
        load, reach = plan["load"], plan["reach"]
        if not plan["ranges"]:
            # At most a request that checks whether the object is unchanged.
            typer.echo(f"    cached here: {_requests(load)} to the store")
            continue
        split = f", larger ones are split at {size_text(reach['cap_bytes'])}" * _is_split(plan)
        typer.echo(
            f"    {_requests(load)}, {plan['streams']} in parallel, "
            f"{seconds_text(plan['read_s'])}: "
            f"gaps up to {size_text(reach['gap_bytes'])} are also read{split}"
        )
        ranges = [f"{at['start']}-{at['end'] - 1}" for at in plan["ranges"]]
        more = ", ..." if len(ranges) > SHOWN_REQUESTS else ""
        typer.echo(f"    bytes {', '.join(ranges[:SHOWN_REQUESTS])}{more}")
    if how["unpacked_bytes"]:
        unpacking = seconds_text(how["unpack_s"])
        typer.echo(f"    {size_text(how['unpacked_bytes'])} are unpacked, {unpacking}")
    _explain_why(how)


def _explain_why(how: dict[str, Any]) -> None:
    remote_plans = [plan for plan in how["plans"] if plan["ranges"]]
    if not remote_plans:
        return
    others = []
    for other in how["instead"]:
        unpack_text = f" and {seconds_text(other['unpack_s'])} of unpacking" * (
            other["unpack_s"] > 0
        )
        others.append(
            f"{OTHERS[other['how']]}: {_requests(other['load'])}, "
            f"{seconds_text(other['read_s'])}{unpack_text}"
        )
    if others:
        took = seconds_text(sum(plan["read_s"] for plan in remote_plans))
        typer.echo(f"    why: reading takes {took}; {'; '.join(others)}")
    elif how["method"] == "decompressed once":
        typer.echo("    why: the object was never read to its end, so it has no seek points yet")


def _is_split(plan: dict[str, Any]) -> bool:
    """Return whether the plan splits a range into adjacent requests."""
    ranges = plan["ranges"]
    return any(one["end"] == other["start"] for one, other in pairwise(ranges))


def _requests(load: dict[str, Any]) -> str:
    count, ranges = load["requests"], load["ranges"]
    many = f" of {ranges:,} ranges" * (ranges > count)
    connection_text = " on one connection of HTTP/2" * bool(load["multiplexed"])
    return (
        f"{count:,} request{'s' * (count != 1)}{many}{connection_text}, {size_text(load['bytes'])}"
    )


def _show_history(as_json: bool) -> None:
    from swathe.catalog import Catalog
    from swathe.catalog.recent_outcomes import RECENT
    from swathe.costs.track_record import track_records

    with Catalog.open() as catalog:
        recent = catalog.outcomes(RECENT)
    records, outcomes = track_records(recent), recent[:SHOWN_OUTCOMES]
    if as_json:
        rows = [{**asdict(outcome), "at": outcome.at.isoformat()} for outcome in outcomes]
        overall = records[-1] if records else None
        print_json(
            {
                "outcomes": rows,
                "median_error": overall and overall.median_error,
                "stores": [asdict(record) for record in records[:-1]],
                "all": overall and asdict(overall),
            }
        )
        return
    if not outcomes:
        typer.echo("no predictions yet")
        return
    print_table(
        ["when", "what", "targets", "store", "predicted", "80 %", "took", "error"],
        [
            [
                moment_text(outcome.at),
                outcome.summary,
                f"{outcome.targets:,}",
                outcome.root,
                seconds_text(outcome.predicted_s),
                " to ".join(map(seconds_text, (outcome.low_s, outcome.high_s))),
                seconds_text(outcome.actual_s),
                "" if outcome.error is None else f"{outcome.error:+.0%}",
            ]
            for outcome in outcomes
        ],
    )
    if records:
        titles = ["store", "compared", "median error", "90 % below", "interval held"]
        print_table(
            titles,
            [
                [
                    "all" if record is records[-1] else record.root or OTHER,
                    f"{record.compared:,}",
                    f"{record.median_error:.0%}",
                    f"{record.high_error:.0%}",
                    f"{record.coverage:.0%}",
                ]
                for record in records
            ],
        )
        typer.echo(
            f"Median error of {records[-1].compared}: {records[-1].median_error:.0%}; "
            f"the 80 % interval held {records[-1].coverage:.0%}"
        )
    if short := sum(outcome.error is None for outcome in recent):
        typer.echo(f"Without an error figure: {short} that took less than {NOISE_S:g} s.")
