"""The command `swathe demo`: a sample survey in a portal, or cuts out of one's own images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from swathe.cli.options import Json, Overwrite, Quiet
from swathe.cli.output import print_json


def demo(
    files: Annotated[
        list[str] | None,
        typer.Argument(help="FITS files to cut the centre out of, instead of the sample survey."),
    ] = None,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", help="Folder for survey and results."),
    ] = Path("swathe-demo"),
    frames: Annotated[int, typer.Option(min=1, help="Number of frames of the survey.")] = 60,
    targets: Annotated[int, typer.Option(min=1, help="Number of targets of the job.")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the survey.")] = 1,
    side: Annotated[int, typer.Option(min=1, help="Side of cuts out of FILES, pixels.")] = 200,
    once: Annotated[bool, typer.Option("--once", help="Exit when the job has ended.")] = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Show a portal with a sample survey and a job of 500 targets, until Ctrl-C.

    With FILES, cut the centre out of each of their images.
    """
    from swathe.core.errors import SettingsError

    def tell(text: str) -> None:
        typer.echo(text, err=as_json)

    if files:
        from swathe.cli.demonstration import cut_files

        paths, faults = cut_files(files, side, output / "cutouts", overwrite, tell)
        if as_json:
            print_json({"cutouts": [str(path) for path in paths], "faults": faults})
        for text in faults.values():
            typer.echo(f"swathe: {text}", err=True)
        raise typer.Exit(1 if faults else 0)
    try:
        import uvicorn  # noqa: F401 - checks that it is installed

        from swathe.cli.demonstration import Demonstration
    except ImportError as error:
        raise SettingsError(f"{error}; try: pip install 'swathe[portal]'") from error
    sizes = {"frames": frames, "targets": targets, "seed": seed}
    demonstration = Demonstration(
        output, **sizes, once=once, overwrite=overwrite, progress=not quiet, tell=tell
    )
    is_complete = demonstration.run(print_json if as_json else lambda _result: None)
    raise typer.Exit(0 if is_complete else 1)
