"""Ranged reads from stores in Python, beside a folder.

    python benches/python_stores.py [--smoke]

One object of 64 MiB lies in a folder, in an SQLite file, and in the memory of a store that a
package adds, whose `read` is a slice. Each range is read by a call of its own, in turns between the
stores, on one thread; a cut of 100 x 100 pixels would read 80 kB. Medians, opening not included.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from harness import options
from swathe import _swathe
from tests.support.memory_store import SCHEME, write_package

OBJECT_BYTES = 64 << 20
SIZES = (4 << 10, 80_000, 1 << 20, 8 << 20)


def main() -> None:
    """Print the microseconds of a read of each size from each store."""
    args = options(__doc__, []).parse_args()
    repeats, object_bytes = (5, 9 << 20) if args.smoke else (200, OBJECT_BYTES)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_package(folder, SCHEME, "tests.support.memory_store:MemoryStore")
        sys.path.append(name)
        roots = {
            "folder": f"file://{folder}",
            "sqlite": f"db:sqlite://{folder}/objects.db",
            "memory": f"{SCHEME}://bench",
        }
        entries = [{"name": name, "root": root, "options": {}} for name, root in roots.items()]
        stores = _swathe.Stores(json.dumps(entries))
        source = folder / "source"
        source.write_bytes(random.Random(1).randbytes(object_bytes))
        for name in roots:
            copy(stores, str(source), f"{name}:object")
        objects = {name: stores.open(f"{name}:object") for name in roots}
        for size in SIZES:
            measure(objects, size, repeats)


def copy(stores: _swathe.Stores, source: str, target: str) -> None:
    """Print the megabytes a second at which an object is written, read back and compared."""
    began = time.perf_counter()
    copies = _swathe.Copies([(source, None, target, True)], 1, stores)
    while (done := copies.poll(1.0)) is not None:
        if faults := [each.reason for each in done if each.kind]:
            raise RuntimeError(faults[0])
    rate = Path(source).stat().st_size / 1e6 / (time.perf_counter() - began)
    print(f"written and read back  {target:15} {rate:7.0f} MB/s")


def measure(objects: dict[str, _swathe.Source], size: int, repeats: int) -> None:
    """Print what a read of this size takes from each store, in turns."""
    draw = random.Random(size)
    times: dict[str, list[float]] = {name: [] for name in objects}
    for _ in range(repeats):
        for name, source in objects.items():
            start = draw.randrange(source.size - size)
            began = time.perf_counter()
            source.read(start, start + size)
            times[name].append((time.perf_counter() - began) * 1e6)
    for name, row in times.items():
        print(f"{size:9,} bytes  {name:8} {statistics.median(row):9.0f} us")


if __name__ == "__main__":
    main()
