"""Cuts from striped frames, beside the same from one server with the sum of the bandwidth.

There are five servers, one of them of parity: nginx (`wide`), and block servers (`blocks`), which
verify what they send. The one server is nginx. Client, proxies and servers share the cores of this
machine: their CPU seconds are printed, and slower lines show what the lines alone allow. The frames
of a sample survey are copied under new names until there are enough. Each store is probed as a user
does it. The cuts run in a new process each time, without cached headers, from all stores in turn.
In the same turns curl sends the requests of `blocks` and `one`: what remains without our client.
"""

from __future__ import annotations

import json
import os
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
from harness import survey
from links import FOLDER, Link, header_bytes, probe
from stripe_floor import (
    race_curl,
    random_boxes,
    requests_of_files,
    requests_of_stripe,
    rows_by_frame,
)
from stripe_lab import PROBE, Rows, declare_stripe, serve, serve_folders, used_cpu_s

SERVERS = 5
SIDE = 100
DIFFERENT = 20
"""Frames of the survey."""
CLIENT = """
import json, sys, time
import swathe
order = json.load(sys.stdin)
swathe.cut(order["warm_up"], box=(0, 0, 16, 16))
began, began_cpu = time.perf_counter(), time.process_time()
manifest = swathe.cut_many(order["targets"], order["output"], progress=False)
seconds, cpu_s = time.perf_counter() - began, time.process_time() - began_cpu
faults = [str(row["reason"]) for row in manifest if row["status"] != "ok"]
moved, requests = int(manifest.meta["bytes_moved"]), int(manifest.meta["requests"])
row = {"seconds": seconds, "cpu_s": cpu_s, "bytes": moved, "requests": requests}
print(json.dumps({"row": row, "faults": faults}))
"""


def compare_cuts(rate: int, rtt_ms: int, *, is_smoke: bool) -> Rows:
    """Cut from `wide:`, `blocks:` and `one:`, in turn.

    Args:
        rate: of the link of each of the five servers, in bytes per second; `one` has their sum.
        rtt_ms: round trip of all links.
        is_smoke: whether to make a few cuts only.
    """
    frames, cuts, repeats = (4, 20, 1) if is_smoke else (200, 1000, 5)
    with ExitStack() as stack:
        roots, folders = serve_folders([rate] * SERVERS, stack, rtt_ms)
        whole, whole_folders = serve_folders([rate * SERVERS], stack, rtt_ms)
        names = copy_frames(frames, whole_folders[0])
        declare_stripe([str(folder) for folder in folders])
        swathe.stores.copy_objects(
            [str(whole_folders[0] / name) for name in names], "wide:", progress=False
        )
        declare_stripe(roots)
        block_roots = copy_to_blocks(names, whole_folders[0], (rate, rtt_ms), stack)
        swathe.stores.add("one", whole[0])
        servers = [f"{kind}{number}" for kind in ("disk", "block") for number in range(SERVERS)]
        for name in ("one", *servers):
            probe(Link("nginx", rtt_ms, label=name), PROBE, quick=True)
        sample = whole_folders[0] / names[0]
        boxes = random_boxes(names, cuts, SIDE)
        of_frames = rows_by_frame(boxes, SIDE, header_bytes(str(sample)))
        plain = {
            "blocks": list(requests_of_stripe(block_roots, of_frames)),
            "one": list(requests_of_files(whole[0], of_frames)),
        }
        rounds: dict[str, list[dict[str, float]]] = {"wide": [], "blocks": [], "one": []}
        plain_s: dict[str, list[float]] = {name: [] for name in plain}
        for _ in range(repeats):
            for name, rows in rounds.items():
                rows.append(cut_from(name, boxes, sample))
            for name, requests in plain.items():
                plain_s[name].append(race_curl(requests, FOLDER))
        median = {
            name: {what: statistics.median(row[what] for row in rows) for what in rows[0]}
            for name, rows in rounds.items()
        }
        for name, middle in median.items():
            print(
                f"{name}: {cuts} cuts from {frames} frames in {middle['seconds']:.2f} s, "
                f"CPU s: client {middle['cpu_s']:.2f}, proxies {middle['proxy_cpu_s']:.2f}, "
                f"servers {middle['server_cpu_s']:.2f}; {middle['bytes'] / 1e6:.1f} MB, "
                f"{middle['requests']:.0f} requests",
                flush=True,
            )
            yield {"what": name, "cuts": cuts, **middle, "all": rounds[name]}
        for name in ("wide", "blocks"):
            ratio = median[name]["seconds"] / median["one"]["seconds"]
            print(f"{name} beside one: {ratio:.3f} times as long", flush=True)
            yield {"what": f"{name} beside one", "ratio": ratio}
        for name, all_s in plain_s.items():
            seconds, count = statistics.median(all_s), len(plain[name])
            print(f"{name}, the same by curl: {count} requests in {seconds:.2f} s", flush=True)
            yield {"what": f"{name}, curl", "requests": count, "seconds": seconds, "all": all_s}


def copy_to_blocks(
    names: Sequence[str], folder: Path, link: tuple[int, int], stack: ExitStack
) -> list[str]:
    """Declare `blocks:` over block servers behind links, with copies of these frames.

    `link`: rate and round trip. Returns the URLs of the links.
    """
    rate, rtt_ms = link
    linked = [serve("blocks", rate, stack, rtt_ms) for _ in range(SERVERS)]
    by_dav = [server.url.replace("http://", "dav://") for server in linked]
    declare_stripe(by_dav, "blocks", "block")
    swathe.stores.copy_objects([str(folder / name) for name in names], "blocks:", progress=False)
    for number in range(SERVERS):
        probed = str(folder / PROBE)
        swathe.stores.copy_objects([probed], f"block{number}:", progress=False)
    roots = [server.link.url for server in linked]
    declare_stripe(roots, "blocks", "block")
    return roots


def copy_frames(count: int, folder: Path) -> list[str]:
    """Copy `count` frames into a folder; return their names."""
    sample = sorted(survey(min(count, DIFFERENT)).glob("frame-*.fit"))
    names = [f"frame-{number + 1:06}.fit" for number in range(count)]
    for number, name in enumerate(names):
        shutil.copy(sample[number % len(sample)], folder / name)
    return names


def cut_from(store: str, boxes: Sequence[tuple[str, int, int]], warm_up: Path) -> dict[str, float]:
    """Cut boxes of frames, in a process of its own.

    Returns:
        Seconds, those of processors for the client, the proxies and the servers, bytes read, and
        requests.
    """
    names, x0, y0 = (list(column) for column in zip(*boxes, strict=True))
    columns: dict[str, list[Any]] = {
        "file": [f"{store}:{name}" for name in names],
        "x0": x0,
        "y0": y0,
        "width": [SIDE] * len(boxes),
        "height": [SIDE] * len(boxes),
    }
    with tempfile.TemporaryDirectory(prefix="cuts-", dir=FOLDER) as place:
        order = {"targets": columns, "output": f"{place}/cuts.tar", "warm_up": str(warm_up)}
        before = used_cpu_s()
        done = subprocess.run(
            [sys.executable, "-c", CLIENT],
            input=json.dumps(order),
            env={**os.environ, "SWATHE_INDEX_DIR": f"{place}/index"},
            capture_output=True,
            text=True,
            timeout=600,
        )
        used = {name: cpu_s - before[name] for name, cpu_s in used_cpu_s().items()}
    if done.returncode:
        raise RuntimeError(f"cuts from {store}: {done.stderr[-2000:]}")
    answer = json.loads(done.stdout)
    if answer["faults"]:
        raise RuntimeError(f"cuts from {store}: {answer['faults'][0]}")
    proxy_cpu_s = used.pop("swathe-proxy")
    # The client of `used` is this process, which waited.
    server_cpu_s = sum(cpu_s for name, cpu_s in used.items() if name != "client")
    row: dict[str, float] = {
        **answer["row"],
        "proxy_cpu_s": proxy_cpu_s,
        "server_cpu_s": server_cpu_s,
    }
    return row
