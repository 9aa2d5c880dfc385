"""Load-lines: numbers over time, computed from events.

A load states how its number is computed; the viewer uses the same rules:

- `level`: number of a stage's instances in progress;
- `flow`: BYTES of a stage, spread evenly over its duration, in bytes/s;
- `rate`: events per second;
- `gauge`: a field of an event, as recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from swathe.trace.analysis.stages import END, MONITOR, START, stage_of
from swathe.trace.ulm import CodedColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swathe.trace.viewer.lifelines import TracedEvents

APART = ("HOST", "DEVICE", "INTERFACE", "STORE")
"""Ids that separate the lines of a gauge."""
UNITS = (
    ("_BYTES_PER_S", "bytes/s"),
    ("_SECTORS_PER_S", "sectors/s"),
    ("_PER_S", "1/s"),
    ("_PERCENT", "%"),
    ("_BYTES", "bytes"),
    ("_S", "s"),
)
LEFT = 1e-9
WORTH = ("CUT", "FETCH", "PEER", "DECODE", "OPEN", "JOB", "BATCH", "PORTAL")
"""Stages listed first."""


@dataclass(frozen=True)
class LoadLine:
    """A load-line.

    Attributes:
        name: name, such as `FETCH in flight`.
        unit: unit of its values.
        how: rule, see the module.
        event: stage of a level or a flow, event of a rate or a gauge.
        field: field of a gauge.
    """

    name: str
    unit: str
    how: Literal["level", "flow", "rate", "gauge"]
    event: str
    field: str = ""


@dataclass(frozen=True)
class Series:
    """One line: `values[i]` is valid from `time_ns[i]` on; a rate has counts at times."""

    name: str
    time_ns: NDArray[np.int64]
    values: NDArray[np.float64]


def loads(trace: TracedEvents) -> list[LoadLine]:
    """Return the loads that can be drawn, the most informative first."""
    events = trace.events
    codes = np.flatnonzero(np.bincount(events.event.codes, minlength=len(events.event.words)))
    present = {events.event.words[code]: int(code) for code in codes}
    stages = [stage_of(word)[0] for word in present if stage_of(word)[1] == START]
    stages.sort(key=lambda name: (WORTH.index(name) if name in WORTH else len(WORTH), name))
    result = []
    for stage in stages:
        if f"{stage}_END" in present:
            result.append(LoadLine(f"{stage} done", "1/s", "rate", f"{stage}_END"))
        result.append(LoadLine(f"{stage} in progress", "", "level", stage))
        if _has(trace, f"{stage}_END", "BYTES"):
            result.append(LoadLine(f"{stage} bytes", "bytes/s", "flow", stage))
    for word in sorted(present, key=lambda word: (word not in MONITOR, word)):
        if stage_of(word)[1] or word == "CLOCK":
            continue
        for name, column in events.fields.items():
            unit = next((unit for end, unit in UNITS if name.endswith(end)), None)
            numbers = not isinstance(column, CodedColumn) and (unit is not None or word in MONITOR)
            if numbers and name != "PID" and _has(trace, word, name):
                what = name.removesuffix("_PER_S").rsplit("_", 1)[0] if unit else name
                title = f"{word} {what.replace('_', ' ').lower()}"
                result.append(LoadLine(title, unit or "", "gauge", word, name))
        if word not in MONITOR:
            result.append(LoadLine(word, "1/s", "rate", word))
    return result


def first_loads(lines: Sequence[LoadLine]) -> list[LoadLine]:
    """Return the default loads: the most informative of each sort."""
    names = (
        [load for load in lines if load.how == "rate" and stage_of(load.event)[1] == END],
        [load for load in lines if load.how == "level"],
        sorted(
            (load for load in lines if load.how == "flow"), key=lambda load: load.event != "FETCH"
        ),
        [load for load in lines if load.how == "gauge" and load.unit == "%"],
    )
    return [some[0] for some in names if some]


def series(trace: TracedEvents, load: LoadLine) -> list[Series]:
    """Return the lines of a load: one, or for a gauge one per host, device..."""
    match load.how:
        case "level":
            return [_level(trace, load)]
        case "flow":
            return [_flow(trace, load)]
        case "rate":
            at = np.flatnonzero(_of(trace, load.event))
            return [Series(load.name, trace.events.time_ns[at], np.ones(len(at)))]
        case "gauge":
            return _gauges(trace, load)


def bin_rates(line: Series, edges_ns: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return a rate in each bin, per second."""
    counts = np.diff(np.searchsorted(line.time_ns, edges_ns))
    rates: NDArray[np.float64] = counts / (np.diff(edges_ns) / 1e9)
    return rates


def _of(trace: TracedEvents, word: str) -> NDArray[np.bool_]:
    event = trace.events.event
    code = event.words.index(word) if word in event.words else -1
    mask: NDArray[np.bool_] = event.codes == code
    return mask


def _has(trace: TracedEvents, word: str, name: str) -> bool:
    column = trace.events.fields.get(name)
    if column is None or isinstance(column, CodedColumn):
        return False
    return bool((~np.isnan(column[_of(trace, word)])).any())


def _cumulate(name: str, times: NDArray[np.int64], changes: NDArray[np.float64]) -> Series:
    order = np.argsort(times, kind="stable")
    values = np.cumsum(changes[order])
    # Rounding errors of sums and differences.
    values[np.abs(values) < LEFT * values.max(initial=0)] = 0
    return Series(name, times[order], values)


def _level(trace: TracedEvents, load: LoadLine) -> Series:
    starts = np.flatnonzero(_of(trace, f"{load.event}_START"))
    ends = trace.partner[starts]
    times = trace.events.time_ns
    ends = ends[ends >= 0]
    return _cumulate(
        load.name,
        np.concatenate([times[starts], times[ends]]),
        np.concatenate([np.ones(len(starts)), -np.ones(len(ends))]),
    )


def _flow(trace: TracedEvents, load: LoadLine) -> Series:
    times, sizes = trace.events.time_ns, trace.events.fields["BYTES"]
    ends = np.flatnonzero(_of(trace, f"{load.event}_END") & (trace.partner >= 0))
    assert not isinstance(sizes, CodedColumn)
    ends = ends[sizes[ends] > 0]
    starts = trace.partner[ends]
    # Zero durations count as one microsecond.
    duration_ns = np.maximum(times[ends] - times[starts], 1000)
    speed = sizes[ends] / (duration_ns / 1e9)
    return _cumulate(
        load.name,
        np.concatenate([times[starts], times[starts] + duration_ns]),
        np.concatenate([speed, -speed]),
    )


def _gauges(trace: TracedEvents, load: LoadLine) -> list[Series]:
    column = trace.events.fields[load.field]
    assert not isinstance(column, CodedColumn)
    at = np.flatnonzero(_of(trace, load.event) & ~np.isnan(column))
    names = np.full(len(at), "", object)
    for field in APART:
        codes, words = trace.codes(field)
        row_codes = codes[at]
        if len(np.unique(row_codes)) > 1:
            each = np.array([*words, ""], object)
            names = names + np.where(names == "", "", " ") + each[row_codes]
    lines = []
    for name in dict.fromkeys(names):
        mine = at[names == name]
        lines.append(Series(str(name) or load.name, trace.events.time_ns[mine], column[mine]))
    return lines
