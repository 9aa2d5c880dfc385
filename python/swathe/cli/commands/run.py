"""The commands `swathe run`: an application's arrays over several stores."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.cli.options import Json, Overwrite
from swathe.cli.output import print_json, print_table, print_text
from swathe.cli.units import time_option
from swathe.core.errors import NoSuchRunError
from swathe.core.format import count_text, moment_text, seconds_text, size_text

if TYPE_CHECKING:
    from swathe.catalog.records.runs import RunRecord
    from swathe.runs.planning.run_prediction import RunPrediction

app = typer.Typer(help="Write the arrays of an application to several stores.")
TITLES = (
    *("NAME", "AMODE", "NDIMS", "ETYPE", "PATTERN", "DIMS", "LOCATION", "FREQUENCY"),
    *("DUMPS", "SIZE", "SECONDS", "WRITE", "OBJECTS"),
)


SettingsFile = Annotated[
    Path, typer.Argument(metavar="RUN.toml", help="Settings of the run: its arrays.")
]
DefaultStore = Annotated[
    str | None,
    typer.Option(
        metavar="STORE",
        help="Store of arrays without a location. By default the one of tier tape with most room, "
        "else the one with most room.",
    ),
]


@app.command()
def predict(file: SettingsFile, default: DefaultStore = None, as_json: Json = False) -> None:
    """Predict how long writing takes, array by array, and how many bytes each store gets."""
    from swathe.runs import predict as predict_run

    prediction = predict_run(file, default=default)
    if as_json:
        print_json(prediction.as_dict())
        return
    _print_prediction(prediction)


@app.command()
def plan(
    file: SettingsFile,
    within: Annotated[
        float | None,
        time_option(
            "--within",
            least_s=0.001,
            help="Time of the whole run, at most: for writing all arrays, and for computing if the "
            "settings have compute_s; as 2h.",
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Say why each array goes where it goes, and how it is written."
        ),
    ] = False,
    default: DefaultStore = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="File for the settings with stores."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Choose the store of each array, those of location auto by their costs."""
    from swathe.core.outputs import write_file
    from swathe.runs import plan as plan_run

    of_run = plan_run(file, within_s=within, default=default)
    if output is not None:
        content = of_run.toml().encode()
        write_file(output, lambda out: out.write(content), overwrite=overwrite)
    if as_json:
        facts = {"reasons": dict(of_run.reasons), "writing": dict(of_run.writing)}
        print_json({**of_run.prediction.as_dict(), **facts, "is_exact": of_run.is_exact})
        return
    _print_prediction(of_run.prediction)
    for name, reason in of_run.reasons.items() if explain else ():
        print_text(f"{name}: {reason}")
        if name in of_run.writing:
            print_text(f"{name}: written {of_run.writing[name]}")
    if not of_run.is_exact:
        print_text("swathe: warning: too many arrays: a better choice may exist", err=True)


def _print_prediction(prediction: RunPrediction) -> None:
    print_table(TITLES, ([_cell(value) for value in row] for row in _rows(prediction)))
    low_s, high_s = prediction.interval_s
    print_text(
        f"total {seconds_text(prediction.seconds)} ({seconds_text(low_s)} to "
        f"{seconds_text(high_s)})"
    )
    if prediction.wall_s is not None and prediction.compute_s is not None:
        print_text(
            f"with {seconds_text(prediction.compute_s)} of computing: "
            f"{seconds_text(prediction.wall_s)}"
        )
    for store, size in prediction.bytes_by_store.items():
        print_text(f"{store}: {size_text(size)}")
    for each in prediction.arrays:
        for key, limit_s in each.overruns.items():
            print_text(
                f"swathe: warning: {each.name} takes longer than its {key}, "
                f"{seconds_text(limit_s)}",
                err=True,
            )
    for store in prediction.without_costs:
        print_text(
            f"swathe: warning: writing to {store} was not measured; see: swathe probe {store} "
            "--write",
            err=True,
        )


@app.command()
def submit(
    file: SettingsFile,
    command: Annotated[
        list[str],
        typer.Argument(help="Command after --, as: srun python astro3d.py; it starts the ranks."),
    ],
    compute: Annotated[
        float | None,
        time_option(least_s=0.001, help="Computing time of an iteration; else compute_s of FILE."),
    ] = None,
    default: DefaultStore = None,
    sbatch: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OPTION", help="Further option of sbatch, as --partition=long; may be repeated."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the script instead of submitting it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Submit a run as a job of Slurm, its walltime by the prediction and the computing time."""
    from swathe.runs import submit as submit_run

    job = submit_run(
        file, command, compute_s=compute, default=default, options=sbatch or (), dry_run=dry_run
    )
    if as_json:
        print_json(asdict(job))
    elif dry_run:
        print_text(job.script.rstrip("\n"))
    else:
        print_text(
            f"submitted job {job.number}: walltime {seconds_text(job.walltime_s)}: "
            f"writing {seconds_text(job.write_s)}, computing {seconds_text(job.compute_s)}"
        )


def _rows(prediction: RunPrediction) -> list[list[object]]:
    return [
        [
            *(row[name] for name in ("name", "amode", "ndims", "etype", "pattern", "dims")),
            *(row["location"], row["frequency"], row["dumps"]),
            *(size_text(row["bytes"]), f"{row['seconds']:.6g}", row["write"], row["objects"]),
        ]
        for row in prediction.rows()
    ]


def _cell(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


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
    if name is not None and not records:
        raise NoSuchRunError(f"there is no run of {name[:120]!r}; see: swathe run list")
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
            "write": array.settings.write,
            "dumps": len(array.dumps),
            "bytes": sum(dump.bytes for dump in array.dumps.values()),
            "seconds": sum(dump.seconds for dump in array.dumps.values()),
            "stores": dict(Counter(dump.store for dump in array.dumps.values())),
            "to_drain": sum(dump.target is not None for dump in array.dumps.values()),
            "failovers": [{**asdict(each), "at": each.at.isoformat()} for each in array.failovers],
        }
        for name, array in of_run.items()
    ]
    if as_json:
        print_json({**_run_record(of_run.record), "arrays": rows})
        return
    record = of_run.record
    print_text(f"{record.label}: {record.state}, begun {moment_text(record.began_at)}")
    print_table(
        (
            "array",
            "shape",
            "type",
            "every",
            "mode",
            "write",
            "dumps",
            "size",
            "written in",
            "stores",
        ),
        (
            [
                *(str(row["name"]), _cell(row["shape"]), str(row["dtype"]), str(row["every"])),
                *(str(row["mode"]), str(row["write"]), str(row["dumps"]), size_text(row["bytes"])),
                *(seconds_text(row["seconds"]), _cell(_counts(row["stores"]))),
            ]
            for row in rows
        ),
    )
    for row in rows:
        for each in row["failovers"]:
            print_text(
                f"{row['name']}: left {each['store']} for {_cell(list(each['next_stores']))} from "
                f"iteration {each['iteration']} on: {each['reason']}"
            )
        if row["to_drain"]:
            print_text(
                f"{row['name']}: {count_text(row['to_drain'], 'dump')} to be moved on; see: swathe "
                f"run drain {record.label}"
            )


@app.command()
def targets(
    run: Annotated[str, typer.Argument(metavar="RUN", help="NAME@NUMBER, or NAME for the newest.")],
    array: Annotated[str, typer.Argument(help="Array of the run.")],
    together: Annotated[
        int, typer.Option(min=1, help="Dumps of a target: with 2, each and the next.")
    ] = 1,
    as_json: Json = False,
) -> None:
    """Print the dumps of an array as a list of targets, in CSV, for `job submit` and `cut`."""
    from swathe.runs import open_run

    table = open_run(run)[array].targets(together)
    if as_json:
        print_json(
            [dict(zip(table.colnames, row, strict=True)) for row in table.as_array().tolist()]
        )
        return
    text = io.StringIO()
    table.write(text, format="ascii.csv")
    print_text(text.getvalue().rstrip())


@app.command()
def drain(
    run: Annotated[str, typer.Argument(metavar="RUN", help="NAME@NUMBER, or NAME for the newest.")],
    as_json: Json = False,
) -> None:
    """Move dumps on from their near store, of a run that has ended."""
    from swathe.runs import drain as drain_run

    report = drain_run(run)
    if as_json:
        print_json(asdict(report))
        return
    print_text(
        f"moved {count_text(report.dumps, 'dump')} of {report.run}, {size_text(report.bytes)}"
    )


@app.command()
def add(
    place: Annotated[
        str, typer.Argument(metavar="STORE:runs/FOLDER", help="Folder of the run in a store.")
    ],
    as_json: Json = False,
) -> None:
    """Enter a run that another program wrote: in C, or under another catalogue."""
    from swathe.runs import add as add_run

    record = add_run(place)
    if as_json:
        print_json(_run_record(record))
        return
    print_text(f"{record.label}; see: swathe run show {record.label}")


@app.command()
def remove(
    run: Annotated[str, typer.Argument(metavar="RUN", help="NAME@NUMBER, or NAME for the newest.")],
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Remove it even if it is being written, or a store of it does not answer; what "
            "is in that store stays.",
        ),
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


@app.command()
def move(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN[/ARRAY]", help="NAME@NUMBER, or NAME for the newest; and an array of it."
        ),
    ],
    to: Annotated[str, typer.Option("--to", metavar="STORE", help="Store to move dumps to.")],
    iterations: Annotated[
        str | None,
        typer.Option(
            metavar="A:B", help="Iterations from A up to, not including, B; by default all."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Move it even if it is being written.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Move dumps of a run to another store; a move that was ended goes on."""
    from swathe.runs import move as move_run

    label, slash, array = run.partition("/")
    report = move_run(
        label,
        to.removesuffix(":"),
        array=array if slash else None,
        iterations=_slice(iterations),
        force=force,
    )
    if as_json:
        print_json(asdict(report))
        return
    print_text(
        f"moved {count_text(report.dumps, 'dump')} of {report.run} to {report.store}: "
        f"{count_text(report.objects, 'object')}, {size_text(report.bytes)}"
    )


def _slice(text: str | None) -> slice:
    """Return iterations as `0:60`, `60:` or `:60`."""
    if text is None:
        return slice(None)
    match = re.fullmatch(r"(\d{0,13}):(\d{0,13})", text)
    if match is None:
        raise typer.BadParameter(f"--iterations: expected A:B, found {text[:40]!r}")
    first, last = (int(each) if each else None for each in match.groups())
    return slice(first, last)


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
