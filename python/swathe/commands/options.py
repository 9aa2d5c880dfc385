"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]

# Of what measures.
Measured = Annotated[
    str, typer.Argument(metavar="STORE", help="Name of a store, NAME:path, URL or path.")
]
Seed = Annotated[int | None, typer.Option(min=0, help="Of the order of reads.")]
Plot = Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it: *.png, *.svg or *.html.")]

# Of whoever takes part in a pool.
Certificates = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Made by `swathe pool init`; needed beyond loopback."),
]
