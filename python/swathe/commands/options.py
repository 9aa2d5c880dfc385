"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Overwrite = Annotated[
    bool,
    # Read before the options that name files.
    typer.Option("--overwrite", is_eager=True, help="Replace files of the same name."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]


def planes_of(text: str | None) -> tuple[int, int] | None:
    """Read FIRST:LAST; whether there are such planes is told by whoever takes them.

    Raises:
        typer.BadParameter: where it is something else.
    """
    if text is None:
        return None
    first, colon, last = text.partition(":")
    if not (colon and first.strip().isdecimal() and last.strip().isdecimal()):
        raise typer.BadParameter(f"must be FIRST:LAST, not {text!r}", param_hint="--planes")
    return int(first), int(last)


def _plot_path(context: typer.Context, path: Path | None) -> Path | None:
    """Refuse what no plot can be written to before anything is measured."""
    if path is None:
        return None
    from swathe.measuring.plots import plot_path

    return plot_path(path, overwrite=context.params.get("overwrite", False))


# Of what measures.
Measured = Annotated[
    str, typer.Argument(metavar="STORE", help="Name of a store, NAME:path, URL or path.")
]
Seed = Annotated[int | None, typer.Option(min=0, help="Of the order of reads.")]
Plot = Annotated[
    Path | None,
    typer.Option(metavar="FILE", callback=_plot_path, help="Draw it: *.png, *.svg or *.html."),
]

# Of whoever takes part in a pool.
Certificates = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Made by `swathe pool init`; needed beyond loopback."),
]
