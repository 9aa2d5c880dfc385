"""The command `swathe sample`: make a synthetic survey."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from swathe.cli.options import Json, Overwrite, Quiet
from swathe.cli.output import print_json


def sample(
    folder: Annotated[Path, typer.Argument(help="Folder for the survey.")],
    frames: Annotated[
        int,
        typer.Option(min=1, max=999_999, help="Number of frames, 12 MB each in all four kinds."),
    ] = 60,
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=(1 << 63) - 1, help="Random seed; the same seed gives the same files."
        ),
    ] = 1,
    targets: Annotated[
        int, typer.Option(min=1, max=10_000_000, help="Number of rows of targets.csv.")
    ] = 2000,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Make a small SDSS-like survey for trials, with a table of targets."""
    from swathe.core import sample_survey

    table = sample_survey.sample(
        folder,
        frames=frames,
        seed=seed,
        targets=targets,
        overwrite=overwrite,
        progress=not quiet,
    )
    if as_json:
        print_json({"folder": str(folder), "frames": frames, "seed": seed, "targets": str(table)})
    else:
        typer.echo(f"{table}: {targets} targets on {frames} frames, each as .fit, .gz, .bz2, .fz")
