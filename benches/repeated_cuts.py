"""Cuts from one image, one after another, over a link: `swathe.cut` and cfitsio.

    python benches/repeated_cuts.py [--repeats N]

nginx serves a frame over 56 ms and 160 Mb/s. Ten and a hundred boxes of 100 x 100 are cut, each
series in a process of its own with nothing kept from before, after one cut from another frame
that imports and opens the connection. Without a cache, ranges are read for every cut. cfitsio
opens the image once, and so copies it once. Seconds a cut, the opening included.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TypeAlias

from harness import HEIGHT, WIDTH, options, survey
from links import FOLDER, Link, probe, reach, work
from swathe.experiments.single_experiment import build_cfitsio
from tests.support import servers

SIZE = 100
LINK = Link("nginx", 56, shared=20_000_000)
SERIES = (10, 100)
Boxes: TypeAlias = list[tuple[int, int]]
"""First column and row of each."""
SCRIPT = f"""
import json, sys, time
import swathe
store, boxes = sys.argv[1], json.loads(sys.argv[2])
swathe.cut(store + ":frame-000002.fit", box=(0, 0, 1, 1)).data.sum()
began = time.perf_counter()
for x, y in boxes:
    swathe.cut(store + ":frame-000001.fit", box=(x, y, {SIZE}, {SIZE})).data.sum()
print(time.perf_counter() - began)
"""


def main() -> None:
    """Print the milliseconds a cut of each way, median and all, and the bytes moved."""
    parser = options(__doc__, [])
    parser.add_argument("--repeats", type=int, default=5, help="series in each way (5)")
    args = parser.parse_args()
    with work(), tempfile.TemporaryDirectory() as folder:
        program = build_cfitsio(Path(folder))
        with reach(LINK, survey(2)) as proxy:
            probe(LINK)
            for count in SERIES[:1] if args.smoke else SERIES:
                measure(proxy, program, count, 1 if args.smoke else args.repeats)


def measure(proxy: servers.Proxy, program: Path, count: int, repeats: int) -> None:
    """Print what `count` cuts take in each way, in turns."""
    draw = random.Random(count)
    ways = {"Swathe": "4GB", "Swathe, no cache": "0", "cfitsio": ""}
    figures: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for _ in range(repeats):
        corners = [draw.randrange(WIDTH - SIZE) for _ in range(count)]
        boxes = [(x, draw.randrange(HEIGHT - SIZE)) for x in corners]
        for way, cache in ways.items():
            proxy.clear()
            cut = partial(in_process, cache) if cache else partial(by_cfitsio, program, proxy.url)
            seconds = cut(boxes)
            figures[way].append((seconds / count * 1e3, proxy.stats()["bytes_down"]))
    for way, rows in figures.items():
        times = sorted(ms for ms, _ in rows)
        traffic = statistics.median(traffic for _, traffic in rows)
        print(f"{count:4} cuts  {way:17} {statistics.median(times):7.1f} ms a cut "
              f"({times[0]:.1f} to {times[-1]:.1f})  {traffic / 1e6:6.2f} MB")  # fmt: skip


def in_process(cache: str, boxes: Boxes) -> float:
    """Seconds of a series in a fresh process."""
    for folder in ("index", "blocks"):
        shutil.rmtree(FOLDER / folder, ignore_errors=True)
    environment = os.environ | {
        "SWATHE_CACHE_BYTES": cache.replace("GB", "0" * 9),
        "SWATHE_CACHE_DIR": str(FOLDER / "blocks"),
    }
    command = [sys.executable, "-c", SCRIPT, LINK.id, json.dumps(boxes)]
    process = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    if process.returncode:
        raise RuntimeError(process.stderr)
    return float(process.stdout)


def by_cfitsio(program: Path, url: str, boxes: Boxes) -> float:
    """Seconds of the same by the C program, which opens the image once."""
    out = FOLDER / "cfitsio"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    lines = [f"{x} {y} {SIZE} {SIZE} {url}/frame-000001.fit" for x, y in boxes]
    began = time.perf_counter()
    subprocess.run(
        [program, "once", out, "600"],
        input="\n".join(lines) + "\n", text=True, capture_output=True, timeout=300, check=True,
    )  # fmt: skip
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
