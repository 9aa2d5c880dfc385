"""The command line: `python -m examples.mse RUN DATASET`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from examples.launch import add_options, launch
from examples.mse import differences
from swathe.core.errors import SwatheError

if TYPE_CHECKING:
    from swathe.runs.writing.ranks import Ranks


def main() -> int:
    """Print the differences; return the exit code."""
    parser = argparse.ArgumentParser(prog="examples.mse", description=__doc__)
    parser.add_argument("run", help="NAME or NAME@NUMBER")
    parser.add_argument("array", help="name of the dataset")
    add_options(parser)
    words = parser.parse_args()

    def program(ranks: Ranks) -> None:
        for each in differences(words.run, words.array, ranks):
            if ranks.rank == 0:
                print(f"{each.first} {each.second} {each.mean:.9g}", flush=True)

    try:
        launch(program, words)
    except SwatheError as error:
        print(f"mse: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
