"""The command `swathe buffer`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer


def buffer(
    store: Annotated[
        str, typer.Argument(metavar="NAME_OR_URL", help="A store, a folder or one object.")
    ],
    object_: Annotated[str | None, typer.Option("--object", help="What to read.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="How often with each size.")] = 7,
    budget_s: Annotated[float, typer.Option(min=0.1, help="Seconds it may take.")] = 30.0,
    budget_mb: Annotated[float, typer.Option(min=0.1, help="MB it may move.")] = 1000.0,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the order of reads.")] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it: *.png or *.html.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Find the best size of a read buffer: an object read with 1 KiB to 16 MiB at a time."""
    from swathe.buffer import study_buffer

    study = study_buffer(
        store,
        object_url=object_,
        repeats=repeats,
        budget_s=budget_s,
        budget_bytes=round(budget_mb * 1e6),
        seed=seed,
        tell=lambda text: typer.echo(text, err=True),
    )
    if plot is not None:
        from swathe.plots import buffer_figure, save

        save(buffer_figure(study, f"{study.object} from {study.host}"), plot)
    table = study.table()
    if as_json:
        rows = [dict(zip(table.colnames, map(_plain, row), strict=True)) for row in table]
        sys.stdout.write(json.dumps({**study.summary(), "rows": rows}) + "\n")
        return
    from rich.console import Console
    from rich.table import Table

    shown = Table("buffer, bytes", "s", "80 %", "MB/s", "", title=f"{study.object}")
    for row in table:
        mark = "chosen" if row["buffer"] == study.chosen else "within 5 %" if row["within"] else ""
        shown.add_row(
            f"{row['buffer']}",
            f"{row['seconds']:.4g}",
            f"{row['low']:.4g} to {row['high']:.4g}",
            f"{row['rate'] / 1e6:.4g}",
            mark,
        )
    Console().print(shown)
    typer.echo(
        f"best {study.best}, within 5 %: {study.low} to {study.high}, chosen {study.chosen} bytes; "
        f"{study.bytes_moved / 1e6:.0f} MB in {study.took_s:.1f} s ({study.cache})"
    )


def _plain(value: object) -> object:
    """A number or truth value as JSON has it."""
    return value.item() if hasattr(value, "item") else value
