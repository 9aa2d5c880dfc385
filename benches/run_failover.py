"""Runs whose store dies, fills or slows tenfold at a drawn dump: when they end, and what is there.

    python benches/run_failover.py [--smoke] [--cases 20] [--seed 1]

Two block servers, each over a link of 1 ms and 600 Mb/s, are measured (`swathe probe --write`).
An application computes for longer than a dump takes, and writes to the first of them. The best
placement in hindsight is the second store from the beginning: the links are equal. It is run just
before each case, since the machine may be busier later.
All dumps are read again, and compared to the bit. Prints each case, then the median and the longest
time relative to that of hindsight.
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import swathe
from harness import options, save, work_folder
from run_predictions import LINKS, OBJECT_BYTES, probe
from swathe.catalog import Catalog
from tests.support import servers
from tests.support.block_servers import BlockServer, block_server

FAR, OTHER = "far", "other"
FAULTS = ("dies", "fills", "slows")
SHAPE, DUMPS, SMOKE_DUMPS = (128, 128, 128), 32, 6
DUMP_BYTES = 4 * 128**3
COMPUTE_FACTOR = 1.3
"""How much longer than a dump the application computes."""
SLOWER = 10
CASES, SMOKE_CASES = 20, 1
TARGET = 1.2


@dataclass(frozen=True)
class Outcome:
    """A run, in seconds.

    Attributes:
        fault: what happened to its first store.
        at: number of the dump at which it did.
        seconds: from the first dump to the end.
        hindsight_s: the same of the best placement.
        stores: the store of each dump.
        equal: whether all dumps are as they were written.
    """

    fault: str
    at: int
    seconds: float
    hindsight_s: float
    stores: list[str]
    equal: bool


@contextmanager
def first_server(folder: Path, port: int, settings: tuple[object, ...]) -> Iterator[BlockServer]:
    """Serve an empty folder as the first store."""
    folder.mkdir()
    with block_server(folder, options=("--port", port, *settings)) as server:
        yield server


@contextmanager
def link_to(name: str, url: str) -> Iterator[servers.Proxy]:
    """Lead to a server by a link, and name it in the catalogue."""
    with servers.proxy(url, rtt_ms=LINKS["lan"][0], **limits()) as link, Catalog.open() as catalog:
        root = link.url.replace("http", "dav", 1)
        catalog.add_store(name, root, "lan", {"probe_object": "object"})
        yield link


def limits(slower: int = 1) -> dict[str, int]:
    """Return the settings of a link."""
    rate = LINKS["lan"][1] // slower
    return {"shared_bytes_per_s": rate, "upload_bytes_per_s": rate}


def whole_at(iteration: int) -> np.ndarray:
    """Return the elements of a dump."""
    return np.full(SHAPE, iteration, "f4")


def run_seconds(
    location: list[str], dumps: int, compute_s: float, act: Callable[[int], object]
) -> float:
    """Write a run; return the seconds from its first dump to its end."""
    with swathe.run("bench", dumps - 1) as run:
        array = run.array("a", SHAPE, location=location)
        began = time.perf_counter()
        for iteration in range(dumps):
            act(iteration)
            array.write(iteration, whole_at(iteration))
            time.sleep(compute_s)
    return time.perf_counter() - began


def measure(
    fault: str, at: int, dumps: int, folder: Path, link: servers.Proxy, compute_s: float
) -> tuple[float, list[str], bool]:
    """Run a case; return its seconds, the store of each dump, and whether all are as written."""
    port = int(link.upstream_url.rpartition(":")[2])
    settings: tuple[object, ...] = ()
    if fault == "fills":
        settings = ("--max-bytes", round((at + 0.5) * DUMP_BYTES))
    with ExitStack() as stack:
        server = stack.enter_context(first_server(folder, port, settings))

        def act(iteration: int) -> None:
            if iteration == at and fault == "dies":
                server.end(signal.SIGKILL)
            elif iteration == at and fault == "slows":
                link.set(**limits(SLOWER))

        seconds = run_seconds([FAR, OTHER], dumps, compute_s, act)
        link.set(**limits())
        if fault == "dies":
            stack.enter_context(block_server(folder, options=("--port", port)))
        array = swathe.open_run("bench")["a"]
        equal = list(array) == list(range(dumps)) and all(
            np.array_equal(dump[...], whole_at(iteration)) for iteration, dump in array.items()
        )
        stores = [each.store for each in array.dumps.values()]
        swathe.runs.remove("bench")
    return seconds, stores, equal


def dump_s(name: str) -> float:
    """Return the predicted seconds of a dump."""
    array = {"shape": list(SHAPE), "location": name}
    return swathe.runs.predict({"name": "a", "iterations": 0, "arrays": {"a": array}}).seconds


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--cases", type=int, default=CASES, help="number of runs (default: 20)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the runs (default: 1)")
    args = parser.parse_args()
    draw, outcomes = random.Random(args.seed), []
    with work_folder(4 << 30) as folder, ExitStack() as stack:
        (folder / OTHER).mkdir()
        (folder / "object").write_bytes(random.Random(0).randbytes(OBJECT_BYTES))
        stack.enter_context(link_to(OTHER, stack.enter_context(block_server(folder / OTHER)).url))
        port = servers.free_port()
        link = stack.enter_context(link_to(FAR, f"http://127.0.0.1:{port}"))
        with first_server(folder / FAR, port, ()):
            for name in (FAR, OTHER):
                swathe.stores.copy_objects(str(folder / "object"), f"{name}:object", progress=False)
                probe(name, True)
        compute_s = COMPUTE_FACTOR * dump_s(OTHER)
        dumps = SMOKE_DUMPS if args.smoke else DUMPS
        run_seconds([OTHER], dumps, 0.0, lambda _: None)  # connections and memory are there then
        for number in range(SMOKE_CASES if args.smoke else args.cases):
            fault, at = FAULTS[number % len(FAULTS)], draw.randrange(1, dumps)
            place = folder / str(number)
            hindsight_s = run_seconds([OTHER], dumps, compute_s, lambda _: None)
            seconds, homes, equal = measure(fault, at, dumps, place, link, compute_s)
            outcome = Outcome(fault, at, seconds, hindsight_s, homes, equal)
            outcomes.append(outcome)
            ratio = outcome.seconds / outcome.hindsight_s
            print(
                f"{number}: {fault} at {at}: {outcome.seconds:.2f} s, {hindsight_s:.2f} s in "
                f"hindsight, {ratio:.2f}; {outcome.stores.count(OTHER)} dumps in the other, "
                f"equal: {outcome.equal}",
                flush=True,
            )
    ratios = [each.seconds / each.hindsight_s for each in outcomes]
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"\nload of the machine at the end: {load}")
    print(f"median {statistics.median(ratios):.2f}, longest {max(ratios):.2f}; target: {TARGET}")
    save("run_failover", outcomes)
    if not all(each.equal for each in outcomes):
        sys.exit("not all dumps are as they were written")


if __name__ == "__main__":
    main()
