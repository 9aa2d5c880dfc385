"""The command line: `python -m examples.volren RUN DATASET [STORE:PICTURES.zip]`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import swathe
from examples.launch import add_options, launch
from examples.volren.pictures import default_superfile, picture_name, superfile_of
from examples.volren.rendering import render
from swathe.core.errors import SwatheError
from swathe.operations.ray_casting import TransferFunction, View, png_of

if TYPE_CHECKING:
    from swathe.runs.writing.ranks import Ranks


def options() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = argparse.ArgumentParser(prog="examples.volren", description=__doc__)
    parser.add_argument("run", help="NAME or NAME@NUMBER")
    parser.add_argument("array", help="name of a dataset of bytes")
    parser.add_argument(
        "superfile", nargs="?",
        help="superfile of the pictures, STORE:path (default: beside the run, where portals look)",
    )  # fmt: skip
    parser.add_argument("--overwrite", action="store_true", help="replace the superfile")
    parser.add_argument("--azimuth", type=float, default=30.0, help="degrees (default: 30)")
    parser.add_argument("--elevation", type=float, default=20.0, help="degrees (default: 20)")
    parser.add_argument("--pixels", type=int, default=256, help="of a side (default: 256)")
    parser.add_argument("--step", type=float, default=0.5, help="in voxels (default: 0.5)")
    parser.add_argument("--opacity", type=float, default=0.05, help="of 255 (default: 0.05)")
    add_options(parser)
    return parser


def main() -> int:
    """Write a superfile with a picture of each dump; return the exit code."""
    parser = options()
    words = parser.parse_args()
    if not (1 <= words.pixels <= 8192 and words.step >= 0.01 and words.opacity > 0):
        parser.error("pixels: expected 1 to 8192; step: at least 0.01; opacity: more than 0")
    transfer = TransferFunction(words.opacity)

    def program(ranks: Ranks) -> None:
        run = swathe.open_run(words.run)
        dumps = run[words.array]
        name = words.superfile or default_superfile(run, words.array)
        with superfile_of(name, ranks, overwrite=words.overwrite) as superfile:
            for iteration, dump in dumps.items():
                view = View(dump.shape, words.azimuth, words.elevation, words.pixels, words.step)
                picture = render(dump, view, transfer, ranks)
                if superfile is not None and picture is not None:
                    superfile.add(picture_name(iteration), png_of(picture))
        if superfile is not None:
            print(name, flush=True)

    try:
        launch(program, words)
    except SwatheError as error:
        print(f"volren: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
