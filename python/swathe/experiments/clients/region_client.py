"""One client that cuts regions, in a process of its own: rate and cost.

It reads an order as JSON from standard input and prints its counts. Regions are cut into memory one
at a time, or as one list by `cut_many` on one thread.
"""

from __future__ import annotations

import json
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from swathe import _swathe
from swathe.cutting.many import cut_many
from swathe.cutting.one import cut
from swathe.experiments.clients.frames_in_store import take_over


def work(order: dict[str, Any]) -> dict[str, Any]:
    """Execute an order: `way`, `regions` (object and box of each), `budget_s`, `scratch`."""
    bytes_before, read, cpu = _swathe.received_bytes(), read_bytes(), cpu_s()
    start_s = time.perf_counter()
    if order["way"] == "one":
        count, pixels = one_by_one(order["regions"], start_s + order["budget_s"])
        wall_s, spent_cpu_s = time.perf_counter() - start_s, cpu_s() - cpu
        traffic = _swathe.received_bytes() - bytes_before
    else:
        count, pixels, traffic = together(order["regions"], Path(order["scratch"]))
        wall_s, spent_cpu_s = time.perf_counter() - start_s, cpu_s() - cpu
    after = read_bytes()
    return {
        "done": count,
        "pixels": pixels,
        "moved": traffic,
        "read": None if read is None or after is None else after - read,
        "wall_s": wall_s,
        "cpu_s": spent_cpu_s,
    }


def one_by_one(regions: list[tuple[str, list[int]]], limit: float) -> tuple[int, int]:
    """Cut regions one by one until a time limit; return their number and pixels."""
    count = pixels = 0
    for name, (x0, y0, width, height) in regions:
        if count and time.perf_counter() > limit:
            break
        cut(name, box=(x0, y0, width, height)).to_bytes()
        count += 1
        pixels += width * height
    return count, pixels


def together(regions: list[tuple[str, list[int]]], scratch: Path) -> tuple[int, int, int]:
    """Cut all regions as one list; return their number, pixels, and bytes moved."""
    columns = {
        "file": [name for name, _ in regions],
        **{
            name: [box[at] for _, box in regions]
            for at, name in enumerate(("x0", "y0", "width", "height"))
        },
    }
    folder = tempfile.mkdtemp(dir=scratch)
    manifest = cut_many(columns, folder, threads=1, progress=False)
    shutil.rmtree(folder)
    bad = [str(row["reason"]) for row in manifest if row["status"] != "ok"]
    if bad:
        raise OSError(bad[0])
    pixels = sum(width * height for _, (_, _, width, height) in regions)
    return len(regions), pixels, int(manifest.meta["bytes_moved"])


def read_bytes() -> int | None:
    """Return the bytes this process has read from files, from the kernel; `None` if unavailable."""
    try:
        text = Path("/proc/self/io").read_text()
    except OSError:
        return None
    return int(text.partition("rchar: ")[2].split()[0])


def cpu_s() -> float:
    """Return the CPU seconds of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Execute the order, after one cut that is not counted."""
    order = json.load(sys.stdin)
    take_over(order)
    Path(order["scratch"]).mkdir(parents=True, exist_ok=True)
    warm_up = order["warm_up"]
    one_by_one([(warm_up, [0, 0, 16, 16])], 0.0)
    if order["way"] == "many":
        together([(warm_up, [0, 0, 16, 16])], Path(order["scratch"]))
    json.dump(work(order), sys.stdout)


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
