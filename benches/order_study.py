"""Three reductions of swaths under light and heavy load: which resource runs out first.

    python benches/order_study.py [--smoke] [--granules 2] [--cores 1] [--memory-gb 4]

The study of S4PM-DM (2005) with granules like those of MODIS, HDF-EOS2 of 2030 x 1354 pixels:
surface temperature and cloud of 7 days, aerosol of 5 days, each reduced to a grid of a quarter
degree by an algorithm of `examples/algorithms`. A portal runs them in its sandbox. An order is one
program, which reads all its granules. Light load: each order alone, then the three together. Heavy
load: six of each, all 18 at the same time. Then the resource that ran out is doubled, and the heavy
load runs again.

The portal and its programs are in a control group with this memory, and run on this many cores.
The host is monitored as by `swathe trace host`. A resource has run out when it stays at 90 % or
more for 5 s. Caches of the granules are dropped before each load. It needs root, a sandbox, and
pyhdf. The result goes to build/bench/order-study.json, a figure of each load beside it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import swathe
from control_group import ControlGroup, Usage
from harness import BUILD, HERE, options, save, work_folder
from swathe.catalog import Catalog
from swathe.core.sample_granules import PRODUCTS, SHAPE, sample_swaths
from swathe.datasets.scan import scan
from swathe.experiments.load_experiment import host_over_time
from swathe.experiments.results import figures
from swathe.experiments.statistics import first_above
from swathe.stores.listing import list_objects
from swathe.trace.host_monitor import Monitor, Point
from tests.support.box import box
from tests.support.portals import database_in, served

KINDS = {"temperature": "MOD11_L2", "cloud": "MOD06_L2", "aerosol": "MOD05_L2"}
DAYS = {"temperature": 7, "cloud": 7, "aerosol": 5}
HEAVY = 6
LIGHT = {f"{kind} alone": (kind,) for kind in KINDS} | {"light": tuple(KINDS)}
FULL_PERCENT, STAY_S = 90.0, 5.0
SMALL = (100, 70)
DISK_SECTOR = 512
LIMITED = ("cpu", "memory", "disk", "swap")


@dataclass
class Load:
    """A load and what it took.

    Attributes:
        name: of the load.
        orders: at the same time.
        cores: that the portal and its programs may use.
        memory_bytes: limit of their memory.
        elapsed_s: from the first order until the last one has ended.
        input_bytes: of all granules that were read.
        output_bytes: of all results.
        programs: for each kind, the means of CPU seconds, elapsed seconds and bytes of memory.
        percent: for each resource, its mean and its most in percent; swap in MB/s.
        disk_bytes_per_s: read and written by the host.
        ran_out: which resource stayed full first; empty if none did.
        after_s: when that began.
        kills: processes that the kernel ended for want of memory.
        failed: orders that failed.
    """

    name: str
    orders: int
    cores: int
    memory_bytes: int
    elapsed_s: float = 0.0
    input_bytes: int = 0
    output_bytes: int = 0
    programs: dict[str, dict[str, float]] = field(default_factory=dict)
    percent: dict[str, tuple[float, float]] = field(default_factory=dict)
    disk_bytes_per_s: float = 0.0
    ran_out: str = ""
    after_s: float = 0.0
    kills: int = 0
    failed: int = 0


class Watch:
    """The monitor of the host, and the use of a control group at the same moments."""

    def __init__(self, group: ControlGroup, interval_s: float) -> None:
        """Take the group, and the time between readings."""
        self._group, self._lock = group, threading.Lock()
        self.usage: list[Usage] = [group.usage()]
        self.start_s = time.time()
        self.monitor = Monitor(interval_s, tell=self._read)

    def _read(self, point: Point) -> None:
        if point.name == "CPU":
            self.usage.append(self._group.usage())

    def series(self, cores: int, memory_bytes: int) -> dict[str, Any]:
        """Return percentages over time; CPU and memory are those of the group."""
        host = host_over_time(list(self.monitor.samples))
        usage = self.usage[: len(host["time"]) + 1]
        edges = np.concatenate([[self.start_s], host["time"]])
        cpu_s = np.diff([each.cpu_s for each in usage])
        host["cpu"] = 100 * cpu_s / np.diff(edges) / cores
        host["memory"] = 100 * np.array([each.memory_bytes for each in usage[1:]]) / memory_bytes
        host["time"] = host["time"] - self.start_s
        host["line"] = np.full(len(host["time"]), np.nan)
        return host

    def disk_bytes_per_s(self) -> float:
        """Return what all disks of the host read and wrote, on average."""
        names = ("READ_SECTORS_PER_S", "WRITTEN_SECTORS_PER_S")
        points = [each for each in self.monitor.samples if each.name == "DISK"]
        moments = len({each.time_ns for each in points}) or 1
        sectors = sum(float(each.fields[name]) for each in points for name in names)
        return DISK_SECTOR * sectors / moments


@contextmanager
def portal_on(cores: int, group: ControlGroup, folder: Path, users: str) -> Iterator[str]:
    """Yield the URL of a portal on some cores, in a group, that runs all orders at once."""
    settings = f"[limits]\njobs = 100\n{sandbox(users)}programs = {HEAVY * len(KINDS)}\n"
    all_cores = os.sched_getaffinity(0)
    with ExitStack() as stack:
        try:
            os.sched_setaffinity(0, sorted(all_cores)[:cores])
            with group.joined():
                portal = stack.enter_context(served(folder, settings))
        finally:
            os.sched_setaffinity(0, all_cores)
        yield portal.url


def sandbox(users: str) -> str:
    """Return the section of a portal's settings that says how programs run."""
    python = box().python
    folders = ", ".join(f'"{each}"' for each in python.folders)
    own = f'users = "{users}"\n' if os.geteuid() == 0 else ""
    return f'[algorithms]\n{own}python = "{python.executable}"\nfolders = [{folders}]\n'


def fill(folder: Path, swaths: Path) -> None:
    """Register the swaths in the catalogue of the portal."""
    os.environ["SWATHE_DATABASE"] = database_in(folder)
    with Catalog.open(database_in(folder)) as catalog:
        store = catalog.add_store("swaths", str(swaths))
        for product in PRODUCTS:
            catalog.add_dataset(product, "swaths", product, "*.hdf")
            scan(catalog, product, list_objects(store, product, "*.hdf"))


def drop_caches(swaths: Path) -> None:
    """Let the kernel forget the contents of the granules."""
    for path in swaths.rglob("*.hdf"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def run(load: Load, kinds: tuple[str, ...], url: str, group: ControlGroup, swaths: Path) -> None:
    """Place orders, wait for all, fill the load, and draw it."""
    drop_caches(swaths)
    watch = Watch(group, interval_s=0.5)
    kills = group.kills()
    with watch.monitor, swathe.connect(url) as portal:
        begin = time.perf_counter()
        jobs = []
        for kind in kinds:
            days = ("2005-05-01", f"2005-05-{DAYS[kind]:02}T23:59:59")
            jobs.append((kind, portal.order(f"modis-{kind}", time=days)))
        ends = [job.wait(progress=False) for _, job in jobs]
        load.elapsed_s = time.perf_counter() - begin
        load.failed = sum(end.phase != "COMPLETED" or end.counts["error"] > 0 for end in ends)
        logs = [(kind, job.log("all")) for kind, job in jobs]
    load.kills = group.kills() - kills
    load.input_bytes = sum(each["input_bytes"] for _, each in logs)
    load.output_bytes = sum(each["output_bytes"] for _, each in logs)
    for kind in sorted(set(kinds)):
        load.programs[kind] = {
            name: float(np.mean([each[name] for own, each in logs if own == kind]))
            for name in ("cpu_s", "wall_s", "memory_bytes", "input_bytes")
        }
    series = watch.series(load.cores, load.memory_bytes)
    load.disk_bytes_per_s = watch.disk_bytes_per_s()
    for name in LIMITED:
        values = series[name]
        load.percent[name] = float(values.mean()), float(values.max(initial=0))
    load.ran_out, load.after_s = ran_out(series)
    draw(load, series)


def ran_out(series: dict[str, Any]) -> tuple[str, float]:
    """Return the resource that stayed full first, and since when; empty if none did."""
    times = series["time"]
    step_s = float(np.median(np.diff(times))) if len(times) > 1 else STAY_S
    samples = max(1, round(STAY_S / step_s))
    full = {
        name: first_above(times, series[name], FULL_PERCENT, samples)
        for name in ("cpu", "memory", "disk")
    }
    first = min(full, key=full.__getitem__)
    return (first, full[first]) if np.isfinite(full[first]) else ("", 0.0)


def draw(load: Load, series: dict[str, Any]) -> None:
    """Draw CPU, memory, swap and disk over time, and against each other."""
    rate = load.orders / load.elapsed_s
    work = {
        "time": np.array([0, load.elapsed_s]),
        "rate": np.array([rate, rate]),
        "workers": np.array([load.orders, load.orders]),
    }
    memory_gb = load.memory_bytes / 1e9
    title = f"{load.name}: {load.orders} orders, cores: {load.cores}, memory: {memory_gb:g} GB"
    BUILD.mkdir(parents=True, exist_ok=True)
    canvas = figures.load_over_time(title, series, work)
    name = f"orders-{load.name.replace(' ', '-')}-{load.cores}-cores-{memory_gb:g}-gb.png"
    canvas.savefig(BUILD / name, dpi=75)


def doubled(load: Load, most_cores: int) -> Load | None:
    """Return the same load with twice of what ran out; `None` if there is no more of it."""
    if load.ran_out == "cpu" and not load.kills and 2 * load.cores <= most_cores:
        return Load("heavy", load.orders, 2 * load.cores, load.memory_bytes)
    if load.ran_out == "memory" or load.kills:
        return Load("heavy", load.orders, load.cores, 2 * load.memory_bytes)
    return None


def table(loads: list[Load]) -> Iterator[str]:
    """Yield the lines of the table of loads, in Markdown."""
    heads = ("load", "orders", "cores", "memory, GB", "elapsed, s", "orders/min", "read, MB/s",
             "CPU %", "memory %, most", "disk busy %", "disk, MB/s", "swap, MB/s", "full first",
             "after, s", "killed", "failed")  # fmt: skip
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for load in loads:
        cells = (load.name, load.orders, load.cores, f"{load.memory_bytes / 1e9:g}",
                 f"{load.elapsed_s:.1f}", f"{60 * load.orders / load.elapsed_s:.1f}",
                 f"{load.input_bytes / load.elapsed_s / 1e6:.1f}", f"{load.percent['cpu'][0]:.0f}",
                 f"{load.percent['memory'][1]:.0f}", f"{load.percent['disk'][0]:.0f}",
                 f"{load.disk_bytes_per_s / 1e6:.1f}", f"{load.percent['swap'][1]:.1f}",
                 load.ran_out or "none", f"{load.after_s:.1f}" if load.ran_out else "",
                 load.kills, load.failed)  # fmt: skip
        yield f"| {' | '.join(map(str, cells))} |"


def advice(loads: list[Load]) -> Iterator[str]:
    """Yield what N strings need to run as fast as one alone, in Markdown.

    A string is a user's order that runs. A third of them is of each kind. Figures are those of the
    loads with one order.
    """
    alone = [each for load in loads if load.orders == 1 for each in load.programs.values()]
    cores = np.mean([each["cpu_s"] / each["wall_s"] for each in alone])
    memory = np.mean([each["memory_bytes"] for each in alone])
    rate = np.mean([each["input_bytes"] / each["wall_s"] for each in alone])
    yield "| strings | cores | memory of programs, GB | disk, MB/s |"
    yield "| --- | --- | --- | --- |"
    for strings in (1, 3, 18, 36):
        values = (strings * cores, strings * memory / 1e9, strings * rate / 1e6)
        yield f"| {strings} | {' | '.join(f'{each:.2g}' for each in values)} |"


def main() -> None:
    """Run the loads, and print the tables."""
    parser = options(__doc__, ["light", "heavy"])
    parser.add_argument("--granules", type=int, default=2, help="of each product a day (default 2)")
    parser.add_argument("--cores", type=int, default=1, help="of the portal (default: 1)")
    parser.add_argument("--memory-gb", type=float, default=4.0, help="of its group (default: 4)")
    parser.add_argument("--users", default="72000:20", help="user ids of programs, FIRST:COUNT")
    words = parser.parse_args()
    granules, shape, each = (1, SMALL, 1) if words.smoke else (words.granules, SHAPE, HEAVY)
    swaths = sample_swaths(
        BUILD / f"swaths-{shape[0]}x{shape[1]}-{granules}", granules=granules, shape=shape
    )
    memory_bytes = round(words.memory_gb * 1e9)
    parts = words.only or ["light", "heavy"]
    planned = [(Load(n, len(k), words.cores, memory_bytes), k) for n, k in LIGHT.items()]
    planned = planned[: 1 if words.smoke else None] if "light" in parts else []
    heavy = Load("heavy", each * len(KINDS), words.cores, memory_bytes)
    if "heavy" in parts:
        planned.append((heavy, each * tuple(KINDS)))
    loads: list[Load] = []
    with work_folder() as folder, ExitStack() as stack:
        folder.chmod(0o755)
        fill(folder, swaths)
        while planned:
            load, kinds = planned.pop(0)
            if not loads or (load.cores, load.memory_bytes) != (loads[-1].cores, memory_bytes):
                stack.close()
                memory_bytes = load.memory_bytes
                group = ControlGroup(f"swathe-order-study-{os.getpid()}", memory_bytes)
                stack.callback(group.remove)
                url = stack.enter_context(portal_on(load.cores, group, folder, words.users))
                add_algorithms(url)
            print(load.name, file=sys.stderr, flush=True)
            run(load, kinds, url, group, swaths)
            loads.append(load)
            if load is heavy and (more := doubled(load, len(os.sched_getaffinity(0)))):
                planned.append((more, kinds))
    save("order-study", [asdict(load) for load in loads])
    average = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"{granules} granules a day of {shape[0]} x {shape[1]}; load at the end: {average}\n")
    print("\n".join([*table(loads), ""]))
    if "light" in parts:
        print("\n".join(advice(loads)))


def add_algorithms(url: str) -> None:
    """Add the three algorithms to the portal; the same file again is the same version."""
    with swathe.connect(url) as portal:
        for kind in KINDS:
            portal.add_algorithm(HERE.parent / "examples/algorithms" / f"modis_{kind}.py")


if __name__ == "__main__":
    main()
