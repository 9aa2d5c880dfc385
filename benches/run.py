"""Measures Swathe against the floor of the machine and against its peers.

    python benches/run.py [--only NAME] [--repeats N] [--smoke]

Prints a table and writes build/bench/results.json (smoke.json with --smoke). What each
comparison compares is in comparisons.py. The C programs need a C compiler, and libcfitsio-dev
for cfitsio; what is not installed is left out with a note.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from comparisons import COMPARISONS, Bench
from contenders import DISTINCT_FRAMES, ContenderError, Figure, Inputs, Runner, table
from harness import FRAMES, HERE, machine, options, save, survey, work_folder
from swathe.core.errors import NotFoundError
from swathe.experiments.single_experiment import build_cfitsio

FULL_BYTES, SMOKE_BYTES = 9 * 10**9, 10**9


def build(folder: Path) -> None:
    """Compile the C programs; one that does not compile is reported and left out."""
    command = ["cc", "-O2", "-Wall", "-Wextra", "-o", str(folder / "floor")]
    try:
        subprocess.run([*command, str(HERE / "floor.c"), "-pthread"], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"floor: left out: {error}", file=sys.stderr)
    try:
        build_cfitsio(folder)
    except NotFoundError as error:
        print(f"cfitsio: left out: {error}", file=sys.stderr)


def measure(bench: Bench, names: list[str]) -> list[Figure]:
    """Run the comparisons by name, saying which one is under way."""
    figures = []
    for name in names:
        start = time.perf_counter()
        print(f"{name} ...", end="", file=sys.stderr, flush=True)
        figures += COMPARISONS[name](bench)
        print(f" {time.perf_counter() - start:.1f} s", file=sys.stderr)
    return figures


def main() -> int:
    """Run from the command line."""
    parser = options(__doc__, list(COMPARISONS))
    parser.add_argument("--repeats", type=int, help="rounds (5; 1 with --smoke)")
    args = parser.parse_args()
    print("\n".join(f"{name}: {value}" for name, value in machine().items()))
    frames = 3 if args.smoke else FRAMES
    repeats = args.repeats or (1 if args.smoke else 5)
    with work_folder(SMOKE_BYTES if args.smoke else FULL_BYTES) as work:
        build(work)
        inputs = Inputs(survey(frames), work / "data", min(frames, DISTINCT_FRAMES))
        bench = Bench(inputs, Runner(work, repeats), args.smoke)
        try:
            figures = measure(bench, args.only or list(COMPARISONS))
        except ContenderError as error:
            print(f"\nswathe failed: {error}", file=sys.stderr)
            return 1
    print(f"\nMedians of {repeats} rounds, one cut (or file, or start) each:\n\n{table(figures)}")
    save("smoke" if args.smoke else "results", [figure.as_json() for figure in figures])
    if args.smoke:
        print("\nA smoke test: everything ran, the figures mean nothing.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
