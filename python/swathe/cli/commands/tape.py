"""The commands `swathe tape`: stage objects from tape."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swathe.catalog.records.staging import IN_PROGRESS
from swathe.cli.options import Json, Quiet
from swathe.cli.output import print_json, print_table, print_text
from swathe.cli.units import time_option
from swathe.core.format import count_text, moment_text, rate_text, seconds_text, size_text

if TYPE_CHECKING:
    from swathe.catalog.records.staging import StageFile
    from swathe.stores.staging.stage_costs import StageParts
    from swathe.stores.staging.tape_objects import TapeStatus

app = typer.Typer(help="Stage objects from tape before they are read.", no_args_is_help=True)

Things = Annotated[
    list[str],
    typer.Argument(
        metavar="THING...",
        help="Objects: NAME:path, a table of targets, a dataset, or a run NAME@NUMBER.",
    ),
]
SHOWN_ROWS = 20


@app.command()
def stage(
    things: Things,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until all have come.")] = False,
    lifetime_s: Annotated[
        float | None,
        time_option(
            "--lifetime",
            least_s=1.0,
            help="Time that objects stay on disk; else as set for the store, or 24h.",
        ),
    ] = None,
    patience_s: Annotated[
        float | None,
        time_option(
            "--patience",
            help="Time without any progress after which waiting ends; else no limit in the queue, "
            "24h while a tape is read.",
        ),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Ask for objects on tape, ordered by medium and position. Each is asked for once."""
    from swathe.datasets.tape_names import tape_names
    from swathe.stores import stage_objects

    outcome = stage_objects(
        tape_names(things),
        lifetime_s=lifetime_s,
        wait=wait,
        patience_s=patience_s,
        report=None if quiet or as_json else _Report(),
    )
    if as_json:
        files = [_record(file) for file in outcome.files]
        print_json({"files": files, "faults": outcome.faults})
    else:
        print_text(_counts_text(outcome.files))
        for name, reason in list(outcome.faults.items())[:SHOWN_ROWS]:
            print_text(f"  {name}: {reason}", err=True)
        if len(outcome.faults) > SHOWN_ROWS:
            typer.echo(f"  and {len(outcome.faults) - SHOWN_ROWS:,} more, see --json", err=True)
    if outcome.faults:
        raise typer.Exit(1)


@app.command()
def status(
    store: Annotated[
        str | None, typer.Argument(metavar="[STORE]", help="Store; by default all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what is to come: since when it is queued, its place, the rate, the earliest end."""
    from swathe.stores import tape_status

    statuses = tape_status(store)
    if as_json:
        print_json({"stores": [_status_record(each) for each in statuses]})
        return
    if not statuses:
        typer.echo("no store is staged; see: swathe store add --help", err=True)
    for each in statuses:
        _show(each)


@app.command()
def release(
    things: Things,
    of_all: Annotated[
        bool, typer.Option("--all", help="Release those that others need, too.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Release objects, so that they may leave the disk; requests that are to come are cancelled."""
    from swathe.datasets.tape_names import tape_names
    from swathe.stores import release_objects

    names = [thing for thing in things if thing.endswith(":")]
    names += tape_names([thing for thing in things if not thing.endswith(":")])
    count = release_objects(names, of_all=of_all)
    if as_json:
        print_json({"released": count})
    else:
        typer.echo(f"released: {count_text(count, 'object')}")


@app.command()
def evict(things: Things, as_json: Json = False) -> None:
    """Remove objects that nobody has pinned from disk, or from a cache. Those on tape stay."""
    from swathe.datasets.tape_names import tape_names
    from swathe.stores import evict_objects

    names = tape_names(things)
    pins = evict_objects(names)
    count = len(names) - len(pins)
    if as_json:
        print_json({"evicted": count, "pinned": pins})
    else:
        typer.echo(f"evicted: {count_text(count, 'object')}")
        for name, reason in list(pins.items())[:SHOWN_ROWS]:
            print_text(f"  {name}: {reason}", err=True)
        if len(pins) > SHOWN_ROWS:
            typer.echo(f"  and {len(pins) - SHOWN_ROWS:,} more, see --json", err=True)
    if pins:
        raise typer.Exit(1)


class _Report:
    """Prints the counts of a store while it is waited for, when they change."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, files: list[StageFile]) -> None:
        """Print a line to standard error, if it differs from the last."""
        text = _counts_text(files)
        if text != self._last:
            self._last = text
            print_text(text, err=True)


def _counts_text(files: list[StageFile]) -> str:
    counts = Counter(file.state for file in files)
    names = {"waiting": "not sent yet", "active": "being read", "disk": "on disk"}
    texts = [f"{number:,} {names.get(state, state)}" for state, number in counts.items()]
    store = files[0].store if files else ""
    return f"{store}: {', '.join(texts)}" if texts else "nothing was asked for"


def _show(of_store: TapeStatus) -> None:
    pending = [file for file in of_store.files if file.state in IN_PROGRESS]
    print_text(_counts_text(of_store.files) if of_store.files else f"{of_store.store}: idle")
    if of_store.fault is not None:
        print_text(f"  as known before: {of_store.fault}", err=True)
    if of_store.parts is not None:
        print_text(f"  measured: {_parts_text(of_store.parts)}")
    if not pending:
        return
    rate = of_store.bytes_per_s
    rate_words = "unknown" if rate is None else rate_text(rate)
    left = of_store.left_bytes
    left_words = "unknown" if left is None else size_text(left)
    print_text(f"  to come: {left_words}, rate {rate_words}, earliest end {_end_text(of_store)}")
    print_table(
        ("object", "state", "queued since", "place", "medium", "size", "reason"),
        (
            [
                *(file.path, file.state, moment_text(file.began_at)),
                "unknown" if file.place is None else str(file.place),
                file.medium or "unknown",
                "unknown" if file.bytes is None else size_text(file.bytes),
                file.reason or "",
            ]
            for file in pending[:SHOWN_ROWS]
        ),
    )
    if len(pending) > SHOWN_ROWS:
        typer.echo(f"  and {len(pending) - SHOWN_ROWS:,} more, see --json")


def _parts_text(parts: StageParts) -> str:
    rate = parts.bytes_per_s
    return (
        f"{seconds_text(parts.mount_s)} for each medium, {seconds_text(parts.position_s)} for each "
        f"object, {'rate unknown' if rate is None else rate_text(rate)}"
    )


def _end_text(of_store: TapeStatus) -> str:
    if of_store.earliest_s is None:
        return "unknown"
    end = datetime.now(UTC) + timedelta(seconds=of_store.earliest_s)
    return f"{moment_text(end)} (in {seconds_text(of_store.earliest_s)})"


def _status_record(of_store: TapeStatus) -> dict[str, Any]:
    return {**asdict(of_store), "files": [_record(file) for file in of_store.files]}


def _record(file: StageFile) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in asdict(file).items()
    }
