"""How much of the writing of a run is hidden behind computing: `make bench-run_overlap`.

Dumps go to Apache's WebDAV behind a link of 160 Mb/s and 56 ms. The same dumps are written with
nothing else going on, the same computing goes on without dumps, then both. What is hidden is the
part of the writing's time by which both take less than the sum. `waiting` is the part of it that
the program spent in `write` and at the end of the run: it lacks only what threads take from the
computing, and does not depend on what else the machine does. The last dump is begun before the last
computing, and may take longer than that alone: so there are as many dumps as in the multi-storage
paper.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

import links  # sets a catalogue of its own
import swathe
from swathe.catalog import Catalog
from tests.support import servers

SHARED, RTT_MS = 20_000_000, 56
COMPUTE_FACTOR = 1.3
"""Computing takes as many times the writing, about; never less than the writing."""
FIRST_TURNS = 10


def compute(field: np.ndarray, turns: int) -> None:
    """Take turns of a stencil over a field, as a simulation would."""
    for _ in range(turns):
        inner = field[1:-1] + 0.1 * (field[2:] - 2 * field[1:-1] + field[:-2])
        field[1:-1] = np.sqrt(np.abs(inner) + 1.0)


def timed_run(shape: tuple[int, ...], dumps: int, turns: int, is_writing: bool) -> dict[str, float]:
    """Write dumps between turns of computing; return seconds of wall and processor, in all."""
    field = np.random.default_rng(1).random(shape, "f4")
    location = "far" if is_writing else "disable"
    began_s, began_cpu_s = time.perf_counter(), cpu_s()
    with swathe.run("overlap", dumps - 1) as run:
        array = run.array("a", shape, location=location)
        ready_s = time.perf_counter()
        stalls_s = 0.0
        for iteration in range(dumps):
            call_s = time.perf_counter()
            array.write(iteration, field)
            stalls_s += time.perf_counter() - call_s
            compute(field, turns)
        end_s = time.perf_counter()
    stop_s = time.perf_counter()
    return {
        "seconds": stop_s - ready_s,
        "begin": ready_s - began_s,
        "in_write": stalls_s,
        "at_end": stop_s - end_s,
        "cpu": cpu_s() - began_cpu_s,
    }


def cpu_s() -> float:
    """Return the processor seconds of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure(shape: tuple[int, ...], dumps: int, rounds: int) -> dict[str, Any]:
    """Return medians over rounds of writing, computing, and both."""
    timed_run(shape, 2, 0, True)  # connections, imports
    alone_s = timed_run(shape, dumps, 0, True)["seconds"]
    turns, computing_s = FIRST_TURNS, 0.0
    while computing_s < alone_s:
        # The first turns are slower, and the machine may have been busy: measured as it is used.
        computing_s = timed_run(shape, dumps, turns, False)["seconds"]
        turns = max(round(turns * COMPUTE_FACTOR * alone_s / computing_s), turns)
    ways = {"writing": (0, True), "computing": (turns, False), "both": (turns, True)}
    results: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            results[name].append(timed_run(shape, dumps, *way))
    medians = {
        name: {key: statistics.median(each[key] for each in of_way) for key in of_way[0]}
        for name, of_way in results.items()
    }
    hidden = [
        1 - (both["seconds"] - computing["seconds"]) / writing["seconds"]
        for writing, computing, both in zip(*results.values(), strict=True)
    ]
    size = int(np.prod(shape)) * 4
    return {
        **{
            name: {key: round(each, 3) for key, each in row.items()}
            for name, row in medians.items()
        },
        "dump_bytes": size,
        "dumps": dumps,
        "turns": turns,
        "waiting": [
            round((both["in_write"] + both["at_end"]) / writing["seconds"], 3)
            for writing, both in zip(results["writing"], results["both"], strict=True)
        ],
        "hidden": [round(each, 3) for each in hidden],
        "hidden_median": round(statistics.median(hidden), 3),
    }


def main() -> None:
    """Measure, and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="little, to see that it works")
    words = parser.parse_args()
    with links.work(), ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.chmod(folder, 0o777)
        url = stack.enter_context(servers.apache(folder, dav=True))
        settings = {"rtt_ms": RTT_MS, "shared_bytes_per_s": SHARED}
        proxy = stack.enter_context(servers.proxy(url, **settings))
        with Catalog.open() as catalog:
            catalog.add_store("far", proxy.url.replace("http://", "dav://"), "wan")
        shape = (64, 64, 16) if words.smoke else (128, 128, 128)
        dumps, rounds = (2, 1) if words.smoke else (21, 2)
        print(json.dumps(measure(shape, dumps, rounds), indent=1))


if __name__ == "__main__":
    main()
