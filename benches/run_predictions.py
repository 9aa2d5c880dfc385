"""How well the time of a run is predicted: drawn cases, predicted beside actual.

    python benches/run_predictions.py [--smoke] [--cases 60] [--seed 1] [--quick] [--only disk]

Stores are a folder, and a block server, nginx (WebDAV) and s3s-fs (a bucket), each over links of
1 ms and 600 Mb/s, and of 56 ms and 160 Mb/s. Each is probed once (`swathe probe --write`). Then
cases are drawn: store, number of arrays, shape, type, pattern, mode, dumps and ranks. Each is
predicted, then written, dump by dump as an application does that computes for longer than a dump
takes. Earlier cases correct later predictions, as they do for users. Prints each case, then errors
relative to the actual time by store: the median and the 90th percentile.
"""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import swathe
from harness import options, save, work_folder
from swathe.catalog import Catalog
from swathe.runs.writing.ranks import MpiRanks, OneRank, Ranks, ThreadRanks
from tests.support import servers
from tests.support.block_servers import block_server

LINKS = {"lan": (1, 75_000_000), "wan": (56, 20_000_000)}
"""Milliseconds of a round trip, and bytes/s of each direction."""
SERVERS = ("block", "nginx", "s3")
DISK = "disk"
BUCKET = "runs-of-bench"
SMALLEST, LARGEST = 128 << 10, 16 << 20
"""Bytes of a dump."""
OBJECT_BYTES = 8 << 20
"""Size of the object that a probe reads."""
WARM_BYTES = 4 << 20
TYPES, PATTERNS = ("u1", "i2", "f4", "f8"), ("BBB", "B**", "**B", "*BC")
DUMPS, MOST_ARRAYS = (2, 6), 3
RANKS = ((1, "alone"), (2, "threads"), (4, "threads"), (8, "threads"), (2, "mpi"))
CASES, SMOKE_CASES = 60, 3
MEDIAN_TARGET, HIGH_TARGET = 0.10, 0.25
CASE_KEY = "SWATHE_BENCH_CASE"
"""Variable that has the case of a process of MPI."""


@dataclass(frozen=True)
class Case:
    """A run whose arrays are dumped at the same iterations.

    Attributes:
        store: where they go.
        arrays: settings of the arrays, by name.
        dumps: number of dumps of each.
        ranks: number of ranks that write them together.
        kind: what the ranks are: `alone`, `threads` or `mpi`.
    """

    store: str
    arrays: dict[str, dict[str, Any]]
    dumps: int
    ranks: int
    kind: str

    @property
    def settings(self) -> dict[str, Any]:
        """The run, as in a file of settings."""
        arrays = {name: {**each, "location": self.store} for name, each in self.arrays.items()}
        return {
            "name": "bench", "iterations": self.dumps - 1, "ranks": self.ranks, "arrays": arrays,
        }  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """A case, its predicted and its actual seconds."""

    case: Case
    predicted_s: float
    low_s: float
    high_s: float
    actual_s: float

    @property
    def error(self) -> float:
        """Error of the prediction, relative to the actual time."""
        return abs(self.predicted_s / self.actual_s - 1)


def draw_case(draw: random.Random, stores: list[str], most_bytes: int) -> Case:
    """Return a case; sizes are spread over their logarithms."""
    count = draw.randint(1, MOST_ARRAYS)
    arrays = {f"a{number}": draw_array(draw, most_bytes) for number in range(count)}
    ranks, kind = draw.choice(RANKS)
    return Case(draw.choice(stores), arrays, draw.randint(*DUMPS), ranks, kind)


def draw_array(draw: random.Random, most_bytes: int) -> dict[str, Any]:
    """Return settings of an array of three axes."""
    dtype = draw.choice(TYPES)
    size = math.exp(draw.uniform(math.log(SMALLEST), math.log(most_bytes)))
    elements = size / np.dtype(dtype).itemsize
    sides = [draw.uniform(0.6, 1.4) for _ in range(3)]
    scale = (elements / math.prod(sides)) ** (1 / 3)
    shape = [max(round(scale * side), 1) for side in sides]
    mode = draw.choice(("create", "create", "overwrite"))
    return {"shape": shape, "dtype": dtype, "pattern": draw.choice(PATTERNS), "mode": mode}


@contextmanager
def stores(folder: Path, names: list[str]) -> Iterator[None]:
    """Serve the stores, and name them in the catalogue."""
    with ExitStack() as stack, Catalog.open() as catalog:
        for name in names:
            place = folder / name
            place.mkdir()
            server, _, link = name.partition("-")
            if server == DISK:
                catalog.add_store(name, str(place), "local")
                continue
            root, settings = "", {"probe_object": "object"}
            if server == "s3":
                bucket = stack.enter_context(servers.s3s_fs(place))
                bucket.put(BUCKET, "first", b"")
                os.environ.update(bucket.environment)
                url, root = bucket.url, f"s3://{BUCKET}"
            elif server == "nginx":
                place.chmod(0o777)
                url = f"{stack.enter_context(servers.nginx(place)).url}/dav"
            else:
                url = stack.enter_context(block_server(place)).url
            rtt_ms, rate = LINKS[link]
            limits = {"shared_bytes_per_s": rate, "upload_bytes_per_s": rate}
            proxy = stack.enter_context(servers.proxy(url, rtt_ms=rtt_ms, **limits))
            if server == "s3":
                settings["endpoint"] = proxy.url
            catalog.add_store(name, root or proxy.url.replace("http", "dav", 1), link, settings)
        yield


def probe(name: str, quick: bool) -> None:
    """Measure reading and writing, as `swathe probe` does."""
    words = [sys.executable, "-m", "swathe.cli", "probe", name, "--write"]
    if quick:
        words.append("--quick")
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"probe of {name}: {done.stderr}")


def write(case: Case) -> float:
    """Write a case with its ranks; return the seconds of all dumps, the longest of the ranks."""
    if case.kind == "mpi":
        return write_by_mpi(case)
    seconds: list[float] = []
    faults: list[BaseException] = []

    def program(ranks: Ranks) -> None:
        try:
            seconds.append(write_dumps(case, ranks))
        except BaseException as error:
            faults.append(error)

    members: list[Ranks] = [*ThreadRanks.make(case.ranks)] if case.ranks > 1 else [OneRank()]
    threads = [threading.Thread(target=program, args=(each,)) for each in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for fault in faults:
        raise fault
    return seconds[0]


def write_by_mpi(case: Case) -> float:
    """Write a case by processes of MPI."""
    mpiexec = Path(sys.executable).with_name("mpiexec")
    words = [str(mpiexec), "-n", str(case.ranks), sys.executable, __file__]
    environment = {**os.environ, CASE_KEY: json.dumps(asdict(case))}
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{case}: {done.stderr}")
    return float(done.stdout.split()[-1])


def write_dumps(case: Case, ranks: Ranks) -> float:
    """Write the dumps of a rank; return the seconds, the longest of the ranks."""
    with swathe.run("bench", case.dumps - 1, comm=ranks) as run:
        arrays = [run.array(name, **each) for name, each in case.settings["arrays"].items()]
        blocks = [np.ones(each.block_shape, each.settings.dtype) for each in arrays]
        seconds = 0.0
        for iteration in range(case.dumps):
            ranks.gather(None)  # what computes before has ended
            began = time.perf_counter()
            for array, block in zip(arrays, blocks, strict=True):
                array.write(iteration, block)
            run.sync()
            seconds += time.perf_counter() - began
        return float(max(ranks.gather(seconds)))


def measure(case: Case) -> Outcome:
    """Predict a case, and write it."""
    prediction = swathe.runs.predict(case.settings)
    return Outcome(case, prediction.seconds, *prediction.interval_s, write(case))


def print_table(outcomes: list[Outcome]) -> None:
    """Print the errors by store, by ranks, and over all."""
    print("\n| cases | number | median error | 90th percentile | within the interval |")
    print("|---|---|---|---|---|")
    groups = [
        *((name, [each for each in outcomes if each.case.store == name])
          for name in dict.fromkeys(each.case.store for each in outcomes)),
        *((f"{ranks} {kind}", [each for each in outcomes if each.case.ranks == ranks
                               and each.case.kind == kind]) for ranks, kind in RANKS),
        ("all", outcomes),
    ]  # fmt: skip
    for name, some in groups:
        if not some:
            continue
        median, high = np.quantile([each.error for each in some], (0.5, 0.9))
        inside = sum(each.low_s <= each.actual_s <= each.high_s for each in some)
        print(f"| {name} | {len(some)} | {median:.1%} | {high:.1%} | {inside} |")
    print(f"\ntargets: {MEDIAN_TARGET:.0%} in the median, {HIGH_TARGET:.0%} at the 90th percentile")


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__, names := [DISK, *(f"{at}-{to}" for at in SERVERS for to in LINKS)])
    parser.add_argument("--cases", type=int, default=CASES, help="number of cases (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the cases (default: 1)")
    parser.add_argument("--quick", action="store_true", help="probe each store for 5 s only")
    args = parser.parse_args()
    names = args.only or ([DISK] if args.smoke else names)
    count = SMOKE_CASES if args.smoke else args.cases
    draw, outcomes = random.Random(args.seed), []
    with work_folder(4 << 30) as folder, stores(folder, names):
        (folder / "object").write_bytes(random.Random(0).randbytes(OBJECT_BYTES))
        for name in names:
            swathe.stores.copy_objects(str(folder / "object"), f"{name}:object", progress=False)
            probe(name, args.smoke or args.quick)
            # One run before, as users have: the system gives memory, and code is loaded.
            arrays = {"a": {"shape": [WARM_BYTES], "dtype": "u1", "pattern": "B"}}
            write(Case(name, arrays, 1, 1, "alone"))
        for number in range(count):
            outcome = measure(draw_case(draw, names, LARGEST >> (6 if args.smoke else 0)))
            outcomes.append(outcome)
            case = json.dumps(asdict(outcome.case))
            times = f"{outcome.predicted_s:.4f} s ({outcome.low_s:.4f} to {outcome.high_s:.4f})"
            print(f"{number}: {case}: {times}, {outcome.actual_s:.4f} s", flush=True)
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"\nload of the machine at the end: {load}")
    print_table(outcomes)
    save("run_predictions", outcomes)


if __name__ == "__main__":
    if CASE_KEY in os.environ:
        from mpi4py import MPI

        members = MpiRanks(MPI.COMM_WORLD)
        longest_s = write_dumps(Case(**json.loads(os.environ[CASE_KEY])), members)
        if members.rank == 0:
            print(longest_s)
    else:
        main()
