"""Swathe's side of the benchmarks, each in a fresh process.

    python benches/subject.py batch LIST OUTDIR [--threads N] [--output ARCHIVE] [--warmup FILE]
    python benches/subject.py single LIST OUTDIR [--warmup FILE]
    python benches/subject.py calls LIST OUTDIR

`batch` and `single` print the seconds taken; with `--check` they also leave a file that `cut`
wrote. Imports are not timed, nor is one cut from a plain file outside the list, which loads
what Python loads late. The environment's SWATHE_INDEX_DIR names the folder of the kept index.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from astropy.io import fits
from astropy.table import Table

import swathe
from contenders import Target, read_list

COLUMNS = ("file", "x0", "y0", "width", "height", "id")


def batch(targets: Sequence[Target], out: Path, threads: int) -> float:
    """Seconds of one `cut_many` over the list, its manifest included."""
    table = as_table(targets)
    start = time.perf_counter()
    manifest = cut_many(table, out, threads)
    seconds = time.perf_counter() - start
    stop_unless_ok(manifest, len(targets))
    return seconds


def single(targets: Sequence[Target]) -> float:
    """Seconds of one `cut` with its pixels for each target."""
    start = time.perf_counter()
    for target in targets:
        pixels = swathe.cut(str(target.file), box=box(target)).data
        assert pixels.shape == (target.height, target.width)
    return time.perf_counter() - start


def calls(targets: Sequence[Target]) -> dict[str, float]:
    """Median seconds of `swathe.cut` and of the native calls below it, taken in turn."""
    from swathe import _swathe

    # Or what the first has decoded would be there for the second; read at the first cut.
    os.environ["SWATHE_MEMORY_BYTES"] = "0"
    seconds: dict[str, list[float]] = {"cut": [], "native": []}
    for target in targets:
        start = time.perf_counter()
        swathe.cut(str(target.file), box=box(target))
        seconds["cut"].append(time.perf_counter() - start)
        first, end = corners(target)
        native: Any = _swathe.open(str(target.file))
        hdu = native.find(None)
        start = time.perf_counter()
        native.cut(hdu, first, end, "trim")
        seconds["native"].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def check(target: Target, out: Path) -> None:
    """Cut once and write the cut, for the runner to compare; stop if `data` is not in it."""
    cutout = swathe.cut(str(target.file), box=box(target))
    written = out / "check-of-cut.fits"
    cutout.write(str(written))
    if not np.array_equal(cutout.data, fits.getdata(written)):
        sys.exit(f"{target.file}: cut().data is not what write() wrote")


def as_table(targets: Sequence[Target]) -> Table:
    """Targets as `cut_many` takes them."""
    rows = [[getattr(target, name) for target in targets] for name in COLUMNS]
    rows[0] = [str(file) for file in rows[0]]
    return Table(rows, names=COLUMNS)


def cut_many(table: Table, out: Path, threads: int) -> Table:
    """Batch as every benchmark runs it."""
    return swathe.cut_many(table, output=out, mode="trim", threads=threads, progress=False)


def stop_unless_ok(manifest: Table, expected: int) -> None:
    """Stop with the first row that is not ok."""
    bad = [row for row in manifest if str(row["status"]) != "ok"]
    if bad or len(manifest) != expected:
        detail = f"; the first: {dict(bad[0])}" if bad else ""
        sys.exit(f"{len(bad)} of {len(manifest)} cuts not ok, {expected} expected{detail}")


def box(target: Target) -> tuple[int, int, int, int]:
    """Box as `cut` takes it: x0, y0, width, height."""
    return target.x0, target.y0, target.width, target.height


def corners(target: Target) -> tuple[list[int], list[int]]:
    """Start and stop in FITS axis order, as the native object takes them."""
    end = [target.x0 + target.width, target.y0 + target.height]
    return [target.x0, target.y0], end


def warm_up(file: Path, out: Path) -> None:
    """Cut once through both ways from a file outside the list."""
    target = Target(0, 0, 10, 10, 0, 0, 0, "warm-up", file)
    swathe.cut(str(file), box=box(target)).data.sum()
    stop_unless_ok(cut_many(as_table([target]), out / "warm-up", 1), 1)


def main() -> None:
    """Run one of the modes and print what it measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("mode", choices=("batch", "single", "calls"))
    parser.add_argument("list", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--warmup", type=Path)
    parser.add_argument("--output", default="", help="name of an archive in OUTDIR (batch)")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    targets = read_list(args.list)
    if args.warmup:
        with tempfile.TemporaryDirectory(dir=args.out.parent) as folder:
            warm_up(args.warmup, Path(folder))
    if args.check:
        check(targets[0], args.out)
    if args.mode == "batch":
        print(f"{batch(targets, args.out / args.output, args.threads):.6f}")
    elif args.mode == "single":
        print(f"{single(targets):.6f}")
    else:
        print(json.dumps(calls(targets)))


if __name__ == "__main__":
    main()
