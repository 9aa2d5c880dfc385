"""Predicted and actual seconds of lists of targets in each format, on this host.

    python benches/format_predictions.py [--smoke] [--only unmeasured]

Each list is cut into files of the format of its source. Each file is new, and no earlier call
corrects its prediction. `measured` is after a quick measurement of the host.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import swathe
from harness import options, save, work_folder
from swathe.catalog import Catalog, this_host
from swathe.costs.probing.host import measure_host
from tests.support.array_lists import write_cases

COUNTS = (20, 60)
"""Targets of the lists of each file, in turn."""
SMALL_COUNTS = (2, 3)
PARTS = ("unmeasured", "measured")
Row = tuple[str, int, float, float, float, float]
"""Array, targets, predicted seconds, their interval, actual seconds."""


def rows_of(folder: Path, counts: tuple[int, int]) -> list[Row]:
    """Predict and cut a list of each kind of array.

    Raises:
        RuntimeError: If a cut fails, or no library of a format is installed.
    """
    rows: list[Row] = []
    for at, case in enumerate(write_cases(folder)):
        targets = case.targets(counts[at % len(counts)], at)
        predicted = swathe.predict(targets)
        manifest = swathe.cut_many(targets, folder / f"o{at}", progress=False)
        if predicted.faults or manifest.meta["ok"] != len(targets["file"]):
            raise RuntimeError(
                f"{case.name}: expected {len(targets['file'])} cuts, found {manifest.meta['ok']}; "
                f"faults: {predicted.faults}"
            )
        times = (predicted.median_s, *predicted.interval_s, manifest.meta["actual_s"])
        rows.append((case.name, len(targets["file"]), *times))
    if not rows:
        raise RuntimeError("expected h5py, tifffile, zarr or asdf, found none of them")
    return rows


def main() -> None:
    """Print the table of each part, and how many times are in their interval."""
    parser = options(__doc__, PARTS)
    words = parser.parse_args()
    results = {}
    for part in words.only or PARTS:
        with work_folder() as folder:
            if part == "measured":
                with Catalog.open() as catalog:
                    catalog.put_compute(this_host(), measure_host(quick=True), datetime.now(UTC))
            rows = results[part] = rows_of(folder, SMALL_COUNTS if words.smoke else COUNTS)
        inside = sum(low <= took <= high for _, _, _, low, high, took in rows)
        print(f"{part} host, load {os.getloadavg()[0]:.1f}: {inside} of {len(rows)} in interval")
        print("| array, chunks | targets | predicted | interval | took |")
        print("|" + " --- |" * 5)
        for name, count, median, low, high, took in rows:
            print(f"| {name} | {count} | {median:.2f} | {low:.2f} to {high:.2f} | {took:.2f} |")
    save("format-predictions", results)


if __name__ == "__main__":
    main()
