"""Load experiment: mixes of reductions with growing concurrency, and the host's load."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from swathe.core.host import this_host
from swathe.experiments.clients.frames_in_store import FramesInStore, frames_in_stores
from swathe.experiments.clients.ramp_schedule import OK
from swathe.experiments.clients.remote_hosts import as_array, run_here
from swathe.experiments.results.environment_record import circumstances, memory_bytes
from swathe.experiments.results.result import Study
from swathe.experiments.settings import LoadSettings, plain
from swathe.experiments.statistics import first_above, work_in
from swathe.stores.registry import known_stores, storages
from swathe.trace.host_monitor import Monitor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    from swathe.trace.host_monitor import Point

    Array = NDArray[np.float64]

WORK = 400
"""Different reductions per mix."""
STACKS = {"light": 0.02, "heavy": 0.8}
"""Fraction of the reductions that are stacks."""
SWAP_BYTES_PER_S = 1e6
"""Swap rate that counts as out of memory, whatever the memory use."""
PARTS = 10
"""Parts of a level: each gives a sample of the rate, enough for `compare`."""
RESOURCES = ("cpu", "disk", "memory", "swap", "line")


def load(
    settings: LoadSettings, scratch: Path | None = None, tell: Callable[[str], None] | None = None
) -> Study:
    """Run the experiment: each mix on each store, with a growing number of workers.

    Raises:
        SwatheError: If a store cannot be read.
    """
    say = tell or (lambda _text: None)
    conditions = circumstances(settings.stores)
    results: dict[tuple[str, str], tuple[list[dict[str, Any]], dict[str, Array]]] = {}
    with frames_in_stores(settings, scratch) as stores:
        for place in stores:
            bandwidth = line_bytes_per_s(place)
            for mix in settings.mixes:
                say(f"{place.label}: {mix}, {', '.join(map(str, settings.workers))} workers")
                results[place.label, mix] = _one(settings, place, mix, bandwidth)
    return _study(settings, conditions, results)


def line_bytes_per_s(place: FramesInStore) -> float:
    """Return the measured bandwidth to a store; NaN for local files and unmeasured stores."""
    stores = known_stores()
    if stores is None or place.folder is not None:
        return math.nan
    costs, _, _ = storages().seen_from(this_host())
    key, _ = stores.locate(place.frame(1))
    return float(costs.get(key, {}).get("total_bytes_per_s", math.nan))


def _one(
    settings: LoadSettings, place: FramesInStore, mix: str, bandwidth: float
) -> tuple[list[dict[str, Any]], dict[str, Array]]:
    """Run the levels; return the work at each, and the host's load over time."""
    levels = []
    with Monitor(settings.interval_s) as monitor:
        for workers in settings.workers:
            order = {
                "join_s": 0.0,
                "length_s": settings.level_s,
                "rate": 0.0,
                "clients": list(range(workers)),
                "kind": "process",
                "work": reductions(settings, place, mix),
            }
            start, result = run_here(order)
            records = as_array(result.records)
            end = start + settings.level_s
            levels.append({"workers": workers, "start": start, "end": end, "records": records})
    host = host_over_time(list(monitor.samples))
    records = np.concatenate([level["records"] for level in levels])
    return levels, host | {"line": line_over_time(host["time"], records, bandwidth)}


def line_over_time(times: Array, records: NDArray[Any], bytes_per_s: float) -> Array:
    """Return what part of a line the clients used before each of these times, in percent.

    Args:
        times: seconds, ascending.
        records: requests, with the bytes that were read for each.
        bytes_per_s: bandwidth of the line; NaN if it is unknown, and then so is the part.
    """
    if len(times) == 0 or math.isnan(bytes_per_s):
        return np.full(len(times), math.nan)
    step = np.median(np.diff(times)) if len(times) > 1 else 1.0
    edges = np.concatenate([[times[0] - step], times])
    rate = work_in(records["sent"], records["done"], edges, records["bytes"])
    return np.asarray(100 * rate / bytes_per_s)


def reductions(settings: LoadSettings, place: FramesInStore, mix: str) -> dict[str, Any]:
    """Return random cuts and stacks; a stack is the median of one position in several images."""
    rng = np.random.default_rng(settings.seed)
    what = []
    for stack in rng.random(WORK) < STACKS[mix]:
        side, depth = (settings.large, settings.depth) if stack else (settings.small, 1)
        (box,) = place.boxes(1, side, rng)
        numbers = rng.integers(settings.frames, size=depth)
        what.append([(place.frame(int(number) + 1), box) for number in numbers])
    return {"kind": "mix", "what": what, "seed": settings.seed}


def host_over_time(points: Iterable[Point]) -> dict[str, Array]:
    """Return the host's load by sample: times, percentages, bytes per second.

    The readings of one moment are adjacent: CPU is the first.
    """
    total = memory_bytes()
    rows: list[dict[str, float]] = []
    for point in points:
        fields = point.fields

        def of(name: str, fields: Any = fields) -> float:
            return float(fields.get(name) or 0.0)

        if point.name == "CPU":
            busy = 100 - of("IDLE_PERCENT") - of("IOWAIT_PERCENT")
            start = {"time": point.time_ns / 1e9, "cpu": busy}
            rows.append(start | dict.fromkeys(("disk", "memory", "swap", "network"), 0.0))
        elif not rows:
            continue
        elif point.name == "DISK":
            rows[-1]["disk"] = max(rows[-1]["disk"], of("BUSY_PERCENT"))
        elif point.name == "MEMORY":
            rows[-1]["memory"] = 100 * of("USED_BYTES") / total
        elif point.name == "SWAP":
            rows[-1]["swap"] = (of("IN_BYTES_PER_S") + of("OUT_BYTES_PER_S")) / 1e6
        elif point.name == "NET":
            rows[-1]["network"] += of("RECEIVED_BYTES_PER_S") / 1e6
    names = ("time", "cpu", "disk", "memory", "swap", "network")
    return {name: np.array([row[name] for row in rows]) for name in names}


def ran_out(host: dict[str, Array], full_percent: float) -> tuple[str, float]:
    """Return the resource that ran out first, and when; `none` and infinity if none did."""
    limits = dict.fromkeys(RESOURCES, full_percent) | {"swap": SWAP_BYTES_PER_S / 1e6}
    times = {name: first_above(host["time"], host[name], limits[name]) for name in RESOURCES}
    first = min(RESOURCES, key=lambda name: times[name])
    return (first, times[first]) if times[first] < math.inf else ("none", math.inf)


def _study(
    settings: LoadSettings,
    circumstances: dict[str, Any],
    results: dict[tuple[str, str], tuple[list[dict[str, Any]], dict[str, Array]]],
) -> Study:
    from astropy.table import Table

    from swathe.experiments.results import figures

    rows: list[dict[str, Any]] = []
    samples, drawings, sentences = [], {}, []
    for number, ((store, mix), (levels, host)) in enumerate(results.items(), 1):
        working = np.zeros(len(host["time"]), bool)
        for level in levels:
            working |= (host["time"] > level["start"]) & (host["time"] <= level["end"])
        # Processes that start between levels are not part of the load.
        at_work = {name: values[working] for name, values in host.items()}
        first, when = ran_out(at_work, settings.full_percent)
        start_s = levels[0]["start"]
        work: dict[str, list[float]] = {"time": [], "rate": [], "workers": []}
        for level in levels:
            records, span = level["records"], level["end"] - level["start"]
            good = records[records["status"] == OK]
            late = good["done"] > level["end"]
            during = (host["time"] > level["start"]) & (host["time"] <= level["end"])
            # Of all that began: those unfinished at the end are the longest.
            response = good["done"] - good["sent"]
            rows.append(
                {
                    "store": store,
                    "mix": mix,
                    "workers": level["workers"],
                    "rate": int((~late).sum()) / span,
                    "response": 1e3 * float(np.median(response)) if len(good) else np.nan,
                    **{name: _mean(host[name][during]) for name in (*RESOURCES, "network")},
                    "read": good["bytes"][~late].sum() / span / 1e6,
                    "late": int(late.sum()),
                    "failed": int((records["status"] != OK).sum()),
                }
            )
            name = f"{store} {mix} {level['workers']} workers"
            parts = np.linspace(level["start"], level["end"], PARTS + 1)
            rates = work_in(good["sent"], good["done"], parts).tolist()
            samples += [(name, part, rate, "1/s", "higher") for part, rate in enumerate(rates)]
            work["time"] += [level["start"] - start_s, level["end"] - start_s]
            work["rate"] += [rows[-1]["rate"]] * 2
            work["workers"] += [level["workers"]] * 2
        host_samples = {**host, "time": host["time"] - start_s}
        drawings[f"load-{number}-{mix}"] = figures.load_over_time(
            f"The host under a {mix} load: {figures.short(store)}",
            host_samples,
            {n: np.array(v) for n, v in work.items()},
        )
        sentences.append(_sentence(settings, store, mix, levels, first, when))
    units = {"rate": "1/s", "response": "ms", **dict.fromkeys(RESOURCES, "%")}
    units |= dict.fromkeys(("swap", "network", "read"), "Mbyte/s")
    table = Table(rows=rows, units=units)
    title = "Mixes of reductions, and what the host does"
    return Study("load", title, plain(settings), circumstances, table, samples, drawings, sentences)


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _sentence(
    settings: LoadSettings,
    store: str,
    mix: str,
    levels: list[dict[str, Any]],
    first: str,
    when: float,
) -> str:
    if first == "none":
        return f"{store}, {mix}: no resource was exhausted (none at {settings.full_percent:g} %)."
    worker_counts = [level["workers"] for level in levels if level["start"] <= when]
    workers = worker_counts[-1] if worker_counts else levels[0]["workers"]
    names = {"cpu": "the CPU", "disk": "the disk", "swap": "memory (swapping)", "line": "the line"}
    after_s, ending = when - levels[0]["start"], "s" if workers != 1 else ""
    return (
        f"{store}, {mix}: {names.get(first, first)} was exhausted first, {after_s:.1f} s after the "
        f"start, with {workers} worker{ending}."
    )
