"""Cuts from striped frames, beside the same from one server with the sum of the bandwidth.

There are five servers, one of them of parity: nginx (`wide`), and block servers (`blocks`), which
verify what they send. The one server is nginx. The frames of a sample survey are copied under new
names until there are enough. Each store is probed as a user does it. The cuts run in a new process
each time, without cached headers, from both stores in turn.
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
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import swathe
from harness import HEIGHT, WIDTH, survey
from links import FOLDER, Link, probe
from stripe_lab import PROBE, RATE, RTT_MS, Rows, declare_stripe, serve, serve_folders

SERVERS = 5
SIDE = 100
DIFFERENT = 20
"""Frames of the survey."""
CLIENT = """
import json, sys, time
import swathe
order = json.load(sys.stdin)
swathe.cut(order["warm_up"], box=(0, 0, 16, 16))
began = time.perf_counter()
manifest = swathe.cut_many(order["targets"], order["output"], progress=False)
seconds = time.perf_counter() - began
faults = [str(row["reason"]) for row in manifest if row["status"] != "ok"]
moved = int(manifest.meta["bytes_moved"])
print(json.dumps({"seconds": seconds, "bytes": moved, "faults": faults}))
"""


def compare_cuts(*, is_smoke: bool) -> Rows:
    """Cut from `wide:`, `blocks:` and `one:`, in turn."""
    frames, cuts, repeats = (4, 20, 1) if is_smoke else (200, 1000, 3)
    with ExitStack() as stack:
        roots, folders = serve_folders([RATE] * SERVERS, stack)
        whole, whole_folders = serve_folders([RATE * SERVERS], stack)
        names = copy_frames(frames, whole_folders[0])
        declare_stripe([str(folder) for folder in folders])
        swathe.stores.copy_objects(
            [str(whole_folders[0] / name) for name in names], "wide:", progress=False
        )
        declare_stripe(roots)
        copy_to_blocks(names, whole_folders[0], stack)
        swathe.stores.add("one", whole[0])
        servers = [f"{kind}{number}" for kind in ("disk", "block") for number in range(SERVERS)]
        for name in ("one", *servers):
            probe(Link("nginx", RTT_MS, label=name), PROBE, quick=True)
        sample = whole_folders[0] / names[0]
        times: dict[str, list[float]] = {"wide": [], "blocks": [], "one": []}
        moved = {}
        for _ in range(repeats):
            for name, seconds in times.items():
                took_s, moved[name] = cut_from(name, names, cuts, sample)
                seconds.append(took_s)
        median = {name: statistics.median(seconds) for name, seconds in times.items()}
        for name, middle_s in median.items():
            print(
                f"{name}: {cuts} cuts from {frames} frames in {middle_s:.2f} s, "
                f"{moved[name] / 1e6:.1f} MB",
                flush=True,
            )
            row = {"what": name, "cuts": cuts, "seconds": middle_s, "all": times[name]}
            yield {**row, "bytes": moved[name]}
        for name in ("wide", "blocks"):
            ratio = median[name] / median["one"]
            print(f"{name} beside one: {ratio:.3f} times as long", flush=True)
            yield {"what": f"{name} beside one", "ratio": ratio}


def copy_to_blocks(names: Sequence[str], folder: Path, stack: ExitStack) -> None:
    """Declare `blocks:` over block servers behind links, with copies of these frames."""
    linked = [serve("blocks", RATE, stack) for _ in range(SERVERS)]
    by_dav = [server.url.replace("http://", "dav://") for server in linked]
    declare_stripe(by_dav, "blocks", "block")
    swathe.stores.copy_objects([str(folder / name) for name in names], "blocks:", progress=False)
    for number in range(SERVERS):
        probed = str(folder / PROBE)
        swathe.stores.copy_objects([probed], f"block{number}:", progress=False)
    declare_stripe([server.link.url for server in linked], "blocks", "block")


def copy_frames(count: int, folder: Path) -> list[str]:
    """Copy `count` frames into a folder; return their names."""
    sample = sorted(survey(min(count, DIFFERENT)).glob("frame-*.fit"))
    names = [f"frame-{number + 1:06}.fit" for number in range(count)]
    for number, name in enumerate(names):
        shutil.copy(sample[number % len(sample)], folder / name)
    return names


def cut_from(store: str, names: Sequence[str], count: int, warm_up: Path) -> tuple[float, int]:
    """Cut at random from all frames, in a process of its own; return seconds and bytes read."""
    draw = random.Random(11)
    columns: dict[str, list[Any]] = {
        "file": [f"{store}:{draw.choice(names)}" for _ in range(count)],
        "x0": [draw.randrange(WIDTH - SIDE) for _ in range(count)],
        "y0": [draw.randrange(HEIGHT - SIDE) for _ in range(count)],
        "width": [SIDE] * count,
        "height": [SIDE] * count,
    }
    with tempfile.TemporaryDirectory(prefix="cuts-", dir=FOLDER) as place:
        order = {"targets": columns, "output": f"{place}/cuts.tar", "warm_up": str(warm_up)}
        done = subprocess.run(
            [sys.executable, "-c", CLIENT],
            input=json.dumps(order),
            env={**os.environ, "SWATHE_INDEX_DIR": f"{place}/index"},
            capture_output=True,
            text=True,
            timeout=600,
        )
    if done.returncode:
        raise RuntimeError(f"cuts from {store}: {done.stderr[-2000:]}")
    answer = json.loads(done.stdout)
    if answer["faults"]:
        raise RuntimeError(f"cuts from {store}: {answer['faults'][0]}")
    return answer["seconds"], answer["bytes"]
