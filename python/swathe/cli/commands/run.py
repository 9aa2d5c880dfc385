"""The commands `swathe run`: an application's arrays over several stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.options import Json
from swathe.cli.output import print_json, print_table, print_text
from swathe.core.format import count_text, moment_text, seconds_text, size_text

if TYPE_CHECKING:
    from swathe.catalog.records.runs import RunRecord
    from swathe.runs.run_prediction import RunPrediction

app = typer.Typer(help="Write the arrays of an application to several stores.")
TITLES = (
    *("NAME", "AMODE", "NDIMS", "ETYPE", "PATTERN", "DIMS", "LOCATION", "FREQUENCY"),
    *("DUMPS", "SIZE", "SECONDS"),
)


@app.command()
def predict(
    file: Annotated[
        Path, typer.Argument(metavar="RUN.toml", help="Settings of the run: its arrays.")
    ],
    default: Annotated[
        str | None,
        typer.Option(
            metavar="STORE",
            help="Store of arrays without a location. By default the one of tier tape with most "
            "room, else the one with most room.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Predict how long writing takes, array by array, and how many bytes each store gets."""
    from swathe.runs import predict as predict_run

    prediction = predict_run(file, default=default)
    if as_json:
        print_json(_record(prediction))
        return
    print_table(TITLES, ([_cell(value) for value in row] for row in _rows(prediction)))
    low_s, high_s = prediction.interval_s
    print_text(
        f"total {seconds_text(prediction.seconds)} ({seconds_text(low_s)} to "
        f"{seconds_text(high_s)})"
    )
    for store, size in prediction.bytes_by_store.items():
        print_text(f"{store}: {size_text(size)}")
    for each in prediction.arrays:
        if each.exceeds_limit:
            print_text(
                f"swathe: warning: {each.name} takes longer than its within_s, "
                f"{seconds_text(each.array.within_s or 0.0)}",
                err=True,
            )
    for store in prediction.without_costs:
        print_text(
            f"swathe: warning: writing to {store} was not measured; see: swathe probe {store} "
            "--write",
            err=True,
        )


def _rows(prediction: RunPrediction) -> list[list[object]]:
    return [
        [
            *(row[name] for name in ("name", "amode", "ndims", "etype", "pattern", "dims")),
            *(row["location"], row["frequency"], row["dumps"]),
            *(size_text(row["bytes"]), f"{row['seconds']:.6g}"),
        ]
        for row in prediction.rows()
    ]


def _cell(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _record(prediction: RunPrediction) -> dict[str, object]:
    return {
        "name": prediction.run.name,
        "iterations": prediction.run.iterations,
        "ranks": prediction.run.ranks,
        "arrays": prediction.rows(),
        "seconds": prediction.seconds,
        "interval_s": list(prediction.interval_s),
        "bytes_by_store": prediction.bytes_by_store,
        "without_costs": list(prediction.without_costs),
    }


@app.command(name="list")
def list_runs(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Application; by default all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List runs, the newest first."""
    from swathe import runs

    records = runs.list(name)
    if as_json:
        print_json([_run_record(record) for record in records])
        return
    print_table(
        ("run", "state", "begun", "iterations", "ranks", "host"),
        (
            [
                *(each.label, each.state, moment_text(each.began_at)),
                *(str(each.iterations), str(each.ranks), each.host),
            ]
            for each in records
        ),
    )


@app.command()
def show(
    run: Annotated[str, typer.Argument(metavar="RUN", help="NAME@NUMBER, or NAME for the newest.")],
    as_json: Json = False,
) -> None:
    """Show the arrays of a run, and where their iterations lie."""
    from swathe.runs import open_run

    of_run = open_run(run)
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "shape": list(array.settings.shape),
            "dtype": array.settings.dtype,
            "every": array.settings.every,
            "mode": array.settings.mode,
            "dumps": len(array),
            "bytes": sum(dump.bytes for dump in array.dumps.values()),
            "seconds": sum(dump.seconds for dump in array.dumps.values()),
            "stores": dict(Counter(dump.store for dump in array.dumps.values())),
        }
        for name, array in of_run.items()
    ]
    if as_json:
        print_json({**_run_record(of_run.record), "arrays": rows})
        return
    record = of_run.record
    print_text(f"{record.label}: {record.state}, begun {moment_text(record.began_at)}")
    print_table(
        ("array", "shape", "type", "every", "mode", "dumps", "size", "written in", "stores"),
        (
            [
                *(str(row["name"]), _cell(row["shape"]), str(row["dtype"]), str(row["every"])),
                *(str(row["mode"]), str(row["dumps"]), size_text(row["bytes"])),
                *(seconds_text(row["seconds"]), _cell(_counts(row["stores"]))),
            ]
            for row in rows
        ),
    )


@app.command()
def remove(
    run: Annotated[str, typer.Argument(metavar="RUN", help="NAME@NUMBER, or NAME for the newest.")],
    force: Annotated[
        bool, typer.Option("--force", help="Remove it even if it is being written.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove a run: its objects in its stores, then its record."""
    from swathe.runs import remove as remove_run

    outcome = remove_run(run, force=force)
    if as_json:
        print_json(outcome)
        return
    print_text(f"removed {outcome['run']}: {count_text(outcome['objects'], 'object')}")


def _run_record(record: RunRecord) -> dict[str, object]:
    return {
        "run": record.label,
        "state": record.state,
        "began_at": record.began_at.isoformat(),
        "ended_at": None if record.ended_at is None else record.ended_at.isoformat(),
        "iterations": record.iterations,
        "ranks": record.ranks,
        "host": record.host,
    }


def _counts(stores: Mapping[str, int]) -> list[str]:
    return [f"{name} {number}" for name, number in stores.items()]
