"""Measures Swathe against the floor of the machine and against its peers.

    python benches/run.py [--only NAME] [--repeats N] [--smoke]

Prints a table and writes build/bench/results.json (smoke.json with --smoke). What each
comparison compares is in comparisons.py. The C programs need a C compiler, and libcfitsio-dev
for cfitsio; what is not installed is left out with a note.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from comparisons import COMPARISONS, Bench
from inputs import DISTINCT_FRAMES, Inputs
from report import Figure, machine, table, write_json
from timing import ContenderError, Runner

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "bench"
MEMORY_DISK = Path("/dev/shm")
FULL_BYTES, SMOKE_BYTES = 9 * 10**9, 10**9
LIBRARIES = {"floor": ["-pthread"], "cfitsio": ["-lcfitsio", "-lm"]}


def build() -> dict[str, Path]:
    """Compile the C programs; one that does not compile is reported and left out."""
    BUILD.mkdir(parents=True, exist_ok=True)
    programs = {}
    for name, libraries in LIBRARIES.items():
        out = BUILD / name
        command = ["cc", "-O2", "-Wall", "-Wextra", "-o", str(out)]
        source = str(HERE / f"{name}.c")
        done = subprocess.run([*command, source, *libraries], capture_output=True, text=True)
        if done.returncode:
            print(f"{name}.c does not compile, left out:\n{done.stderr}", file=sys.stderr)
        else:
            programs[name] = out
    return programs


@contextmanager
def work_folder(needed_bytes: int) -> Iterator[Path]:
    """Folder on the memory disk if it and the memory have room, else under build/."""
    parent = MEMORY_DISK if room(MEMORY_DISK) >= needed_bytes else BUILD
    with tempfile.TemporaryDirectory(prefix="swathe-bench-", dir=parent) as folder:
        kind = "a memory disk" if parent == MEMORY_DISK else "NOT a memory disk"
        print(f"work folder: {folder} ({kind})")
        yield Path(folder)


def room(disk: Path) -> int:
    """Bytes a memory disk can take: its own limit and the memory that is free."""
    meminfo = Path("/proc/meminfo")
    if not disk.is_dir() or not meminfo.exists():
        return 0
    lines = meminfo.read_text().splitlines()
    available = next(line for line in lines if line.startswith("MemAvailable"))
    return min(shutil.disk_usage(disk).free, int(available.split()[1]) * 1024)


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
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = f"one of {', '.join(COMPARISONS)}; may be repeated"
    parser.add_argument("--only", action="append", choices=COMPARISONS, metavar="NAME", help=names)
    parser.add_argument("--repeats", type=int, help="rounds (5; 1 with --smoke)")
    parser.add_argument("--smoke", action="store_true", help="everything tiny, to see it work")
    args = parser.parse_args()
    facts = machine()
    print("\n".join(f"{name}: {value}" for name, value in facts.items()))
    frames = 2 if args.smoke else DISTINCT_FRAMES
    repeats = args.repeats or (1 if args.smoke else 5)
    with work_folder(SMOKE_BYTES if args.smoke else FULL_BYTES) as work:
        inputs = Inputs(BUILD / "sample", work / "data", frames)
        bench = Bench(inputs, Runner(work, repeats), build(), args.smoke)
        try:
            figures = measure(bench, args.only or list(COMPARISONS))
        except ContenderError as error:
            print(f"\nswathe failed: {error}", file=sys.stderr)
            return 1
    print(f"\nMedians of {repeats} rounds, one cut (or file, or start) each:\n\n{table(figures)}")
    write_json(BUILD / ("smoke.json" if args.smoke else "results.json"), facts, figures)
    if args.smoke:
        print("\nA smoke test: everything ran, the figures mean nothing.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
