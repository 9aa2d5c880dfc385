"""The command line: `python -m examples.astro3d`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from examples.astro3d.datasets import KINDS, settings
from examples.astro3d.simulation import Simulation
from examples.launch import add_options, launch
from swathe.core.errors import OptionError, SwatheError


def options() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = argparse.ArgumentParser(prog="examples.astro3d", description=__doc__)
    parser.add_argument("--cells", type=int, default=32, help="along each axis (default: 32)")
    parser.add_argument("--iterations", type=int, default=24, help="the last one (default: 24)")
    parser.add_argument("--every", type=int, default=6, help="iterations of a dump (default: 6)")
    parser.add_argument("--name", default="astro3d", help="name of the run (default: astro3d)")
    parser.add_argument("--settings", type=Path, metavar="FILE", help="as run.toml")
    parser.add_argument(
        "--restart", nargs="?", const="", metavar="RUN",
        help="begin with the last checkpoint of a run (default: the newest that has one)",
    )  # fmt: skip
    parser.add_argument("--wait", action="store_true", help="wait for each dump")
    parser.add_argument(
        "--print-settings", metavar="LOCATIONS", nargs="?", const="",
        help="print a run.toml and end; LOCATIONS as analysis=localdisk,restart=remotetape",
    )  # fmt: skip
    add_options(parser)
    return parser


def main() -> int:
    """Run the application; return the exit code."""
    parser = options()
    words = parser.parse_args()
    if min(words.cells, words.every, words.ranks) < 1 or words.iterations < 0:
        parser.error("cells, every and ranks: expected 1 or more; iterations: expected 0 or more")
    if words.print_settings is not None:
        try:
            locations = locations_of(words.print_settings)
        except OptionError as error:
            parser.error(str(error))
        table = settings(
            words.cells, words.iterations, words.every, words.ranks, locations, words.name
        )
        print("\n".join(toml_lines(table)))
        return 0
    simulation = Simulation(
        words.cells, words.iterations, words.every, words.name, words.settings, words.restart,
        words.wait,
    )  # fmt: skip
    try:
        outcomes = launch(simulation.run, words)
    except (SwatheError, ArithmeticError) as error:
        print(f"astro3d: {error}", file=sys.stderr)
        return 1
    first = outcomes[0]
    if first.state.grid.ranks.rank == 0:
        print(
            f"{first.label}: iterations {first.first} to {words.iterations}, "
            f"{first.time_units:.4g} units of time; {first.total_s:.1f} s in all: computing "
            f"{first.computing_s:.1f} s, writing {first.writing_s:.1f} s"
        )
    return 0


def locations_of(text: str) -> dict[str, str]:
    """Return the locations of kinds of arrays, as `analysis=localdisk,restart=remotetape`.

    Raises:
        OptionError: If it is no such list.
    """
    locations = {}
    for each in filter(None, text.split(",")):
        kind, _, location = each.partition("=")
        if kind not in KINDS or not location:
            raise OptionError(
                f"--print-settings: expected KIND=LOCATION with a kind of {', '.join(KINDS)}, "
                f"found {each!r:.60}"
            )
        locations[kind] = location
    return locations


def toml_lines(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a file of settings."""
    for key in ("name", "iterations", "ranks"):
        yield f"{key} = {json.dumps(table[key])}"
    for name, array in table["arrays"].items():
        yield f"\n[arrays.{name}]"
        yield from (f"{key} = {json.dumps(value)}" for key, value in array.items())


if __name__ == "__main__":
    sys.exit(main())
