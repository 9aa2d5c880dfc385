"""The command `swathe sample`: make a synthetic survey, swaths, or a model of a tape library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from swathe.cli.options import Json, Overwrite, Quiet
from swathe.cli.output import print_json, print_text


def sample(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Folder for the survey; or the word `swaths` or `tape`, and a folder for these."
        ),
    ],
    other_folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[OTHER_FOLDER]",
            help="After `swaths`: folder for them. After `tape`: new folder for the library.",
        ),
    ] = None,
    frames: Annotated[
        int,
        typer.Option(min=1, max=999_999, help="Number of frames, of a survey 12 MB each."),
    ] = 60,
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=(1 << 63) - 1, help="Random seed; the same seed gives the same files."
        ),
    ] = 1,
    targets: Annotated[
        int,
        typer.Option(min=1, max=10_000_000, help="Number of rows of targets.csv of the survey."),
    ] = 2000,
    days: Annotated[int, typer.Option(min=1, max=366, help="Number of days of swaths.")] = 7,
    granules: Annotated[
        int,
        typer.Option(
            min=1, max=288, help="Granules of each product a day, for swaths: 4 to 8 MB each."
        ),
    ] = 4,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Make a small SDSS-like survey for trials, with a table of targets.

    With `swaths FOLDER`, make granules like MOD11_L2, MOD06_L2 and MOD05_L2 of MODIS in HDF-EOS2.
    With `tape FOLDER`, make a model of a tape library: times are a twentieth of real ones.
    """
    if other_folder is not None:
        if str(folder) == "tape":
            _sample_tape(other_folder, frames, seed, as_json)
        elif str(folder) == "swaths":
            from swathe.core.sample_granules import PRODUCTS, sample_swaths

            sample_swaths(
                other_folder, days=days, granules=granules, seed=seed, overwrite=overwrite,
                progress=not quiet,
            )  # fmt: skip
            number = days * granules
            if as_json:
                names = {"folder": str(other_folder), "products": list(PRODUCTS)}
                print_json(names | {"days": days, "granules": number, "seed": seed})
            else:
                print_text(f"{other_folder}: {number} granules each of {', '.join(PRODUCTS)}")
                print_text(f"  next: swathe store add swaths {other_folder}")
                first = next(iter(PRODUCTS))
                print_text(f"        swathe dataset add {first} swaths:{first}")
                print_text(f"        swathe find {first} --bounds -20 -40 60 40")
        else:
            message = f"expected one folder, swaths FOLDER or tape FOLDER, found {folder}"
            raise typer.BadParameter(message)
        return
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


def _sample_tape(folder: Path, frames: int, seed: int, as_json: bool) -> None:
    from swathe.stores.staging.model_library import sample_library

    library = sample_library(folder, objects=frames, seed=seed)
    if as_json:
        names = {"folder": library.folder, "disk": library.disk, "command": library.program}
        print_json({name: str(path) for name, path in names.items()} | {"objects": frames})
        return
    print_text(f"{library.folder}: {frames} objects on tape; use it as a store:")
    print_text(
        f"  swathe store add tape {library.disk} --tier tape --staging command --command "
        f"{library.program}"
    )
