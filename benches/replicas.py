"""How long a list takes that two stores share, when one of them slows or dies.

    python benches/replicas.py [--smoke]

Two nginx serve the same frames, each over a link of 10 ms and 10 MB/s. After a fifth of the bytes
of the first store its link slows to a tenth, or ends. "Alone" is the same list from the second
store. "Without moves" is the half of the first store alone, whose link slows at the same byte: the
time until the last target of a run that moves none. Prints the seconds of `cut_many` into null:,
and the rows of each store.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from astropy.io import fits

import swathe
from harness import options
from links import FOLDER, Link, reach, work

FRAMES, HEIGHT, WIDTH = 60, 300, 2048
SLOWER = 10
RATE = 10_000_000
REPEATS = 1


def targets(frames: list[str]) -> dict[str, list[Any]]:
    """Return one target of all of each frame."""
    box = {"x0": 0, "y0": 0, "width": WIDTH, "height": HEIGHT}
    return {"file": frames, **{name: [value] * len(frames) for name, value in box.items()}}


def cut(table: dict[str, list[Any]], stores: list[str]) -> tuple[float, dict[str, Any]]:
    """Cut the list; return the seconds and the head of the manifest."""
    begin = time.perf_counter()
    manifest = swathe.cut_many(table, "null:", stores=stores, progress=False)
    return time.perf_counter() - begin, manifest.meta


def case(name: str, sample: Path, frames: list[str]) -> float:
    """Run one case, with links of its own; return the seconds."""
    table = targets(frames)
    with ExitStack() as stack:
        links = [Link("nginx", 10, RATE, label=label) for label in ("one", "two")]
        one, _ = (stack.enter_context(reach(link, sample)) for link in links)
        stores = ["two"] if name == "alone" else ["one", "two"]
        swathe.predict(table, stores=["one", "two"])
        if name == "slow, without moves":
            table = {key: values[::2] for key, values in table.items()}
            stores = ["one"]
        bytes_first = len(frames) / 2 * HEIGHT * WIDTH * 2 / 5
        if name.startswith("slow"):
            one.act_after(bytes_first, lambda: one.set(shared_bytes_per_s=RATE // SLOWER))
        if name == "dead":
            one.act_after(bytes_first, one.process.kill)
        seconds, meta = cut(table, stores)
    counts = ", ".join(f"{key} {count}" for key, count in meta["stores"].items())
    print(f"{name:22} {seconds:6.2f} s   ok {meta['ok']:3}   {counts}", flush=True)
    return seconds


def main() -> None:
    """Run the benchmark."""
    args = options(__doc__).parse_args()
    seconds: dict[str, list[float]] = defaultdict(list)
    count = 6 if args.smoke else FRAMES
    with work():
        sample = FOLDER / "frames"
        sample.mkdir()
        frames = [f"{number}.fits" for number in range(count)]
        for number, frame in enumerate(frames):
            fits.writeto(sample / frame, np.full((HEIGHT, WIDTH), number, "i2"))
        for _ in range(1 if args.smoke else REPEATS):
            for name in ("alone", "steady", "slow", "slow, without moves", "dead"):
                seconds[name].append(case(name, sample, frames))
    for name, each in seconds.items():
        print(f"{name}: median {statistics.median(each):.2f} s")


if __name__ == "__main__":
    main()
